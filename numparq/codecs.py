"""Compression codecs: CompressionCodec of the footer -> the function that decompresses a page's bytes.

The codecs themselves are cramjam's, but for Snappy, which is a kernel (`numparq.kernels.snappy`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .errors import CorruptPageError, UnsupportedError

UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW = range(8)

NAMES = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")


@dataclass(frozen=True)
class Codec:
    """A codec that this version can decompress.

    Parameters
    ----------
    name : str
        As in the format.
    module, function : str
        Where cramjam has it: takes the compressed bytes and a buffer to fill, and returns the bytes written.
    max_ratio : int
        Bytes that one compressed byte can stand for at the most, rounded up. A header that claims more is refused
        before memory is taken for it.
    """

    name: str
    module: str
    function: str
    max_ratio: int


# Snappy: a copy of 64 bytes takes 3. LZ4: a byte of match length counts 255. Deflate: 258 bytes in 2 bits.
# Zstandard: a block of 128 KiB in 4 bytes. Brotli: a metablock of 16 MiB in a handful of bytes.
CODECS: dict[int, Codec] = {
    SNAPPY: Codec("SNAPPY", "snappy", "decompress_raw_into", 22),
    GZIP: Codec("GZIP", "gzip", "decompress_into", 1032),
    BROTLI: Codec("BROTLI", "brotli", "decompress_into", 1 << 24),
    ZSTD: Codec("ZSTD", "zstd", "decompress_into", 1 << 15),
    LZ4_RAW: Codec("LZ4_RAW", "lz4", "decompress_block_into", 256),
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
    import cramjam

    if codec not in CODECS:
        name = NAMES[codec] if 0 <= codec < len(NAMES) else "unknown to this version"
        raise UnsupportedError(f"numparq does not read pages compressed with codec {codec} ({name}) yet")
    entry = CODECS[codec]
    decompress_into = getattr(getattr(cramjam, entry.module), entry.function)

    def decompress(data: Any, out: Any) -> None:
        try:
            written = decompress_into(data, out)
        except Exception as error:  # cramjam's DecompressionError, and for some inputs ValueError or OSError
            raise CorruptPageError(f"the {entry.name} data is damaged: {error}") from None
        if written != len(out):
            raise CorruptPageError(
                f"the {entry.name} data decompresses to {written} bytes where the page header says {len(out)}"
            )

    return decompress


_RATIOS = np.array([CODECS[codec].max_ratio if codec in CODECS else 0 for codec in range(len(NAMES))], np.int64)


def max_ratios(codecs: np.ndarray) -> np.ndarray:
    """Give the most bytes that one compressed byte can stand for, by codec; 0 where that is not known."""
    known = (codecs >= 0) & (codecs < len(_RATIOS))
    return np.where(known, _RATIOS[np.where(known, codecs, 0)], 0)
