"""FileMetaData as far as a read needs it: schema elements, row groups, key-value metadata, column orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.errors import InvalidFileError
from numparq.format.thrift.decode import Record, read_record, root_record
from numparq.format.thrift.idl import load_idl
from numparq.format.thrift.layout import RecordLayout, ThriftLayout, thrift_layout
from numparq.util.bounded_cache import BoundedCache, fork_safe_lru_cache
from numparq.util.pluralize import agree_noun, pluralize

from .column_chunks import ColumnChunks

if TYPE_CHECKING:
    from numparq.format.encryption import FileDecryption

_SHARED_SCHEMA_BYTES = 64 << 10  # larger schemas are not cached
_MOST_SHARED = 64

MAX_ROWS = 1 << 48
_END_BYTES = (64 << 10) - 8  # of FileMetaData, read with the end of the file
_ELEMENT_BYTES = 40  # of a schema element: its bytes, and its place among the columns
# (largest footer in bytes, number cached); a parsed footer takes ten times its bytes. A dataset that is read in turn
# needs all its footers in the cache: with fewer, the LRU has always dropped the next one. Larger footers of local files
# are in the cache of files (`read_footer`).
_SHARED_BYTES = (16 << 10, 128), (128 << 10, 16)
_MAX_CACHED = 64
_FIELDS = ("version", "schema", "row_groups.num_rows", "row_groups.columns.@", "key_value_metadata", "created_by")
_OPTIONAL_FIELDS = ("column_orders",)


def _of_bytes(data: bytes) -> Footer:
    return Footer(np.frombuffer(data, np.uint8), len(data))


_SHARED = tuple((most_bytes, fork_safe_lru_cache(count)(_of_bytes)) for most_bytes, count in _SHARED_BYTES)


class SchemaElements:
    """Immutable schema elements of a footer.

    Attributes
    ----------
    schema_records : int64 array, (elements, words)
        Records of the elements.
    schema_layout : RecordLayout
        Layout of these records.
    is_leaf : bool array
        Mask of the elements with a physical type and no children.
    num_leaves : int
        Number of leaf columns.
    content : bytes
        The footer's bytes up to the last string of the schema.
    is_cached : bool
        Whether the instance is cached and shared by all footers with the same schema.
    """

    def __init__(self, layout: ThriftLayout, records: np.ndarray, content: bytes, is_shared: bool) -> None:
        self.schema_records = records
        self.schema_layout: RecordLayout = layout.record_layout("schema")
        self.is_cached = is_shared
        self.content = content
        has_type = records[:, 0] & layout.bit("schema.type") != 0
        self.is_leaf = has_type & (records[:, layout.slot("schema.num_children")] <= 0)
        self.is_leaf[:1] = False  # the root
        self.num_leaves = int(np.count_nonzero(self.is_leaf))

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle_elements, (self.schema_records.tobytes(), self.content)

    def text(self, position: int, length: int) -> str:
        """Return a string of the schema by its position in the footer; invalid UTF-8 becomes lone surrogates."""
        return self.binary(position, length).decode("utf-8", "surrogateescape")

    def binary(self, position: int, length: int) -> bytes:
        """Return bytes of the schema by their position in the footer; none for position -1."""
        return self.content[position : position + length] if position >= 0 else b""


def shared_schema_elements(layout: ThriftLayout, records: np.ndarray, data: np.ndarray) -> SchemaElements:
    """Return the schema elements of a footer, one cached instance for equal records and strings unless they are large.

    `records` is int64 of shape (elements, words); `data` is the footer (uint8).
    """
    # All strings end before those of the last element do. In a union a string's words may be numbers instead: then the
    # key has too many bytes, never too few.
    last = records[-1].tolist() if len(records) else []
    content = data[: max((last[word] + last[word + 1] for word in _texts(layout) if last), default=0)].tobytes()
    if records.nbytes + len(content) > _SHARED_SCHEMA_BYTES:
        return SchemaElements(layout, records, content, False)
    return _shared(layout, records.tobytes(), content)


def _unpickle_elements(records: bytes, content: bytes) -> SchemaElements:
    layout = thrift_layout("FileMetaData", *_FIELDS, *_OPTIONAL_FIELDS)
    words = layout.record_layout("schema").words
    table = np.frombuffer(records, np.int64).reshape(-1, words)
    return shared_schema_elements(layout, table, np.frombuffer(content, np.uint8))


@lru_cache(maxsize=_MOST_SHARED)
def _shared(layout: ThriftLayout, records: bytes, content: bytes) -> SchemaElements:
    words = layout.record_layout("schema").words
    return SchemaElements(layout, np.frombuffer(records, np.int64).reshape(-1, words), content, True)


@lru_cache(maxsize=4)
def _texts(layout: ThriftLayout) -> list[int]:
    """Return the words of a SchemaElement record that hold the position of a string."""

    def within(record: RecordLayout, first: int) -> list[int]:
        found = [first + slot.word for slot in record.slots.values() if slot.field.kind in ("binary", "string")]
        inner = [slot for slot in record.slots.values() if slot.field.kind == "struct" and slot.record is not None]
        return found + [word for slot in inner if slot.record for word in within(slot.record, first + slot.word)]

    return within(layout.record_layout("schema"), 0)


class KeyValues(Mapping[str, bytes]):
    """Key-value metadata of a footer, read-only; values are copied only when they are looked up.

    The first of equal keys counts; a key without a value maps to empty bytes.
    """

    def __init__(self, data: memoryview, places: Mapping[str, tuple[int, int]]) -> None:
        self._data = data
        self._places = places  # position and length of each value

    def __getitem__(self, key: str) -> bytes:
        position, length = self._places[key]
        return bytes(self._data[position : position + length]) if position >= 0 else b""

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"KeyValues({self.sizes()})"

    def view(self, key: str) -> memoryview:
        """Return a value that exists, without a copy."""
        position, length = self._places[key]
        return self._data[position : position + length]

    def text(self, key: str) -> str | None:
        """Return a value decoded as UTF-8, with replacement characters for other bytes, without a copy of its bytes."""
        position, length = self._places.get(key, (-1, 0))
        return str(self._data[position : position + length], "utf-8", "replace") if position >= 0 else None

    def sizes(self) -> dict[str, int]:
        """Return the number of bytes of each value."""
        return {key: max(length, 0) for key, (_, length) in self._places.items()}


class Footer:
    """FileMetaData as far as a read needs it; InvalidFileError if the bytes are damaged or inconsistent.

    Attributes
    ----------
    data : uint8 array
        FileMetaData in the first `length` bytes; positions in records refer to it.
    row_group_num_rows : int64 array
        Rows of each row group.
    schema_elements : SchemaElements
        Schema elements, shared by footers with the same schema.
    chunks : ColumnChunks
        Column chunk metadata; -1 where a number is absent.
    cache : BoundedCache
        Values derived from the footer alone, for later reads.
    plain_schema : Schema or None
        Schema that `footer_schema` makes of the footer alone, kept for later reads.
    schema_key : SchemaKey or None
        Key of the columns that `numparq.dataset` makes of the footer alone, kept for later reads.
    data_bounds : int64 array, (row groups, 2), or None
        Of joined files: where the file of each row group begins, and where the file's data end, counted in the file.
    keys : FileDecryption or None
        Keys of an encrypted file; None: it is not encrypted, or opened without keys.
    """

    data_bounds: np.ndarray | None = None
    keys: FileDecryption | None = None

    def __init__(self, data: np.ndarray, length: int) -> None:
        self.data = data
        self.length = length
        self._layout, self._words = _read(data, length)
        self._bytes = memoryview(data)  # type: ignore[arg-type]
        self.schema_elements: SchemaElements = shared_schema_elements(self._layout, self._list("schema"), data[:length])
        groups = self._list("row_groups")
        self.row_group_num_rows = groups[:, self._layout.slot("row_groups.num_rows")]
        self._check_row_groups(groups)
        self.chunks = ColumnChunks(data, length, self._chunk_starts(groups))
        self.cache = BoundedCache(_MAX_CACHED)
        self.plain_schema: Any = None
        self.schema_key: Any = None

    def _list(self, path: str) -> np.ndarray:
        """Return the records of a list of structs: a view of shape (elements, words)."""
        slot, words = self._layout.slot(path), self._layout.record_layout(path).words
        first, count = self._words[slot : slot + 2].tolist()
        first = max(first, 0)
        return self._words[first : first + count * words].reshape(count, words)

    @cached_property
    def end_digest(self) -> bytes:
        """Hash of the end of FileMetaData as stored, as `digest_end` returns it."""
        return digest_end(self.data[: self.length])

    @cached_property
    def content_digest(self) -> bytes:
        """Hash of FileMetaData as stored."""
        import xxhash

        return xxhash.xxh3_128_digest(self.data[: self.length].data)

    @property
    def num_bytes(self) -> int:
        """Estimate of the bytes in memory, with what reads have derived so far."""
        sizes = self.key_value_metadata.sizes()
        derived = sizes.get("pandas", 0) + sizes.get("ARROW:schema", 0) * 3 // 4  # base64
        derived += _ELEMENT_BYTES * len(self.schema_records)
        if self.plain_schema is not None:
            derived += self.plain_schema.num_bytes
        return self.length + self._words.nbytes + self.chunks.num_bytes + derived

    @property
    def num_leaves(self) -> int:
        """Number of leaf columns, and of column chunks in each row group."""
        return self.schema_elements.num_leaves

    @property
    def schema_records(self) -> np.ndarray:
        """Records of the schema elements: int64, shape (elements, words)."""
        return self.schema_elements.schema_records

    @property
    def schema_layout(self) -> RecordLayout:
        """Layout of the schema records."""
        return self.schema_elements.schema_layout

    @property
    def is_leaf(self) -> np.ndarray:
        """Mask of the schema elements with a physical type and no children (bool array)."""
        mask: np.ndarray = self.schema_elements.is_leaf
        return mask

    def _check_row_groups(self, groups: np.ndarray) -> None:
        counts = groups[:, self._layout.slot("row_groups.columns") + 1].tolist()
        if counts.count(self.num_leaves) < len(counts):
            group = next(place for place, count in enumerate(counts) if count != self.num_leaves)
            raise InvalidFileError(
                f"the row group has {counts[group]} {agree_noun(counts[group], 'column chunk')}, but the "
                f"schema has {self.num_leaves} {agree_noun(self.num_leaves, 'leaf column')}",
                row_group=group,
            )
        rows = self.row_group_num_rows.tolist()
        if rows and not 0 <= min(rows) <= max(rows) <= MAX_ROWS:
            group = next(place for place, count in enumerate(rows) if not 0 <= count <= MAX_ROWS)
            raise InvalidFileError(
                f"the row group claims {pluralize(rows[group], 'row')}, not 0 to 2**48", row_group=group
            )
        total = sum(rows)
        if total > MAX_ROWS:
            raise InvalidFileError(f"the row groups claim {pluralize(total, 'row')} in total, above the limit of 2**48")

    def _chunk_starts(self, groups: np.ndarray) -> np.ndarray:
        """Return the offsets of the ColumnChunk structs, by row group and column."""
        words = self._layout.record_layout("row_groups.columns").words
        firsts = groups[:, self._layout.slot("row_groups.columns")] + self._layout.slot("row_groups.columns.@")
        starts: np.ndarray = self._words[firsts[:, None] + np.arange(self.num_leaves) * words]
        return starts

    def text(self, position: int, length: int) -> str:
        """Return a string of the footer; bytes that are not UTF-8 become lone surrogates."""
        return str(self._bytes[position : position + length], "utf-8", "surrogateescape")

    def binary(self, position: int, length: int) -> bytes:
        """Return bytes of the footer; none for position -1."""
        return bytes(self._bytes[position : position + length]) if position >= 0 else b""

    @cached_property
    def created_by(self) -> str | None:
        """The writer's name and version as stored, or None."""
        position, length = self._words[self._layout.slot("created_by") :][:2].tolist()
        return self.text(position, length) if position >= 0 else None

    @cached_property
    def key_value_metadata(self) -> KeyValues:
        """The file's keys and values."""
        record = self._layout.record_layout("key_value_metadata")
        pairs = self._list("key_value_metadata")
        key, value = record.slots["key"].word, record.slots["value"].word
        places: dict[str, tuple[int, int]] = {}
        for pair in pairs.tolist():
            places.setdefault(self.text(pair[key], pair[key + 1]), (pair[value], pair[value + 1]))
        return KeyValues(self._bytes, places)

    @cached_property
    def column_order_masks(self) -> bytes:
        """Bytes that determine `column_orders`."""
        return self._list("column_orders")[:, 0].tobytes() if "column_orders" in self._layout.record.slots else b""

    @cached_property
    def column_orders(self) -> list[str | None] | None:
        """Member of the ColumnOrder union for each leaf column, None for an unknown member.

        None as a whole if the file does not declare one for each leaf column.
        """
        if "column_orders" not in self._layout.record.slots:
            return None
        record = self._layout.record_layout("column_orders")
        masks = self._list("column_orders")[:, 0].tolist()
        names = {1 << field.id: field.name for field in record.struct.fields}
        return [names.get(mask) for mask in masks] if len(masks) == self.num_leaves else None

    @cached_property
    def record(self) -> Record:
        """The complete FileMetaData."""
        self.chunks.open_all()
        whole = thrift_layout("FileMetaData")
        return root_record(whole, read_record(self.data, self.length, whole), self.data)


def digest_end(data: np.ndarray) -> bytes:
    """Return a hash of the last 64 KiB of FileMetaData, without the 8 bytes that follow it in a file."""
    import xxhash

    return xxhash.xxh3_128_digest(data[-_END_BYTES:].data)


def _read(data: np.ndarray, length: int) -> tuple[ThriftLayout, np.ndarray]:
    """Read the projected fields; retry without the optional ones if these are damaged."""
    try:
        wanted = thrift_layout("FileMetaData", *_FIELDS, *_OPTIONAL_FIELDS)
        return wanted, read_record(data, length, wanted)
    except InvalidFileError:
        wanted = thrift_layout("FileMetaData", *_FIELDS)
        return wanted, read_record(data, length, wanted)


def parse_footer(data: np.ndarray, length: int) -> Footer:
    """Return the footer in the first `length` bytes; small footers with equal bytes share one cached instance."""
    for most_bytes, made_once in _SHARED:
        if length <= most_bytes:
            return made_once(data[:length].tobytes())
    return Footer(data, length)


def warm_up() -> None:
    """Load the tables that the first read would otherwise load."""
    load_idl()
