"""``memory_limit`` of a read: larger reads are refused before memory is allocated."""

from __future__ import annotations

import io
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col

ROWS = 200_000


@pytest.fixture(scope="module")
def data():
    buffer = io.BytesIO()
    texts = pa.array([f"text {number}" for number in range(ROWS)])
    table = pa.table({"a": range(ROWS), "b": np.random.default_rng(0).random(ROWS), "s": texts})
    pq.write_table(table, buffer, row_group_size=20_000)
    return buffer.getvalue()


@pytest.mark.parametrize("options", [{}, {"columns": ["a", "b"]}, {"filters": col("b") >= 0}, {"nrows": 150_000}])
def test_reads_above_the_limit_are_refused(data, options):
    numparq.read_parquet(data, **options)
    tracemalloc.start()
    try:
        with pytest.raises(numparq.LimitError, match="iter_batches") as caught:
            numparq.read_parquet(data, memory_limit=2_000_000, **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(caught.value, MemoryError)
    assert caught.value.where["file"] == "<bytes>"
    assert peak < 8_000_000


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["a"], "nrows": 10_000},
        {"filters": col("a") < 5000},
        {"row_range": (5, 9000), "columns": ["s"]},
    ],
)
def test_reads_below_the_limit_succeed(data, options):
    frame = numparq.read_parquet(data, memory_limit=3_000_000, **options)
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(data, **options))


def test_estimate_is_close(data):
    frame = numparq.read_parquet(data)
    size = frame.memory_usage(deep=True).sum()
    numparq.read_parquet(data, memory_limit=int(size * 1.5) + (4 << 20), threads=1)
    with pytest.raises(numparq.LimitError):
        numparq.read_parquet(data, memory_limit=int(size * 0.7))


def test_objects_are_counted():
    buffer = io.BytesIO()
    pq.write_table(pa.table({"l": [[1, 2, 3]] * 50_000}), buffer)
    assert len(numparq.read_parquet(buffer, memory_limit=12_000_000, dtype_backend="pyarrow")) == 50_000
    with pytest.raises(numparq.LimitError):
        numparq.read_parquet(buffer, memory_limit=12_000_000)


def test_limit_counts_all_files(data, tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.parquet").write_bytes(data)
    with pytest.raises(numparq.LimitError, match="600,000 rows"):
        numparq.read_parquet(tmp_path, memory_limit=10_000_000)
    assert len(numparq.read_parquet(tmp_path, ["a"], memory_limit=10_000_000)) == 3 * ROWS


@pytest.mark.parametrize(
    "first",
    [
        {"a": np.zeros(10)},  # which float32 becomes
        {"a": np.zeros(10, np.float32), **{f"c{number}": np.zeros(10) for number in range(2)}},
        {"a": np.zeros(10, np.float32), "s": ["text"] * 10},
    ],
    ids=["cast", "missing", "missing text"],
)
def test_columns_that_a_file_casts_or_lacks_are_counted(tmp_path, first):
    rows = 1_000_000
    pq.write_table(pa.table(first), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": np.zeros(rows, np.float32)}), tmp_path / "1.parquet")
    with pytest.raises(numparq.LimitError, match=f"{rows + 10:,} rows"):
        numparq.read_parquet(tmp_path, memory_limit=7 << 20)
    frame = numparq.read_parquet(tmp_path, memory_limit=48 << 20)
    assert len(frame) == rows + 10
    assert frame.memory_usage().sum() > 7 << 20


@pytest.mark.parametrize(
    ("limit", "error"), [(0, ValueError), (-5, ValueError), ("1 GB", TypeError), (True, TypeError)]
)
def test_invalid_limits(data, limit, error):
    with pytest.raises(error):
        numparq.read_parquet(data, memory_limit=limit)
