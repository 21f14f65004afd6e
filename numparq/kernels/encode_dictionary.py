"""Values to dictionary indices, through a hash table.

The table holds the number of an entry plus one, and zero where there is none; an entry goes to the first free slot at
or behind the one that its hash names. Equality is equality of bytes: -0.0 is not 0.0, and each NaN is its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import NO_DICTIONARY
from .memory import copy_bytes, load8, load32, load64, store32, store64
from .registry import helper, inlined, intrinsic_twin, kernel

ENTRY_FIELDS = 4  # of `entries`, for each entry of a dictionary of binary values: two words, length and start

_FIRST_KEY = np.uint64(0x9E3779B97F4A7C15)
_SECOND_KEY = np.uint64(0xD1B54A32D192ED03)
_MASKS = np.array([(1 << 8 * min(max(n, 0), 8)) - 1 for low in (0, 8) for n in range(-low, 17 - low)], np.uint64)
_PATIENCE = 16  # slots looked at in vain, for each value, until it is clear that the hash does not work for these


def _make_fold() -> Callable:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def fold(typingctx, left, right):
        def codegen(context, builder, signature, args):
            wide, word = ir.IntType(128), ir.IntType(64)
            product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
            high = builder.lshr(product, ir.Constant(wide, 64))
            return builder.trunc(builder.xor(product, high), word)

        return types.uint64(types.uint64, types.uint64), codegen

    return fold


@intrinsic_twin(_make_fold)
def fold(left: np.uint64, right: np.uint64) -> np.uint64:
    """Multiply two uint64s; the upper and the lower half of the product, one over the other by exclusive or."""
    product = int(left) * int(right)
    return np.uint64((product ^ product >> 64) & 0xFFFFFFFFFFFFFFFF)


@inlined
def load_word(values, i, width):
    """Load value i of those of four or eight bytes."""
    if width == 8:
        return load64(values, i << 3)
    return np.uint64(load32(values, i << 2))


@helper
def last_words(data, begin, length):
    """Give up to 16 bytes as two words, byte after byte: near the end of the data."""
    low = np.uint64(0)
    high = np.uint64(0)
    for k in range(min(length, 8)):
        low |= np.uint64(load8(data, begin + k)) << np.uint64(8 * k)
    for k in range(8, length):
        high |= np.uint64(load8(data, begin + k)) << np.uint64(8 * k - 64)
    return low, high


@helper
def long_words(data, begin, length):
    """Give a hash of more than 16 bytes, and the last eight."""
    word = np.uint64(length)
    end = begin + length
    pos = begin
    while pos + 16 < end:
        word = fold(load64(data, pos) ^ word, load64(data, pos + 8) ^ _SECOND_KEY)
        pos += 16
    last = load64(data, end - 8)
    return fold(load64(data, end - 16) ^ word, last ^ _SECOND_KEY), last


@inlined
def words_of(data, data_size, begin, length):
    """Give two words that stand for a value: up to 16 bytes they are the value, else a hash and its last bytes."""
    if length > 16:
        return long_words(data, begin, length)
    if begin + 16 > data_size:
        return last_words(data, begin, length)
    place = np.uint64(length)
    return load64(data, begin) & _MASKS[place], load64(data, begin + 8) & _MASKS[place + np.uint64(17)]


@helper
def same_bytes(one, one_pos, other, other_pos, length):
    """Whether two stretches of `length` bytes, at least eight, are equal."""
    done = 0
    while done + 8 < length:
        if load64(one, one_pos + done) != load64(other, other_pos + done):
            return False
        done += 8
    done = length - 8
    return load64(one, one_pos + done) == load64(other, other_pos + done)


@inlined
def index_words(values, width, count, table, mask, room, probe_count, probe_entries, dictionary, codes):
    """Index values of four or eight bytes; as `index_fixed`."""
    entries = 0
    patience = _PATIENCE * (count + 64)
    for i in range(count):
        word = load_word(values, i, width)
        slot = fold(word, _FIRST_KEY) & mask
        entry = np.int64(table[slot])
        while entry != 0 and load_word(dictionary, entry - 1, width) != word:
            patience -= 1
            if patience < 0:
                return NO_DICTIONARY
            slot = (slot + np.uint64(1)) & mask
            entry = np.int64(table[slot])
        if entry == 0:
            if entries >= room or (i < probe_count and entries >= probe_entries):
                return NO_DICTIONARY
            if width == 8:
                store64(dictionary, entries << 3, word)
            else:
                store32(dictionary, entries << 2, np.int64(word))
            entries += 1
            table[slot] = entries
            entry = entries
        codes[i] = entry - 1
    return entries


@helper
def is_entry(values, pos, width, low, high, dictionary, place, end):
    """Whether the entry at byte `place` of a dictionary that ends at `end` is a value of any width."""
    if width > 16:
        return same_bytes(values, pos, dictionary, place, width)
    entry_low, entry_high = words_of(dictionary, end, place, width)
    return ((low ^ entry_low) | (high ^ entry_high)) == np.uint64(0)


@helper
def index_any(values, width, count, table, mask, room, probe_count, probe_entries, dictionary, codes):
    """Index values of any width; as `index_fixed`."""
    entries = 0
    patience = _PATIENCE * (count + 64)
    for i in range(count):
        pos = i * width
        low, high = words_of(values, count * width, pos, width)
        slot = fold(low ^ _FIRST_KEY, high ^ _SECOND_KEY) & mask
        entry = np.int64(table[slot])
        end = entries * width
        while entry != 0 and not is_entry(values, pos, width, low, high, dictionary, (entry - 1) * width, end):
            patience -= 1
            if patience < 0:
                return NO_DICTIONARY
            slot = (slot + np.uint64(1)) & mask
            entry = np.int64(table[slot])
        if entry == 0:
            if entries >= room or (i < probe_count and entries >= probe_entries):
                return NO_DICTIONARY
            copy_bytes(dictionary, end, values, pos, width)
            entries += 1
            table[slot] = entries
            entry = entries
        codes[i] = entry - 1
    return entries


@kernel("u1 x x i4 x x x x u1 i4")
def index_fixed(values, width, count, table, table_bits, room, probe_count, probe_entries, dictionary, codes):
    """Number the distinct values of a fixed width, in the order in which they first occur.

    Parameters
    ----------
    values : uint8
        `count` values of `width` bytes each.
    width : int
        Bytes of a value, at least one.
    count : int
        Number of values.
    table : int32
        ``1 << table_bits`` zeros: more than `room`. Eight times as many are faster than twice as many: a value that is
        not in its slot costs a mispredicted branch, which is more than a cache miss.
    table_bits : int
        0 to 30.
    room : int
        Entries that a dictionary may have.
    probe_count, probe_entries : int
        Entries that it may have among the first `probe_count` values.
    dictionary : uint8
        Room for `room` values: entry e goes to ``e * width``.
    codes : int32
        Room for `count`: the entry of each value.

    Returns
    -------
    int
        Number of entries; NO_DICTIONARY where there would be too many, or values collide as if made to.
    """
    mask = (np.uint64(1) << np.uint64(table_bits)) - np.uint64(1)
    if width == 8:
        return index_words(values, 8, count, table, mask, room, probe_count, probe_entries, dictionary, codes)
    if width == 4:
        return index_words(values, 4, count, table, mask, room, probe_count, probe_entries, dictionary, codes)
    return index_any(values, width, count, table, mask, room, probe_count, probe_entries, dictionary, codes)


@inlined
def is_string(data, begin, length, low, high, known, entry):
    """Whether entry number `entry` (from 1 on) is a value."""
    place = np.uint64((entry - 1) * ENTRY_FIELDS)
    differ = (known[place] ^ np.int64(low)) | (known[place + np.uint64(1)] ^ np.int64(high))
    differ |= known[place + np.uint64(2)] ^ length
    if differ != 0:
        return False
    return length <= 16 or same_bytes(data, begin, data, known[place + np.uint64(3)], length)


@kernel("u1 x i8 i8 x i4 i8 x x x x x i4 i4")
def index_binary(
    data, data_size, starts, ends, count, table, known, table_bits, room, room_bytes, probe_count, probe_entries,
    firsts, codes,
):  # fmt: skip
    """Number the distinct binary values, in the order in which they first occur.

    Parameters
    ----------
    data : uint8
        Value i is ``data[starts[i] : ends[i]]``.
    data_size : int
        Bytes of `data` that may be loaded.
    starts, ends : int64
        Where each value lies.
    count : int
        Number of values.
    table, table_bits
        As in `index_fixed`.
    known : int64
        Room for ``ENTRY_FIELDS * room`` numbers, of no use to the caller.
    room, room_bytes : int
        Entries that a dictionary may have, and the bytes that they may take with four each for their lengths.
    probe_count, probe_entries : int
        Entries that it may have among the first `probe_count` values.
    firsts : int32
        Room for `room`: the value where each entry first occurs.
    codes : int32
        Room for `count`: the entry of each value.

    Returns
    -------
    int
        Number of entries; NO_DICTIONARY where there would be too many, or values collide as if made to.
    """
    mask = (np.uint64(1) << np.uint64(table_bits)) - np.uint64(1)
    entries = 0
    patience = _PATIENCE * (count + 64)
    for i in range(count):
        begin = starts[i]
        length = ends[i] - begin
        low, high = words_of(data, data_size, begin, length)
        slot = fold(low ^ _FIRST_KEY, high ^ _SECOND_KEY ^ np.uint64(length)) & mask
        entry = np.int64(table[slot])
        while entry != 0 and not is_string(data, begin, length, low, high, known, entry):
            patience -= 1
            if patience < 0:
                return NO_DICTIONARY
            slot = (slot + np.uint64(1)) & mask
            entry = np.int64(table[slot])
        if entry == 0:
            room_bytes -= length + 4
            if entries >= room or room_bytes < 0 or (i < probe_count and entries >= probe_entries):
                return NO_DICTIONARY
            place = entries * ENTRY_FIELDS
            known[place] = np.int64(low)
            known[place + 1] = np.int64(high)
            known[place + 2] = length
            known[place + 3] = begin
            firsts[entries] = i
            entries += 1
            table[slot] = entries
            entry = entries
        codes[i] = entry - 1
    return entries
