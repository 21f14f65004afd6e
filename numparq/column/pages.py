"""The pages of column chunks: bytes fetched, headers walked into a page table, bodies checked and decompressed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ..codecs import decompressor
from ..errors import NEED_ROOM, ParquetError, check
from ..io.source import Source
from ..kernels import kernels
from ..kernels.compact_wire import S_ROOM, S_TOP, STACK_WORDS
from ..kernels.pages import HEADER_FIELDS, SCAN_CHUNK, SCAN_FIELDS, SCAN_IN_CHUNK, SCAN_NEEDED, SCAN_PAGES, SCAN_POS
from ..kernels.placement import T_DECOMPRESSED, T_DICTIONARY, T_ITEM, T_VALUES, TOTAL_FIELDS
from ..kernels.tables import (
    ALWAYS_COMPRESSED,
    B_FIRST,
    B_SNAPPY,
    BATCH_FIELDS,
    C_CODEC,
    C_END,
    C_FAULTS,
    C_ROW_START,
    C_START,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_IN_CHUNK,
    P_IS_COMPRESSED,
    P_REPETITION_BYTES,
    P_SCRATCH,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
    PREFIXES_GO_ON,
    SLACK,
)
from ..metadata.layout import layout
from .scratch import Scratch

# Bytes fetched at once of chunks that are larger: they stay in the cache until they are decoded.
WINDOW_BYTES = 4 << 20
# Bytes decompressed at once: small pages together, so that a call serves many of them; a large one alone.
BATCH_BYTES = 2 << 20


@dataclass(eq=False, repr=False)
class Pages:
    """Pages that are in memory.

    Attributes
    ----------
    raw : uint8 array
        The bytes of the file that they lie in, and SLACK bytes behind.
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table.
    pages : int64 array, (pages, PAGE_FIELDS)
        The page table; positions are in `raw`.
    """

    raw: np.ndarray
    chunks: np.ndarray
    pages: np.ndarray

    def locate(self, error: ParquetError, page: int) -> int:
        """Note a page's place in an error; returns the row of its chunk in the chunk table."""
        error.where.setdefault("page", int(self.pages[page, P_IN_CHUNK]))
        return int(self.pages[page, P_CHUNK])


@lru_cache(maxsize=1)
def header_layout() -> tuple[np.ndarray, np.ndarray, int]:
    """Give the table of a PageHeader's layout, the words of HEADER_FIELDS in its record, and its number of words."""
    header = layout("PageHeader", *HEADER_FIELDS)
    return header.table, np.array([header.slot(name) for name in HEADER_FIELDS], np.int64), header.words


_UNCOMPRESSED_SIZE = HEADER_FIELDS.index("uncompressed_page_size")
_IS_COMPRESSED = HEADER_FIELDS.index("data_page_header_v2.is_compressed")


class PageWalk:
    """Walks over the pages of column chunks that lie one after the other, a window of bytes at a time.

    Parameters
    ----------
    source : Source
        The file.
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table, in the order of the file, with C_START and C_END as positions in the file.
    """

    def __init__(self, source: Source, chunks: np.ndarray) -> None:
        self._source = source
        self.chunks = chunks
        self.state = np.zeros(SCAN_FIELDS, np.int64)
        self._table, self._slots, words = header_layout()
        self._whole = (chunks[:, C_FAULTS] & PREFIXES_GO_ON) != 0  # of which chunks every page is wanted
        if chunks[0, C_FAULTS] & ALWAYS_COMPRESSED:  # then what counts is whether there are any bytes
            self._slots = self._slots.copy()
            self._slots[_IS_COMPRESSED] = self._slots[_UNCOMPRESSED_SIZE]
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
        position, end = int(self.chunks[0, C_START]), int(self.chunks[:, C_END].max())
        self._move(position)
        wanted = WINDOW_BYTES if end - position > WINDOW_BYTES * 3 // 2 else end - position
        carried = self._record[:0].view(np.uint8)
        while True:
            length = min(wanted, end - position)
            raw = _fetch(self._source, position, length, carried, scratch)
            self.state[SCAN_PAGES] = 0
            done = self.scan(raw, length)
            if len(self.found):
                yield Pages(raw, self.chunks, self.found)
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
        try:
            return self._scanned(raw, length)
        finally:
            self.chunks[:, C_ROW_START] = wanted

    def _scanned(self, raw: np.ndarray, length: int) -> bool:
        while True:
            status = kernels.scan_pages(
                raw, length, self.chunks.reshape(-1), len(self.chunks), self._pages.reshape(-1), len(self._pages),
                self._table, self._slots, self._record, self._stack, self.state,
            )  # fmt: skip
            if status != NEED_ROOM:
                return check(status, page=int(self.state[SCAN_IN_CHUNK])) == 0
            self._pages = np.concatenate([self._pages, np.empty_like(self._pages)])

    def _next_window(self, consumed: int, wanted: int) -> int:
        """Say how many bytes the next window has to have; the page or header at `consumed` was not all there."""
        needed = int(self.state[SCAN_NEEDED]) - consumed
        if needed > 0:
            return max(needed, WINDOW_BYTES)
        return max(wanted, WINDOW_BYTES) if consumed else 2 * wanted

    @property
    def found(self) -> np.ndarray:
        """The rows of the page table that the walk has written, up to a damaged header."""
        return self._pages[: int(self.state[SCAN_PAGES])]

    @property
    def failed_chunk(self) -> int:
        """The row of the chunk table that the walk is at."""
        return int(self.state[SCAN_CHUNK])


