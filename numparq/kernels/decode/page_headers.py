"""Page headers decoded into the page table, by a scan or at the locations of an offset index."""

from __future__ import annotations

import numpy as np

from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, UNCOMPRESSED
from numparq.kernels.memory import load8
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_COUNT, BAD_LENGTH, BAD_PAGE, NEED_ROOM, UNCERTAIN_END
from numparq.kernels.tables import (
    C_CODEC,
    C_DICTIONARY_PAGE,
    C_END,
    C_FIRST_PAGE,
    C_LAST_PAGE,
    C_NUM_VALUES,
    C_PLAIN_SIZE,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    C_SEALED,
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
    P_SEALED,
    P_TYPE,
    P_UNCOMPRESSED,
    P_UNREAD,
    PAGE_FIELDS,
    PLAINTEXT_OFFSET,
    UNKNOWN_END,
)

from .encrypted_headers import CLOSED, next_header

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
SCAN_PLAIN_SIZE = 6  # bytes of that chunk's pages so far, headers included, if they were not compressed
SCAN_IS_CERTAIN = 7  # whether anything confirms where the last data page of that chunk begins and ends
SCAN_OPENED = 8  # whether the encrypted header at SCAN_POS has been decrypted in place
SCAN_FIELDS = 9
CLOSED_HEADER = 2  # result of scan_pages: the encrypted header at SCAN_POS is complete, and has to be decrypted


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
    if definition < 0 or repetition < 0 or definition + repetition > pages[page + P_COMPRESSED]:
        return BAD_LENGTH
    if definition + repetition > pages[page + P_UNCOMPRESSED]:
        return BAD_LENGTH
    pages[page + P_NUM_VALUES] = num_values
    pages[page + P_ENCODING] = record[slots[_V2_ENCODING]]
    pages[page + P_DEFINITION_BYTES] = definition
    pages[page + P_REPETITION_BYTES] = repetition
    pages[page + P_IS_COMPRESSED] = 0
    # An empty value section was never compressed, whatever the header says.
    if chunks[chunk + C_CODEC] != UNCOMPRESSED and pages[page + P_COMPRESSED] > definition + repetition:
        pages[page + P_IS_COMPRESSED] = np.int64(record[slots[_V2_COMPRESSED]] != 0)
        if pages[page + P_IS_COMPRESSED] == 0 and pages[page + P_COMPRESSED] != pages[page + P_UNCOMPRESSED]:
            return BAD_LENGTH  # the sizes contradict that the values are not compressed
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
    pages[page + P_UNREAD] = 0
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
    at_end = pos >= chunks[chunk + C_END]
    if values < 0:
        return state[SCAN_IN_CHUNK] > 0 or at_end
    at_end = at_end or values == 0 or chunks[chunk + C_QUIRKS] & UNKNOWN_END != 0
    return state[SCAN_VALUES] == values and at_end


@helper
def number_size(number):
    """Return the bytes of a signed number in a Thrift struct, with its field header."""
    zigzag = (number << 1) ^ (number >> 63)
    size = 2
    while zigzag > 127:
        zigzag >>= 7
        size += 1
    return size


@helper
def is_shortest_header(raw, pos, body, record, slots):
    """Whether the header of a data page from `pos` to `body` has only the fields that readers need."""
    size = 1 + 2  # the field header of the type's struct, and the ends of both structs
    for field in range(_TYPE, _CRC + np.int64(record[0] & _HAS_CRC != 0)):
        size += number_size(record[slots[field]])
    first, last = _V1_NUM_VALUES, _V1_REPETITION + 1
    if record[slots[_TYPE]] == DATA_PAGE_V2:
        first, last = _V2_NUM_VALUES, _V2_REPETITION + 1
    for field in range(first, last):
        size += number_size(record[slots[field]])
    has_flag = body - pos == size + 1 and record[slots[_TYPE]] == DATA_PAGE_V2  # is_compressed, one byte
    return (body - pos == size or has_flag) and load8(raw, body - 1) == 0 and load8(raw, body - 2) == 0


@helper
def confirm_page(raw, chunks, chunk, pages, page, record, slots, state):
    """Note whether the position of the data page just scanned is certain, should bytes follow it in its chunk.

    A damaged header may seem to end early, within statistics for example, and its page then begins too early.
    """
    is_shortest = is_shortest_header(raw, pages[page + P_HEADER], pages[page + P_BODY], record, slots)
    is_whole = state[SCAN_PLAIN_SIZE] == chunks[chunk + C_PLAIN_SIZE]
    is_authentic = pages[page + P_SEALED] > 0
    state[SCAN_IS_CERTAIN] = np.int64(pages[page + P_CRC] >= 0 or is_shortest or is_whole or is_authentic)
    return 0


@helper
def skip_rest_of_chunk(chunks, chunk, state, status):
    """Skip the bytes behind the last page of a chunk, which are no page; return 0, or `status` if values are missing.

    A page with values there is refused, for then the counts of the headers do not add up.
    """
    if state[SCAN_VALUES] != chunks[chunk + C_NUM_VALUES]:
        return status
    if state[SCAN_IS_CERTAIN] == 0:
        return UNCERTAIN_END
    state[SCAN_POS] = chunks[chunk + C_END]
    return 0


