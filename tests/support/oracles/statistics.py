"""Bounds, counts, hashes and Bloom filters with Python numbers, one value at a time."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

FORMATS = {
    ("signed", 4): "<i",
    ("signed", 8): "<q",
    ("unsigned", 4): "<I",
    ("unsigned", 8): "<Q",
    ("boolean", 1): "<?",
    ("float", 2): "<e",
    ("float", 4): "<f",
    ("float", 8): "<d",
}


def sort_value(kind: str, value: bytes):
    """Return a PLAIN value as something that Python compares in the column's order."""
    if kind == "bytes":
        return value
    if kind == "decimal":
        total = 0
        for byte in value:
            total = total * 256 + byte
        return total - 256 ** len(value) if value and value[0] >= 128 else total
    return struct.unpack(FORMATS[kind, len(value)], value)[0]


def total_order_key(value: bytes) -> tuple[int, int]:
    """Return the key of a float in IEEE 754's total order: sign, then magnitude."""
    bits = int.from_bytes(value, "little")
    sign, magnitude = divmod(bits, 1 << (8 * len(value) - 1))
    return (0, -magnitude) if sign else (1, magnitude)


def bounds(kind: str, total: bool, values: Sequence[bytes]) -> tuple[bytes | None, bytes | None, int]:
    """Return the smallest and the largest value, and the number of NaNs."""
    if kind != "float":
        ranked = sorted(values, key=lambda value: sort_value(kind, value))
        return (ranked[0], ranked[-1], 0) if ranked else (None, None, 0)
    others = [value for value in values if not math.isnan(sort_value(kind, value))]
    nans = len(values) - len(others)
    if total:
        ranked = sorted(others or values, key=total_order_key)
        return (ranked[0], ranked[-1], nans) if ranked else (None, None, nans)
    if not others:
        return None, None, nans
    low, high = min(sort_value(kind, value) for value in others), max(sort_value(kind, value) for value in others)
    code = FORMATS[kind, len(values[0])]
    return struct.pack(code, -0.0 if low == 0 else low), struct.pack(code, 0.0 if high == 0 else high), nans


SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


def bloom_bits(value: int, num_blocks: int) -> list[int]:
    """Return the Bloom filter bits of a hash, numbered from the first byte's first bit."""
    block = (value // 2**32) * num_blocks // 2**32
    return [256 * block + 32 * word + (value % 2**32) * SALT[word] % 2**32 // 2**27 for word in range(8)]


def bloom_filter(hashes: Sequence[int], num_blocks: int) -> bytes:
    """Return the bit set of a Bloom filter."""
    bits = {place for value in hashes for place in bloom_bits(value, num_blocks)}
    return bytes(sum(1 << bit for bit in range(8) if 8 * byte + bit in bits) for byte in range(32 * num_blocks))


def bloom_may_contain(bitset: bytes, value: int) -> bool:
    """Whether a Bloom filter may contain a hash."""
    return all(bitset[place // 8] >> place % 8 & 1 for place in bloom_bits(value, len(bitset) // 32))
