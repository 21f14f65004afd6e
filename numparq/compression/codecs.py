"""Table of codecs: functions, compression levels and the largest ratio of each CompressionCodec."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.errors import CorruptPageError, UnsupportedError
from numparq.kernels.enums import BROTLI, CODEC_NAMES, GZIP, LZ4, LZ4_RAW, LZO, SNAPPY, UNCOMPRESSED, ZSTD
from numparq.util.pluralize import agree_noun

from . import lz4_lzo
from .lz4_lzo import Decompress, lz4_compressor, lz4_raw_compressor

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
                f"the {name} data decompresses to {written} {agree_noun(written, 'byte')}, but the page header "
                f"states {len(out)}"
            )

    return decompress


def max_ratios(codecs: np.ndarray) -> np.ndarray:
    """Return the most bytes that one compressed byte can stand for, by codec; 0 for unknown codecs."""
    known = (codecs >= 0) & (codecs < len(_RATIOS))
    return np.where(known, _RATIOS[np.where(known, codecs, 0)], 0)
