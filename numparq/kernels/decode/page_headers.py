"""Page headers decoded into the page table, by a scan or at the locations of an offset index."""

from __future__ import annotations

import numpy as np

from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, UNCOMPRESSED
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_COUNT, BAD_LENGTH, BAD_PAGE, NEED_ROOM, TRUNCATED
from numparq.kernels.tables import (
    C_CODEC,
    C_DICTIONARY_PAGE,
    C_END,
    C_FIRST_PAGE,
    C_LAST_PAGE,
    C_MAX_DEFINITION,
    C_NUM_VALUES,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    CHUNK_FIELDS,
    L_END,
    L_IN_CHUNK,
    L_ROW,
    L_ROWS,
    L_START,
    LOCATION_FIELDS,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_CRC,
    P_DEFINITION_BYTES,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_HEADER,
    P_IN_CHUNK,
    P_IS_COMPRESSED,
    P_NUM_NULLS,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_REPETITION_ENCODING,
    P_ROW,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
    UNKNOWN_END,
)
from numparq.kernels.thrift.records import read_struct

# Fields read from a page header; `slots` holds the word of each in its `record`, in this order.
HEADER_FIELDS = (
    "type",
    "uncompressed_page_size",
    "compressed_page_size",
    "crc",
    "data_page_header.num_values",
    "data_page_header.encoding",
    "data_page_header.definition_level_encoding",
    "data_page_header.repetition_level_encoding",
    "dictionary_page_header.num_values",
    "dictionary_page_header.encoding",
    "data_page_header_v2.num_values",
    "data_page_header_v2.num_nulls",
    "data_page_header_v2.num_rows",
    "data_page_header_v2.encoding",
    "data_page_header_v2.definition_levels_byte_length",
    "data_page_header_v2.repetition_levels_byte_length",
    "data_page_header_v2.is_compressed",
)
_TYPE, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _CRC = range(4)
_V1_NUM_VALUES, _V1_ENCODING, _V1_DEFINITION, _V1_REPETITION = range(4, 8)
_DICTIONARY_NUM_VALUES, _DICTIONARY_ENCODING = range(8, 10)
_V2_NUM_VALUES, _V2_NUM_NULLS, _V2_NUM_ROWS, _V2_ENCODING, _V2_DEFINITION, _V2_REPETITION, _V2_COMPRESSED = range(
    10, 17
)
# Bits of the record's presence mask: field ids of PageHeader.
_HAS_CRC, _HAS_V1, _HAS_DICTIONARY, _HAS_V2 = 1 << 4, 1 << 5, 1 << 7, 1 << 8

# Items of the `state` of scan_pages: where it resumes.
SCAN_PAGES = 0  # rows of the page table written so far
SCAN_CHUNK = 1  # the chunk being scanned
SCAN_POS = 2  # position of the next header
SCAN_VALUES = 3  # values of that chunk seen so far
SCAN_IN_CHUNK = 4  # pages of that chunk seen so far
SCAN_NEEDED = 5  # the exclusive end that the buffer must reach to resume; 0: unknown
SCAN_FIELDS = 6


@helper
def read_data_header(record, slots, pages, page, chunks, chunk):
    """Copy the fields of a V1 data page header to the page table; return 0 or a status."""
    if record[0] & _HAS_V1 == 0:
        return BAD_PAGE
    pages[page + P_NUM_VALUES] = record[slots[_V1_NUM_VALUES]]
    pages[page + P_ENCODING] = record[slots[_V1_ENCODING]]
    pages[page + P_DEFINITION_ENCODING] = record[slots[_V1_DEFINITION]]
    pages[page + P_REPETITION_ENCODING] = record[slots[_V1_REPETITION]]
    pages[page + P_IS_COMPRESSED] = np.int64(chunks[chunk + C_CODEC] != UNCOMPRESSED and pages[page + P_COMPRESSED] > 0)
    return 0


@helper
def read_data_header_v2(record, slots, pages, page, chunks, chunk):
    """Copy the fields of a V2 data page header to the page table; return 0 or a status."""
    if record[0] & _HAS_V2 == 0:
        return BAD_PAGE
    definition = record[slots[_V2_DEFINITION]]
    repetition = record[slots[_V2_REPETITION]]
    num_values = record[slots[_V2_NUM_VALUES]]
    num_nulls = record[slots[_V2_NUM_NULLS]]
    if definition < 0 or repetition < 0 or definition + repetition > pages[page + P_COMPRESSED]:
        return BAD_LENGTH
    if definition + repetition > pages[page + P_UNCOMPRESSED]:
        return BAD_LENGTH
    # A writer that did not count nulls writes -1 (parquet-java before 1.18) or 0.
    if num_nulls < -1 or num_nulls > num_values:
        return BAD_COUNT
    num_rows = record[slots[_V2_NUM_ROWS]]
    # Some writers (those in Go) leave num_rows at 0.
    if chunks[chunk + C_MAX_DEFINITION] <= 1 and num_rows != num_values and num_rows != 0:
        return BAD_COUNT
    pages[page + P_NUM_VALUES] = num_values
    pages[page + P_NUM_NULLS] = max(num_nulls, 0)
    pages[page + P_ENCODING] = record[slots[_V2_ENCODING]]
    pages[page + P_DEFINITION_BYTES] = definition
    pages[page + P_REPETITION_BYTES] = repetition
    # An empty value section was never compressed, whatever the header says.
    pages[page + P_IS_COMPRESSED] = np.int64(
        chunks[chunk + C_CODEC] != UNCOMPRESSED
        and record[slots[_V2_COMPRESSED]] != 0
        and pages[page + P_COMPRESSED] > definition + repetition
    )
    return 0


