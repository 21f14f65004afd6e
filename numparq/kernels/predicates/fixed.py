"""Fixed-size values matched against ranges and sets of sort keys."""

from __future__ import annotations

import numpy as np

from numparq.kernels.registry import inlined, kernel

from .masks import combine


@inlined
def as_uint64(number):
    """Return the bits of an int64."""
    return np.uint64(np.int64(number))


@inlined
def sort_key(value, fold):
    """Return the bits of a value's sort key."""
    number = np.int64(value)
    return np.uint64(number ^ ((number >> 63) & fold))


@inlined
def match_range(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out):
    """Match values in one range: ``(key - first) & mask`` is at most `span`."""
    least = as_uint64(first)
    bits = as_uint64(mask)
    most = as_uint64(span)
    for i in range(count):
        found = 1 if (sort_key(values[i], fold) - least) & bits <= most else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, opens, keeps)
    return count


@kernel("i4 x x x x u1 x x x x u1")
def match_range4(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out):
    """Match 4-byte values in one range of sort keys."""
    return match_range(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x x x u1 x x x x u1")
def match_range8(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out):
    """Match 8-byte values in one range of sort keys."""
    return match_range(values, fold, mask, first, span, validity, has_validity, opens, keeps, count, out)


@inlined
def match_four_ranges(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out):
    """Match values in any of four ranges, some of which may be equal."""
    bits = as_uint64(mask)
    first0, first1, first2, first3 = ranges[0], ranges[2], ranges[4], ranges[6]
    span0, span1, span2, span3 = ranges[1], ranges[3], ranges[5], ranges[7]
    for i in range(count):
        key = sort_key(values[i], fold)
        found = 1 if (key - first0) & bits <= span0 else 0
        found |= 1 if (key - first1) & bits <= span1 else 0
        found |= 1 if (key - first2) & bits <= span2 else 0
        found |= 1 if (key - first3) & bits <= span3 else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, opens, keeps)
    return count


@kernel("i4 x x u8 u1 x x x x u1")
def match_four_ranges4(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out):
    """Match 4-byte values in any of four ranges, two items each: first key and span."""
    return match_four_ranges(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x u8 u1 x x x x u1")
def match_four_ranges8(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out):
    """Match 8-byte values in any of four ranges, as `match_four_ranges4`."""
    return match_four_ranges(values, fold, mask, ranges, validity, has_validity, opens, keeps, count, out)


@inlined
def match_ranges(values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out):
    """Match values in many ranges, by a binary search without branches."""
    bits = as_uint64(mask)
    start = as_uint64(base)
    for i in range(count):
        key = (sort_key(values[i], fold) - start) & bits
        place = np.uint64(0)  # unsigned: Numba tests signed indices for negative ones
        for step in range(steps):
            half = np.uint64(1 << (steps - 1 - step))
            place += half * np.uint64(firsts[place + half] <= key)
        found = 1 if key - firsts[place] <= spans[place] else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, opens, keeps)
    return count


@kernel("i4 x x x u8 u8 x u1 x x x x u1")
def match_ranges4(values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out):
    """Match 4-byte values in any of ``1 << steps`` ranges, of which the last may repeat.

    Keys count from `base`, the first key of the first range: `firsts` ascends from 0.
    """
    return match_ranges(
        values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out
    )


@kernel("i8 x x x u8 u8 x u1 x x x x u1")
def match_ranges8(values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out):
    """Match 8-byte values in any of many ranges, as `match_ranges4`."""
    return match_ranges(
        values, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out
    )


@inlined
def match_table(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out):
    """Match values whose key, less `first`, has a 1 in the table."""
    bits = as_uint64(mask)
    least = as_uint64(first)
    most = as_uint64(span)
    for i in range(count):
        place = (sort_key(values[i], fold) - least) & bits
        found = np.int64(table[np.int64(place)]) if place <= most else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, opens, keeps)
    return count


@kernel("i4 x x x x u1 u1 x x x x u1")
def match_table4(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out):
    """Match 4-byte values by a table with a 0 or 1 for each key from `first`; keys beyond `span` do not match."""
    return match_table(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x x x u1 u1 x x x x u1")
def match_table8(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out):
    """Match 8-byte values by a table, as `match_table4`."""
    return match_table(values, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out)


# --- hash tables of keys ----------------------------------------------------------------------------------------------

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@inlined
def hash_slot(key, shift):
    """Return the slot where the search for a key begins."""
    return np.int64((key * _SPREAD) >> np.uint64(shift))


@kernel("u8 x u8 x")
def fill_key_table(keys, count, table, shift):
    """Fill a hash table of ``1 << (64 - shift)`` slots, more than there are keys; all must hold the first key before.

    So an empty slot needs no mark: it holds a key of the set.
    """
    last = (1 << (64 - shift)) - 1
    empty = keys[0]
    for i in range(count):
        key = keys[i]
        slot = hash_slot(key, shift)
        while (table[slot] != empty) & (table[slot] != key):
            slot = (slot + 1) & last
        table[slot] = key
    return count


@inlined
def match_keys(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out):
    """Match values whose key is in a hash table."""
    bits = as_uint64(mask)
    none = as_uint64(empty)
    last = (1 << (64 - shift)) - 1
    for i in range(count):
        key = sort_key(values[i], fold) & bits
        slot = hash_slot(key, shift)
        there = table[slot]
        while (there != key) & (there != none):
            slot = (slot + 1) & last
            there = table[slot]
        found = 1 if there == key else 0
        if has_validity:
            found = found if validity[i] != 0 else 0
        out[i] = combine(out[i], found, opens, keeps)
    return count


@kernel("i4 x x u8 x x u1 x x x x u1")
def match_keys4(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out):
    """Match 4-byte values in a hash table by `fill_key_table`; `empty` is its first key."""
    return match_keys(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out)


@kernel("i8 x x u8 x x u1 x x x x u1")
def match_keys8(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out):
    """Match 8-byte values in a hash table, as `match_keys4`."""
    return match_keys(values, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out)
