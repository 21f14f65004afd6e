"""The pages of column chunks: bytes fetched, headers walked into a page table, bodies checked and decompressed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..codecs import CODECS, SNAPPY, decompressor, max_decompressed
from ..errors import NEED_ROOM, CorruptPageError, ParquetError, check
from ..io.source import Source
from ..kernels import kernels
from ..kernels.compact_wire import S_ROOM, S_TOP, STACK_WORDS
from ..kernels.pages import HEADER_FIELDS, SCAN_CHUNK, SCAN_FIELDS, SCAN_IN_CHUNK, SCAN_NEEDED, SCAN_PAGES, SCAN_POS
from ..kernels.tables import (
    C_CODEC,
    C_END,
    C_NUM_VALUES,
    C_ROW_START,
    C_ROW_STOP,
    C_START,
    DICTIONARY_PAGE,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_IN_CHUNK,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_ROW,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
    SLACK,
)
from ..metadata.layout import layout
from .scratch import Scratch

# Bytes fetched at once of a chunk that is larger than that.
WINDOW_BYTES = 16 << 20
# Bytes decompressed at once: small pages together, so that a call serves many of them; a large one alone.
BATCH_BYTES = 1 << 20
# Snappy pages up to this many bytes are decompressed by our kernel, many in one call; larger ones by cramjam.
KERNEL_SNAPPY_BYTES = 64 << 10


@dataclass
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
def _header_layout() -> tuple[np.ndarray, np.ndarray, int]:
    header = layout("PageHeader", *HEADER_FIELDS)
    return header.table, np.array([header.slot(name) for name in HEADER_FIELDS], np.int64), header.words


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
        self._table, self._slots, words = _header_layout()
        self._record = np.zeros(words, np.int64)
        self._stack = np.zeros(STACK_WORDS, np.int64)
        self._stack[S_TOP] = self._stack[S_ROOM] = words
        self._pages = np.zeros((max(64, 4 * len(chunks)), PAGE_FIELDS), np.int64)

    def windows(self, scratch: Scratch) -> Iterator[Pages]:
        """Fetch and walk; gives the pages that are whole in each window. A window's bytes last until the next one.

        Raises
        ------
        ParquetError
            For headers that break the format. `failed_chunk` then says which chunk.
        """
        position, end = int(self.chunks[0, C_START]), int(self.chunks[:, C_END].max())
        self.chunks[:, [C_START, C_END]] -= position
        self.state[SCAN_POS] = 0
        wanted = WINDOW_BYTES
        done = False
        while not done:
            length = min(wanted, end - position)
            raw = fetch(self._source, position, length, scratch)
            self.state[SCAN_PAGES] = 0
            done = self._scan(raw, length)
            found = self._pages[: self.state[SCAN_PAGES]]
            consumed = int(self.state[SCAN_POS])
            if len(found):
                yield Pages(raw, self.chunks, found)
                wanted = WINDOW_BYTES
            if not done:
                wanted = self._next_window(consumed, length, wanted)
                self.chunks[:, [C_START, C_END]] -= consumed
                position += consumed
                self.state[SCAN_POS] = 0

    def _scan(self, raw: np.ndarray, length: int) -> bool:
        """Walk as far as the window goes; whether all chunks are done."""
        while True:
            status = kernels.scan_pages(
                raw, length, self.chunks.reshape(-1), len(self.chunks), self._pages.reshape(-1), len(self._pages),
                self._table, self._slots, self._record, self._stack, self.state,
            )  # fmt: skip
            if status != NEED_ROOM:
                return check(status, page=int(self.state[SCAN_IN_CHUNK])) == 0
            self._pages = np.concatenate([self._pages, np.zeros_like(self._pages)])

    def _next_window(self, consumed: int, length: int, wanted: int) -> int:
        """Say how many bytes the next window has to have; the header at `consumed` could not be passed."""
        needed = int(self.state[SCAN_NEEDED]) - consumed
        if needed > 0:
            return max(needed, WINDOW_BYTES)
        return wanted if consumed else 2 * max(wanted, length)

    @property
    def failed_chunk(self) -> int:
        """The row of the chunk table that the walk is at."""
        return int(self.state[SCAN_CHUNK])


def fetch(source: Source, position: int, length: int, scratch: Scratch) -> np.ndarray:
    """Fetch bytes of the file, with SLACK readable ones behind them."""
    view = source.view(position, length, SLACK)
    if view is not None:
        return view
    raw = scratch.take("raw", length)
    source.read_into(position, raw[:length])
    return raw


def pages_wanted(pages: Pages) -> Pages:
    """Leave out the data pages without a row that is wanted, and move dictionary pages to the front of their chunk."""
    table, chunks = pages.pages, pages.chunks
    if len(chunks) == 1 and chunks[0, C_ROW_START] == 0 and chunks[0, C_ROW_STOP] == chunks[0, C_NUM_VALUES]:
        return _dictionary_first(pages)
    rows = chunks[table[:, P_CHUNK]]
    keep = (table[:, P_ROW] < rows[:, C_ROW_STOP]) & (table[:, P_ROW] + table[:, P_NUM_VALUES] > rows[:, C_ROW_START])
    keep |= table[:, P_TYPE] == DICTIONARY_PAGE
    return _dictionary_first(pages if keep.all() else Pages(pages.raw, chunks, table[keep]))


def _dictionary_first(pages: Pages) -> Pages:
    table = pages.pages
    late = (table[:, P_TYPE] == DICTIONARY_PAGE) & (table[:, P_IN_CHUNK] > 0)
    if late.any():
        order = np.lexsort((table[:, P_TYPE] != DICTIONARY_PAGE, table[:, P_CHUNK]))
        return Pages(pages.raw, pages.chunks, np.ascontiguousarray(table[order]))
    return pages


def check_sizes(pages: Pages) -> None:
    """Refuse headers that claim more decompressed bytes than their codec can make of the compressed ones."""
    table = pages.pages
    for codec in np.unique(pages.chunks[:, C_CODEC]).tolist():
        if codec not in CODECS:  # decompressing it says that this version cannot
            continue
        claimed = (pages.chunks[table[:, P_CHUNK], C_CODEC] == codec) & (table[:, P_IS_COMPRESSED] != 0)
        excess = claimed & (table[:, P_UNCOMPRESSED] > max_decompressed(codec, table[:, P_COMPRESSED]))
        if excess.any():
            page = int(np.argmax(excess))
            error = CorruptPageError(
                f"the page header claims {table[page, P_UNCOMPRESSED]:,} bytes, more than {table[page, P_COMPRESSED]:,} "
                "compressed ones can hold"
            )
            raise PageFailure(page, error=error)


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


def check_page(status: int, state: np.ndarray) -> None:
    """Raise PageFailure for a negative status of a kernel that works on a page table (item 0 of `state` is the page)."""
    if status < 0:
        raise PageFailure(int(state[0]), status)


def verify_crcs(pages: Pages) -> None:
    """Check the CRC-32 of every page that has one (over the bytes as stored, without the header)."""
    state = np.zeros(1, np.int64)
    check_page(kernels.check_crcs(pages.pages.reshape(-1), 0, len(pages.pages), pages.raw, state), state)


def batches(pages: Pages) -> list[tuple[int, int]]:
    """Divide pages into runs that are decompressed together, and set where each page goes in the scratch buffer."""
    table = pages.pages
    if not len(table):
        return []
    need = np.where(table[:, P_IS_COMPRESSED] != 0, (table[:, P_UNCOMPRESSED] + 2 * SLACK - 1) & -SLACK, 0)
    before = np.cumsum(need) - need
    number = before // BATCH_BYTES
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    table[:, P_SCRATCH] = before - before[starts[np.searchsorted(starts, np.arange(len(table)), side="right") - 1]]
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(table)], strict=True))


def decompress(pages: Pages, first: int, last: int, scratch: Scratch) -> np.ndarray:
    """Decompress a run of pages made by `batches`; gives the scratch buffer that their P_SCRATCH points into."""
    run = pages.pages[first:last]
    compressed = run[run[:, P_IS_COMPRESSED] != 0]
    if not len(compressed):
        return pages.raw
    out = scratch.take("decompressed", int((compressed[:, P_SCRATCH] + compressed[:, P_UNCOMPRESSED]).max()) + SLACK)
    codecs = pages.chunks[compressed[:, P_CHUNK], C_CODEC]
    if codecs.max() == codecs.min() == SNAPPY and compressed[:, P_UNCOMPRESSED].mean() <= KERNEL_SNAPPY_BYTES:
        state = np.zeros(1, np.int64)
        status = kernels.decompress_snappy_pages(pages.pages.reshape(-1), first, last, pages.raw, out, state)
        check_page(status, state)
    else:
        _decompress_each(pages, first, last, out)
    return out


def _decompress_each(pages: Pages, first: int, last: int, out: np.ndarray) -> None:
    """Decompress page by page, by the library's function of each codec."""
    source, target = memoryview(pages.raw), memoryview(out)
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


def largest(pages: Pages) -> int:
    """Give the most values that a data page has."""
    data = pages.pages[pages.pages[:, P_TYPE] != DICTIONARY_PAGE]
    return int(data[:, P_NUM_VALUES].max(initial=0))

