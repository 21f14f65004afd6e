"""RLE / bit-packing hybrid (Encodings.md, RLE = 3), decoded and encoded."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import fill_bytes, load8, load64, store8, store32, store64
from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.status import BAD_RUN, BAD_VARINT, INDEX_OUT_OF_RANGE, TRUNCATED

from .bit_packing import ONES, load_item, pack8, pack_any, pack_pairs, pack_quads, unpack_bits

# Least length of an RLE run by bit width: it costs two more headers, and a value in whole bytes.
_LEAST = np.array([8, 32, 16] + [8] * 30, np.int64)


@helper
def read_run_header(data, pos, end):
    """Read a run's ULEB128 header of at most five bytes; return the position or a status, and the header."""
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
def run_values(header, left):
    """Return how many of the `left` values a run holds, or BAD_RUN if it is empty; it may hold more than are left."""
    count = header >> 1
    if count == 0:
        return BAD_RUN
    return min(count << 3 if header & 1 else count, left)


@inlined
def next_run(data, pos, end, left, width):
    """Read the header of a run of values of `width` bits, and check that `left` values and the bytes have room for it.

    Return the position of its values or a status, the header, and the number of values.
    """
    pos, header = read_run_header(data, pos, end)
    if pos < 0:
        return pos, header, 0
    here = run_values(header, left)
    if here < 0:
        return here, header, 0
    size = (here if header & 1 else 1) * width + 7 >> 3
    return (pos if size <= end - pos else TRUNCATED), header, here


@helper
def load_partial(data, pos, count):
    """Load a little-endian number of `count` bytes (0 to 4)."""
    value = 0
    for i in range(count):
        value |= load8(data, pos + i) << (8 * i)
    return value


@helper
def decode_hybrid_bits(data, pos, end, count, out, out_pos):
    """Decode `count` one-bit values to bytes of 0 or 1; return the end position or a status, and the number of ones.

    Definition levels of flat columns and RLE booleans are such values.
    """
    done = 0
    ones = 0
    while done < count:
        pos, header, here = next_run(data, pos, end, count - done, 1)
        if pos < 0:
            return pos, 0
        if header & 1:
            ones += unpack_bits(data, pos, here, out, out_pos + done)
            pos += header >> 1
        else:
            value = load8(data, pos)
            if value > 1:
                return BAD_RUN, 0
            pos += 1
            fill_bytes(out, out_pos + done, value, here)
            ones += here * value
        done += here
    return pos, ones


@helper
def decode_hybrid_indices(data, pos, end, count, width, limit, out, out_pos):
    """Decode `count` indices below `limit` to int32s at byte `out_pos`; return the end position or a status."""
    done = 0
    size = (width + 7) >> 3
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    while done < count:
        pos, header, here = next_run(data, pos, end, count - done, width)
        if pos < 0:
            return pos
        target = out_pos + (done << 2)
        if header & 1:
            largest = 0
            bit = pos << 3
            for i in range(here):
                index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
                largest = max(largest, index)
                store32(out, target + (i << 2), index)
                bit += width
            pos += (header >> 1) * width
        else:
            largest = load_partial(data, pos, size)
            for i in range(here):
                store32(out, target + (i << 2), largest)
            pos += size
        if largest >= limit:
            return INDEX_OUT_OF_RANGE
        done += here
    return pos


