"""ALP (AlpEncoding.md, ALP = 10), read: vectors of packed integers that powers of ten make floats again.

A vector's integers lie above its frame of reference; what no integer stands for exactly are its exceptions. All sums
are those of unsigned integers, which wrap around, and all products of the column's own type, one after the other, so
that every reader gets the same bits. Up to nine bytes behind `end` may be loaded (the buffers have slack), but no bit
from there is used.
"""

from __future__ import annotations

import numpy as np

from ..errors import BAD_ALP, BAD_COUNT, NEED_ROOM, TRUNCATED, UNSUPPORTED_ENCODING
from .alp_tables import (
    HEADER,
    INVERSE,
    LARGEST_EXPONENT4,
    LARGEST_EXPONENT8,
    OFFSET,
    SCALES4,
    SCALES8,
    VECTOR_HEADER,
)
from .memory import copy_bytes, load8, load16, load32, load64, store32, store64, store_float32, store_float64
from .registry import helper, kernel
from .tables import (
    C_TYPE,
    CHUNK_FIELDS,
    DOUBLE,
    P_CHUNK,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    PAGE_FIELDS,
)
from .value_section import STATE_NEEDED, STATE_PAGE, find_values, say_plain

_LEAST_LOG, _LARGEST_LOG = 3, 15
_ONE = np.uint64(1)


@helper
def read_header(data, pos, end, most, size):
    """Read a page's header: (number of values or a status, log2 of the vector size).

    Each vector has at least its offset and its header, which bounds the values by the bytes that there are.
    """
    if end - pos < HEADER:
        return TRUNCATED, 0
    if load8(data, pos) != 0 or load8(data, pos + 1) != 0:  # modes to come
        return UNSUPPORTED_ENCODING, 0
    log = load8(data, pos + 2)
    count = load32(data, pos + 3)
    if log < _LEAST_LOG or log > _LARGEST_LOG:
        return BAD_ALP, 0
    if count > most:
        return BAD_COUNT, 0
    vectors = (count + (1 << log) - 1) >> log
    if vectors * (OFFSET + VECTOR_HEADER + size) > end - pos - HEADER:
        return TRUNCATED, 0
    return count, log


