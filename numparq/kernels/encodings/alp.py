"""ALP (AlpEncoding.md, ALP = 10): headers, vectors and exceptions, decoded and encoded."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import (
    load8,
    load16,
    load32,
    load64,
    store8,
    store16,
    store32,
    store64,
    store_float32,
    store_float64,
)
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_ALP, BAD_COUNT, TRUNCATED, UNSUPPORTED_ENCODING
from numparq.kernels.words import bit_length

from .alp_scaling import (
    EXCEPTIONS_OFFSET,
    HEADER,
    INTEGER_LIMIT_INDEX,
    INVERSE_INDEX,
    LARGEST_EXPONENT4,
    LARGEST_EXPONENT8,
    LOG_VECTOR_SIZE,
    OFFSET,
    PAIR_BASE,
    RANGE_LIMIT_INDEX,
    SCALES4,
    SCALES8,
    VECTOR_HEADER,
    VECTOR_SIZE,
    choose_pair,
    find_pairs,
    is_exact,
    scale_and_round,
)

_LEAST_LOG, _LARGEST_LOG = 3, 15
_ONE = np.uint64(1)


@helper
def read_header(data, pos, end, most, size):
    """Read a page's header; return the number of values or a status, and the log2 of the vector size."""
    # Each vector has at least its offset and its header, which bounds the number of values by the bytes.
    if end - pos < HEADER:
        return TRUNCATED, 0
    if load8(data, pos) != 0 or load8(data, pos + 1) != 0:  # no other mode is defined yet
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
    """Decode `count` doubles from integers of 58 to 64 bits, which may span nine bytes."""
    bit = pos << 3
    mask = ~np.uint64(0) >> np.uint64(64 - width)
    for i in range(count):
        low = load64(data, bit >> 3) >> np.uint64(bit & 7)
        high = (np.uint64(load8(data, (bit >> 3) + 8)) << _ONE) << np.uint64(63 - (bit & 7))  # not one shift by 64
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
def write_exception_values(data, pos, exceptions, count, size, out, out_pos):
    """Overwrite a vector's decoded values with its exceptions; return the position after them, or a status."""
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
    """Decode a vector of `count` values of `size` bytes; return the position after it, or a status."""
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
        up, down = SCALES4[factor], SCALES4[INVERSE_INDEX + exponent]
        read_floats(data, body, width, count, load32(data, pos + 4), up, down, out, out_pos)
    elif width <= 57:
        above, below = SCALES8[factor], SCALES8[INVERSE_INDEX + exponent]
        read_doubles(data, body, width, count, load64(data, pos + 4), above, below, out, out_pos)
    else:
        above, below = SCALES8[factor], SCALES8[INVERSE_INDEX + exponent]
        read_wide_doubles(data, body, width, count, load64(data, pos + 4), above, below, out, out_pos)
    return write_exception_values(data, positions, exceptions, count, size, out, out_pos)


@helper
def alp_to_plain(data, pos, end, most, size, room, out, out_pos):
    """Decode the values of a page; return their bytes or a status, and where they end in `data`.

    If they exceed `room`, nothing is written.
    """
    if pos >= end:  # if all are null, a writer may omit even the header
        return 0, end
    count, log = read_header(data, pos, end, most, size)
    if count < 0 or count * size > room:
        return (count * size if count >= 0 else count), end
    offsets = pos + HEADER
    vectors = (count + (1 << log) - 1) >> log
    pos = offsets + OFFSET * vectors
    for vector in range(vectors):
        if offsets + load32(data, offsets + OFFSET * vector) != pos:  # vectors are contiguous
            return BAD_ALP, pos
        done = vector << log
        pos = read_vector(data, pos, end, min(1 << log, count - done), size, out, out_pos + done * size)
        if pos < 0:
            return pos, end
    return count * size, pos


