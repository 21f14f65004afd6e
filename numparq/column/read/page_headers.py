"""Page headers of column chunks: scanned one after the other, or read at the positions of an offset index."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.scratch import Scratch
from numparq.errors import DecryptionError, ParquetError
from numparq.format.module_reader import ModuleReader
from numparq.format.thrift.layout import thrift_layout
from numparq.kernels.decode.page_headers import (
    CLOSED_HEADER,
    HEADER_FIELDS,
    SCAN_CHUNK,
    SCAN_FIELDS,
    SCAN_IN_CHUNK,
    SCAN_NEEDED,
    SCAN_OPENED,
    SCAN_PAGES,
    SCAN_POS,
    SCAN_VALUES,
)
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import NEED_ROOM, check_status
from numparq.kernels.tables import (
    ALWAYS_COMPRESSED,
    C_DICTIONARY_PAGE,
    C_END,
    C_FIRST_IS_DICTIONARY,
    C_LEAF,
    C_QUIRKS,
    C_ROW_GROUP,
    C_ROW_START,
    C_SEALED,
    L_END,
    L_IN_CHUNK,
    L_ROW,
    L_START,
    PAGE_FIELDS,
    PREFIX_CARRYOVER,
)
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS

from .pages import ChunkFailure, Pages

if TYPE_CHECKING:
    from numparq.crypto.chunk_cipher import ChunkCipher
    from numparq.format.encryption import FileDecryption

_UNCOMPRESSED_SIZE = HEADER_FIELDS.index("uncompressed_page_size")
_MAX_FIRST_HEADER = 64 << 10  # bytes kept of a first header, for a second try
_IS_COMPRESSED = HEADER_FIELDS.index("data_page_header_v2.is_compressed")


@lru_cache(maxsize=1)
def page_header_layout() -> tuple[np.ndarray, np.ndarray, int]:
    """Return the table of a PageHeader's layout, the words of HEADER_FIELDS in its record, and its number of words."""
    header = thrift_layout("PageHeader", *HEADER_FIELDS)
    return header.table, np.array([header.slot(name) for name in HEADER_FIELDS], np.int64), header.words


def _always_compressed(slots: np.ndarray) -> np.ndarray:
    """Return the words of HEADER_FIELDS for ALWAYS_COMPRESSED: a page is compressed if it has any bytes."""
    slots = slots.copy()
    slots[_IS_COMPRESSED] = slots[_UNCOMPRESSED_SIZE]
    return slots


class HeaderScan:
    """Scan of the page headers of column chunks, in order.

    Parameters
    ----------
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table, of any columns and row groups; C_START and C_END are positions in the bytes scanned.
    keys : FileDecryption or None
        The file's keys, with which headers of encrypted chunks are decrypted in place.
    first_ordinal : int
        Ordinal of the first page in its chunk, which the AAD of an encrypted header has.

    Attributes
    ----------
    page_table : int64 array, (pages, PAGE_FIELDS)
        Pages of the bytes scanned last, up to a damaged header: dictionary pages, data pages with selected rows.
    """

    def __init__(self, chunks: np.ndarray, keys: FileDecryption | None = None, first_ordinal: int = 0) -> None:
        self._chunks, self._keys, self._first_ordinal = chunks, keys, first_ordinal
        self._cipher: ChunkCipher | None = None
        self._cipher_chunk = -1
        self._state = np.zeros(SCAN_FIELDS, np.int64)
        self._table, self._slots, words = page_header_layout()
        if chunks[0, C_QUIRKS] & ALWAYS_COMPRESSED:
            self._slots = _always_compressed(self._slots)
        self._record = np.zeros(words, np.int64)
        self._stack = np.zeros(STACK_WORDS, np.int64)
        self._stack[S_TOP] = self._stack[S_ROOM] = words
        self._pages = np.empty((max(64, 4 * len(chunks)), PAGE_FIELDS), np.int64)
        self.page_table = self._pages[:0]

    def scan(self, raw: np.ndarray, length: int, position: int) -> bool:
        """Scan from `position` as far as `length` bytes go; return whether all chunks are done.

        Raises ParquetError for a damaged header.
        """
        chunks, state = self._chunks, self._state
        state[SCAN_POS], state[SCAN_PAGES] = position, 0
        whole = (chunks[:, C_QUIRKS] & PREFIX_CARRYOVER) != 0  # every page of these is needed
        first_rows = chunks[:, C_ROW_START].copy()
        chunks[whole, C_ROW_START] = 0
        tables = self._table, self._slots, self._record, self._stack, state
        flat, num_chunks, view = chunks.reshape(-1), len(chunks), None
        while True:
            pages, room = self._pages.reshape(-1), len(self._pages)
            status = kernels.scan_pages(raw, length, flat, num_chunks, pages, room, *tables)
            while status == CLOSED_HEADER:
                view = view or memoryview(raw)  # type: ignore[arg-type]
                self._open_header(view)
                status = kernels.scan_pages(raw, length, flat, num_chunks, pages, room, *tables)
            if status != NEED_ROOM:
                break
            self._pages = np.concatenate([self._pages, np.empty_like(self._pages)])
        chunks[:, C_ROW_START] = first_rows
        self.page_table = self._pages[: int(state[SCAN_PAGES])]
        if status < 0:
            check_status(status, page=int(state[SCAN_IN_CHUNK]))
        return status == 0

    def _open_header(self, raw: memoryview) -> None:
        """Decrypt the header that the scan has reached, in place."""
        state, number = self._state, self.failed_chunk
        chunk = self._chunks[number]
        if self._cipher is None or self._cipher_chunk != number:
            assert self._keys is not None
            self._cipher_chunk, self._cipher = number, self._keys.cipher(int(chunk[C_ROW_GROUP]), int(chunk[C_LEAF]))
        try:
            in_chunk = int(state[SCAN_IN_CHUNK]) + self._first_ordinal
            open_header(self._cipher, chunk, raw, (int(state[SCAN_POS]), int(chunk[C_END])), in_chunk)
        except DecryptionError:
            self.page_table = self._pages[: int(state[SCAN_PAGES])]
            raise
        state[SCAN_OPENED] = 1

    @property
    def position(self) -> int:
        """The first byte not consumed: a page or header that was not complete, or damaged."""
        return int(self._state[SCAN_POS])

    @property
    def num_bytes_needed(self) -> int:
        """Bytes from `position` on that complete the page there; 0 or less if unknown."""
        return int(self._state[SCAN_NEEDED] - self._state[SCAN_POS])

    @property
    def failed_chunk(self) -> int:
        """Row of the chunk table that the scan has reached."""
        return int(self._state[SCAN_CHUNK])

    @property
    def num_pages_in_chunk(self) -> int:
        """Pages of that chunk so far, those not in `page_table` included."""
        return int(self._state[SCAN_IN_CHUNK])

    @property
    def num_values_in_chunk(self) -> int:
        """Values in the data pages of that chunk so far."""
        return int(self._state[SCAN_VALUES])


