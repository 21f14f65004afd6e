"""Batches of many files: equal to one read, in bounded memory, and as an Arrow stream."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.dataset import split_table
from numparq.scan.scan import Scan
from numparq.scan.stream import units

duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")


def make_frame(rows, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "i": rng.integers(0, 1000, rows),
            "f": rng.random(rows),
            "s": rng.choice(["x", "yy", None], rows),
            "n": pd.array(rng.integers(0, 9, rows), dtype="Int32"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return twelve files partitioned by two keys: ten small ones and two of many rows."""
    base = tmp_path_factory.mktemp("table")
    for number in range(12):
        directory = base / f"year={2020 + number % 3}" / f"kind={'ab'[number % 2]}"
        directory.mkdir(parents=True, exist_ok=True)
        rows = 30_000 if number in (4, 9) else 200 + number
        make_frame(rows, number).to_parquet(directory / f"{number:02}.parquet", row_group_size=4000)
    return base


def check_batches(dataset, *arguments, **options):
    """Read batches and compare them with one read, whose integers and booleans with nulls have NumPy's dtypes."""
    batches = list(dataset.iter_batches(*arguments, **options))
    for name in ("batch_rows", "batch_bytes", "memory_limit"):
        options.pop(name, None)
    found, expected = pd.concat(batches), dataset.read(*arguments, **options)
    nullable = {name: dtype for name, dtype in found.dtypes.items() if str(dtype) in ("Int64", "boolean")}
    pd.testing.assert_frame_equal(found, expected.astype(nullable))
    assert all(batch.dtypes.equals(batches[0].dtypes) for batch in batches)
    return batches


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_rows": 1000},
        {"batch_rows": 70_000},
        {"batch_bytes": 50_000},
        {"memory_limit": 1_500_000},
        {"columns": ["s"]},
        {"columns": ["year", "i"]},
        {"nrows": 1234, "batch_rows": 100},
        {"row_range": (100, 9000)},
        {"filters": col("i") < 100},
        {"filters": (col("year") == 2021) & (col("f") > 0.5)},
        {"filters": col("kind") == "b"},
        {"filters": col("i") < 100, "nrows": 77, "memory_limit": 1_500_000},
        {"include": ["file", "row_number"]},
        {"dtype_backend": "pyarrow"},
        {"dtype_backend": "numpy_nullable", "batch_rows": 7000},
        {"filters": col("i") < 0},
        {"filters": col("year") == 1999},
        {"threads": 1},
        {"columns": []},
    ],
)
def test_concatenated_batches_equal_one_read(folder, options):
    with numparq.Dataset(folder) as dataset:
        check_batches(dataset, **options)


def test_small_files_share_a_batch(folder):
    with numparq.Dataset(folder) as dataset:
        sizes = [len(batch) for batch in dataset.iter_batches(batch_rows=5000)]
        assert sizes[:-1] == [5000] * (len(sizes) - 1)
        assert len(list(dataset.iter_batches(filters=col("i") < 50))) == 1


def test_batches_of_different_schemas(tmp_path):
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([2**40, None]), "c": [1.5, 2.5]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"c": [3.5], "l": [[1, 2]]}), tmp_path / "3.parquet")
    with numparq.Dataset(tmp_path) as dataset:
        check_batches(dataset)
        check_batches(dataset, batch_rows=1)
        check_batches(dataset, filters=col("c") > 2, batch_rows=1)
        table = pa.table(dataset)
    assert table.column_names == ["a", "b", "c", "l"]
    assert table["a"].to_pylist() == [1, 2, 2**40, None, None]
    assert table["a"].type == pa.int64()
    assert table["l"].to_pylist() == [None] * 4 + [[1, 2]]


def test_batches_respect_memory_limit(folder):
    with numparq.Dataset(folder) as dataset:
        batches = check_batches(dataset, memory_limit=1_000_000)
        assert len(batches) > 10
        with pytest.raises(numparq.LimitError):
            dataset.iter_batches(batch_rows=60_000, memory_limit=1_000_000)


# --- row groups of many columns ---------------------------------------------------------------------------------------

ROWS = 8000


@pytest.fixture
def wide(monkeypatch, tmp_path):
    """Return a file of 60 columns; units have 300 KB, parts of row groups 50 KB of each leaf column."""
    monkeypatch.setattr(units.BatchSize, "DEFAULT_LIMIT", 1_200_000)
    monkeypatch.setattr(units.BatchSize.__init__, "__defaults__", (None, None, None, 50_000))
    rng = np.random.default_rng(0)
    columns = {f"f{number}": rng.random(ROWS) for number in range(58)}
    columns["s"] = rng.integers(0, 500, ROWS).astype(str)
    columns["n"] = pa.array(rng.integers(0, 9, ROWS), mask=rng.random(ROWS) < 0.5)

    def write(rows):
        pq.write_table(pa.table(columns), tmp_path / "wide.parquet", rows, data_page_size=4096, write_batch_size=500)
        return numparq.ParquetFile(tmp_path / "wide.parquet")

    return write


