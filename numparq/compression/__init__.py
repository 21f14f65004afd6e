"""Compression codecs: how each CompressionCodec compresses and decompresses a page."""

from __future__ import annotations

from numparq.kernels.enums import BROTLI, CODEC_NAMES, GZIP, LZ4, LZ4_RAW, LZO, SNAPPY, UNCOMPRESSED, ZSTD

from .codecs import decompressor, max_ratios

__all__ = [
    "BROTLI",
    "CODEC_NAMES",
    "GZIP",
    "LZ4",
    "LZ4_RAW",
    "LZO",
    "SNAPPY",
    "UNCOMPRESSED",
    "ZSTD",
    "decompressor",
    "max_ratios",
]
