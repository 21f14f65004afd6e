"""The footer: found at the end of a file, and read as far as a read of the file needs it.

FileMetaData is read as a projection (see `layout`): the schema stays words of one array, and of a column chunk there
is no more than where it begins (see `chunks`). Everything else in the footer is there on demand, as `Footer.full`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ..errors import InvalidFileError, LimitError, UnsupportedError
from ..io.source import BytesSource, Source
from ..io.tail import TailSource
from ..remembered import Kept, remembered
from .chunks import ColumnChunks
from .decode import read_record
from .idl import load_idl
from .layout import Layout, RecordLayout, layout
from .records import Record, record
from .schema_part import SchemaPart, schema_part

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
TAIL_BYTES = 64 << 10  # read at once from the end of a file, in the hope that the footer is not longer
_SMALLEST_FILE = 12
_MOST_ROWS = 1 << 48
# Of footers up to so many bytes, so many are kept: what is read of one takes ten times the memory. Of a table of many
# files, which are asked in turn, all have to be among them, or none is there when it is asked for again.
_SHARED_BYTES = (16 << 10, 128), (128 << 10, 16)
_MOST_KEPT = 64
_WANTED = ("version", "schema", "row_groups.num_rows", "row_groups.columns.@", "key_value_metadata", "created_by")
_HELPS = ("column_orders",)


class Footer:
    """What a read needs of FileMetaData.

    Parameters
    ----------
    data : uint8 array
        The bytes of FileMetaData.
    length : int
        Their number; `data` may have more.

    Attributes
    ----------
    data : uint8 array
        As given; positions in records are positions in it.
    row_group_num_rows : int64 array
        Rows of each row group.
    schema_part : SchemaPart
        The SchemaElements; one object for all footers that have the same.
    chunks : ColumnChunks
        The facts of the column chunks; -1 where a number is absent.
    kept : Kept
        What follows from the footer alone, for the next read.

    Raises
    ------
    InvalidFileError
        When the bytes are not a FileMetaData, or one that contradicts itself.
    """

    def __init__(self, data: np.ndarray, length: int) -> None:
        self.data = data
        self.length = length
        self._layout, self._words = _read(data, length)
        self._bytes = memoryview(data)  # type: ignore[arg-type]
        self.schema_part: SchemaPart = schema_part(self._layout, self._list("schema"), data[:length])
        groups = self._list("row_groups")
        self.row_group_num_rows = groups[:, self._layout.slot("row_groups.num_rows")]
        self._check_row_groups(groups)
        self.chunks = ColumnChunks(data, length, self._chunk_starts(groups))
        self.kept = Kept(_MOST_KEPT)

    def _list(self, path: str) -> np.ndarray:
        """Give the records of a list of structs."""
        slot, words = self._layout.slot(path), self._layout.record_of(path).words
        first, count = self._words[slot : slot + 2].tolist()
        first = max(first, 0)
        return self._words[first : first + count * words].reshape(count, words)

    @property
    def num_leaves(self) -> int:
        """Columns that hold values, which is the number of chunks in each row group."""
        return self.schema_part.num_leaves

    @property
    def schema_records(self) -> np.ndarray:
        """The records of the SchemaElements, int64 of shape (elements, words), as `schema_layout` says."""
        return self.schema_part.schema_records

    @property
    def schema_layout(self) -> RecordLayout:
        """How these records are laid out."""
        return self.schema_part.schema_layout

    @property
    def is_leaf(self) -> np.ndarray:
        """Which SchemaElements hold values: those that have a physical type, and no children; bool."""
        return self.schema_part.is_leaf

    def _check_row_groups(self, groups: np.ndarray) -> None:
        counts = groups[:, self._layout.slot("row_groups.columns") + 1].tolist()
        if counts.count(self.num_leaves) < len(counts):
            group = next(place for place, count in enumerate(counts) if count != self.num_leaves)
            raise InvalidFileError(
                f"the row group has {counts[group]} column chunks where the schema has {self.num_leaves} leaf columns",
                row_group=group,
            )
        rows = self.row_group_num_rows.tolist()
        if rows and not 0 <= min(rows) <= max(rows) <= _MOST_ROWS:
            group = next(place for place, count in enumerate(rows) if not 0 <= count <= _MOST_ROWS)
            raise InvalidFileError(f"the row group claims {rows[group]} rows", row_group=group)
        total = sum(rows)
        if total > _MOST_ROWS:
            raise InvalidFileError(f"the row groups claim {total} rows together")

    def _chunk_starts(self, groups: np.ndarray) -> np.ndarray:
        """Give where the ColumnChunk structs begin, by row group and column."""
        words = self._layout.record_of("row_groups.columns").words
        firsts = groups[:, self._layout.slot("row_groups.columns")] + self._layout.slot("row_groups.columns.@")
        return self._words[firsts[:, None] + np.arange(self.num_leaves) * words]

    def text(self, position: int, length: int) -> str:
        """Give a string of the footer; bytes that are not UTF-8 are kept as lone surrogates."""
        return str(self._bytes[position : position + length], "utf-8", "surrogateescape")

    def content(self, position: int, length: int) -> bytes:
        """Give bytes of the footer; none for a position of -1."""
        return bytes(self._bytes[position : position + length]) if position >= 0 else b""

    @cached_property
    def created_by(self) -> str | None:
        """The writer, as it calls itself."""
        position, length = self._words[self._layout.slot("created_by") :][:2].tolist()
        return self.text(position, length) if position >= 0 else None

    @cached_property
    def key_value_metadata(self) -> Mapping[str, bytes]:
        """The file's own keys and values; the first of equal keys counts, a key without a value has none.

        Nobody can change it: files with equal footers share one.
        """
        record = self._layout.record_of("key_value_metadata")
        pairs = self._list("key_value_metadata")
        key, value = record.slots["key"].word, record.slots["value"].word
        found: dict[str, bytes] = {}
        for pair in pairs.tolist():
            found.setdefault(self.text(pair[key], pair[key + 1]), self.content(pair[value], pair[value + 1]))
        return MappingProxyType(found)

    @cached_property
    def column_orders(self) -> list[str | None] | None:
        """How the values of each leaf compare: the members of the union ColumnOrder, by name; None: not known.

        None as a whole where the file does not say that of all its leaves.
        """
        if "column_orders" not in self._layout.record.slots:
            return None
        record = self._layout.record_of("column_orders")
        masks = self._list("column_orders")[:, 0].tolist()
        names = {1 << field.id: field.name for field in record.struct.fields}
        return [names.get(mask) for mask in masks] if len(masks) == self.num_leaves else None

    @cached_property
    def full(self) -> Record:
        """FileMetaData with everything in it."""
        whole = layout("FileMetaData")
        return record(whole, read_record(self.data, self.length, whole), self.data)


def _read(data: np.ndarray, length: int) -> tuple[Layout, np.ndarray]:
    """Read what is wanted; if something is wrong with what only helps to skip, without that."""
    try:
        wanted = layout("FileMetaData", *_WANTED, *_HELPS)
        return wanted, read_record(data, length, wanted)
    except InvalidFileError:
        wanted = layout("FileMetaData", *_WANTED)
        return wanted, read_record(data, length, wanted)


def footer_of(data: np.ndarray, length: int) -> Footer:
    """Give the footer that some bytes are: one and the same for equal bytes, unless these are many.

    Parameters
    ----------
    data : uint8 array
        The bytes of FileMetaData.
    length : int
        Their number; `data` may have more.

    Returns
    -------
    Footer

    Raises
    ------
    InvalidFileError
        As in `Footer`.
    """
    for most_bytes, made_once in _SHARED:
        if length <= most_bytes:
            return made_once(data[:length].tobytes())
    return Footer(data, length)


def _of_bytes(data: bytes) -> Footer:
    return Footer(np.frombuffer(data, np.uint8), len(data))


_SHARED = tuple((most_bytes, remembered(count)(_of_bytes)) for most_bytes, count in _SHARED_BYTES)


def warm_up() -> None:
    """Have the tables in the cache that the first read would otherwise make."""
    load_idl()


def keep_tail(source: Source) -> Source:
    """Read the end of a file, in the hope that the footer is not longer, and what is of use besides, in front of it.

    Parameters
    ----------
    source : Source
        The file.

    Returns
    -------
    Source
        One in front of it, that gives the last TAIL_BYTES from memory; bytes are in memory anyway, and a TailSource
        keeps as many as it was told to.
    """
    return source if isinstance(source, (BytesSource, TailSource)) else TailSource(source, min(source.size, TAIL_BYTES))


def read_tail(source: Source) -> tuple[Footer, int]:
    """Read the footer of a file, by one request, or two when it is long.

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
            f"the file has {source.size} bytes, and the smallest Parquet file has {_SMALLEST_FILE}: it is cut off, or "
            "no Parquet file"
        )
    tail = last_bytes(source)
    length = _footer_length(source, tail)
    start = source.size - 8 - length
    is_there = length <= len(tail) - 8
    data = tail[len(tail) - 8 - length : -8] if is_there else _long_footer(source, tail[:-8], start, length)
    try:
        return footer_of(data, length), start
    except InvalidFileError as error:
        error.message = f"the footer is damaged: {error.message}"
        raise


