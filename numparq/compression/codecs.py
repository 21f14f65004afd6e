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
    """Compression levels of a codec: the range, both ends inclusive, and the default."""

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
    """Decompression of one codec: `load` imports its library and returns ``(data, out) -> bytes written``.

    A page header that claims over `max_ratio` bytes per compressed byte is refused before memory is allocated.
    """

    load: Callable[[], Decompress]
    max_ratio: int


def _cramjam(module: str, function: str) -> Decompress:
    import cramjam

    decompress: Decompress = getattr(getattr(cramjam, module), function)
    return decompress


# Snappy: 3 bytes copy 64. LZ4 and LZO: a byte of a match's length counts 255. Deflate: 2 bits stand for 258 bytes.
# Zstandard: 4 bytes stand for a block of 128 KiB. Brotli: a handful of bytes stands for a metablock of 16 MiB.
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
    """Return the function ``(data) -> bytes-like`` that compresses one page without the GIL; None for UNCOMPRESSED.

    Raises ValueError for a level out of range, and UnsupportedError for a codec that numparq does not write.
    """
    name = CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else str(codec)
    levels = COMPRESSION_LEVELS.get(codec)
    if level is not None and levels is None:
        raise ValueError(f"{name} has no compression levels; omit level {level}")
    if level is not None and levels is not None and not levels.lowest <= level <= levels.highest:
        raise ValueError(
            f"the compression level of {name} must be from {levels.lowest} to {levels.highest}, not {level}"
        )
    if codec == UNCOMPRESSED:
        return None
    if codec not in COMPRESSORS:
        raise UnsupportedError(f"numparq does not write pages compressed with {name}")
    return COMPRESSORS[codec](levels.default if levels and level is None else level)


@cache
def decompressor(codec: int) -> Callable[[Any, Any], None]:
    """Return the function ``(data, out) -> None`` that decompresses one page without the GIL.

    It fills `out` exactly or raises CorruptPageError. An unknown or unsupported codec raises UnsupportedError here.
    """
    name = CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else "unknown"
    if codec not in DECOMPRESSORS:
        raise UnsupportedError(f"numparq does not read pages compressed with codec {codec} ({name}) yet")
    decompress_into = DECOMPRESSORS[codec].load()

    def decompress(data: Any, out: Any) -> None:
        try:
            written = decompress_into(data, out)
        except Exception as error:  # each library raises classes of its own
            raise CorruptPageError(f"the {name} data is damaged: {error}") from None
        if written != len(out):
            raise CorruptPageError(
                f"the {name} data decompresses to {written} bytes, but the page header states {len(out)}"
            )

    return decompress


def max_ratios(codecs: np.ndarray) -> np.ndarray:
    """Return the most bytes that one compressed byte can stand for, by codec; 0 for unknown codecs."""
    known = (codecs >= 0) & (codecs < len(_RATIOS))
    return np.where(known, _RATIOS[np.where(known, codecs, 0)], 0)
