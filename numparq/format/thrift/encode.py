"""Thrift compact protocol: dicts with the specification's field names, encoded."""

from __future__ import annotations

import struct as binary_struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import index
from typing import Any

from numparq.kernels.thrift import wire

from .idl import IdlField, IdlStruct, load_idl
from .layout import WIRE_TYPES

FieldEncoder = Callable[[bytearray, Any], None]  # appends a value without field header

_BITS = {"i8": 8, "i16": 16, "i32": 32, "enum": 32, "i64": 64}
_STOP = 0
_SHORT_LIST = 15  # the length of a shorter list fits its first byte


class EncodedThrift(bytes):
    """An encoded struct or list, copied as it is."""


def encode_struct(struct: str, value: Mapping[str, Any]) -> bytes:
    """Encode a struct or union, given its fields by name; None is absent, a union has one field.

    TypeError or ValueError names the struct and field that is wrong. Values may be `EncodedThrift`.
    """
    out = bytearray()
    _struct_writer(struct)(out, value)
    return bytes(out)


def encode_field(struct: str, field: str, value: Any) -> bytes:
    """Encode the value of a field without its header; not for bools, which are part of the header."""
    out = bytearray()
    _field_writer(struct, field)(out, value)
    return bytes(out)


@lru_cache(maxsize=256)
def _field_writer(struct: str, field: str) -> FieldEncoder:
    return _writer(struct, next(item for item in load_idl().structs[struct].fields if item.name == field))


def encode_field_header(field_id: int, kind: int, last: int = 0) -> bytes:
    """Encode a field header; `kind` is the wire type, `last` the previous field id or 0."""
    if 0 < field_id - last < 16:
        return bytes([field_id - last << 4 | kind])
    return bytes([kind]) + _varint(field_id << 1 ^ field_id >> 63)


def encode_list_header(kind: str, count: int) -> bytes:
    """Encode a list header; `kind` is an element kind of `IdlField`."""
    if count < _SHORT_LIST:
        return bytes([count << 4 | WIRE_TYPES[kind]])
    return bytes([0xF0 | WIRE_TYPES[kind]]) + _varint(count)


# --- structs --------------------------------------------------------------------------------------------------------


class _FieldHeaders(dict[int, bytes]):
    """Headers of a field by the previous field id."""

    def __init__(self, field_id: int, kind: int) -> None:
        self._field = field_id, kind

    def __missing__(self, last: int) -> bytes:
        self[last] = head = encode_field_header(*self._field, last)
        return head


@lru_cache(maxsize=256)
def _struct_writer(name: str) -> FieldEncoder:
    about = load_idl().structs[name]
    return _union(about) if about.union else _struct(about)


def _struct(about: IdlStruct) -> FieldEncoder:
    name = about.name
    plan = [_field(name, field) for field in about.fields]
    names = frozenset(field.name for field in about.fields)

    def write(out: bytearray, value: Any) -> None:
        if value.__class__ is not dict:
            if value.__class__ is EncodedThrift:
                out += value
                return
            _check_mapping(name, value)
        last, found, get = 0, 0, value.get
        for field_id, field, absent, heads, write_field in plan:
            item = get(field)
            if item is None:
                if absent is None:
                    continue
                item = absent(name, field)
            else:
                found += 1
            if write_field is None:  # a bool is part of the header
                out += heads[_truth(item, name, field)][last]
            else:
                out += heads[last]
                write_field(out, item)
            last = field_id
        if found != len(value):
            _check_names(name, value, names)
        out.append(_STOP)

    return write


def _union(about: IdlStruct) -> FieldEncoder:
    name = about.name
    plan = {
        field.name: (encode_field_header(field.id, WIRE_TYPES[field.kind]), _writer(name, field))
        for field in about.fields
    }

    def write(out: bytearray, value: Any) -> None:
        if value.__class__ is EncodedThrift:
            out += value
            return
        _check_mapping(name, value)
        members = [(field, item) for field, item in value.items() if item is not None]
        _check_names(name, value, plan.keys())
        if len(members) != 1:
            raise ValueError(f"union {name} must have exactly one field, not {len(members)}")
        head, write_field = plan[members[0][0]]
        out += head
        write_field(out, members[0][1])
        out.append(_STOP)

    return write


def _field(struct: str, field: IdlField) -> tuple[int, str, Callable[[str, str], Any] | None, Any, FieldEncoder | None]:
    """Plan a field: id, name, function for its absence (None: skip), headers, and value encoder."""
    absent = None
    if field.required:
        absent = _missing if field.default is None else lambda name, which, value=field.default: value
    if field.kind == "bool":
        return (
            field.id,
            field.name,
            absent,
            (_FieldHeaders(field.id, wire.FALSE), _FieldHeaders(field.id, wire.TRUE)),
            None,
        )
    return field.id, field.name, absent, _FieldHeaders(field.id, WIRE_TYPES[field.kind]), _writer(struct, field)


