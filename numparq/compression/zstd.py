"""ZSTD by zstandard: one context per thread, and frames checked to their end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .lz4_lzo import Decompress

if TYPE_CHECKING:
    from .lz4_lzo import Compress

_ZSTD_MAGIC, _SKIPPABLE_MAGIC = 0xFD2FB528, 0x184D2A50  # a skippable frame may have any low four bits


def zstd_compressor(level: int | None) -> Compress:
    """Return the function that compresses to ZSTD."""
    import zstandard

    assert level is not None  # COMPRESSION_LEVELS has a default
    local = threading.local()  # a compressor is not thread-safe, and worth reusing

    def compress(data: Any) -> bytes:
        try:
            compressor = local.compressor
        except AttributeError:
            compressor = local.compressor = zstandard.ZstdCompressor(level=level)
        packed: bytes = compressor.compress(data)
        return packed

    return compress


def zstd_decompressor() -> Decompress:
    """Return the function for ZSTD; cramjam's takes 1.1 to 1.4 times as long on large pages, 3 times on small ones."""
    import zstandard

    local = threading.local()  # a decompressor is not thread-safe, and worth reusing

    def decompress(data: Any, out: Any) -> int:
        try:
            decompressor = local.decompressor
        except AttributeError:
            decompressor = local.decompressor = zstandard.ZstdDecompressor()
        reader = decompressor.stream_reader(data, read_across_frames=True)
        written: int = reader.readinto(out)
        if reader.read(1):
            raise ValueError("it holds more bytes than the page header states")
        if _end_of_frames(data) != len(data):  # the library reads no further once the buffer is full
            raise ValueError("its last frame is truncated")
        return written

    return decompress


def _end_of_frames(data: Any) -> int:
    """Return the end of consecutive frames (RFC 8878, section 3.1), by their lengths alone."""
    pos = 0
    while pos < len(data):
        magic = int.from_bytes(data[pos : pos + 4], "little")
        if magic & ~0xF == _SKIPPABLE_MAGIC:
            pos += 8 + int.from_bytes(data[pos + 4 : pos + 8], "little")
            continue
        if magic != _ZSTD_MAGIC or len(data) - pos < 5:
            break
        descriptor = data[pos + 4]
        single = descriptor >> 5 & 1
        pos += 6 - single + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6]
        last = 0
        while not last and pos < len(data):
            head = int.from_bytes(data[pos : pos + 3], "little")
            last = head & 1
            pos += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
        pos += 4 if not last or descriptor & 4 else 0  # the checksum; without a last block, past the end of the data
    return pos
