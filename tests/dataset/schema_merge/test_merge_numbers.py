"""Files whose integers are floats in other files: values are exact, or an error names the value and the file."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.dataset.splits.table import split_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LARGEST = 2**53


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two days: integers on the first one, floats on the second one."""
    folder = tmp_path_factory.mktemp("drift") / "days"
    folder.mkdir()
    lists = [[1], [LARGEST, 3], None]
    first = {"id": [1, 2, 3], "q": pa.array([1, LARGEST, None]), "l": pa.array(lists, pa.list_(pa.int64()))}
    second = {"id": [4, 5], "q": pa.array([1.5, None]), "l": pa.array([[0.5], []], pa.list_(pa.float64()))}
    pq.write_table(pa.table(first), folder / "1.parquet", row_group_size=1)
    pq.write_table(pa.table(second), folder / "2.parquet")
    return folder


@pytest.fixture(scope="module")
def beyond(days: Path) -> list[str]:
    """Return the two days, and a file of integers beyond what doubles hold."""
    large = {"id": [6, 7], "q": [LARGEST + 1, LARGEST + 3], "l": pa.array([[LARGEST + 1], []], pa.list_(pa.int64()))}
    pq.write_table(pa.table(large), days.parent / "large.parquet")
    return [str(days / "1.parquet"), str(days / "2.parquet"), str(days.parent / "large.parquet")]


FLOATS = [1.0, float(LARGEST), None, 1.5, None]
READS: dict[str, Callable[..., list[pd.DataFrame]]] = {
    "folder": lambda path, **options: [numparq.read_parquet(path, **options)],
    "skip": lambda path, **options: [numparq.read_parquet(path, on_error="skip", **options)],
    "nullable": lambda path, **options: [numparq.read_parquet(path, dtype_backend="numpy_nullable", **options)],
    "pyarrow": lambda path, **options: [numparq.read_parquet(path, dtype_backend="pyarrow", **options)],
    "batches": lambda path, **options: [*numparq.Dataset(path).iter_batches(batch_rows=2, **options)],
    "arrow": lambda path, **options: [numparq.Dataset(path).to_arrow(**options).to_pandas()],
    "splits": lambda path, **options: [
        table.frame(split) for table in [split_table(path, **options)] for split in table.splits
    ],
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_integers_become_floats_in_every_read(days: Path, read: Callable[..., list[pd.DataFrame]]) -> None:
    frames = read(str(days))
    assert len({tuple(map(str, frame.dtypes)) for frame in frames}) == 1
    frame = pd.concat(frames, ignore_index=True)
    assert str(frame["q"].dtype) in ("float64", "Float64", "double[pyarrow]")
    assert [None if pd.isna(value) else value for value in frame["q"]] == FLOATS
    lists = [None if value is None or value is pd.NA else list(value) for value in frame["l"]]
    assert lists == [[1.0], [float(LARGEST), 3.0], None, [0.5], []]


@pytest.mark.parametrize("read", [READS[name] for name in ("folder", "skip", "batches", "splits")])
@pytest.mark.parametrize("column", ["q", "l"])
def test_larger_integer_is_an_error_that_names_value_and_file(
    beyond: list[str], read: Callable[..., list[pd.DataFrame]], column: str
) -> None:
    with pytest.raises(numparq.SchemaError, match=f"integer {LARGEST + 1} cannot be stored as float64") as raised:
        read(beyond, columns=[column])
    assert raised.value.where == {"file": beyond[-1], "column": column}
    assert "schema=" in str(raised.value)
    assert pd.concat(read(beyond, columns=["id"]))["id"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert pd.concat(read(beyond, columns=["id", column], filters=col("id") < 6))["id"].tolist() == [1, 2, 3, 4, 5]


FILTERS = [
    (col("q") > 1.2, [2, 4, 6, 7]),
    (col("q") >= LARGEST, [2, 6, 7]),
    (col("q") == LARGEST + 1, [6]),
    (col("q") == LARGEST + 3, [7]),
    (col("q").isin([LARGEST + 3, 1.5, 1]), [1, 4, 7]),
    (col("q").is_null(), [3, 5]),
    (col("q").is_nan(), []),
    (~(col("q") > 1), [1]),
    (col("q") < col("id"), [4]),
    (col("l").contains(0.5) | col("l").contains(3), [2, 4]),
    (col("l").contains(LARGEST + 1), [6]),
]


@pytest.mark.parametrize(("predicate", "rows"), FILTERS, ids=str)
def test_filters_compare_what_each_file_stores(beyond: list[str], predicate: Any, rows: list[int]) -> None:
    assert numparq.read_parquet(beyond, ["id"], predicate)["id"].tolist() == rows
    assert numparq.Dataset(beyond).count_rows(predicate) == len(rows)
    assert len(pd.concat(READS["splits"](beyond, columns=["id"], filters=predicate))) == len(rows)


def test_runtime_filters_compare_what_each_file_stores(beyond: list[str]) -> None:
    late = numparq.RuntimeFilter("q")
    late.arrive(values=[LARGEST + 3, 1.5])
    for keys in (numparq.RuntimeFilter("q", [LARGEST + 3, 1.5]), late):
        assert numparq.read_parquet(beyond, ["id"], runtime_filters=[keys])["id"].tolist() == [4, 7]


def test_schema_decides(beyond: list[str]) -> None:
    integers = {"q": pa.int64()}
    first, second, large = beyond
    pq.write_table(pa.table({"q": [5.0, None]}), Path(first).with_name("whole"))
    whole = str(Path(first).with_name("whole"))
    frame = numparq.read_parquet([first, large, whole], schema=integers)
    assert frame["q"].dtype == "Int64"
    assert frame["q"].tolist() == [1, LARGEST, pd.NA, LARGEST + 1, LARGEST + 3, 5, pd.NA]
    with pytest.raises(numparq.SchemaError, match=r"number 1.5 cannot be stored as int64") as raised:
        numparq.read_parquet(beyond, schema=integers)
    assert raised.value.where == {"file": second, "column": "q"}
    with numparq.Dataset(beyond, schema=integers) as dataset:
        assert dataset.count_rows(col("q") > 1) == 4
        assert dataset.read(filters=col("q") > 2)["q"].tolist() == [LARGEST, LARGEST + 1, LARGEST + 3]
    decimals = numparq.read_parquet(beyond, schema={"q": pa.decimal128(22, 1)})["q"]
    assert decimals[[3, 5]].tolist() == [Decimal("1.5"), Decimal(LARGEST + 1)]
    with pytest.raises(numparq.SchemaError, match=str(LARGEST + 1)):
        numparq.read_parquet(beyond, schema={"q": pa.float64()})


def test_rewritten_file_of_a_dataset_stays_readable(tmp_path: Path) -> None:
    """A nullable integer column is a float64 column of the frame, and is written as such."""
    for name, values in (("a", [3, None]), ("b", [5, 6])):
        pq.write_table(pa.table({"id": [1, 2], "q": pa.array(values, pa.int64())}), tmp_path / f"{name}.parquet")
    before = numparq.read_parquet(tmp_path)
    path = tmp_path / "a.parquet"
    numparq.to_parquet(numparq.read_parquet(path), path, compression="zstd")
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path), before)
    assert numparq.read_parquet(tmp_path, ["q"], col("q") > 4)["q"].tolist() == [5, 6]


