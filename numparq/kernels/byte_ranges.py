"""Coalesce sorted byte ranges into requests."""

from __future__ import annotations

from .registry import helper, kernel

# Fields per range in `places`: its request, its offset in the request, its size.
G_REQUEST, G_OFFSET, G_SIZE = range(3)
RANGE_FIELDS = 3


@helper
def add_span(order, ranges, first, last, start, stop, gap, max_bytes, requests, count, places):
    """Add overlapping ranges to the last request, or to a new one; return the number of requests."""
    blob = 2 * (count - 1)
    if count and start - requests[blob + 1] <= gap and stop - requests[blob] <= max_bytes:
        requests[blob + 1] = stop
    else:
        blob = 2 * count
        requests[blob] = start
        requests[blob + 1] = stop
        count += 1
    for i in range(first, last):
        place = order[i] * RANGE_FIELDS
        places[place + G_REQUEST] = count - 1
        places[place + G_OFFSET] = ranges[2 * order[i]] - requests[blob]
        places[place + G_SIZE] = ranges[2 * order[i] + 1] - ranges[2 * order[i]]
    return count


@kernel("i8 i8 x x x i8 i8")
def coalesce_ranges(order, ranges, num_ranges, gap, max_bytes, requests, places):
    """Coalesce byte ranges (start, exclusive end) into requests; return their number. Overlapping ranges share one.

    `order` sorts `ranges` by start. Gaps up to `gap` bytes are bridged in requests of up to `max_bytes` bytes.
    """
    count = 0
    first = 0
    start = 0
    stop = 0
    for i in range(num_ranges):
        low = ranges[2 * order[i]]
        high = ranges[2 * order[i] + 1]
        if i and low < stop:
            stop = max(stop, high)
            continue
        if i:
            count = add_span(order, ranges, first, i, start, stop, gap, max_bytes, requests, count, places)
        first = i
        start = low
        stop = high
    if num_ranges:
        count = add_span(order, ranges, first, num_ranges, start, stop, gap, max_bytes, requests, count, places)
    return count
