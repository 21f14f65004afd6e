"""Reads of more row groups than are planned, filtered and decoded together."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.column.read import row_selection
from numparq.prune import planner
from numparq.scan.select_rows import RowSelectionBuilder

ROWS = 1000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "a": range(ROWS),
            "b": rng.integers(0, 7, ROWS),
            "s": [f"text {number % 13}" for number in range(ROWS)],
            "l": [[number, number + 1] for number in range(ROWS)],
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=9, write_page_index=True, data_page_size=1, write_batch_size=3)
    return buffer.getvalue()


READS = {
    "all": {},
    "filter": {"filters": "b == 3"},
    "first": {"filters": "b == 3", "nrows": 71},
    "few": {"filters": "b == 3", "nrows": 2},
    "range": {"filters": "b >= 2 and s != 'text 4'", "row_range": (123, 871)},
    "row groups": {"filters": "b <= 4", "row_groups": [100, 3, 4, 5, 90, 17, 0, 44]},
    "categories": {"filters": "b == 3", "categories": ["s"]},
    "skip": {"filters": "b == 3", "on_error": "skip"},
    "nothing": {"filters": "b == 30"},
}


@pytest.mark.parametrize("wave", [1, 7, 16])
@pytest.mark.parametrize("name", READS)
def test_waves_of_row_groups_are_one_read(monkeypatch, data, name, wave):
    expected = numparq.read_parquet(data, **READS[name])
    assert name == "nothing" or len(expected)
    monkeypatch.setattr(row_selection, "WAVE", wave)
    pd.testing.assert_frame_equal(numparq.read_parquet(data, **READS[name]), expected)


def test_small_chunks_of_large_reads_are_read_without_page_indexes(monkeypatch, data):
    expected = numparq.read_parquet(data, filters="a < 500 and b == 3")
    with numparq.ParquetFile(data) as file:
        assert any("page " in line for line in file.plan(filters="a == 4").reads())
    monkeypatch.setattr(planner, "_MANY_CHUNKS", 100)
    with numparq.ParquetFile(data) as file:
        assert all("all pages" in line for line in file.plan(filters="a == 4").reads())
        pd.testing.assert_frame_equal(file.read(filters="a < 500 and b == 3"), expected)
    monkeypatch.setattr(planner, "_MIN_CHUNK_BYTES", 1)
    with numparq.ParquetFile(data) as file:
        assert any("page " in line for line in file.plan(filters="a == 4").reads())


def test_selections_keep_only_what_is_decoded(monkeypatch, data):
    """A million row groups are selected before the first is decoded: their rows are shared, filter columns dropped."""
    kept = []
    build = RowSelectionBuilder.select
    monkeypatch.setattr(RowSelectionBuilder, "select", lambda *args: kept.append(build(*args)) or kept[-1])
    found = numparq.read_parquet(data, ["s"], filters="b != 8")
    assert len(found) == ROWS
    (selections,) = kept
    assert {len(selection.chunk_pages) for selection in selections} == {1}
    assert len({id(selection.row_ranges) for selection in selections}) == 2  # the last row group is smaller