def test_index_and_partitions_drift_too(tmp_path: Path) -> None:
    for day, index in enumerate([[1, 2], [3.0, None], [4, 5]]):
        frame = pd.DataFrame({"v": [0.5, 1.5]}, index=pd.Index(index, name="i"))
        (tmp_path / f"day={day}").mkdir()
        frame.to_parquet(tmp_path / f"day={day}" / "a.parquet")
    frame = numparq.read_parquet(tmp_path)
    np.testing.assert_array_equal(frame.index, [1, 2, 3, np.nan, 4, 5])
    assert frame["day"].tolist() == [0, 0, 1, 1, 2, 2]
    assert numparq.read_parquet(tmp_path, filters=[("i", ">", 2), ("day", "!=", 2)]).index.tolist() == [3.0]


def test_unsigned_integers_beside_signed_ones(tmp_path: Path) -> None:
    pq.write_table(pa.table({"q": pa.array([-1, 2**63 - 1], pa.int64())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"q": pa.array([7, 2**63 - 1], pa.uint64())}), tmp_path / "b.parquet")
    frame = numparq.read_parquet(tmp_path)
    assert (frame["q"].dtype, frame["q"].tolist()) == ("int64", [-1, 2**63 - 1, 7, 2**63 - 1])
    pq.write_table(pa.table({"q": pa.array([2**63], pa.uint64())}), tmp_path / "c.parquet")
    with pytest.raises(numparq.SchemaError, match=f"integer {2**63} cannot be stored as int64"):
        numparq.read_parquet(tmp_path)
    assert numparq.Dataset(tmp_path).count_rows(col("q") >= 2**63) == 1
    unsigned = numparq.read_parquet([tmp_path / "b.parquet", tmp_path / "c.parquet"], schema={"q": pa.uint64()})
    assert unsigned["q"].tolist() == [7, 2**63 - 1, 2**63]
    with pytest.raises(numparq.SchemaError, match="integer -1 cannot be stored as uint64"):
        numparq.read_parquet(tmp_path, schema={"q": pa.uint64()})


def test_booleans_beside_numbers_are_zero_and_one(tmp_path: Path) -> None:
    lists = [[True, False], None, []]
    first = {"q": [True, False, None], "f": [None, True, False], "l": pa.array(lists, pa.list_(pa.bool_()))}
    second = {"q": [7, 1, 0], "f": [0.5, 1.0, None], "l": pa.array([[3], [1], None], pa.list_(pa.int8()))}
    for name, columns in (("a", first), ("b", second)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    frame = numparq.read_parquet(tmp_path, dtype_backend="numpy_nullable")
    assert (frame["q"].dtype, frame["q"].tolist()) == ("Int64", [1, 0, pd.NA, 7, 1, 0])
    assert (frame["f"].dtype, frame["f"].tolist()) == ("Float64", [pd.NA, 1.0, 0.0, 0.5, 1.0, pd.NA])
    assert [None if each is None else list(each) for each in frame["l"]] == [[1, 0], None, [], [3], [1], None]
    with numparq.Dataset(tmp_path) as dataset:
        counts = {col("q") == 1: 2, col("q") < 1: 2, col("q") > 1: 1, col("f") >= 0.5: 3, col("l").contains(1): 2}
        for predicate, count in counts.items():
            assert dataset.count_rows(predicate) == count, predicate
        assert [len(batch) for batch in dataset.iter_batches(filters=col("q") == 1)] == [2]


def test_many_small_files_drift(tmp_path: Path) -> None:
    expected = []
    for number in range(60):
        values = [number, number + 0.5] if number % 7 == 3 else [number, number + 1]
        pq.write_table(pa.table({"q": values}), tmp_path / f"{number:02}.parquet")
        expected += values
    assert numparq.read_parquet(tmp_path)["q"].tolist() == expected
    found = numparq.read_parquet(tmp_path, filters=col("q") > 3.25)["q"].tolist()
    assert found == [value for value in expected if value > 3.25]
