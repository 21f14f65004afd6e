"""Bit packing, from the lowest bit and (BIT_PACKED = 4) from the highest bit."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, popcount, store8, store64
from numparq.kernels.registry import helper, inlined

ONES = np.uint64(0x0101010101010101)
_DIAGONAL = np.uint64(0x8040201008040201)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)

_BYTES, _PAIRS, _QUADS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)


@helper
def spread_bits(byte):
    """Spread the bits of a byte, lowest first, over the bytes of a uint64, each 0 or 1."""
    isolated = (np.uint64(byte) * ONES) & _DIAGONAL
    return ((isolated + _SEVENS) >> np.uint64(7)) & ONES


@helper
def unpack_bits(data, pos, count, out, out_pos):
    """Unpack `count` bits to bytes of 0 or 1; return the number of ones. The caller checks the bounds."""
    ones = 0
    whole = count >> 3
    for i in range(whole):
        byte = load8(data, pos + i)
        store64(out, out_pos + (i << 3), spread_bits(byte))
        ones += popcount(np.uint64(byte))
    for i in range(whole << 3, count):
        bit = (load8(data, pos + (i >> 3)) >> (i & 7)) & 1
        store8(out, out_pos + i, bit)
        ones += bit
    return ones


@inlined
def pack8(word, width):
    """Pack the lowest `width` bits of each of the eight bytes of a word."""
    word = (word & _BYTES) | (((word >> np.uint64(8)) & _BYTES) << width)
    word = (word & _PAIRS) | (((word >> np.uint64(16)) & _PAIRS) << (width << np.uint64(1)))
    return (word & _QUADS) | ((word >> np.uint64(32)) << (width << np.uint64(2)))


@inlined
def load_item(values, i):
    """Return a value as a uint64."""
    return np.uint64(np.uint32(values[np.uint64(i)]))


@inlined
def pack_quad(values, i, bit_width):
    """Pack four values of at most 15 bits into a word."""
    word = np.uint64(0)
    for k in range(4):
        word |= load_item(values, i + k) << np.uint64(k * bit_width)
    return word


@helper
def pack_quads(values, i, groups, bit_width, out, pos):
    """Pack groups of eight values of 1 to 15 bits as two words, the second with the bits that share its first byte."""
    place = (bit_width << 2) >> 3
    shift = np.uint64((bit_width << 2) & 7)
    before = np.uint64(place << 3)
    for _ in range(groups):
        low = pack_quad(values, i, bit_width)
        store64(out, pos, low)
        store64(out, pos + place, (pack_quad(values, i + 4, bit_width) << shift) | (low >> before))
        i += 8
        pos += bit_width
    return pos


@helper
def pack_pairs(values, i, groups, bit_width, out, pos):
    """Pack groups of eight values of 16 to 30 bits as four words, in the manner of `pack_quads`."""
    width = np.uint64(bit_width)
    pair = bit_width << 1
    for _ in range(groups):
        before = np.uint64(0)
        for k in range(4):
            word = load_item(values, i + 2 * k) | (load_item(values, i + 2 * k + 1) << width)
            shift = (k * pair) & 7
            store64(out, pos + ((k * pair) >> 3), (word << np.uint64(shift)) | (before >> np.uint64(pair - shift)))
            before = word
        i += 8
        pos += bit_width
    return pos


@helper
def pack_any(values, i, count, bit_width, out, pos):
    """Pack `count` values of any width, zero-padded to a whole group; return the new position."""
    word = np.uint64(0)
    filled = 0
    for k in range((count + 7) & ~7):
        if k < count:
            word |= load_item(values, i + k) << np.uint64(filled)
        filled += bit_width
        store64(out, pos, word)
        pos += filled >> 3
        word >>= np.uint64(filled & ~7)
        filled &= 7
    return pos


@helper
def unpack_bits_ordered(data, pos, count, first, out, out_pos):
    """Unpack `count` bits, each byte from bit `first` on: 7 (BIT_PACKED = 4) or 0; return the number of ones."""
    ones = 0
    for i in range(count):
        bit = (load8(data, pos + (i >> 3)) >> (first ^ (i & 7))) & 1
        store8(out, out_pos + i, bit)
        ones += bit
    return ones


@helper
def unpack_levels(data, pos, count, width, highest_first, out, out_pos):
    """Unpack `count` levels of `width` bits, with the highest bit first (BIT_PACKED = 4) or the lowest."""
    bit = pos << 3
    for i in range(count):
        value = 0
        for k in range(width):
            byte = load8(data, bit >> 3)
            if highest_first:
                value = (value << 1) | ((byte >> (7 - (bit & 7))) & 1)
            else:
                value |= ((byte >> (bit & 7)) & 1) << k
            bit += 1
        store8(out, out_pos + i, value)
    return 0
