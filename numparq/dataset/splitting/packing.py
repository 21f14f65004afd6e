"""Pieces of files put together to splits: in their order, few of them, and of about one size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["packed"]

# To open a file takes as long as to read so many bytes; it counts for nothing that would fill small splits.
OPENING, OPENING_SHARE = 256 << 10, 16


def packed(files: Sequence[int], sizes: Sequence[int], most: int, fewest: int = 1) -> list[range]:
    """Divide pieces, which stay in their order, into runs.

    Parameters
    ----------
    files : sequence of int
        The file that each piece is of, the first one being 0, the others behind it; they never fall.
    sizes : sequence of int
        The bytes of each piece, 0 or more.
    most : int
        Of a run. A piece that is larger is a run by itself.
    fewest : int
        So many runs there are to be, if there are as many pieces.

    Returns
    -------
    list of range
        As few as that allows; and of those, such that the largest is as small as possible.
    """
    if not len(sizes):
        return []
    # A run from one piece to another takes what lies between the start of the first one and the end of the last: with
    # pieces on a line, of one file over each other by what it takes to open that.
    opening = min(OPENING, most // OPENING_SHARE)
    ends = np.cumsum(np.asarray(sizes, np.int64)) + opening * (np.asarray(files, np.int64) + 1)
    starts = ends - np.asarray(sizes, np.int64) - opening
    count = max(len(_runs(starts, ends, most)), min(fewest, len(ends)))
    low, high = 0, int(ends[-1])
    while low < high:  # for the least capacity that makes no more runs
        middle = (low + high) // 2
        if len(_runs(starts, ends, middle)) <= count:
            high = middle
        else:
            low = middle + 1
    runs = _runs(starts, ends, low)
    return runs if len(runs) == count else _runs(starts, ends, low - 1)


def _runs(starts: np.ndarray, ends: np.ndarray, capacity: int) -> list[range]:
    """Fill one run after the other."""
    runs, start = [], 0
    while start < len(ends):
        fits = int(np.searchsorted(ends, starts[start] + capacity, side="right"))
        runs.append(range(start, max(fits, start + 1)))
        start = runs[-1].stop
    return runs
