"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (Encodings.md, 6 and 7), decoded and encoded."""

from __future__ import annotations

from numparq.kernels.memory import copy16, copy_bytes, load8, load32, load64, store32
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_LENGTH

from .delta_binary_packed import encode_deltas4, max_delta_bytes

_NEGATIVE = 1 << 31  # smallest zero-extended negative INT32


@helper
def copy_short(out, out_pos, data, pos, length):
    """Copy bytes, usually few, and return `length`; up to 16 bytes after source and target may be touched."""
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
    """Sum `count` lengths; BAD_LENGTH if one is negative or the sum exceeds `most`."""
    total = 0
    largest = 0
    for i in range(count):
        length = load32(lengths, pos + (i << 2))
        largest = max(largest, length)
        total += length
    return total if largest < _NEGATIVE and total <= most else BAD_LENGTH


@helper
def total_prefixed_length(lengths, count, width, before):
    """Sum the lengths of strings, given their prefix lengths and then their suffix lengths, or return BAD_LENGTH.

    No prefix may exceed the string before, of `before` bytes at first. All have `width` bytes, unless that is -1.
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
def write_with_lengths(data, pos, count, lengths, out, out_pos):
    """Write strings, concatenated from `pos` on, each after its length."""
    for i in range(count):
        length = load32(lengths, i << 2)
        store32(out, out_pos, length)
        out_pos += 4
        out_pos += copy_short(out, out_pos, data, pos, length)
        pos += length
    return 0


@helper
def write_with_prefixes(data, pos, count, lengths, prefix_size, before, out, out_pos):
    """Write strings, each with a prefix of the string before; the first one's is at `before` in `out`.

    `prefix_size` is 4 if each string follows its length, else 0.
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


def max_delta_length_bytes(count: int, num_bytes: int) -> int:
    """Return the most bytes that DELTA_LENGTH_BYTE_ARRAY takes for `count` values of `num_bytes` bytes in total."""
    return max_delta_bytes(count, 4) + num_bytes


def max_delta_byte_array_bytes(count: int, num_bytes: int) -> int:
    """Return the most bytes that DELTA_BYTE_ARRAY takes for `count` values of `num_bytes` bytes in total."""
    return 2 * max_delta_bytes(count, 4) + num_bytes


@helper
def common_prefix(data, one, other, most):
    """Count the equal bytes, up to `most`, from positions `one` and `other` on."""
    same = 0
    while same + 8 <= most and load64(data, one + same) == load64(data, other + same):
        same += 8
    while same < most and load8(data, one + same) == load8(data, other + same):
        same += 1
    return same


@kernel("u1 i8 i8 x x i4 u1 x")
def encode_delta_length(data, starts, ends, start, stop, lengths, out, pos):
    """Encode values `start` to `stop` as DELTA_LENGTH_BYTE_ARRAY; return the new position.

    Value i is ``data[starts[i]:ends[i]]``; `out` has `max_delta_length_bytes` bytes from `pos` on.
    """
    for i in range(start, stop):
        lengths[i - start] = ends[i] - starts[i]
    pos = encode_deltas4(lengths, 0, stop - start, out, pos)
    first = 0
    last = 0
    for i in range(start, stop):  # adjacent values are copied together
        if starts[i] != last:
            copy_bytes(out, pos, data, first, last - first)
            pos += last - first
            first = starts[i]
        last = ends[i]
    copy_bytes(out, pos, data, first, last - first)
    return pos + last - first


@kernel("u1 i8 i8 x x i4 i4 u1 x")
def encode_delta_byte_array(data, starts, ends, start, stop, prefixes, suffixes, out, pos):
    """Encode values `start` to `stop`, FIXED_LEN_BYTE_ARRAY too, as DELTA_BYTE_ARRAY; return the new position.

    Value i is ``data[starts[i]:ends[i]]``; `out` has `max_delta_byte_array_bytes` bytes from `pos` on.
    """
    for i in range(start, stop):
        length = ends[i] - starts[i]
        shared = 0
        if i > start:
            shared = common_prefix(data, starts[i - 1], starts[i], min(length, ends[i - 1] - starts[i - 1]))
        prefixes[i - start] = shared
        suffixes[i - start] = length - shared
    pos = encode_deltas4(prefixes, 0, stop - start, out, pos)
    pos = encode_deltas4(suffixes, 0, stop - start, out, pos)
    for i in range(start, stop):
        length = suffixes[i - start]
        copy_bytes(out, pos, data, ends[i] - length, length)
        pos += length
    return pos
