"""Dictionary encoding (Encodings.md, RLE_DICTIONARY = 8): indices looked up, and values indexed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numparq.kernels.memory import copy_bytes, fill_bytes, load8, load32, load64, store32, store64
from numparq.kernels.registry import helper, inlined, intrinsic_twin, kernel
from numparq.kernels.status import BAD_PAGE, INDEX_OUT_OF_RANGE, NO_DICTIONARY, TRUNCATED
from numparq.kernels.tables import C_DICTIONARY_SIZE

from .hybrid_rle import load_partial, next_run

ENTRY_FIELDS = 4  # per binary entry: two words, length and start

_FIRST_KEY = np.uint64(0x9E3779B97F4A7C15)
_SECOND_KEY = np.uint64(0xD1B54A32D192ED03)
_MASKS = np.array([(1 << 8 * min(max(n, 0), 8)) - 1 for low in (0, 8) for n in range(-low, 17 - low)], np.uint64)
_PATIENCE = 16  # slots probed in vain per value before giving up: values made to collide


def _make_fold() -> Callable[..., Any]:
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
def fold_multiply(left: np.uint64, right: np.uint64) -> np.uint64:
    """Return the xor of the upper and the lower half of the product of two uint64s."""
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
    """Load up to 16 bytes as two words, byte by byte: near the end of the data."""
    low = np.uint64(0)
    high = np.uint64(0)
    for k in range(min(length, 8)):
        low |= np.uint64(load8(data, begin + k)) << np.uint64(8 * k)
    for k in range(8, length):
        high |= np.uint64(load8(data, begin + k)) << np.uint64(8 * k - 64)
    return low, high


@helper
def long_words(data, begin, length):
    """Return a hash of more than 16 bytes, and the last eight as a word."""
    word = np.uint64(length)
    end = begin + length
    pos = begin
    while pos + 16 < end:
        word = fold_multiply(load64(data, pos) ^ word, load64(data, pos + 8) ^ _SECOND_KEY)
        pos += 16
    last = load64(data, end - 8)
    return fold_multiply(load64(data, end - 16) ^ word, last ^ _SECOND_KEY), last


@inlined
def prefix_words(data, data_size, begin, length):
    """Return two words that stand for a value: the value itself up to 16 bytes, else its hash and last bytes."""
    if length > 16:
        return long_words(data, begin, length)
    if begin + 16 > data_size:
        return last_words(data, begin, length)
    place = np.uint64(length)
    return load64(data, begin) & _MASKS[place], load64(data, begin + 8) & _MASKS[place + np.uint64(17)]


@helper
def same_bytes(one, one_pos, other, other_pos, length):
    """Whether two regions of `length` bytes, at least eight, are equal."""
    done = 0
    while done + 8 < length:
        if load64(one, one_pos + done) != load64(other, other_pos + done):
            return False
        done += 8
    done = length - 8
    return load64(one, one_pos + done) == load64(other, other_pos + done)


@inlined
def index_fixed_words(values, width, count, table, mask, max_entries, probe_count, probe_entries, dictionary, codes):
    """Index values of four or eight bytes, as `index_fixed` does."""
    entries = 0
    patience = _PATIENCE * (count + 64)
    for i in range(count):
        word = load_word(values, i, width)
        slot = fold_multiply(word, _FIRST_KEY) & mask
        entry = np.int64(table[slot])
        while entry != 0 and load_word(dictionary, entry - 1, width) != word:
            patience -= 1
            if patience < 0:
                return NO_DICTIONARY
            slot = (slot + np.uint64(1)) & mask
            entry = np.int64(table[slot])
        if entry == 0:
            if entries >= max_entries or (i < probe_count and entries >= probe_entries):
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
    """Whether the entry at byte `place` of a dictionary that ends at `end` equals a value of any width."""
    if width > 16:
        return same_bytes(values, pos, dictionary, place, width)
    entry_low, entry_high = prefix_words(dictionary, end, place, width)
    return ((low ^ entry_low) | (high ^ entry_high)) == np.uint64(0)


@helper
def index_any(values, width, count, table, mask, max_entries, probe_count, probe_entries, dictionary, codes):
    """Index values of any width, as `index_fixed` does."""
    entries = 0
    patience = _PATIENCE * (count + 64)
    for i in range(count):
        pos = i * width
        low, high = prefix_words(values, count * width, pos, width)
        slot = fold_multiply(low ^ _FIRST_KEY, high ^ _SECOND_KEY) & mask
        entry = np.int64(table[slot])
        end = entries * width
        while entry != 0 and not is_entry(values, pos, width, low, high, dictionary, (entry - 1) * width, end):
            patience -= 1
            if patience < 0:
                return NO_DICTIONARY
            slot = (slot + np.uint64(1)) & mask
            entry = np.int64(table[slot])
        if entry == 0:
            if entries >= max_entries or (i < probe_count and entries >= probe_entries):
                return NO_DICTIONARY
            copy_bytes(dictionary, end, values, pos, width)
            entries += 1
            table[slot] = entries
            entry = entries
        codes[i] = entry - 1
    return entries


@kernel("u1 x x i4 x x x x u1 i4")
def index_fixed(values, width, count, table, table_bits, max_entries, probe_count, probe_entries, dictionary, codes):
    """Write distinct values by first occurrence to `dictionary`, and each value's entry to `codes`; return the entries.

    NO_DICTIONARY: over `max_entries`, over `probe_entries` in the first `probe_count` values, or too many collisions.
    """
    # `table` has ``1 << table_bits`` zeros, more than `max_entries`. Eight times as many are faster than twice as many:
    # a value that is not in its slot costs a mispredicted branch, which is more than a cache miss.
    mask = (np.uint64(1) << np.uint64(table_bits)) - np.uint64(1)
    if width == 8:
        return index_fixed_words(
            values, 8, count, table, mask, max_entries, probe_count, probe_entries, dictionary, codes
        )
    if width == 4:
        return index_fixed_words(
            values, 4, count, table, mask, max_entries, probe_count, probe_entries, dictionary, codes
        )
    return index_any(values, width, count, table, mask, max_entries, probe_count, probe_entries, dictionary, codes)


@inlined
def is_same_entry(data, begin, length, low, high, entries, entry):
    """Whether entry number `entry` (from 1 on) equals a value."""
    place = np.uint64((entry - 1) * ENTRY_FIELDS)
    differ = (entries[place] ^ np.int64(low)) | (entries[place + np.uint64(1)] ^ np.int64(high))
    differ |= entries[place + np.uint64(2)] ^ length
    if differ != 0:
        return False
    return length <= 16 or same_bytes(data, begin, data, entries[place + np.uint64(3)], length)


@kernel("u1 x i8 i8 x i4 i8 x x x x x i4 i4")
def index_binary(
    data,
    data_size,
    starts,
    ends,
    count,
    table,
    known,
    table_bits,
    max_entries,
    room_bytes,
    probe_count,
    probe_entries,
    firsts,
    codes,
):
    """Write the first occurrence of distinct binary values to `firsts`, and entries to `codes`, as `index_fixed` does.

    The entries, with four bytes each for their lengths, must fit in `room_bytes`.
    """
    mask = (np.uint64(1) << np.uint64(table_bits)) - np.uint64(1)
    entries = 0
    patience = _PATIENCE * (count + 64)
    for i in range(count):
        begin = starts[i]
        length = ends[i] - begin
        low, high = prefix_words(data, data_size, begin, length)
        slot = fold_multiply(low ^ _FIRST_KEY, high ^ _SECOND_KEY ^ np.uint64(length)) & mask
        entry = np.int64(table[slot])
        while entry != 0 and not is_same_entry(data, begin, length, low, high, known, entry):
            patience -= 1
            if patience < 0:
                return NO_DICTIONARY
            slot = (slot + np.uint64(1)) & mask
            entry = np.int64(table[slot])
        if entry == 0:
            room_bytes -= length + 4
            if entries >= max_entries or room_bytes < 0 or (i < probe_count and entries >= probe_entries):
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


@helper
def gather8(data, bit, count, width, mask, dictionary, base, limit, out, target):
    """Gather values of eight bytes by `count` packed indices; return 0 or INDEX_OUT_OF_RANGE."""
    for i in range(count):
        index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
        if index >= limit:
            return INDEX_OUT_OF_RANGE
        store64(out, target + (i << 3), load64(dictionary, base + (index << 3)))
        bit += width
    return 0


@helper
def gather4(data, bit, count, width, mask, dictionary, base, limit, out, target):
    """Gather values of four bytes by `count` packed indices; return 0 or INDEX_OUT_OF_RANGE."""
    for i in range(count):
        index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
        if index >= limit:
            return INDEX_OUT_OF_RANGE
        store32(out, target + (i << 2), load32(dictionary, base + (index << 2)))
        bit += width
    return 0


@helper
def gather_any(data, bit, count, width, mask, dictionary, base, limit, item, out, target):
    """Gather values of `item` bytes by `count` packed indices; return 0 or INDEX_OUT_OF_RANGE."""
    for i in range(count):
        index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
        if index >= limit:
            return INDEX_OUT_OF_RANGE
        copy_bytes(out, target + i * item, dictionary, base + index * item, item)
        bit += width
    return 0


@helper
def repeat_value(dictionary, pos, item, count, out, target):
    """Write one value of `item` bytes `count` times."""
    if item == 8:
        value = load64(dictionary, pos)
        for i in range(count):
            store64(out, target + (i << 3), value)
    elif item == 4:
        small = load32(dictionary, pos)
        for i in range(count):
            store32(out, target + (i << 2), small)
    elif item == 1:
        fill_bytes(out, target, load8(dictionary, pos), count)
    else:
        for i in range(count):
            copy_bytes(out, target + i * item, dictionary, pos, item)
    return 0


@helper
def gather_indices(data, pos, end, count, width, dictionary, base, limit, item, out, out_pos):
    """Decode `count` indices of `width` (0 to 32) bits and write their values; return the end position or a status.

    The dictionary has `limit` values of `item` bytes from byte `base` on.
    """
    done = 0
    size = (width + 7) >> 3
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    while done < count:
        pos, header, here = next_run(data, pos, end, count - done, width)
        if pos < 0:
            return pos
        target = out_pos + done * item
        if header & 1:
            if item == 8:
                status = gather8(data, pos << 3, here, width, mask, dictionary, base, limit, out, target)
            elif item == 4:
                status = gather4(data, pos << 3, here, width, mask, dictionary, base, limit, out, target)
            else:
                status = gather_any(data, pos << 3, here, width, mask, dictionary, base, limit, item, out, target)
            if status < 0:
                return status
            pos += (header >> 1) * width
        else:
            index = load_partial(data, pos, size)
            if index >= limit:
                return INDEX_OUT_OF_RANGE
            repeat_value(dictionary, base + index * item, item, here, out, target)
            pos += size
        done += here
    return pos


@helper
def index_width(chunks, chunk, data, pos, end, count):
    """Return the bit width of dictionary indices, from the byte before them, or a status."""
    if count == 0:  # a chunk of nulls may have no dictionary
        return 0
    if chunks[chunk + C_DICTIONARY_SIZE] < 0:
        return NO_DICTIONARY
    if pos >= end:
        return TRUNCATED
    width = load8(data, pos)
    return width if width <= 32 else BAD_PAGE