@helper
def read_dictionary_header(record, slots, pages, page, chunks, chunk):
    """Copy the fields of a dictionary page header to the page table; return 0 or a status."""
    if record[0] & _HAS_DICTIONARY == 0 or chunks[chunk + C_DICTIONARY_PAGE] >= 0:
        return BAD_PAGE
    if pages[page + P_ROW] > 0 and pages[page + P_ROW] == chunks[chunk + C_NUM_VALUES]:  # behind the last data page
        return BAD_PAGE
    pages[page + P_NUM_VALUES] = record[slots[_DICTIONARY_NUM_VALUES]]
    pages[page + P_ENCODING] = record[slots[_DICTIONARY_ENCODING]]
    pages[page + P_IS_COMPRESSED] = np.int64(chunks[chunk + C_CODEC] != UNCOMPRESSED and pages[page + P_COMPRESSED] > 0)
    return 0


@helper
def fill_page_row(record, slots, pages, number, chunks, chunk, values):
    """Fill a row of the page table from a header's record.

    Return 1 for a page to keep, 0 for one to skip (INDEX_PAGE, unknown types), or a status.
    """
    page = number * PAGE_FIELDS
    page_type = record[slots[_TYPE]]
    pages[page + P_TYPE] = page_type
    pages[page + P_NUM_NULLS] = -1
    pages[page + P_ROW] = values
    pages[page + P_SCRATCH] = 0
    pages[page + P_DEFINITION_BYTES] = 0
    pages[page + P_REPETITION_BYTES] = 0
    pages[page + P_DEFINITION_ENCODING] = 0
    pages[page + P_REPETITION_ENCODING] = 0
    pages[page + P_CRC] = record[slots[_CRC]] & 0xFFFFFFFF if record[0] & _HAS_CRC else -1
    if page_type == DATA_PAGE:
        status = read_data_header(record, slots, pages, page, chunks, chunk)
    elif page_type == DATA_PAGE_V2:
        status = read_data_header_v2(record, slots, pages, page, chunks, chunk)
    elif page_type == DICTIONARY_PAGE:
        status = read_dictionary_header(record, slots, pages, page, chunks, chunk)
    else:
        return 0
    if status < 0:
        return status
    if pages[page + P_NUM_VALUES] < 0:
        return BAD_COUNT
    if pages[page + P_IS_COMPRESSED] == 0 and pages[page + P_UNCOMPRESSED] != pages[page + P_COMPRESSED]:
        # Uncompressed: the two sizes should be equal, and the stored one counts.
        pages[page + P_UNCOMPRESSED] = pages[page + P_COMPRESSED]
    return 1


@helper
def move_dictionary_page(pages, number, first):
    """Move a row of the page table up to row `first`: dictionary pages come before the pages that need them."""
    for row in range(number, first, -1):
        for item in range(PAGE_FIELDS):
            place = row * PAGE_FIELDS + item
            above = pages[place - PAGE_FIELDS]
            pages[place - PAGE_FIELDS] = pages[place]
            pages[place] = above
    return 0


@helper
def is_chunk_scanned(chunks, chunk, pos, state):
    """Whether the scan of a chunk ends at `pos`; if C_NUM_VALUES is negative, after the first page."""
    values = chunks[chunk + C_NUM_VALUES]
    end = chunks[chunk + C_END]
    if values < 0:
        return state[SCAN_IN_CHUNK] > 0 or pos >= end
    # A damaged header may be too short, and its page shifted: pages, if only empty ones, must fill their chunk.
    filled = pos == end or values == 0 or chunks[chunk + C_QUIRKS] & UNKNOWN_END != 0
    return state[SCAN_VALUES] == values and filled


