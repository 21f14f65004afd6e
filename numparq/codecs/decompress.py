"""Reading: codec -> the function that decompresses a page, and the most that it can make of a byte."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ..errors import CorruptPageError, UnsupportedError
from . import framing
from .framing import Decompress
from .names import BROTLI, GZIP, LZ4, LZ4_RAW, LZO, NAMES, SNAPPY, ZSTD


@dataclass(frozen=True)
class Codec:
    """A codec that this version can decompress.

    Parameters
    ----------
    load : callable
        Imports the library, and gives its function: takes the compressed bytes and a buffer to fill, and returns the
        bytes written; whatever it raises means that the data is damaged.
    max_ratio : int
        Bytes that one compressed byte can stand for at the most, rounded up. A header that claims more is refused
        before memory is taken for it.
    """

    load: Callable[[], Decompress]
    max_ratio: int


def _cramjam(module: str, function: str) -> Decompress:
    import cramjam

    return getattr(getattr(cramjam, module), function)


def _zstandard() -> Decompress:
    """Give the function for ZSTD: cramjam's takes 1.1 to 1.4 times as long on large pages, 3 times on small ones."""
    import zstandard

    local = threading.local()  # a decompressor serves one thread at a time, and is worth keeping

    def decompress(data: Any, out: Any) -> int:
        try:
            decompressor = local.decompressor
        except AttributeError:
            decompressor = local.decompressor = zstandard.ZstdDecompressor()
        reader = decompressor.stream_reader(data, read_across_frames=True)
        written = reader.readinto(out)
        if reader.read(1):
            raise ValueError("it holds more than the page header says")
        if _end_of_frames(data) != len(data):  # the library asks for no more once the buffer is full
            raise ValueError("its last frame is cut off")
        return written

    return decompress


_ZSTD_MAGIC, _SKIPPABLE_MAGIC = 0xFD2FB528, 0x184D2A50  # of the latter, the low four bits may be any


def _end_of_frames(data: Any) -> int:
    """Say where frames end that lie one after the other (RFC 8878, section 3.1), going by their lengths alone."""
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
        pos += 4 if not last or descriptor & 4 else 0  # the checksum; or too far, for the last block is missing
    return pos


# Snappy: a copy of 64 bytes takes 3. LZ4 and LZO: a byte of a match's length counts 255. Deflate: 258 bytes in 2 bits.
# Zstandard: a block of 128 KiB in 4 bytes. Brotli: a metablock of 16 MiB in a handful of bytes.
CODECS: dict[int, Codec] = {
    SNAPPY: Codec(partial(_cramjam, "snappy", "decompress_raw_into"), 22),
    GZIP: Codec(partial(_cramjam, "gzip", "decompress_into"), 1032),
    LZO: Codec(framing.lzo, 256),
    BROTLI: Codec(partial(_cramjam, "brotli", "decompress_into"), 1 << 24),
    LZ4: Codec(framing.lz4, 256),
    ZSTD: Codec(_zstandard, 1 << 15),
    LZ4_RAW: Codec(framing.lz4_raw, 256),
}


@cache
def decompressor(codec: int) -> Callable[[Any, Any], None]:
    """Give the function that decompresses one page of a codec.

    Parameters
    ----------
    codec : int
        CompressionCodec (parquet.thrift).

    Returns
    -------
    callable
        ``(data, out) -> None`` over buffers; it fills `out` exactly, or raises CorruptPageError. The GIL is released.

    Raises
    ------
    UnsupportedError
        For a codec that is unknown, or that this version does not read.
    """
    name = NAMES[codec] if 0 <= codec < len(NAMES) else "unknown to this version"
    if codec not in CODECS:
        raise UnsupportedError(f"numparq does not read pages compressed with codec {codec} ({name}) yet")
    decompress_into = CODECS[codec].load()

    def decompress(data: Any, out: Any) -> None:
        try:
            written = decompress_into(data, out)
        except Exception as error:  # each library has its own
            raise CorruptPageError(f"the {name} data is damaged: {error}") from None
        if written != len(out):
            raise CorruptPageError(
                f"the {name} data decompresses to {written} bytes where the page header says {len(out)}"
            )

    return decompress


_RATIOS = np.array([CODECS[codec].max_ratio if codec in CODECS else 0 for codec in range(len(NAMES))], np.int64)


def max_ratios(codecs: np.ndarray) -> np.ndarray:
    """Give the most bytes that one compressed byte can stand for, by codec; 0 where that is not known."""
    known = (codecs >= 0) & (codecs < len(_RATIOS))
    return np.where(known, _RATIOS[np.where(known, codecs, 0)], 0)
