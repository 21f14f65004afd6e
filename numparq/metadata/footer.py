"""The footer: found at the end of a file, and read as far as a read of the file needs it.

FileMetaData is read as a projection (see `layout`): the facts of all column chunks stay words of one array, and are
looked up by row group and column. Everything else in the footer is there on demand, as `Footer.full`.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..errors import NEED_ROOM, InvalidFileError, LimitError, UnsupportedError, check
from ..io.source import Source
from ..kernels import kernels
from ..kernels.compact_wire import S_ROOM, S_TOP, STACK_WORDS
from .layout import Layout, layout

if TYPE_CHECKING:
    from .records import Record

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
TAIL_BYTES = 64 << 10  # read at once from the end of a file, in the hope that the footer is not longer
SLACK = 16
_SMALLEST_FILE = 12
_MOST_WORDS = 1 << 31

_CHUNK = "row_groups.columns."
_FACTS = {
    "type": "meta_data.type",
    "codec": "meta_data.codec",
    "num_values": "meta_data.num_values",
    "total_uncompressed_size": "meta_data.total_uncompressed_size",
    "total_compressed_size": "meta_data.total_compressed_size",
    "data_page_offset": "meta_data.data_page_offset",
    "dictionary_page_offset": "meta_data.dictionary_page_offset",
    "null_count": "meta_data.statistics.null_count",
    "unencoded_byte_array_data_bytes": "meta_data.size_statistics.unencoded_byte_array_data_bytes",
}
# Facts that are no more than whether fields of a chunk are there.
_PRESENCE = {
    "has_meta_data": ("meta_data",),
    "has_file_path": ("file_path",),
    "is_encrypted": ("crypto_metadata", "encrypted_column_metadata"),
}
_WANTED = (
    "version", "schema", "row_groups.num_rows", "key_value_metadata", "created_by",
    *(_CHUNK + path for path in _FACTS.values()),
)  # fmt: skip


@lru_cache(maxsize=1)
def _footer_layout() -> Layout:
    return layout("FileMetaData", *_WANTED)


class ChunkFacts:
    """One fact of all column chunks: ``facts[row_group, column]``, with ints or arrays as NumPy broadcasts them."""

    def __init__(self, words: np.ndarray, firsts: np.ndarray, step: int, slot: int, mask: int = 0) -> None:
        self._words = words
        self._firsts = firsts
        self._step = step
        self._slot = slot
        self._mask = mask

    def __getitem__(self, place: tuple) -> np.ndarray:
        row_group, column = place
        words = self._words[self._firsts[row_group] + np.asarray(column) * self._step + self._slot]
        return words & self._mask if self._mask else words


class Footer:
    """What a read needs of FileMetaData.

    Parameters
    ----------
    data : uint8 array
        The bytes of FileMetaData, with SLACK bytes behind that may be loaded.
    length : int
        Their number, without the slack.

    Attributes
    ----------
    data : uint8 array
        As given; positions in records are positions in it.
    row_group_num_rows : int64 array
        Rows of each row group.
    schema_records : int64 array, (elements, words)
        The records of the SchemaElements, laid out as ``schema_layout`` says.
    chunks : dict of str to ChunkFacts
        The facts of the column chunks; -1 where a number is absent.

    Raises
    ------
    InvalidFileError
        When the bytes are not a FileMetaData, or one that contradicts itself.
    """

    def __init__(self, data: np.ndarray, length: int) -> None:
        self.data = data
        self.length = length
        self._layout = _footer_layout()
        self._words = read_record(data, length, self._layout)
        self.schema_layout = self._layout.record_of("schema")
        self.schema_records = self._list("schema", self.schema_layout.words)
        groups = self._list("row_groups", self._layout.record_of("row_groups").words)
        self.row_group_num_rows = groups[:, self._layout.slot("row_groups.num_rows")]
        self._check_row_groups(groups)
        self.chunks = self._chunk_facts(groups)

    def _list(self, path: str, words: int) -> np.ndarray:
        slot = self._layout.slot(path)
        first, count = max(int(self._words[slot]), 0), int(self._words[slot + 1])
        return self._words[first : first + count * words].reshape(count, words)

    def _check_row_groups(self, groups: np.ndarray) -> None:
        num_leaves = int((self.schema_records[1:, self.schema_layout.slots["num_children"].word] <= 0).sum())
        counts = groups[:, self._layout.slot("row_groups.columns") + 1]
        if (counts != num_leaves).any():
            group = int(np.argmax(counts != num_leaves))
            raise InvalidFileError(
                f"the row group has {counts[group]} column chunks where the schema has {num_leaves} leaf columns",
                row_group=group,
            )
        bad = (self.row_group_num_rows < 0) | (self.row_group_num_rows > 1 << 48)
        if bad.any():
            group = int(np.argmax(bad))
            raise InvalidFileError(f"the row group claims {self.row_group_num_rows[group]} rows", row_group=group)

    def _chunk_facts(self, groups: np.ndarray) -> dict[str, ChunkFacts]:
        firsts = np.ascontiguousarray(groups[:, self._layout.slot("row_groups.columns")])
        step = self._layout.record_of("row_groups.columns").words
        facts = {name: ChunkFacts(self._words, firsts, step, self._layout.slot(_CHUNK + path))
                 for name, path in _FACTS.items()}  # fmt: skip
        for name, fields in _PRESENCE.items():
            mask = sum(self._layout.bit(_CHUNK + field) for field in fields)
            facts[name] = ChunkFacts(self._words, firsts, step, 0, mask)
        return facts

    def text(self, position: int, length: int) -> str:
        """Give a string of the footer; bytes that are not UTF-8 are kept as lone surrogates."""
        return self.bytes(position, length).decode("utf-8", "surrogateescape")

    def bytes(self, position: int, length: int) -> bytes:
        """Give bytes of the footer; none for a position of -1."""
        return self.data[position : position + length].tobytes() if position >= 0 else b""

    @property
    def created_by(self) -> str | None:
        """The writer, as it calls itself."""
        position, length = self._words[self._layout.slot("created_by") :][:2].tolist()
        return self.text(position, length) if position >= 0 else None

    @cached_property
    def key_value_metadata(self) -> dict[str, bytes]:
        """The file's own keys and values; the first of equal keys counts, a key without a value has none."""
        record = self._layout.record_of("key_value_metadata")
        pairs = self._list("key_value_metadata", record.words)
        key, value = record.slots["key"].word, record.slots["value"].word
        found: dict[str, bytes] = {}
        for pair in pairs.tolist():
            found.setdefault(self.text(pair[key], pair[key + 1]), self.bytes(pair[value], pair[value + 1]))
        return found

    @cached_property
    def full(self) -> Record:
        """FileMetaData with everything in it."""
        from .records import record

        whole = layout("FileMetaData")
        return record(whole, read_record(self.data, self.length, whole), self.data)


