"""Pages of a column chunk by an offset index that lacks some of them, or by page headers."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.row_selection import RowSlices
from numparq.format.module_reader import ModuleReader
from numparq.io.open import open_source
from numparq.kernels.tables import C_END, C_ROW_START, C_ROW_STOP, C_START, P_IN_CHUNK, P_ROW
from numparq.plan.chunk_pages import ChunkPages
from numparq.scan.recovery.page_walk import read_chunk_pages, walk_pages
from numparq.types.choose import choose_output_type
from support.files.builder import (
    INT32,
    FileColumn,
    build_file,
    data_page,
    encode_plain,
    extended_idl,
    to_bytes,
    with_footer,
)


@pytest.fixture(params=[False, True])
def chunk(request):
    """A chunk of five data pages: its reader, its chunk table, and its pages by the offset index."""
    file = io.BytesIO()
    values = pd.DataFrame({"a": np.arange(500) % 10})
    numparq.to_parquet(values, file, max_rows_per_page=100, use_dictionary=request.param)
    reader = ModuleReader(open_source(file.getvalue()))
    opened = numparq.ParquetFile(file.getvalue())
    (leaf,) = opened.schema
    tables = ChunkTables(opened._file.footer, [leaf], [0], opened._file.footer_start, None)
    table = tables.chunk_table([0], [choose_output_type(leaf)], RowSlices.single(0, 0, 500))
    record = opened._file.footer.chunks.chunk_record(0, 0)
    return reader, table, read_chunk_pages(reader, record, (0, 0), tuple(table[0, [C_START, C_END]].tolist()), 500)


@pytest.mark.parametrize("lacking", [0, 1, 3, 4, None])
def test_pages_that_the_offset_index_lacks_are_gaps(chunk, lacking):
    reader, table, located = chunk
    has_dictionary = int(located.dictionary_range is not None)
    locations = located.locations.copy()
    known = [page for page in range(5) if page != lacking]
    if lacking == 0:
        locations[1, 2] = 0  # the rows of the first page count as those of the second
    located = ChunkPages(located.start, located.end, 500, locations[known])
    walked = walk_pages(reader, table, 500, located)
    lost = {0: [(0, 200)], 1: [(0, 200)], 3: [(200, 400)], 4: [(300, 500)], None: []}[lacking]
    assert [rows[:2] for rows in walked.lost] == lost
    intact = [page for page in range(5) if not any(first <= page * 100 < stop for first, stop in lost)]
    assert walked.pages[:, P_ROW].tolist() == [page * 100 for page in intact]
    assert walked.pages[:, P_IN_CHUNK].tolist() == [known.index(page) + has_dictionary for page in intact]
    assert walked.row_ranges.tolist() == [[page * 100, page * 100 + 100] for page in intact]
    assert len(walked.dictionary) == has_dictionary
    assert walked.dictionary_error is None


def test_walk_by_headers_finds_the_same_pages(chunk):
    reader, table, located = chunk
    by_index, by_headers = (walk_pages(reader, table, 500, pages) for pages in (located, None))
    assert by_headers.pages.tolist() == by_index.pages.tolist()
    assert by_headers.row_ranges.tolist() == by_index.row_ranges.tolist()
    assert by_headers.lost == by_index.lost == []


@pytest.mark.parametrize("repeated", [False, True])
def test_page_smaller_than_the_offset_index_says_is_lost(chunk, repeated):
    reader, table, located = chunk
    locations = np.delete(located.locations, 2, axis=0)
    locations[1, 1] = locations[2, 0] - locations[1, 0]
    located = ChunkPages(located.start, located.end, 500, locations)
    walked = walk_pages(reader, table, 500, located, repeated)
    assert [(*rows[:2], rows.reason.message) for rows in walked.lost] == [
        (100, 300, "the page header and the offset index differ in size")
    ]
    assert walked.pages[:, P_ROW].tolist() == [0, 300, 400]


@pytest.mark.parametrize("repeated", [False, True])
def test_only_pages_with_selected_rows_of_flat_leaves_are_returned(chunk, repeated):
    reader, table, located = chunk
    table[0, [C_ROW_START, C_ROW_STOP]] = 150, 300
    walked = walk_pages(reader, table, 500, located, repeated)
    assert walked.pages[:, P_ROW].tolist() == ([0, 100, 200, 300, 400] if repeated else [100, 200])


def test_empty_page_in_a_damaged_chunk_loses_no_row():
    counts = [3, 0, 0, 3, 3]
    firsts = np.cumsum([0, *counts]).tolist()
    bodies = [encode_plain(INT32, range(first, last)) for first, last in pairwise(firsts)]
    bodies[-1] = bodies[-1][:-2]
    pages = [data_page(count, body) for count, body in zip(counts, bodies, strict=True)]
    data, footer = build_file([9], [FileColumn("a", INT32, [pages])]).laid_out()
    (chunk,) = footer.row_groups[0].columns
    starts = np.cumsum([chunk.file_offset, *(len(page.stored()) for page in pages)]).tolist()
    locations = [
        extended_idl().PageLocation(offset=start, compressed_page_size=end - start, first_row_index=row)
        for (start, end), row in zip(pairwise(starts), firsts, strict=False)
    ]
    index = to_bytes(extended_idl().OffsetIndex(page_locations=locations))
    chunk.offset_index_offset, chunk.offset_index_length = len(data), len(index)
    found = numparq.read_parquet(with_footer(data + index, footer), on_error="skip")
    assert found["a"].tolist() == [0, 1, 2, 3, 4, 5]
    assert [lost.rows for lost in found.attrs["numparq.lost"]] == [(6, 9)]


def test_page_without_a_checksum_among_damaged_ones_is_lost():
    """A flipped bit may have removed the checksum's field from its header."""
    pages = [data_page(3, encode_plain(INT32, range(first, first + 3))) for first in (0, 3, 6)]
    pages = [page if number == 1 else page.with_crc() for number, page in enumerate(pages)]
    pages[0].body = pages[0].body[::-1]
    data, footer = build_file([9], [FileColumn("a", INT32, [pages])]).laid_out()
    found = numparq.read_parquet(with_footer(data, footer), on_error="skip")
    assert found["a"].tolist() == [6, 7, 8]
    assert [lost.rows for lost in found.attrs["numparq.lost"]] == [(0, 3), (3, 6)]
