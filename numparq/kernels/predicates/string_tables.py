"""Hash tables of strings, and strings matched against them."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load64
from numparq.kernels.registry import inlined, kernel
from numparq.kernels.words import big_endian_prefix

from .binary import compare_strings, string_bounds
from .masks import combine, is_decided

# A slot holds 32 bits of a string's hash above the string's position plus one; 0 if it is empty. `marks` has a byte for
# each slot, and in it a bit for each value of the next three bits of a hash, set if the table has such a string: most
# rows that match nothing end there, at a branch that is foreseen.
_POSITION = np.uint64(0xFFFFFFFF)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@inlined
def hash_string(data, size, start, end):
    """Return a hash of a string, whose upper bits are mixed best."""
    mixed = np.uint64(end - start) * _SPREAD
    while end - start >= 8:
        mixed = (mixed ^ load64(data, start)) * _SPREAD
        mixed ^= mixed >> _HALF
        start += 8
    mixed = (mixed ^ big_endian_prefix(data, size, start, end)) * _SPREAD
    return (mixed ^ (mixed >> _HALF)) * _SPREAD


@inlined
def mark_of(mixed, shift):
    """Return the bit of a hash in the byte of its slot."""
    return np.uint64(1) << ((mixed >> np.uint64(shift - 3)) & np.uint64(7))


@inlined
def find_string(data, size, start, end, mixed, keys, keys_size, offsets, table, shift):
    """Return the slot of a string, with hash `mixed`, in a table: its own, or the empty one where it belongs."""
    last = (1 << (64 - shift)) - 1
    slot = np.int64(mixed >> np.uint64(shift))
    while table[slot] != 0:
        if (table[slot] ^ (mixed << _HALF)) >> _HALF == 0:
            position = np.int64(table[slot] & _POSITION) - 1
            first, stop = offsets[position], offsets[position + 1]
            if stop - first == end - start:
                if compare_strings(data, size, start, end, keys, keys_size, first, stop) == 0:
                    break
        slot = (slot + 1) & last
    return slot


@kernel("u1 x i8 x u8 x u1")
def fill_string_table(keys, size, offsets, count, table, shift, marks):
    """Fill a hash table of ``1 << (64 - shift)`` slots, more than there are strings, and its marks, zeroed before.

    String i lies from ``offsets[i]`` to ``offsets[i + 1]``; of equal ones, the first stays.
    """
    for i in range(count):
        start, end = offsets[i], offsets[i + 1]
        mixed = hash_string(keys, size, start, end)
        slot = find_string(keys, size, start, end, mixed, keys, size, offsets, table, shift)
        if table[slot] == 0:
            table[slot] = (mixed << _HALF) | np.uint64(i + 1)
            marks[np.int64(mixed >> np.uint64(shift))] |= mark_of(mixed, shift)
    return count


@kernel("u1 x u1 x x u1 x i8 u8 x u1 x u1 x x x x u1")
def match_strings(
    data,
    size,
    offsets,
    item,
    width,
    keys,
    keys_size,
    key_offsets,
    table,
    shift,
    marks,
    negated,
    validity,
    has_validity,
    opens,
    keeps,
    count,
    out,
):
    """Match strings that are in a hash table by `fill_string_table`, or if `negated` (1) are not."""
    for i in range(count):
        before = out[i]
        if is_decided(before, opens, keeps):
            out[i] = 1 if opens == 1 else 0
            continue
        matches = 0
        if not (has_validity and validity[i] == 0):
            start, end = string_bounds(data, offsets, item, width, i)
            mixed = hash_string(data, size, start, end)
            if np.uint64(marks[np.int64(mixed >> np.uint64(shift))]) & mark_of(mixed, shift):
                slot = find_string(data, size, start, end, mixed, keys, keys_size, key_offsets, table, shift)
                matches = 1 if table[slot] != 0 else 0
            matches ^= negated
        out[i] = combine(before, matches, opens, keeps)
    return count


@kernel("u1 x i8 x x u8")
def string_words(data, size, offsets, skipped, count, out):
    """Write the eight bytes of each string after its first `skipped` ones, big-endian and zero-padded.

    String i lies from ``offsets[i]`` to ``offsets[i + 1]``.
    """
    for i in range(count):
        out[i] = big_endian_prefix(data, size, offsets[i] + skipped, offsets[i + 1])
    return count
