"""DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT (Encodings.md).

Numbers are signed Python ints of 32 or 64 bits. Decoders ignore padding (bits of the last miniblock, widths of absent
miniblocks, missing padding of the last one), bytes after the values, and accept miniblocks of any whole number of
bytes. They refuse bit widths above 64, or 57 in INT32 (whose own go up to 32), and more strings than the page has.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from . import Damaged, alp
from .alp import ALP
from .hybrid_rle import pack, uleb, unpack
from .plain import BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, ColumnType, Value

DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT = 5, 6, 7, 9

# The encodings, of those that are made PLAIN to be read, that a type may be in.
ENCODINGS = {
    INT32: (DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT),
    INT64: (DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT),
    FLOAT: (BYTE_STREAM_SPLIT, ALP),
    DOUBLE: (BYTE_STREAM_SPLIT, ALP),
    BYTE_ARRAY: (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY),
    FIXED_LEN_BYTE_ARRAY: (DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT),
}
# Sizes of blocks, and of how many miniblocks; the last one is none that the specification allows.
BLOCKS = ((128, 4), (128, 4), (128, 1), (256, 2), (1024, 32), (384, 3), (96, 6))


def zigzag(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def wrap(number: int, bits: int) -> int:
    """Return a sum or difference wrapped to `bits` bits in two's complement."""
    number %= 2**bits
    return number - 2**bits if number >= 2 ** (bits - 1) else number


def encode(
    values: Sequence[int], bits: int, block: int = 128, miniblocks: int = 4, rng: np.random.Generator | None = None
) -> bytes:
    """Encode numbers; with `rng`, wider than needed and with garbage where readers must ignore it."""
    out = uleb(block) + uleb(miniblocks) + uleb(len(values)) + uleb(zigzag(values[0] if values else 0))
    deltas = [wrap(after - before, bits) for before, after in itertools.pairwise(values)]
    each = block // miniblocks
    for start in range(0, len(deltas), block):
        part = deltas[start : start + block]
        least = min(part)
        relative = [(delta - least) % 2**bits for delta in part]
        groups = [relative[i : i + each] for i in range(0, len(relative), each)]
        widths = [max(group).bit_length() for group in groups]
        missing = [0] * (miniblocks - len(groups))
        if rng is not None:
            widths = [width if rng.random() < 0.6 else int(rng.integers(width, bits + 1)) for width in widths]
            missing = rng.integers(0, 256, len(missing)).tolist()
        out += uleb(zigzag(least)) + bytes(widths + missing)
        for group, width in zip(groups, widths, strict=True):
            lacking = each - len(group)
            padding = [0] * lacking
            if rng is not None and width:
                padding = [int.from_bytes(rng.bytes(8), "little") % 2**width for _ in range(lacking)]
            out += pack([*group, *padding], width)
    return out


def read_uleb(data: bytes, pos: int) -> tuple[int, int]:
    """Read a number of at most 64 bits; return (number, new position)."""
    number = shift = 0
    while True:
        if pos >= len(data):
            raise Damaged("a number")
        number += (data[pos] % 128) << shift
        pos += 1
        if data[pos - 1] < 128:
            if number >= 2**64:
                raise Damaged("a number beyond 64 bits")
            return number, pos
        shift += 7
        if shift >= 70:
            raise Damaged("a number that does not end")


def unzigzag(number: int) -> int:
    return number // 2 if number % 2 == 0 else -(number // 2) - 1


def read_header(data: bytes) -> tuple[int, int, int, int]:
    """Read a header: (values per miniblock, miniblocks per block, numbers, bytes taken)."""
    block, pos = read_uleb(data, 0)
    miniblocks, pos = read_uleb(data, pos)
    total, pos = read_uleb(data, pos)
    _, end = read_uleb(data, pos)
    if block == 0 or block >= 2**31 or miniblocks == 0 or block % miniblocks:
        raise Damaged("block size")
    each = block // miniblocks
    if each % 8:
        raise Damaged("miniblock size")
    return each, miniblocks, total, end


def decode_lengths(data: bytes, most: int) -> tuple[list[int], int]:
    """Decode lengths of strings, at most `most`: all of them, for the strings begin behind."""
    if read_header(data)[2] > most:
        raise Damaged("number of values")
    return decode(data, 32, most)


