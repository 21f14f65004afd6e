"""PLAIN values of every physical type, and their conversion to output values.

A value is `bool` for BOOLEAN, `bytes` for BYTE_ARRAY, and otherwise its PLAIN bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import Damaged, Inexact
from .hybrid_rle import pack, unpack

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = range(8)
SIZES = {INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}
Value = bool | bytes

NANOSECONDS_A_DAY = 24 * 60 * 60 * 10**9
JULIAN_DAY_OF_1970 = 2_440_588


@dataclass(frozen=True)
class ColumnType:
    """A flat column: physical type, length of FIXED_LEN_BYTE_ARRAY, and whether it is nullable."""

    physical: int
    length: int = 0
    optional: bool = False

    @property
    def size(self) -> int:
        """Return the stored bytes of a value; 0 for variable length and booleans."""
        return SIZES.get(self.physical, self.length)


def encode_plain(column: ColumnType, values: Sequence[Value]) -> bytes:
    if column.physical == BOOLEAN:
        return pack([int(value) for value in values], 1)
    if column.physical == BYTE_ARRAY:
        return b"".join(struct.pack("<I", len(value)) + value for value in values)
    assert all(len(value) == column.size for value in values)
    return b"".join(values)


def decode_plain(column: ColumnType, data: bytes, count: int) -> list[Value]:
    if column.physical == BOOLEAN:
        return [bit == 1 for bit in unpack(data, 1, count)]
    values: list[Value] = []
    pos = 0
    for _ in range(count):
        size = column.size
        if column.physical == BYTE_ARRAY:
            if len(data) - pos < 4:
                raise Damaged("length")
            (size,) = struct.unpack_from("<I", data, pos)
            pos += 4
        if size > len(data) - pos:
            raise Damaged("value")
        values.append(data[pos : pos + size])
        pos += size
    return values


def random_values(rng: np.random.Generator, column: ColumnType, count: int) -> list[Value]:
    """Draw values from the type's whole range."""
    if column.physical == BOOLEAN:
        return [bool(bit) for bit in rng.integers(0, 2, count)]
    if column.physical == BYTE_ARRAY:
        lengths = rng.choice([0, 1, 7, 15, 16, 17, 31, 32, 33, 100], count)
        return [rng.bytes(length) for length in lengths.tolist()]
    if column.physical == INT96:
        return [
            int96(*pair)
            for pair in zip(
                rng.integers(0, NANOSECONDS_A_DAY, count).tolist(),
                rng.integers(2_400_000, 2_500_000, count).tolist(),
                strict=True,
            )
        ]
    return [rng.bytes(column.size) for _ in range(count)]


def int96(nanoseconds: int, day: int) -> bytes:
    """Return an INT96 timestamp from nanoseconds of the day and Julian day."""
    return struct.pack("<qi", nanoseconds, day)


def keep(value: Value) -> bytes:
    return bytes([value]) if isinstance(value, bool) else value


def narrow_int(size: int):
    """Convert INT32 to its low `size` bytes."""
    return lambda value: (int.from_bytes(value, "little") % 256**size).to_bytes(size, "little")


def widen_to_float(signed: bool):
    """Convert INT32 or INT64 to float64; INT64 only up to 2**53, where float64 is exact."""

    def convert(value: bytes) -> bytes:
        number = int.from_bytes(value, "little", signed=signed)
        if len(value) == 8 and abs(number) > 2**53:
            raise Inexact
        return struct.pack("<d", float(number))

    return convert


def int96_to_ns(value: bytes) -> bytes:
    """Convert to nanoseconds since 1970; the least int64 is refused, because it is NumPy's NaT."""
    number = _nanoseconds(value)
    if not -(2**63) < number < 2**63:
        raise Inexact
    return struct.pack("<q", number)


def int96_to_us(value: bytes) -> bytes:
    """Convert to microseconds since 1970, rounded down.

    Spark computes the Julian day from an int64 sum that wraps near the upper end, so values just below the lower end
    can only be such timestamps.
    """
    number = _nanoseconds(value) // 1000
    before_1970 = JULIAN_DAY_OF_1970 * (NANOSECONDS_A_DAY // 1000)
    if number <= -(2**63) <= number + before_1970:
        number += 2**64
    if not -(2**63) < number < 2**63:
        raise Inexact
    return struct.pack("<q", number)


def _nanoseconds(value: bytes) -> int:
    nanoseconds, day = struct.unpack("<qi", value)
    return (day - JULIAN_DAY_OF_1970) * NANOSECONDS_A_DAY + nanoseconds
