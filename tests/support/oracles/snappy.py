"""Snappy's raw block format: a compressor of chosen elements, and a byte-by-byte decompressor."""

from __future__ import annotations

import numpy as np

from . import Damaged
from .hybrid_rle import uleb


def literal(data: bytes, length_bytes: int = 0) -> bytes:
    """Encode a literal with its length in the tag (0, up to 60 bytes) or in 1 to 4 bytes after it."""
    if length_bytes == 0:
        assert 1 <= len(data) <= 60
        return bytes([(len(data) - 1) << 2]) + data
    return bytes([(59 + length_bytes) << 2]) + (len(data) - 1).to_bytes(length_bytes, "little") + data


def copy(offset: int, length: int, offset_bytes: int) -> bytes:
    """Encode a copy with an offset of 11 bits (1), 2 or 4 bytes."""
    if offset_bytes == 1:
        assert 4 <= length <= 11
        assert offset < 2048
        return bytes([1 | (length - 4) << 2 | (offset >> 8) << 5, offset & 0xFF])
    assert 1 <= length <= 64
    assert offset < 256**offset_bytes
    return bytes([{2: 2, 4: 3}[offset_bytes] | (length - 1) << 2]) + offset.to_bytes(offset_bytes, "little")


def random_block(rng: np.random.Generator, elements: int, max_literal: int = 100) -> tuple[bytes, bytes]:
    """Return a block of random elements as (compressed, decompressed)."""
    out = bytearray()
    stream = b""
    for _ in range(elements):
        if not out or rng.random() < 0.3:
            data = rng.bytes(int(rng.integers(1, max_literal + 1)))
            forms = [form for form in range(5) if len(data) <= ([60] + [256**n for n in range(1, 5)])[form]]
            stream += literal(data, int(rng.choice(forms)))
            out += data
            continue
        offset = min(int(rng.integers(1, 71)) if rng.random() < 0.8 else int(rng.integers(1, len(out) + 1)), len(out))
        length = int(rng.integers(1, 65))
        kinds = [2, 4] if offset < 65536 else [4]
        if offset < 2048 and 4 <= length <= 11:
            kinds.append(1)
        stream += copy(offset, length, int(rng.choice(kinds)))
        for _ in range(length):
            out.append(out[-offset])
    return uleb(len(out)) + stream, bytes(out)


def compress(rng: np.random.Generator, data: bytes) -> bytes:
    """Compress data: copies in random forms for repeats of four bytes, literals in between."""
    seen: dict[bytes, int] = {}
    stream = b""
    start = pos = 0

    def flush(end: int) -> bytes:
        part = data[start:end]
        return literal(part, 0 if len(part) <= 60 and rng.random() < 0.7 else 1 + (len(part) > 256)) if part else b""

    while pos < len(data):
        word = data[pos : pos + 4]
        before = seen.get(word)
        seen[word] = pos
        if before is None or len(word) < 4:
            pos += 1
            if pos - start == 60000:
                stream += flush(pos)
                start = pos
            continue
        length = 4
        while length < 64 and pos + length < len(data) and data[pos + length] == data[before + length]:
            length += 1
        offset = pos - before
        kinds = [4] + [2] * (offset < 65536) + [1] * (offset < 2048 and length <= 11)
        stream += flush(pos) + copy(offset, length, int(rng.choice(kinds)))
        pos += length
        start = pos
    return uleb(len(data)) + stream + flush(len(data))


def decompress(block: bytes, size: int) -> bytes:
    """Decompress a block of exactly `size` bytes."""
    try:
        return _decompress(block, size)
    except IndexError:
        raise Damaged("the block ends too early") from None


def _decompress(block: bytes, size: int) -> bytes:
    said = shift = pos = 0
    while True:
        said += (block[pos] & 127) << shift
        pos, shift = pos + 1, shift + 7
        if block[pos - 1] < 128:
            break
        if shift == 35:
            raise Damaged("length")
    if said != size:
        raise Damaged("another length")
    out = bytearray()
    while pos < len(block):
        tag = block[pos]
        pos += 1
        if tag & 3 == 0:
            length = (tag >> 2) + 1
            if length > 60:
                extra = length - 60
                length = int.from_bytes(_take(block, pos, extra), "little") + 1
                pos += extra
            out += _take(block, pos, length)
            pos += length
        else:
            if tag & 3 == 1:
                length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | block[pos]
                pos += 1
            else:
                extra = {2: 2, 3: 4}[tag & 3]
                length, offset = (tag >> 2) + 1, int.from_bytes(_take(block, pos, extra), "little")
                pos += extra
            if offset == 0 or offset > len(out):
                raise Damaged("offset")
            for _ in range(length):
                out.append(out[-offset])
        if len(out) > size:
            raise Damaged("too many bytes")
    if len(out) != size:
        raise Damaged("too few bytes")
    return bytes(out)


def _take(block: bytes, pos: int, count: int) -> bytes:
    if pos + count > len(block):
        raise Damaged("the block ends too early")
    return block[pos : pos + count]
