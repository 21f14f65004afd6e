"""Page walks: fetch a chunk's pages in order or by its offset index, and scan their headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from numparq.column.scratch import Scratch
from numparq.format.module_reader import ModuleReader
from numparq.format.thrift.layout import thrift_layout
from numparq.kernels import kernels
from numparq.kernels.decode.page_headers import (
    HEADER_FIELDS,
    SCAN_CHUNK,
    SCAN_FIELDS,
    SCAN_IN_CHUNK,
    SCAN_NEEDED,
    SCAN_PAGES,
    SCAN_POS,
)
from numparq.kernels.status import NEED_ROOM, check_status
from numparq.kernels.tables import (
    ALWAYS_COMPRESSED,
    C_DICTIONARY_PAGE,
    C_END,
    C_QUIRKS,
    C_ROW_START,
    C_START,
    L_END,
    L_IN_CHUNK,
    L_START,
    PAGE_FIELDS,
    PREFIX_CARRYOVER,
)
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS

from .pages import Pages

__all__ = ["read_located_pages", "split_locations"]

# Bytes fetched at once of chunks that are larger: they stay in the cache until they are decoded.
WINDOW_BYTES = 4 << 20
_UNCOMPRESSED_SIZE = HEADER_FIELDS.index("uncompressed_page_size")
_IS_COMPRESSED = HEADER_FIELDS.index("data_page_header_v2.is_compressed")


@lru_cache(maxsize=1)
def page_header_layout() -> tuple[np.ndarray, np.ndarray, int]:
    """Give the table of a PageHeader's layout, the words of HEADER_FIELDS in its record, and its number of words."""
    header = thrift_layout("PageHeader", *HEADER_FIELDS)
    return header.table, np.array([header.slot(name) for name in HEADER_FIELDS], np.int64), header.words


class PageWalk:
    """Walk over the pages of column chunks: one a window of bytes at a time, several in a single window.

    Parameters
    ----------
    reader : ModuleReader
        Reader of the file.
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table, of any columns and row groups, with C_START and C_END as positions in the file.
    row_groups : sequence of int
        Ordinal of the row group of each chunk; only chunks of one row group are read together over a gap.
    """

    def __init__(self, reader: ModuleReader, chunks: np.ndarray, row_groups: Sequence[int] = ()) -> None:
        self._reader = reader
        self._row_groups = row_groups
        self.chunks = chunks
        self.state = np.zeros(SCAN_FIELDS, np.int64)
        self._table, self._slots, words = page_header_layout()
        self._whole = (chunks[:, C_QUIRKS] & PREFIX_CARRYOVER) != 0  # of which chunks every page is wanted
        if chunks[0, C_QUIRKS] & ALWAYS_COMPRESSED:
            self._slots = always_compressed_slots(self._slots)
        self._record = np.zeros(words, np.int64)
        self._stack = np.zeros(STACK_WORDS, np.int64)
        self._stack[S_TOP] = self._stack[S_ROOM] = words
        self._pages = np.empty((max(64, 4 * len(chunks)), PAGE_FIELDS), np.int64)

    def windows(self, scratch: Scratch) -> Iterator[Pages]:
        """Fetch and walk; gives the pages that are whole in each window. A window's bytes last until the next one.

        Raises
        ------
        ParquetError
            For headers that break the format. `failed_chunk` then says which chunk.
        """
        if len(self.chunks) > 1:
            starts, ends = self.chunks[:, C_START], self.chunks[:, C_END]
            raw, length, moves = self._reader.read_chunks(starts, ends, self._row_groups, scratch)
            starts -= moves
            ends -= moves
            self.state[SCAN_POS] = starts[0]
            self.scan(raw, length)
            table = self._pages[: int(self.state[SCAN_PAGES])]
            if len(table):
                yield Pages(raw, self.chunks, table)
            return
        position, end = int(self.chunks[0, C_START]), int(self.chunks[0, C_END])
        self._move(position)
        wanted = WINDOW_BYTES if end - position > WINDOW_BYTES * 3 // 2 else end - position
        carried = self._record[:0].view(np.uint8)
        while True:
            length = min(wanted, end - position)
            raw = self._reader.read_window(position, length, carried, scratch)
            self.state[SCAN_PAGES] = 0
            done = self.scan(raw, length)
            table = self._pages[: int(self.state[SCAN_PAGES])]
            if len(table):
                yield Pages(raw, self.chunks, table)
            if done:
                return
            consumed = int(self.state[SCAN_POS])
            wanted = self._next_window(consumed, wanted)
            carried = raw[consumed:length]
            position += consumed
            self._move(consumed)

    def _move(self, distance: int) -> None:
        """Make positions relative to a place `distance` bytes further on; the walk goes on from there."""
        self.chunks[:, C_START] -= distance
        self.chunks[:, C_END] -= distance
        self.state[SCAN_POS] = 0

    def scan(self, raw: np.ndarray, length: int) -> bool:
        """Walk as far as `length` bytes go; whether all chunks are done. ParquetError for a damaged header."""
        wanted = self.chunks[:, C_ROW_START].copy()
        self.chunks[self._whole, C_ROW_START] = 0
        status = NEED_ROOM
        while status == NEED_ROOM:
            status = kernels.scan_pages(
                raw,
                length,
                self.chunks.reshape(-1),
                len(self.chunks),
                self._pages.reshape(-1),
                len(self._pages),
                self._table,
                self._slots,
                self._record,
                self._stack,
                self.state,
            )
            if status == NEED_ROOM:
                self._pages = np.concatenate([self._pages, np.empty_like(self._pages)])
        self.chunks[:, C_ROW_START] = wanted
        if status < 0:
            check_status(status, page=int(self.state[SCAN_IN_CHUNK]))
        return status == 0

    def _next_window(self, consumed: int, wanted: int) -> int:
        """Say how many bytes the next window has to have; the page or header at `consumed` was not all there."""
        needed = int(self.state[SCAN_NEEDED]) - consumed
        if needed > 0:
            return max(needed, WINDOW_BYTES)
        return max(wanted, WINDOW_BYTES) if consumed else 2 * wanted

    @property
    def page_table(self) -> np.ndarray:
        """The rows of the page table that the walk has written, up to a damaged header."""
        return self._pages[: int(self.state[SCAN_PAGES])]

    @property
    def failed_chunk(self) -> int:
        """The row of the chunk table that the walk is at."""
        return int(self.state[SCAN_CHUNK])


