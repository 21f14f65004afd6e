"""Fixed-size values matched against ranges and sets of sort keys.

The values lie in runs: `runs` has by turns the position in `data` of each, at any alignment, and its number of values.
`item` is the size of a value, 4 or 8. Its key is ``(value ^ (value >> 63 & fold)) & mask``.
"""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, load32, load64, store8
from numparq.kernels.registry import inlined, kernel

from .masks import combine

_SIGN = 1 << 31


@inlined
def as_uint64(number):
    """Return the bits of an int64."""
    return np.uint64(np.int64(number))


@inlined
def sort_key(data, pos, item, fold):
    """Return the bits of the sort key of the value at a position."""
    number = np.int64(load64(data, pos)) if item == 8 else np.int64((load32(data, pos) ^ _SIGN) - _SIGN)
    return np.uint64(number ^ ((number >> 63) & fold))


@inlined
def store_match(found, row, into):
    """Combine a result with the row's byte of the mask."""
    validity, has_validity, opens, keeps, out = into
    if has_validity:
        found = found if load8(validity, row) != 0 else 0
    store8(out, row, np.int64(combine(load8(out, row), found, opens, keeps)))  # out[row] tests for a negative row


@inlined
def match_range_in_run(data, pos, item, fold, mask, first, span, row, count, into):
    """Match the `count` values of a run, those of the rows from `row` on."""
    least = as_uint64(first)
    bits = as_uint64(mask)
    most = as_uint64(span)
    for i in range(count):
        found = 1 if (sort_key(data, pos + i * item, item, fold) - least) & bits <= most else 0
        store_match(found, row + i, into)


@kernel("u1 i8 x x x x x x u1 x x x x u1")
def match_range(data, runs, num_runs, item, fold, mask, first, span, validity, has_validity, opens, keeps, count, out):
    """Match values in one range: ``(key - first) & mask`` is at most `span`."""
    into = validity, has_validity, opens, keeps, out
    row = 0
    for run in range(num_runs):
        pos, size = runs[2 * run], min(runs[2 * run + 1], count - row)
        if item == 8:
            match_range_in_run(data, pos, 8, fold, mask, first, span, row, size, into)
        else:
            match_range_in_run(data, pos, 4, fold, mask, first, span, row, size, into)
        row += size
    return row


@inlined
def match_four_ranges_in_run(data, pos, item, fold, mask, ranges, row, count, into):
    """Match the values of a run, as `match_range_in_run`."""
    bits = as_uint64(mask)
    first0, first1, first2, first3 = ranges[0], ranges[2], ranges[4], ranges[6]
    span0, span1, span2, span3 = ranges[1], ranges[3], ranges[5], ranges[7]
    for i in range(count):
        key = sort_key(data, pos + i * item, item, fold)
        found = 1 if (key - first0) & bits <= span0 else 0
        found |= 1 if (key - first1) & bits <= span1 else 0
        found |= 1 if (key - first2) & bits <= span2 else 0
        found |= 1 if (key - first3) & bits <= span3 else 0
        store_match(found, row + i, into)


@kernel("u1 i8 x x x x u8 u1 x x x x u1")
def match_four_ranges(data, runs, num_runs, item, fold, mask, ranges, validity, has_validity, opens, keeps, count, out):
    """Match values in any of four ranges, two items each (first key and span), some of which may be equal."""
    into = validity, has_validity, opens, keeps, out
    row = 0
    for run in range(num_runs):
        pos, size = runs[2 * run], min(runs[2 * run + 1], count - row)
        if item == 8:
            match_four_ranges_in_run(data, pos, 8, fold, mask, ranges, row, size, into)
        else:
            match_four_ranges_in_run(data, pos, 4, fold, mask, ranges, row, size, into)
        row += size
    return row


@inlined
def match_ranges_in_run(data, pos, item, fold, mask, base, firsts, spans, steps, row, count, into):
    """Match the values of a run, by a binary search without branches."""
    bits = as_uint64(mask)
    start = as_uint64(base)
    for i in range(count):
        key = (sort_key(data, pos + i * item, item, fold) - start) & bits
        place = np.uint64(0)  # unsigned: Numba tests signed indices for negative ones
        for step in range(steps):
            half = np.uint64(1 << (steps - 1 - step))
            place += half * np.uint64(firsts[place + half] <= key)
        found = 1 if key - firsts[place] <= spans[place] else 0
        store_match(found, row + i, into)


@kernel("u1 i8 x x x x x u8 u8 x u1 x x x x u1")
def match_ranges(
    data, runs, num_runs, item, fold, mask, base, firsts, spans, steps, validity, has_validity, opens, keeps, count, out
):
    """Match values in any of ``1 << steps`` ranges, of which the last may repeat.

    Keys count from `base`, the first key of the first range: `firsts` ascends from 0.
    """
    into = validity, has_validity, opens, keeps, out
    row = 0
    for run in range(num_runs):
        pos, size = runs[2 * run], min(runs[2 * run + 1], count - row)
        if item == 8:
            match_ranges_in_run(data, pos, 8, fold, mask, base, firsts, spans, steps, row, size, into)
        else:
            match_ranges_in_run(data, pos, 4, fold, mask, base, firsts, spans, steps, row, size, into)
        row += size
    return row


@inlined
def match_table_in_run(data, pos, item, fold, mask, first, span, table, row, count, into):
    """Match the values of a run, by a table."""
    bits = as_uint64(mask)
    least = as_uint64(first)
    most = as_uint64(span)
    for i in range(count):
        place = (sort_key(data, pos + i * item, item, fold) - least) & bits
        found = np.int64(table[np.int64(place)]) if place <= most else 0
        store_match(found, row + i, into)


@kernel("u1 i8 x x x x x x u1 u1 x x x x u1")
def match_table(
    data, runs, num_runs, item, fold, mask, first, span, table, validity, has_validity, opens, keeps, count, out
):
    """Match values by a table with a 0 or 1 for each key from `first`; keys beyond `span` do not match."""
    into = validity, has_validity, opens, keeps, out
    row = 0
    for run in range(num_runs):
        pos, size = runs[2 * run], min(runs[2 * run + 1], count - row)
        if item == 8:
            match_table_in_run(data, pos, 8, fold, mask, first, span, table, row, size, into)
        else:
            match_table_in_run(data, pos, 4, fold, mask, first, span, table, row, size, into)
        row += size
    return row


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
def match_keys_in_run(data, pos, item, fold, mask, table, shift, empty, row, count, into):
    """Match the values of a run, by a hash table."""
    bits = as_uint64(mask)
    none = as_uint64(empty)
    last = (1 << (64 - shift)) - 1
    for i in range(count):
        key = sort_key(data, pos + i * item, item, fold) & bits
        slot = hash_slot(key, shift)
        there = table[slot]
        while (there != key) & (there != none):
            slot = (slot + 1) & last
            there = table[slot]
        store_match(1 if there == key else 0, row + i, into)


@kernel("u1 i8 x x x x u8 x x u1 x x x x u1")
def match_keys(
    data, runs, num_runs, item, fold, mask, table, shift, empty, validity, has_validity, opens, keeps, count, out
):
    """Match values whose key is in a hash table by `fill_key_table`; `empty` is its first key."""
    into = validity, has_validity, opens, keeps, out
    row = 0
    for run in range(num_runs):
        pos, size = runs[2 * run], min(runs[2 * run + 1], count - row)
        if item == 8:
            match_keys_in_run(data, pos, 8, fold, mask, table, shift, empty, row, size, into)
        else:
            match_keys_in_run(data, pos, 4, fold, mask, table, shift, empty, row, size, into)
        row += size
    return row
