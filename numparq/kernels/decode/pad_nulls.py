"""Spread dense values over rows, with the fill value for nulls."""

from __future__ import annotations

import numpy as np

from numparq.kernels.encodings.bit_packing import ONES
from numparq.kernels.memory import (
    copy16,
    copy_bytes,
    load8,
    load32,
    load64,
    popcount,
    store8,
    store16,
    store32,
    store64,
)
from numparq.kernels.registry import helper

_NONE = np.uint64(0)


@helper
def count_valid(validity, pos, count):
    """Count the ones among `count` validity bytes."""
    ones = 0
    whole = count >> 3
    for i in range(whole):
        ones += popcount(load64(validity, pos + (i << 3)))
    for i in range(whole << 3, count):
        ones += load8(validity, pos + i)
    return ones


@helper
def pad_nulls8(data, pos, validity, valid_pos, count, fill, out, out_pos):
    """Spread values of eight bytes over rows."""
    null = np.uint64(fill)
    i = 0
    while i < count:
        stop = min(i + 8, count)
        word = load64(validity, valid_pos + i) if stop == i + 8 else _NONE
        if word == ONES:
            for j in range(4):
                copy16(out, out_pos + (i << 3) + (j << 4), data, pos + (j << 4))
            pos += 64
        else:
            for j in range(i, stop):
                present = load8(validity, valid_pos + j)
                value = load64(data, pos)
                store64(out, out_pos + (j << 3), value if present else null)
                pos += present << 3
        i = stop
    return pos


@helper
def pad_nulls4(data, pos, validity, valid_pos, count, fill, out, out_pos):
    """Spread values of four bytes over rows."""
    i = 0
    while i < count:
        stop = min(i + 8, count)
        word = load64(validity, valid_pos + i) if stop == i + 8 else _NONE
        if word == ONES:
            copy16(out, out_pos + (i << 2), data, pos)
            copy16(out, out_pos + (i << 2) + 16, data, pos + 16)
            pos += 32
        else:
            for j in range(i, stop):
                present = load8(validity, valid_pos + j)
                value = load32(data, pos)
                store32(out, out_pos + (j << 2), value if present else fill)
                pos += present << 2
        i = stop
    return pos


@helper
def pad_nulls_small(data, pos, validity, valid_pos, count, item, fill, out, out_pos):
    """Spread values of one or two bytes over rows."""
    for i in range(count):
        present = load8(validity, valid_pos + i)
        if item == 1:
            value = load8(data, pos)
            store8(out, out_pos + i, value if present else fill)
        else:
            wide = load8(data, pos) | load8(data, pos + 1) << 8
            store16(out, out_pos + (i << 1), wide if present else fill)
        pos += present * item
    return pos


@helper
def pad_nulls_any(data, pos, validity, valid_pos, count, item, out, out_pos):
    """Spread values of any size over rows; nulls become zeros."""
    for i in range(count):
        if load8(validity, valid_pos + i):
            copy_bytes(out, out_pos + i * item, data, pos, item)
            pos += item
        else:
            for j in range(item):
                store8(out, out_pos + i * item + j, 0)
    return pos


@helper
def pad_nulls(data, pos, validity, valid_pos, count, item, fill, out, out_pos):
    """Spread dense values over `count` rows by validity, with `fill` for nulls; return the position after the values.

    `fill` is the low `item` bytes of an int64, or zeros for other sizes. `item` bytes past the values may be loaded.
    """
    if item == 8:
        return pad_nulls8(data, pos, validity, valid_pos, count, fill, out, out_pos)
    if item == 4:
        return pad_nulls4(data, pos, validity, valid_pos, count, fill, out, out_pos)
    if item == 1 or item == 2:
        return pad_nulls_small(data, pos, validity, valid_pos, count, item, fill, out, out_pos)
    return pad_nulls_any(data, pos, validity, valid_pos, count, item, out, out_pos)


@helper
def fill_nulls(count, item, fill, out, out_pos):
    """Write the fill value to `count` rows."""
    if item == 8:
        for i in range(count):
            store64(out, out_pos + (i << 3), np.uint64(fill))
    elif item == 4:
        for i in range(count):
            store32(out, out_pos + (i << 2), fill)
    elif item == 2:
        for i in range(count):
            store16(out, out_pos + (i << 1), fill)
    elif item == 1:
        for i in range(count):
            store8(out, out_pos + i, fill)
    else:
        for i in range(count * item):
            store8(out, out_pos + i, 0)
    return 0