class _HeaderTables:
    """Tables of the kernel that reads page headers; one set a thread."""

    __slots__ = ("record", "slots", "stack", "state", "table")

    def __init__(self) -> None:
        self.table, self.slots, words = page_header_layout()
        self.record = np.zeros(words, np.int64)
        self.stack = np.zeros(STACK_WORDS, np.int64)
        self.stack[S_TOP] = self.stack[S_ROOM] = words
        self.state = np.zeros(1, np.int64)


def split_locations(locations: np.ndarray) -> list[np.ndarray]:
    """Split page locations, int64 (pages, LOCATION_FIELDS), into parts of at most a window's bytes each."""
    sizes = (locations[:, L_END] - locations[:, L_START]).cumsum()
    found: list[np.ndarray] = []
    first = before = 0
    while first < len(sizes):
        last = max(int(sizes.searchsorted(before + WINDOW_BYTES, side="right")), first + 1)
        before = int(sizes[last - 1])
        found.append(locations[first:last])
        first = last
    return found


def read_located_pages(
    reader: ModuleReader, chunks: np.ndarray, locations: np.ndarray, is_flat: bool, scratch: Scratch
) -> Pages:
    """Fetch pages of one column chunk by their locations, and read their headers.

    The bytes last until the thread fetches again. `is_flat`: a page has as many values as rows. ParquetError for
    headers that break the format, or are not those of pages at these locations.
    """
    locations = locations.copy()
    raw = reader.read_pages(locations, scratch)
    tables: _HeaderTables | None = scratch.kernel_tables.get(_HeaderTables)
    if tables is None:
        tables = scratch.kernel_tables[_HeaderTables] = _HeaderTables()
    slots = tables.slots
    if chunks[0, C_QUIRKS] & ALWAYS_COMPRESSED:
        slots = always_compressed_slots(slots)
    chunks[0, C_DICTIONARY_PAGE] = -1
    pages = np.empty((len(locations), PAGE_FIELDS), np.int64)
    status = kernels.scan_pages_at(
        raw,
        locations.reshape(-1),
        len(locations),
        int(is_flat),
        chunks.reshape(-1),
        pages.reshape(-1),
        tables.table,
        slots,
        tables.record,
        tables.stack,
        tables.state,
    )
    if status < 0:
        check_status(status, page=int(locations[int(tables.state[0]), L_IN_CHUNK]))
    return Pages(raw, chunks, pages)


def always_compressed_slots(slots: np.ndarray) -> np.ndarray:
    """Return the slots of page headers where a page is compressed if it has any bytes."""
    slots = slots.copy()
    slots[_IS_COMPRESSED] = slots[_UNCOMPRESSED_SIZE]
    return slots
