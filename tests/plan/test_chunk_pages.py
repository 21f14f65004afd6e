"""Pages of a column chunk: pages of selected rows, their byte ranges, and damaged offset indexes."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq.errors import InvalidFileError
from numparq.format.module_reader import ModuleReader
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_ranges import RowRanges

GOOD = [[100, 90, 0], [190, 110, 10], [300, 100, 20]]


@st.composite
def chunks(draw):
    """Draw a chunk whose pages have any number of rows, even none; some have gaps before them."""
    rows = draw(st.lists(st.integers(0, 6), max_size=8))
    position, row, locations = draw(st.integers(4, 20)), 0, []
    start = position
    for count in rows:
        position += draw(st.sampled_from([0, 0, 5]))
        size = draw(st.integers(1, 30))
        locations.append([position, size, row])
        position, row = position + size, row + count
    return ChunkPages(start, position + draw(st.integers(0, 3)), row, np.array(locations).reshape(-1, 3)), rows


@given(chunks(), st.data())
def test_pages_with_rows_and_rows_in_pages_against_sets(drawn, data):
    chunk, counts = drawn
    wanted = data.draw(st.sets(st.integers(0, chunk.num_rows - 1))) if chunk.num_rows else set()
    rows = RowRanges.from_indices(sorted(wanted))
    starts = [sum(counts[:page]) for page in range(len(counts))]
    holds = [set(range(start, start + count)) for start, count in zip(starts, counts, strict=True)]
    # An empty page shares its first row with the next page that has rows, so it counts as holding them.
    for page in reversed(range(len(counts) - 1)):
        if not counts[page]:
            holds[page] = holds[page + 1]
    needed = chunk.pages_with_rows(rows)
    assert needed.tolist() == [page for page, held in enumerate(holds) if held & wanted]
    assert rows.is_subset(chunk.rows_in_pages(needed))
    assert set(chunk.rows_in_pages(needed).indices().tolist()) == {row for page in needed for row in holds[page]}
    mask = np.isin(np.arange(len(counts)), needed)
    assert chunk.rows_in_pages(mask) == chunk.rows_in_pages(needed)
    expected = [chunk.locations[page, 0] + np.array([0, chunk.locations[page, 1]]) for page in needed]
    found = chunk.byte_ranges(needed)
    assert chunk.num_bytes(rows) == sum(stop - start for start, stop in found.tolist())
    if expected and chunk.offsets[0] > chunk.start:
        assert found[0].tolist() == [chunk.start, chunk.offsets[0]] == list(chunk.dictionary_range)
        found = found[1:]
    assert found.tolist() == [pair.tolist() for pair in expected]


def test_chunk_without_offset_index_is_one_page():
    chunk = ChunkPages.unindexed(100, 400, 30)
    assert (chunk.num_pages, chunk.dictionary_range, chunk.is_indexed) == (1, None, False)
    assert chunk.byte_ranges(chunk.pages_with_rows(RowRanges([(7, 8)]))).tolist() == [[100, 400]]
    assert chunk.byte_ranges(chunk.pages_with_rows(RowRanges())).shape == (0, 2)
    assert chunk.rows_in_pages([0]) == RowRanges.all(30)
    assert chunk != ChunkPages(100, 400, 30, [[100, 300, 0]])
    assert ChunkPages.unindexed(100, 100, 0).pages_with_rows(RowRanges()).tolist() == []
    with pytest.raises(ValueError, match="read-only"):
        chunk.offsets[0] = 1
    for num_rows in (0, 30):
        with pytest.raises(InvalidFileError, match="ends before it begins"):
            ChunkPages.unindexed(100, 99, num_rows)
    assert ChunkPages.unindexed(100, 100, 30).num_bytes(RowRanges.all(30)) == 0  # only nulls, of type UNKNOWN


def test_equality_hash_and_immutability():
    assert ChunkPages(4, 400, 30, GOOD) == ChunkPages(4, 400, 30, np.array(GOOD))
    assert len({ChunkPages(4, 400, 30, GOOD), ChunkPages(4, 400, 30, GOOD), ChunkPages(5, 400, 30, GOOD)}) == 2
    own = np.array(GOOD)
    chunk = ChunkPages(4, 400, 30, own)
    own[:] = -1
    assert chunk.locations.tolist() == GOOD
    with pytest.raises(ValueError, match="read-only"):
        chunk.offsets[0] = 1
    with pytest.raises(ValueError, match="30"):
        chunk.pages_with_rows(RowRanges.all(31))


HUGE = 2**63 - 1


@pytest.mark.parametrize(
    ("page", "column", "value", "message"),
    [
        (0, 0, 3, "outside of the column chunk"),
        (0, 0, -HUGE - 1, "outside of the column chunk"),
        (2, 0, 301, "outside of the column chunk"),
        (2, 0, 400, "outside of the column chunk"),
        (2, 0, HUGE, "outside of the column chunk"),
        (1, 1, 0, "outside of the column chunk"),
        (1, 1, -5, "outside of the column chunk"),
        (1, 1, HUGE, "outside of the column chunk"),
        (2, 1, 101, "outside of the column chunk"),
        (1, 0, 189, "overlaps the previous page"),
        (1, 1, 111, "overlaps the previous page"),
        (0, 2, 1, "begins at a row other than 0"),
        (0, 2, -1, "begins at a row other than 0"),
        (1, 2, 21, "earlier row"),
        (1, 2, -HUGE - 1, "earlier row"),
        (2, 2, 31, "after the last row"),
        (2, 2, HUGE, "after the last row"),
    ],
)
def test_damaged_offset_indexes(page, column, value, message):
    locations = np.array(GOOD)
    locations[page, column] = value
    with pytest.raises(InvalidFileError, match=message) as caught:
        ChunkPages(4, 400, 30, locations)
    assert caught.value.where["page"] in (page, page + 1)


def test_chunk_without_pages():
    assert ChunkPages(4, 4, 0, np.empty((0, 3))).pages_with_rows(RowRanges()).tolist() == []
    with pytest.raises(InvalidFileError, match="no pages"):
        ChunkPages(4, 400, 1, np.empty((0, 3)))


def test_page_locations_cover_a_written_chunk():
    file = io.BytesIO()
    numparq.to_parquet(
        pd.DataFrame({"a": np.arange(1000), "b": ["x", "y"] * 500}), file, data_page_size=512, use_dictionary=["b"]
    )
    opened = numparq.ParquetFile(file.getvalue())
    from numparq.io.open import open_source
    from numparq.scan.recovery.page_walk import read_chunk_pages

    for column, has_dictionary in ((0, False), (1, True)):
        chunk = opened.metadata.row_groups[0].columns[column]
        meta = chunk.meta_data
        start = meta.dictionary_page_offset or meta.data_page_offset
        end = start + meta.total_compressed_size
        pages = read_chunk_pages(ModuleReader(open_source(file.getvalue())), chunk, (0, column), (start, end), 1000)
        assert pages is not None
        assert (pages.dictionary_range is not None) == has_dictionary
        assert pages.rows_in_pages(np.arange(pages.num_pages)) == RowRanges.all(1000)
        everything = pages.byte_ranges(np.arange(pages.num_pages))
        assert (everything[0, 0], everything[-1, 1]) == (start, end)
        assert (everything[1:, 0] == everything[:-1, 1]).all()
        assert has_dictionary or pages.num_pages > 2
