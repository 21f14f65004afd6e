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
    frames = [pd.DataFrame({"a": values}, dtype="Int64") for values in (FIRST, [7, 8, 9], SECOND)]
    files = []
    for frame in frames:
        files.append(io.BytesIO())
        table = pa.Table.from_pandas(frame).replace_schema_metadata(None)
        pq.write_table(table, files[-1])
    dtypes = [str(numparq.read_parquet(file.getvalue())["a"].dtype) for file in files]
    assert dtypes == ["float64", "int64", "float64"]
