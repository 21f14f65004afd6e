"""A ColumnIndex (PageIndex.md) as arrays, and what it says of the pages of a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..metadata.decode import read_record
from ..metadata.layout import layout
from ..remembered import Kept
from ..schema import BYTE_ARRAY, Leaf
from ..statistics.distrust import MIN_MAX, NULL_COUNT, distrusted
from ..statistics.order import Order
from ..statistics.reading import may_have_nans
from .runs import UNKNOWN, Runs, counts

__all__ = ["ColumnIndex"]

_FIELDS = ("null_pages", "min_values", "max_values", "boundary_order", "null_counts", "nan_counts")
_BOUNDARY_ORDERS = range(3)
_MOST_KEPT = 2


@dataclass(frozen=True, slots=True, eq=False)
class ColumnIndex:
    """A ColumnIndex; all lists are known to be of the same length.

    Parameters
    ----------
    data : uint8 array
        The bytes that bounds lie in.
    null_pages : bool array
        Which pages are said to have nothing but nulls.
    lows, highs : int64 array, (pages, 2)
        Where in `data` the bounds lie, and their lengths.
    null_counts, nan_counts : int64 array
        `UNKNOWN` where the index does not tell.
    """

    data: np.ndarray
    null_pages: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    null_counts: np.ndarray
    nan_counts: np.ndarray
    _kept: Kept = field(default_factory=lambda: Kept(_MOST_KEPT), init=False, repr=False)

    @classmethod
    def read(cls, data: np.ndarray, length: int) -> ColumnIndex | None:
        """Decode one.

        Parameters
        ----------
        data : uint8 array
            Its bytes, and SLACK readable ones behind.
        length : int
            How many may belong to it.

        Returns
        -------
        ColumnIndex or None
            None where its lists are not all of the same length, or its boundary order is none that there is.

        Raises
        ------
        InvalidFileError
            When the bytes are no ColumnIndex.
        """
        wanted = layout("ColumnIndex", *_FIELDS)
        words = read_record(data, length, wanted)
        heads = words[: wanted.words].tolist()

        def elements(name: str, width: int = 1) -> np.ndarray:
            """Give those of a list, of bytes their positions and lengths; none of them where it is absent."""
            slot = wanted.slot(name)
            first, count = max(heads[slot], 0), heads[slot + 1]
            found = words[first : first + count * width].copy()  # else all of what was read for it would be kept
            return found if width == 1 else found.reshape(count, width)

        null_pages = elements("null_pages")
        count = len(null_pages)
        lows, highs = elements("min_values", 2), elements("max_values", 2)
        nulls, nans = elements("null_counts"), elements("nan_counts")
        if len(lows) != count or len(highs) != count or len(nulls) not in (0, count) or len(nans) not in (0, count):
            return None
        if heads[wanted.slot("boundary_order")] not in _BOUNDARY_ORDERS:
            return None
        unknown = np.full(count, UNKNOWN, np.int64)
        return cls(data, null_pages != 0, lows, highs, nulls if len(nulls) else unknown, nans if len(nans) else unknown)

    @classmethod
    def joined(cls, indexes: Sequence[ColumnIndex]) -> ColumnIndex:
        """Put the indexes of several chunks, at least one, behind each other."""
        if len(indexes) == 1:
            return indexes[0]
        sizes = [len(index.data) for index in indexes]
        shifts = np.repeat(np.cumsum(sizes) - sizes, [len(index.null_pages) for index in indexes])

        def moved(which: str) -> np.ndarray:
            places = np.concatenate([getattr(index, which) for index in indexes])
            places[:, 0] += np.where(places[:, 0] < 0, 0, shifts)
            return places

        data, null_pages, null_counts, nan_counts = (
            np.concatenate([getattr(index, which) for index in indexes])
            for which in ("data", "null_pages", "null_counts", "nan_counts")
        )
        return cls(data, null_pages, moved("lows"), moved("highs"), null_counts, nan_counts)

    def runs(self, num_rows: np.ndarray, leaf: Leaf, order: Order, created_by: str | None) -> Runs:
        """Give what can be trusted of it.

        Parameters
        ----------
        num_rows : int64 array
            Of each page, by the chunk's offset index.
        leaf : Leaf
            The column.
        order : Order
            As the file declares it.
        created_by : str or None
            The writer.

        Returns
        -------
        Runs
            A run a page.
        """
        key = leaf, order, created_by, num_rows.tobytes()
        return self._kept.get(key, lambda: self._made_runs(num_rows, leaf, order, created_by))

    def _made_runs(self, num_rows: np.ndarray, leaf: Leaf, order: Order, created_by: str | None) -> Runs:
        wrong = distrusted(created_by, leaf)
        unknown = np.full(len(num_rows), UNKNOWN, np.int64)
        # A page in front of an empty one, or of one that goes on with its last row, is taken for longer than it is.
        num_values = unknown if leaf.is_nested else num_rows
        nulls = unknown if NULL_COUNT in wrong else counts(self.null_counts, num_values)
        # Pages that are said to have nothing but nulls, and to have fewer nulls than rows, may have anything.
        has_values = self.null_pages & (nulls >= 0) & (nulls < num_values)
        useless = (self.null_pages | (MIN_MAX in wrong))[:, None]
        return Runs(
            self.data,
            np.where(useless, UNKNOWN, self.lows),
            np.where(useless, UNKNOWN, self.highs),
            num_values,
            nulls,
            counts(self.nan_counts, num_values) if may_have_nans(leaf) else unknown,
            self.null_pages & ~has_values,
            np.full(len(num_rows), leaf.physical != BYTE_ARRAY),  # what is of one size is never cut
            order,
        )
