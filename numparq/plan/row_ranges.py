"""Immutable sets of rows as sorted ranges, with set operations that never loop over ranges in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from numparq.kernels import predicate_kernels

__all__ = ["RowRanges"]

_MOST_ROWS = np.iinfo(np.int64).max


class RowRanges:
    """A set of rows: sorted ranges with at least one row between them. Immutable.

    Parameters
    ----------
    ranges : iterable of (int, int), or int array of shape (n, 2)
        From a row up to, but not including, another one; in any order. Those that overlap or touch are joined, those
        without a row are left out.

    Raises
    ------
    TypeError, ValueError
        When the ranges are not pairs of ints, begin below 0, or end before they begin.

    Examples
    --------
    >>> RowRanges([(10, 20), (0, 5), (15, 30)])
    RowRanges([(0, 5), (10, 30)])
    >>> RowRanges([(0, 5), (10, 30)]) & RowRanges.from_mask([False] * 4 + [True] * 8)
    RowRanges([(4, 5), (10, 12)])
    """

    __slots__ = ("_bounds",)
    _bounds: np.ndarray

    def __init__(self, ranges: Iterable[tuple[int, int]] | np.ndarray = ()) -> None:
        bounds = np.asarray(ranges if isinstance(ranges, np.ndarray) else list(ranges))
        if bounds.size == 0:
            bounds = np.empty((0, 2), np.int64)
        if bounds.dtype.kind not in "iu":
            raise TypeError(f"row ranges are pairs of ints, not {bounds.dtype}")
        if bounds.ndim != 2 or bounds.shape[1] != 2:
            raise ValueError(f"row ranges are pairs (start, stop), not of shape {bounds.shape}")
        if bounds.dtype.kind == "u" and (bounds > _MOST_ROWS).any():
            raise ValueError("rows are numbered by int64, and a range goes beyond")
        bounds = bounds.astype(np.int64, copy=False)
        if np.count_nonzero((bounds[:, 0] < 0) | (bounds[:, 0] > bounds[:, 1])):
            raise ValueError("a row range begins below 0, or ends before it begins")
        self._bounds = _read_only(_merge(bounds))

    @classmethod
    def _of(cls, bounds: np.ndarray) -> RowRanges:
        """Make one of ranges that are sorted, not empty, and apart."""
        made = cls.__new__(cls)
        made._bounds = _read_only(bounds)
        return made

    @classmethod
    def in_order(cls, starts: np.ndarray, stops: np.ndarray) -> RowRanges:
        """Make one of ranges whose starts and stops both never fall; those without a row are left out.

        Parameters
        ----------
        starts, stops : int64 array
            From 0; of each range the first row, and the row behind the last.
        """
        bounds = np.empty((len(starts), 2), np.int64)
        bounds[:, 0], bounds[:, 1] = starts, stops
        if np.count_nonzero(starts == stops):
            bounds = bounds[starts < stops]
        return cls._of(_merge_sorted(bounds, bounds[:, 1], bounds[1:, 0] > bounds[:-1, 1]))

    @classmethod
    def all(cls, num_rows: int) -> RowRanges:
        """Give the rows from 0 up to `num_rows`."""
        if num_rows < 0:
            raise ValueError(f"there are no {num_rows} rows")
        return cls._of(np.array([[0, num_rows]], np.int64)[: num_rows > 0])

    @classmethod
    def run(cls, start: int, stop: int) -> RowRanges:
        """Give the rows from `start` up to, but not including, `stop`; at least one."""
        if not 0 <= start < stop <= _MOST_ROWS:
            raise ValueError(f"there is no run of rows from {start} up to {stop}")
        return cls._of(np.array([[start, stop]], np.int64))

    @classmethod
    def from_mask(cls, mask: Any) -> RowRanges:
        """Give the rows where a mask is True.

        Parameters
        ----------
        mask : bool array-like, (rows,)
            One for each row, from row 0.

        Returns
        -------
        RowRanges
        """
        mask = np.asarray(mask, np.bool_)
        if mask.ndim != 1:
            raise ValueError(f"a mask of rows has one dimension, not {mask.ndim}")
        mask = np.ascontiguousarray(mask).view(np.uint8)
        bounds = np.empty(len(mask) + 2, np.int64)
        count = predicate_kernels.mask_to_ranges(mask, len(mask), bounds)
        return cls._of(bounds[: 2 * count].reshape(-1, 2).copy())

    @classmethod
    def from_indices(cls, rows: Any) -> RowRanges:
        """Give some rows, by their numbers.

        Parameters
        ----------
        rows : int array-like
            In any order.

        Returns
        -------
        RowRanges
        """
        rows = np.asarray(rows)
        if rows.size and rows.dtype.kind not in "iu":
            raise TypeError(f"numbers of rows are ints, not {rows.dtype}; a mask goes to from_mask")
        rows = np.unique(rows.astype(np.int64))
        return cls(np.stack([rows, rows + 1], axis=1))

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def bounds(self) -> np.ndarray:
        """The ranges, int64 of shape (n, 2): first row, and the row behind the last. Not writable."""
        return self._bounds

    @property
    def starts(self) -> np.ndarray:
        """The first row of each range, int64."""
        return self._bounds[:, 0]

    @property
    def stops(self) -> np.ndarray:
        """The row behind the last of each range, int64."""
        return self._bounds[:, 1]

    @property
    def lengths(self) -> np.ndarray:
        """The rows of each range, int64."""
        return self.stops - self.starts

    @property
    def count(self) -> int:
        """How many rows there are."""
        if len(self._bounds) < 2:  # row groups that are not cut, or wholly, are many
            return int(self._bounds[0, 1] - self._bounds[0, 0]) if len(self._bounds) else 0
        return int(self.lengths.sum())

    @property
    def stop(self) -> int:
        """The row behind the last one; 0 where there is none."""
        return int(self._bounds[-1, 1]) if len(self._bounds) else 0

    def indices(self) -> np.ndarray:
        """Give the numbers of the rows.

        Returns
        -------
        int64 array, (count,)
        """
        return np.arange(self.count, dtype=np.int64) + np.repeat(self.starts - self._places()[:-1], self.lengths)

    def mask(self, num_rows: int) -> np.ndarray:
        """Tell of each row whether it is in the set.

        Parameters
        ----------
        num_rows : int
            Rows that there are, from 0; at least `stop`.

        Returns
        -------
        bool array, (num_rows,)
        """
        self._check_within(num_rows)
        edges = np.concatenate([[0], self._bounds.reshape(-1), [num_rows]])
        return np.repeat(np.arange(len(edges) - 1) % 2 == 1, np.diff(edges))

    def is_within(self, other: RowRanges) -> bool:
        """Whether all its rows are rows of another set."""
        return not self - other

    # --- sets --------------------------------------------------------------------------------------------------------

    def __or__(self, other: RowRanges) -> RowRanges:
        """The rows that are in either."""
        return RowRanges._of(_merge(np.concatenate([self._bounds, other._bounds])))

    def __and__(self, other: RowRanges) -> RowRanges:
        """The rows that are in both."""
        if not len(self) or not len(other):
            return other if len(self) else self
        if len(self) == 1 or len(other) == 1:  # one of them is most often all rows of a row group
            few, many = (other, self) if len(other) == 1 else (self, other)
            start, stop = few._bounds[0].tolist()
            return many if start <= int(many._bounds[0, 0]) and many.stop <= stop else many.clip(start, stop)
        ours, theirs = _overlaps(self._bounds, other._bounds)
        return RowRanges._of(_common(self._bounds[ours], other._bounds[theirs]))

    def __sub__(self, other: RowRanges) -> RowRanges:
        """The rows that are not in the other."""
        return self & other.clip(0, self.stop).complement(self.stop)

    def complement(self, num_rows: int) -> RowRanges:
        """Give the rows from 0 up to `num_rows`, at least `stop`, that are not in the set."""
        self._check_within(num_rows)
        edges = np.concatenate([[0], self._bounds.reshape(-1), [num_rows]]).reshape(-1, 2)
        return RowRanges._of(edges[edges[:, 0] < edges[:, 1]])

    # --- moved and widened -------------------------------------------------------------------------------------------

    def clip(self, start: int, stop: int) -> RowRanges:
        """Give the rows from `start` up to, but not including, `stop`."""
        bounds = np.minimum(np.maximum(self._bounds, start), max(start, stop))
        return RowRanges._of(bounds[bounds[:, 0] < bounds[:, 1]])

    def shift(self, by: int) -> RowRanges:
        """Give the rows that lie `by` further on, or before where it is negative; not below row 0."""
        if len(self) and not (int(self._bounds[0, 0]) + by >= 0 and self.stop + by <= _MOST_ROWS):
            raise ValueError(f"shifted by {by:,}, the rows would begin below 0, or go beyond what int64 can number")
        return RowRanges._of(self._bounds + by)

    def coalesce(self, gap: int) -> RowRanges:
        """Join ranges with at most `gap` rows between them, these rows included."""
        if gap < 0:
            raise ValueError(f"a gap is a number of rows, not {gap}")
        apart = self.starts[1:] - self.stops[:-1] > gap
        return RowRanges._of(_merge_sorted(self._bounds, self.stops, apart))

    def select(self, inner: RowRanges) -> RowRanges:
        """Give those of the rows that are chosen by their places among them.

        What is left after a second filter that saw only what the first had left: `self` are the rows that the first
        left, `inner` the places among these.

        Parameters
        ----------
        inner : RowRanges
            Place 0 is the first row of the set; up to `count`.

        Returns
        -------
        RowRanges
            Part of `self`.
        """
        inner._check_within(self.count)
        if len(self) == 1:
            return RowRanges._of(inner._bounds + self.starts[0])
        places = self._places()
        spans = np.stack([places[:-1], places[1:]], axis=1)
        ours, theirs = _overlaps(spans, inner._bounds)
        moved = (self.starts - places[:-1])[ours]
        return RowRanges._of(_common(spans[ours], inner._bounds[theirs]) + moved[:, None])

    def positions_in(self, outer: RowRanges) -> RowRanges:
        """Give the places of the rows among those of another set, of which they are part: `select` backwards.

        Parameters
        ----------
        outer : RowRanges
            The other set; ValueError where it lacks some of the rows.

        Returns
        -------
        RowRanges
            ``outer.select(self.places_in(outer)) == self``
        """
        theirs, ours = _overlaps(outer._bounds, self._bounds)
        if len(ours) != len(self) or not self.is_within(outer):
            raise ValueError("some of the rows are not among those of the other set")
        moved = (outer._places()[:-1] - outer.starts)[theirs]
        return RowRanges._of(_merge(self._bounds[ours] + moved[:, None]))

    def _places(self) -> np.ndarray:
        """The place of the first row of each range among all rows, and at the end the number of rows."""
        found = np.zeros(len(self) + 1, np.int64)
        self.lengths.cumsum(out=found[1:])
        return found

    def _check_within(self, num_rows: int) -> None:
        if self.stop > num_rows:
            raise ValueError(f"the rows go up to {self.stop:,}, and there are {num_rows:,}")

    # --- as a value --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._bounds)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The ranges, as pairs of int."""
        return ((start, stop) for start, stop in self._bounds.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowRanges) and self._bounds.tobytes() == other._bounds.tobytes()

    def __hash__(self) -> int:
        return hash(self._bounds.tobytes())

    def __reduce__(self) -> tuple:
        return RowRanges, (np.array(self._bounds),)

    def __repr__(self) -> str:
        shown = [f"({start}, {stop})" for start, stop in self._bounds[:_SHOWN].tolist()]
        if len(self) > _SHOWN:
            shown.append(f"... {len(self) - _SHOWN:,} more")
        return f"RowRanges([{', '.join(shown)}])"


