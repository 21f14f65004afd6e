"""Flatbuffers as far as Arrow schemas need them: bounds-checked tables, vectors and strings."""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_U8 = struct.Struct("<B")
_I16 = struct.Struct("<h")
_U16 = struct.Struct("<H")
_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")

_SIZES = {"B": 1, "h": 2, "i": 4, "q": 8}
_REFERENCE = 4
ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class ScalarField:
    """A number in a table; `code` is a `struct` code (``B h i q``)."""

    code: str
    value: int


@dataclass(frozen=True, slots=True)
class TableFields:
    """A table to write: values by field number; None is absent."""

    fields: dict[int, FlatbufferValue | None]


@dataclass(frozen=True, slots=True)
class AppendedPosition:
    """A reference to a position in the bytes appended to the Flatbuffer."""

    position: int


FlatbufferValue = ScalarField | str | TableFields | list[TableFields] | AppendedPosition


class FlatbufferError(ValueError):
    """The bytes are not a valid Flatbuffer."""


class Base64Bytes:
    """Bytes in base64 without line breaks: only those read are decoded, until so many were that all are."""

    _MOST_READS = 2048

    def __init__(self, text: memoryview) -> None:
        self._text = text
        self._length = len(text) // 4 * 3 - bytes(text[-2:]).count(b"=")
        self._reads = 0
        self._decoded: bytes | None = None

    def __len__(self) -> int:
        return self._length

    def __bytes__(self) -> bytes:
        if self._decoded is None:
            self._decoded = binascii.a2b_base64(self._text)
        return self._decoded

    def __getitem__(self, item: slice) -> bytes:
        self._reads += 1
        if self._decoded is not None or self._reads > self._MOST_READS:
            return bytes(self)[item]
        start, stop, _ = item.indices(self._length)
        first = start // 3
        return binascii.a2b_base64(self._text[4 * first : -(-stop // 3) * 4])[start - 3 * first : stop - 3 * first]


def _load(kind: struct.Struct, data: bytes | Base64Bytes, position: int) -> int:
    if position < 0 or position + kind.size > len(data):
        raise FlatbufferError("a Flatbuffer refers to bytes outside of it")
    number: int = kind.unpack(data[position : position + kind.size])[0]
    return number


class FlatbufferTable:
    """A table at a position of a Flatbuffer; every access outside `data` raises FlatbufferError."""

    __slots__ = ("_data", "_num_fields", "_position", "_vtable")

    def __init__(self, data: bytes | Base64Bytes, position: int) -> None:
        self._data = data
        self._position = position
        self._vtable = position - _load(_I32, data, position)
        self._num_fields = (_load(_U16, data, self._vtable) - 4) // 2

    @classmethod
    def root(cls, data: bytes | Base64Bytes, start: int = 0) -> FlatbufferTable:
        """Return the root table of the Flatbuffer that begins at `start`."""
        return cls(data, start + _load(_U32, data, start))

    @property
    def data(self) -> bytes:
        """The whole Flatbuffer."""
        return bytes(self._data)

    def _field(self, number: int) -> int:
        """Return the position of a field, or 0 if it is absent."""
        if number >= self._num_fields:
            return 0
        offset = _load(_U16, self._data, self._vtable + 4 + 2 * number)
        return self._position + offset if offset else 0

    def _scalar(self, kind: struct.Struct, number: int, default: int) -> int:
        position = self._field(number)
        return _load(kind, self._data, position) if position else default

    def uint8(self, number: int, default: int = 0) -> int:
        """Return an unsigned byte (bool, union type)."""
        return self._scalar(_U8, number, default)

    def int16(self, number: int, default: int = 0) -> int:
        """Return a signed 16-bit integer (most enums)."""
        return self._scalar(_I16, number, default)

    def int32(self, number: int, default: int = 0) -> int:
        """Return a signed 32-bit integer."""
        return self._scalar(_I32, number, default)

    def _target(self, number: int) -> int:
        position = self._field(number)
        return position + _load(_U32, self._data, position) if position else 0

    def field_position(self, number: int) -> int:
        """Return the position in the data that a field refers to; 0 if absent."""
        return self._target(number)

    def table(self, number: int) -> FlatbufferTable | None:
        """Return the table (or union value) that a field refers to; None if absent."""
        position = self._target(number)
        return FlatbufferTable(self._data, position) if position else None

    def text(self, number: int, limit: int) -> str | None:
        """Return a string of at most `limit` bytes; None if absent."""
        position = self._target(number)
        if not position:
            return None
        length = _load(_U32, self._data, position)
        end = position + 4 + length
        if length > limit or end > len(self._data):
            raise FlatbufferError("a string of a Flatbuffer is too long")
        return self._data[position + 4 : end].decode("utf-8", "replace")

    def vector_length(self, number: int) -> int:
        """Return the length of a vector of tables; 0 if absent."""
        position = self._target(number)
        if not position:
            return 0
        length = _load(_U32, self._data, position)
        if position + 4 + 4 * length > len(self._data):
            raise FlatbufferError("a vector of a Flatbuffer is too long")
        return length

    def vector_item(self, number: int, index: int) -> FlatbufferTable:
        """Return a table of a vector; `index` is below `vector_length`."""
        position = self._target(number) + 4 + 4 * index
        return FlatbufferTable(self._data, position + _load(_U32, self._data, position))

    def vector_items(self, number: int, limit: int) -> Iterator[FlatbufferTable]:
        """Yield the first `limit` tables of a vector."""
        for index in range(min(self.vector_length(number), limit)):
            yield self.vector_item(number, index)


def build_flatbuffer(root: TableFields, appended: bytes = b"") -> bytes:
    """Encode a Flatbuffer, padded to a multiple of 8 bytes, with `appended` appended for each `AppendedPosition`."""
    out = bytearray(_REFERENCE)
    waiting: list[tuple[int, FlatbufferValue]] = [(0, root)]  # position and target of each open reference
    places: list[tuple[int, AppendedPosition]] = []
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, AppendedPosition):
            places.append((place, value))
            continue
        if isinstance(value, TableFields):
            start = _table(out, value, waiting)
        elif isinstance(value, list):
            start = _vector(out, value, waiting)
        else:
            assert isinstance(value, str)
            start = _text(out, value)
        struct.pack_into("<I", out, place, start - place)
    _pad(out, ALIGNMENT)
    for place, value in places:
        struct.pack_into("<I", out, place, len(out) + value.position - place)
    out += appended
    _pad(out, ALIGNMENT)
    return bytes(out)


def _pad(out: bytearray, alignment: int, offset: int = 0) -> None:
    out += bytes(-(len(out) + offset) % alignment)


def _table(out: bytearray, table: TableFields, waiting: list[tuple[int, FlatbufferValue]]) -> int:
    present = [(number, value) for number, value in table.fields.items() if value is not None]
    shape = tuple((number, value.code if type(value) is ScalarField else "") for number, value in present)
    vtable, places, size = _table_layout(shape)
    _pad(out, ALIGNMENT, len(vtable))
    out += vtable
    start = len(out)
    out += len(vtable).to_bytes(4, "little") + bytes(size - 4)
    for (_, value), place in zip(present, places, strict=True):
        if type(value) is ScalarField:
            struct.pack_into("<" + value.code, out, start + place, value.value)
        else:
            waiting.append((start + place, value))
    return start


@lru_cache(maxsize=256)
def _table_layout(shape: tuple[tuple[int, str], ...]) -> tuple[bytes, tuple[int, ...], int]:
    """Return vtable, field offsets and size of a table, given (number, code) per field; "" for references."""
    sizes = {number: _SIZES.get(code, _REFERENCE) for number, code in shape}
    places, end = {}, 4  # a table begins with the offset of its vtable
    for number in sorted(sizes, key=lambda number: -sizes[number]):
        end += -end % sizes[number]
        places[number] = end
        end += sizes[number]
    count = max(sizes, default=-1) + 1
    vtable = struct.pack(f"<{2 + count}H", 4 + 2 * count, end, *(places.get(number, 0) for number in range(count)))
    return vtable, tuple(places[number] for number, _ in shape), end


def _vector(out: bytearray, tables: list[TableFields], waiting: list[tuple[int, FlatbufferValue]]) -> int:
    _pad(out, _REFERENCE)
    start = len(out)
    out += struct.pack("<I", len(tables)) + bytes(_REFERENCE * len(tables))
    waiting += [(start + 4 + _REFERENCE * number, table) for number, table in enumerate(tables)]
    return start


def _text(out: bytearray, text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    _pad(out, 4)
    start = len(out)
    out += struct.pack("<I", len(data)) + data + b"\x00"
    return start
