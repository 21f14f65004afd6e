"""Columns of nothing but nulls merge with any type, by the statistics of their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.dataset.splits.table import split_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of days by pandas: a column of strings, one day without any, and one of no rows."""
    made = tmp_path / "days"
    made.mkdir()
    days = [{"id": [1, 2], "s": ["a", None]}, {"id": [3, 4], "s": [np.nan, np.nan]}, {"id": [5], "s": ["b"]}]
    for number, day in enumerate(days):
        pd.DataFrame(day).to_parquet(made / f"{number}.parquet", row_group_size=1)
    pq.write_table(pa.table({"id": pa.array([], pa.int64()), "s": pa.array([], pa.int32())}), made / "3.parquet")
    return made


STRINGS = ["a", None, None, None, "b"]


def plain(values: pd.Series) -> list[object]:
    return [None if pd.isna(value) else value for value in values]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 3, 2], [3, 1, 2, 0]])
def test_column_without_values_has_the_type_of_others(folder: Path, order: list[int]) -> None:
    paths = [str(folder / f"{number}.parquet") for number in order]
    frame = numparq.read_parquet(paths)
    assert plain(frame.sort_values("id")["s"]) == STRINGS
    assert frame["s"].dtype == "str"
    with numparq.Dataset(paths) as dataset:
        assert dataset.read(filters=col("s") == "b")["id"].tolist() == [5]
        assert (dataset.count_rows(col("s").is_null()), dataset.count_rows(~(col("s") == "a"))) == (3, 1)
        batches = [*dataset.iter_batches(batch_rows=1)]
        assert {str(batch["s"].dtype) for batch in batches} == {"str"}
        assert plain(pd.concat(batches).sort_values("id")["s"]) == STRINGS
    for schema in (None, {"id": pa.int64(), "s": pa.string()}):
        table = split_table(paths, schema=schema)
        frames = [table.frame(split) for split in table.splits]
        assert plain(pd.concat(frames).sort_values("id")["s"]) == STRINGS
        assert plain(numparq.read_parquet(paths, schema=schema).sort_values("id")["s"]) == STRINGS


def test_one_value_is_a_conflict(folder: Path) -> None:
    pd.DataFrame({"id": [6, 7], "s": [np.nan, 1.5]}).to_parquet(folder / "4.parquet", row_group_size=1)
    with pytest.raises(numparq.SchemaError, match="no type holds both"):
        numparq.read_parquet(folder)
    assert len(numparq.read_parquet(folder, ["id"])) == 7
    with pytest.raises(numparq.SchemaError, match="cannot be cast to string"):
        numparq.read_parquet(folder, schema={"s": pa.string()})


def test_unknown_null_counts_are_a_conflict(folder: Path) -> None:
    """Without statistics, nobody knows that there are no values."""
    table = pa.table({"id": [6], "s": pa.nulls(1, pa.float64())})
    pq.write_table(table, folder / "4.parquet", write_statistics=False)
    with pytest.raises(numparq.SchemaError, match="no type holds both"):
        numparq.read_parquet(folder)


def test_merges_of_other_datasets_do_not_share_what_statistics_say(folder: Path, tmp_path: Path) -> None:
    """Both datasets have footers of the same schemas."""
    other = tmp_path / "other"
    other.mkdir()
    pd.DataFrame({"id": [1, 2], "s": ["a", None]}).to_parquet(other / "0.parquet")
    pd.DataFrame({"id": [1, 2], "s": [1.5, None]}).to_parquet(other / "1.parquet")
    for _ in range(2):
        assert plain(numparq.read_parquet(folder)["s"]) == STRINGS
        with pytest.raises(numparq.SchemaError, match="no type holds both"):
            numparq.read_parquet(other)


def test_columns_of_nulls_alone_stay_nulls(tmp_path: Path) -> None:
    for name, kind in (("a", pa.string()), ("b", pa.float64()), ("c", pa.date32())):
        pq.write_table(pa.table({"v": pa.nulls(2, kind)}), tmp_path / f"{name}.parquet")
    assert numparq.read_parquet(tmp_path)["v"].isna().tolist() == [True] * 6


OPEN = {
    "booleans": (pa.null(), [None, None], pa.bool_(), [True, None]),
    "lists": (pa.null(), [None, None], pa.list_(pa.int64()), [[1], []]),
    "dicts": (pa.null(), [None, None], pa.struct({"a": pa.int64()}), [{"a": 1}, None]),
    "maps": (pa.null(), [None, None], pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
    "lists of dicts": (pa.list_(pa.null()), [[], None], pa.list_(pa.struct({"a": pa.int64()})), [[{"a": 1}], []]),
    "lists of lists": (pa.list_(pa.null()), [[], [None]], pa.list_(pa.list_(pa.int64())), [[[1], []], None]),
    "lists of booleans": (pa.list_(pa.null()), [[None], []], pa.list_(pa.bool_()), [[True], []]),
    "lists in dicts": (
        pa.struct({"a": pa.null()}),
        [{"a": None}, None],
        pa.struct({"a": pa.list_(pa.int64())}),
        [{"a": [1]}, None],
    ),
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("name", OPEN)
def test_files_of_unknown_types_merge_with_all_others(tmp_path: Path, name: str, is_first: bool) -> None:
    kind, values, typed, others = OPEN[name]
    columns = [pa.array(values, kind), pa.array(others, typed)]
    expected = []
    for number, column in enumerate(columns if is_first else columns[::-1]):
        ids = pa.array([2 * number, 2 * number + 1])
        pq.write_table(pa.table({"id": ids, "v": column}), tmp_path / f"{number}.parquet")
        expected += column.to_pylist()
    with numparq.Dataset(tmp_path) as dataset:
        assert dataset.to_arrow()["v"].to_pylist() == expected
        assert dataset.to_arrow(filters=col("id") > 0)["v"].to_pylist() == expected[1:]
        missing = [number for number, value in enumerate(expected) if value is None]
        assert dataset.read(filters=col("v").is_null())["id"].tolist() == missing
        assert dataset.count_rows(~col("v").is_null()) == 4 - len(missing)
        assert pd.concat([*dataset.iter_batches(batch_rows=1)])["id"].tolist() == [0, 1, 2, 3]
