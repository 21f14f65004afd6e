"""Bounds of row ranges: sorted, disjoint pairs of first row and end (exclusive), as int64 arrays of shape (n, 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

MAX_ROW = np.iinfo(np.int64).max


def from_pairs(ranges: Iterable[tuple[int, int]] | np.ndarray) -> np.ndarray:
    """Check pairs of first row and end (exclusive) in any order, and return them as an int64 array."""
    bounds = np.asarray(ranges if isinstance(ranges, np.ndarray) else list(ranges))
    if bounds.size == 0:
        bounds = np.empty((0, 2), np.int64)
    if bounds.dtype.kind not in "iu":
        raise TypeError(f"row ranges must be pairs of ints, not {bounds.dtype}")
    if bounds.ndim != 2 or bounds.shape[1] != 2:
        raise ValueError(f"row ranges must be pairs (start, stop), not of shape {bounds.shape}")
    if bounds.dtype.kind == "u" and (bounds > MAX_ROW).any():
        raise ValueError("a row range exceeds int64")
    bounds = bounds.astype(np.int64, copy=False)
    if np.count_nonzero((bounds[:, 0] < 0) | (bounds[:, 0] > bounds[:, 1])):
        raise ValueError("a row range begins below 0, or ends before it begins")
    return bounds


def from_indices(rows: np.ndarray) -> np.ndarray:
    """Return a range for each distinct row index, not merged."""
    if rows.size and rows.dtype.kind not in "iu":
        raise TypeError(f"row indices must be ints, not {rows.dtype}; use from_mask for a mask")
    rows = np.unique(rows.astype(np.int64))
    return np.stack([rows, rows + 1], axis=1)


def from_sorted(starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return the bounds of ranges whose starts and ends are both non-decreasing, merged; empty ones are dropped."""
    bounds = np.empty((len(starts), 2), np.int64)
    bounds[:, 0], bounds[:, 1] = starts, stops
    if np.count_nonzero(starts == stops):
        bounds = bounds[starts < stops]
    return merge_sorted(bounds, bounds[:, 1], bounds[1:, 0] > bounds[:-1, 1])


def split(bounds: np.ndarray, lengths: Sequence[int]) -> tuple[np.ndarray, list[int]]:
    """Split ranges at the ends of consecutive parts with `lengths` rows, at least 1; each counts from its own row 0.

    Returns the bounds of all parts, and the position of each one's first range with the number of ranges appended.
    """
    ends = np.cumsum(lengths)
    flat = bounds.reshape(-1)
    cuts, at = ends, flat.searchsorted(ends, side="left")
    cuts, at = cuts[at & 1 == 1], at[at & 1 == 1]  # after the start of a range, and up to its end
    cuts, at = cuts[cuts < flat[at]], at[cuts < flat[at]]
    parts = np.insert(flat, at.repeat(2), cuts.repeat(2)).reshape(-1, 2)
    firsts = np.append(parts[:, 0].searchsorted(ends - lengths), len(parts))
    parts -= np.repeat(ends - lengths, np.diff(firsts))[:, None]
    return parts, firsts.tolist()


def edges(bounds: np.ndarray, num_rows: int) -> np.ndarray:
    """Return 0, all starts and ends in order, and `num_rows`: the ranges alternate with the gaps around them."""
    return np.concatenate([[0], bounds.reshape(-1), [num_rows]])


def lengths(bounds: np.ndarray) -> np.ndarray:
    """Return the number of rows of each range."""
    counts: np.ndarray = bounds[:, 1] - bounds[:, 0]
    return counts


def to_indices(bounds: np.ndarray) -> np.ndarray:
    """Return the row indices within the ranges, ascending."""
    firsts = positions(bounds)
    moved = np.repeat(bounds[:, 0] - firsts[:-1], lengths(bounds))
    rows: np.ndarray = np.arange(firsts[-1]) + moved
    return rows


def to_mask(bounds: np.ndarray, num_rows: int) -> np.ndarray:
    """Return a mask of `num_rows` rows that is True within the ranges."""
    found = edges(bounds, num_rows)
    return np.repeat(np.arange(len(found) - 1) % 2 == 1, np.diff(found))


def positions(bounds: np.ndarray) -> np.ndarray:
    """Return the position of each range's first row within the set, with the number of rows appended."""
    found = np.zeros(len(bounds) + 1, np.int64)
    lengths(bounds).cumsum(out=found[1:])
    return found


# --- set operations ---------------------------------------------------------------------------------------------------


def merge(bounds: np.ndarray) -> np.ndarray:
    """Sort ranges, drop empty ones, and merge those that overlap or touch."""
    bounds = bounds[bounds[:, 0] < bounds[:, 1]]
    bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
    stops = np.maximum.accumulate(bounds[:, 1])
    return merge_sorted(bounds, stops, bounds[1:, 0] > stops[:-1])


def merge_sorted(bounds: np.ndarray, stops: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Merge sorted ranges; `apart` is True for each range but the first that begins a new one."""
    if np.count_nonzero(apart) == len(bounds) - 1 or not len(bounds):  # nothing to merge
        found = bounds.copy()
        found[:, 1] = stops
        return found
    cuts = apart.nonzero()[0]
    found = np.empty((len(cuts) + 1, 2), np.int64)
    found[0, 0], found[1:, 0] = bounds[0, 0], bounds[1:, 0][cuts]
    found[:-1, 1], found[-1, 1] = stops[cuts], stops[-1]
    return found


def complement(bounds: np.ndarray, num_rows: int) -> np.ndarray:
    """Return the gaps before, between and after the ranges, up to `num_rows`."""
    gaps = edges(bounds, num_rows).reshape(-1, 2)
    return gaps[gaps[:, 0] < gaps[:, 1]]


def intersect(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Intersect two sets of ranges."""
    our_places, their_places = _overlaps(ours, theirs)
    return _common(ours[our_places], theirs[their_places])


def select(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Return the rows of `outer` at the positions within it that `inner` has."""
    firsts = positions(outer)
    spans = np.stack([firsts[:-1], firsts[1:]], axis=1)
    ours, theirs = _overlaps(spans, inner)
    moved = (outer[:, 0] - firsts[:-1])[ours]
    found: np.ndarray = _common(spans[ours], inner[theirs]) + moved[:, None]
    return found


def positions_within(inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Return the positions within `outer` of the rows of `inner`, a subset of it: the inverse of `select`."""
    theirs, ours = _overlaps(outer, inner)
    moved = (positions(outer)[:-1] - outer[:, 0])[theirs]
    return merge(inner[ours] + moved[:, None])


def _overlaps(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair the ranges of two sorted lists that share rows; return their positions, in row order."""
    first = theirs[:, 1].searchsorted(ours[:, 0], side="right")
    last = theirs[:, 0].searchsorted(ours[:, 1], side="left")
    counts = np.maximum(last - first, 0)
    before = counts.cumsum() - counts
    inner = np.arange(int(counts.sum())) + (first - before).repeat(counts)
    return np.arange(len(ours)).repeat(counts), inner


def _common(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Intersect ranges pair by pair."""
    found = np.empty((len(ours), 2), np.int64)
    np.maximum(ours[:, 0], theirs[:, 0], out=found[:, 0])
    np.minimum(ours[:, 1], theirs[:, 1], out=found[:, 1])
    return found
