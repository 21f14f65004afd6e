"""A reader of Flatbuffers, small and bounds-checked: enough to walk tables, vectors and strings by field number.

The format, in short: everything is little-endian. A table begins with a signed 32-bit distance back to its vtable; a
vtable holds 16-bit numbers: its own size, the table's size, then for each field its offset within the table (0 where
the field is absent). Strings, vectors and tables that a field refers to are reached through an unsigned 32-bit
distance forward from the field. Vectors and strings begin with a 32-bit length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_U8 = struct.Struct("<B")
_I16 = struct.Struct("<h")
_U16 = struct.Struct("<H")
_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")


class FlatbufferError(ValueError):
    """The bytes are not the Flatbuffer they should be."""


def _load(kind: struct.Struct, data: bytes, position: int) -> int:
    if position < 0 or position + kind.size > len(data):
        raise FlatbufferError("a Flatbuffer refers to bytes outside of it")
    return kind.unpack_from(data, position)[0]


class Table:
    """One table of a Flatbuffer.

    Parameters
    ----------
    data : bytes
        The whole Flatbuffer.
    position : int
        Where the table begins in it.

    Raises
    ------
    FlatbufferError
        Here and in every method, when something lies outside of `data`.
    """

    __slots__ = ("_data", "_num_fields", "_position", "_vtable")

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position
        self._vtable = position - _load(_I32, data, position)
        self._num_fields = (_load(_U16, data, self._vtable) - 4) // 2

    @classmethod
    def root(cls, data: bytes, start: int = 0) -> Table:
        """Give the root table of the Flatbuffer that begins at `start`."""
        return cls(data, start + _load(_U32, data, start))

    @property
    def data(self) -> bytes:
        """The whole Flatbuffer."""
        return self._data

    def _field(self, number: int) -> int:
        """Give where field `number` lies, or 0 when it is absent."""
        if number >= self._num_fields:
            return 0
        offset = _load(_U16, self._data, self._vtable + 4 + 2 * number)
        return self._position + offset if offset else 0

    def _scalar(self, kind: struct.Struct, number: int, default: int) -> int:
        position = self._field(number)
        return _load(kind, self._data, position) if position else default

    def uint8(self, number: int, default: int = 0) -> int:
        """Give an unsigned byte (a bool, a union's type)."""
        return self._scalar(_U8, number, default)

    def int16(self, number: int, default: int = 0) -> int:
        """Give a signed 16-bit integer (most enums)."""
        return self._scalar(_I16, number, default)

    def int32(self, number: int, default: int = 0) -> int:
        """Give a signed 32-bit integer."""
        return self._scalar(_I32, number, default)

    def _target(self, number: int) -> int:
        position = self._field(number)
        return position + _load(_U32, self._data, position) if position else 0

    def place(self, number: int) -> int:
        """Give where that begins which a field refers to, counted from the first byte of the data; 0 when absent."""
        return self._target(number)

    def table(self, number: int) -> Table | None:
        """Give the table (or the union's value, if it is one) that a field refers to; None when absent."""
        position = self._target(number)
        return Table(self._data, position) if position else None

    def text(self, number: int, limit: int) -> str | None:
        """Give a string of at most `limit` bytes; None when absent."""
        position = self._target(number)
        if not position:
            return None
        length = _load(_U32, self._data, position)
        end = position + 4 + length
        if length > limit or end > len(self._data):
            raise FlatbufferError("a string of a Flatbuffer is too long")
        return self._data[position + 4 : end].decode("utf-8", "replace")

    def vector_length(self, number: int) -> int:
        """Give how many items a vector of tables has; 0 when it is absent."""
        position = self._target(number)
        if not position:
            return 0
        length = _load(_U32, self._data, position)
        if position + 4 + 4 * length > len(self._data):
            raise FlatbufferError("a vector of a Flatbuffer is too long")
        return length

    def vector_item(self, number: int, index: int) -> Table:
        """Give one table of a vector of tables; `index` is below `vector_length`."""
        position = self._target(number) + 4 + 4 * index
        return Table(self._data, position + _load(_U32, self._data, position))

    def vector_items(self, number: int, limit: int) -> Iterator[Table]:
        """Give the first `limit` tables of a vector of tables."""
        for index in range(min(self.vector_length(number), limit)):
            yield self.vector_item(number, index)
