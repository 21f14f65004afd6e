"""Compression codecs: CompressionCodec of the footer -> the functions that compress and decompress a page's bytes.

The codecs themselves are libraries': zstandard for ZSTD, cramjam for the others. Snappy is a kernel besides
(`numparq.kernels.snappy`), which does a batch of pages that are all Snappy in one call; LZO is a kernel only
(`numparq.kernels.lzo`): lzallright, the one library that is kept and free, takes as much memory as the data say.
"""

from __future__ import annotations

from .decompress import decompressor, max_ratios
from .names import BROTLI, GZIP, LZ4, LZ4_RAW, LZO, NAMES, SNAPPY, UNCOMPRESSED, ZSTD

__all__ = ["BROTLI", "GZIP", "LZ4", "LZ4_RAW", "LZO", "NAMES", "SNAPPY", "UNCOMPRESSED", "ZSTD", "decompressor",
           "max_ratios"]  # fmt: skip