def last_bytes(source: Source) -> np.ndarray:
    """Give the last bytes of a file: TAIL_BYTES, or as many as it has or keeps; by one request, if not in memory."""
    if isinstance(source, TailSource):
        return source.tail
    count = min(source.size, TAIL_BYTES)
    kept = source.view(source.size - count, count, 0)
    if kept is not None:
        return kept
    tail = np.empty(count, np.uint8)
    source.read_into(source.size - count, tail)
    return tail


def _long_footer(source: Source, tail: np.ndarray, start: int, length: int) -> np.ndarray:
    """Give the bytes of FileMetaData where `tail` is only the end of them."""
    try:
        data = np.empty(length, np.uint8)
    except MemoryError:
        raise LimitError(f"there is not enough memory for the footer, which has {length:,} bytes") from None
    data[length - len(tail) :] = tail
    source.read_into(start, data[: length - len(tail)])
    return data


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
    # Of a remote file the head is looked at where it costs nothing: no other byte depends on it.
    if (not source.is_remote or len(tail) == source.size) and source_head(source) != MAGIC:
        raise InvalidFileError(f"the file does not begin with {MAGIC!r}: it is damaged, or no Parquet file")
    length = int.from_bytes(tail[-8:-4].tobytes(), "little")
    if length > source.size - _SMALLEST_FILE:
        raise InvalidFileError(
            f"the footer claims {length:,} bytes, more than the file of {source.size:,} has room for: its end is "
            "damaged"
        )
    return length


def source_head(source: Source) -> bytes:
    """Read the first four bytes."""
    head = np.empty(4, np.uint8)
    source.read_into(0, head)
    return head.tobytes()
