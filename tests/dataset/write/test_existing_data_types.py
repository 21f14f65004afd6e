"""Frames that are added to a dataset get the types of its files where these hold all values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.dataset.write.dataset_writer import DatasetWriter
from numparq.errors import SchemaError

NAN = float("nan")


def objects(*values: object) -> pd.Series:
    return pd.Series(list(values), dtype=object)


def as_frame(values: object, start: int = 0) -> pd.DataFrame:
    count = len(values)  # type: ignore[arg-type]
    return pd.DataFrame({"k": ["p", "q"][:count], "n": np.arange(start, start + count), "x": values})


def new_types(folder: Path, before: set[Path]) -> Iterator[pa.DataType]:
    for path in sorted({*folder.rglob("*.parquet")} - before):
        yield pq.read_schema(path).field("x").type


def plain(values: list) -> list:
    return [None if isinstance(value, float) and value != value else value for value in values]


def read_everywhere(folder: Path) -> list:
    """Return the column, as numparq, polars and duckdb read it alike."""
    found = numparq.read_parquet(folder, dtype_backend="pyarrow").sort_values("n")["x"].tolist()
    found = [None if value is pd.NA else value.tolist() if isinstance(value, np.ndarray) else value for value in found]
    pattern = f"{folder}/**/*.parquet"
    assert pl.read_parquet(pattern, hive_partitioning=False).sort("n")["x"].to_list() == found
    table = duckdb.sql(f"select x from read_parquet('{pattern}', hive_partitioning=false) order by n").fetchall()
    assert [row[0] for row in table] == found
    return found


# Values of the dataset and of the frame that is added, and the type of the new file.
FITTED = {
    "NaN among integers": ([1, 2], [3.0, NAN], pa.int64()),
    "int64 after int32": (np.array([1, 2], np.int32), [3, 4], pa.int32()),
    "integers after floats": ([1.5, 2.5], [3, 4], pa.float64()),
    "all None": ([1, 2], objects(None, None), pa.int64()),
    "all NaN among strings": (["a", "b"], [NAN, NAN], pa.large_string()),
    "all NaN among dates": (objects(date(2020, 1, 1), None), [NAN, NAN], pa.date32()),
    "all NaN among lists": ([[1], [2]], [NAN, NAN], pa.list_(pa.int64())),
    "all NaN among dicts": ([{"a": 1}, {"a": 2}], [NAN, NAN], pa.struct({"a": pa.int64()})),
    "empty lists": ([[1], [2]], [[], []], pa.list_(pa.int64())),
    "empty lists among lists of dicts": ([[{"a": 1}], [{"a": 2}]], [[], None], pa.list_(pa.struct({"a": pa.int64()}))),
    "fewer keys": ([{"a": 1, "b": "x"}] * 2, [{"a": 2}, {"a": 3}], pa.struct({"a": pa.int64(), "b": pa.string()})),
    "keys without values": ([{"a": 1}] * 2, [{"a": None}, None], pa.struct({"a": pa.int64()})),
}


@pytest.mark.parametrize("keys", [[], ["k"]])
@pytest.mark.parametrize("name", FITTED)
def test_added_frames_get_the_types_of_the_dataset(tmp_path: Path, name: str, keys: list[str]) -> None:
    first, then, expected = FITTED[name]
    numparq.to_parquet(as_frame(first), tmp_path, partition_cols=keys)
    before, read = {*tmp_path.rglob("*.parquet")}, read_everywhere(tmp_path)
    numparq.to_parquet(as_frame(then, 2), tmp_path, partition_cols=keys, append=True)
    types = {*new_types(tmp_path, before)}
    assert {str(kind).replace("element", "item") for kind in types} == {str(expected).replace("element", "item")}
    found = read_everywhere(tmp_path)
    assert found[:2] == read
    missing = {"a": None, "b": None} if "keys" in name else None
    wanted = [{**dict.fromkeys(found[0]), **value} if missing and value else value for value in plain(list(then))]
    assert found[2:] == wanted


@pytest.mark.parametrize("behavior", ["overwrite_or_ignore", "delete_matching"])
def test_other_types_merge_as_before(tmp_path: Path, behavior: str) -> None:
    numparq.to_parquet(as_frame([1, 2]), tmp_path, partition_cols=["k"])
    before = {*tmp_path.rglob("*.parquet")}
    added = as_frame([1.5], 2)
    numparq.to_parquet(added, tmp_path, partition_cols=["k"], existing_data_behavior=behavior)
    assert [*new_types(tmp_path, before)] == [pa.float64()]
    kept = [1.0, 2.0] if behavior == "overwrite_or_ignore" else [2.0]
    assert numparq.read_parquet(tmp_path).sort_values("n")["x"].tolist() == [*kept, 1.5]


# Values of the files of a dataset, and of a frame that no reader could merge with them.
CONFLICTS = {
    "booleans for dicts": ([objects(None, None), [{"a": 1}, {"a": 2}]], [True, False]),
    "numbers for text": ([objects(None, None), objects(None, None), ["x", "y"]], [1, 2]),
    "numbers in lists for lists": ([[[], None], [[[1]], None]], [[0.5], None]),
    "text in dicts for numbers": ([[{"a": None}, None], [{"a": 1}, None]], [{"a": "x"}, None]),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_frames_are_compared_with_files_that_have_values(tmp_path: Path, name: str) -> None:
    """The first file of the dataset has only nulls, which any type merges with."""
    days, added = CONFLICTS[name]
    for day, values in enumerate([*days, days[0]]):
        numparq.to_parquet(as_frame(values, 2 * day), tmp_path, partition_cols=[], append=True)
    count = len(numparq.read_parquet(tmp_path))
    with pytest.raises(SchemaError, match="do not form one table with the existing ones") as raised:
        numparq.to_parquet(as_frame(added, 90), tmp_path, partition_cols=[], append=True)
    assert raised.value.where["column"].startswith("x")
    assert len(numparq.read_parquet(tmp_path)) == count
    numparq.to_parquet(as_frame(objects(NAN, None), 90), tmp_path, partition_cols=[], append=True)
    assert len(numparq.read_parquet(tmp_path)) == count + 2


BIG = (1 << 53) + 1


@pytest.mark.parametrize("integers", [[3, BIG], pd.array([None, BIG], "Int64"), np.array([3, BIG], np.uint64)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_integers_that_are_no_floats_are_refused(tmp_path: Path, integers: object, dtype: type) -> None:
    numparq.to_parquet(as_frame(np.array([0.5, 2], dtype)), tmp_path, partition_cols=["k"])
    with pytest.raises(SchemaError, match=f"row 1: {BIG} does not fit float64; convert the column") as raised:
        numparq.to_parquet(as_frame(integers, 2), tmp_path, partition_cols=["k"], append=True)
    assert raised.value.where["column"] == "x"
    assert len(numparq.read_parquet(tmp_path)) == 2
    numparq.to_parquet(as_frame([1 << 53, 1 << 52], 2), tmp_path, partition_cols=["k"], append=True)
    assert numparq.read_parquet(tmp_path).sort_values("n")["x"].tolist() == [0.5, 2, 1 << 53, 1 << 52]


def test_integers_of_a_later_frame_that_are_no_floats_are_refused(tmp_path: Path) -> None:
    numparq.to_parquet(as_frame([0.5]), tmp_path, partition_cols=["k"])
    writer = DatasetWriter(tmp_path, partition_cols=["k"], existing_data_behavior="overwrite_or_ignore")
    writer.write(as_frame([1], 1))
    with pytest.raises(SchemaError, match=f"row 0: {BIG} does not fit float64"):
        writer.write(as_frame([BIG], 2))
    assert len(numparq.read_parquet(tmp_path)) == 1


def test_files_that_go_decide_no_types(tmp_path: Path) -> None:
    numparq.to_parquet(as_frame([1, 2]), tmp_path, partition_cols=["k"])
    options = {"partition_cols": ["k"], "existing_data_behavior": "delete_matching"}
    numparq.to_parquet(as_frame([1.0, 2.0]), tmp_path, **options)
    assert [*new_types(tmp_path, set())] == [pa.float64()] * 2
    numparq.to_parquet(as_frame([NAN]), tmp_path, **options)
    assert [*new_types(tmp_path, set())] == [pa.float64()] * 2


def test_schema_decides_before_the_dataset(tmp_path: Path) -> None:
    numparq.to_parquet(as_frame([1, 2]), tmp_path, partition_cols=["k"])
    before = {*tmp_path.rglob("*.parquet")}
    numparq.to_parquet(as_frame([3.0], 2), tmp_path, partition_cols=["k"], append=True, schema={"x": pa.float32()})
    assert [*new_types(tmp_path, before)] == [pa.float32()]


@pytest.mark.parametrize("as_arrow", [False, True])
def test_a_later_frame_that_does_not_fit_begins_new_files(tmp_path: Path, as_arrow: bool) -> None:
    numparq.to_parquet(as_frame([1, 2]), tmp_path, partition_cols=["k"])
    before = {*tmp_path.rglob("*.parquet")}
    with DatasetWriter(tmp_path, partition_cols=["k"], existing_data_behavior="overwrite_or_ignore") as writer:
        for start, values in [(2, [3.0, NAN]), (4, [4.0, 5.0]), (6, [NAN, 0.5]), (8, [6.0, 7.0])]:
            frame = as_frame(values, start)
            writer.write(pa.Table.from_pandas(frame) if as_arrow else frame)
    kinds = [*new_types(tmp_path, before)]
    nan = [3.0, NAN, 4.0, 5.0, NAN, 0.5, 6.0, 7.0]
    found = numparq.read_parquet(tmp_path).sort_values("n")["x"].tolist()
    assert plain(found) == plain([1.0, 2.0, *nan])
    assert sorted(map(str, kinds)) == ["double", "double", "int64", "int64"]


def test_a_column_required_by_the_dataset_may_get_nulls(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("x", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"n": [0], "x": [1]}, schema=schema), tmp_path / "a.parquet")
    numparq.to_parquet(as_frame([NAN, 2.0], 1)[["n", "x"]], tmp_path, partition_cols=[], append=True)
    assert read_everywhere(tmp_path) == [1, None, 2]


@pytest.mark.parametrize("first", [{"x": pa.float64()}, None])
def test_typed_rows_after_a_column_of_nulls(tmp_path: Path, first: dict | None) -> None:
    numparq.to_parquet(as_frame(objects(None, None)), tmp_path, partition_cols=["k"], schema=first)
    numparq.to_parquet(as_frame(["a", "b"], 2), tmp_path, partition_cols=["k"], append=True)
    assert plain(numparq.read_parquet(tmp_path).sort_values("n")["x"].tolist()) == [None, None, "a", "b"]


def test_a_column_without_values_decides_no_type(tmp_path: Path) -> None:
    numparq.to_parquet(as_frame([NAN, NAN]), tmp_path, partition_cols=[])
    before = {*tmp_path.rglob("*.parquet")}
    numparq.to_parquet(as_frame([1, 2], 2), tmp_path, partition_cols=[], append=True)
    assert [*new_types(tmp_path, before)] == [pa.int64()]
    assert plain(numparq.read_parquet(tmp_path).sort_values("n")["x"].tolist()) == [None, None, 1, 2]


def test_pandas_dtypes_are_those_of_the_dataset(tmp_path: Path) -> None:
    first = as_frame(pd.array([1, None], "Int32"))
    numparq.to_parquet(first, tmp_path, partition_cols=["k"])
    numparq.to_parquet(as_frame([NAN, 3.0], 2), tmp_path, partition_cols=["k"], append=True)
    assert numparq.read_parquet(tmp_path)["x"].dtype == "Int32"
    assert pd.read_parquet(tmp_path, engine="pyarrow")["x"].dtype == "Int32"
