"""Coalesce sorted byte ranges into requests."""

from __future__ import annotations

from .registry import helper, kernel

# Items of a row of what `coalesce_ranges` says of each range.
G_REQUEST, G_OFFSET, G_SIZE = range(3)
RANGE_FIELDS = 3


@helper
def add_span(order, ranges, first, last, start, stop, gap, max_bytes, requests, count, places):
    """Put ranges that lie over each other into the last request, or into one of their own; gives how many there are."""
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
    """Put byte ranges together to requests; those that lie over each other are always in one.

    Parameters
    ----------
    order : int64
        The ranges in the order of their first bytes.
    ranges : int64, 2 * num_ranges
        First byte, and the byte behind the last.
    gap, max_bytes : int
        Ranges with at most so many bytes between them go together, up to so many bytes.
    requests : int64, 2 * num_ranges
        Takes the requests, as `wanted` has ranges.
    places : int64, num_ranges * PLACE_FIELDS
        Takes of each range its request, where it begins in it, and its bytes.

    Returns
    -------
    int
        The number of requests.
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
