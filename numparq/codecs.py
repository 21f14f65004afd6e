"""Compression codecs: CompressionCodec of the footer -> the functions that compress and decompress a page's bytes.

The codecs themselves are libraries': zstandard for ZSTD, cramjam for the others. Snappy is a kernel besides
(`numparq.kernels.snappy`), which does a batch of pages that are all Snappy in one call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from .errors import CorruptPageError, UnsupportedError

UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW = range(8)

NAMES = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")

Decompress = Callable[[Any, Any], int]


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


def _lz4_raw() -> Decompress:
    """Give the function for LZ4_RAW. Where it is not told a length, cramjam may take a block's first bytes for one."""
    import cramjam

    return lambda data, out: cramjam.lz4.decompress_block_into(data, out, output_len=len(out))


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
        return written

    return decompress


# Snappy: a copy of 64 bytes takes 3. LZ4: a byte of match length counts 255. Deflate: 258 bytes in 2 bits.
# Zstandard: a block of 128 KiB in 4 bytes. Brotli: a metablock of 16 MiB in a handful of bytes.
CODECS: dict[int, Codec] = {
    SNAPPY: Codec(partial(_cramjam, "snappy", "decompress_raw_into"), 22),
    GZIP: Codec(partial(_cramjam, "gzip", "decompress_into"), 1032),
    BROTLI: Codec(partial(_cramjam, "brotli", "decompress_into"), 1 << 24),
    ZSTD: Codec(_zstandard, 1 << 15),
    LZ4_RAW: Codec(_lz4_raw, 256),
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


Compress = Callable[[Any], Any]


@dataclass(frozen=True)
class Levels:
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


LEVELS: dict[int, Levels] = {GZIP: Levels(0, 9, 6), BROTLI: Levels(0, 11, 1), ZSTD: Levels(-22, 22, 1)}


def _snappy(level: int | None) -> Compress:
    import cramjam

    return cramjam.snappy.compress_raw


def _with_level(module: str) -> Callable[[int | None], Compress]:
    def make(level: int | None) -> Compress:
        import cramjam

        return partial(getattr(cramjam, module).compress, level=level)

    return make


def _lz4_block(level: int | None) -> Compress:
    import cramjam

    return partial(cramjam.lz4.compress_block, store_size=False)


def _lz4_hadoop(level: int | None) -> Compress:
    """Give the function of the deprecated LZ4: the framing of Hadoop, in one block."""
    block = _lz4_block(level)

    def compress(data: Any) -> bytes:
        packed = bytes(block(data))
        return len(data).to_bytes(4, "big") + len(packed).to_bytes(4, "big") + packed

    return compress


def _zstd(level: int | None) -> Compress:
    import zstandard

    assert level is not None  # the default of the table
    local = threading.local()  # a compressor serves one thread at a time, and is worth keeping

    def compress(data: Any) -> bytes:
        try:
            compressor = local.compressor
        except AttributeError:
            compressor = local.compressor = zstandard.ZstdCompressor(level=level)
        return compressor.compress(data)

    return compress


_COMPRESSORS: dict[int, Callable[[int | None], Compress]] = {
    SNAPPY: _snappy,
    GZIP: _with_level("gzip"),
    BROTLI: _with_level("brotli"),
    LZ4: _lz4_hadoop,
    ZSTD: _zstd,
    LZ4_RAW: _lz4_block,
}


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
    name = NAMES[codec] if 0 <= codec < len(NAMES) else str(codec)
    levels = LEVELS.get(codec)
    if level is not None and (levels is None or not levels.lowest <= level <= levels.highest):
        offered = f"from {levels.lowest} to {levels.highest}" if levels else "not to be chosen"
        raise ValueError(f"the compression level of {name} is {offered}, not {level}")
    if codec == UNCOMPRESSED:
        return None
    if codec not in _COMPRESSORS:
        raise UnsupportedError(f"numparq does not write pages compressed with {name}")
    return _COMPRESSORS[codec](levels.default if levels and level is None else level)
