"""ALP (AlpEncoding.md, ALP = 10), written: floats as packed integers, wherever powers of ten give them back exactly.

Which powers suit the values is tried out on samples: of each of a few vectors the pair of exponent and factor that
makes a sample smallest, and then, vector by vector, the best of these pairs. Whatever does not come back bit by bit
(NaN, infinities, -0.0, digits that are too many) becomes an exception: no choice is ever a wrong one.
"""

from __future__ import annotations

import numpy as np

from .alp_tables import (
    BEYOND,
    HEADER,
    INVERSE,
    LARGEST_EXPONENT4,
    LARGEST_EXPONENT8,
    OFFSET,
    SCALES4,
    SCALES8,
    VECTOR_HEADER,
    WHOLE,
)
from .bits import bit_length
from .memory import store8, store16, store32, store64
from .registry import helper, inlined, kernel

LOG = 10  # of the vector size, as the format recommends
VECTOR = 1 << LOG
PAIRS = 8  # vectors that are sampled, each for a pair of exponent and factor
SAMPLE = 32  # values of a vector that are tried out
# Items of the array that kernels work in: a vector's integers, its exceptions' places, the pairs.
_PLACES, _PAIRS = VECTOR, 2 * VECTOR
WORK = _PAIRS + PAIRS
_PAIR = 32  # a pair is the exponent times this, and the factor
_LARGEST, _SMALLEST = (1 << 63) - 1, -(1 << 63)


