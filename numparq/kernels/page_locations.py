"""Page locations of a column chunk, from its offset index (PageIndex.md)."""

from __future__ import annotations

from .registry import helper, kernel
from .tables import L_END, L_IN_CHUNK, L_ROW, L_ROWS, L_START, LOCATION_FIELDS

# Fields of a PageLocation: offset of the page header, size with header, first row within the row group.
O_OFFSET, O_SIZE, O_ROW = range(3)
OFFSET_FIELDS = 3
# What is wrong with an offset index.
OUTSIDE_CHUNK, OVERLAP, FIRST_ROW, ROW_ORDER, BEYOND_ROWS = -1, -2, -3, -4, -5
# Items of `state`.
STATE_PAGE = 0  # the page of a negative status
STATE_COMPLETE = 1  # whether the pages follow one another up to the end of the chunk
STATE_FIELDS = 2


@helper
def check_locations(locations, count, start, end, num_rows, state):
    """Check page locations against the chunk and its row group; return 0 or a status. No sum can overflow."""
    for page in range(count):
        state[STATE_PAGE] = page
        offset = locations[page * OFFSET_FIELDS + O_OFFSET]
        size = locations[page * OFFSET_FIELDS + O_SIZE]
        if offset < start or offset >= end or size <= 0 or size > end - offset:
            return OUTSIDE_CHUNK
    for page in range(1, count):
        state[STATE_PAGE] = page
        before = (page - 1) * OFFSET_FIELDS
        if locations[before + O_OFFSET] + locations[before + O_SIZE] > locations[page * OFFSET_FIELDS + O_OFFSET]:
            return OVERLAP
    state[STATE_PAGE] = 0
    if count > 0 and locations[O_ROW] != 0:
        return FIRST_ROW
    for page in range(1, count):
        state[STATE_PAGE] = page
        if locations[page * OFFSET_FIELDS + O_ROW] < locations[(page - 1) * OFFSET_FIELDS + O_ROW]:
            return ROW_ORDER
    for page in range(count):
        state[STATE_PAGE] = page
        if locations[page * OFFSET_FIELDS + O_ROW] > num_rows:
            return BEYOND_ROWS
    return 0


@kernel("i8 x x x x i8 i8 i8")
def locate_pages(locations, count, start, end, num_rows, row_stops, table, state):
    """Check the data pages of a chunk; write the end row of each, and the page locations with the dictionary page.

    Pages that share a first row end where the last of them does, which has all of its rows. Return the number of
    locations, or a status.
    """
    status = check_locations(locations, count, start, end, num_rows, state)
    if status < 0:
        return status
    first = 0
    if count > 0 and locations[O_OFFSET] > start:
        table[L_START] = start
        table[L_END] = locations[O_OFFSET]
        table[L_ROW] = -1
        table[L_ROWS] = 0
        table[L_IN_CHUNK] = 0
        first = 1
    follows = end
    row = num_rows
    stop = num_rows
    state[STATE_COMPLETE] = 1
    for page in range(count - 1, -1, -1):
        offset = locations[page * OFFSET_FIELDS + O_OFFSET]
        after = offset + locations[page * OFFSET_FIELDS + O_SIZE]
        first_row = locations[page * OFFSET_FIELDS + O_ROW]
        place = (first + page) * LOCATION_FIELDS
        table[place + L_START] = offset
        table[place + L_END] = after
        table[place + L_ROW] = first_row
        table[place + L_ROWS] = row - first_row
        table[place + L_IN_CHUNK] = first + page
        if after != follows:
            state[STATE_COMPLETE] = 0
        if row > first_row:
            stop = row
        row_stops[page] = stop
        follows = offset
        row = first_row
    return first + count
