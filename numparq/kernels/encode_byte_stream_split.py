"""BYTE_STREAM_SPLIT (Encodings.md, BYTE_STREAM_SPLIT = 9), written: all first bytes, then all second ones."""

from __future__ import annotations

from .memory import load8, store8
from .registry import kernel
from .streams import split2, split4, split8


def byte_stream_split_room(count: int, width: int) -> int:
    """Give the bytes that so many values of `width` bytes take."""
    return count * width


@kernel("u1 x x x u1 x")
def encode_byte_stream_split(values, width, start, stop, out, pos):
    """Write values `start` to `stop` as BYTE_STREAM_SPLIT.

    Parameters
    ----------
    values : uint8
        Values of `width` bytes each.
    width, start, stop : int
        Bytes of a value, and which of them.
    out, pos
        As many bytes from `pos` on.

    Returns
    -------
    int
        The new position.
    """
    count = stop - start
    first = start * width
    done = 0
    if width == 8:
        done = count & -8
        for i in range(0, done, 8):
            split8(out, pos + i, count, values, first + (i << 3))
    elif width == 4:
        done = count & -16
        for i in range(0, done, 16):
            split4(out, pos + i, count, values, first + (i << 2))
    elif width == 2:
        done = count & -32
        for i in range(0, done, 32):
            split2(out, pos + i, count, values, first + (i << 1))
    for byte in range(width):
        for i in range(done, count):
            store8(out, pos + byte * count + i, load8(values, first + i * width + byte))
    return pos + width * count
