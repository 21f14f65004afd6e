"""PLAIN (Encodings.md, PLAIN = 0): booleans and byte arrays, decoded and encoded."""

from __future__ import annotations

import numpy as np

from numparq.kernels.enums import PLAIN, RLE
from numparq.kernels.memory import copy16, copy_bytes, load8, load32, load64, store8, store32
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_LENGTH, TRUNCATED, UNSUPPORTED_ENCODING

from .bit_packing import unpack_bits
from .hybrid_rle import decode_hybrid_bits

# Values up to this size are copied 16 bytes at a time, beyond their end.
_SHORT = 64


@helper
def decode_booleans(data, pos, end, encoding, count, out, out_pos):
    """Decode PLAIN or RLE booleans to one byte each; return the position after them, or a status."""
    if encoding == PLAIN:
        if (count + 7) >> 3 > end - pos:
            return TRUNCATED
        unpack_bits(data, pos, count, out, out_pos)
        return pos + ((count + 7) >> 3)
    if encoding != RLE:
        return UNSUPPORTED_ENCODING
    if count == 0:
        return pos
    if end - pos < 4:
        return TRUNCATED
    size = load32(data, pos)
    if size > end - pos - 4:
        return TRUNCATED
    stop, _ = decode_hybrid_bits(data, pos + 4, pos + 4 + size, count, out, out_pos)
    return stop


@helper
def copy_string(out, out_pos, data, pos, length):
    """Copy a string; as most are short, up to 16 bytes after source and target may be touched."""
    if length <= 16:
        copy16(out, out_pos, data, pos)
    elif length <= 32:
        copy16(out, out_pos, data, pos)
        copy16(out, out_pos + 16, data, pos + 16)
    else:
        copy_bytes(out, out_pos, data, pos, length)


@helper
def skip_plain_binary(data, pos, end, count):
    """Skip `count` length-prefixed values; return the new position, or a status."""
    for _ in range(count):
        if end - pos < 4:
            return TRUNCATED
        length = load32(data, pos)
        if length > end - pos - 4:
            return BAD_LENGTH
        pos += 4 + length
    return pos


@helper
def read_plain_binary(data, pos, validity, valid_pos, optional, count, offsets, row, out, out_pos, limit):
    """Decode length-prefixed values into `count` rows; return the end of the bytes written, or a status.

    `limit` is that end if these values take all of the page but the four bytes of each one's length.
    """
    # A length within `limit` keeps its value within the page. One beyond it leaves too little for the values after it.
    for i in range(count):
        if optional and load8(validity, valid_pos + i) == 0:
            offsets[row + i + 1] = out_pos
            continue
        length = load32(data, pos)
        if length > limit - out_pos:
            return BAD_LENGTH
        copy_string(out, out_pos, data, pos + 4, length)
        pos += 4 + length
        out_pos += length
        offsets[row + i + 1] = out_pos
    return out_pos


@helper
def read_plain_entries(data, pos, end, count, offsets, entry, out, written):
    """Decode `count` length-prefixed values into entries `entry` and on; return the position behind them, or a status.

    `written` bytes of `out` are the entries before; the others have room for ``end - pos``.
    """
    for i in range(entry, entry + count):
        if end - pos < 4:
            return TRUNCATED
        length = load32(data, pos)
        if length > end - pos - 4:
            return BAD_LENGTH
        copy_string(out, written, data, pos + 4, length)
        pos += 4 + length
        written += length
        offsets[i + 1] = written
    return pos


@kernel("u1 x x u1 x")
def encode_plain_booleans(values, start, stop, out, pos):
    """Encode booleans `start` to `stop`, bytes of 0 or 1, as PLAIN bits, lowest first; return the new position."""
    i = start
    while i + 8 <= stop:
        bits = load64(values, i)
        bits |= bits >> np.uint64(7)
        bits |= bits >> np.uint64(14)
        bits |= bits >> np.uint64(28)
        store8(out, pos, np.int64(bits & np.uint64(0xFF)))
        pos += 1
        i += 8
    if i < stop:
        byte = 0
        for k in range(stop - i):
            byte |= load8(values, i + k) << k
        store8(out, pos, byte)
        pos += 1
    return pos


@helper
def write_plain_value(data, begin, length, out, pos):
    """Write a value after its length, touching no further byte; return the new position."""
    store32(out, pos, length)
    copy_bytes(out, pos + 4, data, begin, length)
    return pos + 4 + length


@kernel("u1 x i8 i8 x x u1 x")
def encode_plain_binary(data, data_size, starts, ends, start, stop, out, pos):
    """Encode values `start` to `stop`, ``data[starts[i] : ends[i]]``, as PLAIN; return the new position.

    `data_size` bytes of `data` may be loaded. No byte after the last value is written.
    """
    # The at most 16 bytes copied beyond a value are overwritten by the lengths of the next four values.
    last = max(stop - 4, start)
    for i in range(start, last):
        begin = starts[i]
        length = ends[i] - begin
        if (length <= _SHORT) & (begin + length + 16 <= data_size):
            store32(out, pos, length)
            pos += 4
            copy16(out, pos, data, begin)
            done = 16
            while done < length:
                copy16(out, pos + done, data, begin + done)
                done += 16
            pos += length
        else:
            pos = write_plain_value(data, begin, length, out, pos)
    for i in range(last, stop):
        pos = write_plain_value(data, starts[i], ends[i] - starts[i], out, pos)
    return pos
