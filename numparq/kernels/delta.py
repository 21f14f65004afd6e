"""DELTA_BINARY_PACKED (Encodings.md, DELTA_BINARY_PACKED = 5), read: a first value, and packed differences.

All sums are uint64, which wraps around as the format wants it; of INT32 values the low half is kept. Up to nine
bytes behind `end` may be loaded (the buffers have slack), but no bit from there is used.
"""

from __future__ import annotations

import numpy as np

from ..errors import BAD_COUNT, BAD_DELTA, BAD_VARINT, TRUNCATED
from .memory import load8, load64, store32, store64
from .registry import helper

_LARGEST_BLOCK = (1 << 31) - 1
_ONE = np.uint64(1)
_MOST_NARROW = 57  # bits that are within eight bytes, wherever the first of them is


@helper
def read_varint(data, pos, end):
    """Read a ULEB128 number of at most 64 bits: (new position or status, uint64)."""
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
    """Map 0, 1, 2, 3 back to 0, -1, 1, -2, as uint64."""
    return (number >> _ONE) ^ (np.uint64(0) - (number & _ONE))


@helper
def read_header(data, pos, end, most):
    """Read a delta header: (new position or status, values of a block, of a miniblock, of all, the first one).

    `most` is how many values there may be. Miniblocks of other sizes than multiples of 32 are none of the format, but
    some writers can be told to make them; only whole bytes are asked for.
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
    largest = np.uint64(_LARGEST_BLOCK)
    if block == 0 or block > largest or miniblocks == 0 or miniblocks > block:
        return BAD_DELTA, 0, 0, 0, nothing
    each = np.int64(block) // np.int64(miniblocks)
    if each * np.int64(miniblocks) != np.int64(block) or each & 7 != 0:
        return BAD_DELTA, 0, 0, 0, nothing
    if total > np.uint64(most):
        return BAD_COUNT, 0, 0, 0, nothing
    return pos, np.int64(block), each, np.int64(total), unzigzag(first)


@helper
def add_narrow(data, pos, width, count, value, least, size, out, out_pos):
    """Add up `count` differences of up to 57 bits, packed from `pos` on; the last value."""
    bit = pos << 3
    mask = (_ONE << np.uint64(width)) - _ONE
    if size == 8:
        for i in range(count):
            value += least + ((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
            store64(out, out_pos + (i << 3), value)
            bit += width
    else:
        for i in range(count):
            value += least + ((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
            store32(out, out_pos + (i << 2), np.int64(value))
            bit += width
    return value


@helper
def add_wide(data, pos, width, count, value, least, out, out_pos):
    """Add up `count` INT64 differences of 58 to 64 bits, which may lie in nine bytes; the last value."""
    bit = pos << 3
    mask = ~np.uint64(0) >> np.uint64(64 - width)
    for i in range(count):
        low = load64(data, bit >> 3) >> np.uint64(bit & 7)
        high = (np.uint64(load8(data, (bit >> 3) + 8)) << _ONE) << np.uint64(63 - (bit & 7))  # by 64 it is nothing
        value += least + ((low | high) & mask)
        store64(out, out_pos + (i << 3), value)
        bit += width
    return value


@helper
def add_block(data, pos, end, block, each, count, value, size, out, out_pos):
    """Read a block, of which `count` values are left: (new position or status, the last value)."""
    pos, number = read_varint(data, pos, end)
    if pos < 0:
        return pos, value
    least = unzigzag(number)
    widths = pos
    pos += block // each
    if pos > end:
        return TRUNCATED, value
    done = 0
    while done < count:
        here = min(each, count - done)
        width = load8(data, widths)
        # DuckDB takes the differences of INT32 values as those of INT64: they have up to 34 bits.
        if width > (64 if size == 8 else _MOST_NARROW):
            return BAD_DELTA, value
        if (here * width + 7) >> 3 > end - pos:
            return TRUNCATED, value
        if width <= _MOST_NARROW:
            value = add_narrow(data, pos, width, here, value, least, size, out, out_pos + done * size)
        else:
            value = add_wide(data, pos, width, here, value, least, out, out_pos + done * size)
        pos = min(pos + ((each * width) >> 3), end)  # some writers leave the padding at the very end out
        widths += 1
        done += here
    return pos, value


@helper
def read_deltas(data, pos, end, most, size, room, out, out_pos):
    """Decode DELTA_BINARY_PACKED values, to `size` (4 or 8) bytes each.

    Parameters
    ----------
    data, pos, end
        The header and the blocks; other things may follow them.
    most : int
        The values that there may be.
    size : int
        Bytes of a value.
    room : int
        Bytes that may be written.
    out, out_pos
        Where the values go.

    Returns
    -------
    pos : int
        The position behind the last block, or a negative status.
    count : int
        How many values there are, or would be: where they take more than `room` bytes, nothing is read.
    """
    pos, block, each, total, value = read_header(data, pos, end, most)
    if pos < 0 or total == 0 or total * size > room:
        return pos, total
    if size == 8:
        store64(out, out_pos, value)
    else:
        store32(out, out_pos, np.int64(value))
    done = 1
    while done < total:
        here = min(block, total - done)
        pos, value = add_block(data, pos, end, block, each, here, value, size, out, out_pos + done * size)
        if pos < 0:
            return pos, total
        done += here
    return pos, total
