"""Codecs in all their framings: compressors of page bytes."""

from __future__ import annotations

from itertools import pairwise

import cramjam
import zstandard

from numparq.kernels.enums import BROTLI, GZIP, LZ4, LZ4_RAW, LZO, SNAPPY, ZSTD
from support.oracles import lzo


def lz4_block(data):
    return bytes(cramjam.lz4.compress_block(data, store_size=False))


def lz4_frame(data):
    return bytes(cramjam.lz4.compress(data))


def lzo_block(data):
    """Compress as a literal run of the first bytes and repeated copies of it."""
    head = next((size for size in range(4, len(data)) if data == (data[:size] * len(data))[: len(data)]), len(data))
    if head < 4:
        return (lzo.first_run(data) if data else b"") + lzo.END
    rest = len(data) - head
    if 0 < rest < 3:
        head, rest = len(data), 0
    return lzo.run(data[:head]) + (lzo.copy("middle", rest, head, b"") if rest else b"") + lzo.END


def big_endian(number):
    return number.to_bytes(4, "big")


def hadoop(data, block, cuts=(), inner=None):
    """Compress as Hadoop's streams do: a new length at each of `cuts`, a new block every `inner` bytes."""
    stream = b""
    edges = [0, *cuts, len(data)]
    for start, stop in pairwise(edges):
        stream += big_endian(stop - start)
        for first in range(start, stop, inner or max(stop - start, 1)):
            packed = block(data[first : min(first + (inner or stop), stop)])
            stream += big_endian(len(packed)) + packed
    return stream


def python_lzo(data):
    return b"\xf0" + big_endian(len(data)) + lzo_block(data)


def zstd(data, **options):
    return zstandard.ZstdCompressor(**options).compress(data)


# Name -> codec, and what compresses.
FRAMINGS = {
    "snappy": (SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "gzip": (GZIP, lambda data: bytes(cramjam.gzip.compress(data))),
    "brotli": (BROTLI, lambda data: bytes(cramjam.brotli.compress(data))),
    "zstd": (ZSTD, zstd),
    "zstd with a checksum": (ZSTD, lambda data: zstd(data, write_checksum=True)),
    "zstd without its size": (ZSTD, lambda data: zstd(data, write_content_size=False)),
    "lz4_raw": (LZ4_RAW, lz4_block),
    "lz4 of hadoop": (LZ4, lambda data: hadoop(data, lz4_block)),
    "lz4 frame": (LZ4, lz4_frame),
    "lz4 block": (LZ4, lz4_block),
    "lzo of hadoop": (LZO, lambda data: hadoop(data, lzo_block)),
    "lzo of python-lzo": (LZO, python_lzo),
}
