"""LZ4, LZ4_RAW and LZO: blocks, Hadoop framing, and the framings of older writers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numparq.util.pluralize import agree_noun

Compress = Callable[[Any], Any]

_FRAME_MAGIC = b"\x04\x22\x4d\x18"

Decompress = Callable[[Any, Any], int]


def lz4_raw_compressor(level: int | None) -> Compress:
    """Return the function that compresses to a raw LZ4 block."""
    import cramjam

    return partial(cramjam.lz4.compress_block, store_size=False)


def lz4_compressor(level: int | None) -> Compress:
    """Return the function that compresses to the deprecated LZ4: Hadoop framing around one block."""
    block = lz4_raw_compressor(level)

    def compress(data: Any) -> bytes:
        packed = bytes(block(data))
        return len(data).to_bytes(4, "big") + len(packed).to_bytes(4, "big") + packed

    return compress


def decompress_hadoop(data: memoryview, out: memoryview, block: Decompress) -> int:
    """Decompress Hadoop framing so that it fills `out`; `block` is ``(data, out) -> bytes written``.

    Raises ValueError if a length contradicts the data; exceptions of `block` pass through.
    """
    pos = done = 0
    while pos < len(data):
        size, pos = _length(data, pos)
        if size > len(out) - done:
            raise ValueError("a length in its framing exceeds the size in the page header")
        stop = done + size
        # Empty data: Arrow writes an empty block, Hadoop none.
        while done < stop or (size == 0 and pos < len(data)):
            length, pos = _length(data, pos)
            if length > len(data) - pos or (length == 0 and size):
                raise ValueError("the length of a block in its framing does not match the data")
            if length:
                done += block(data[pos : pos + length], out[done:stop])
            pos += length
    if done < len(out):
        raise ValueError(f"it holds {done} {agree_noun(done, 'byte')}, but the page header states {len(out)}")
    return done


def _length(data: memoryview, pos: int) -> tuple[int, int]:
    if len(data) - pos < 4:
        raise ValueError("a length in its framing is truncated")
    return int.from_bytes(data[pos : pos + 4], "big"), pos + 4


def lz4_decompressor() -> Decompress:
    """Return the function for the deprecated LZ4: Hadoop framing, or older Arrow C++'s LZ4 frames and bare blocks."""
    import cramjam

    lz4_block, frames = lz4_raw_decompressor(), cramjam.lz4.decompress_into

    def decompress(data: Any, out: Any) -> int:
        data, out = memoryview(data), memoryview(out)
        try:
            return decompress_hadoop(data, out, lz4_block)
        except Exception:
            if data[:4] == _FRAME_MAGIC:
                return frames(data, out)
            # A valid block begins with a literal, hence a byte of 16 or more; a Hadoop length below 256 MiB with less.
            if data[0] < 16 and len(data) > 1:
                raise
        return lz4_block(data, out)

    return decompress


def lz4_raw_decompressor() -> Decompress:
    """Return the function for a raw LZ4 block."""
    import cramjam

    # Without `output_len`, cramjam may take the first bytes for a length.
    return lambda data, out: cramjam.lz4.decompress_block_into(data, out, output_len=len(out))


def lzo_decompressor() -> Decompress:
    """Return the function for LZO: Hadoop framing, or python-lzo's (older fastparquet).

    The latter is a byte F0 or F1, the length, and one block.
    """
    import numpy as np

    from numparq.kernels.kernel_groups import lzo_kernels

    lzo_kernels.load()

    def block(data: Any, out: Any) -> int:
        raw, room = np.frombuffer(data, np.uint8), np.frombuffer(out, np.uint8)
        written = lzo_kernels.decompress_lzo(raw, 0, len(raw), room, 0, len(room))
        if written < 0:
            raise ValueError("a block is not valid LZO1X")
        return written

    def decompress(data: Any, out: Any) -> int:
        data, out = memoryview(data), memoryview(out)
        if len(data) > 5 and data[0] in (0xF0, 0xF1) and int.from_bytes(data[1:5], "big") == len(out):
            return block(data[5:], out)
        return decompress_hadoop(data, out, block)

    return decompress
