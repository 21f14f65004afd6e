"""Definition levels of flat columns to validity: one byte a value, 1 where it is present."""

from __future__ import annotations

from ..errors import BAD_LEVELS, TRUNCATED
from .hybrid import decode_bits
from .memory import load8, load32, store8
from .registry import helper
from .tables import BIT_PACKED, BIT_PACKED_LOW, RLE


@helper
def level_section(data, pos, end, count, encoding):
    """Find the one-bit level section at the start of a V1 page: (first byte or status, end).

    RLE sections carry their length in four bytes in front; BIT_PACKED ones (deprecated) have the size that
    their count needs.
    """
    if encoding == RLE:
        if end - pos < 4:
            return TRUNCATED, 0
        size = load32(data, pos)
        if size > end - pos - 4:
            return TRUNCATED, 0
        return pos + 4, pos + 4 + size
    if encoding == BIT_PACKED or encoding == BIT_PACKED_LOW:
        size = (count + 7) >> 3
        if size > end - pos:
            return TRUNCATED, 0
        return pos, pos + size
    return BAD_LEVELS, 0


@helper
def unpack_bits_of_bytes(data, pos, count, first, out, out_pos):
    """Expand `count` bits, those of each byte from bit `first` on, 7 (BIT_PACKED = 4) or 0; returns the ones."""
    ones = 0
    for i in range(count):
        bit = (load8(data, pos + (i >> 3)) >> (first ^ (i & 7))) & 1
        store8(out, out_pos + i, bit)
        ones += bit
    return ones


@helper
def decode_validity(data, pos, end, count, encoding, out, out_pos):
    """Decode `count` one-bit levels of a section found by `level_section`; the number present, or a status."""
    if encoding == BIT_PACKED or encoding == BIT_PACKED_LOW:
        return unpack_bits_of_bytes(data, pos, count, 7 if encoding == BIT_PACKED else 0, out, out_pos)
    return decode_bits(data, pos, end, count, out, out_pos)
