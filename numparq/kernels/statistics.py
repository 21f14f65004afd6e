"""Minimum, maximum, NaN count, byte size and level histogram of each page."""

from __future__ import annotations

import numpy as np

from .memory import load8, load64
from .registry import helper, inlined, kernel
from .words import big_endian_prefix, swap_bytes

LEAST = -(1 << 63)
MOST = (1 << 63) - 1
UNSIGNED, FIXED_DECIMAL, DECIMAL = range(3)  # orders of binary values

_TOP_BIT = np.uint64(1 << 63)


@inlined
def store_min_max(values, start, stop, fold, flip, lowest, highest, out, place):
    """Store the minimum and maximum key of a page, and how many keys lie outside of `lowest` to `highest`."""
    low = MOST
    high = LEAST
    outside = 0
    for i in range(start, stop):
        value = np.int64(values[i])
        key = value ^ ((value >> 63) & fold) ^ flip
        inside = (key >= lowest) & (key <= highest)
        outside += 0 if inside else 1
        low = min(low, key if inside else MOST)
        high = max(high, key if inside else LEAST)
    out[place] = low
    out[place + 1] = high
    out[place + 2] = outside


@kernel("i4 i8 x x x x x i8")
def min_max4(values, page_offsets, num_pages, fold, flip, lowest, highest, out):
    """Write three items per page of 4-byte values: minimum key, maximum key, number of NaNs.

    A key is ``v ^ ((v >> 63) & fold) ^ flip``; one not in `lowest` to `highest` is NaN. MOST and LEAST mean no key.
    """
    for page in range(num_pages):
        store_min_max(values, page_offsets[page], page_offsets[page + 1], fold, flip, lowest, highest, out, 3 * page)
    return num_pages


@kernel("i8 i8 x x x x x i8")
def min_max8(values, page_offsets, num_pages, fold, flip, lowest, highest, out):
    """Write minimum key, maximum key and number of NaNs of pages of 8-byte values, as `min_max4` does."""
    for page in range(num_pages):
        store_min_max(values, page_offsets[page], page_offsets[page + 1], fold, flip, lowest, highest, out, 3 * page)
    return num_pages


@kernel("i4 i8 i8 x x x i8")
def min_max_codes(codes, keys, page_offsets, num_pages, lowest, highest, out):
    """Write minimum, maximum and number of NaNs of pages of codes by their entries' keys, as `min_max4` does."""
    for page in range(num_pages):
        low = MOST
        high = LEAST
        outside = 0
        for i in range(page_offsets[page], page_offsets[page + 1]):
            key = keys[codes[i]]
            inside = (key >= lowest) & (key <= highest)
            outside += 0 if inside else 1
            low = min(low, key if inside else MOST)
            high = max(high, key if inside else LEAST)
        out[3 * page] = low
        out[3 * page + 1] = high
        out[3 * page + 2] = outside
    return num_pages


# --- binary values ----------------------------------------------------------------------------------------------------


@inlined
def has_same_prefix(data, a, b, count):
    """Whether the first `count` bytes of two values, a multiple of eight, are equal."""
    place = 0
    while place < count:
        if load64(data, a + place) != load64(data, b + place):
            return False
        place += 8
    return True


@helper
def common_prefix8(data, a, a_end, b, b_end):
    """Return the length of the common prefix of two values, rounded down to a multiple of eight."""
    count = 0
    room = min(a_end - a, b_end - b) - 8
    while count <= room and load64(data, a + count) == load64(data, b + count):
        count += 8
    return count


@helper
def compare_bytes(data, a, a_end, b, b_end):
    """Compare two values as unsigned bytes; return a negative number, 0 or a positive one."""
    while (a_end - a >= 8) & (b_end - b >= 8):
        x = load64(data, a)
        y = load64(data, b)
        if x != y:
            return -1 if swap_bytes(x) < swap_bytes(y) else 1
        a += 8
        b += 8
    while (a < a_end) & (b < b_end):
        difference = load8(data, a) - load8(data, b)
        if difference != 0:
            return difference
        a += 1
        b += 1
    return (a_end - a) - (b_end - b)


