"""Rows of a row group that are wanted, where these are not one run of rows, and the pages that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..kernels import selecting_kernels
from ..kernels.selecting import K_FIELDS, K_PAGE, K_START, K_STOP, SELECTED_PAGES, SELECTED_ROWS
from ..kernels.tables import (
    C_ITEM_SIZE,
    C_MASK,
    C_NULL_COUNT,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    P_CHUNK,
    P_NUM_VALUES,
    P_ROW,
)
from ..plan.pages import ChunkPages
from ..plan.row_ranges import RowRanges
from .pages import Pages
from .taking import Runs, Taking

__all__ = ["Gathered", "WantedRows", "gathered", "in_one", "located_pages"]


@dataclass(frozen=True)
class WantedRows:
    """Rows of one row group, and where they go.

    Parameters
    ----------
    row_group : int
        Its ordinal.
    rows : RowRanges
        The rows wanted, counted within it; with a mask, the one range that it is for.
    out : int
        The row of the output that the first of them becomes.
    chunks : sequence of ChunkPages
        By the position of a column among those read: where the pages of its chunk are.
    kept : mapping of int to KeptFixed or KeptStrings
        By the position of a column: the values of these rows, where they are known already.
    mask : uint8 array or None
        Of each row of the range, whether it is wanted (1) or not (0): where many are, here and there.
    """

    row_group: int
    rows: RowRanges
    out: int
    chunks: Sequence[ChunkPages]
    kept: Mapping[int, Any] = field(default_factory=dict)
    mask: np.ndarray | None = None

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return self.rows.count if self.mask is None else int(np.count_nonzero(self.mask))

    @property
    def is_whole(self) -> bool:
        """Whether all rows of the row group are wanted."""
        return self.mask is None and bool(self.chunks) and self.rows.count == self.chunks[0].num_rows

    @property
    def ranges(self) -> RowRanges:
        """The rows wanted, as ranges."""
        return self.rows if self.mask is None else self.rows.select(RowRanges.from_mask(self.mask))

    def numbers(self) -> np.ndarray:
        """Give the numbers of the rows within the row group, int64."""
        return self.ranges.indices()

    def parts(self, count: int) -> list[WantedRows]:
        """Divide the rows into at most `count` parts of about as many, one behind the other; without what was kept."""
        edges = np.linspace(0, len(self), count + 1).astype(np.int64).tolist()
        found = []
        for first, last in pairwise(edges):
            if first < last:
                rows = self.rows.select(RowRanges([(first, last)]))
                found.append(WantedRows(self.row_group, rows, self.out + first, self.chunks))
        return found


def located_pages(chunk: ChunkPages, rows: RowRanges) -> np.ndarray:
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
        return chunk.located_run(*rows.bounds[0].tolist())
    located, needed = chunk.located, chunk.needed(rows)
    if len(located) == chunk.num_pages:  # no dictionary
        return located[needed]
    return located[np.concatenate([[0], needed + 1])] if len(needed) else located[:0]


@dataclass(frozen=True)
class Gathered:
    """Pages with wanted rows, set out to be decoded one behind the other, each from its first to its last such row.

    Parameters
    ----------
    pages : Pages
        The C_OUT and C_MASK of each row of the chunk table, which may stand for one page, count from the first row
        decoded.
    taking : Taking
        Which of the rows decoded are wanted.
    num_decoded : int
        How many rows are decoded.
    """

    pages: Pages
    taking: Taking
    num_decoded: int

    @property
    def is_dense(self) -> bool:
        """Whether all that is decoded is wanted."""
        return self.num_decoded == self.taking.count

    def at(self, out: int, mask: int) -> Pages:
        """Give the pages, to be decoded from the positions `out` and `mask` of an output on."""
        chunks = self.pages.chunks.copy()
        chunks[:, C_OUT] += out
        chunks[:, C_MASK] += mask
        return Pages(self.pages.raw, chunks, self.pages.pages)


def gathered(pages: Pages, rows: np.ndarray) -> Gathered:
    """Set out the data pages of a flat chunk for the rows wanted of them.

    Parameters
    ----------
    pages : Pages
        Data pages of one chunk, in order; their positions in the page table are not changed.
    rows : int64 array, (ranges, 2)
        The rows wanted, counted as in P_ROW.

    Returns
    -------
    Gathered
    """
    table = pages.pages
    count = len(table)
    if count:  # only the ranges that meet these pages
        first = int(rows[:, 1].searchsorted(table[0, P_ROW], side="right"))
        last = int(rows[:, 0].searchsorted(table[-1, P_ROW] + table[-1, P_NUM_VALUES], side="left"))
        rows = np.ascontiguousarray(rows[first : max(first, last)])
    kept = np.empty((count, K_FIELDS), np.int64)
    spans = np.empty((len(rows) + count, 2), np.int64)
    state = np.zeros(2, np.int64)
    found = selecting_kernels.select_pages(
        np.ascontiguousarray(table).reshape(-1), 0, count, rows.reshape(-1), len(rows), kept.reshape(-1),
        spans.reshape(-1), state,
    )  # fmt: skip
    kept, spans = kept[: int(state[SELECTED_PAGES])], spans[:found]
    chunks = pages.chunks[:1].repeat(len(kept), axis=0)
    lengths = kept[:, K_STOP] - kept[:, K_START]
    places = lengths.cumsum() - lengths
    chunks[:, C_ROW_START], chunks[:, C_ROW_STOP] = kept[:, K_START], kept[:, K_STOP]
    chunks[:, C_OUT], chunks[:, C_MASK] = places * chunks[:, C_ITEM_SIZE], places
    chunks[:, C_NULL_COUNT] = 0
    chosen = table[kept[:, K_PAGE]]
    chosen[:, P_CHUNK] = np.arange(len(kept))
    return Gathered(Pages(pages.raw, chunks, chosen), Runs(spans), int(state[SELECTED_ROWS]))


def in_one(pages: Pages, start: int, stop: int, taking: Taking) -> Gathered:
    """Set out data pages of a flat chunk to be decoded as they stand, from row `start` to row `stop`."""
    chunks = pages.chunks.copy()
    chunks[0, [C_ROW_START, C_ROW_STOP]] = start, stop
    chunks[0, [C_OUT, C_MASK, C_NULL_COUNT]] = 0
    return Gathered(Pages(pages.raw, chunks, pages.pages), taking, stop - start)