def decode(data: bytes, bits: int, most: int) -> tuple[list[int], int]:
    """Decode the first `most` numbers; return (numbers, bytes taken)."""
    each, miniblocks, total, pos = read_header(data)
    total = min(total, most)
    if total == 0:
        return [], pos
    first = _first_number(data)
    values = [wrap(unzigzag(first), bits)]
    while len(values) < total:
        least, pos = read_uleb(data, pos)
        widths = data[pos : pos + miniblocks]
        if len(widths) < miniblocks:
            raise Damaged("bit widths")
        pos += miniblocks
        for width in widths:
            here = min(each, total - len(values))
            if here == 0:
                break
            if width > (64 if bits == 64 else 57):
                raise Damaged("bit width")
            for delta in unpack(data[pos:], width, here):
                values.append(wrap(values[-1] + unzigzag(least) + delta, bits))
            pos = min(pos + each * width // 8, len(data))
    return values, pos


def _first_number(data: bytes) -> int:
    pos = 0
    for _ in range(4):
        number, pos = read_uleb(data, pos)
    return number


def encode_length(values: Sequence[bytes], **how) -> bytes:
    return encode([len(value) for value in values], 32, **how) + b"".join(values)


def decode_length(data: bytes, most: int) -> list[bytes]:
    lengths, pos = decode_lengths(data, most)
    values = []
    for length in lengths:
        if not 0 <= length <= len(data) - pos:
            raise Damaged("a length")
        values.append(data[pos : pos + length])
        pos += length
    return values


def refuse_byte_array(data: bytes, count: int, most: int) -> None:
    """Raise Damaged if bytes follow the strings, and begin like the suffix lengths of DELTA_BYTE_ARRAY."""
    lengths, pos = decode(data, 32, most)
    if pos + sum(lengths) == len(data):
        return
    try:
        _, _, suffixes, _ = read_header(data[pos:])
    except Damaged:
        return
    if suffixes == count:
        raise Damaged("a section of DELTA_BYTE_ARRAY")


def common_prefix_length(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix of two strings."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return same


def encode_byte_array(values: Sequence[bytes], rng: np.random.Generator | None = None, **how) -> bytes:
    """Encode strings; with `rng`, some prefixes are shorter than possible."""
    prefixes = [0] * len(values)
    for i in range(1, len(values)):
        prefixes[i] = common_prefix_length(values[i - 1], values[i])
        if rng is not None and rng.random() < 0.3:
            prefixes[i] = int(rng.integers(0, prefixes[i] + 1))
    suffixes = [value[shared:] for value, shared in zip(values, prefixes, strict=True)]
    return encode(prefixes, 32, rng=rng, **how) + encode_length(suffixes, rng=rng, **how)


def decode_byte_array(data: bytes, most: int) -> list[bytes]:
    prefixes, pos = decode_lengths(data, most)
    suffixes = decode_length(data[pos:], most)
    if len(prefixes) != len(suffixes):
        raise Damaged("as many prefixes as suffixes")
    values: list[bytes] = []
    before = b""
    for shared, rest in zip(prefixes, suffixes, strict=True):
        if not 0 <= shared <= len(before):
            raise Damaged("a prefix")
        before = before[:shared] + rest
        values.append(before)
    return values


def split_byte_streams(values: Sequence[bytes], width: int) -> bytes:
    """Encode BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones."""
    return b"".join(bytes(value[byte] for value in values) for byte in range(width))


def join_byte_streams(data: bytes, width: int, most: int) -> list[bytes]:
    """Decode BYTE_STREAM_SPLIT; no bytes may be left over."""
    count = len(data) // width
    if len(data) != width * count or count > most:
        raise Damaged("the size of the streams")
    return [bytes(data[byte * count + i] for byte in range(width)) for i in range(count)]


def encode_values(column: ColumnType, present: Sequence[Value], encoding: int, rng: np.random.Generator) -> bytes:
    """Encode values in one of `ENCODING_PHYSICAL_TYPES`; may omit a section without values."""
    assert encoding in ENCODINGS[column.physical]
    if not present and rng.random() < 0.3:
        return b""
    if encoding == BYTE_STREAM_SPLIT:
        return split_byte_streams(present, column.size)
    if encoding == ALP:
        return alp.encode_any(present, column.size, rng)
    block, miniblocks = BLOCKS[int(rng.integers(0, len(BLOCKS)))]
    how = {"block": block, "miniblocks": miniblocks, "rng": rng if rng.random() < 0.6 else None}
    if encoding == DELTA_BINARY_PACKED:
        numbers = [int.from_bytes(value, "little", signed=True) for value in present]
        return encode(numbers, 8 * column.size, **how)
    return (encode_length if encoding == DELTA_LENGTH_BYTE_ARRAY else encode_byte_array)(present, **how)


def decode_values(column: ColumnType, data: bytes, encoding: int, most: int) -> list[Value]:
    """Decode a section in one of `ENCODING_PHYSICAL_TYPES`."""
    if encoding == BYTE_STREAM_SPLIT:
        return list(join_byte_streams(data, column.size, most))
    if encoding == ALP:
        return list(alp.decode(data, column.size, most))
    if encoding == DELTA_LENGTH_BYTE_ARRAY:
        strings = decode_length(data, most)
        refuse_byte_array(data, len(strings), most)
        return list(strings)
    if encoding == DELTA_BYTE_ARRAY:
        strings = decode_byte_array(data, most)
        if column.physical == FIXED_LEN_BYTE_ARRAY and any(len(string) != column.length for string in strings):
            raise Damaged("a value of another length")
        return list(strings)
    numbers, _ = decode(data, 8 * column.size, most)
    return [number.to_bytes(column.size, "little", signed=True) for number in numbers]
