"""Row selections: which rows of a row group are read, and which pages hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, starmap
from typing import Any, overload

import numpy as np

from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_ranges import RowRanges

# Columns of the table of `RowSlices`.
SLICE_GROUP, SLICE_START, SLICE_STOP, SLICE_OUT = range(4)


@dataclass(frozen=True)
class RowSlice:
    """Rows of one row group, and their first output row.

    Parameters
    ----------
    row_group : int
        Ordinal of the row group.
    start, stop : int
        The rows (`stop` exclusive), counted within it.
    out : int
        Output row of the first one.
    """

    row_group: int
    start: int
    stop: int
    out: int

    def __len__(self) -> int:
        return self.stop - self.start

    def row_indices(self) -> np.ndarray:
        """Return the numbers of the rows within the row group, int64."""
        return np.arange(self.start, self.stop)


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Selected rows of one row group, and their first output row.

    Parameters
    ----------
    row_group : int
        Ordinal of the row group.
    row_ranges : RowRanges
        The rows, counted within it; with a mask, the one range that it covers.
    out : int
        Output row of the first one.
    num_rows : int
        Number of rows.
    chunk_pages : sequence of ChunkPages
        Pages of the chunk, by the position of a column among those read.
    cached : mapping of int to CachedFixed or CachedBinary
        Predicate cache: values of these rows, by the position of a column.
    mask : uint8 array or None
        1 for each selected row of the range, else 0; used for many short runs.
    """

    row_group: int
    row_ranges: RowRanges
    out: int
    num_rows: int
    chunk_pages: Sequence[ChunkPages]
    cached: Mapping[int, Any] = field(default_factory=dict)
    mask: np.ndarray | None = None

    def __len__(self) -> int:
        return self.num_rows

    @property
    def selects_all(self) -> bool:
        """Whether all rows of the row group are selected."""
        return self.mask is None and bool(self.chunk_pages) and self.row_ranges.count == self.chunk_pages[0].num_rows

    @property
    def selected_ranges(self) -> RowRanges:
        """The selected rows, as ranges."""
        return self.row_ranges if self.mask is None else self.row_ranges.select(RowRanges.from_mask(self.mask))

    def row_indices(self) -> np.ndarray:
        """Return the numbers of the rows within the row group, int64."""
        return self.selected_ranges.indices()

    def split(self, count: int) -> list[RowSelection]:
        """Divide the rows, in order, into at most `count` parts of about equal size, without the predicate cache."""
        edges = np.linspace(0, self.num_rows, count + 1).astype(np.int64).tolist()
        parts = []
        for first, last in pairwise(edges):
            if first < last:
                rows = self.row_ranges.select(RowRanges([(first, last)]))
                parts.append(RowSelection(self.row_group, rows, self.out + first, last - first, self.chunk_pages))
        return parts


# Row groups that are planned, filtered and decoded together: each takes some KiB until it is.
WAVE = 16 << 10


class RowSlices(Sequence[RowSlice]):
    """Rows of any number of row groups in one read-only table.

    Attributes
    ----------
    table : int64 array, (row groups, 4)
        Row group, first row, exclusive end, and output row of the first selected one.
    selections : list of RowSelection or None
        The rows of each between its first and its last; None: all of them.
    """

    def __init__(self, table: np.ndarray) -> None:
        self.table = table
        self.selections: list[RowSelection] | None = None
        self._slices: list[RowSlice] | None = None

    @classmethod
    def of(cls, slices: Sequence[RowSlice]) -> RowSlices:
        """Return slices as such a sequence."""
        if isinstance(slices, RowSlices):
            return slices
        rows = [(part.row_group, part.start, part.stop, part.out) for part in slices]
        return cls(np.array(rows, np.int64).reshape(-1, 4))

    @classmethod
    def of_selections(cls, selections: list[RowSelection]) -> RowSlices:
        """Return row selections as such a sequence."""
        rows, num_rows = [], 0
        for part in selections:
            rows.append((part.row_group, part.row_ranges.bounds[0, 0], part.row_ranges.stop, part.out))
            num_rows += part.num_rows
        slices = cls(np.array(rows, np.int64).reshape(-1, 4))
        slices.selections, slices.num_rows = selections, num_rows
        return slices

    @classmethod
    def single(cls, row_group: int, start: int, stop: int) -> RowSlices:
        """Return rows of one row group, the first of which is the first output row."""
        return cls(np.array([[row_group, start, stop, 0]], np.int64))

    @cached_property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(np.add.reduce(self.table[:, SLICE_STOP] - self.table[:, SLICE_START]))

    @cached_property
    def row_groups(self) -> list[int]:
        """Row group of each slice."""
        groups: list[int] = self.table[:, SLICE_GROUP].tolist()
        return groups

    def move(self, rows: int) -> RowSlices:
        """Return the slices with their output `rows` rows further on."""
        if not rows:
            return self
        if self.selections is None:
            return RowSlices(self.table + np.array([0, 0, 0, rows]))
        return RowSlices.of_selections([replace(part, out=part.out + rows) for part in self.selections])

    def waves(self) -> Iterator[RowSlices]:
        """Yield them in parts of at most WAVE row groups."""
        for first in range(0, len(self.table), WAVE):
            yield self[first : first + WAVE]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def parts(self) -> Sequence[RowSlice | RowSelection]:
        """The selection of each row group, or all its rows."""
        return self._to_list() if self.selections is None else self.selections

    @overload
    def __getitem__(self, item: int) -> RowSlice: ...
    @overload
    def __getitem__(self, item: slice) -> RowSlices: ...
    def __getitem__(self, item: int | slice) -> RowSlice | RowSlices:
        if not isinstance(item, slice):
            return self._to_list()[item]
        return RowSlices(self.table[item]) if self.selections is None else self.of_selections(self.selections[item])

    def __iter__(self) -> Iterator[RowSlice]:
        return iter(self._to_list())

    def _to_list(self) -> list[RowSlice]:
        if self._slices is None:
            self._slices = list(starmap(RowSlice, self.table.tolist()))
        return self._slices
