"""ALP powers of ten, and the exponent and factor chosen by sampling."""

from __future__ import annotations

import numpy as np

from numparq.kernels.registry import helper, inlined
from numparq.kernels.words import bit_length

HEADER = 7  # bytes: compression mode, integer encoding, log2 of the vector size, number of values
OFFSET = 4  # bytes of an offset
VECTOR_HEADER = 5  # bytes before a vector, without its frame of reference (a value's size)

# Tables of floats: item k is 10**k, item INVERSE_INDEX + k is 10**-k, each the nearest float of the type.
INVERSE_INDEX = 19
INTEGER_LIMIT_INDEX = 38  # this item: the float from which on all are integers
RANGE_LIMIT_INDEX = 39  # this item: the first power of two beyond the integers of that size
LARGEST_EXPONENT4, LARGEST_EXPONENT8 = 10, 18


def _scales(dtype: type, mantissa: int) -> np.ndarray:
    powers = [float(f"1e{k}") for k in range(INVERSE_INDEX)] + [float(f"1e-{k}") for k in range(INVERSE_INDEX)]
    integers = np.dtype(dtype).itemsize * 8
    return np.array([*powers, 2.0**mantissa, 2.0 ** (integers - 1)], dtype)


SCALES4 = _scales(np.float32, 23)
SCALES8 = _scales(np.float64, 52)

LOG_VECTOR_SIZE = 10  # log2 of the vector size that the format recommends
VECTOR_SIZE = 1 << LOG_VECTOR_SIZE
MAX_PAIRS = 8  # sampled vectors, each for one pair of exponent and factor
SAMPLE_SIZE = 32  # sampled values of a vector
# Items of `work`: a vector's integers, the positions of its exceptions, the pairs.
EXCEPTIONS_OFFSET, _PAIRS_OFFSET = VECTOR_SIZE, 2 * VECTOR_SIZE
WORK_SIZE = _PAIRS_OFFSET + MAX_PAIRS
PAIR_BASE = 32  # a pair is exponent * PAIR_BASE + factor
_LARGEST, _SMALLEST = (1 << 63) - 1, -(1 << 63)


@inlined
def scale_and_round(value, up, down, whole):
    """Return a value times two powers of ten, rounded half to even, still as a float; NaN stays NaN."""
    number = value * up * down
    if number >= whole or number <= -whole:  # already an integer, or infinite
        return number
    return (number + whole) - whole if number >= 0 else (number - whole) + whole


@inlined
def is_exact(value, bits, number, up, down, beyond):
    """Whether an integer, as a float, is in range and decodes to exactly these bits."""
    return -beyond < number and number < beyond and number * up * down == value and (number != 0 or bits == 0)


@helper
def encoded_bits(values, bits, first, step, count, pair, scales, size, limit):
    """Return the bits that `count` values, every `step`-th from `first` on, take with a pair, at most `limit`."""
    exponent, factor = pair // PAIR_BASE, pair % PAIR_BASE
    least, most = _LARGEST, _SMALLEST
    exceptions = 0
    for k in range(count):
        i = first + k * step
        value = values[i]
        number = scale_and_round(value, scales[exponent], scales[INVERSE_INDEX + factor], scales[INTEGER_LIMIT_INDEX])
        if is_exact(
            value, bits[i], number, scales[factor], scales[INVERSE_INDEX + exponent], scales[RANGE_LIMIT_INDEX]
        ):
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
    """Return the pair of exponent and factor that makes a sample smallest; of equals, the largest exponent."""
    best, lowest = 0, _LARGEST
    for exponent in range(LARGEST_EXPONENT8 if size == 8 else LARGEST_EXPONENT4, -1, -1):
        for factor in range(exponent, -1, -1):
            pair = exponent * PAIR_BASE + factor
            bid = encoded_bits(values, bits, first, step, count, pair, scales, size, lowest)
            if bid < lowest:
                best, lowest = pair, bid
    return best


@helper
def sample_step(count):
    """Return the sample size for a vector of `count` values, and the distance between samples."""
    size = min(count, SAMPLE_SIZE)
    return size, (count - 1) // (size - 1) if size > 1 else 1


@helper
def find_pairs(values, bits, start, stop, scales, size, work):
    """Collect the distinct best pairs of some vectors; return their number."""
    vectors = (stop - start + VECTOR_SIZE - 1) >> LOG_VECTOR_SIZE
    samples = min(vectors, MAX_PAIRS)
    known = 0
    for k in range(samples):
        first = start + ((k * vectors // samples) << LOG_VECTOR_SIZE)
        count, step = sample_step(min(VECTOR_SIZE, stop - first))
        work[_PAIRS_OFFSET + known] = best_pair(values, bits, first, step, count, scales, size)
        place = _PAIRS_OFFSET
        while work[place] != work[_PAIRS_OFFSET + known]:
            place += 1
        if place == _PAIRS_OFFSET + known:
            known += 1
    return known


@helper
def choose_pair(values, bits, first, count, known, scales, size, work):
    """Return the one of the `known` pairs that makes a sample of a vector smallest."""
    best, lowest = work[_PAIRS_OFFSET], _LARGEST
    if known == 1:
        return best
    sample, step = sample_step(count)
    for k in range(known):
        bid = encoded_bits(values, bits, first, step, sample, work[_PAIRS_OFFSET + k], scales, size, lowest)
        if bid < lowest:
            best, lowest = work[_PAIRS_OFFSET + k], bid
    return best
