"""Page locations and statistics of column chunks without a page index, from their page headers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from numparq.crypto.aad import ModuleId, ModuleType
from numparq.errors import DecryptionError
from numparq.format.module_reader import ModuleReader
from numparq.format.page_index import UNKNOWN, ColumnIndex, OffsetIndex
from numparq.format.thrift.decode import decoder_stack
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.tables import SLACK
from numparq.plan.chunk_pages import ChunkPages

MIN_CHUNK_BYTES = 128 << 10  # smaller chunks are decoded in the time that their headers take
_MIN_PAGE_BYTES = 4 << 10  # on the average, likewise
_HEADER_BYTES, _MAX_HEADER_BYTES = 512, 64 << 10
_DATA_HEADERS = {DATA_PAGE: "data_page_header", DATA_PAGE_V2: "data_page_header_v2"}
_DICTIONARY_ENCODINGS = (PLAIN_DICTIONARY, RLE_DICTIONARY)
_COUNTS = ("statistics.null_count", "statistics.nan_count")
_BOUNDS = ("statistics.min_value", "statistics.max_value")


@lru_cache(maxsize=1)
def _header_layout() -> tuple[ThriftLayout, dict[int, list[int]]]:
    """Return the layout of a page header, and the slots of num_values, encoding, counts and bounds by page type."""
    fields = ("num_values", "encoding", *_COUNTS, *_BOUNDS)
    wanted = {kind: [f"{struct}.{name}" for name in fields] for kind, struct in _DATA_HEADERS.items()}
    layout = thrift_layout("PageHeader", "type", "compressed_page_size", *wanted[DATA_PAGE], *wanted[DATA_PAGE_V2])
    return layout, {kind: list(map(layout.slot, names)) for kind, names in wanted.items()}


def walk_page_headers(
    reader: ModuleReader, chunk: ChunkPages, row_group: int, leaf: int
) -> tuple[OffsetIndex, ColumnIndex] | None:
    """Read the page headers of a chunk without repetition levels; return the indexes that a writer would have made.

    `chunk` is the chunk as a single page. None unless its headers describe it exactly, and if its pages are small.
    """
    walk = _HeaderWalk(reader, chunk, row_group, leaf)
    return walk.indexes() if walk.run() else None


def read_encodings(reader: ModuleReader, chunk: ChunkPages, pages: Sequence[int], row_group: int, leaf: int) -> None:
    """Read the headers of data pages and note in the chunk which of them need its dictionary page."""
    walk = _HeaderWalk(reader, chunk, row_group, leaf)
    for page in pages:
        needs = walk.needs_dictionary(int(chunk.offsets[page]), page)
        if needs is not None and chunk.needs_dictionary is not None:
            chunk.needs_dictionary[page] = needs


class _HeaderWalk:
    """Walk from one page header to the next; each data page adds a row to `locations`, `counts` and `bounds`."""

    def __init__(self, reader: ModuleReader, chunk: ChunkPages, row_group: int, leaf: int) -> None:
        self._reader = reader
        self._chunk_ordinals = row_group, leaf
        self._is_sealed = reader.keys is not None and reader.keys.is_sealed(row_group, leaf)
        self._chunk = chunk
        self._layout, self._slots = _header_layout()
        self._stack = decoder_stack(self._layout.words, self._layout.words)
        self._record = np.empty(self._layout.words, np.int64)
        self._buffer = np.zeros(_HEADER_BYTES + SLACK, np.uint8)
        self._locations: list[tuple[int, int, int]] = []
        self._counts: list[list[int]] = []
        self._bounds: list[tuple[int, int, int, int]] = []
        self._needs_dictionary: list[bool] = []
        self._data = bytearray()

    def run(self) -> bool:
        """Walk over the chunk; whether its headers describe it exactly."""
        position, row, chunk = self._chunk.start, 0, self._chunk
        while position < chunk.end:
            length = self._read_header(position, len(self._locations))
            words = self._record.tolist()
            size = words[self._layout.slot("compressed_page_size")]
            if not length or not 0 <= size <= chunk.end - position - length:
                return False
            kind = words[self._layout.slot("type")]
            if kind in _DATA_HEADERS:
                num_values = self._add_page(self._slots[kind], words)
                if not 0 < num_values <= chunk.num_rows - row:
                    return False
                self._locations.append((position, length + size, row))
                row += num_values
            elif kind != DICTIONARY_PAGE or self._locations:
                return False
            position += length + size
            if len(self._locations) % 16 == 0 and position - chunk.start < len(self._locations) * _MIN_PAGE_BYTES:
                return False
        return row == chunk.num_rows > 0

    def needs_dictionary(self, position: int, page: int) -> bool | None:
        """Whether the data page at a position holds dictionary indices; None if it is none."""
        length, words = self._read_header(position, page), self._record
        slots = self._slots.get(int(words[self._layout.slot("type")])) if length else None
        return None if slots is None else int(words[slots[1]]) in _DICTIONARY_ENCODINGS

    def _read_header(self, position: int, page: int) -> int:
        """Read the header at a position into the record; return its length, 0 for one that cannot be read.

        `page` is the ordinal of the data page there, or of the next one.
        """
        room = min(len(self._buffer) - SLACK, self._chunk.end - position)
        self._reader.read_into(position, self._buffer[:room])
        length = self._decode_header(room) if not self._is_sealed else self._decrypt_header(room, page)
        if length > 0:
            return length
        if room < min(self._chunk.end - position, _MAX_HEADER_BYTES):  # long bounds
            self._buffer = np.zeros(_MAX_HEADER_BYTES + SLACK, np.uint8)
            return self._read_header(position, page)
        return 0

    def _decode_header(self, room: int) -> int:
        """Decode the header in the first bytes of the buffer; return its length, or a status."""
        length: int = kernels.read_thrift_struct(
            self._buffer, 0, room, self._layout.table, self._record, 0, self._stack
        )
        return length

    def _decrypt_header(self, room: int, page: int) -> int:
        """Decrypt and decode the header in the first bytes of the buffer; return its stored length, or 0.

        The first page may be a dictionary page.
        """
        stored = int.from_bytes(self._buffer[: min(room, 4)].tobytes(), "little") + 4
        if stored > room:
            return 0
        modules = [ModuleId(ModuleType.DATA_PAGE_HEADER, *self._chunk_ordinals, page)]
        if not page:
            modules.append(ModuleId(ModuleType.DICTIONARY_PAGE_HEADER, *self._chunk_ordinals))
        for module in modules:
            try:
                plaintext = self._reader.plaintext(self._buffer[: stored + SLACK], module)
            except DecryptionError:
                continue
            self._buffer[: len(plaintext)] = plaintext
            return stored if self._decode_header(len(plaintext) - SLACK) > 0 else 0
        return 0

    def _add_page(self, slots: list[int], words: list[int]) -> int:
        """Add the counts and bounds of a data page; return its number of values."""
        num_values, encoding, null_count, nan_count, low, high = slots
        self._counts.append([words[null_count], words[nan_count]])
        self._bounds.append((*self._add_bound(*words[low : low + 2]), *self._add_bound(*words[high : high + 2])))
        self._needs_dictionary.append(words[encoding] in _DICTIONARY_ENCODINGS)
        return words[num_values]

    def _add_bound(self, start: int, length: int) -> tuple[int, int]:
        if start < 0:
            return UNKNOWN, 0
        self._data += self._buffer[start : start + length].tobytes()
        return len(self._data) - length, length

    def indexes(self) -> tuple[OffsetIndex, ColumnIndex]:
        """Return the indexes of the pages."""
        locations = np.array(self._locations, np.int64)
        counts = np.maximum(np.array(self._counts, np.int64), UNKNOWN)
        bounds = np.array(self._bounds, np.int64)
        data = np.frombuffer(bytes(self._data) + bytes(SLACK), np.uint8)
        index = ColumnIndex(
            data, np.zeros(len(counts), np.bool_), bounds[:, :2], bounds[:, 2:], counts[:, 0], counts[:, 1]
        )
        return OffsetIndex(locations, np.array(self._needs_dictionary, np.int8)), index
