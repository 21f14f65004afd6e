"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (Encodings.md, 6 and 7), read: to values as PLAIN has them."""

from __future__ import annotations

from ..errors import BAD_LENGTH
from .memory import copy16, copy_bytes, load32, store32
from .registry import helper

_NEGATIVE = 1 << 31  # an INT32 below zero, as it is loaded


@helper
def copy_short(out, out_pos, data, pos, length):
    """Copy bytes, few as a rule; up to 16 behind both may be touched."""
    if length <= 16:
        copy16(out, out_pos, data, pos)
    elif length <= 32:
        copy16(out, out_pos, data, pos)
        copy16(out, out_pos + 16, data, pos + 16)
    else:
        copy_bytes(out, out_pos, data, pos, length)
    return length


@helper
def total_length(lengths, pos, count, most):
    """Add up `count` lengths; BAD_LENGTH where one is negative, or where they make more than `most`."""
    total = 0
    largest = 0
    for i in range(count):
        length = load32(lengths, pos + (i << 2))
        largest = max(largest, length)
        total += length
    return total if largest < _NEGATIVE and total <= most else BAD_LENGTH


@helper
def total_with_prefixes(lengths, count, width, before):
    """Add up the lengths of strings with their prefixes; BAD_LENGTH where a prefix is longer than the string before.

    In front of the first one there is a string of `before` bytes.

    `lengths` are those of the prefixes, then of what follows them. Strings of FIXED_LEN_BYTE_ARRAY all have to be of
    `width` bytes; -1: they may be of any length.
    """
    total = 0
    for i in range(count):
        prefix = load32(lengths, i << 2)
        if prefix > before:
            return BAD_LENGTH
        before = prefix + load32(lengths, (count + i) << 2)
        if before >= _NEGATIVE or (width >= 0 and before != width):
            return BAD_LENGTH
        total += before
    return total


@helper
def copy_lengths(data, pos, count, lengths, out, out_pos):
    """Write strings that lie one behind the other from `pos` on, each behind its length."""
    for i in range(count):
        length = load32(lengths, i << 2)
        store32(out, out_pos, length)
        out_pos += 4
        out_pos += copy_short(out, out_pos, data, pos, length)
        pos += length
    return 0


@helper
def join_prefixes(data, pos, count, lengths, prefix_size, before, out, out_pos):
    """Write strings that begin as the ones before them, the first as the one at `before`.

    `prefix_size` is 4 where each goes behind its length, or 0.
    """
    for i in range(count):
        prefix = load32(lengths, i << 2)
        suffix = load32(lengths, (count + i) << 2)
        if prefix_size > 0:
            store32(out, out_pos, prefix + suffix)
            out_pos += 4
        start = out_pos
        out_pos += copy_short(out, out_pos, out, before, prefix)
        out_pos += copy_short(out, out_pos, data, pos, suffix)
        pos += suffix
        before = start
    return 0
