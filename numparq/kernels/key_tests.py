"""Tests of values of a fixed size: whether their keys are in a set.

``key = (v ^ ((v >> 63) & fold)) & mask``, of the value sign-extended, runs in the order of integers (`fold` is 0) and
of floats (`fold` is all bits but the sign); `mask` keeps the bits that count. A range has a first key and a span, and
may go around: it has the keys of which ``(key - first) & mask`` is at most the span. So signed numbers need nothing
else, and NaNs are a range like others. How a test is joined with the mask `out` is told in `masks`.
"""

from __future__ import annotations

import numpy as np

from .masks import joined
from .registry import inlined, kernel


@inlined
def word_of(number):
    """Give the bits of an int64."""
    return np.uint64(np.int64(number))


@inlined
def folded(value, fold):
    """Give the bits of a value's key."""
    number = np.int64(value)
    return np.uint64(number ^ ((number >> 63) & fold))


@inlined
def join_range(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out):
    """Test values for one range."""
    least = word_of(first)
    bits = word_of(mask)
    most = word_of(span)
    for i in range(count):
        found = 1 if (folded(values[i], fold) - least) & bits <= most else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = joined(out[i], found, opens, keeps)
    return count


@kernel("i4 x x x x u1 x x x x u1")
def join_range4(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out):
    """Join whether 4-byte values are in one range."""
    return join_range(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x x x u1 x x x x u1")
def join_range8(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out):
    """Join whether 8-byte values are in one range."""
    return join_range(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out)


@inlined
def join_four_ranges(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out):
    """Test values for four ranges, some of which may be the same."""
    bits = word_of(mask)
    first0, first1, first2, first3 = ranges[0], ranges[2], ranges[4], ranges[6]
    span0, span1, span2, span3 = ranges[1], ranges[3], ranges[5], ranges[7]
    for i in range(count):
        key = folded(values[i], fold)
        found = 1 if (key - first0) & bits <= span0 else 0
        found |= 1 if (key - first1) & bits <= span1 else 0
        found |= 1 if (key - first2) & bits <= span2 else 0
        found |= 1 if (key - first3) & bits <= span3 else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = joined(out[i], found, opens, keeps)
    return count


@kernel("i4 x x u8 u1 x x x x u1")
def join_four_ranges4(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out):
    """Join whether 4-byte values are in any of four ranges, of two items each: first key and span."""
    return join_four_ranges(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x u8 u1 x x x x u1")
def join_four_ranges8(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out):
    """Join whether 8-byte values are in any of four ranges, as `join_four_ranges4`."""
    return join_four_ranges(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out)


@inlined
def join_ranges(values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out):
    """Test values for many ranges, by a search of halves without a jump that could be guessed wrong."""
    bits = word_of(mask)
    start = word_of(base)
    for i in range(count):
        key = (folded(values[i], fold) - start) & bits
        place = np.uint64(0)  # unsigned: Numba would look whether an index is negative
        for step in range(steps):
            half = np.uint64(1 << (steps - 1 - step))
            place += half * np.uint64(firsts[place + half] <= key)
        found = 1 if key - firsts[place] <= spans[place] else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = joined(out[i], found, opens, keeps)
    return count


@kernel("i4 x x x u8 u8 x u1 x x x x u1")
def join_ranges4(values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out):
    """Join whether 4-byte values are in any of ``1 << steps`` ranges, of which the last ones may be the same.

    Keys count from `base`, the first key of the first range: `firsts` ascends from 0.
    """
    return join_ranges(values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x x u8 u8 x u1 x x x x u1")
def join_ranges8(values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out):
    """Join whether 8-byte values are in any of many ranges, as `join_ranges4`."""
    return join_ranges(values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out)


@inlined
def join_table(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out):
    """Test values for the keys of a range that a table tells of."""
    bits = word_of(mask)
    least = word_of(first)
    most = word_of(span)
    for i in range(count):
        place = (folded(values[i], fold) - least) & bits
        found = np.int64(table[np.int64(place)]) if place <= most else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = joined(out[i], found, opens, keeps)
    return count


@kernel("i4 x x x x u1 u1 x x x x u1")
def join_table4(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out):
    """Join what a table says (0 or 1) of each key of a range, for 4-byte values; other keys are not in the set."""
    return join_table(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x x x u1 u1 x x x x u1")
def join_table8(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out):
    """Join what a table says of each key of a range, for 8-byte values, as `join_table4`."""
    return join_table(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out)


# --- single keys ------------------------------------------------------------------------------------------------------

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@inlined
def slot_of(key, shift):
    """Give the slot at which the search for a key begins."""
    return np.int64((key * _SPREAD) >> np.uint64(shift))


@kernel("u8 x u8 x")
def fill_key_table(keys, count, table, shift):
    """Fill a table of ``1 << (64 - shift)`` slots, more than there are keys; in all of them is the first key before.

    So an empty slot holds a key of the set, too, and needs no mark: who finds that key there is right.
    """
    last = (1 << (64 - shift)) - 1
    empty = keys[0]
    for i in range(count):
        key = keys[i]
        slot = slot_of(key, shift)
        while (table[slot] != empty) & (table[slot] != key):
            slot = (slot + 1) & last
        table[slot] = key
    return count


@inlined
def join_keys(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out):
    """Test values for single keys, by a table of them."""
    bits = word_of(mask)
    none = word_of(empty)
    last = (1 << (64 - shift)) - 1
    for i in range(count):
        key = folded(values[i], fold) & bits
        slot = slot_of(key, shift)
        there = table[slot]
        while (there != key) & (there != none):
            slot = (slot + 1) & last
            there = table[slot]
        found = 1 if there == key else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = joined(out[i], found, opens, keeps)
    return count


@kernel("i4 x x u8 x x u1 x x x x u1")
def join_keys4(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out):
    """Join whether 4-byte values are in a set, of which `fill_key_table` made the table; `empty` is its first key."""
    return join_keys(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x u8 x x u1 x x x x u1")
def join_keys8(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out):
    """Join whether 8-byte values are in a set, as `join_keys4`."""
    return join_keys(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out)
