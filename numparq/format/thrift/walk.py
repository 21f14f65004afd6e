"""Walk the compact protocol of a well-formed struct, which a kernel has already read."""

from __future__ import annotations

from collections.abc import Mapping

from numparq.errors import InvalidFileError
from numparq.kernels.thrift import wire

from .encode import encode_field_header

_MAX_DEPTH = 70  # above the limit of the kernel that has already checked the footer
_NUMBERS = (wire.I16, wire.I32, wire.I64)
_FIXED_BYTES = {wire.TRUE: 0, wire.FALSE: 0, wire.I8: 1, wire.DOUBLE: 8, wire.UUID: 16}


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned number; return it, and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def read_number(data: bytes, position: int) -> int:
    """Read a signed number."""
    value, _ = read_varint(data, position)
    return value >> 1 ^ -(value & 1)


def read_field(data: bytes, position: int, last: int) -> tuple[int, int, int]:
    """Read a field header; return type, field id, and the position of the value."""
    header = data[position]
    if header >> 4:
        return header & 15, last + (header >> 4), position + 1
    number, position = read_varint(data, position + 1)
    return header & 15, number >> 1 ^ -(number & 1), position


def read_list_header(data: bytes, position: int) -> tuple[int, int, int]:
    """Read the header of a list or set; return length, element type, and the position of the first element."""
    header = data[position]
    if header >> 4 < 15:
        return header >> 4, header & 15, position + 1
    count, position = read_varint(data, position + 1)
    return count, header & 15, position


def skip_value(data: bytes, position: int, kind: int, depth: int = 0, in_list: bool = False) -> int:
    """Return the position after a value."""
    if depth > _MAX_DEPTH:
        raise InvalidFileError(f"the footer is nested more than {_MAX_DEPTH} levels deep")
    if kind in _NUMBERS:
        return read_varint(data, position)[1]
    if kind in _FIXED_BYTES:
        return position + (1 if in_list and kind in (wire.TRUE, wire.FALSE) else _FIXED_BYTES[kind])
    if kind == wire.BINARY:
        length, position = read_varint(data, position)
        return position + length
    if kind == wire.STRUCT:
        last = 0
        while data[position] & 15:
            inner, last, position = read_field(data, position, last)
            position = skip_value(data, position, inner, depth + 1)
        return position + 1
    return _skip_elements(data, position, kind, depth)


def _skip_elements(data: bytes, position: int, kind: int, depth: int) -> int:
    """Return the position after a list, set or map."""
    kinds: tuple[int, ...]
    if kind == wire.MAP:
        count, position = read_varint(data, position)
        kinds = (data[position] >> 4, data[position] & 15) if count else (0, 0)
        position += bool(count)
    else:
        count, element, position = read_list_header(data, position)
        kinds = (element,)
    for _ in range(count):
        for inner in kinds:
            position = skip_value(data, position, inner, depth + 1, in_list=True)
    return position


def field_starts(data: bytes, position: int) -> dict[int, int]:
    """Return the position of each field's value in a struct, by field id."""
    starts, last = {}, 0
    while data[position] & 15:
        kind, last, start = read_field(data, position, last)
        starts[last] = start
        position = skip_value(data, start, kind)
    return starts


def split_fields(data: bytes) -> dict[int, tuple[int, bytes]]:
    """Return the fields of a struct by id: wire type and encoded value; `join_fields` joins them again."""
    fields: dict[int, tuple[int, bytes]] = {}
    position = last = 0
    while data[position] & 15:
        kind, last, start = read_field(data, position, last)
        position = skip_value(data, start, kind)
        fields[last] = kind, data[start:position]
    return fields


def join_fields(fields: Mapping[int, tuple[int, bytes]]) -> bytes:
    """Encode a struct of encoded fields by id."""
    out, last = bytearray(), 0
    for number, (kind, value) in sorted(fields.items()):
        out += encode_field_header(number, kind, last) + value
        last = number
    return bytes(out) + b"\0"


def split_list(data: bytes) -> list[bytes]:
    """Return the encoded elements of a list."""
    count, kind, position = read_list_header(data, 0)
    elements = []
    for _ in range(count):
        start, position = position, skip_value(data, position, kind, in_list=True)
        elements.append(data[start:position])
    return elements