def read_record(data: np.ndarray, length: int, wanted: Layout) -> np.ndarray:
    """Read a struct and all that its layout wants of it.

    Parameters
    ----------
    data : uint8 array
        The bytes, with SLACK behind.
    length : int
        Bytes that count.
    wanted : Layout
        The struct, or a projection of it.

    Returns
    -------
    int64 array
        The arena: the root's record, then the elements of lists.

    Raises
    ------
    InvalidFileError
        When the bytes are not such a struct.
    LimitError
        When it takes more memory than there is.
    """
    stack = np.zeros(STACK_WORDS, np.int64)
    room = wanted.words + length + 1024
    while True:
        try:
            arena = np.empty(room, np.int64)
        except MemoryError:
            raise LimitError("the footer takes more memory than there is") from None
        stack[S_TOP], stack[S_ROOM] = wanted.words, room
        status = kernels.read_thrift(data, 0, length, wanted.table, arena, 0, stack)
        if status != NEED_ROOM or room >= _MOST_WORDS:
            check(status, InvalidFileError)
            return arena
        room *= 4


def read_tail(source: Source) -> tuple[Footer, int]:
    """Read the footer of a file.

    Parameters
    ----------
    source : Source
        The file.

    Returns
    -------
    footer : Footer
    start : int
        Where it begins: no page lies behind.

    Raises
    ------
    InvalidFileError
        When the file is no Parquet file, is cut off, or has a damaged footer.
    UnsupportedError
        When its footer is encrypted.
    """
    if source.size < _SMALLEST_FILE:
        raise InvalidFileError(
            f"the file has {source.size} bytes, and the smallest Parquet file has {_SMALLEST_FILE}: it is cut off, or no "
            "Parquet file"
        )
    tail = np.empty(min(source.size, TAIL_BYTES), np.uint8)
    source.read_into(source.size - len(tail), tail)
    length = _footer_length(source, tail)
    start = source.size - 8 - length
    if length + 8 <= len(tail):
        data = tail[len(tail) - 8 - length :]
    else:
        data = np.empty(length + 8, np.uint8)
        data[length + 8 - len(tail) :] = tail
        source.read_into(start, data[: length + 8 - len(tail)])
    data = np.concatenate([data, np.zeros(SLACK, np.uint8)])
    try:
        return Footer(data, length), start
    except InvalidFileError as error:
        error.message = f"the footer is damaged: {error.message}"
        raise


def _footer_length(source: Source, tail: np.ndarray) -> int:
    """Check both magic numbers and the length between them."""
    last = tail[-4:].tobytes()
    if last == ENCRYPTED_MAGIC:
        raise UnsupportedError("the footer is encrypted, which numparq does not read yet")
    if last != MAGIC:
        begins = source_head(source) == MAGIC
        raise InvalidFileError(
            f"the file ends with {last!r} where a Parquet file has {MAGIC!r}: "
            + ("it begins like one, so it was cut off, or never finished" if begins else "it is no Parquet file")
        )
    if source_head(source) != MAGIC:
        raise InvalidFileError(f"the file does not begin with {MAGIC!r}: it is damaged, or no Parquet file")
    length = int.from_bytes(tail[-8:-4].tobytes(), "little")
    if length > source.size - _SMALLEST_FILE:
        raise InvalidFileError(
            f"the footer claims {length:,} bytes, more than the file of {source.size:,} has room for: its end is damaged"
        )
    return length


def source_head(source: Source) -> bytes:
    """Read the first four bytes."""
    head = np.empty(4, np.uint8)
    source.read_into(0, head)
    return head.tobytes()
