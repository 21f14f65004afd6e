"""The RLE / bit-packing hybrid, encoded: long runs of one value, and between them groups of eight packed values.

`runs_room` says how much room the encoders need; they write a few bytes behind the end of what they encode.
"""

from __future__ import annotations

import numpy as np

from .hybrid import ONES
from .memory import load8, load64, store8, store64
from .registry import helper, inlined, kernel

# Equal values, by bit width, that are worth a run among packed values: two more headers, and the value in whole bytes.
_LEAST = np.array([8, 32, 16] + [8] * 30, np.int64)
_BYTES, _PAIRS, _QUADS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)


def runs_room(count: int, bit_width: int) -> int:
    """Say how many bytes `encode_runs_u1` and `encode_runs_i4` may write to.

    Parameters
    ----------
    count : int
        Number of values.
    bit_width : int
        Bits of a value.

    Returns
    -------
    int
        Bytes.
    """
    return (count // 8 + 1) * (bit_width + 1) + 26


@helper
def put_header(out, pos, number):
    """Write a ULEB128 number; the position behind it."""
    while number > 0x7F:
        store8(out, pos, (number & 0x7F) | 0x80)
        number >>= 7
        pos += 1
    store8(out, pos, number)
    return pos + 1


@inlined
def squeezed(word, width):
    """Pack the eight bytes of a word, of which the lowest `width` bits are used."""
    word = (word & _BYTES) | (((word >> np.uint64(8)) & _BYTES) << width)
    word = (word & _PAIRS) | (((word >> np.uint64(16)) & _PAIRS) << (width << np.uint64(1)))
    return (word & _QUADS) | ((word >> np.uint64(32)) << (width << np.uint64(2)))


@helper
def byte_run(values, i, stop):
    """Count the bytes from `i` on that are equal."""
    first = load8(values, i)
    repeated = np.uint64(first) * ONES
    pos = i
    while pos + 8 <= stop and load64(values, pos) == repeated:
        pos += 8
    while pos < stop and load8(values, pos) == first:
        pos += 1
    return pos - i


@helper
def packed_bytes_end(values, i, stop, least):
    """Find where groups of eight bytes, of which the first is at `i`, had better end: where a run begins."""
    for pos in range(i + 8, stop - least + 1, 8):
        word = load64(values, pos)
        differ = (word ^ ((word & np.uint64(0xFF)) * ONES)) | (word ^ load64(values, pos + least - 8))
        if differ == np.uint64(0) and byte_run(values, pos, pos + least) == least:
            return pos
    return stop


@helper
def put_packed_bytes(values, i, end, bit_width, out, pos):
    """Write bytes as one bit-packed run; the position behind it."""
    pos = put_header(out, pos, ((end - i + 7) >> 3) << 1 | 1)
    width = np.uint64(bit_width)
    while i + 8 <= end:
        store64(out, pos, squeezed(load64(values, i), width))
        i += 8
        pos += bit_width
    if i < end:
        word = np.uint64(0)
        for k in range(end - i):
            word |= np.uint64(load8(values, i + k)) << np.uint64(k << 3)
        store64(out, pos, squeezed(word, width))
        pos += bit_width
    return pos


@kernel("u1 x x x u1 x")
def encode_runs_u1(values, start, stop, bit_width, out, pos):
    """Encode levels, or booleans, in the hybrid, with nothing in front.

    Parameters
    ----------
    values : uint8
        Each below ``1 << bit_width``.
    start, stop : int
        Which of them.
    bit_width : int
        Bits of a value, 0 to 8.
    out : uint8
        Room for ``runs_room(stop - start, bit_width)`` bytes from `pos` on, all of which may be written to.
    pos : int
        Where the runs go.

    Returns
    -------
    int
        The position behind them.
    """
    least = _LEAST[bit_width]
    i = start
    while i < stop:
        run = byte_run(values, i, stop)
        if (run >= least) | (run == stop - i):
            pos = put_header(out, pos, run << 1)
            store8(out, pos, load8(values, i))
            pos += (bit_width + 7) >> 3
            i += run
        else:
            end = packed_bytes_end(values, i, stop, least)
            pos = put_packed_bytes(values, i, end, bit_width, out, pos)
            i = end
    return pos


@inlined
def item(values, i):
    """Give a value as a uint64."""
    return np.uint64(np.uint32(values[np.uint64(i)]))


@helper
def run_length(values, i, stop):
    """Count the values from `i` on that are equal."""
    first = item(values, i)
    pos = i + 1
    while pos + 8 <= stop:
        other = np.uint64(0)
        for k in range(8):
            other |= item(values, pos + k) ^ first
        if other != np.uint64(0):
            break
        pos += 8
    while pos < stop and item(values, pos) == first:
        pos += 1
    return pos - i


@helper
def packed_end(values, i, stop, least):
    """Find where groups of eight values, of which the first is at `i`, had better end: where a run begins.

    A look at a few values is enough for most groups, also where there are only two different ones. It goes by their
    sum, for comparisons would become branches, each of which is often mispredicted.
    """
    for pos in range(i + 8, stop - least + 1, 8):
        total = item(values, pos + 2) + item(values, pos + 5) + item(values, pos + 7) + item(values, pos + least - 1)
        if total == item(values, pos) << np.uint64(2) and run_length(values, pos, pos + least) == least:
            return pos
    return stop


@inlined
def quad(values, i, bit_width):
    """Pack four values of at most 15 bits."""
    word = np.uint64(0)
    for k in range(4):
        word |= item(values, i + k) << np.uint64(k * bit_width)
    return word


@helper
def pack_quads(values, i, groups, bit_width, out, pos):
    """Pack groups of eight values of 1 to 15 bits: two words, the second with the bits that share its first byte."""
    place = (bit_width << 2) >> 3
    shift = np.uint64((bit_width << 2) & 7)
    before = np.uint64(place << 3)
    for _ in range(groups):
        low = quad(values, i, bit_width)
        store64(out, pos, low)
        store64(out, pos + place, (quad(values, i + 4, bit_width) << shift) | (low >> before))
        i += 8
        pos += bit_width
    return pos


@helper
def pack_pairs(values, i, groups, bit_width, out, pos):
    """Pack groups of eight values of 16 to 30 bits: four words, as `pack_quads` does."""
    width = np.uint64(bit_width)
    pair = bit_width << 1
    for _ in range(groups):
        before = np.uint64(0)
        for k in range(4):
            word = item(values, i + 2 * k) | (item(values, i + 2 * k + 1) << width)
            shift = (k * pair) & 7
            store64(out, pos + ((k * pair) >> 3), (word << np.uint64(shift)) | (before >> np.uint64(pair - shift)))
            before = word
        i += 8
        pos += bit_width
    return pos


@helper
def pack_slowly(values, i, count, bit_width, out, pos):
    """Pack `count` values of any width, bit after bit; up to a whole group, zeros stand for what is missing."""
    word = np.uint64(0)
    filled = 0
    for k in range((count + 7) & ~7):
        if k < count:
            word |= item(values, i + k) << np.uint64(filled)
        filled += bit_width
        store64(out, pos, word)
        pos += filled >> 3
        word >>= np.uint64(filled & ~7)
        filled &= 7
    return pos


@helper
def put_packed(values, i, end, bit_width, out, pos):
    """Write values as one bit-packed run; the position behind it."""
    pos = put_header(out, pos, ((end - i + 7) >> 3) << 1 | 1)
    groups = (end - i) >> 3
    if bit_width <= 15:
        pos = pack_quads(values, i, groups, bit_width, out, pos)
    elif bit_width <= 30:
        pos = pack_pairs(values, i, groups, bit_width, out, pos)
    else:
        groups = 0
    return pack_slowly(values, i + (groups << 3), end - i - (groups << 3), bit_width, out, pos)


@kernel("i4 x x x u1 x")
def encode_runs_i4(values, start, stop, bit_width, out, pos):
    """Encode dictionary indices in the hybrid: as `encode_runs_u1`, for int32s of 0 to 32 bits."""
    least = _LEAST[bit_width]
    i = start
    while i < stop:
        run = run_length(values, i, stop)
        if (run >= least) | (run == stop - i):
            pos = put_header(out, pos, run << 1)
            store64(out, pos, item(values, i))
            pos += (bit_width + 7) >> 3
            i += run
        else:
            end = packed_end(values, i, stop, least)
            pos = put_packed(values, i, end, bit_width, out, pos)
            i = end
    return pos
