"""Row masks: predicate results stored, and-ed or or-ed in place, and converted to row ranges."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load32, load64
from numparq.kernels.registry import inlined, kernel


@inlined
def combine(before, matches, or_true, or_previous):
    """Return a row's mask byte combined with a result, 0 or 1."""
    return np.uint8((matches & (np.int64(before) | or_true)) | (np.int64(before) & or_previous))


@inlined
def is_decided(before, or_true, or_previous):
    """Whether no result can change a row's mask byte."""
    return (or_previous == 1 and before != 0) if or_true == 1 else before == 0


@kernel("u1 x u1 x x x x u1")
def match_mask(mask, negated, validity, has_validity, or_true, or_previous, count, out):
    """Match rows whose byte of `mask` is not 0, or if `negated` (1) is 0; nulls do not match."""
    for i in range(count):
        found = (1 if mask[i] != 0 else 0) ^ negated
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, or_true, or_previous)
    return count


@kernel("i4 u1 x u1 x x x x u1")
def match_codes(codes, entries, num_entries, validity, has_validity, or_true, or_previous, count, out):
    """Match rows by the result (0 or 1) of their dictionary entry; codes out of range are nulls."""
    for i in range(count):
        code = np.uint64(np.int64(codes[i]))  # a negative one is beyond any number of entries
        found = 0
        if code < np.uint64(num_entries):
            found = np.int64(entries[code])
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, or_true, or_previous)
    return count


@kernel("u1 u1 x x u1 x x x x u1")
def match_any_element(matches, offsets, item, negated, validity, has_validity, or_true, or_previous, count, out):
    """Match lists with any matching element, or if `negated` (1) none.

    List i has elements ``offsets[i]`` to ``offsets[i + 1]``; offsets are little-endian, of `item` (4 or 8) bytes.
    """
    for i in range(count):
        first = load32(offsets, 4 * i) if item == 4 else np.int64(load64(offsets, 8 * i))
        stop = load32(offsets, 4 * i + 4) if item == 4 else np.int64(load64(offsets, 8 * i + 8))
        while first < stop and matches[first] == 0:
            first += 1
        answer = (1 if first < stop else 0) ^ negated
        if has_validity and validity[i] == 0:
            answer = 0
        out[i] = combine(out[i], answer, or_true, or_previous)
    return count


@kernel("u1 u1 x x u1")
def spread_mask(mask, validity, null_answer, count, out):
    """Spread the bytes of a mask, one a valid row, over rows; nulls become `null_answer`."""
    place = 0
    for i in range(count):
        valid = np.int64(validity[i] != 0)
        out[i] = mask[place] if valid else np.uint8(null_answer)
        place += valid
    return place


@kernel("u1 x i8")
def mask_to_ranges(mask, count, out):
    """Write start and exclusive end of each run of ones in a mask of 0 and 1; return the number of runs.

    `out` has ``count + 2`` items.
    """
    edges = 0
    before = 0
    row = 0
    same = np.uint64(0)  # eight rows like the last one
    while row < count:
        while row + 8 <= count and load64(mask, row) == same:
            row += 8
        stop = min(row + 8, count)
        while row < stop:
            now = np.int64(mask[row])
            out[edges] = row
            edges += now ^ before
            before = now
            row += 1
        same = np.uint64(0x0101010101010101) if before else np.uint64(0)
    out[edges] = count
    return (edges + before) >> 1