def max_hybrid_bytes(count: int, bit_width: int) -> int:
    """Return the most bytes that `encode_hybrid_u1` and `encode_hybrid_i4` touch for `count` values."""
    return (count // 8 + 1) * (bit_width + 1) + 26


@helper
def write_run_header(out, pos, number):
    """Write a ULEB128 number; return the position after it."""
    while number > 0x7F:
        store8(out, pos, (number & 0x7F) | 0x80)
        number >>= 7
        pos += 1
    store8(out, pos, number)
    return pos + 1


@helper
def byte_run_length(values, i, stop):
    """Count the equal bytes from `i` on."""
    first = load8(values, i)
    repeated = np.uint64(first) * ONES
    pos = i
    while pos + 8 <= stop and load64(values, pos) == repeated:
        pos += 8
    while pos < stop and load8(values, pos) == first:
        pos += 1
    return pos - i


@helper
def find_byte_run(values, i, stop, least):
    """Return where the bit-packed groups of eight bytes that begin at `i` should end: where a run begins."""
    for pos in range(i + 8, stop - least + 1, 8):
        word = load64(values, pos)
        differ = (word ^ ((word & np.uint64(0xFF)) * ONES)) | (word ^ load64(values, pos + least - 8))
        if differ == np.uint64(0) and byte_run_length(values, pos, pos + least) == least:
            return pos
    return stop


@helper
def write_packed_bytes(values, i, end, bit_width, out, pos):
    """Write bytes as one bit-packed run; return the position after it."""
    pos = write_run_header(out, pos, ((end - i + 7) >> 3) << 1 | 1)
    width = np.uint64(bit_width)
    while i + 8 <= end:
        store64(out, pos, pack8(load64(values, i), width))
        i += 8
        pos += bit_width
    if i < end:
        word = np.uint64(0)
        for k in range(end - i):
            word |= np.uint64(load8(values, i + k)) << np.uint64(k << 3)
        store64(out, pos, pack8(word, width))
        pos += bit_width
    return pos


@kernel("u1 x x x u1 x")
def encode_hybrid_u1(values, start, stop, bit_width, out, pos):
    """Encode levels or booleans `start` to `stop`, below ``1 << bit_width``; return the new position.

    `out` has `max_hybrid_bytes` bytes from `pos` on, all of which may be overwritten.
    """
    least = _LEAST[bit_width]
    i = start
    while i < stop:
        run = byte_run_length(values, i, stop)
        if (run >= least) | (run == stop - i):
            pos = write_run_header(out, pos, run << 1)
            store8(out, pos, load8(values, i))
            pos += (bit_width + 7) >> 3
            i += run
        else:
            end = find_byte_run(values, i, stop, least)
            pos = write_packed_bytes(values, i, end, bit_width, out, pos)
            i = end
    return pos


@helper
def run_length(values, i, stop):
    """Count the equal values from `i` on."""
    first = load_item(values, i)
    pos = i + 1
    while pos + 8 <= stop:
        other = np.uint64(0)
        for k in range(8):
            other |= load_item(values, pos + k) ^ first
        if other != np.uint64(0):
            break
        pos += 8
    while pos < stop and load_item(values, pos) == first:
        pos += 1
    return pos - i


@helper
def find_run(values, i, stop, least):
    """Return where the bit-packed groups of eight values that begin at `i` should end: where a run begins."""
    # A look at a few values is enough for most groups, even with two distinct values only. Their sum is tested, because
    # comparisons would become branches that are often mispredicted.
    for pos in range(i + 8, stop - least + 1, 8):
        total = (
            load_item(values, pos + 2)
            + load_item(values, pos + 5)
            + load_item(values, pos + 7)
            + load_item(values, pos + least - 1)
        )
        if total == load_item(values, pos) << np.uint64(2) and run_length(values, pos, pos + least) == least:
            return pos
    return stop


@helper
def write_packed(values, i, end, bit_width, out, pos):
    """Write values as one bit-packed run; return the position after it."""
    pos = write_run_header(out, pos, ((end - i + 7) >> 3) << 1 | 1)
    groups = (end - i) >> 3
    if bit_width <= 15:
        pos = pack_quads(values, i, groups, bit_width, out, pos)
    elif bit_width <= 30:
        pos = pack_pairs(values, i, groups, bit_width, out, pos)
    else:
        groups = 0
    return pack_any(values, i + (groups << 3), end - i - (groups << 3), bit_width, out, pos)


@kernel("i4 x x x u1 x")
def encode_hybrid_i4(values, start, stop, bit_width, out, pos):
    """Encode dictionary indices, int32s of 0 to 32 bits, as `encode_hybrid_u1` does."""
    least = _LEAST[bit_width]
    i = start
    while i < stop:
        run = run_length(values, i, stop)
        if (run >= least) | (run == stop - i):
            pos = write_run_header(out, pos, run << 1)
            store64(out, pos, load_item(values, i))
            pos += (bit_width + 7) >> 3
            i += run
        else:
            end = find_run(values, i, stop, least)
            pos = write_packed(values, i, end, bit_width, out, pos)
            i = end
    return pos
