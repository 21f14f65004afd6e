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
    from numparq.plan.row_group_plan import RowGroupPlan
    from numparq.plan.row_ranges import RowRanges

# Few requests run in parallel: a gap may hold at most the bytes that transfer in a tenth of a request's latency.
SMALL_READ_GAP = 64 << 10


class ScanPrefetcher:
    """Prefetcher of a scan: replaces the context's reader by one with the bytes."""

    def __init__(self, context: ReadContext, file: OpenFile) -> None:
        self._context = context
        self._reader = context.reader
        self._file = file
        self._fetched: PrefetchedSource | None = None
        self._has_all = False

    @property
    def small_read_bytes(self) -> int:
        """Bytes below which a larger read costs less than another request."""
        return self._file.coalescing.gap

    def fetch_all(self, ranges: np.ndarray) -> None:
        """Fetch all byte ranges of the read at once: int64 (n, 2), exclusive ends; held until `close`."""
        how = self._file.coalescing
        self._replace([ranges], replace(how, gap=min(how.gap, SMALL_READ_GAP)))
        self._has_all = True
        assert self._fetched is not None
        self._fetched.begin(0)

    def schedule(self, batches: Sequence[np.ndarray]) -> None:
        """Schedule batches of byte ranges, each int64 (n, 2), fetched in the order in which `batch` names them."""
        if not self._has_all:
            self._replace(batches, self._file.coalescing)

    @contextmanager
    def batch(self, batch: int) -> Iterator[None]:
        """Hold the bytes of a scheduled batch while the body runs."""
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
        self._fetched = PrefetchedSource(self._reader.source, batches, how)
        self._context.reader = self._reader.at_source(self._fetched)

    def close(self) -> None:
        """Release the bytes and restore the context's own reader."""
        if self._fetched is not None:
            self._fetched.close()
            self._context.reader = self._reader
            self._fetched = None


def row_group_byte_ranges(group: RowGroupPlan, positions: Sequence[int]) -> np.ndarray:
    """Return the byte ranges, int64 (n, 2), of the planned pages of some columns of a row group."""
    return _byte_ranges([group.chunks[place] for place in positions], group.rows)


def selection_byte_ranges(
    part: RowSelection | RowSlice, chunk_tables: ChunkTables, columns: Sequence[int]
) -> np.ndarray:
    """Return the byte ranges, int64 (n, 2), that columns need for some rows, without those in the predicate cache."""
    if not len(part):
        return np.empty((0, 2), np.int64)
    if isinstance(part, RowSlice):
        starts, ends = (numbers[0][list(columns)] for numbers in chunk_tables.byte_ranges([part.row_group]))
        ranges: np.ndarray = np.stack([starts, ends], axis=1)[starts < ends]
        return ranges
    return _byte_ranges([part.chunk_pages[column] for column in columns if column not in part.cached], part.row_ranges)


def _byte_ranges(chunks: Sequence[ChunkPages], rows: RowRanges) -> np.ndarray:
    whole = [(chunk.start, chunk.end) for chunk in chunks if not chunk.is_indexed and chunk.start < chunk.end and rows]
    pages = [chunk.byte_ranges(chunk.pages_with_rows(rows)) for chunk in chunks if chunk.is_indexed]
    return np.concatenate([np.array(whole, np.int64).reshape(-1, 2), *pages])
