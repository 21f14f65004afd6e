"""Replaced partitions match by value, whatever spelling another writer used."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")

import numparq  # noqa: E402
from numparq.dataset.write.dataset_writer import DatasetWriter  # noqa: E402
from numparq.dataset.write.shared_job import SharedJob  # noqa: E402


@pytest.mark.parametrize(
    ("kind", "value", "replaced", "kept"),
    [
        (pa.int32(), 1, ["1", "01", "001"], ["10", "-1", "1.0", "_1", "x", "__HIVE_DEFAULT_PARTITION__"]),
        (pa.float64(), 1.0, ["1", "1.0", "1e0", "01."], ["1.5", "nan", "-1", "x"]),
        (pa.float64(), -0.0, ["-0.0", "-0"], ["0"]),
        (
            pa.decimal128(38, 2),
            Decimal("-12345678901234567890123456789012345.50"),
            ["-12345678901234567890123456789012345.5", "-12345678901234567890123456789012345.50"],
            ["-12345678901234567890123456789012345.51", "12345678901234567890123456789012345.5"],
        ),
        (pa.bool_(), True, ["true", "True"], ["false", "1"]),
        (pa.string(), "1", ["1"], ["01", "1.0"]),
        (pa.int32(), None, ["__HIVE_DEFAULT_PARTITION__"], ["0"]),
    ],
)
@pytest.mark.parametrize("by", ["a job", "a writer"])
def test_partitions_with_other_spellings_are_replaced(tmp_path, kind, value, replaced, kept, by):
    """Writing 1 replaces an existing `month=01`, so that readers never see rows of both."""
    for text in (*replaced, *kept):
        (tmp_path / f"key={text}").mkdir()
        numparq.to_parquet(pd.DataFrame({"n": [1]}), tmp_path / f"key={text}" / "old.parquet")
    table = pa.table({"key": pa.array([value], kind), "n": [2]})
    if by == "a job":
        job = SharedJob.begin(tmp_path, mode="delete_matching", partition_cols=["key"], schema=table.schema)
        with job.task("0") as writer:
            writer.write(table)
        job.commit([writer.message])
    else:
        with DatasetWriter(tmp_path, partition_cols=["key"], existing_data_behavior="delete_matching") as writer:
            writer.write(table.to_pandas(types_mapper=pd.ArrowDtype))
    assert {path.parent.name for path in tmp_path.rglob("old.parquet")} == {f"key={text}" for text in kept}