def alp_room(count: int, size: int) -> int:
    """Give the bytes that ALP takes at most.

    Parameters
    ----------
    count : int
        Number of values.
    size : int
        Bytes of a value, 4 or 8.

    Returns
    -------
    int
        What `encode_alp4` or `encode_alp8` write, and what they may touch behind it.
    """
    vectors = -(-count // VECTOR)
    return HEADER + vectors * (OFFSET + VECTOR_HEADER + size) + count * (2 + size) + 8


@inlined
def scaled(value, up, down, whole):
    """Multiply by two powers of ten and round, ties to even: the integer, still as a float; NaN stays NaN."""
    number = value * up * down
    if number >= whole or number <= -whole:  # it is an integer already, or infinite
        return number
    return (number + whole) - whole if number >= 0 else (number - whole) + whole


@inlined
def comes_back(value, bits, number, up, down, beyond):
    """Say whether an integer, as a float, is in its type's range and decodes to just these bits."""
    return -beyond < number and number < beyond and number * up * down == value and (number != 0 or bits == 0)


@helper
def price(values, bits, first, step, count, pair, scales, size, limit):
    """Give the bits that `count` values, every `step`-th from `first` on, take with a pair; `limit` if not less."""
    exponent, factor = pair // _PAIR, pair % _PAIR
    least, most = _LARGEST, _SMALLEST
    exceptions = 0
    for k in range(count):
        i = first + k * step
        value = values[i]
        number = scaled(value, scales[exponent], scales[INVERSE + factor], scales[WHOLE])
        if comes_back(value, bits[i], number, scales[factor], scales[INVERSE + exponent], scales[BEYOND]):
            integer = np.int64(number)
            least, most = min(least, integer), max(most, integer)
        else:
            exceptions += 1
            if exceptions * 8 * (2 + size) >= limit:
                return limit
    width = bit_length(np.uint64(most) - np.uint64(least)) if exceptions < count else 0
    return min(count * width + exceptions * 8 * (2 + size), limit)


@helper
def best_pair(values, bits, first, step, count, scales, size):
    """Find the pair of exponent and factor that makes a sample smallest: of such, the one of the largest exponent."""
    best, lowest = 0, _LARGEST
    for exponent in range(LARGEST_EXPONENT8 if size == 8 else LARGEST_EXPONENT4, -1, -1):
        for factor in range(exponent, -1, -1):
            pair = exponent * _PAIR + factor
            bid = price(values, bits, first, step, count, pair, scales, size, lowest)
            if bid < lowest:
                best, lowest = pair, bid
    return best


@helper
def sample_of(count):
    """Say how to sample a vector of `count` values: (how many, how far apart)."""
    size = min(count, SAMPLE)
    return size, (count - 1) // (size - 1) if size > 1 else 1


@helper
def find_pairs(values, bits, start, stop, scales, size, work):
    """Collect the best pair of each of some vectors, no pair twice; how many there are."""
    vectors = (stop - start + VECTOR - 1) >> LOG
    samples = min(vectors, PAIRS)
    known = 0
    for k in range(samples):
        first = start + ((k * vectors // samples) << LOG)
        count, step = sample_of(min(VECTOR, stop - first))
        work[_PAIRS + known] = best_pair(values, bits, first, step, count, scales, size)
        place = _PAIRS
        while work[place] != work[_PAIRS + known]:
            place += 1
        if place == _PAIRS + known:
            known += 1
    return known


@helper
def choose_pair(values, bits, first, count, known, scales, size, work):
    """Find the one of the `known` pairs that makes a sample of a vector smallest."""
    best, lowest = work[_PAIRS], _LARGEST
    if known == 1:
        return best
    sample, step = sample_of(count)
    for k in range(known):
        bid = price(values, bits, first, step, sample, work[_PAIRS + k], scales, size, lowest)
        if bid < lowest:
            best, lowest = work[_PAIRS + k], bid
    return best


@helper
def make_integers(values, bits, first, count, pair, scales, work):
    """Make a vector's integers, an exception's being the first that is none, and list the exceptions: their number."""
    exponent, factor = pair // _PAIR, pair % _PAIR
    up, down, whole = scales[exponent], scales[INVERSE + factor], scales[WHOLE]
    back_up, back_down, beyond = scales[factor], scales[INVERSE + exponent], scales[BEYOND]
    exceptions = 0
    for i in range(count):
        value = values[first + i]
        number = scaled(value, up, down, whole)
        if comes_back(value, bits[first + i], number, back_up, back_down, beyond):
            work[i] = np.int64(number)
        else:
            work[_PLACES + exceptions] = i
            exceptions += 1
    place = 0
    while place < exceptions and work[_PLACES + place] == place:
        place += 1
    stand_in = work[place] if place < count else np.int64(0)
    for k in range(exceptions):
        work[work[_PLACES + k]] = stand_in
    return exceptions


@helper
def except_all(count, work):
    """List a whole vector as exceptions, where its integers take more bits than they save; their number."""
    for i in range(count):
        work[_PLACES + i] = i
    return count


@helper
def pack(work, count, least, width, out, pos):
    """Pack a vector's integers less `least`; up to eight bytes behind are touched. Returns the new position."""
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
            waiting = (number >> np.uint64(1)) >> np.uint64(width - filled - 1)  # a shift by 64 is none
    if filled > 0:
        store64(out, pos, waiting)
    return end


@helper
def store_sized(out, pos, value, size):
    """Store the low `size` bytes, 4 or 8, of an integer; the position behind them."""
    if size == 8:
        store64(out, pos, np.uint64(value))
    else:
        store32(out, pos, np.int64(value))
    return pos + size


@helper
def write_vector(values, bits, first, count, pair, scales, size, work, out, pos):
    """Write a vector; the new position."""
    exceptions = make_integers(values, bits, first, count, pair, scales, work)
    least, most = work[0], work[0]
    for i in range(1, count):
        least, most = min(least, work[i]), max(most, work[i])
    width = bit_length(np.uint64(most) - np.uint64(least))
    if count * width >= (count - exceptions) * 8 * (2 + size):
        exceptions, width, least = except_all(count, work), 0, 0
    store8(out, pos, pair // _PAIR)
    store8(out, pos + 1, pair % _PAIR)
    store16(out, pos + 2, exceptions)
    pos = store_sized(out, pos + 4, least, size)
    store8(out, pos, width)
    pos += 1
    if width > 0:
        pos = pack(work, count, least, width, out, pos)
    for k in range(exceptions):
        store16(out, pos, work[_PLACES + k])
        pos += 2
    for k in range(exceptions):
        pos = store_sized(out, pos, bits[first + work[_PLACES + k]], size)
    return pos


@helper
def encode(values, bits, start, stop, scales, size, work, out, pos):
    """Write values `start` to `stop`; the new position."""
    count = stop - start
    store16(out, pos, 0)  # the modes, of which there is one
    store8(out, pos + 2, LOG)
    store32(out, pos + 3, count)
    offsets = pos + HEADER
    vectors = (count + VECTOR - 1) >> LOG
    known = find_pairs(values, bits, start, stop, scales, size, work)
    pos = offsets + OFFSET * vectors
    for vector in range(vectors):
        store32(out, offsets + OFFSET * vector, pos - offsets)
        first = start + (vector << LOG)
        here = min(VECTOR, stop - first)
        pair = choose_pair(values, bits, first, here, known, scales, size, work)
        pos = write_vector(values, bits, first, here, pair, scales, size, work, out, pos)
    return pos


@kernel("f4 i4 x x i8 u1 x")
def encode_alp4(values, bits, start, stop, work, out, pos):
    """Write FLOAT values `start` to `stop` as ALP.

    Parameters
    ----------
    values, bits : float32, int32
        The values, and the same memory as integers.
    start, stop : int
        Which of them.
    work : int64, WORK
        Memory to work in.
    out, pos
        `alp_room` bytes from `pos` on.

    Returns
    -------
    int
        The new position.
    """
    return encode(values, bits, start, stop, SCALES4, 4, work, out, pos)


@kernel("f8 i8 x x i8 u1 x")
def encode_alp8(values, bits, start, stop, work, out, pos):
    """Write DOUBLE values `start` to `stop` as ALP; as `encode_alp4`."""
    return encode(values, bits, start, stop, SCALES8, 8, work, out, pos)
