"""LZO1X blocks, decompressed."""

from __future__ import annotations

from numparq.kernels.memory import copy_bytes, load8, load16, store8
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_COMPRESSED_DATA

# The first byte of an instruction is its code. Below 16 it is a literal run, unless literals precede it.
_END = 17  # a copy from 16384 bytes back, which ends the block
_FAR = 16384
# Literals copied by the previous instruction: 0, 1 to 3, or this for a run.
_RUN = 4


@helper
def read_lzo_length(data, pos, end, length, most):
    """Read the rest of a length above `most` (`length` is then 0); return the position or a status, and the length."""
    if length > 0:
        return pos, length
    length = most
    while pos < end:
        byte = load8(data, pos)
        pos += 1
        if byte > 0:
            return pos, length + byte
        length += 255
    return BAD_COMPRESSED_DATA, 0


@helper
def read_short_copy(code, after, literals):
    """Return length and distance of a two-byte copy instruction after `literals` literals."""
    if code >= 64:
        return 1 + (code >> 5), (after << 3) + ((code >> 2) & 7) + 1
    distance = (after << 2) + (code >> 2) + 1
    if literals == _RUN:
        return 3, distance + 2048
    return 2, distance


@helper
def copy_overlapping_bytes(out, target, distance, length):
    """Copy `length` bytes from `distance` back; source and target may overlap."""
    source = target - distance
    if distance >= length:
        copy_bytes(out, target, out, source, length)
        return
    for i in range(length):
        store8(out, target + i, load8(out, source + i))


@kernel("u1 x x u1 x x")
def decompress_lzo(data, pos, end, out, out_pos, out_end):
    """Decompress the LZO1X block ``data[pos:end]`` into ``out[out_pos:out_end]``; return the bytes written.

    BAD_COMPRESSED_DATA: the block is damaged, does not end at `end`, or exceeds the output.
    """
    target = out_pos
    literals = 0
    if pos < end and load8(data, pos) > _END:  # only as first instruction: a literal run
        length = load8(data, pos) - _END
        pos += 1
        if length > end - pos or length > out_end - target:
            return BAD_COMPRESSED_DATA
        copy_bytes(out, target, data, pos, length)
        pos += length
        target += length
        literals = min(length, _RUN)
    while pos < end:
        code = load8(data, pos)
        pos += 1
        if code < 16 and literals == 0:
            pos, length = read_lzo_length(data, pos, end, code, 15)
            length += 3
            if pos < 0 or length > end - pos or length > out_end - target:
                return BAD_COMPRESSED_DATA
            copy_bytes(out, target, data, pos, length)
            pos += length
            target += length
            literals = _RUN
            continue
        if code < 16 or code >= 64:
            if pos >= end:
                return BAD_COMPRESSED_DATA
            length, distance = read_short_copy(code, load8(data, pos), literals)
            literals = code & 3
            pos += 1
        else:
            if code >= 32:
                pos, length = read_lzo_length(data, pos, end, code & 31, 31)
                distance = 1
            else:
                pos, length = read_lzo_length(data, pos, end, code & 7, 7)
                distance = _FAR + ((code & 8) << 11)
            if pos < 0 or end - pos < 2:
                return BAD_COMPRESSED_DATA
            length += 2
            low = load16(data, pos)
            pos += 2
            distance += low >> 2
            literals = low & 3
            if code == _END and distance == _FAR:
                return target - out_pos if pos == end else BAD_COMPRESSED_DATA
        if distance > target - out_pos or length > out_end - target:
            return BAD_COMPRESSED_DATA
        copy_overlapping_bytes(out, target, distance, length)
        target += length
        if literals > end - pos or literals > out_end - target:
            return BAD_COMPRESSED_DATA
        for i in range(literals):
            store8(out, target + i, load8(data, pos + i))
        pos += literals
        target += literals
    return BAD_COMPRESSED_DATA
