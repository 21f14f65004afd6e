"""DELTA_BINARY_PACKED (Encodings.md, 5), decoded and encoded."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import fill_bytes, load8, load64, store8, store32, store64
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_DELTA, BAD_VARINT, TRUNCATED
from numparq.kernels.words import bit_length

_LARGEST_BLOCK = (1 << 31) - 1
_MOST_VALUES = np.uint64(1 << 62)
_ONE = np.uint64(1)
_MOST_NARROW = 57  # most bits that lie within eight bytes at any bit offset

BLOCK = 128  # differences in a block, as every reader accepts it
MINIBLOCK = 32
_MINIBLOCKS = BLOCK // MINIBLOCK
_LONGEST_VARINT = 10


@helper
def read_varint(data, pos, end):
    """Read a ULEB128 number of at most 64 bits; return the new position or a status, and the uint64."""
    number = np.uint64(0)
    for shift in range(0, 70, 7):
        if pos >= end:
            return TRUNCATED, np.uint64(0)
        byte = load8(data, pos)
        pos += 1
        if shift == 63 and byte > 1:
            break
        number |= np.uint64(byte & 0x7F) << np.uint64(shift)
        if byte < 0x80:
            return pos, number
    return BAD_VARINT, np.uint64(0)


@helper
def unzigzag(number):
    """Return the signed number of a zigzag code (0, -1, 1, -2 of 0, 1, 2, 3), as uint64."""
    return (number >> _ONE) ^ (np.uint64(0) - (number & _ONE))


@helper
def read_header(data, pos, end):
    """Read a delta header.

    Return the new position or a status, the values per block, per miniblock and in all, and the first value.
    """
    nothing = np.uint64(0)
    pos, block = read_varint(data, pos, end)
    if pos < 0:
        return pos, 0, 0, 0, nothing
    pos, miniblocks = read_varint(data, pos, end)
    if pos < 0:
        return pos, 0, 0, 0, nothing
    pos, total = read_varint(data, pos, end)
    if pos < 0:
        return pos, 0, 0, 0, nothing
    pos, first = read_varint(data, pos, end)
    if pos < 0:
        return pos, 0, 0, 0, nothing
    # The format wants miniblocks of multiples of 32, but some writers can be configured otherwise: whole bytes do.
    largest = np.uint64(_LARGEST_BLOCK)
    if block == 0 or block > largest or miniblocks == 0 or miniblocks > block:
        return BAD_DELTA, 0, 0, 0, nothing
    each = np.int64(block) // np.int64(miniblocks)
    if each * np.int64(miniblocks) != np.int64(block) or each & 7 != 0:
        return BAD_DELTA, 0, 0, 0, nothing
    return pos, np.int64(block), each, np.int64(min(total, _MOST_VALUES)), unzigzag(first)


@helper
def unpack_narrow(data, pos, width, count, value, min_delta, size, out, out_pos):
    """Sum up `count` differences of up to 57 bits, packed from `pos` on; return the last value."""
    bit = pos << 3
    mask = (_ONE << np.uint64(width)) - _ONE
    if size == 8:
        for i in range(count):
            value += min_delta + ((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
            store64(out, out_pos + (i << 3), value)
            bit += width
    else:
        for i in range(count):
            value += min_delta + ((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
            store32(out, out_pos + (i << 2), np.int64(value))
            bit += width
    return value


@helper
def unpack_wide(data, pos, width, count, value, min_delta, out, out_pos):
    """Sum up `count` INT64 differences of 58 to 64 bits, which may span nine bytes; return the last value."""
    bit = pos << 3
    mask = ~np.uint64(0) >> np.uint64(64 - width)
    for i in range(count):
        low = load64(data, bit >> 3) >> np.uint64(bit & 7)
        high = (np.uint64(load8(data, (bit >> 3) + 8)) << _ONE) << np.uint64(63 - (bit & 7))  # not one shift by 64
        value += min_delta + ((low | high) & mask)
        store64(out, out_pos + (i << 3), value)
        bit += width
    return value


@helper
def read_block(data, pos, end, block, miniblock_size, count, value, size, out, out_pos):
    """Decode a block, of which `count` values are left; return the new position or a status, and the last value."""
    pos, number = read_varint(data, pos, end)
    if pos < 0:
        return pos, value
    least = unzigzag(number)
    widths = pos
    pos += block // miniblock_size
    if pos > end:
        return TRUNCATED, value
    done = 0
    while done < count:
        here = min(miniblock_size, count - done)
        width = load8(data, widths)
        # DuckDB computes the differences of INT32 values as INT64: they have up to 34 bits.
        if width > (64 if size == 8 else _MOST_NARROW):
            return BAD_DELTA, value
        if (here * width + 7) >> 3 > end - pos:
            return TRUNCATED, value
        if width <= _MOST_NARROW:
            value = unpack_narrow(data, pos, width, here, value, least, size, out, out_pos + done * size)
        else:
            value = unpack_wide(data, pos, width, here, value, least, out, out_pos + done * size)
        pos = min(pos + ((miniblock_size * width) >> 3), end)  # some writers omit the last padding
        widths += 1
        done += here
    return pos, value


@helper
def read_deltas(data, pos, end, max_values, size, room, out, out_pos):
    """Decode at most `max_values` values to `size` (4 or 8) bytes each; if they exceed `room` bytes, none is decoded.

    Return the position after their last block or a status, and the count of the header, which may be higher.
    """
    pos, block, each, total, value = read_header(data, pos, end)
    count = min(total, max_values)
    if pos < 0 or count == 0 or count * size > room:
        return pos, total
    if size == 8:
        store64(out, out_pos, value)
    else:
        store32(out, out_pos, np.int64(value))
    done = 1
    while done < count:
        here = min(block, count - done)
        pos, value = read_block(data, pos, end, block, each, here, value, size, out, out_pos + done * size)
        if pos < 0:
            return pos, total
        done += here
    return pos, total


def max_delta_bytes(count: int, size: int) -> int:
    """Return the most bytes that `encode_deltas` touches for `count` values of `size` bytes."""
    header = 4 * _LONGEST_VARINT
    return header + (count // BLOCK + 1) * (_LONGEST_VARINT + _MINIBLOCKS + BLOCK * size) + 8


@helper
def write_varint(value, out, pos):
    """Write a uint64 as ULEB128; return the new position."""
    while value > np.uint64(127):
        store8(out, pos, np.int64(value & np.uint64(127)) | 128)
        value = value >> np.uint64(7)
        pos += 1
    store8(out, pos, np.int64(value))
    return pos + 1


@helper
def varint_size(value):
    """Return the bytes that a uint64 takes as ULEB128."""
    return max(bit_length(value) + 6, 7) // 7


@helper
def zigzag(value):
    """Return the zigzag code of an int64: 0, 1, 2, 3 of 0, -1, 1, -2."""
    return np.uint64((value << 1) ^ (value >> 63))


@helper
def difference(values, i, shift):
    """Return value `i` less the one before, wrapped around at 32 bits (`shift` 32) or 64 (`shift` 0)."""
    # Unsigned index: Numba would test a signed one for negative values, and LLVM not vectorise.
    return ((np.int64(values[np.uint64(i)]) - np.int64(values[np.uint64(i - 1)])) << shift) >> shift


@helper
def min_difference(values, first, last, shift):
    """Return the smallest of the differences `first` to `last`, at least one."""
    least = difference(values, first, shift)
    for i in range(first + 1, last):
        least = min(least, difference(values, i, shift))
    return least


@helper
def packed_width(values, first, last, shift, min_delta):
    """Return the bit width of the differences `first` to `last` less `min_delta`."""
    together = np.int64(0)
    for i in range(first, last):
        together |= difference(values, i, shift) - min_delta
    return bit_length(np.uint64(together))


@helper
def pack_miniblock(values, first, last, shift, min_delta, width, out, pos):
    """Pack the differences `first` to `last` less `min_delta` in `width` bits each; return the new position.

    Zeros pad the miniblock. Up to eight bytes after it are touched.
    """
    end = pos + (MINIBLOCK // 8) * width
    fill_bytes(out, pos, 0, end - pos)
    waiting = np.uint64(0)
    filled = 0
    for i in range(first, last):
        number = np.uint64(difference(values, i, shift) - min_delta)
        waiting |= number << np.uint64(filled)
        filled += width
        if filled >= 64:
            store64(out, pos, waiting)
            pos += 8
            filled -= 64
            waiting = (number >> np.uint64(1)) >> np.uint64(width - filled - 1)  # not one shift by 64
    if filled > 0:
        store64(out, pos, waiting)
    return end


@helper
def encode_deltas(values, start, stop, shift, out, pos):
    """Encode values `start` to `stop` as DELTA_BINARY_PACKED; return the new position.

    `out` has `max_delta_bytes` bytes from `pos` on. `shift` is 32 for INT32, 0 for INT64.
    """
    count = stop - start
    pos = write_varint(np.uint64(BLOCK), out, pos)
    pos = write_varint(np.uint64(_MINIBLOCKS), out, pos)
    pos = write_varint(np.uint64(count), out, pos)
    pos = write_varint(zigzag(np.int64(values[start]) if count > 0 else np.int64(0)), out, pos)
    for first in range(start + 1, stop, BLOCK):
        last = min(first + BLOCK, stop)
        least = min_difference(values, first, last, shift)
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
def deltas_size(values, start, stop, shift):
    """Return the bytes that `encode_deltas` would write."""
    count = stop - start
    total = varint_size(np.uint64(BLOCK)) + 1 + varint_size(np.uint64(count))
    total += varint_size(zigzag(np.int64(values[start]) if count > 0 else np.int64(0)))
    for first in range(start + 1, stop, BLOCK):
        last = min(first + BLOCK, stop)
        least = min_difference(values, first, last, shift)
        total += varint_size(zigzag(least)) + _MINIBLOCKS
        for begin in range(first, last, MINIBLOCK):
            width = packed_width(values, begin, min(begin + MINIBLOCK, last), shift, least)
            total += (MINIBLOCK // 8) * width
    return total


@helper
def encode_deltas4(values, start, stop, out, pos):
    """Encode INT32 values, such as lengths in other encodings."""
    return encode_deltas(values, start, stop, 32, out, pos)


@kernel("i4 i8 x i8")
def delta_sizes4(values, ranges, count, out):
    """Write the bytes that `encode_deltas` would write of ranges of int32 values: pairs of first and exclusive last."""
    for i in range(count):
        out[i] = deltas_size(values, ranges[2 * i], ranges[2 * i + 1], 32)
    return 0


@kernel("i8 i8 x i8")
def delta_sizes8(values, ranges, count, out):
    """Write the bytes that `encode_deltas` would write of each range of int64 values, as `delta_sizes4` does."""
    for i in range(count):
        out[i] = deltas_size(values, ranges[2 * i], ranges[2 * i + 1], 0)
    return 0
