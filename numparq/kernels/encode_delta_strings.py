"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (Encodings.md, 6 and 7), written: lengths apart from bytes."""

from __future__ import annotations

from .encode_delta import delta_room, encode4
from .memory import copy_bytes, load8, load64
from .registry import helper, kernel


def delta_length_room(count: int, num_bytes: int) -> int:
    """Give the bytes that DELTA_LENGTH_BYTE_ARRAY takes at most, for so many values of so many bytes together."""
    return delta_room(count, 4) + num_bytes


def delta_byte_array_room(count: int, num_bytes: int) -> int:
    """Give the bytes that DELTA_BYTE_ARRAY takes at most, for so many values of so many bytes together."""
    return 2 * delta_room(count, 4) + num_bytes


@helper
def common_prefix(data, one, other, most):
    """Count the bytes, up to `most`, that are the same from positions `one` and `other` on."""
    same = 0
    while same + 8 <= most and load64(data, one + same) == load64(data, other + same):
        same += 8
    while same < most and load8(data, one + same) == load8(data, other + same):
        same += 1
    return same


@kernel("u1 i8 i8 x x i4 u1 x")
def encode_delta_length(data, starts, ends, start, stop, lengths, out, pos):
    """Write byte strings `start` to `stop` as DELTA_LENGTH_BYTE_ARRAY.

    Parameters
    ----------
    data, starts, ends
        Value i is ``data[starts[i]:ends[i]]``.
    start, stop : int
        The values.
    lengths : int32
        Room for as many lengths.
    out, pos
        `delta_length_room` bytes from `pos` on.

    Returns
    -------
    int
        The new position.
    """
    for i in range(start, stop):
        lengths[i - start] = ends[i] - starts[i]
    pos = encode4(lengths, 0, stop - start, out, pos)
    first = 0
    last = 0
    for i in range(start, stop):  # neighbours in `data` are copied together
        if starts[i] != last:
            copy_bytes(out, pos, data, first, last - first)
            pos += last - first
            first = starts[i]
        last = ends[i]
    copy_bytes(out, pos, data, first, last - first)
    return pos + last - first


@kernel("u1 i8 i8 x x i4 i4 u1 x")
def encode_delta_byte_array(data, starts, ends, start, stop, prefixes, suffixes, out, pos):
    """Write byte strings `start` to `stop` as DELTA_BYTE_ARRAY: what each shares with the one before, and the rest.

    Parameters
    ----------
    data, starts, ends
        Value i is ``data[starts[i]:ends[i]]``; those of FIXED_LEN_BYTE_ARRAY are written the same way.
    start, stop : int
        The values.
    prefixes, suffixes : int32
        Room for as many lengths each.
    out, pos
        `delta_byte_array_room` bytes from `pos` on.

    Returns
    -------
    int
        The new position.
    """
    for i in range(start, stop):
        length = ends[i] - starts[i]
        shared = 0
        if i > start:
            shared = common_prefix(data, starts[i - 1], starts[i], min(length, ends[i - 1] - starts[i - 1]))
        prefixes[i - start] = shared
        suffixes[i - start] = length - shared
    pos = encode4(prefixes, 0, stop - start, out, pos)
    pos = encode4(suffixes, 0, stop - start, out, pos)
    for i in range(start, stop):
        length = suffixes[i - start]
        copy_bytes(out, pos, data, ends[i] - length, length)
        pos += length
    return pos
