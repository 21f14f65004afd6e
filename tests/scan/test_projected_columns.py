"""Projected columns are shared by files of one schema, but not by files whose metadata gives them other dtypes."""

from __future__ import annotations

import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.format.open_file import OpenFile
from numparq.scan.options import ScanOptions
from numparq.scan.projected_columns import project_columns


def written(frame, **options):
    file = io.BytesIO()
    numparq.to_parquet(frame, file, **options)
    return file.getvalue()


def prepared(data, columns=None):
    return project_columns(OpenFile(data), columns, ScanOptions())._prepared


FIRST, SECOND = [1, 2, None], [4, None, None]


def test_files_of_one_schema_and_metadata_share_their_columns():
    one, other = (written(pd.DataFrame({"a": values, "b": "x"}, dtype="object")) for values in (FIRST, SECOND))
    assert one != other
    assert prepared(one) is prepared(other)
    assert prepared(one) is not prepared(one, ["a"])


@pytest.mark.parametrize("turn", [1, -1])
def test_dtypes_of_files_that_differ_only_in_metadata(turn):
    values = pd.DataFrame({"a": [1.5, 2.5], "day": pd.to_datetime(["2024-01-01", "2024-01-02"])})
    table = pa.Table.from_pandas(values.astype({"a": "Float64"}))
    files = {}
    for name, metadata in (("nullable", table.schema.metadata), ("plain", None)):
        files[name] = io.BytesIO()
        pq.write_table(table.replace_schema_metadata(metadata), files[name])
    dtypes = {name: str(numparq.read_parquet(file.getvalue())["a"].dtype) for name, file in [*files.items()][::turn]}
    assert dtypes == {"nullable": "Float64", "plain": "float64"}


def test_nulls_of_one_file_do_not_decide_the_dtypes_of_another():
    dtypes = []
    for values in ([True, None], [True, False], [None, False]):
        file = io.BytesIO()
        pq.write_table(pa.table({"a": values, "b": pa.array(values).cast("int64")}), file)
        dtypes.append(list(map(str, numparq.read_parquet(file.getvalue()).dtypes)))
    assert dtypes == [["object", "float64"], ["bool", "int64"], ["object", "float64"]]


def test_dtypes_that_only_numparq_stores_are_those_of_its_files():
    data = written(pd.DataFrame({"a": [1, 2]}, dtype="object"))
    other = data.replace(b"numparq version", b"another version")
    assert data != other
    assert [numparq.read_parquet(one)["a"].dtype for one in (data, other, data)] == ["object", "int64", "object"]
