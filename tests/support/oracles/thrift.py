"""The Thrift compact protocol by its specification, recursive, with structs from thriftpy2.

Encoded values are plain: a struct is a list of (field id, type, value), a list or set is (element type, values), a map
is (key type, value type, pairs). Decoded structs are dicts by field name.
"""

from __future__ import annotations

import struct
from typing import Any

from . import Damaged
from .hybrid_rle import uleb

STOP, TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(14)
MAX_SKIPPED_DEPTH = 64
# thriftpy2's codes of types -> those on the wire
WIRE = {2: TRUE, 3: I8, 4: DOUBLE, 6: I16, 8: I32, 10: I64, 11: BINARY, 12: STRUCT, 15: LIST, 18: BINARY}
_BITS = {I16: 16, I32: 32, I64: 64}


# --- writing --------------------------------------------------------------------------------------------------------


def zigzag(number: int) -> bytes:
    return uleb(2 * number if number >= 0 else -2 * number - 1)


class EncodedValue(bytes):
    """A value that is encoded already, validly or not."""


def encode(kind: int, value: Any) -> bytes:
    """Encode a value as in a list; boolean fields have no value bytes."""
    if isinstance(value, EncodedValue):
        return bytes(value)
    if kind in (TRUE, FALSE):
        return bytes([TRUE if value else FALSE])
    if kind == I8:
        return struct.pack("b", value)
    if kind in _BITS:
        return zigzag(value)
    if kind == DOUBLE:
        return struct.pack("<d", value)
    if kind == BINARY:
        return uleb(len(value)) + value
    if kind == UUID:
        return value
    if kind == STRUCT:
        return encode_struct(value)
    if kind == MAP:
        key, inner, pairs = value
        types = bytes([key << 4 | inner]) if pairs else b""
        return uleb(len(pairs)) + types + b"".join(encode(key, k) + encode(inner, v) for k, v in pairs)
    element, values = value
    head = bytes([len(values) << 4 | element]) if len(values) < 15 else bytes([0xF0 | element]) + uleb(len(values))
    return head + b"".join(encode(element, item) for item in values)


def encode_struct(fields: list[tuple[int, int, Any]], long_ids: bool = False) -> bytes:
    """Encode a struct, with field id deltas if possible unless `long_ids`."""
    out, last = bytearray(), 0
    for field_id, kind, value in fields:
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        if 0 < field_id - last < 16 and not long_ids:
            out.append(field_id - last << 4 | kind)
        else:
            out += bytes([kind]) + zigzag(field_id)
        last = field_id
        if kind not in (TRUE, FALSE):
            out += encode(kind, value)
    return bytes(out) + b"\0"


def fields_of(thing: Any) -> list[tuple[int, int, Any]]:
    """Return the fields of a thriftpy2 object for encoding."""
    spec = sorted(thing.thrift_spec.items())
    return [
        (field_id, WIRE[code], _value(code, about, getattr(thing, name)))
        for field_id, (code, name, *about, _) in spec
        if getattr(thing, name) is not None
    ]


def _value(code: int, about: list, value: Any) -> Any:
    if code == 12:
        return fields_of(value)
    if code == 15:
        inner = about[0] if isinstance(about[0], tuple) else (about[0],)
        return WIRE[inner[0]], [_value(inner[0], list(inner[1:]), item) for item in value]
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


# --- reading --------------------------------------------------------------------------------------------------------


