"""Decode the Thrift compact protocol tolerantly into dicts: report defects and read on."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from numparq.format.logical_type import LEGACY_NULL_TYPE
from numparq.format.thrift.idl import IdlField, load_idl
from numparq.util.pluralize import agree_verb, pluralize

_STOP, _TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(14)
_WIRE = {
    "bool": (_TRUE, _FALSE),
    "i8": (_I8,),
    "i16": (_I16,),
    "i32": (_I32,),
    "enum": (_I32,),
    "i64": (_I64,),
    "double": (_DOUBLE,),
    "binary": (_BINARY,),
    "string": (_BINARY,),
    "struct": (_STRUCT,),
    "list": (_LIST, _SET),
}
_BITS = {"i16": 16, "i32": 32, "i64": 64, "enum": 32}
_SIZES = {_I8: 1, _DOUBLE: 8, _UUID: 16}
_LEGACY_NULL_TYPE = ("ConvertedType", LEGACY_NULL_TYPE)
_MAX_SKIP_DEPTH = 64  # limit for skipped values
_MAX_DEVIATIONS = 1000

DeviationCallback = Callable[[str, str], None]  # check, message


class ThriftDecodeError(ValueError):
    """Bytes that cannot be decoded as a struct of the compact protocol.

    Attributes
    ----------
    check : str
        Check that they fail; empty: that of the struct.
    """

    check = ""


def read_struct(
    name: str, data: bytes | memoryview, report: DeviationCallback, start: int = 0
) -> tuple[dict[str, Any], int]:
    """Read the struct `name` from `start`; return its fields by name (enums as ints) and its end.

    Defects go to `report(check, message)`. Raise ThriftDecodeError if the struct cannot be read to its end.
    """
    reader = _CompactReader(data, report, start)
    try:
        return reader.struct(name, (None, name)), reader.pos
    except IndexError:
        raise ThriftDecodeError(f"it is cut off at byte {len(data):,}") from None


# A struct's name and its place in another: a name or an ordinal, after the path of that one.
_Path = tuple[Any, "str | int"]


def _path_text(path: _Path) -> str:
    parent, part = path
    if parent is None:
        return str(part)
    return _path_text(parent) + (f"[{part}]" if isinstance(part, int) else f".{part}")


class _Field(NamedTuple):
    """A field as the reader needs it: `low` to `high` are the numbers that fit it, `values` those of its enum.

    `item` is the element of a list, under the list's name.
    """

    name: str
    kind: str
    wire: tuple[int, ...]
    read: Callable[[_CompactReader, _Field, _Path], Any]
    required: bool
    refers: str
    item: _Field | None
    low: int
    high: int
    values: frozenset[int] | None

    @classmethod
    def of(cls, field: IdlField, kind: str) -> _Field:
        """Return a field, or with the kind of its elements, an element of a list."""
        most, refers = (1 << _BITS.get(kind, 64) - 1) - 1, field.refers or ""
        values = frozenset(load_idl().enums[refers].values()) if kind == "enum" else None
        item = cls.of(field, field.element or "") if kind == "list" else None
        reader = _READERS[kind]
        return cls(field.name, kind, _WIRE[kind], reader, field.required, refers, item, -most - 1, most, values)


@lru_cache(maxsize=64)
def _struct_fields(name: str) -> tuple[dict[int, _Field], list[str], bool]:
    """Return the fields of a struct by id, the names of those required, and whether it is a union."""
    about = load_idl().structs[name]
    required = [field.name for field in about.fields if field.required and field.default is None]
    return {field.id: _Field.of(field, field.kind) for field in about.fields}, required, about.union


class _CompactReader:
    def __init__(self, data: bytes | memoryview, report: DeviationCallback, pos: int) -> None:
        self._data = memoryview(data)  # IndexError at its end; a copy could be large
        self._note = report
        self._troubles = 0
        self.pos = pos

    def _report(self, check: str, message: str) -> None:
        self._note(check, message)
        self._troubles += 1
        if self._troubles > _MAX_DEVIATIONS:
            raise ThriftDecodeError(f"it has more than {_MAX_DEVIATIONS:,} defects")

    def _byte(self) -> int:
        byte = self._data[self.pos]
        self.pos += 1
        return byte

    def _take(self, count: int) -> memoryview:
        start = self.pos
        if count > len(self._data) - start:
            raise ThriftDecodeError(
                f"{pluralize(count, 'byte')} at byte {start:,} {agree_verb(count, 'do')} not fit into the rest "
                "of the struct"
            )
        self.pos = start + count
        return self._data[start : self.pos]

    def _varint(self) -> int:
        data, pos = self._data, self.pos
        value = shift = 0
        while shift < 70:
            byte = data[pos]
            pos += 1
            if byte < 0x80:
                self.pos = pos
                return value | byte << shift
            value |= (byte & 0x7F) << shift
            shift += 7
        raise ThriftDecodeError(f"the number before byte {pos:,} is longer than 10 bytes")

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def struct(self, name: str, path: _Path) -> dict[str, Any]:
        fields, required, is_union = _struct_fields(name)
        found: dict[str, Any] = {}
        data, members, last = self._data, 0, 0
        while True:
            head = data[self.pos]
            self.pos += 1
            kind = head & 15
            if kind == _STOP:
                break
            last = last + (head >> 4) if head >> 4 else self._zigzag()
            field = fields.get(last)
            members += 1
            if field is None:
                self._skip(kind, 0)
            elif kind not in field.wire:
                self._mismatch(field, kind, path, found)
            elif field.kind == "bool":
                found[field.name] = kind == _TRUE
            else:
                found[field.name] = field.read(self, field, path)
        for field_name in required:
            if field_name not in found:
                self._report("thrift-required", f"{_path_text(path)} lacks the required field {field_name}")
        if is_union and members != 1:
            self._report("thrift-union", f"{_path_text(path)} is a union, and has {members} members instead of one")
        return found

    def _mismatch(self, field: _Field, kind: int, path: _Path, found: dict[str, Any]) -> None:
        """Report a field that is stored as another type, and skip it."""
        text = _path_text((path, field.name))
        if field.name == "repetition_type" and kind in _WIRE["bool"]:
            found[field.name] = int(kind == _TRUE)
            self._report("writer-bool", f"{text} is stored as a bool instead of an enum")
            return
        check = "thrift-type" if field.required else "thrift-type-optional"
        self._report(check, f"{text} is not stored as type {field.kind}")
        self._skip(kind, 0)

    # --- values -------------------------------------------------------------------------------------------------------

    def _nested(self, field: _Field, path: _Path) -> dict[str, Any]:
        return self.struct(field.refers, (path, field.name))

    def _number(self, field: _Field, path: _Path) -> int:
        value = self._varint()
        value = value >> 1 ^ -(value & 1)
        if not field.low <= value <= field.high:
            bits = _BITS[field.kind]
            text = _path_text((path, field.name))
            self._report("thrift-type", f"{text} is {value}, which does not fit into {pluralize(bits, 'bit')}")
            value = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        if field.values is not None and value not in field.values:
            check = "writer-converted" if (field.refers, value) == _LEGACY_NULL_TYPE else "thrift-enum"
            text = _path_text((path, field.name))
            self._report(check, f"{text} is {value}, which is not a value of {field.refers}")
        return value

    def _int8(self, field: _Field, path: _Path) -> int:
        number: int = struct.unpack("<b", self._take(1))[0]
        return number

    def _double(self, field: _Field, path: _Path) -> float:
        number: float = struct.unpack("<d", self._take(8))[0]
        return number

    def _bool(self, field: _Field, path: _Path) -> bool:
        return self._byte() == _TRUE

    def _string(self, field: _Field, path: _Path) -> str:
        return str(self._take(self._varint()), "utf-8", "surrogateescape")

    def _binary(self, field: _Field, path: _Path) -> bytes:
        return bytes(self._take(self._varint()))

    def _list(self, field: _Field, path: _Path) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._data) - self.pos:
            raise ThriftDecodeError(
                f"a list of {pluralize(count, 'item')} at byte {self.pos:,} does not fit into the rest of the struct"
            )
        element, kind = field.item, head & 15
        assert element is not None
        if kind not in element.wire:
            if count:
                text = _path_text((path, field.name))
                self._report("thrift-type", f"{text} is not stored as a list of type {element.kind}")
            for _ in range(count):
                self._skip(kind, 0, in_list=True)
            return []
        if element.kind != "struct":
            return [element.read(self, element, path) for _ in range(count)]
        place = path, field.name
        return [self.struct(field.refers, (place, number)) for number in range(count)]

    def _skip(self, kind: int, depth: int, in_list: bool = False) -> None:
        """Skip a value; a bool takes a byte only in a list, elsewhere it is in the field header."""
        if depth > _MAX_SKIP_DEPTH:
            raise ThriftDecodeError(f"structs at byte {self.pos:,} are nested deeper than {_MAX_SKIP_DEPTH}")
        if kind in (_TRUE, _FALSE):
            self._take(1 if in_list else 0)
        elif kind in _SIZES:
            self._take(_SIZES[kind])
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _BINARY:
            self._take(self._varint())
        elif kind in (_LIST, _SET):
            head = self._byte()
            self._skip_many([head & 15], head >> 4 if head >> 4 < 15 else self._varint(), depth)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            self._skip_many([kinds >> 4, kinds & 15], count, depth)
        elif kind == _STRUCT:
            self._skip_struct(depth)
        else:
            raise ThriftDecodeError(f"the type at byte {self.pos:,} is {kind}, which Thrift does not define")

    def _skip_struct(self, depth: int) -> None:
        while (head := self._byte()) & 15:
            if not head >> 4:
                self._zigzag()
            self._skip(head & 15, depth + 1)

    def _skip_many(self, kinds: list[int], count: int, depth: int) -> None:
        if count > len(self._data) - self.pos:
            raise ThriftDecodeError(
                f"{pluralize(count, 'item')} at byte {self.pos:,} {agree_verb(count, 'do')} not fit into the "
                "rest of the struct"
            )
        for _ in range(count):
            for kind in kinds:
                self._skip(kind, depth + 1, in_list=True)


_READERS: dict[str, Callable[[_CompactReader, _Field, _Path], Any]] = {
    "bool": _CompactReader._bool,
    "i8": _CompactReader._int8,
    "i16": _CompactReader._number,
    "i32": _CompactReader._number,
    "i64": _CompactReader._number,
    "enum": _CompactReader._number,
    "double": _CompactReader._double,
    "binary": _CompactReader._binary,
    "string": _CompactReader._string,
    "struct": _CompactReader._nested,
    "list": _CompactReader._list,
}
