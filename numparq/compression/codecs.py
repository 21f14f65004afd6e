"""Table of codecs: functions, compression levels and the largest ratio of each CompressionCodec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.errors import CorruptPageError, UnsupportedError
from numparq.kernels.enums import BROTLI, CODEC_NAMES, GZIP, LZ4, LZ4_RAW, LZO, SNAPPY, UNCOMPRESSED, ZSTD

from . import lz4_lzo
from .lz4_lzo import Decompress, lz4_compressor, lz4_raw_compressor
from .zstd import zstd_compressor, zstd_decompressor

if TYPE_CHECKING:
    from .lz4_lzo import Compress


@dataclass(frozen=True)
class CompressionLevels:
    """The compression levels of a codec.

    Parameters
    ----------
    lowest, highest : int
        The range.
    default : int
        What is taken where the caller says nothing.
    """

    lowest: int
    highest: int
    default: int


COMPRESSION_LEVELS: dict[int, CompressionLevels] = {
    GZIP: CompressionLevels(0, 9, 6),
    BROTLI: CompressionLevels(0, 11, 1),
    ZSTD: CompressionLevels(-22, 22, 1),
}


def _snappy(level: int | None) -> Compress:
    import cramjam

    return cramjam.snappy.compress_raw


def _with_level(module: str) -> Callable[[int | None], Compress]:
    def make(level: int | None) -> Compress:
        import cramjam

        return partial(getattr(cramjam, module).compress, level=level)

    return make


COMPRESSORS: dict[int, Callable[[int | None], Compress]] = {
    SNAPPY: _snappy,
    GZIP: _with_level("gzip"),
    BROTLI: _with_level("brotli"),
    LZ4: lz4_compressor,
    ZSTD: zstd_compressor,
    LZ4_RAW: lz4_raw_compressor,
}


@dataclass(frozen=True)
class Decompressor:
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


# Snappy: a copy of 64 bytes takes 3. LZ4 and LZO: a byte of a match's length counts 255. Deflate: 258 bytes in 2 bits.
# Zstandard: a block of 128 KiB in 4 bytes. Brotli: a metablock of 16 MiB in a handful of bytes.
DECOMPRESSORS: dict[int, Decompressor] = {
    SNAPPY: Decompressor(partial(_cramjam, "snappy", "decompress_raw_into"), 22),
    GZIP: Decompressor(partial(_cramjam, "gzip", "decompress_into"), 1032),
    LZO: Decompressor(lz4_lzo.lzo_decompressor, 256),
    BROTLI: Decompressor(partial(_cramjam, "brotli", "decompress_into"), 1 << 24),
    LZ4: Decompressor(lz4_lzo.lz4_decompressor, 256),
    ZSTD: Decompressor(zstd_decompressor, 1 << 15),
    LZ4_RAW: Decompressor(lz4_lzo.lz4_raw_decompressor, 256),
}

_RATIOS = np.array(
    [DECOMPRESSORS[codec].max_ratio if codec in DECOMPRESSORS else 0 for codec in range(len(CODEC_NAMES))], np.int64
)


@cache
def compressor(codec: int, level: int | None = None) -> Compress | None:
    """Give the function that compresses one page.

    Parameters
    ----------
    codec : int
        CompressionCodec (parquet.thrift).
    level : int, optional
        The higher, the smaller and slower.

    Returns
    -------
    callable or None
        ``(data) -> bytes-like``; the GIL is released. None for UNCOMPRESSED.

    Raises
    ------
    ValueError
        When the codec has no such level.
    UnsupportedError
        For a codec that this version does not write.
    """
    name = CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else str(codec)
    levels = COMPRESSION_LEVELS.get(codec)
    if level is not None and (levels is None or not levels.lowest <= level <= levels.highest):
        offered = f"from {levels.lowest} to {levels.highest}" if levels else "not to be chosen"
        raise ValueError(f"the compression level of {name} is {offered}, not {level}")
    if codec == UNCOMPRESSED:
        return None
    if codec not in COMPRESSORS:
        raise UnsupportedError(f"numparq does not write pages compressed with {name}")
    return COMPRESSORS[codec](levels.default if levels and level is None else level)


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
    name = CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else "unknown to this version"
    if codec not in DECOMPRESSORS:
        raise UnsupportedError(f"numparq does not read pages compressed with codec {codec} ({name}) yet")
    decompress_into = DECOMPRESSORS[codec].load()

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


def max_ratios(codecs: np.ndarray) -> np.ndarray:
    """Give the most bytes that one compressed byte can stand for, by codec; 0 where that is not known."""
    known = (codecs >= 0) & (codecs < len(_RATIOS))
    return np.where(known, _RATIOS[np.where(known, codecs, 0)], 0)
