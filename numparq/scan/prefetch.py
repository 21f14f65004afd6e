"""Prefetch the byte ranges that a scan of a remote file decodes next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.row_selection import RowSlice

if TYPE_CHECKING:
    from numparq.column.read.row_selection import RowSelection
    from numparq.format.open_file import OpenFile
    from numparq.io.coalesce import Coalescing
    from numparq.io.prefetch import PrefetchedSource
    from numparq.plan.chunk_pages import ChunkPages
    from numparq.plan.read_plan import RowGroupPlan
    from numparq.plan.row_ranges import RowRanges

__all__ = ["ScanPrefetcher", "row_group_byte_ranges", "selection_byte_ranges"]

# Few requests run side by side: between them, no more bytes are fetched along than one takes in a tenth of its latency.
SMALL_READ_GAP = 64 << 10


class ScanPrefetcher:
    """Has bytes fetched ahead, and lets jobs read from these; of local files it does nothing.

    Parameters
    ----------
    context : ReadContext
        Of the read; its source is replaced by one that has the bytes.
    file : OpenFile
        The file; it knows which bytes are fetched together.
    """

    def __init__(self, context: ReadContext, file: OpenFile) -> None:
        self._context = context
        self._source = context.source
        self._file = file
        self._fetched: PrefetchedSource | None = None
        self.is_remote = context.source.is_remote
        self._has_all = False

    @property
    def little(self) -> int:
        """So few bytes are rather fetched too many than a request more is made."""
        return self._file.coalescing.gap

    def fetch_all(self, ranges: np.ndarray) -> None:
        """Fetch byte ranges at once, and keep them until the end: everything that will be read.

        Parameters
        ----------
        ranges : int64 array, (n, 2)
            First byte, and the byte behind the last.
        """
        how = self._file.coalescing
        self._replace([ranges], replace(how, gap=min(how.gap, SMALL_READ_GAP)))
        self._has_all = True
        assert self._fetched is not None
        self._fetched.begin(0)

    def schedule(self, batches: Sequence[np.ndarray]) -> None:
        """Fetch batches of byte ranges one after the other, each when the one before is decoded, or earlier.

        Parameters
        ----------
        batches : sequence of int64 array, (n, 2)
            In the order in which `turn` will name them.
        """
        if self.is_remote and not self._has_all:
            self._replace(batches, self._file.coalescing)

    @contextmanager
    def batch(self, batch: int) -> Iterator[None]:
        """Have the bytes of a batch at hand."""
        fetched = None if self._has_all else self._fetched
        if fetched is not None:
            fetched.begin(batch)
        try:
            yield
        finally:
            if fetched is not None:
                fetched.end(batch)

    def _replace(self, batches: Sequence[np.ndarray], how: Coalescing) -> None:
        from numparq.io.prefetch import PrefetchedSource

        self.close()
        self._fetched = PrefetchedSource(self._source, batches, how)
        self._context.source = self._fetched

    def close(self) -> None:
        """Give the bytes back; the context has its own source again."""
        if self._fetched is not None:
            self._fetched.close()
            self._context.source = self._source
            self._fetched = None


def row_group_byte_ranges(group: RowGroupPlan, positions: Sequence[int]) -> np.ndarray:
    """Give the byte ranges of what is needed of some columns of a row group; int64 of shape (n, 2)."""
    return _byte_ranges([group.chunks[place] for place in positions], group.rows)


def selection_byte_ranges(
    part: RowSelection | RowSlice, chunk_tables: ChunkTables, columns: Sequence[int]
) -> np.ndarray:
    """Give the byte ranges that some columns need for some rows, but for what is kept of them."""
    if not len(part):
        return np.empty((0, 2), np.int64)
    if isinstance(part, RowSlice):
        starts, ends = (numbers[0][list(columns)] for numbers in chunk_tables.places([part.row_group]))
        return np.stack([starts, ends], axis=1)[starts < ends]
    return _byte_ranges([part.chunks[column] for column in columns if column not in part.kept], part.rows)


def _byte_ranges(chunks: Sequence[ChunkPages], rows: RowRanges) -> np.ndarray:
    whole = [(chunk.start, chunk.end) for chunk in chunks if not chunk.is_indexed and chunk.start < chunk.end and rows]
    pages = [chunk.byte_ranges(chunk.needed(rows)) for chunk in chunks if chunk.is_indexed]
    return np.concatenate([np.array(whole, np.int64).reshape(-1, 2), *pages])
