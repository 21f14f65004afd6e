"""Row ranges: immutable, sorted ranges of rows with set operations that never loop over ranges in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from numparq.kernels.kernel_groups import predicate_kernels

from . import row_bounds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SHOWN = 8  # ranges in a repr


class RowRanges:
    """An immutable set of rows, kept as sorted ranges that neither overlap nor touch.

    Parameters
    ----------
    ranges : iterable of (int, int), or int array of shape (n, 2), default ()
        Pairs of first row and end (exclusive), in any order. Ranges that overlap or touch are merged, empty ones are
        dropped.

    Attributes
    ----------
    bounds : int64 array, (n, 2)
        First row and end (exclusive) of each range; read-only.
    count : int
        Number of rows in all ranges.
    stop : int
        End (exclusive) of the last range; 0 if the set is empty.

    Raises
    ------
    TypeError
        When the ranges are not integers.
    ValueError
        When the ranges are not pairs, begin below 0, end before they begin, or exceed int64.

    Examples
    --------
    >>> RowRanges([(10, 20), (0, 5), (15, 30)])
    RowRanges([(0, 5), (10, 30)])
    >>> RowRanges([(0, 5), (10, 30)]) & RowRanges.from_mask([False] * 4 + [True] * 8)
    RowRanges([(4, 5), (10, 12)])
    """

    __slots__ = ("bounds", "count", "stop")
    bounds: np.ndarray
    count: int
    stop: int

    def __init__(self, ranges: Iterable[tuple[int, int]] | np.ndarray = ()) -> None:
        made = self._from_bounds(row_bounds.merge(row_bounds.from_pairs(ranges)))
        self.bounds, self.count, self.stop = made.bounds, made.count, made.stop

    @classmethod
    def _from_bounds(cls, bounds: np.ndarray) -> RowRanges:
        """Wrap bounds that are already sorted, non-empty and disjoint; a view is copied, as its base may be written."""
        made = cls.__new__(cls)
        made.bounds = bounds = np.ascontiguousarray(bounds) if bounds.base is None else np.array(bounds)
        bounds.flags.writeable = False
        made.stop = int(bounds[-1, 1]) if len(bounds) else 0
        if len(bounds) < 2:  # most row groups are read wholly or not at all
            made.count = made.stop - int(bounds[0, 0]) if len(bounds) else 0
        else:
            made.count = int(np.add.reduce(bounds[:, 1] - bounds[:, 0]))
        return made

    @classmethod
    def from_sorted(cls, starts: np.ndarray, stops: np.ndarray) -> RowRanges:
        """Build row ranges from starts and ends that are both non-decreasing.

        Parameters
        ----------
        starts, stops : int64 array, (n,)
            First row and end (exclusive) of each range, from row 0. Empty ranges are dropped.

        Returns
        -------
        RowRanges
        """
        return cls._from_bounds(row_bounds.from_sorted(starts, stops))

    @classmethod
    def all(cls, num_rows: int) -> RowRanges:
        """Return all rows of a row group.

        Parameters
        ----------
        num_rows : int
            End (exclusive) of the single range, which begins at row 0.

        Returns
        -------
        RowRanges
            Without any range if `num_rows` is 0.

        Raises
        ------
        ValueError
            When `num_rows` is negative.
        """
        if num_rows < 0:
            raise ValueError(f"num_rows must be at least 0, not {num_rows}")
        return cls.from_range(0, num_rows) if num_rows else cls._from_bounds(np.empty((0, 2), np.int64))

    @classmethod
    def from_range(cls, start: int, stop: int) -> RowRanges:
        """Return a single range of rows.

        Parameters
        ----------
        start, stop : int
            First row and end (exclusive).

        Returns
        -------
        RowRanges

        Raises
        ------
        ValueError
            When the range is empty, begins below 0, or exceeds int64.
        """
        if not 0 <= start < stop <= row_bounds.MAX_ROW:
            raise ValueError(f"the row range ({start}, {stop}) is empty, begins below 0, or exceeds int64")
        made = cls.__new__(cls)
        made.bounds = np.array([[start, stop]], np.int64)
        made.bounds.flags.writeable = False
        made.count, made.stop = stop - start, stop
        return made

    @classmethod
    def from_mask(cls, mask: ArrayLike) -> RowRanges:
        """Return the rows where a mask is True.

        Parameters
        ----------
        mask : bool array-like, (num_rows,)
            One item for each row, from row 0.

        Returns
        -------
        RowRanges

        Raises
        ------
        ValueError
            When the mask does not have exactly one dimension.
        """
        answers = np.asarray(mask, np.bool_)
        if answers.ndim != 1:
            raise ValueError(f"a row mask must have one dimension, not {answers.ndim}")
        answers = np.ascontiguousarray(answers).view(np.uint8)
        bounds = np.empty(len(answers) + 2, np.int64)
        count = predicate_kernels.mask_to_ranges(answers, len(answers), bounds)
        return cls._from_bounds(bounds[: 2 * count].reshape(-1, 2).copy())

    @classmethod
    def from_masks(cls, mask: np.ndarray, lengths: Sequence[int]) -> list[RowRanges]:
        """Return the rows of several masks, one after the other in `mask`, with `lengths` rows of at least 1 each."""
        bounds, firsts = row_bounds.split(cls.from_mask(mask).bounds, lengths)
        return [cls._from_bounds(bounds[first:stop].copy()) for first, stop in pairwise(firsts)]

    @classmethod
    def from_indices(cls, rows: ArrayLike) -> RowRanges:
        """Return the rows with the given row indices.

        Parameters
        ----------
        rows : int array-like
            Row indices in any order; duplicates are dropped.

        Returns
        -------
        RowRanges

        Raises
        ------
        TypeError
            When the row indices are not integers.
        """
        return cls(row_bounds.from_indices(np.asarray(rows)))

    # --- properties --------------------------------------------------------------------------------------------------

    @property
    def starts(self) -> np.ndarray:
        """First row of each range: int64, a view of `bounds`."""
        starts: np.ndarray = self.bounds[:, 0]
        return starts

    @property
    def stops(self) -> np.ndarray:
        """End (exclusive) of each range: int64, a view of `bounds`."""
        stops: np.ndarray = self.bounds[:, 1]
        return stops

    def indices(self) -> np.ndarray:
        """Return the row indices in ascending order.

        Returns
        -------
        int64 array, (count,)
        """
        return row_bounds.to_indices(self.bounds)

    def mask(self, num_rows: int) -> np.ndarray:
        """Return a mask that is True for each row in the set.

        Parameters
        ----------
        num_rows : int
            Length of the mask, at least `stop`.

        Returns
        -------
        bool array, (num_rows,)

        Raises
        ------
        ValueError
            When the set has rows at or beyond `num_rows`.
        """
        self._check_within(num_rows)
        return row_bounds.to_mask(self.bounds, num_rows)

    def is_subset(self, other: RowRanges) -> bool:
        """Whether all rows are also in another set."""
        return not self - other

    # --- set operations ----------------------------------------------------------------------------------------------

    def __or__(self, other: RowRanges) -> RowRanges:
        """Return the rows in either set."""
        return RowRanges._from_bounds(row_bounds.merge(np.concatenate([self.bounds, other.bounds])))

    def __and__(self, other: RowRanges) -> RowRanges:
        """Return the rows in both sets."""
        if not self.count or not other.count:
            return other if self.count else self
        if len(self.bounds) == 1 or len(other.bounds) == 1:  # fast path: one of them is usually a whole row group
            few, many = (other, self) if len(other.bounds) == 1 else (self, other)
            start, first = int(few.bounds[0, 0]), int(many.bounds[0, 0])
            if start <= first and many.stop <= few.stop:
                return many
            if len(many.bounds) == 1 and first <= start and few.stop <= many.stop:
                return few
            return many.clip(start, few.stop)
        return RowRanges._from_bounds(row_bounds.intersect(self.bounds, other.bounds))

    def __sub__(self, other: RowRanges) -> RowRanges:
        """Return the rows that are not in the other set."""
        return self & other.clip(0, self.stop).complement(self.stop)

    def complement(self, num_rows: int) -> RowRanges:
        """Return the rows below `num_rows` that are not in the set.

        Parameters
        ----------
        num_rows : int
            Number of rows overall, at least `stop`.

        Returns
        -------
        RowRanges

        Raises
        ------
        ValueError
            When the set has rows at or beyond `num_rows`.
        """
        self._check_within(num_rows)
        return RowRanges._from_bounds(row_bounds.complement(self.bounds, num_rows))

    # --- transformations ---------------------------------------------------------------------------------------------

    def clip(self, start: int, stop: int) -> RowRanges:
        """Return the rows from `start` to `stop` (exclusive).

        Parameters
        ----------
        start, stop : int
            First row and end (exclusive) to keep.

        Returns
        -------
        RowRanges
        """
        if stop <= start:
            return RowRanges()
        first, last = np.searchsorted(self.bounds[:, 1], start, "right"), np.searchsorted(self.bounds[:, 0], stop)
        return RowRanges._from_bounds(np.clip(self.bounds[first:last], start, stop))

    def shift(self, by: int) -> RowRanges:
        """Return the rows moved by a constant.

        Parameters
        ----------
        by : int
            Added to each row index; may be negative.

        Returns
        -------
        RowRanges

        Raises
        ------
        ValueError
            When a row would fall below 0 or exceed int64.
        """
        if len(self) and not (int(self.bounds[0, 0]) + by >= 0 and self.stop + by <= row_bounds.MAX_ROW):
            raise ValueError(f"rows shifted by {by:,} would fall below 0 or exceed int64")
        return RowRanges._from_bounds(self.bounds + by)

    def select(self, inner: RowRanges) -> RowRanges:
        """Return the rows at the given positions within this set.

        A second filter sees only the rows that the first one kept: `self` is the first result, `inner` the second.

        Parameters
        ----------
        inner : RowRanges
            Positions within the set: 0 is its first row, `count` is the end (exclusive).

        Returns
        -------
        RowRanges
            A subset of `self`.

        Raises
        ------
        ValueError
            When a position is not below `count`.
        """
        if inner.stop > self.count:
            inner._check_within(self.count)
        if len(self.bounds) == 1:
            first = int(self.bounds[0, 0])
            return RowRanges._from_bounds(inner.bounds + first) if first else inner
        return RowRanges._from_bounds(row_bounds.select(self.bounds, inner.bounds))

    def positions_in(self, outer: RowRanges) -> RowRanges:
        """Return the positions of the rows within a superset: the inverse of `select`.

        Parameters
        ----------
        outer : RowRanges
            Superset of `self`.

        Returns
        -------
        RowRanges
            ``outer.select(self.positions_in(outer)) == self``

        Raises
        ------
        ValueError
            When `outer` lacks a row of `self`.
        """
        if not self.is_subset(outer):
            raise ValueError("the outer row ranges lack some of the rows")
        return RowRanges._from_bounds(row_bounds.positions_within(self.bounds, outer.bounds))

    def _check_within(self, num_rows: int) -> None:
        if len(self.bounds) and self.bounds[-1, 1] > num_rows:
            raise ValueError(f"the rows end at {self.stop:,}, beyond the limit of {num_rows:,}")

    # --- container and value protocol --------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self.bounds)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield each range as a pair of ints."""
        return ((start, stop) for start, stop in self.bounds.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowRanges) and self.bounds.tobytes() == other.bounds.tobytes()

    def __hash__(self) -> int:
        return hash(self.bounds.tobytes())

    def __reduce__(self) -> tuple[type[RowRanges], tuple[np.ndarray]]:
        return RowRanges, (np.array(self.bounds),)

    def __repr__(self) -> str:
        shown = [f"({start}, {stop})" for start, stop in self.bounds[:_SHOWN].tolist()]
        if len(self) > _SHOWN:
            shown.append(f"... {len(self) - _SHOWN:,} more")
        return f"RowRanges([{', '.join(shown)}])"
