"""What jobs will read, fetched before they do: of sources whose requests take their time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..column.chunks import ChunkTables, RowSlice
from ..column.context import Context

if TYPE_CHECKING:
    from ..column.wanted import WantedRows
    from ..fetching import PrefetchedSource
    from ..opened import OpenedFile
    from ..plan.byte_ranges import Coalescing
    from ..plan.pages import ChunkPages
    from ..plan.row_group_plan import RowGroupPlan
    from ..plan.row_ranges import RowRanges

__all__ = ["Ahead", "ranges_of_group", "ranges_of_rows"]

# Few requests run side by side: between them, no more bytes are fetched along than one takes in a tenth of its latency.
GAP_OF_FEW = 64 << 10


class Ahead:
    """Has bytes fetched ahead, and lets jobs read from these; of local files it does nothing.

    Parameters
    ----------
    context : Context
        Of the read; its source is replaced by one that has the bytes.
    file : OpenedFile
        The file; it knows which bytes are fetched together.
    """

    def __init__(self, context: Context, file: OpenedFile) -> None:
        self._context = context
        self._source = context.source
        self._file = file
        self._fetched: PrefetchedSource | None = None
        self.is_worth_it = context.source.is_remote
        self._holds_all = False

    @property
    def little(self) -> int:
        """So few bytes are rather fetched too many than a request more is made."""
        return self._file.coalescing.gap

    def hold(self, ranges: np.ndarray) -> None:
        """Fetch byte ranges at once, and keep them until the end: everything that will be read.

        Parameters
        ----------
        ranges : int64 array, (n, 2)
            First byte, and the byte behind the last.
        """
        how = self._file.coalescing
        self._replace([ranges], replace(how, gap=min(how.gap, GAP_OF_FEW)))
        self._holds_all = True
        assert self._fetched is not None
        self._fetched.begin(0)

    def take_turns(self, batches: Sequence[np.ndarray]) -> None:
        """Fetch batches of byte ranges one after the other, each when the one before is decoded, or earlier.

        Parameters
        ----------
        batches : sequence of int64 array, (n, 2)
            In the order in which `turn` will name them.
        """
        if self.is_worth_it and not self._holds_all:
            self._replace(batches, self._file.coalescing)

    @contextmanager
    def turn(self, batch: int) -> Iterator[None]:
        """Have the bytes of a batch at hand."""
        fetched = None if self._holds_all else self._fetched
        if fetched is not None:
            fetched.begin(batch)
        try:
            yield
        finally:
            if fetched is not None:
                fetched.end(batch)

    def _replace(self, batches: Sequence[np.ndarray], how: Coalescing) -> None:
        from ..fetching import PrefetchedSource

        self.close()
        self._fetched = PrefetchedSource(self._source, batches, how)
        self._context.source = self._fetched

    def close(self) -> None:
        """Give the bytes back; the context has its own source again."""
        if self._fetched is not None:
            self._fetched.close()
            self._context.source = self._source
            self._fetched = None


def ranges_of_group(group: RowGroupPlan, places: Sequence[int]) -> np.ndarray:
    """Give the byte ranges of what is needed of some columns of a row group; int64 of shape (n, 2)."""
    return _ranges([group.chunks[place] for place in places], group.rows)


def ranges_of_rows(part: WantedRows | RowSlice, tables: ChunkTables, columns: Sequence[int]) -> np.ndarray:
    """Give the byte ranges that some columns need for some rows, but for what is kept of them."""
    if not len(part):
        return np.empty((0, 2), np.int64)
    if isinstance(part, RowSlice):
        starts, ends = (numbers[0][list(columns)] for numbers in tables.places([part.row_group]))
        return np.stack([starts, ends], axis=1)[starts < ends]
    return _ranges([part.chunks[column] for column in columns if column not in part.kept], part.rows)


def _ranges(chunks: Sequence[ChunkPages], rows: RowRanges) -> np.ndarray:
    whole = [(chunk.start, chunk.end) for chunk in chunks if not chunk.is_indexed and chunk.start < chunk.end and rows]
    pages = [chunk.byte_ranges(chunk.needed(rows)) for chunk in chunks if chunk.is_indexed]
    return np.concatenate([np.array(whole, np.int64).reshape(-1, 2), *pages])
