"""ALP (AlpEncoding.md, ALP = 10) with Python's integers and floats.

Values are PLAIN bytes, which keeps NaN payloads and signs of zeros.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from . import Damaged

ALP = 10
LARGEST_EXPONENT = {4: 10, 8: 18}
_LETTERS = {4: "f", 8: "d"}


class AlpVector(NamedTuple):
    """A stored vector: header, packed integers, and exceptions by position."""

    exponent: int
    factor: int
    frame: int
    width: int
    deltas: list[int]
    exceptions: list[tuple[int, bytes]]


@cache
def power(exponent: int, size: int) -> float:
    """Return a power of ten rounded to the nearest float."""
    exact = Fraction(10) ** exponent
    if size == 8:
        return float(exact)  # exactly rounded, as Python divides integers
    bits = struct.unpack("<i", struct.pack("<f", float(exact)))[0]
    around = [struct.unpack("<f", struct.pack("<i", bits + step))[0] for step in (-1, 0, 1)]
    return min(around, key=lambda value: abs(Fraction(value) - exact))


def rounded(number: float, size: int) -> float:
    """Round a double to a float of `size` bytes."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0] if size == 4 else number
    except OverflowError:
        return math.copysign(math.inf, number)


def product(one: float, other: float, size: int) -> float:
    """Multiply with one rounding: the product of two 24-bit floats is exact as a double."""
    return rounded(one * other, size)


def decode_value(integer: int, exponent: int, factor: int, size: int) -> bytes:
    """Return the float of an integer."""
    value = rounded(float(integer), size)  # an int32 is exact as a double
    value = product(product(value, power(factor, size), size), power(-exponent, size), size)
    return struct.pack("<" + _LETTERS[size], value)


def encode_value(value: bytes, exponent: int, factor: int, size: int) -> int | None:
    """Return the integer of a float, or None if it has none."""
    number = struct.unpack("<" + _LETTERS[size], value)[0]
    number = product(product(number, power(exponent, size), size), power(-factor, size), size)
    if not math.isfinite(number):
        return None
    integer = round(number)  # ties to even
    if abs(integer) >= 1 << (8 * size - 1):
        return None
    return integer if decode_value(integer, exponent, factor, size) == value else None


def pack(numbers: Sequence[int], width: int) -> bytes:
    """Pack numbers from the lowest bit."""
    together = sum(number << width * i for i, number in enumerate(numbers))
    return together.to_bytes((len(numbers) * width + 7) // 8, "little")


def vector_of(values: Sequence[bytes], exponent: int, factor: int, size: int) -> AlpVector:
    """Build a vector; without integers if they would take as many bits as the exceptions they save."""
    integers = [encode_value(value, exponent, factor, size) for value in values]
    kept = [integer for integer in integers if integer is not None]
    width = (max(kept) - min(kept)).bit_length() if kept else 0
    if width * len(values) >= len(kept) * 8 * (2 + size):
        integers, kept, width = [None] * len(values), [], 0
    frame, stand_in = (min(kept), kept[0]) if kept else (0, 0)
    deltas = [(stand_in if integer is None else integer) - frame for integer in integers]
    exceptions = [(i, value) for i, value in enumerate(values) if integers[i] is None]
    return AlpVector(exponent, factor, frame, width, deltas, exceptions)


def encode_vector(vector: AlpVector, size: int) -> bytes:
    """Encode a vector; any frame of reference and deltas that wrap to the right integers will do."""
    places, values = zip(*vector.exceptions, strict=True) if vector.exceptions else ((), ())
    frame = (vector.frame % (1 << 8 * size)).to_bytes(size, "little")
    head = struct.pack("<BBH", vector.exponent, vector.factor, len(places)) + frame + bytes([vector.width])
    return head + pack(vector.deltas, vector.width) + struct.pack(f"<{len(places)}H", *places) + b"".join(values)


def encode_page(vectors: Sequence[bytes], count: int, log: int = 10) -> bytes:
    """Encode a page: header, vector offsets, vectors."""
    offsets = [4 * len(vectors) + sum(map(len, vectors[:i])) for i in range(len(vectors))]
    return struct.pack(f"<BBBi{len(vectors)}I", 0, 0, log, count, *offsets) + b"".join(vectors)


def encode(values: Sequence[bytes], size: int, pairs: Sequence[tuple[int, int]], log: int = 10) -> bytes:
    """Encode values, each vector with its exponent and factor."""
    parts = [values[start : start + (1 << log)] for start in range(0, len(values), 1 << log)]
    vectors = [encode_vector(vector_of(part, *pair, size), size) for part, pair in zip(parts, pairs, strict=True)]
    return encode_page(vectors, len(values), log)


def encode_any(values: Sequence[bytes], size: int, rng: np.random.Generator) -> bytes:
    """Encode values in vectors of random size, exponent and factor."""
    log = int(rng.choice([3, 4, 5, 10, 15]))
    pairs = []
    for _ in range(0, len(values), 1 << log):
        exponent = int(rng.integers(0, LARGEST_EXPONENT[size] + 1))
        pairs.append((exponent, int(rng.integers(0, exponent + 1))))
    return encode(values, size, pairs, log)


def vectors_of(data: bytes, size: int, most: int) -> Iterator[tuple[int, AlpVector]]:
    """Return the number of values and the stored vector for each vector of a page."""
    if len(data) < 7 or data[:2] != b"\x00\x00" or not 3 <= data[2] <= 15:
        raise Damaged("the header")
    count = int.from_bytes(data[3:7], "little", signed=True)
    if not 0 <= count <= most:
        raise Damaged("the number of values")
    each, data = 1 << data[2], data[7:]
    number = -(-count // each)
    if len(data) < 4 * number:
        raise Damaged("the offsets")
    pos = 4 * number
    for i in range(number):
        if int.from_bytes(data[4 * i : 4 * i + 4], "little") != pos:
            raise Damaged("an offset")
        here = min(each, count - i * each)
        vector, pos = _vector(data, pos, here, size)
        yield here, vector


def _vector(data: bytes, pos: int, count: int, size: int) -> tuple[AlpVector, int]:
    def take(length: int) -> bytes:
        nonlocal pos
        if length > len(data) - pos:
            raise Damaged("the end")
        pos += length
        return data[pos - length : pos]

    exponent, factor, number = struct.unpack("<BBH", take(4))
    frame, width = int.from_bytes(take(size), "little", signed=True), take(1)[0]
    if not factor <= exponent <= LARGEST_EXPONENT[size] or number > count or width > 8 * size:
        raise Damaged("the header of a vector")
    together = int.from_bytes(take((count * width + 7) // 8), "little")
    deltas = [together >> width * i & (1 << width) - 1 for i in range(count)]
    places = struct.unpack(f"<{number}H", take(2 * number))
    if any(place >= count for place in places):
        raise Damaged("the place of an exception")
    exceptions = [(place, take(size)) for place in places]
    return AlpVector(exponent, factor, frame, width, deltas, exceptions), pos


def decode(data: bytes, size: int, most: int) -> list[bytes]:
    """Decode a page of at most `most` values."""
    values: list[bytes] = []
    half = 1 << (8 * size - 1)
    for _, vector in vectors_of(data, size, most):
        integers = [(vector.frame + delta + half) % (2 * half) - half for delta in vector.deltas]
        known: dict[int, bytes] = {}
        for integer in integers:
            if integer not in known:
                known[integer] = decode_value(integer, vector.exponent, vector.factor, size)
        part = [known[integer] for integer in integers]
        for place, value in vector.exceptions:
            part[place] = value
        values += part
    return values
