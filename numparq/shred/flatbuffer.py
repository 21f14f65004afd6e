"""A writer of Flatbuffers: tables, vectors of tables, and strings. `numparq.flatbuffer` reads them and tells more.

What refers stands before what it refers to, and a table right behind its vtable.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

_SIZES = {"B": 1, "h": 2, "i": 4, "q": 8}
_REFERENCE = 4
ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of a table; `code` is that of `struct` (``B h i q``)."""

    code: str
    value: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table to write: its fields by their numbers; one that is None is absent."""

    fields: dict[int, Value | None]


@dataclass(frozen=True, slots=True)
class Place:
    """What stands at a position of the bytes that are put behind the Flatbuffer."""

    position: int


Value = Scalar | str | Table | list[Table] | Place


def build(root: Table, behind: bytes = b"") -> bytes:
    """Write a Flatbuffer.

    Parameters
    ----------
    root : Table
        Its root.
    behind : bytes
        A Flatbuffer to put behind it, to parts of which a `Place` refers.

    Returns
    -------
    bytes
        A multiple of 8 bytes.
    """
    out = bytearray(_REFERENCE)
    waiting: list[tuple[int, Value]] = [(0, root)]  # where a reference stands, and to what
    places: list[tuple[int, Place]] = []
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Place):
            places.append((place, value))
            continue
        if isinstance(value, Table):
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
    out += behind
    _pad(out, ALIGNMENT)
    return bytes(out)


def _pad(out: bytearray, alignment: int, offset: int = 0) -> None:
    out += bytes(-(len(out) + offset) % alignment)


def _table(out: bytearray, table: Table, waiting: list[tuple[int, Value]]) -> int:
    present = [(number, value) for number, value in table.fields.items() if value is not None]
    shape = tuple((number, value.code if type(value) is Scalar else "") for number, value in present)
    vtable, places, size = _laid_out(shape)
    _pad(out, ALIGNMENT, len(vtable))
    out += vtable
    start = len(out)
    out += len(vtable).to_bytes(4, "little") + bytes(size - 4)
    for (_, value), place in zip(present, places, strict=True):
        if type(value) is Scalar:
            struct.pack_into("<" + value.code, out, start + place, value.value)
        else:
            waiting.append((start + place, value))
    return start


@lru_cache(maxsize=256)
def _laid_out(shape: tuple[tuple[int, str], ...]) -> tuple[bytes, tuple[int, ...], int]:
    """Lay a table out: its vtable, where each field is in it, and its size.

    Parameters
    ----------
    shape : tuple of (int, str)
        Number and code of each field; no code for a reference.
    """
    sizes = {number: _SIZES.get(code, _REFERENCE) for number, code in shape}
    places, end = {}, 4  # the table begins with the distance to its vtable
    for number in sorted(sizes, key=lambda number: -sizes[number]):
        end += -end % sizes[number]
        places[number] = end
        end += sizes[number]
    count = max(sizes, default=-1) + 1
    vtable = struct.pack(f"<{2 + count}H", 4 + 2 * count, end, *(places.get(number, 0) for number in range(count)))
    return vtable, tuple(places[number] for number, _ in shape), end


def _vector(out: bytearray, tables: list[Table], waiting: list[tuple[int, Value]]) -> int:
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