@helper
def compare_decimals(data, a, a_end, b, b_end):
    """Compare two big-endian two's complement integers of any lengths; an empty one is zero."""
    a_sign = load8(data, a) >> 7 if a < a_end else 0
    b_sign = load8(data, b) >> 7 if b < b_end else 0
    if a_sign != b_sign:
        return b_sign - a_sign
    extension = 255 * a_sign  # leading bytes that do not change the value
    while (a_end - a > b_end - b) and load8(data, a) == extension:
        a += 1
    while (b_end - b > a_end - a) and load8(data, b) == extension:
        b += 1
    longer = (a_end - a) - (b_end - b)
    if longer != 0:
        return -longer if a_sign else longer
    return compare_bytes(data, a, a_end, b, b_end)


@helper
def compare_values(data, order, a, a_end, b, b_end):
    """Compare two values in an order; return a negative number, 0 or a positive one."""
    if order == UNSIGNED:
        return compare_bytes(data, a, a_end, b, b_end)
    return compare_decimals(data, a, a_end, b, b_end)


@kernel("u1 x i8 i8 x x i4 i4 x i8 x i8")
def min_max_binary(data, size, starts, ends, width, order, codes, last_page, num_entries, page_offsets, num_pages, out):
    """Write the indices of a minimum and a maximum value of each page; -1 for a page without values.

    Value i is ``data[starts[i]:ends[i]]``, or has `width` bytes if that is not 0; `data` has `size` bytes.
    """
    # If `num_entries` is not 0, the values are a dictionary and the pages are of `codes`. `last_page` starts as zeros;
    # an entry that is in no page keeps its 0.
    for page in range(num_pages):
        low = -1
        high = -1
        low_start = low_end = high_start = high_end = 0
        shared = 0  # common prefix of minimum and maximum so far, a multiple of eight bytes
        low_word = high_word = np.uint64(0)  # the eight bytes after it
        flip = np.uint64(0)
        for i in range(page_offsets[page], page_offsets[page + 1]):
            item = i
            if num_entries:
                item = np.int64(codes[i])
                if last_page[item] == page + 1:  # seen in this page
                    continue
                last_page[item] = page + 1
            start = item * width if width else starts[item]
            end = start + width if width else ends[item]
            # Nearly every value stops here: any value between the two shares their common prefix.
            if (low >= 0) & (order != DECIMAL) & (end - start >= shared):
                if has_same_prefix(data, start, low_start, shared):
                    word = big_endian_prefix(data, size, start + shared, end) ^ flip
                    if (word > low_word) & (word < high_word):
                        continue
            before = low
            if low < 0 or compare_values(data, order, start, end, low_start, low_end) < 0:
                low = item
                low_start = start
                low_end = end
            if before < 0 or compare_values(data, order, start, end, high_start, high_end) > 0:
                high = item
                high_start = start
                high_end = end
            elif low == before:
                continue
            shared = common_prefix8(data, low_start, low_end, high_start, high_end)
            flip = _TOP_BIT if order == FIXED_DECIMAL and shared == 0 else np.uint64(0)
            low_word = big_endian_prefix(data, size, low_start + shared, low_end) ^ flip
            high_word = big_endian_prefix(data, size, high_start + shared, high_end) ^ flip
        out[2 * page] = low
        out[2 * page + 1] = high
    return num_pages


# --- sizes and level histograms ---------------------------------------------------------------------------------------


@kernel("i8 i8 i4 x i8 x i8")
def sum_bytes_by_page(starts, ends, codes, num_entries, page_offsets, num_pages, out):
    """Sum the bytes of the binary values of each page, by `codes` if `num_entries` is not 0; return the total."""
    whole = 0
    for page in range(num_pages):
        total = 0
        if num_entries:
            for i in range(page_offsets[page], page_offsets[page + 1]):
                total += ends[codes[i]] - starts[codes[i]]
        else:
            for i in range(page_offsets[page], page_offsets[page + 1]):
                total += ends[i] - starts[i]
        out[page] = total
        whole += total
    return whole


@kernel("u1 i8 x x i8")
def level_histograms(levels, page_offsets, num_pages, num_levels, out):
    """Count each level in each page: `num_levels` items of `out` per page, zero before; levels must be in range."""
    for page in range(num_pages):
        for i in range(page_offsets[page], page_offsets[page + 1]):
            out[page * num_levels + np.int64(levels[i])] += 1
    return num_pages
