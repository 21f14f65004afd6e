"""Decode the Thrift compact protocol tolerantly into dicts: report defects and read on."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from numparq.format.logical_type import LEGACY_NULL_TYPE
from numparq.format.thrift.idl import IdlField, IdlStruct, load_idl

__all__ = ["ThriftDecodeError", "read_struct"]

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
    """Bytes that cannot be decoded as a struct of the compact protocol."""


def read_struct(
    name: str, data: bytes | memoryview, report: DeviationCallback, start: int = 0
) -> tuple[dict[str, Any], int]:
    """Read the struct `name` from `start`; return its fields by name (enums as ints) and its end.

    Defects go to `report(check, message)`. Raise ThriftDecodeError if the struct cannot be read to its end.
    """
    reader = _CompactReader(data, report, start)
    return reader.struct(name, name), reader.pos


@lru_cache(maxsize=64)
def _struct_fields(name: str) -> tuple[IdlStruct, dict[int, IdlField], list[str]]:
    about = load_idl().structs[name]
    required = [field.name for field in about.fields if field.required and field.default is None]
    return about, {field.id: field for field in about.fields}, required


@lru_cache(maxsize=64)
def _enum_values(enum: str) -> frozenset[int]:
    return frozenset(load_idl().enums[enum].values())


class _CompactReader:
    def __init__(self, data: bytes | memoryview, report: DeviationCallback, pos: int) -> None:
        self._data = memoryview(data)
        self._note = report
        self._troubles = 0
        self.pos = pos

    def _report(self, check: str, message: str) -> None:
        self._note(check, message)
        self._troubles += 1
        if self._troubles > _MAX_DEVIATIONS:
            raise ThriftDecodeError(f"it has more than {_MAX_DEVIATIONS:,} defects")

    def _byte(self) -> int:
        if self.pos >= len(self._data):
            raise ThriftDecodeError(f"it is cut off at byte {self.pos:,}")
        self.pos += 1
        return self._data[self.pos - 1]

    def _take(self, count: int) -> memoryview:
        if count < 0 or count > len(self._data) - self.pos:
            raise ThriftDecodeError(f"{count:,} bytes at byte {self.pos:,} do not fit into the rest of the struct")
        self.pos += count
        return self._data[self.pos - count : self.pos]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ThriftDecodeError(f"the number before byte {self.pos:,} is longer than 10 bytes")

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def struct(self, name: str, path: str) -> dict[str, Any]:
        about, fields, required = _struct_fields(name)
        found: dict[str, Any] = {}
        members = last = 0
        while True:
            head = self._byte()
            kind = head & 15
            if kind == _STOP:
                break
            last = last + (head >> 4) if head >> 4 else self._zigzag()
            field = fields.get(last)
            members += 1
            if field is None:
                self._skip(kind, 0)
            elif field.name == "repetition_type" and kind in _WIRE["bool"]:
                found[field.name] = int(kind == _TRUE)
                self._report("writer-bool", f"{path}.{field.name} is stored as a bool instead of an enum")
            elif kind not in _WIRE[field.kind]:
                self._report(
                    "thrift-type" if field.required else "thrift-type-optional",
                    f"{path}.{field.name} is not stored as type {field.kind}",
                )
                self._skip(kind, 0)
            elif field.kind == "bool":
                found[field.name] = kind == _TRUE
            else:
                found[field.name] = self._value(field.kind, field, f"{path}.{field.name}")
        for field_name in required:
            if field_name not in found:
                self._report("thrift-required", f"{path} lacks the required field {field_name}")
        if about.union and members != 1:
            self._report("thrift-union", f"{path} is a union, and has {members} members instead of one")
        return found

    def _value(self, kind: str, field: IdlField, path: str) -> Any:
        if kind == "struct":
            return self.struct(field.refers or "", path)
        if kind == "list":
            return self._list(field, path)
        if kind in _BITS:
            return self._number(kind, field, path)
        if kind == "i8":
            return struct.unpack("<b", self._take(1))[0]
        if kind == "double":
            return struct.unpack("<d", self._take(8))[0]
        if kind == "bool":
            return self._byte() == _TRUE
        taken = self._take(self._varint())
        return str(taken, "utf-8", "surrogateescape") if kind == "string" else bytes(taken)

    def _number(self, kind: str, field: IdlField, path: str) -> int:
        value, bits = self._zigzag(), _BITS[kind]
        if value >> bits - 1 not in (0, -1):
            self._report("thrift-type", f"{path} is {value}, which does not fit into {bits} bits")
            value = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        if kind == "enum" and value not in _enum_values(field.refers or ""):
            check = "writer-converted" if (field.refers, value) == _LEGACY_NULL_TYPE else "thrift-enum"
            self._report(check, f"{path} is {value}, which is not a value of {field.refers}")
        return value

    def _list(self, field: IdlField, path: str) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._data) - self.pos:
            raise ThriftDecodeError(
                f"a list of {count:,} items at byte {self.pos:,} does not fit into the rest of the struct"
            )
        element = field.element or ""
        if head & 15 not in _WIRE[element]:
            if count:
                self._report("thrift-type", f"{path} is not stored as a list of type {element}")
            for _ in range(count):
                self._skip(head & 15, 0, in_list=True)
            return []
        if element != "struct":
            return [self._value(element, field, path) for _ in range(count)]
        return [self.struct(field.refers or "", f"{path}[{number}]") for number in range(count)]

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
            raise ThriftDecodeError(f"{count:,} items at byte {self.pos:,} do not fit into the rest of the struct")
        for _ in range(count):
            for kind in kinds:
                self._skip(kind, depth + 1, in_list=True)