@kernel("u1 x i8 x i8 x i8 i8 i8 i8 i8")
def scan_pages(raw, available, chunks, num_chunks, pages, room, table, slots, record, stack, state):
    """Scan the pages of chunks into the page table: dictionary pages, first of their chunk, and selected data pages.

    Return 0; 1 if a page reaches past `available` (SCAN_NEEDED); NEED_ROOM; or a status for the page at SCAN_POS.
    """
    while state[SCAN_CHUNK] < num_chunks:
        chunk = state[SCAN_CHUNK] * CHUNK_FIELDS
        pos = state[SCAN_POS]
        end = chunks[chunk + C_END]
        if state[SCAN_IN_CHUNK] == 0 or state[SCAN_PAGES] == 0:
            chunks[chunk + C_FIRST_PAGE] = state[SCAN_PAGES]
        if state[SCAN_IN_CHUNK] == 0:
            chunks[chunk + C_DICTIONARY_PAGE] = -1
        chunks[chunk + C_LAST_PAGE] = state[SCAN_PAGES]
        values = chunks[chunk + C_NUM_VALUES]
        if is_chunk_scanned(chunks, chunk, pos, state):
            state[SCAN_CHUNK] += 1
            state[SCAN_VALUES] = 0
            state[SCAN_IN_CHUNK] = 0
            if state[SCAN_CHUNK] < num_chunks:
                state[SCAN_POS] = chunks[chunk + CHUNK_FIELDS]
            continue
        if pos < 0:
            return BAD_LENGTH
        if pos >= end:
            return BAD_COUNT
        number = state[SCAN_PAGES]
        if number >= room:
            return NEED_ROOM
        state[SCAN_NEEDED] = 0
        body = read_struct(raw, pos, min(end, available), table, record, 0, stack)
        # An incomplete header ends too early, or within a string whose length then seems too large.
        if (body == TRUNCATED or body == BAD_LENGTH) and available < end:
            return 1
        if body < 0:
            return body
        page = number * PAGE_FIELDS
        pages[page + P_HEADER] = pos
        pages[page + P_BODY] = body
        pages[page + P_COMPRESSED] = record[slots[_COMPRESSED_SIZE]]
        pages[page + P_UNCOMPRESSED] = record[slots[_UNCOMPRESSED_SIZE]]
        pages[page + P_CHUNK] = state[SCAN_CHUNK]
        pages[page + P_IN_CHUNK] = state[SCAN_IN_CHUNK]
        size = pages[page + P_COMPRESSED]
        if size < 0 or pages[page + P_UNCOMPRESSED] < 0 or size > end - body:
            return BAD_LENGTH
        if body + size > available:
            state[SCAN_NEEDED] = body + size
            return 1
        kept = fill_page_row(record, slots, pages, number, chunks, chunk, state[SCAN_VALUES])
        if kept < 0:
            return kept
        if kept > 0 and pages[page + P_TYPE] == DICTIONARY_PAGE:
            move_dictionary_page(pages, number, chunks[chunk + C_FIRST_PAGE])
            chunks[chunk + C_DICTIONARY_PAGE] = chunks[chunk + C_FIRST_PAGE]
            state[SCAN_PAGES] += 1
        elif kept > 0:
            first = state[SCAN_VALUES]
            state[SCAN_VALUES] += pages[page + P_NUM_VALUES]
            if state[SCAN_VALUES] > values and values >= 0:
                return BAD_COUNT
            wanted = first < chunks[chunk + C_ROW_STOP] and state[SCAN_VALUES] > chunks[chunk + C_ROW_START]
            state[SCAN_PAGES] += np.int64(wanted)
        state[SCAN_POS] = body + size
        state[SCAN_IN_CHUNK] += 1
    return 0


@kernel("u1 i8 x x i8 i8 i8 i8 i8 i8 i8")
def scan_pages_at(raw, locations, num_locations, is_flat, chunks, pages, table, slots, record, stack, state):
    """Read the page headers at `locations`, of one chunk, into the page table; a dictionary page comes first.

    Return 0 or a status, with the page in ``state[0]``. `is_flat`: pages must have as many values as rows.
    """
    for number in range(num_locations):
        state[0] = number
        place = number * LOCATION_FIELDS
        page = number * PAGE_FIELDS
        end = locations[place + L_END]
        body = read_struct(raw, locations[place + L_START], end, table, record, 0, stack)
        if body < 0:
            return body
        pages[page + P_HEADER] = locations[place + L_START]
        pages[page + P_BODY] = body
        pages[page + P_COMPRESSED] = record[slots[_COMPRESSED_SIZE]]
        pages[page + P_UNCOMPRESSED] = record[slots[_UNCOMPRESSED_SIZE]]
        pages[page + P_CHUNK] = 0
        pages[page + P_IN_CHUNK] = locations[place + L_IN_CHUNK]
        size = pages[page + P_COMPRESSED]
        if size < 0 or pages[page + P_UNCOMPRESSED] < 0 or size > end - body:
            return BAD_LENGTH
        row = locations[place + L_ROW]
        kept = fill_page_row(record, slots, pages, number, chunks, 0, row)
        if kept < 0:
            return kept
        kind = pages[page + P_TYPE]
        if row < 0:
            if kind != DICTIONARY_PAGE:
                return BAD_PAGE
            continue
        if (kind != DATA_PAGE and kind != DATA_PAGE_V2) or size != end - body:
            return BAD_PAGE
        if is_flat != 0 and pages[page + P_NUM_VALUES] != locations[place + L_ROWS]:
            return BAD_COUNT
    return 0