def _fetch(source: Source, position: int, length: int, carried: np.ndarray, scratch: Scratch) -> np.ndarray:
    """Fetch bytes of the file, with SLACK readable ones behind them; the first of them are at hand, in `carried`."""
    view = source.view(position, length, SLACK)
    if view is not None:
        return view
    carried = carried[:length]
    raw = scratch.take("raw", length)
    raw[: len(carried)] = carried
    source.read_into(position + len(carried), raw[len(carried) : length])
    return raw


class PageFailure(Exception):
    """Trouble with one page of a page table, as a kernel's status or as an error that is made already.

    Parameters
    ----------
    page : int
        Its row in the page table.
    status : int
        What the kernel returned; 0 where `error` says it.
    error : ParquetError or None
        What is to be raised; by default what `numparq.errors.check` makes of the status.
    """

    def __init__(self, page: int, status: int = 0, error: ParquetError | None = None) -> None:
        super().__init__(page, status, error)
        self.page = page
        self.status = status
        self._error = error

    @property
    def error(self) -> ParquetError:
        """What to tell the user, without the place."""
        if self._error is not None:
            return self._error
        try:
            check(self.status)
        except ParquetError as error:
            return error
        raise AssertionError("a page failure without a reason")


def check_page(status: int, state: np.ndarray) -> int:
    """Raise PageFailure for a negative status of a kernel; item 0 of its `state` is the row of the page table."""
    if status < 0:
        raise PageFailure(int(state[0]), status)
    return status


def verify_crcs(pages: Pages) -> None:
    """Check the CRC-32 of every page that has one (over the bytes as stored, without the header)."""
    state = np.zeros(1, np.int64)
    check_page(kernels.check_crcs(pages.pages.reshape(-1), 0, len(pages.pages), pages.raw, state), state)


class Placement:
    """Pages divided into batches, and the room that they and their dictionaries take.

    Parameters
    ----------
    pages : Pages
        The pages; where each goes is noted in its tables.

    Attributes
    ----------
    batches : list of (int, int, bool)
        First page, the one behind the last, and whether our Snappy kernel does them all in one call.
    decompressed, dictionary : int
        Bytes of the largest batch once decompressed, and of all dictionaries once converted.
    values, item : int
        Values of the largest data page, and bytes of the largest value.

    Raises
    ------
    PageFailure
        When a header claims more than its page can hold.
    """

    def __init__(self, pages: Pages) -> None:
        count = len(pages.pages)
        batches = np.empty((count + 1, BATCH_FIELDS), np.int64)
        totals = np.empty(TOTAL_FIELDS, np.int64)
        status = kernels.place_pages(
            pages.chunks.reshape(-1), pages.pages.reshape(-1), count, BATCH_BYTES, batches.reshape(-1),
            totals,
        )  # fmt: skip
        rows = batches[: check_page(status, totals) + 1].tolist()
        self.batches = [(row[B_FIRST], after[B_FIRST], bool(row[B_SNAPPY])) for row, after in pairwise(rows)]
        numbers = totals.tolist()
        self.decompressed: int = numbers[T_DECOMPRESSED]
        self.dictionary: int = numbers[T_DICTIONARY]
        self.values: int = numbers[T_VALUES]
        self.item: int = numbers[T_ITEM]


def decompress(pages: Pages, batch: tuple[int, int, bool], out: np.ndarray) -> None:
    """Decompress the pages of a batch into a scratch buffer, each to its P_SCRATCH.

    Raises
    ------
    PageFailure
        For compressed data that is damaged, or of a codec that this version does not have.
    """
    first, last, by_kernel = batch
    if by_kernel:
        state = np.zeros(1, np.int64)
        status = kernels.decompress_snappy_pages(pages.pages.reshape(-1), first, last, pages.raw, out, state)
        check_page(status, state)
        return
    source, target = pages.raw.data, out.data
    for number in range(first, last):
        page = pages.pages[number].tolist()
        if not page[P_IS_COMPRESSED]:
            continue
        levels = page[P_REPETITION_BYTES] + page[P_DEFINITION_BYTES]
        start, end = page[P_BODY] + levels, page[P_BODY] + page[P_COMPRESSED]
        size = page[P_UNCOMPRESSED] - levels
        try:
            function = decompressor(int(pages.chunks[page[P_CHUNK], C_CODEC]))
            function(source[start:end], target[page[P_SCRATCH] : page[P_SCRATCH] + size])
        except ParquetError as error:
            raise PageFailure(number, error=error) from None