class StructReader:
    """Decodes structs from bytes.

    Parameters
    ----------
    data : bytes
        Nothing behind them is read.
    unions : set of type
        The thriftpy2 classes that are unions.
    """

    def __init__(self, data: bytes, unions: set[type]) -> None:
        self.data = data
        self.pos = 0
        self.unions = unions

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.pos:
            raise Damaged("cut off")
        self.pos += count
        return self.data[self.pos - count : self.pos]

    def varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if number >> 64:
                    break
                return number
        raise Damaged("varint")

    def zigzag(self, bits: int = 64) -> int:
        number = self.varint()
        number = number >> 1 if number % 2 == 0 else -(number >> 1) - 1
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise Damaged("out of range")
        return number

    def size(self, at_least: int = 1) -> int:
        """Read a number of elements that take at least so many bytes each."""
        number = self.varint()
        if number * at_least > len(self.data) - self.pos:
            raise Damaged("size")
        return number

    def header(self, last: int) -> tuple[int, int]:
        byte = self.take(1)[0]
        if byte % 16 == STOP:
            return STOP, 0
        if byte >= 16:
            return byte % 16, last + byte // 16
        number = self.varint()
        number = number % (1 << 16)
        return byte % 16, number >> 1 if number % 2 == 0 else -(number >> 1) - 1

    def list_header(self) -> tuple[int, int]:
        byte = self.take(1)[0]
        size = byte >> 4
        if size == 15:
            size = self.size()
        elif size > len(self.data) - self.pos:
            raise Damaged("size")
        return byte % 16, size

    def struct(self, kind: Any) -> dict[str, Any]:
        """Decode an object of a thriftpy2 class; enums are ints, invalid UTF-8 becomes surrogates."""
        found: dict[str, Any] = {}
        last = 0
        while True:
            wire, last = self.header(last)
            if wire == STOP:
                break
            if kind in self.unions:
                found.clear()
            spec = kind.thrift_spec.get(last)
            # fastparquet writes a bool for the repetition type.
            may_be_bool = spec is not None and (WIRE[spec[0]] == TRUE or spec[1] == "repetition_type")
            boolean = may_be_bool and wire in (TRUE, FALSE)
            if spec is None or not (WIRE[spec[0]] == wire or boolean):
                self.skip(wire, 0, in_list=False)
                continue
            found[spec[1]] = wire == TRUE if wire in (TRUE, FALSE) else self.value(spec[0], list(spec[2:-1]))
        if any(spec[-1] and spec[1] not in found for spec in kind.thrift_spec.values()):
            raise Damaged("a required field is missing")
        return {spec[1]: found[spec[1]] for _, spec in sorted(kind.thrift_spec.items()) if spec[1] in found}

    def value(self, code: int, about: list) -> Any:
        wire = WIRE[code]
        if wire == STRUCT:
            return self.struct(about[0])
        if wire == LIST:
            inner = about[0] if isinstance(about[0], tuple) else (about[0],)
            element, size = self.list_header()
            wanted = WIRE[inner[0]]
            if size and not (element == wanted or (wanted, element) == (TRUE, FALSE)):
                raise Damaged("another type of elements")
            return [self.value(inner[0], list(inner[1:])) for _ in range(size)]
        if wire == TRUE:
            return self.take(1)[0] == TRUE
        if wire == I8:
            return struct.unpack("b", self.take(1))[0]
        if wire in _BITS:
            return self.zigzag(_BITS[wire])
        if wire == DOUBLE:
            return struct.unpack("<d", self.take(8))[0]
        content = self.take(self.size())
        return content.decode("utf-8", "surrogateescape") if code == 11 else content

    def skip(self, wire: int, depth: int, in_list: bool) -> None:
        if wire in (TRUE, FALSE, I8):
            self.take(int(in_list or wire == I8))
        elif wire in _BITS:
            self.varint()
        elif wire in (DOUBLE, UUID):
            self.take(8 if wire == DOUBLE else 16)
        elif wire == BINARY:
            self.take(self.size())
        elif wire in (LIST, SET, MAP, STRUCT):
            if depth == MAX_SKIPPED_DEPTH:
                raise Damaged("too deep")
            self.skip_container(wire, depth + 1)
        else:
            raise Damaged("no such type")

    def skip_container(self, wire: int, depth: int) -> None:
        if wire == STRUCT:
            inner, last = self.header(0)
            while inner != STOP:
                self.skip(inner, depth, in_list=False)
                inner, last = self.header(last)
        elif wire == MAP:
            size = self.size()
            types = self.take(1)[0] if size else 0
            if size > (len(self.data) - self.pos) // 2:
                raise Damaged("size")
            for _ in range(size):
                self.skip(types >> 4, depth, in_list=True)
                self.skip(types % 16, depth, in_list=True)
        else:
            element, size = self.list_header()
            for _ in range(size):
                self.skip(element, depth, in_list=True)
