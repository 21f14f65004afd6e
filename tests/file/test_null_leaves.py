"""Null leaves that get a nested type: chunks of earlier row groups are written again, and all metadata agree."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.errors import SchemaError
from numparq.file import null_leaves

NULLS = pd.DataFrame({"a": [None, None], "b": [1, 2], "c": [None, None], "d": [5, 6]})
VALUES = pd.DataFrame({"a": [[1], None], "b": [3, 4], "c": [{"x": 1, "y": "z"}, None], "d": [7, 8]})


def rows_of(path) -> list:
    assert [str(deviation) for deviation in numparq.verify(path)] == []
    rows = pq.read_table(path).to_pylist()
    assert numparq.ParquetFile(path).to_arrow().to_pylist() == rows
    return rows


def expected(*frames: pd.DataFrame) -> list:
    return [row for frame in frames for row in pa.Table.from_pylist(frame.to_dict("records")).to_pylist()]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_several_columns_at_once_by_one_writer_and_by_appends(tmp_path, version):
    by_writer, by_append = tmp_path / "writer.parquet", tmp_path / "append.parquet"
    frames = [NULLS, NULLS, VALUES, NULLS]
    with numparq.ParquetWriter(by_writer, data_page_version=version) as writer:
        for frame in frames:
            writer.write(frame)
    for frame in frames:
        numparq.to_parquet(frame, by_append, append=True, data_page_version=version)
    assert rows_of(by_writer) == rows_of(by_append) == expected(*frames)
    for path in (by_writer, by_append):
        metadata = pq.read_metadata(path)
        for group in map(metadata.row_group, range(4)):
            assert [group.column(number).path_in_schema for number in range(5)] == [
                "a.list.element", "b", "c.x", "c.y", "d",
            ]  # fmt: skip
            assert group.column(0).statistics.null_count + group.column(0).statistics.num_values == 2
            assert group.column(1).statistics.has_min_max
            assert group.total_byte_size == sum(group.column(n).total_uncompressed_size for n in range(5))
        found = numparq.read_parquet(path, filters=[("d", ">", 6)], columns=["a", "d"])
        assert found["d"].tolist() == [7, 8]
        assert numparq.read_parquet(path, filters="c.x == 1")["d"].tolist() == [7]


def test_a_null_column_gets_a_nested_type_step_by_step(tmp_path):
    path = tmp_path / "a.parquet"
    steps = [[None, None], [[], None], [[[]], [None]], [[[{"x": None}]], []], [[[{"x": [1.5]}]], None]]
    with numparq.ParquetWriter(path) as writer:
        for values in steps:
            writer.write(pd.DataFrame({"n": [0, 1], "a": values}))
    assert [row["a"] for row in rows_of(path)] == [value for values in steps for value in values]
    other = tmp_path / "b.parquet"
    for values in steps:
        numparq.to_parquet(pd.DataFrame({"a": values, "n": [0, 1]}), other, append=True)
    assert [row["a"] for row in rows_of(other)] == [value for values in steps for value in values]


def test_row_groups_of_one_frame_keep_their_own_levels(tmp_path):
    path = tmp_path / "a.parquet"
    nulls = [[None] * (number % 4) if number % 3 else None for number in range(1000)]
    with numparq.ParquetWriter(path, row_group_size=70) as writer:
        writer.write(pd.DataFrame({"a": nulls}))
        writer.write(pd.DataFrame({"a": [[{"x": 1}]]}))
    assert [row["a"] for row in rows_of(path)] == [*nulls, [{"x": 1}]]


def test_sorting_columns_keep_naming_their_columns(tmp_path):
    path = tmp_path / "a.parquet"
    with numparq.ParquetWriter(path, sorting_columns=["d"]) as writer:
        writer.write(NULLS)
        writer.write(VALUES)
    for _ in range(2):
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            (column,) = metadata.row_group(group).sorting_columns
            assert metadata.schema.column(column.column_index).path == "d"
    assert rows_of(path) == expected(NULLS, VALUES)


def test_sorting_columns_by_index_follow_and_do_not_become_nested(tmp_path):
    path = tmp_path / "a.parquet"
    with numparq.ParquetWriter(path, sorting_columns=[pq.SortingColumn(3)]) as writer:
        writer.write(NULLS)
        writer.write(VALUES)
        writer.write(VALUES)
    metadata = pq.read_metadata(path)
    for group in range(3):
        (column,) = metadata.row_group(group).sorting_columns
        assert metadata.schema.column(column.column_index).path == "d"
    with numparq.ParquetWriter(path, sorting_columns=["c"]) as writer:
        writer.write(NULLS)
        with pytest.raises(SchemaError, match="sorted by a column that cannot become nested"):
            writer.write(VALUES)
        writer.write(NULLS)
    assert rows_of(path) == expected(NULLS, NULLS)


@pytest.mark.parametrize("nested", [False, True])
def test_files_of_pyarrow_get_nested_types(tmp_path, nested):
    path = tmp_path / "a.parquet"
    nulls = [{"x": None, "y": 1}, None, {"x": None, "y": None}] if nested else [None, None, None]
    value = {"x": [1, None], "y": 2} if nested else [{"z": 1}]
    kind = pa.struct({"x": pa.null(), "y": pa.int64()}) if nested else pa.null()
    pq.write_table(pa.table({"a": pa.array(nulls, kind), "n": pa.array([1, 2, 3])}), path, row_group_size=2)
    numparq.to_parquet(pd.DataFrame({"a": [value], "n": [4]}), path, append=True)
    assert [row["a"] for row in rows_of(path)] == [*nulls, value]
    assert pq.read_metadata(path).row_group(0).column(metadata_index(path, "n")).statistics.max == 2


def metadata_index(path, name: str) -> int:
    metadata = pq.read_metadata(path)
    return next(n for n in range(metadata.num_columns) if metadata.schema.column(n).path == name)


def test_levels_are_not_kept_without_bound(monkeypatch):
    monkeypatch.setattr(null_leaves, "MAX_BYTES", 100)
    rng = np.random.default_rng(0)
    nulls = [[] if item else None for item in rng.integers(0, 2, 5000)]
    with numparq.ParquetWriter(None) as writer:
        writer.write(pd.DataFrame({"a": nulls}))
        with pytest.raises(SchemaError, match="only nulls in too many rows") as raised:
            writer.write(pd.DataFrame({"a": [[[1]]]}))
        assert "schema=" in raised.value.message
        writer.write(pd.DataFrame({"a": [[1]]}))
    assert pq.read_table(io.BytesIO(writer.getvalue()))["a"].to_pylist() == [*nulls, [1]]


def test_a_refused_frame_leaves_null_columns_open(tmp_path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(NULLS, path)
    with numparq.ParquetWriter(path, append=True) as writer:
        with pytest.raises(SchemaError):
            writer.write(VALUES.assign(b=["x", "y"]))
        writer.write(VALUES)
    assert rows_of(path) == expected(NULLS, VALUES)
