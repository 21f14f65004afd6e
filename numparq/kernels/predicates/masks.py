"""Row masks: predicate results stored, and-ed or or-ed in place, and converted to row ranges."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load32, load64
from numparq.kernels.registry import inlined, kernel


@inlined
def combine(before, matches, or_true, or_previous):
    """Join a test of a row, 0 or 1, with the row's byte of the mask."""
    return np.uint8((matches & (np.int64(before) | or_true)) | (np.int64(before) & or_previous))


@inlined
def is_decided(before, or_true, or_previous):
    """Whether a test cannot change the row's byte."""
    return (or_previous == 1 and before != 0) if or_true == 1 else before == 0


@kernel("u1 x u1 x x x x u1")
def match_mask(mask, negated, validity, has_validity, or_true, or_previous, count, out):
    """Join `count` bytes, of which all but 0 are true, or if `negated` (1) 0 is; where nothing is valid, none is."""
    for i in range(count):
        found = (1 if mask[i] != 0 else 0) ^ negated
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, or_true, or_previous)
    return count


@kernel("i4 u1 x u1 x x x x u1")
def match_codes(codes, entries, num_entries, validity, has_validity, or_true, or_previous, count, out):
    """Join what is known (0 or 1) of the dictionary entries that `codes` tell of; other codes are nulls."""
    for i in range(count):
        code = np.int64(codes[i])
        found = 0
        if (code >= 0) & (code < num_entries):
            found = np.int64(entries[code])
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, or_true, or_previous)
    return count


@kernel("u1 u1 x x u1 x x x x u1")
def match_any_element(matches, offsets, item, negated, validity, has_validity, or_true, or_previous, count, out):
    """Join whether any element of a list was found, or if `negated` (1) none.

    List i has the elements from offset i to offset i + 1, in `offsets` as little-endian numbers of `item` bytes, 4 or
    8.
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


@kernel("u1 x i8")
def mask_to_ranges(mask, count, out):
    """Find the ranges of rows where a mask of 0 and 1 is 1.

    Into `out`, of ``count + 2`` items, go where each begins and where it stops. Returns how many there are.
    """
    edges = 0
    before = 0
    row = 0
    same = np.uint64(0)  # eight rows as the last one
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