_SHOWN = 8


def _read_only(bounds: np.ndarray) -> np.ndarray:
    """Give an array that nobody can write to, one's own or a view's base included."""
    bounds = np.ascontiguousarray(bounds) if bounds.base is None else np.array(bounds)
    bounds.flags.writeable = False
    return bounds


def _merge(bounds: np.ndarray) -> np.ndarray:
    """Sort ranges, leave out those without rows, and join those that overlap or touch."""
    bounds = bounds[bounds[:, 0] < bounds[:, 1]]
    bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
    stops = np.maximum.accumulate(bounds[:, 1])
    return _merge_sorted(bounds, stops, bounds[1:, 0] > stops[:-1])


def _merge_sorted(bounds: np.ndarray, stops: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Join sorted ranges into runs; `apart` tells of all but the first whether a run begins with it."""
    if np.count_nonzero(apart) == len(bounds) - 1 or not len(bounds):  # no two of them are joined
        found = bounds.copy()
        found[:, 1] = stops
        return found
    cuts = apart.nonzero()[0]
    found = np.empty((len(cuts) + 1, 2), np.int64)
    found[0, 0], found[1:, 0] = bounds[0, 0], bounds[1:, 0][cuts]
    found[:-1, 1], found[-1, 1] = stops[cuts], stops[-1]
    return found


def _overlaps(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair the ranges of two sorted lists that have rows in common: their positions, in the order of the rows."""
    first = theirs[:, 1].searchsorted(ours[:, 0], side="right")
    last = theirs[:, 0].searchsorted(ours[:, 1], side="left")
    counts = np.maximum(last - first, 0)
    before = counts.cumsum() - counts
    inner = np.arange(int(counts.sum())) + (first - before).repeat(counts)
    return np.arange(len(ours)).repeat(counts), inner


def _common(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Give the rows that ranges have in common, pair by pair."""
    found = np.empty((len(ours), 2), np.int64)
    np.maximum(ours[:, 0], theirs[:, 0], out=found[:, 0])
    np.minimum(ours[:, 1], theirs[:, 1], out=found[:, 1])
    return found
