"""The RLE / bit-packed hybrid (Encodings.md, RLE = 3): runs of one value, and runs of groups of eight packed values.

All readers here may load up to eight bytes behind `end` (the buffers have slack), but never use a bit from there.
"""

from __future__ import annotations

import numpy as np

from ..errors import BAD_RUN, BAD_VARINT, INDEX_OUT_OF_RANGE, TRUNCATED
from .memory import copy_bytes, fill_bytes, load8, load32, load64, popcount, store8, store32, store64
from .registry import helper

ONES = np.uint64(0x0101010101010101)
_DIAGONAL = np.uint64(0x8040201008040201)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)


@helper
def read_run_header(data, pos, end):
    """Read a run's ULEB128 header, at most 32 bits of it: (position or status, header)."""
    header = 0
    shift = 0
    while shift < 35:
        if pos >= end:
            return TRUNCATED, 0
        byte = load8(data, pos)
        pos += 1
        header |= (byte & 0x7F) << shift
        if byte < 0x80:
            return pos, header
        shift += 7
    return BAD_VARINT, 0


@helper
def load_partial(data, pos, count):
    """Load a little-endian number of `count` bytes (0 to 4)."""
    value = 0
    for i in range(count):
        value |= load8(data, pos + i) << (8 * i)
    return value


@helper
def spread_bits(byte):
    """Spread the eight bits of a byte, lowest first, over the eight bytes of a uint64, each 0 or 1."""
    isolated = (np.uint64(byte) * ONES) & _DIAGONAL
    return ((isolated + _SEVENS) >> np.uint64(7)) & ONES


@helper
def unpack_bits(data, pos, count, out, out_pos):
    """Expand `count` bits to bytes of 0 or 1; the caller has checked that the bits are there. Returns the ones."""
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


@helper
def decode_bits(data, pos, end, count, out, out_pos):
    """Decode `count` values of one bit to bytes of 0 or 1.

    Returns the number of ones, or a negative status. Definition levels of flat columns and RLE booleans are this.
    """
    done = 0
    ones = 0
    while done < count:
        pos, header = read_run_header(data, pos, end)
        if pos < 0:
            return pos
        if header & 1:
            here = min((header >> 1) << 3, count - done)
            size = (here + 7) >> 3
            if here <= 0:
                return BAD_RUN
            if size > end - pos:
                return TRUNCATED
            ones += unpack_bits(data, pos, here, out, out_pos + done)
            pos += header >> 1
        else:
            here = min(header >> 1, count - done)
            if here <= 0:
                return BAD_RUN
            if pos >= end:
                return TRUNCATED
            value = load8(data, pos)
            if value > 1:
                return BAD_RUN
            pos += 1
            fill_bytes(out, out_pos + done, value, here)
            ones += here * value
        done += here
    return ones


@helper
def decode_indices(data, pos, end, count, width, limit, out, out_pos):
    """Decode `count` dictionary indices below `limit` to int32s at byte position `out_pos`; 0 or a status."""
    done = 0
    size = (width + 7) >> 3
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    while done < count:
        pos, header = read_run_header(data, pos, end)
        if pos < 0:
            return pos
        here = min((header >> 1) << 3 if header & 1 else header >> 1, count - done)
        if here <= 0:
            return BAD_RUN
        target = out_pos + (done << 2)
        if header & 1:
            if (here * width + 7) >> 3 > end - pos:
                return TRUNCATED
            largest = 0
            bit = pos << 3
            for i in range(here):
                index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
                largest = max(largest, index)
                store32(out, target + (i << 2), index)
                bit += width
            pos += (header >> 1) * width
        else:
            if size > end - pos:
                return TRUNCATED
            largest = load_partial(data, pos, size)
            for i in range(here):
                store32(out, target + (i << 2), largest)
            pos += size
        if largest >= limit:
            return INDEX_OUT_OF_RANGE
        done += here
    return 0


@helper
def gather8(data, bit, count, width, mask, dictionary, base, limit, out, target):
    """Look up `count` packed indices among values of eight bytes; INDEX_OUT_OF_RANGE or 0."""
    for i in range(count):
        index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
        if index >= limit:
            return INDEX_OUT_OF_RANGE
        store64(out, target + (i << 3), load64(dictionary, base + (index << 3)))
        bit += width
    return 0


@helper
def gather4(data, bit, count, width, mask, dictionary, base, limit, out, target):
    """Look up `count` packed indices among values of four bytes; INDEX_OUT_OF_RANGE or 0."""
    for i in range(count):
        index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
        if index >= limit:
            return INDEX_OUT_OF_RANGE
        store32(out, target + (i << 2), load32(dictionary, base + (index << 2)))
        bit += width
    return 0


@helper
def gather_any(data, bit, count, width, mask, dictionary, base, limit, item, out, target):
    """Look up `count` packed indices among values of `item` bytes; INDEX_OUT_OF_RANGE or 0."""
    for i in range(count):
        index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
        if index >= limit:
            return INDEX_OUT_OF_RANGE
        copy_bytes(out, target + i * item, dictionary, base + index * item, item)
        bit += width
    return 0


@helper
def repeat_value(dictionary, pos, item, count, out, target):
    """Write one value of `item` bytes `count` times."""
    if item == 8:
        value = load64(dictionary, pos)
        for i in range(count):
            store64(out, target + (i << 3), value)
    elif item == 4:
        small = load32(dictionary, pos)
        for i in range(count):
            store32(out, target + (i << 2), small)
    elif item == 1:
        fill_bytes(out, target, load8(dictionary, pos), count)
    else:
        for i in range(count):
            copy_bytes(out, target + i * item, dictionary, pos, item)
    return 0


@helper
def gather_indices(data, pos, end, count, width, dictionary, base, limit, item, out, out_pos):
    """Decode `count` indices of `width` bits and write the dictionary's values that they name.

    Parameters
    ----------
    data, pos, end
        The runs: from `pos`, ending at `end`.
    count, width
        Number of indices, and bits of each (0 to 32).
    dictionary, base, limit, item
        `limit` values of `item` bytes each, from byte `base`.
    out, out_pos
        Where the values go.

    Returns
    -------
    int
        0, or a negative status.
    """
    done = 0
    size = (width + 7) >> 3
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    while done < count:
        pos, header = read_run_header(data, pos, end)
        if pos < 0:
            return pos
        here = min((header >> 1) << 3 if header & 1 else header >> 1, count - done)
        if here <= 0:
            return BAD_RUN
        target = out_pos + done * item
        if header & 1:
            if (here * width + 7) >> 3 > end - pos:
                return TRUNCATED
            if item == 8:
                status = gather8(data, pos << 3, here, width, mask, dictionary, base, limit, out, target)
            elif item == 4:
                status = gather4(data, pos << 3, here, width, mask, dictionary, base, limit, out, target)
            else:
                status = gather_any(data, pos << 3, here, width, mask, dictionary, base, limit, item, out, target)
            if status < 0:
                return status
            pos += (header >> 1) * width
        else:
            if size > end - pos:
                return TRUNCATED
            index = load_partial(data, pos, size)
            if index >= limit:
                return INDEX_OUT_OF_RANGE
            repeat_value(dictionary, base + index * item, item, here, out, target)
            pos += size
        done += here
    return 0
