"""Headers of pages whose places are known, by an offset index (PageIndex.md)."""

from __future__ import annotations

from ..errors import BAD_COUNT, BAD_LENGTH, BAD_PAGE
from .compact_protocol import read_struct
from .pages import read_page
from .registry import kernel
from .tables import (
    DATA_PAGE,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_HEADER,
    P_IN_CHUNK,
    P_NUM_VALUES,
    P_TYPE,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
)

# The places of pages: a table, like those of `tables`.
L_START = 0  # position in the raw buffer of its header
L_END = 1  # position after its last byte
L_ROW = 2  # its first row within the row group; -1: a dictionary page
L_ROWS = 3  # its rows
L_IN_CHUNK = 4  # ordinal among the chunk's pages
LOCATED_FIELDS = 5

# Words of PageHeader's record that say how large a page is, in the order of `pages.HEADER_FIELDS`.
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 1, 2


@kernel("u1 i8 x x i8 i8 i8 i8 i8 i8 i8")
def scan_located_pages(raw, located, num_located, is_flat, chunks, pages, table, slots, record, stack, state):
    """Read the headers of pages whose places are known, and write a row of the page table for each.

    Parameters
    ----------
    raw
        The file's bytes.
    located, num_located
        The pages, LOCATED_FIELDS each, in order; a dictionary page first.
    is_flat
        Whether a page has as many values as rows, which is then held against its header.
    chunks
        A chunk table of the one chunk that they are of.
    pages, table, slots, record, stack
        As for `scan_pages`.
    state
        Item 0 is the page that a negative status is about.

    Returns
    -------
    int
        0; or a negative status where a header is damaged, or is not that of such a page.
    """
    for number in range(num_located):
        state[0] = number
        place = number * LOCATED_FIELDS
        page = number * PAGE_FIELDS
        end = located[place + L_END]
        body = read_struct(raw, located[place + L_START], end, table, record, 0, stack)
        if body < 0:
            return body
        pages[page + P_HEADER] = located[place + L_START]
        pages[page + P_BODY] = body
        pages[page + P_COMPRESSED] = record[slots[_COMPRESSED_SIZE]]
        pages[page + P_UNCOMPRESSED] = record[slots[_UNCOMPRESSED_SIZE]]
        pages[page + P_CHUNK] = 0
        pages[page + P_IN_CHUNK] = located[place + L_IN_CHUNK]
        size = pages[page + P_COMPRESSED]
        if size < 0 or pages[page + P_UNCOMPRESSED] < 0 or size > end - body:
            return BAD_LENGTH
        row = located[place + L_ROW]
        kept = read_page(record, slots, pages, number, chunks, 0, row)
        if kept < 0:
            return kept
        kind = pages[page + P_TYPE]
        if row < 0:
            if kind != DICTIONARY_PAGE:
                return BAD_PAGE
            continue
        if (kind != DATA_PAGE and kind != DATA_PAGE_V2) or size != end - body:
            return BAD_PAGE
        if is_flat != 0 and pages[page + P_NUM_VALUES] != located[place + L_ROWS]:
            return BAD_COUNT
    return 0
