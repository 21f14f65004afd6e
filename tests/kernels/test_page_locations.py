"""Page locations of a chunk, against loops over lists; damaged ones, which no kernel may read beyond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import tables as t
from numparq.kernels.page_locations import (
    BEYOND_ROWS,
    FIRST_ROW,
    OUTSIDE_CHUNK,
    OVERLAP,
    ROW_ORDER,
    STATE_COMPLETE,
    STATE_FIELDS,
    STATE_PAGE,
)
from support.kernels.engines import engines
from support.kernels.guarded_buffers import GuardedBuffer

EXTREMES = [0, 1, -1, 2**31, -(2**63), 2**63 - 1]


@st.composite
def page_locations(draw):
    """Draw (start, end, rows, page locations): mostly valid, else with some numbers replaced."""
    start = position = draw(st.sampled_from([0, 4, 2**40]))
    position += draw(st.sampled_from([0, 0, 30]))
    row, locations = 0, []
    for _ in range(draw(st.integers(0, 6))):
        size, rows = draw(st.integers(1, 40)), draw(st.integers(0, 5))
        locations.append([position, size, row])
        position, row = position + size + draw(st.sampled_from([0, 0, 0, 7])), row + rows
    end = position + draw(st.sampled_from([0, 0, 3]))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2])) if locations else 0):
        page, field = draw(st.integers(0, len(locations) - 1)), draw(st.integers(0, 2))
        near = locations[page][field] + draw(st.sampled_from([-1, 1]))
        locations[page][field] = draw(st.sampled_from([near, *EXTREMES]))
        if abs(locations[page][field]) > 2**62:
            break
    return start, end, row, locations


def first_failure(start, end, num_rows, locations):
    """Return the status and the page of the first check that fails, in the order of the checks; None if all hold."""
    pairs = [*zip(locations[1:], locations, strict=False)]
    checks = [
        (OUTSIDE_CHUNK, 0, [start <= at < end and size > 0 and at + size <= end for at, size, _ in locations]),
        (OVERLAP, 1, [before[0] + before[1] <= page[0] for page, before in pairs]),
        (FIRST_ROW, 0, [page[2] == 0 for page in locations[:1]]),
        (ROW_ORDER, 1, [before[2] <= page[2] for page, before in pairs]),
        (BEYOND_ROWS, 0, [page[2] <= num_rows for page in locations]),
    ]
    for status, first, holds in checks:
        if not all(holds):
            return status, first + holds.index(False)
    return None


@engines
@given(drawn=page_locations())
def test_any_pages(engine, drawn):
    start, end, num_rows, locations = drawn
    rng, count = np.random.default_rng(0), len(locations)
    sizes = count, (count + 1) * t.LOCATION_FIELDS, STATE_FIELDS
    row_stops, table, state = buffers = [GuardedBuffer(rng, size, "i8") for size in sizes]
    flat = np.array(locations, np.int64).reshape(-1)
    located = engine.locate_pages(flat, count, start, end, num_rows, row_stops.array, table.array, state.array)
    for buffer in buffers:
        buffer.check()
    failure = first_failure(start, end, num_rows, locations)
    if failure is not None:
        assert (located, state.array[STATE_PAGE]) == failure
        return
    offsets, begins = [at for at, _, _ in locations], [row for _, _, row in locations]
    ends = [at + size for at, size, _ in locations]
    assert row_stops.array.tolist() == [
        min((row for row in [*begins, num_rows] if row > begin), default=num_rows) for begin in begins
    ]
    assert state.array[STATE_COMPLETE] == (ends == [*offsets, end][1:])
    dictionary = [[start, offsets[0], -1, 0, 0]] if locations and offsets[0] > start else []
    rows = np.diff([*begins, num_rows]).tolist()
    pages = [
        [*place, len(dictionary) + page] for page, place in enumerate(zip(offsets, ends, begins, rows, strict=True))
    ]
    assert table.array.reshape(-1, t.LOCATION_FIELDS)[:located].tolist() == dictionary + pages
