"""BYTE_STREAM_SPLIT (Encodings.md, BYTE_STREAM_SPLIT = 9), read: streams of the values' bytes put together again."""

from __future__ import annotations

from .memory import load8, store8
from .registry import helper
from .streams import join2, join4, join8


@helper
def join_streams(data, pos, count, width, out, out_pos):
    """Write the `count` values of `width` bytes whose streams begin at `pos`; the caller has checked their size."""
    done = 0
    if width == 8:
        done = count & -8
        for i in range(0, done, 8):
            join8(out, out_pos + (i << 3), data, pos + i, count)
    elif width == 4:
        done = count & -16
        for i in range(0, done, 16):
            join4(out, out_pos + (i << 2), data, pos + i, count)
    elif width == 2:
        done = count & -32
        for i in range(0, done, 32):
            join2(out, out_pos + (i << 1), data, pos + i, count)
    for byte in range(width):
        for i in range(done, count):
            store8(out, out_pos + i * width + byte, load8(data, pos + byte * count + i))
    return 0
