"""A file and a dataset have the same everyday names, with the same parameters and results."""

from __future__ import annotations

import inspect

import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import col

# Members that make no sense for many files, or for one.
FILE_MEMBERS = {"metadata", "num_row_groups", "statistics", "geospatial", "coalescing", "source", "file_bytes"}
FILE_MEMBERS |= {"encryption"}
DATASET_MEMBERS = {"files", "parts", "partition_keys", "refresh"}
METHODS = ["close", "count_rows", "head", "iter_batches", "plan", "read", "to_arrow"]


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_same_parameters(name):
    of_file = inspect.signature(getattr(numparq.ParquetFile, name)).parameters
    of_dataset = inspect.signature(getattr(numparq.Dataset, name)).parameters
    assert list(of_file.values()) == list(of_dataset.values())


def test_members_differ_only_where_they_must():
    def own(kind: type) -> set[str]:
        return {name for base in kind.__mro__[:-1] for name in vars(base) if not name.startswith("_")}

    of_file = own(numparq.ParquetFile)
    assert of_file - own(numparq.Dataset) == FILE_MEMBERS
    assert own(numparq.Dataset) - of_file == DATASET_MEMBERS


@pytest.fixture(params=["file", "dataset"])
def table(request, tmp_path):
    frame = pd.DataFrame({"a": range(10), "b": [None, *"abcdefghi"]}, index=pd.Index([*"ABCDEFGHIJ"], name="i"))
    if request.param == "file":
        numparq.to_parquet(frame, tmp_path / "x.parquet", row_group_size=4)
        opened = numparq.ParquetFile(tmp_path / "x.parquet")
    else:
        numparq.to_parquet(frame, tmp_path / "folder", partition_cols=[], max_rows_per_file=4)
        opened = numparq.Dataset(tmp_path / "folder")
    with opened:
        yield opened


def test_counts(table):
    assert table.num_rows == table.count_rows() == 10
    assert table.count_rows(col("a") > 6) == table.count_rows([("b", ">=", "g")]) == 3
    assert table.count_rows(col("a") > 100) == 0


def test_first_rows(table):
    pd.testing.assert_frame_equal(table.head(), table.read()[:5])
    pd.testing.assert_frame_equal(table.head(7, ["b"]), table.read(["b"])[:7])
    assert len(table.head(0)) == 0


def test_arrow_table(table):
    assert table.schema.names == table.schema.columns == ["a", "b", "i"]
    found = table.to_arrow(["b"], col("a") > 6)
    assert isinstance(found, pa.Table)
    assert found["b"].to_pylist() == ["g", "h", "i"]
    assert table.to_arrow().equals(pa.table(table))


def test_threads_of_a_dataset_are_those_of_its_reads(tmp_path, monkeypatch):
    from numparq.scan import scan

    numparq.to_parquet(pd.DataFrame({"a": range(10), "key": [0, 1] * 5}), tmp_path / "d", partition_cols=["key"])
    used = []
    pool = scan.WorkerPool
    monkeypatch.setattr(scan, "WorkerPool", lambda threads: used.append(threads) or pool(threads))
    with numparq.Dataset(tmp_path / "d", threads=3) as table:
        for read in (table.read, lambda **options: list(table.iter_batches(**options))):
            for options, threads in (({}, 3), ({"threads": 2}, 2)):
                used.clear()
                read(**options)
                assert set(used) == {threads}
        used.clear()
        assert table.count_rows([("a", ">", 4)]) == 5
        assert set(used) == {3}