def _missing(struct: str, field: str) -> Any:
    raise ValueError(f"{struct} lacks its required field {field}")


def _check_mapping(struct: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{struct} must be a mapping of field names to values, not {type(value).__name__}")


def _check_names(struct: str, value: Mapping[str, Any], names: Any) -> None:
    unknown = [repr(name) for name in value if name not in names]
    if unknown:
        raise TypeError(f"{struct} has no field {', '.join(unknown)}")


# --- values ---------------------------------------------------------------------------------------------------------


def _writer(struct: str, field: IdlField) -> FieldEncoder:
    """Return the encoder of a field's values."""
    if field.kind == "list":
        assert field.element is not None
        return _list(struct, field.name, field.element, field.refers)
    return _value(struct, field.name, field.kind, field.refers)


def _value(struct: str, name: str, kind: str, refers: str | None) -> FieldEncoder:
    if kind == "struct":
        assert refers is not None
        return _later(refers)
    if kind in _BITS:
        return _integer(struct, name, kind)
    return {"bool": _bool, "double": _double, "binary": _binary, "string": _binary}[kind](struct, name, kind)


def _later(refers: str) -> FieldEncoder:
    """Return a struct encoder that is planned on first use, because structs may be recursive."""

    def write(out: bytearray, value: Any) -> None:
        _struct_writer(refers)(out, value)

    return write


def _integer(struct: str, name: str, kind: str) -> FieldEncoder:
    limit = 1 << _BITS[kind] - 1

    def write(out: bytearray, value: Any) -> None:
        if value.__class__ is not int:
            value = _int(value, struct, name, kind)
        if 0 <= value < 64:
            out.append(value << 1)
        elif -limit <= value < limit:
            out += _varint(value << 1 ^ value >> 63)
        else:
            raise ValueError(f"{struct}.{name} is {value}, which does not fit {kind}")

    def write_byte(out: bytearray, value: Any) -> None:
        value = _int(value, struct, name, kind)
        if not -limit <= value < limit:
            raise ValueError(f"{struct}.{name} is {value}, which does not fit {kind}")
        out.append(value & 0xFF)

    return write_byte if kind == "i8" else write


def _int(value: Any, struct: str, name: str, kind: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _wrong(struct, name, f"an int ({kind})", value)
    try:
        return index(value)
    except TypeError:  # arrays have __index__, too
        raise _wrong(struct, name, f"an int ({kind})", value) from None


def _truth(value: Any, struct: str, name: str) -> bool:
    if value is True or value is False:
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise _wrong(struct, name, "a bool", value)


def _bool(struct: str, name: str, kind: str) -> FieldEncoder:
    """Return the encoder of bools in a list; a bool field has no bytes of its own."""

    def write(out: bytearray, value: Any) -> None:
        out.append(wire.TRUE if _truth(value, struct, name) else wire.FALSE)

    return write


def _double(struct: str, name: str, kind: str) -> FieldEncoder:
    pack = binary_struct.Struct("<d").pack

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
            raise _wrong(struct, name, "a float", value)
        out += pack(float(value))

    return write


def _binary(struct: str, name: str, kind: str) -> FieldEncoder:
    """Return the encoder of bytes or strings; lone surrogates become the bytes they were read from."""

    def write(out: bytearray, value: Any) -> None:
        if value.__class__ is str and kind == "string":
            value = _utf8(value, struct, name)
        elif not isinstance(value, (bytes, bytearray)):
            raise _wrong(struct, name, "bytes" if kind == "binary" else "a str or bytes", value)
        size = len(value)
        if size < 128:
            out.append(size)
        else:
            out += _varint(size)
        out += value

    return write


def _utf8(value: str, struct: str, name: str) -> bytes:
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"{struct}.{name} cannot be encoded as UTF-8: {error}") from None


def _list(struct: str, name: str, element: str, refers: str | None) -> FieldEncoder:
    write_element = _value(struct, name, element, refers)
    heads = [encode_list_header(element, count) for count in range(_SHORT_LIST)]

    def write(out: bytearray, value: Any) -> None:
        if value.__class__ is not list:
            if value.__class__ is EncodedThrift:
                out += value
                return
            value = _sequence(value, struct, name)
        count = len(value)
        out += heads[count] if count < _SHORT_LIST else encode_list_header(element, count)
        for item in value:
            write_element(out, item)

    return write


def _sequence(value: Any, struct: str, name: str) -> Any:
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not hasattr(value, "__len__"):
        raise _wrong(struct, name, "a list", value)
    return value.tolist() if hasattr(value, "tolist") else value


def _wrong(struct: str, name: str, expected: str, value: Any) -> TypeError:
    return TypeError(f"{struct}.{name} must be {expected}, not {type(value).__name__}")


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