@helper
def read_doubles(data, pos, width, count, frame, up, down, out, out_pos):
    """Decode `count` doubles from integers of up to 57 bits, packed from `pos` on."""
    bit = pos << 3
    mask = (_ONE << np.uint64(width)) - _ONE
    for i in range(count):
        number = np.int64(frame + ((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask))
        store_float64(out, out_pos + (i << 3), np.float64(number) * up * down)
        bit += width
    return 0


@helper
def read_wide_doubles(data, pos, width, count, frame, up, down, out, out_pos):
    """Decode `count` doubles from integers of 58 to 64 bits, which may lie in nine bytes."""
    bit = pos << 3
    mask = ~np.uint64(0) >> np.uint64(64 - width)
    for i in range(count):
        low = load64(data, bit >> 3) >> np.uint64(bit & 7)
        high = (np.uint64(load8(data, (bit >> 3) + 8)) << _ONE) << np.uint64(63 - (bit & 7))  # by 64 it is nothing
        number = np.int64(frame + ((low | high) & mask))
        store_float64(out, out_pos + (i << 3), np.float64(number) * up * down)
        bit += width
    return 0


@helper
def read_floats(data, pos, width, count, frame, up, down, out, out_pos):
    """Decode `count` floats from integers of up to 32 bits, packed from `pos` on."""
    bit = pos << 3
    mask = (_ONE << np.uint64(width)) - _ONE
    for i in range(count):
        number = frame + np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
        store_float32(out, out_pos + (i << 2), np.float32((number << 32) >> 32) * up * down)
        bit += width
    return 0


@helper
def put_exceptions(data, pos, exceptions, count, size, out, out_pos):
    """Write a vector's exceptions over what its integers gave; the position behind them, or a status."""
    values = pos + 2 * exceptions
    for i in range(exceptions):
        place = load16(data, pos + 2 * i)
        if place >= count:
            return BAD_ALP
        if size == 8:
            store64(out, out_pos + (place << 3), load64(data, values + (i << 3)))
        else:
            store32(out, out_pos + (place << 2), load32(data, values + (i << 2)))
    return values + exceptions * size


@helper
def read_vector(data, pos, end, count, size, out, out_pos):
    """Decode a vector of `count` values of `size` bytes; the position behind it, or a status."""
    body = pos + VECTOR_HEADER + size
    if body > end:
        return TRUNCATED
    exponent, factor, exceptions = load8(data, pos), load8(data, pos + 1), load16(data, pos + 2)
    width = load8(data, body - 1)
    largest = LARGEST_EXPONENT8 if size == 8 else LARGEST_EXPONENT4
    if exponent > largest or factor > exponent or exceptions > count or width > size << 3:
        return BAD_ALP
    positions = body + ((count * width + 7) >> 3)
    if positions + exceptions * (2 + size) > end:
        return TRUNCATED
    if size == 4:
        up, down = SCALES4[factor], SCALES4[INVERSE + exponent]
        read_floats(data, body, width, count, load32(data, pos + 4), up, down, out, out_pos)
    elif width <= 57:
        above, below = SCALES8[factor], SCALES8[INVERSE + exponent]
        read_doubles(data, body, width, count, load64(data, pos + 4), above, below, out, out_pos)
    else:
        above, below = SCALES8[factor], SCALES8[INVERSE + exponent]
        read_wide_doubles(data, body, width, count, load64(data, pos + 4), above, below, out, out_pos)
    return put_exceptions(data, positions, exceptions, count, size, out, out_pos)


@helper
def alp_to_plain(data, pos, end, most, size, room, out, out_pos):
    """Write the values of a page; the bytes that they take, or a status. Of more than `room` nothing is written."""
    if pos >= end:  # where all are null, a writer may leave even the header out
        return 0
    count, log = read_header(data, pos, end, most, size)
    if count < 0 or count * size > room:
        return count * size if count >= 0 else count
    offsets = pos + HEADER
    vectors = (count + (1 << log) - 1) >> log
    pos = offsets + OFFSET * vectors
    for vector in range(vectors):
        if offsets + load32(data, offsets + OFFSET * vector) != pos:  # vectors follow one another without padding
            return BAD_ALP
        done = vector << log
        pos = read_vector(data, pos, end, min(1 << log, count - done), size, out, out_pos + done * size)
        if pos < 0:
            return pos
    return count * size if pos == end else BAD_ALP


@kernel("i8 i8 x x u1 u1 u1 x i8")
def decode_alp_to_plain(chunks, pages, first, last, raw, scratch, out, room, state):
    """Make data pages PLAIN, as many of the rows `first` to `last` of the page table as there is room for.

    Parameters
    ----------
    chunks, pages : int64 tables
        The pages' rows are rewritten; all of them are ALP, of FLOAT or DOUBLE.
    first, last : int
        The pages.
    raw, scratch : uint8
        The file's bytes, and the decompressed ones.
    out : uint8
        What the rewritten rows call scratch; `room` of its bytes may be used.
    state : int64, STATE_FIELDS
        Item 0 is the page that a negative status is about.

    Returns
    -------
    int
        The page behind the last one that was done, or a negative status. NEED_ROOM: not even the first one has room;
        it needs the bytes of item 1.
    """
    filled = 0
    for number in range(first, last):
        state[STATE_PAGE] = number
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        kept, pos, end = find_values(chunks, chunk, pages, page, raw, scratch)
        if kept < 0:
            return kept
        data = scratch if pages[page + P_IS_COMPRESSED] else raw
        value_size = 8 if chunks[chunk + C_TYPE] == DOUBLE else 4
        left = room - filled - kept
        size = alp_to_plain(data, pos, end, pages[page + P_NUM_VALUES], value_size, left, out, filled + kept)
        if size < 0:
            return size
        if size > left:
            state[STATE_NEEDED] = kept + size
            return number if number > first else NEED_ROOM
        copy_bytes(out, filled, data, pos - kept, kept)
        say_plain(pages, page, filled, kept, size)
        filled += kept + size
    return last
