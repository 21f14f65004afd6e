"""Writing: codec and level -> the function that compresses a page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from ..errors import UnsupportedError
from .names import BROTLI, GZIP, LZ4, LZ4_RAW, NAMES, SNAPPY, UNCOMPRESSED, ZSTD

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