@helper
def store_sizes(record, slots, pages, page, chunk, in_chunk, pos, body, end, sealed):
    """Store which page of a chunk a header is of, its position and sizes; return its end `body`, or a status.

    `sealed` is C_SEALED of the chunk.
    """
    stored = record[slots[_COMPRESSED_SIZE]]
    pages[page + P_HEADER] = pos
    pages[page + P_BODY] = body + (PLAINTEXT_OFFSET if sealed > 0 else 0)
    pages[page + P_COMPRESSED] = stored - sealed
    pages[page + P_UNCOMPRESSED] = record[slots[_UNCOMPRESSED_SIZE]]
    pages[page + P_SEALED] = sealed
    pages[page + P_CHUNK] = chunk
    pages[page + P_IN_CHUNK] = in_chunk
    if body >= 0 and (stored < sealed or pages[page + P_UNCOMPRESSED] < 0 or stored > end - body):
        return BAD_LENGTH
    return body


@helper
def bound_page_rows(chunks, chunk, state):
    """Store which rows of the page table a chunk has so far."""
    if state[SCAN_IN_CHUNK] == 0 or state[SCAN_PAGES] == 0:
        chunks[chunk + C_FIRST_PAGE] = state[SCAN_PAGES]
    if state[SCAN_IN_CHUNK] == 0:
        chunks[chunk + C_DICTIONARY_PAGE] = -1
    chunks[chunk + C_LAST_PAGE] = state[SCAN_PAGES]
    return 0


@kernel("u1 x i8 x i8 x i8 i8 i8 i8 i8")
def scan_pages(raw, available, chunks, num_chunks, pages, room, table, slots, record, stack, state):
    """Scan the pages of chunks into the page table: dictionary pages, first of their chunk, and selected data pages.

    Return 0; 1 if a page reaches past `available` (SCAN_NEEDED); CLOSED_HEADER; NEED_ROOM; or a status (at SCAN_POS).
    """
    while state[SCAN_CHUNK] < num_chunks:
        chunk = state[SCAN_CHUNK] * CHUNK_FIELDS
        pos = state[SCAN_POS]
        end = chunks[chunk + C_END]
        bound_page_rows(chunks, chunk, state)
        values = chunks[chunk + C_NUM_VALUES]
        if is_chunk_scanned(chunks, chunk, pos, state):
            state[SCAN_CHUNK] += 1
            state[SCAN_VALUES] = state[SCAN_IN_CHUNK] = state[SCAN_PLAIN_SIZE] = state[SCAN_OPENED] = 0
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
        sealed = chunks[chunk + C_SEALED]
        body, needed = next_header(raw, pos, end, available, sealed, state[SCAN_OPENED], table, record, stack)
        if needed != 0:
            state[SCAN_NEEDED] = max(needed, 0)
            return 1
        if body == CLOSED:
            return CLOSED_HEADER
        page = number * PAGE_FIELDS
        in_chunk = state[SCAN_IN_CHUNK]
        status = store_sizes(record, slots, pages, page, state[SCAN_CHUNK], in_chunk, pos, body, end, sealed)
        size = pages[page + P_COMPRESSED] + sealed
        if status >= 0 and body + size > available:
            state[SCAN_NEEDED] = body + size
            return 1
        if status >= 0:
            status = fill_page_row(record, slots, pages, number, chunks, chunk, state[SCAN_VALUES])
        if status < 0:
            status = skip_rest_of_chunk(chunks, chunk, state, status)
            if status < 0:
                return status
            continue
        if status > 0 and pages[page + P_TYPE] == DICTIONARY_PAGE:
            move_dictionary_page(pages, number, chunks[chunk + C_FIRST_PAGE])
            chunks[chunk + C_DICTIONARY_PAGE] = chunks[chunk + C_FIRST_PAGE]
            state[SCAN_PAGES] += 1
        elif status > 0:
            first = state[SCAN_VALUES]
            state[SCAN_VALUES] += pages[page + P_NUM_VALUES]
            if state[SCAN_VALUES] > values and values >= 0:
                return BAD_COUNT
            wanted = first < chunks[chunk + C_ROW_STOP] and state[SCAN_VALUES] > chunks[chunk + C_ROW_START]
            state[SCAN_PAGES] += np.int64(wanted)
        state[SCAN_PLAIN_SIZE] += body - pos + record[slots[_UNCOMPRESSED_SIZE]]
        if status > 0 and state[SCAN_VALUES] == values and pages[page + P_ROW] < values:
            confirm_page(raw, chunks, chunk, pages, page, record, slots, state)
        state[SCAN_POS] = body + size
        state[SCAN_OPENED] = 0
        state[SCAN_IN_CHUNK] += 1
    return 0


@kernel("u1 i8 x x i8 i8 i8 i8 i8 i8 i8")
def scan_pages_at(raw, locations, num_locations, is_flat, chunks, pages, table, slots, record, stack, state):
    """Read the page headers at `locations`, of one chunk, into the page table; a dictionary page comes first.

    Encrypted headers have been decrypted in place.

    Return 0 or a status, with the page in ``state[0]``. `is_flat`: pages must have as many values as rows.
    """
    for number in range(num_locations):
        state[0] = number
        place = number * LOCATION_FIELDS
        page = number * PAGE_FIELDS
        start, end, sealed = locations[place + L_START], locations[place + L_END], chunks[C_SEALED]
        body, _ = next_header(raw, start, end, end, sealed, 1, table, record, stack)
        ordinal = locations[place + L_IN_CHUNK]
        status = store_sizes(record, slots, pages, page, 0, ordinal, start, body, end, sealed)
        if status < 0:
            return status
        size = pages[page + P_COMPRESSED] + sealed
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
