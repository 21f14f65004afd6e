"""Row selections: which rows of a row group are read, and which pages hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_ranges import RowRanges

__all__ = ["RowSelection", "selected_page_locations"]


@dataclass(frozen=True)
class RowSlice:
    """Rows of one row group, and where they go.

    Parameters
    ----------
    row_group : int
        Its ordinal.
    start, stop : int
        The rows wanted, counted within it.
    out : int
        The row of the output that the first of them becomes.
    """

    row_group: int
    start: int
    stop: int
    out: int

    def __len__(self) -> int:
        return self.stop - self.start

    def row_indices(self) -> np.ndarray:
        """Give the numbers of the rows within the row group, int64."""
        return np.arange(self.start, self.stop)


@dataclass(frozen=True)
class RowSelection:
    """Rows of one row group, and where they go.

    Parameters
    ----------
    row_group : int
        Its ordinal.
    row_ranges : RowRanges
        The rows wanted, counted within it; with a mask, the one range that it is for.
    out : int
        The row of the output that the first of them becomes.
    chunk_pages : sequence of ChunkPages
        By the position of a column among those read: where the pages of its chunk are.
    cached : mapping of int to CachedFixed or CachedBinary
        By the position of a column: the values of these rows, where they are known already.
    mask : uint8 array or None
        Of each row of the range, whether it is wanted (1) or not (0): where many are, here and there.
    """

    row_group: int
    row_ranges: RowRanges
    out: int
    chunk_pages: Sequence[ChunkPages]
    cached: Mapping[int, Any] = field(default_factory=dict)
    mask: np.ndarray | None = None

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return self.row_ranges.count if self.mask is None else int(np.count_nonzero(self.mask))

    @property
    def selects_all(self) -> bool:
        """Whether all rows of the row group are wanted."""
        return self.mask is None and bool(self.chunk_pages) and self.row_ranges.count == self.chunk_pages[0].num_rows

    @property
    def selected_ranges(self) -> RowRanges:
        """The rows wanted, as ranges."""
        return self.row_ranges if self.mask is None else self.row_ranges.select(RowRanges.from_mask(self.mask))

    def row_indices(self) -> np.ndarray:
        """Give the numbers of the rows within the row group, int64."""
        return self.selected_ranges.indices()

    def split(self, count: int) -> list[RowSelection]:
        """Divide the rows into at most `count` parts of about as many, one behind the other; without what was kept."""
        edges = np.linspace(0, len(self), count + 1).astype(np.int64).tolist()
        found = []
        for first, last in pairwise(edges):
            if first < last:
                rows = self.row_ranges.select(RowRanges([(first, last)]))
                found.append(RowSelection(self.row_group, rows, self.out + first, self.chunk_pages))
        return found


def selected_page_locations(chunk: ChunkPages, rows: RowRanges) -> np.ndarray:
    """Give the places of the pages of a chunk that are needed for some rows.

    Parameters
    ----------
    chunk : ChunkPages
        With an offset index.
    rows : RowRanges
        Within the row group.

    Returns
    -------
    int64 array, (pages, LOCATED_FIELDS)
        The dictionary page first, if there may be one; positions are in the file.
    """
    if len(rows) == 1:
        start, stop = rows.bounds[0].tolist()
        return chunk.page_table_in_range(start, stop)
    located, needed = chunk.page_table, chunk.pages_with_rows(rows)
    if len(located) == chunk.num_pages:  # no dictionary
        found: np.ndarray = located[needed]
    else:
        found = located[np.concatenate([[0], needed + 1])] if len(needed) else located[:0]
    return found
