"""Mutations of compact-protocol structs as trees of fields, without their IDL.

A tree is what `support.oracles.thrift` encodes: a struct is a list of (field id, type, value), a list is (type,
values).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from support.oracles import thrift
from support.oracles.hybrid_rle import uleb
from support.oracles.thrift import (
    BINARY,
    DOUBLE,
    FALSE,
    I8,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    SET,
    STOP,
    STRUCT,
    TRUE,
    UUID,
    EncodedValue,
)

Generator = np.random.Generator
Field = tuple[int, int, Any]
Place = tuple[list, int]  # a list of fields or values, and the number of one of them

_SIGNED = {I16: 16, I32: 32, I64: 64}
_NUMBERS = (
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    10,
    16,
    31,
    32,
    33,
    63,
    64,
    127,
    128,
    255,
    256,
    1000,
    32767,
    32768,
    65535,
    65536,
    1 << 20,
    1 << 24,
    1 << 30,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    1 << 47,
    1 << 62,
    (1 << 63) - 1,
)
_TEXTS = (
    b"",
    b"\xff\xfe\x80",
    b"\x00",
    b"a.b",
    b".",
    b"x" * 70_000,
    b"\xed\xa0\x80",
    b"..",
    b"../side",
    b"/etc/passwd",
    b"side",
    b"pandas",
    b"ARROW:schema",
    b"geo",
    b"list",
    b"element",
    b"key",
    b"value",
    b"typed_value",
    b"metadata",
    b"EPSG:4326",
    b"numparq version 0.1.0",
    b"parquet-mr version 1.2.8",
    b"parquet-mr",
    b"impala version 1.0",
)
_EXTRA: tuple[tuple[int, Any], ...] = (
    (TRUE, True),
    (FALSE, False),
    (I8, -1),
    (I16, 1),
    (I32, -5),
    (I64, 1 << 40),
    (DOUBLE, float("nan")),
    (BINARY, b"?"),
    (LIST, (I32, [1, 2])),
    (LIST, (STRUCT, [[], []])),
    (LIST, (TRUE, [True, False])),
    (SET, (BINARY, [b"x"])),
    (MAP, (BINARY, I64, [(b"k", 1)])),
    (MAP, (I32, I32, [])),
    (STRUCT, []),
    (STRUCT, [(1, I32, 1)]),
    (STRUCT, [(1, STRUCT, []), (2, LIST, (STRUCT, []))]),
    (UUID, bytes(16)),
    (LIST, (UUID, [bytes(16)])),
)


class _Reader(thrift.StructReader):
    """Reads any struct by the types in its bytes."""

    def fields(self) -> list[Field]:
        found: list[Field] = []
        last = 0
        while True:
            wire, last = self.header(last)
            if wire == STOP:
                return found
            found.append((last, wire, wire == TRUE if wire in (TRUE, FALSE) else self.any(wire)))

    def any(self, wire: int) -> Any:
        if wire in (TRUE, FALSE):
            return self.take(1)[0] == TRUE
        if wire in _SIGNED:
            return self.zigzag()
        if wire == STRUCT:
            return self.fields()
        if wire in (LIST, SET):
            element, size = self.list_header()
            return element, [self.any(element) for _ in range(size)]
        if wire == BINARY:
            return self.take(self.size())
        return struct.unpack("b", self.take(1))[0] if wire == I8 else struct.unpack("<d", self.take(8))[0]


def parse_struct(data: bytes) -> tuple[list[Field], int]:
    """Read a valid struct; return its fields and its length."""
    reader = _Reader(data, set())
    return reader.fields(), reader.pos


def copy_tree(value: Any) -> Any:
    """Copy a tree; immutable values are shared."""
    if isinstance(value, list):
        return [copy_tree(item) for item in value]
    return tuple(copy_tree(item) for item in value) if isinstance(value, tuple) else value


def mutate(rng: Generator, tree: list[Field], most: int = 3) -> bytes:
    """Encode a copy of a struct with one or a few mutations."""
    while True:
        changed = copy_tree(tree)
        for _ in range(1 if rng.random() < 0.6 else int(rng.integers(1, most + 1))):
            places = list(_places(changed))
            if places:
                owner, index = places[int(rng.integers(0, len(places)))]
                _pick(rng, _WAYS)(rng, owner, index, places)
        try:
            return thrift.encode_struct(changed, long_ids=bool(rng.random() < 0.1))
        except (ValueError, TypeError, AttributeError, struct.error):
            continue  # a value came where no value of its type can be


def _pick(rng: Generator, things: Any) -> Any:
    return things[int(rng.integers(0, len(things)))]


def _places(fields: list[Field]) -> Any:
    """Return all fields and list items; only the first and last items of long lists."""
    for index, (_, wire, value) in enumerate(fields):
        yield fields, index
        yield from _inner(wire, value)


def _inner(wire: int, value: Any) -> Any:
    if isinstance(value, EncodedValue):
        return
    if wire == STRUCT:
        yield from _places(value)
    elif wire in (LIST, SET):
        element, items = value
        if isinstance(items, EncodedValue):
            return
        for index in [*range(min(len(items), 8)), *range(max(len(items) - 8, 8), len(items))]:
            yield items, index
            yield from _inner(element, items[index])


def _is_field(owner: list, index: int) -> bool:
    return isinstance(owner[index], tuple) and len(owner[index]) == 3 and isinstance(owner[index][0], int)


def _set(owner: list, index: int, value: Any) -> None:
    owner[index] = (*owner[index][:2], value) if _is_field(owner, index) else value


def _value(owner: list, index: int) -> Any:
    return owner[index][2] if _is_field(owner, index) else owner[index]


def _other(rng: Generator, owner: list, index: int, places: list[Place]) -> None:
    """Replace a value with another of the same type."""
    value = _value(owner, index)
    if isinstance(value, EncodedValue):
        return
    if isinstance(value, bool):
        _set(owner, index, not value)
    elif isinstance(value, int):
        wire = owner[index][1] if _is_field(owner, index) else I32
        _set(owner, index, _number(rng, value, _SIGNED.get(wire, 8)))
    elif isinstance(value, float):
        _set(owner, index, float(_pick(rng, ["nan", "inf", "-1", "0", "1e308"])))
    elif isinstance(value, bytes):
        _set(owner, index, _text(rng, value))
    elif isinstance(value, tuple):
        _set(owner, index, _longer(rng, value))
    else:
        _set(owner, index, _reordered(rng, value))


def _number(rng: Generator, value: int, bits: int) -> int:
    flipped = value ^ 1 << int(rng.integers(0, 16))
    number = int(_pick(rng, [*_NUMBERS, value + 1, value - 1, 2 * value, -value, flipped]))
    number = -number - 1 if rng.random() < 0.2 else number
    return max(min(number, (1 << bits - 1) - 1), -(1 << bits - 1))


def _text(rng: Generator, value: bytes) -> bytes:
    changed = bytearray(value)
    if changed and rng.random() < 0.5:
        changed[int(rng.integers(0, len(changed)))] ^= 1 << int(rng.integers(0, 8))
        return bytes(changed)
    return bytes(_pick(rng, [*_TEXTS, value + b"!", value[:-1], value + value, value[::-1], bytes(len(value))]))


def _longer(rng: Generator, value: tuple) -> Any:
    """Change the length of a list, or only its declared length or type."""
    if len(value) != 2 or not isinstance(value[1], list):
        return value
    element, items = value
    kind = int(rng.integers(0, 7))
    if kind == 6:
        inner = b"".join(thrift.encode(element, item) for item in items[:50])
        size = len(items)
        count = int(_pick(rng, [size + 1, max(size - 1, 0), 0, 1 << 20, (1 << 31) - 1, 1 << 32, (1 << 64) - 1]))
        return EncodedValue(bytes([0xF0 | element]) + uleb(count) + inner)
    many = items * (1 + int(rng.integers(1, 400)) // (len(items) // 8 + 1))
    return element, [[], items[:-1], items + items, items[::-1], many, items[1:]][kind]


def _reordered(rng: Generator, fields: list) -> list:
    kind = rng.random()
    if kind < 0.4 or not fields:
        return []
    return fields[::-1] if kind < 0.7 else [fields[int(place)] for place in rng.permutation(len(fields))]


def _left_out(rng: Generator, owner: list, index: int, places: list[Place]) -> None:
    del owner[index]


def _twice(rng: Generator, owner: list, index: int, places: list[Place]) -> None:
    owner.insert(index, copy_tree(owner[index]))
    if rng.random() < 0.7:
        _other(rng, owner, index, places)


def _unknown(rng: Generator, owner: list, index: int, places: list[Place]) -> None:
    """Change a field id, or insert a field of any type."""
    if not _is_field(owner, index):
        return _other(rng, owner, index, places)
    number, wire, value = owner[index]
    other = int(_pick(rng, [number + 1, max(number - 1, 1), 0, -1, 15, 16, 99, 900, 32767, -32768]))
    if rng.random() < 0.5:
        owner[index] = (other, wire, value)
    else:
        owner.insert(index, (other, *_pick(rng, _EXTRA)))
    return None


def _retyped(rng: Generator, owner: list, index: int, places: list[Place]) -> None:
    wire, value = _pick(rng, _EXTRA)
    if _is_field(owner, index):
        owner[index] = (owner[index][0], wire, copy_tree(value))
    else:
        owner[index] = EncodedValue(thrift.encode(wire, value))


def _overlong(rng: Generator, owner: list, index: int, places: list[Place]) -> None:
    """Encode a number or a length in more bytes than needed, or than allowed."""
    value = _value(owner, index)
    if isinstance(value, (bool, float)) or not isinstance(value, (int, bytes)) or isinstance(value, EncodedValue):
        return _other(rng, owner, index, places)
    plain = thrift.zigzag(value) if isinstance(value, int) else uleb(len(value))
    padding = int(_pick(rng, [1, 2, 10 - len(plain), 11 - len(plain), 40]))
    end = b"\x80" * max(padding - 1, 0) + bytes([int(_pick(rng, [0, 0, 1, 127]))])
    longer = plain[:-1] + bytes([plain[-1] | 0x80]) + end
    _set(owner, index, EncodedValue(longer + (value if isinstance(value, bytes) else b"")))
    return None


_NESTS = ((b"\x1c", STRUCT, b"\0"), (b"\x19", LIST, b""), (b"\x1a", SET, b""), (b"\x01\xbb", MAP, b""))


def _deep(rng: Generator, owner: list, index: int, places: list[Place]) -> None:
    """Insert deeply nested structs, lists or maps."""
    depth = int(_pick(rng, [10, 62, 63, 64, 65, 66, 500, 20_000]))
    head, wire, end = _pick(rng, _NESTS)
    extra = (
        int(_pick(rng, [99, 1, 2, 3, 4])),
        wire,
        EncodedValue(head * depth + end * int(_pick(rng, [0, depth, depth + 1]))),
    )
    if _is_field(owner, index):
        owner.insert(index, extra)
    else:
        owner[index] = extra[2]


def _swapped(rng: Generator, owner: list, index: int, places: list[Place]) -> None:
    """Replace a value with one of the same type from elsewhere."""
    value = _value(owner, index)
    same = [place for place in places if place[1] < len(place[0]) and type(_value(*place)) is type(value)]
    if same:
        _set(owner, index, copy_tree(_value(*_pick(rng, same))))


_Way = Callable[[Generator, list, int, list[Place]], None]
_WAYS: tuple[_Way, ...] = (
    *[_other] * 8,
    *[_swapped] * 3,
    *[_left_out] * 2,
    _twice,
    _unknown,
    _retyped,
    _overlong,
    _deep,
)
