"""Pages decompressed only as far as their selected rows need, and the values of these rows."""

from __future__ import annotations

from numparq.kernels.decode.pad_nulls import count_valid
from numparq.kernels.decode.page_sections import VALUES_POS, decode_page_validity, find_sections, rows_in_range
from numparq.kernels.decode.snappy import decompress_snappy_until, read_snappy_preamble
from numparq.kernels.memory import load8
from numparq.kernels.registry import helper
from numparq.kernels.status import BAD_COMPRESSED_DATA
from numparq.kernels.tables import (
    P_BODY,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_ROW,
    P_SCRATCH,
    P_UNCOMPRESSED,
)

# Items of `state`, besides those of `decode`: rows written; next compressed bytes of the page at hand, and up to where
# it is decompressed; first range that does not end before it; rows of the row group around its selected ones.
STATE_TAKEN, STATE_SOURCE, STATE_DECOMPRESSED = 3, 9, 10
STATE_RANGE, STATE_FIRST, STATE_LAST = 11, 12, 13
STATE_FIELDS = 14

SPARSE_RATIO = 8  # rows are taken one by one where one in so many of a page is selected, or fewer

WHOLE_PAGE = 1 << 62  # all of a page: beyond its end


# --- pages that are decompressed as far as they are needed ------------------------------------------------------------


@helper
def section_end(pages, page):
    """Return the end of the decompressed section of a page in the scratch buffer."""
    levels = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
    return pages[page + P_SCRATCH] + pages[page + P_UNCOMPRESSED] - levels


@helper
def decompress_up_to(pages, page, raw, scratch, state, target):
    """Decompress a page up to `target` in the scratch buffer, or to its end; return 0 or BAD_COMPRESSED_DATA."""
    end = section_end(pages, page)
    target = min(target, end)
    if state[STATE_DECOMPRESSED] >= target:
        return 0
    last = pages[page + P_BODY] + pages[page + P_COMPRESSED]
    pos, written = decompress_snappy_until(
        raw, state[STATE_SOURCE], last, scratch, pages[page + P_SCRATCH], state[STATE_DECOMPRESSED], target, end
    )
    state[STATE_SOURCE] = pos
    state[STATE_DECOMPRESSED] = written
    return min(pos, 0)


@helper
def open_page(chunks, chunk, pages, page, raw, scratch, is_stored, levels, state):
    """Find the sections of a page and decode its validity; return the number of values present, or a status.

    `is_stored`: whether a compressed page is still compressed, by Snappy.
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


# --- which rows and values --------------------------------------------------------------------------------------------


@helper
def is_sparse(pages, page, count):
    """Whether taking `count` selected rows of a page one by one is faster."""
    return count * SPARSE_RATIO <= pages[page + P_NUM_VALUES]


@helper
def select_by_mask(first, last, mask, mask_row, places, state):
    """Return how many rows of a page, `first` to `last` in the row group, a mask selects; see `select_page_rows`."""
    while first < last and load8(mask, first - mask_row) == 0:
        first += 1
    while first < last and load8(mask, last - 1 - mask_row) == 0:
        last -= 1
    count = 0
    for row in range(last - first):
        places[count] = row
        count += load8(mask, first - mask_row + row)
    state[STATE_FIRST] = first
    state[STATE_LAST] = last
    return count


@helper
def select_page_rows(pages, page, bounds, num_ranges, mask, mask_row, places, state):
    """Return how many rows of a page are selected, and set STATE_FIRST and STATE_LAST (exclusive) around them.

    `places` are the rows from STATE_FIRST on: not written if all rows between are selected.
    """
    begin = pages[page + P_ROW]
    end = begin + pages[page + P_NUM_VALUES]
    current = state[STATE_RANGE]
    while current < num_ranges and bounds[2 * current + 1] <= begin:
        current += 1
    state[STATE_RANGE] = current
    if current >= num_ranges or bounds[2 * current] >= end:
        return 0
    first = max(bounds[2 * current], begin)
    if mask_row >= 0:
        return select_by_mask(first, min(bounds[2 * current + 1], end), mask, mask_row, places, state)
    count = 0
    last = first
    stop = current
    while stop < num_ranges and bounds[2 * stop] < end:
        last = min(bounds[2 * stop + 1], end)
        count += last - max(bounds[2 * stop], begin)
        stop += 1
    state[STATE_FIRST] = first
    state[STATE_LAST] = last
    if count == last - first:
        return count
    found = 0
    for item in range(current, stop):
        for row in range(max(bounds[2 * item], begin), min(bounds[2 * item + 1], end)):
            places[found] = row - first
            found += 1
    return count


@helper
def find_value_indices(pages, page, places, count, levels, optional, values, state):
    """Write which of a page's values each of `count` selected rows has, -1 for a null; return the number of nulls."""
    shift = state[STATE_FIRST] - pages[page + P_ROW]  # between a place and the row of the page
    if count == state[STATE_LAST] - state[STATE_FIRST]:  # all rows, after the page was found to hold what it claims
        for i in range(count):
            places[i] = i
    if not optional:
        for i in range(count):
            values[i] = places[i] + shift
        return 0
    nulls = 0
    row = 0
    present = 0
    for i in range(count):
        present += count_valid(levels, row, places[i] + shift - row)
        row = places[i] + shift
        if load8(levels, row):
            values[i] = present
        else:
            values[i] = -1
            nulls += 1
    return nulls


@helper
def has_nulls(chunks, chunk, pages, page, levels):
    """Whether any row from the first to the last selected row of a page is null."""
    start, stop = rows_in_range(chunks, chunk, pages, page)
    return count_valid(levels, start, stop - start) < stop - start
