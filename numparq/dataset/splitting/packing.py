"""Pieces of a table put together to splits: in their order, none larger than asked for if it need not be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["capacity_for", "opening_bytes", "packed"]

# To open a file takes as long as to read so many bytes.
OPENING = 256 << 10


def opening_bytes(split_bytes: int) -> int:
    """Give what a file counts for beside its bytes: nothing that fills small splits."""
    return min(OPENING, split_bytes // 16)


def capacity_for(total: int, most: int, min_splits: int) -> int:
    """Give how large a split may be for there to be so many, if pieces can be made small enough."""
    return max(min(most, total // max(min_splits, 1)), 1)


def packed(sizes: Sequence[int], capacity: int) -> list[range]:
    """Divide pieces, which stay in their order, into runs of at most a capacity.

    Parameters
    ----------
    sizes : sequence of int
        Of each piece, 0 or more.
    capacity : int
        Of a run. A piece that is larger is a run by itself.

    Returns
    -------
    list of range
        As few as possible; and of those, such that the largest is as small as possible.
    """
    if not len(sizes):
        return []
    ends = np.cumsum(np.asarray(sizes, np.int64))
    found = _runs(ends, capacity)
    low, high = int(ends[-1]) // len(found), capacity  # the smallest that is enough lies above `low`, or is it
    while low < high:
        middle = (low + high) // 2
        if len(_runs(ends, middle)) == len(found):
            high = middle
        else:
            low = middle + 1
    return _runs(ends, low)


def _runs(ends: np.ndarray, capacity: int) -> list[range]:
    """Fill one run after the other."""
    runs, start, before = [], 0, 0
    while start < len(ends):
        stop = max(int(np.searchsorted(ends, before + capacity, side="right")), start + 1)
        runs.append(range(start, stop))
        start, before = stop, int(ends[stop - 1])
    return runs