@pytest.fixture
def unit_rows(monkeypatch):
    """Return the rows of each unit that is read."""
    counts = []
    original = Scan.read_unit

    def read_unit(self, files, limit, convert):
        found = original(self, files, limit, convert)
        counts.append(found[0])
        return found

    monkeypatch.setattr(Scan, "read_unit", read_unit)
    return counts


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (3000, [3000, 3000, 2000]),  # a row group of 1.5 MB
        (ROWS, [6000, 2000]),  # a part of 50 KB of each column is 3 MB
        (200, [600] * 13 + [200]),  # three are a unit of 300 KB
    ],
)
def test_large_parts_of_many_columns(wide, unit_rows, rows, expected):
    with wide(rows) as file:
        batches = check_batches(file)
        assert unit_rows == pytest.approx(expected, rel=0.25)
        assert max(map(len, batches)) < 2000 or rows < 2000
        unit_rows.clear()
        check_batches(file, batch_rows=700)
        assert unit_rows == pytest.approx(expected, rel=0.3)
        unit_rows.clear()
        assert pa.table(file).equals(file.to_arrow())


def test_a_memory_limit_is_kept_for_many_columns(wide, unit_rows):
    with wide(ROWS) as file:
        check_batches(file, memory_limit=1_200_000)
        assert len(unit_rows) > 20


def test_large_parts_have_a_maximum(wide, unit_rows, monkeypatch):
    monkeypatch.setattr(units, "_MAX_GROUP_BYTES", 700_000)
    with wide(ROWS) as file:
        check_batches(file)
        assert max(unit_rows) * 60 * 8 < 700_000 < 2 * max(unit_rows) * 60 * 8


@pytest.mark.parametrize("most", [1_000_000, 3_000_000])
def test_large_parts_are_not_read_ahead(wide, monkeypatch, most):
    monkeypatch.setattr(units, "_MAX_PREFETCHED_BYTES", most)
    with wide(ROWS) as file:
        for batches in (file.iter_batches(), file.iter_batches(batch_rows=100)):
            assert batches._units.reads_ahead == (most > 2_500_000)
    with wide(200) as file:
        assert file.iter_batches()._units.reads_ahead


def test_splits_have_small_parts(wide, unit_rows):
    """Several tasks may share a machine."""
    with wide(ROWS) as file:
        table = split_table(file.source.name)
    frames = [frame for split in table.splits for frame in table.frames(split)]
    assert sum(map(len, frames)) == ROWS
    assert len(unit_rows) > 12


# --- Arrow ------------------------------------------------------------------------------------------------------------


def test_arrow_stream_equals_pyarrow(folder):
    expected = pq.read_table(folder)
    with numparq.Dataset(folder) as dataset:
        found = pa.table(dataset)
        assert found.schema.equals(expected.schema), (found.schema, expected.schema)
        assert found.num_rows == expected.num_rows
        for name in expected.column_names:
            assert found[name].to_pylist() == expected[name].to_pylist()
        pd.testing.assert_frame_equal(found.to_pandas(), expected.to_pandas())
        found.validate(full=True)


def test_polars_and_duckdb_consume_dataset(folder):
    with numparq.Dataset(folder) as dataset:
        rows = dataset.count_rows()
        assert len(pl.DataFrame(dataset)) == rows
        assert duckdb.sql("select count(*), count(distinct year) from dataset").fetchall() == [(rows, 3)]
        batches = dataset.iter_batches(["i", "year"], filters=col("kind") == "a", batch_rows=3000)
        frame = pl.DataFrame(batches)
        assert frame.columns == ["i", "year"]
        assert len(frame) == dataset.count_rows(col("kind") == "a")


def test_file_changed_between_batches_raises(tmp_path):
    for number in range(4):
        make_frame(20_000, number).to_parquet(tmp_path / f"{number}.parquet")
    with numparq.Dataset(tmp_path) as dataset:
        batches = dataset.iter_batches(memory_limit=4_000_000)
        next(batches)
        content = (tmp_path / "3.parquet").read_bytes()
        with open(tmp_path / "3.parquet", "r+b") as changed:
            changed.write(content[:-5])
            changed.truncate(len(content) - 5)
        with pytest.raises(numparq.InvalidFileError, match="changed") as caught:
            list(batches)
        assert caught.value.where["file"].endswith("3.parquet")