def open_header(
    cipher: ChunkCipher, chunk: np.ndarray, raw: memoryview, byte_range: tuple[int, int], in_chunk: int
) -> None:
    """Decrypt in place the page header at the start of a byte range, which has its whole module.

    `chunk` is a row of the chunk table. Old writers leave dictionary_page_offset out: the first page may be a
    dictionary page nevertheless.
    """
    position, end = byte_range
    page = in_chunk - int(chunk[C_FIRST_IS_DICTIONARY])
    try:
        if page:
            cipher.open_header(raw, position, end, None if page < 0 else page)
            return
        length = int.from_bytes(raw[position : position + 4], "little") + 4
        stored = bytes(raw[position : min(position + length, position + _MAX_FIRST_HEADER, end)])
        try:
            cipher.open_header(raw, position, end, page)
        except DecryptionError:
            if in_chunk:
                raise
            raw[position : position + len(stored)] = stored
            cipher.open_header(raw, position, end, None)
            chunk[C_FIRST_IS_DICTIONARY] = 1
    except DecryptionError as error:
        error.where.setdefault("page", in_chunk)
        raise


class _HeaderTables:
    """Tables of the kernel that reads page headers at given locations; one set a thread."""

    __slots__ = ("record", "slots", "stack", "state", "table")

    def __init__(self) -> None:
        self.table, self.slots, words = page_header_layout()
        self.record = np.zeros(words, np.int64)
        self.stack = np.zeros(STACK_WORDS, np.int64)
        self.stack[S_TOP] = self.stack[S_ROOM] = words
        self.state = np.zeros(1, np.int64)


def read_located_pages(
    reader: ModuleReader, chunks: np.ndarray, locations: np.ndarray, is_flat: bool, scratch: Scratch
) -> Pages:
    """Read pages of one column chunk by their locations; the bytes last until the thread reads again.

    `is_flat`: a page has as many values as rows. Raises ChunkFailure for headers that break the format, or are not
    those of pages at these locations.
    """
    tables: _HeaderTables | None = scratch.kernel_tables.get(_HeaderTables)
    if tables is None:
        tables = scratch.kernel_tables[_HeaderTables] = _HeaderTables()
    slots = tables.slots
    if chunks[0, C_QUIRKS] & ALWAYS_COMPRESSED:
        slots = _always_compressed(slots)
    chunks[0, C_DICTIONARY_PAGE] = -1
    pages = np.empty((len(locations), PAGE_FIELDS), np.int64)
    locations = locations.copy()
    try:
        raw = reader.read_pages(locations, scratch)
        if chunks[0, C_SEALED] and reader.keys is not None:
            _open_headers(reader.keys, chunks[0], locations, raw)
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
    except ParquetError as error:
        raise ChunkFailure(0, error) from None
    return Pages(raw, chunks, pages)


def _open_headers(keys: FileDecryption, chunk: np.ndarray, locations: np.ndarray, raw: np.ndarray) -> None:
    """Decrypt the headers of located pages in place."""
    if locations[0, L_ROW] < 0:
        chunk[C_FIRST_IS_DICTIONARY] = 1
    cipher, view = keys.cipher(int(chunk[C_ROW_GROUP]), int(chunk[C_LEAF])), memoryview(raw)  # type: ignore[arg-type]
    for start, end, in_chunk in locations[:, [L_START, L_END, L_IN_CHUNK]].tolist():
        open_header(cipher, chunk, view, (start, end), in_chunk)
