"""LZ4, LZ4_RAW and LZO: blocks, Hadoop framing, and the framings of older writers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Compress = Callable[[Any], Any]

_FRAME_MAGIC = b"\x04\x22\x4d\x18"

Decompress = Callable[[Any, Any], int]


def lz4_raw_compressor(level: int | None) -> Compress:
    """Return the function that compresses to a raw block of LZ4."""
    import cramjam

    return partial(cramjam.lz4.compress_block, store_size=False)


def lz4_compressor(level: int | None) -> Compress:
    """Give the function of the deprecated LZ4: the framing of Hadoop, in one block."""
    block = lz4_raw_compressor(level)

    def compress(data: Any) -> bytes:
        packed = bytes(block(data))
        return len(data).to_bytes(4, "big") + len(packed).to_bytes(4, "big") + packed

    return compress


def decompress_hadoop(data: memoryview, out: memoryview, block: Decompress) -> int:
    """Decompress what Hadoop's streams write.

    Parameters
    ----------
    data : memoryview
        The compressed bytes, all of them.
    out : memoryview
        Is filled exactly.
    block : callable
        ``(data, out) -> int`` decompresses one block to the front of `out`, and gives the bytes written.

    Returns
    -------
    int
        The bytes written: as many as `out` has.

    Raises
    ------
    ValueError
        When a length is not that of what follows. Whatever `block` raises passes.
    """
    pos = done = 0
    while pos < len(data):
        size, pos = _length(data, pos)
        if size > len(out) - done:
            raise ValueError("a length in its framing is more than the page header says")
        stop = done + size
        # Of no data there may be a block all the same (Arrow), or none (Hadoop).
        while done < stop or (size == 0 and pos < len(data)):
            length, pos = _length(data, pos)
            if length > len(data) - pos or (length == 0 and size):
                raise ValueError("the length of a block in its framing is not that of the data")
            if length:
                done += block(data[pos : pos + length], out[done:stop])
            pos += length
    if done < len(out):
        raise ValueError(f"it holds {done} bytes where the page header says {len(out)}")
    return done


def _length(data: memoryview, pos: int) -> tuple[int, int]:
    if len(data) - pos < 4:
        raise ValueError("a length in its framing is cut off")
    return int.from_bytes(data[pos : pos + 4], "big"), pos + 4


def lz4_decompressor() -> Decompress:
    """Give the function of the deprecated LZ4: Hadoop's framing, or what older versions of Arrow C++ wrote instead.

    Those are frames of LZ4's own format, and blocks without anything around them. The first bytes tell them apart: no
    sound block begins without a literal, hence none with the length of less than 256 MiB.
    """
    import cramjam

    lz4_block, frames = lz4_raw_decompressor(), cramjam.lz4.decompress_into

    def decompress(data: Any, out: Any) -> int:
        data, out = memoryview(data), memoryview(out)
        try:
            return decompress_hadoop(data, out, lz4_block)
        except Exception:
            if data[:4] == _FRAME_MAGIC:
                return frames(data, out)
            if data[0] < 16 and len(data) > 1:
                raise
        return lz4_block(data, out)

    return decompress


def lz4_raw_decompressor() -> Decompress:
    """Give the function for a block of LZ4. Where it is not told a length, cramjam may take the first bytes for one."""
    import cramjam

    return lambda data, out: cramjam.lz4.decompress_block_into(data, out, output_len=len(out))


def lzo_decompressor() -> Decompress:
    """Give the function of LZO: Hadoop's framing, or that of python-lzo, as older versions of fastparquet wrote it.

    That is a byte F0 or F1 and the length, then one block.
    """
    import numpy as np

    from numparq.kernels import lzo_kernels

    lzo_kernels.load()

    def block(data: Any, out: Any) -> int:
        raw, room = np.frombuffer(data, np.uint8), np.frombuffer(out, np.uint8)
        written = lzo_kernels.decompress_lzo(raw, 0, len(raw), room, 0, len(room))
        if written < 0:
            raise ValueError("a block is no sound LZO1X")
        return written

    def decompress(data: Any, out: Any) -> int:
        data, out = memoryview(data), memoryview(out)
        if len(data) > 5 and data[0] in (0xF0, 0xF1) and int.from_bytes(data[1:5], "big") == len(out):
            return block(data[5:], out)
        return decompress_hadoop(data, out, block)

    return decompress
