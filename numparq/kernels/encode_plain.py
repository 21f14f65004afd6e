"""PLAIN, encoded: booleans as bits, binary values behind their lengths (other types are stored as they are)."""

from __future__ import annotations

import numpy as np

from .memory import copy16, copy_bytes, load8, load64, store8, store32
from .registry import helper, kernel

# Up to here a binary value is copied 16 bytes at a time, on to where the next ones go.
_SHORT = 64


@kernel("u1 x x u1 x")
def encode_booleans(values, start, stop, out, pos):
    """Encode booleans as PLAIN: eight a byte, from its lowest bit on.

    Parameters
    ----------
    values : uint8
        0 or 1 each.
    start, stop : int
        Which of them.
    out : uint8
        From `pos` on ``(stop - start + 7) // 8`` bytes are written.
    pos : int
        Where they go.

    Returns
    -------
    int
        The position behind them.
    """
    i = start
    while i + 8 <= stop:
        bits = load64(values, i)
        bits |= bits >> np.uint64(7)
        bits |= bits >> np.uint64(14)
        bits |= bits >> np.uint64(28)
        store8(out, pos, np.int64(bits & np.uint64(0xFF)))
        pos += 1
        i += 8
    if i < stop:
        byte = 0
        for k in range(stop - i):
            byte |= load8(values, i + k) << k
        store8(out, pos, byte)
        pos += 1
    return pos


@helper
def put_binary(data, begin, length, out, pos):
    """Write a value behind its length, and not a byte more; the position behind it."""
    store32(out, pos, length)
    copy_bytes(out, pos + 4, data, begin, length)
    return pos + 4 + length


@kernel("u1 x i8 i8 x x u1 x")
def encode_plain_binary(data, data_size, starts, ends, start, stop, out, pos):
    """Encode binary values as PLAIN: four bytes of length before each.

    Parameters
    ----------
    data : uint8
        Value i is ``data[starts[i] : ends[i]]``.
    data_size : int
        Bytes of `data` that may be loaded.
    starts, ends : int64
        Where each value lies.
    start, stop : int
        Which of the values.
    out : uint8
        From `pos` on as many bytes are written as the values have, and four each besides.
    pos : int
        Where they go.

    Returns
    -------
    int
        The position behind them.
    """
    # What is copied beyond the end of a value, at most 16 bytes, is where the lengths of the next four will go.
    last = max(stop - 4, start)
    for i in range(start, last):
        begin = starts[i]
        length = ends[i] - begin
        if (length <= _SHORT) & (begin + length + 16 <= data_size):
            store32(out, pos, length)
            pos += 4
            copy16(out, pos, data, begin)
            done = 16
            while done < length:
                copy16(out, pos + done, data, begin + done)
                done += 16
            pos += length
        else:
            pos = put_binary(data, begin, length, out, pos)
    for i in range(last, stop):
        pos = put_binary(data, starts[i], ends[i] - starts[i], out, pos)
    return pos