def max_alp_bytes(count: int, size: int) -> int:
    """Return the most bytes that `encode_alp4` or `encode_alp8` touch for `count` values of `size` (4 or 8) bytes."""
    vectors = -(-count // VECTOR_SIZE)
    return HEADER + vectors * (OFFSET + VECTOR_HEADER + size) + count * (2 + size) + 8


@helper
def encode_integers(values, bits, first, count, pair, scales, work):
    """Store a vector's integers and the positions of its exceptions; return the number of exceptions."""
    exponent, factor = pair // PAIR_BASE, pair % PAIR_BASE
    up, down, whole = scales[exponent], scales[INVERSE_INDEX + factor], scales[INTEGER_LIMIT_INDEX]
    back_up, back_down, beyond = scales[factor], scales[INVERSE_INDEX + exponent], scales[RANGE_LIMIT_INDEX]
    exceptions = 0
    for i in range(count):
        value = values[first + i]
        number = scale_and_round(value, up, down, whole)
        if is_exact(value, bits[first + i], number, back_up, back_down, beyond):
            work[i] = np.int64(number)
        else:
            work[EXCEPTIONS_OFFSET + exceptions] = i
            exceptions += 1
    # Exceptions get the first integer that is none, so that they do not widen the range.
    place = 0
    while place < exceptions and work[EXCEPTIONS_OFFSET + place] == place:
        place += 1
    stand_in = work[place] if place < count else np.int64(0)
    for k in range(exceptions):
        work[work[EXCEPTIONS_OFFSET + k]] = stand_in
    return exceptions


@helper
def mark_all_exceptions(count, work):
    """List a whole vector as exceptions, and return their number."""
    for i in range(count):
        work[EXCEPTIONS_OFFSET + i] = i
    return count


@helper
def pack(work, count, least, width, out, pos):
    """Pack a vector's integers less `least`; return the new position. Up to eight bytes after it are touched."""
    end = pos + ((count * width + 7) >> 3)
    waiting = np.uint64(0)
    filled = 0
    for i in range(count):
        number = np.uint64(work[i]) - np.uint64(least)
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
def store_sized(out, pos, value, size):
    """Store the low `size` bytes, 4 or 8, of an integer; return the position after them."""
    if size == 8:
        store64(out, pos, np.uint64(value))
    else:
        store32(out, pos, np.int64(value))
    return pos + size


@helper
def write_vector(values, bits, first, count, pair, scales, size, work, out, pos):
    """Encode a vector; return the new position."""
    exceptions = encode_integers(values, bits, first, count, pair, scales, work)
    least, most = work[0], work[0]
    for i in range(1, count):
        least, most = min(least, work[i]), max(most, work[i])
    width = bit_length(np.uint64(most) - np.uint64(least))
    # If the integers take more bits than they save, all values become exceptions.
    if count * width >= (count - exceptions) * 8 * (2 + size):
        exceptions, width, least = mark_all_exceptions(count, work), 0, 0
    store8(out, pos, pair // PAIR_BASE)
    store8(out, pos + 1, pair % PAIR_BASE)
    store16(out, pos + 2, exceptions)
    pos = store_sized(out, pos + 4, least, size)
    store8(out, pos, width)
    pos += 1
    if width > 0:
        pos = pack(work, count, least, width, out, pos)
    for k in range(exceptions):
        store16(out, pos, work[EXCEPTIONS_OFFSET + k])
        pos += 2
    for k in range(exceptions):
        pos = store_sized(out, pos, bits[first + work[EXCEPTIONS_OFFSET + k]], size)
    return pos


@helper
def encode_alp(values, bits, start, stop, scales, size, work, out, pos):
    """Encode values `start` to `stop`; return the new position."""
    count = stop - start
    store16(out, pos, 0)  # the only compression mode and integer encoding
    store8(out, pos + 2, LOG_VECTOR_SIZE)
    store32(out, pos + 3, count)
    offsets = pos + HEADER
    vectors = (count + VECTOR_SIZE - 1) >> LOG_VECTOR_SIZE
    known = find_pairs(values, bits, start, stop, scales, size, work)
    pos = offsets + OFFSET * vectors
    for vector in range(vectors):
        store32(out, offsets + OFFSET * vector, pos - offsets)
        first = start + (vector << LOG_VECTOR_SIZE)
        here = min(VECTOR_SIZE, stop - first)
        pair = choose_pair(values, bits, first, here, known, scales, size, work)
        pos = write_vector(values, bits, first, here, pair, scales, size, work, out, pos)
    return pos


@kernel("f4 i4 x x i8 u1 x")
def encode_alp4(values, bits, start, stop, work, out, pos):
    """Encode FLOAT values `start` to `stop` as ALP; return the new position.

    `bits` views `values` as integers, `work` has WORK_SIZE items, and `out` has `max_alp_bytes` bytes from `pos` on.
    """
    return encode_alp(values, bits, start, stop, SCALES4, 4, work, out, pos)


@kernel("f8 i8 x x i8 u1 x")
def encode_alp8(values, bits, start, stop, work, out, pos):
    """Encode DOUBLE values `start` to `stop` as ALP, as `encode_alp4` does."""
    return encode_alp(values, bits, start, stop, SCALES8, 8, work, out, pos)
