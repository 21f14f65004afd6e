"""Page sources: the stored pages of column chunks, pages at the locations of an offset index, or pages in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from numparq.column.scratch import Scratch
from numparq.errors import DecryptionError, ParquetError
from numparq.format.module_reader import ModuleReader
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.tables import (
    C_END,
    C_QUIRKS,
    C_START,
    L_END,
    L_START,
    P_NUM_VALUES,
    P_ROW,
    P_SEALED,
    P_TYPE,
    PREFIX_CARRYOVER,
)

from .page_headers import HeaderScan, read_located_pages
from .pages import ChunkFailure, Pages

# Bytes fetched at once of chunks that are larger: they stay in the cache until they are decoded.
WINDOW_BYTES = 4 << 20


class PageSource(Protocol):
    """Pages of column chunks, window by window.

    Attributes
    ----------
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table; C_START and C_END become positions in a window's bytes.
    is_checked : bool
        Whether the pages were checked before.
    is_located : bool
        Whether the pages lie where an index says: then it may be to blame for an error.
    """

    chunks: np.ndarray
    is_checked: ClassVar[bool]
    is_located: ClassVar[bool]

    @property
    def num_bytes(self) -> int:
        """Bytes of the file that it reads."""

    def windows(self, scratch: Scratch) -> Iterable[Pages]:
        """Return pages, whose bytes last until the next window; raise ChunkFailure if one cannot be found."""


@dataclass(eq=False, repr=False)
class ScannedPages:
    """Pages of column chunks, in order: one chunk by windows of bytes, several chunks in a single window.

    Parameters
    ----------
    reader : ModuleReader
        Reader of the file.
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table, of any columns and row groups, with C_START and C_END as positions in the file.
    row_groups : sequence of int
        Ordinal of the row group of each chunk; only chunks of one row group are read together over a gap.
    row_ranges : int64 array, (ranges, 2), or None
        Rows (exclusive ends); data pages without any of them are left out. None: those of the chunk table.
    """

    reader: ModuleReader
    chunks: np.ndarray
    row_groups: Sequence[int] = ()
    row_ranges: np.ndarray | None = None
    is_checked: ClassVar[bool] = False
    is_located: ClassVar[bool] = False

    @property
    def num_bytes(self) -> int:
        """Bytes of the file that it reads."""
        return int((self.chunks[:, C_END] - self.chunks[:, C_START]).sum())

    def windows(self, scratch: Scratch) -> Iterable[Pages]:
        """Fetch and scan; return the pages that are complete in each window."""
        scan = HeaderScan(self.chunks, self.reader.keys)
        if len(self.chunks) == 1:
            return self._chunk_windows(scan, scratch)
        starts, ends = self.chunks[:, C_START], self.chunks[:, C_END]
        try:
            raw, length, moves = self.reader.read_chunks(starts, ends, self.row_groups, scratch)
            starts -= moves
            ends -= moves
            scan.scan(raw, length, starts[0])
        except ParquetError as error:
            raise ChunkFailure(scan.failed_chunk, error) from None
        return [Pages(raw, self.chunks, scan.page_table)] if len(scan.page_table) else []

    def _chunk_windows(self, scan: HeaderScan, scratch: Scratch) -> Iterator[Pages]:
        """Fetch and scan one chunk, window by window."""
        position, end = self.chunks[0, [C_START, C_END]].tolist()
        self._move(position)
        window = min(WINDOW_BYTES, scratch.window_bytes)
        size = window if end - position > window * 3 // 2 else end - position
        carried = np.empty(0, np.uint8)
        while True:
            length = min(size, end - position)
            try:
                raw = self.reader.read_window(position, length, carried, scratch)
                is_done = scan.scan(raw, length, 0)
            except ParquetError as error:
                raise ChunkFailure(0, error) from None
            if len(scan.page_table):
                yield self._prune(Pages(raw, self.chunks, scan.page_table))
            if is_done:
                return
            consumed = scan.position
            size = _next_window(scan, size, window)
            carried = raw[consumed:length]
            position += consumed
            self._move(consumed)

    def _prune(self, pages: Pages) -> Pages:
        """Return the pages without data pages that hold no selected row, unless others need their last string."""
        if self.row_ranges is None or self.chunks[0, C_QUIRKS] & PREFIX_CARRYOVER:
            return pages
        table = pages.pages
        first, last = table[:, P_ROW], table[:, P_ROW] + table[:, P_NUM_VALUES]
        before = np.searchsorted(self.row_ranges[:, 1], first, side="right")
        holds = np.searchsorted(self.row_ranges[:, 0], last, side="left") > before
        return Pages(pages.raw, pages.chunks, table[holds | (table[:, P_TYPE] == DICTIONARY_PAGE)])

    def _move(self, distance: int) -> None:
        """Count positions in the chunk table from `distance` bytes further on."""
        self.chunks[:, C_START] -= distance
        self.chunks[:, C_END] -= distance


def _next_window(scan: HeaderScan, size: int, window: int) -> int:
    """Return the bytes of the next window, at least `window`, after one whose last page or header is incomplete."""
    needed = scan.num_bytes_needed
    if needed > 0:
        return max(needed, window)
    return max(size, window) if scan.position else 2 * size


@dataclass(eq=False, repr=False)
class LocatedPages:
    """Pages of one column chunk by their locations; no other byte is read.

    Parameters
    ----------
    reader : ModuleReader
        Reader of the file.
    chunks : int64 array, (1, CHUNK_FIELDS)
        The chunk table.
    locations : int64 array, (pages, LOCATION_FIELDS)
        The pages; positions are in the file.
    is_flat : bool
        Whether a page must have as many values as rows.
    """

    reader: ModuleReader
    chunks: np.ndarray
    locations: np.ndarray
    is_flat: bool = True
    is_checked: ClassVar[bool] = False
    is_located: ClassVar[bool] = True

    @property
    def num_bytes(self) -> int:
        """Bytes of the file that it reads."""
        return int(np.add.reduce(self.locations[:, L_END] - self.locations[:, L_START]))

    def windows(self, scratch: Scratch) -> Iterable[Pages]:
        """Fetch the pages and read their headers, a window at a time."""
        locations = self.locations
        sizes = locations[:, L_END] - locations[:, L_START]
        window = min(WINDOW_BYTES, scratch.window_bytes)
        if len(sizes) == 1 or 0 < np.add.reduce(sizes) <= window:
            return [read_located_pages(self.reader, self.chunks, locations, self.is_flat, scratch)]
        runs = self._split(sizes.cumsum(), window)
        return (read_located_pages(self.reader, self.chunks, run, self.is_flat, scratch) for run in runs)

    def _split(self, ends: np.ndarray, window: int) -> Iterator[np.ndarray]:
        """Yield runs of the locations of at most `window` bytes each; `ends` are cumulative sizes."""
        first = before = 0
        while first < len(ends):
            last = max(int(ends.searchsorted(before + window, side="right")), first + 1)
            before = int(ends[last - 1])
            yield self.locations[first:last]
            first = last


@dataclass(eq=False, repr=False)
class InMemoryPages:
    """Pages in memory, checked before: one window, if there are any.

    Parameters
    ----------
    raw : uint8 array
        Their bytes, and SLACK bytes after them.
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table.
    page_table : int64 array, (pages, PAGE_FIELDS)
        The pages, with positions in `raw`.
    """

    raw: np.ndarray
    chunks: np.ndarray
    page_table: np.ndarray
    is_checked: ClassVar[bool] = True
    is_located: ClassVar[bool] = False

    @property
    def num_bytes(self) -> int:
        """Bytes in memory."""
        return len(self.raw)

    def windows(self, scratch: Scratch) -> Iterable[Pages]:
        """Return the pages."""
        if np.logical_or.reduce(self.page_table[:, P_SEALED]):
            raise DecryptionError("a page in memory has not been decrypted")
        return [Pages(self.raw, self.chunks, self.page_table.copy())] if len(self.page_table) else []
