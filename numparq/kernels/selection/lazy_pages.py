"""Pages decompressed only as far as their selected rows need, and the values of these rows."""

from __future__ import annotations

from numparq.kernels.decode.pad_nulls import count_valid
from numparq.kernels.decode.page_sections import VALUES_POS, decode_page_validity, find_sections, rows_in_range
from numparq.kernels.decode.snappy import decompress_snappy_until, read_snappy_preamble
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.memory import load8
from numparq.kernels.registry import helper
from numparq.kernels.status import BAD_COMPRESSED_DATA, BAD_COUNT
from numparq.kernels.tables import (
    C_ROW_START,
    C_VALIDITY,
    P_BODY,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_IS_COMPRESSED,
    P_REPETITION_BYTES,
    P_ROW,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
)

# Items of `state`, besides those of `binary` and `fixed`: of how many places the values are taken; of the page at hand,
# where its next compressed bytes are, and up to where it is decompressed.
STATE_TAKEN, STATE_SOURCE, STATE_DECOMPRESSED = 3, 8, 9
STATE_FIELDS = 10

WHOLE_PAGE = 1 << 62  # all of a page: beyond its end


# --- pages that are decompressed as far as they are needed ------------------------------------------------------------


@helper
def section_end(pages, page):
    """Give where the decompressed section of a page ends in the scratch buffer."""
    levels = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
    return pages[page + P_SCRATCH] + pages[page + P_UNCOMPRESSED] - levels


@helper
def decompress_up_to(pages, page, raw, scratch, state, wanted):
    """Have a page decompressed up to `wanted` in the scratch buffer, or to its end; 0 or BAD_COMPRESSED_DATA."""
    end = section_end(pages, page)
    wanted = min(wanted, end)
    if state[STATE_DECOMPRESSED] >= wanted:
        return 0
    last = pages[page + P_BODY] + pages[page + P_COMPRESSED]
    pos, there = decompress_snappy_until(
        raw, state[STATE_SOURCE], last, scratch, pages[page + P_SCRATCH], state[STATE_DECOMPRESSED], wanted, end
    )
    state[STATE_SOURCE] = pos
    state[STATE_DECOMPRESSED] = there
    return min(pos, 0)


@helper
def open_page(chunks, chunk, pages, page, raw, scratch, is_stored, levels, state):
    """Find the parts of a page and decode its validity; the number of values that are present, or a status.

    `is_stored`: whether the page, if it is compressed, is so still, in Snappy.
    """
    state[STATE_DECOMPRESSED] = WHOLE_PAGE
    if is_stored and pages[page + P_IS_COMPRESSED]:
        start = pages[page + P_SCRATCH]
        skipped = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
        source = pages[page + P_BODY] + skipped
        last = pages[page + P_BODY] + pages[page + P_COMPRESSED]
        source = read_snappy_preamble(raw, source, last, section_end(pages, page) - start)
        if source < 0:
            return source
        state[STATE_SOURCE] = source
        state[STATE_DECOMPRESSED] = start
        if decompress_up_to(pages, page, raw, scratch, state, start + 4) < 0:  # the length of the level section
            return BAD_COMPRESSED_DATA
    status = find_sections(chunks, chunk, pages, page, raw, scratch, state)
    if status < 0:
        return status
    if (
        state[STATE_DECOMPRESSED] < WHOLE_PAGE
        and decompress_up_to(pages, page, raw, scratch, state, state[VALUES_POS]) < 0
    ):
        return BAD_COMPRESSED_DATA
    return decode_page_validity(chunks, chunk, pages, page, raw, scratch, state, levels, 0)


# --- which values -----------------------------------------------------------------------------------------------------


@helper
def count_selected_rows(chunks, chunk, pages, page, indices, count, taken):
    """Find the wanted places that are in a page: (how many, what is to be added to a place to give its row there).

    BAD_COUNT where there is one that neither this page nor one before it has.
    """
    start, stop = rows_in_range(chunks, chunk, pages, page)
    if start >= stop or taken >= count or pages[page + P_TYPE] == DICTIONARY_PAGE:
        return 0, 0
    base = chunks[chunk + C_VALIDITY] + pages[page + P_ROW] + start - chunks[chunk + C_ROW_START]
    if indices[taken] < base:
        return BAD_COUNT, 0
    last = taken
    while last < count and indices[last] < base + stop - start:
        last += 1
    return last - taken, start - base


@helper
def find_value_indices(indices, taken, count_here, shift, levels, optional, values):
    """Write which of a page's values each wanted row has, -1 for a null; gives the number of nulls."""
    if not optional:
        for i in range(taken, taken + count_here):
            values[i] = indices[i] + shift
        return 0
    nulls = 0
    row = 0
    present = 0
    for i in range(taken, taken + count_here):
        present += count_valid(levels, row, indices[i] + shift - row)
        row = indices[i] + shift
        if load8(levels, row):
            values[i] = present
        else:
            values[i] = -1
            nulls += 1
    return nulls


@helper
def has_nulls(chunks, chunk, pages, page, levels):
    """Tell whether there is a null between the first and the last row of a page that may be wanted."""
    start, stop = rows_in_range(chunks, chunk, pages, page)
    return count_valid(levels, start, stop - start) < stop - start
