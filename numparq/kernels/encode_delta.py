"""DELTA_BINARY_PACKED (Encodings.md, DELTA_BINARY_PACKED = 5), written: differences, packed in blocks of 128."""

from __future__ import annotations

import numpy as np

from .bits import bit_length
from .memory import fill_bytes, store8, store32, store64
from .registry import helper, kernel

BLOCK = 128  # differences in a block: what every reader takes
MINIBLOCK = 32
_MINIBLOCKS = BLOCK // MINIBLOCK
_LONGEST_VARINT = 10


def delta_room(count: int, size: int) -> int:
    """Give the bytes that DELTA_BINARY_PACKED takes at most.

    Parameters
    ----------
    count : int
        Number of values.
    size : int
        Bytes of a value, 4 or 8.

    Returns
    -------
    int
        What `encode_delta4` or `encode_delta8` write, and what they may touch behind it.
    """
    header = 4 * _LONGEST_VARINT
    return header + (count // BLOCK + 1) * (_LONGEST_VARINT + _MINIBLOCKS + BLOCK * size) + 8


@helper
def write_varint(value, out, pos):
    """Write a uint64 as ULEB128; the new position."""
    while value > np.uint64(127):
        store8(out, pos, np.int64(value & np.uint64(127)) | 128)
        value = value >> np.uint64(7)
        pos += 1
    store8(out, pos, np.int64(value))
    return pos + 1


@helper
def varint_size(value):
    """Give the bytes that a uint64 takes as ULEB128."""
    return max(bit_length(value) + 6, 7) // 7


@helper
def zigzag(value):
    """Map an int64 to a uint64: 0, -1, 1, -2 to 0, 1, 2, 3."""
    return np.uint64((value << 1) ^ (value >> 63))


@helper
def difference(values, i, shift):
    """Subtract the value before from value `i`, wrapping around at 32 bits (`shift` 32) or 64 (`shift` 0)."""
    # An unsigned index: Numba would otherwise ask of each whether it is negative, and LLVM not vectorise.
    return ((np.int64(values[np.uint64(i)]) - np.int64(values[np.uint64(i - 1)])) << shift) >> shift


@helper
def least_difference(values, first, last, shift):
    """Find the smallest of the differences `first` to `last`, at least one."""
    least = difference(values, first, shift)
    for i in range(first + 1, last):
        least = min(least, difference(values, i, shift))
    return least


@helper
def packed_width(values, first, last, shift, least):
    """Give the bits that the differences `first` to `last` need once `least` is subtracted."""
    together = np.int64(0)
    for i in range(first, last):
        together |= difference(values, i, shift) - least
    return bit_length(np.uint64(together))


@helper
def pack_miniblock(values, first, last, shift, least, width, out, pos):
    """Pack the differences `first` to `last`, less `least`, in `width` bits each; zeros fill a miniblock up.

    Up to eight bytes behind are touched. Returns the new position.
    """
    end = pos + (MINIBLOCK // 8) * width
    fill_bytes(out, pos, 0, end - pos)
    waiting = np.uint64(0)
    filled = 0
    for i in range(first, last):
        number = np.uint64(difference(values, i, shift) - least)
        waiting |= number << np.uint64(filled)
        filled += width
        if filled >= 64:
            store64(out, pos, waiting)
            pos += 8
            filled -= 64
            waiting = (number >> np.uint64(1)) >> np.uint64(width - filled - 1)  # a shift by 64 is none
    if filled > 0:
        store64(out, pos, waiting)
    return end


@helper
def encode(values, start, stop, shift, out, pos):
    """Write values `start` to `stop`; the new position."""
    count = stop - start
    pos = write_varint(np.uint64(BLOCK), out, pos)
    pos = write_varint(np.uint64(_MINIBLOCKS), out, pos)
    pos = write_varint(np.uint64(count), out, pos)
    pos = write_varint(zigzag(np.int64(values[start]) if count > 0 else np.int64(0)), out, pos)
    for first in range(start + 1, stop, BLOCK):
        last = min(first + BLOCK, stop)
        least = least_difference(values, first, last, shift)
        pos = write_varint(zigzag(least), out, pos)
        widths = pos
        store32(out, widths, 0)
        pos += _MINIBLOCKS
        for begin in range(first, last, MINIBLOCK):
            end = min(begin + MINIBLOCK, last)
            width = packed_width(values, begin, end, shift, least)
            store8(out, widths + (begin - first) // MINIBLOCK, width)
            if width > 0:
                pos = pack_miniblock(values, begin, end, shift, least, width, out, pos)
    return pos


@helper
def size(values, start, stop, shift):
    """Give the bytes that `encode` would write."""
    count = stop - start
    total = varint_size(np.uint64(BLOCK)) + 1 + varint_size(np.uint64(count))
    total += varint_size(zigzag(np.int64(values[start]) if count > 0 else np.int64(0)))
    for first in range(start + 1, stop, BLOCK):
        last = min(first + BLOCK, stop)
        least = least_difference(values, first, last, shift)
        total += varint_size(zigzag(least)) + _MINIBLOCKS
        for begin in range(first, last, MINIBLOCK):
            width = packed_width(values, begin, min(begin + MINIBLOCK, last), shift, least)
            total += (MINIBLOCK // 8) * width
    return total


@helper
def encode4(values, start, stop, out, pos):
    """As `encode_delta4`, for the other encodings, whose lengths are written so."""
    return encode(values, start, stop, 32, out, pos)


@kernel("i4 x x u1 x")
def encode_delta4(values, start, stop, out, pos):
    """Write INT32 values `start` to `stop` as DELTA_BINARY_PACKED.

    `out` has `delta_room` bytes from `pos` on. Returns the new position.
    """
    return encode4(values, start, stop, out, pos)


@kernel("i8 x x u1 x")
def encode_delta8(values, start, stop, out, pos):
    """Write INT64 values `start` to `stop` as DELTA_BINARY_PACKED; as `encode_delta4`."""
    return encode(values, start, stop, 0, out, pos)


@kernel("i4 x x")
def delta_size4(values, start, stop):
    """Give the bytes that `encode_delta4` would write."""
    return size(values, start, stop, 32)


@kernel("i8 x x")
def delta_size8(values, start, stop):
    """Give the bytes that `encode_delta8` would write."""
    return size(values, start, stop, 0)
