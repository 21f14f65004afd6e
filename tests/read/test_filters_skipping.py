"""Filtered reads: which bytes are fetched with each kind of metadata."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from numparq import Coalescing, ParquetFile, col, read_parquet, to_parquet
from numparq.column.read import page_sources as column_pages
from support.compare import write_by_pyarrow
from support.files.forged_metadata import forge
from support.filters.keyed_file import DATA, FRAME, OPTIONS, filtered_frame, key, matching_row_numbers, x
from support.filters.reads import assert_frames_equal
from support.io.recorded_reads import data_pages_of, file_regions, read_regions


def test_row_groups_are_pruned_by_statistics():
    """Row groups that match as a whole read neither page indexes nor filter columns."""
    frame, regions = read_regions(DATA, columns=["value"], filters=key >= 2 * 600)
    assert_frames_equal(frame, filtered_frame(FRAME["key"] >= 1200, ["value"]))
    assert {region[1] for region in regions} == {3, 4}
    assert regions == {("page", group, "value", page) for group in (3, 4) for page in range(10)}


def test_pages_are_pruned_by_the_column_index():
    frame, regions = read_regions(DATA, columns=["key", "value", "word"], filters=key == 2 * 250)
    assert_frames_equal(frame, filtered_frame(FRAME["key"] == 500, ["key", "value", "word"]))
    assert data_pages_of(regions) == {(1, name, 2) for name in ("key", "value", "word")}
    assert {region for region in regions if region[0] == "dictionary"} == {("dictionary", 1, "word")}
    assert {region[1] for region in regions} == {1}
    assert ("column index", 1, "value") not in regions, "it has no conjunct to evaluate"


def test_row_ranges_of_filter_columns_are_intersected():
    filters = (key < 2 * 450) & (col("value") > 390 / 7)
    frame, regions = read_regions(DATA, columns=["note"], filters=filters)
    assert_frames_equal(frame, filtered_frame((FRAME["key"] < 900) & (FRAME["value"] > 390 / 7), ["note"]))
    assert data_pages_of(regions, "note") == {(1, 9), (2, 0), (2, 1), (2, 2)}


def test_or_unites_row_ranges():
    frame, regions = read_regions(DATA, columns=["note"], filters=(key < 10) | (key > 2 * 990))
    assert_frames_equal(frame, filtered_frame((FRAME["key"] < 10) | (FRAME["key"] > 1980), ["note"]))
    assert data_pages_of(regions, "note") == {(0, 0), (4, 9)}


def test_bloom_filter_prunes_absent_values():
    data = to_parquet(FRAME, bloom_filter_options={"key": {"fpp": 1e-6}}, **OPTIONS)
    frame, regions = read_regions(data, filters=key == 501)
    assert_frames_equal(frame, filtered_frame([]))
    assert {region[0] for region in regions} <= {"bloom"}
    assert regions
    assert {region[1] for region in regions} == {1}, "statistics come first"
    frame, regions = read_regions(data, filters=key.isin([501, 700, 703]))
    assert_frames_equal(frame, filtered_frame(FRAME["key"] == 700))
    assert {group for group, _, _ in data_pages_of(regions)} == {1}


def test_dictionary_prunes_absent_values():
    data = to_parquet(FRAME, **OPTIONS | {"write_page_index": False})
    where = {name: place for name, place in file_regions(data).items() if name[0] in ("dictionary", "chunk")}
    frame, regions = read_regions(data, where, filters=col("word") == "w07a")
    assert_frames_equal(frame, filtered_frame([]))
    assert {region[0] for region in regions} == {"dictionary"}


def test_null_count_prunes_is_null():
    frame, regions = read_regions(DATA, filters=col("note").is_null())
    assert_frames_equal(frame, filtered_frame([]))
    assert not regions


def test_projected_columns_are_read_for_matching_row_groups():
    """Without statistics, the filter column comes first, then the row groups with matching rows."""
    data = to_parquet(FRAME, **OPTIONS | {"write_statistics": False, "write_page_index": False})
    frame, regions = read_regions(data, columns=["value"], filters=key == 2 * 250)
    assert_frames_equal(frame, filtered_frame(FRAME["key"] == 500, ["value"]))
    assert regions == {("chunk", group, "key") for group in range(5)} | {("chunk", 1, "value")}


def test_projected_columns_are_read_for_matching_pages():
    """An offset index without a column index locates the pages of the matching rows."""
    data = forge(DATA, ("no null counts", "no statistics"))
    data = forge(data, ("no column index",) * 10)
    frame, regions = read_regions(data, columns=["value"], filters=col("note") == FRAME["note"][250])
    assert_frames_equal(frame, filtered_frame(FRAME.index == 250, ["value"]))
    assert data_pages_of(regions, "value") == {(1, 2)}


def test_full_reads_fetch_no_index():
    data = to_parquet(FRAME, bloom_filter_options={"key": True, "word": True}, **OPTIONS)
    for options in ({}, {"filters": key >= 0}, {"filters": key.is_not_null() & (col("note") != "x")}):
        frame, regions = read_regions(data, **options)
        assert_frames_equal(frame, FRAME)
        assert {region[0] for region in regions} == {"page", "dictionary"}


def test_row_ranges_fetch_only_their_pages():
    frame, regions = read_regions(DATA, columns=["value", "note"], row_range=(250, 265))
    assert_frames_equal(frame, FRAME.loc[250:264, ["value", "note"]].reset_index(drop=True))
    assert data_pages_of(regions) == {(1, name, page) for name in ("value", "note") for page in (2, 3)}
    frame, regions = read_regions(DATA, columns=["value"], nrows=5)
    assert data_pages_of(regions) == {(0, "value", 0)}


def test_nrows_stops_after_matching_rows():
    filters = col("word") == "w07"
    frame, regions = read_regions(DATA, columns=["value"], filters=filters, nrows=2)
    assert_frames_equal(frame, filtered_frame(FRAME["word"] == "w07", ["value"])[:2])
    assert {group for group, _ in data_pages_of(regions, "value")} == {0}


@pytest.mark.parametrize("limit", [50, 1 << 20])
@pytest.mark.parametrize("size", [60, 200, 1000])
def test_windows_without_selected_rows(size, limit):
    """Strings of an unknown writer may need values from unselected pages before them."""
    values = ["v" * 80 + str(number % 3) for number in range(13)]
    data = write_by_pyarrow(pa.table({"x": values}), write_batch_size=10, dictionary_pagesize_limit=limit)
    for file in (data, forge(data, ("by nobody",))):
        with mock.patch.object(column_pages, "WINDOW_BYTES", size):
            assert matching_row_numbers(file, x == values[0], row_range=(12, 13)) == [12]
            assert read_parquet(file, filters=x == values[2])["x"].tolist() == [values[2]] * 4
            assert read_parquet(file, row_range=(12, 13))["x"].tolist() == values[12:]


def test_look_up_in_an_object_store():
    pytest.importorskip("fsspec")
    from support.io.object_store import ObjectStore

    rows = 60_000
    big = pd.DataFrame(
        {
            "key": np.arange(rows),
            "value": np.random.default_rng(3).random(rows),
            "text": [f"{row:09d}" for row in range(rows)],
        }
    )
    data = to_parquet(big, row_group_size=20_000, max_rows_per_page=500, use_dictionary=False)
    store = ObjectStore()
    store.pipe("/a", data)
    store.reset()
    frame = read_parquet("/a", filters=[("key", "==", 33_333)], filesystem=store)
    assert_frames_equal(frame, big[big["key"] == 33_333].reset_index(drop=True))
    assert store.round_trips <= 4
    assert store.num_bytes < len(data) // 4


@pytest.mark.parametrize("filters", [None, (col("a") > 0.5) | (col("c") > 0.5)])
def test_gaps_between_columns_are_not_fetched(filters):
    """With a gap limit of 0, chunks are not read across gaps either, which would fetch the bytes twice."""
    pytest.importorskip("fsspec")
    from support.io.object_store import ObjectStore

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(8000), "b": rng.integers(0, 99, 8000, "i1"), "c": rng.random(8000)})
    # Long metadata after the rows keeps them out of the footer's first read.
    data = to_parquet(
        frame, compression=None, use_dictionary=False, row_group_size=1000, key_value_metadata={"long": "x" * 100_000}
    )
    store = ObjectStore()
    store.pipe("/a", data)
    store.reset()
    got = read_parquet("/a", ["a", "c"], filters, filesystem=store, coalescing=Coalescing(0, 1 << 20))
    expected = frame[["a", "c"]]
    assert_frames_equal(
        got,
        expected if filters is None else expected[(expected["a"] > 0.5) | (expected["c"] > 0.5)].reset_index(drop=True),
    )
    with ParquetFile(data) as file:
        chunks = [chunk.meta_data for group in file.metadata.row_groups for chunk in group.columns]
    expected_bytes = sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema != ["b"])
    end = max(chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks)
    assert sum(stop - start for start, stop in store.requests if stop <= end) == expected_bytes
