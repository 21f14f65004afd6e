"""BYTE_STREAM_SPLIT (Encodings.md, BYTE_STREAM_SPLIT = 9), written: all first bytes, then all second ones."""

from __future__ import annotations

from .memory import load8, store8
from .registry import kernel


def byte_stream_split_room(count: int, width: int) -> int:
    """Give the bytes that so many values of `width` bytes take."""
    return count * width


@kernel("u1 x x x u1 x", noalias=True)
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
    for byte in range(width):
        for i in range(count):
            store8(out, pos + i, load8(values, first + i * width + byte))
        pos += count
    return pos
