"""Snappy's raw block format: literals and copies, as kernels need it for pages too small to pay for a call each."""

from __future__ import annotations

from ..errors import BAD_COMPRESSED_DATA
from .hybrid import load_partial, read_run_header
from .memory import copy16, copy_bytes, load8, load16, load32, load64, store8, store64
from .registry import helper, kernel
from .tables import P_BODY, P_COMPRESSED, P_DEFINITION_BYTES, P_IS_COMPRESSED, P_REPETITION_BYTES, P_SCRATCH
from .tables import P_UNCOMPRESSED, PAGE_FIELDS


@helper
def copy_within(out, target, offset, length, stop):
    """Copy `length` (at most 64) bytes from `offset` bytes back; up to 16 bytes behind them may be overwritten."""
    source = target - offset
    end = target + length
    if offset >= 16:
        while target < end:
            copy16(out, target, out, source)
            target += 16
            source += 16
    elif target + length + 16 > stop:
        while target < end:
            store8(out, target, load8(out, source))
            target += 1
            source += 1
    else:
        # A pattern shorter than eight bytes is doubled until eight bytes at a time can be copied.
        while target - source < 8 and target < end:
            store64(out, target, load64(out, source))
            target += target - source
        while target < end:
            store64(out, target, load64(out, source))
            target += 8
            source += 8


@helper
def decompress_snappy(data, pos, end, out, out_pos, out_end):
    """Decompress one raw Snappy block that fills ``out[out_pos:out_end]``; 0 or BAD_COMPRESSED_DATA.

    Up to 64 bytes behind `end` may be loaded, and up to 64 bytes behind `out_end` overwritten.
    """
    pos, length = read_run_header(data, pos, end)
    if pos < 0 or length != out_end - out_pos:
        return BAD_COMPRESSED_DATA
    target = out_pos
    while pos < end:
        tag = load8(data, pos)
        pos += 1
        kind = tag & 3
        if kind == 0:
            length = (tag >> 2) + 1
            if length > 60:
                size = length - 60
                if size > end - pos:
                    return BAD_COMPRESSED_DATA
                length = load_partial(data, pos, size) + 1
                pos += size
            if length > end - pos or length > out_end - target:
                return BAD_COMPRESSED_DATA
            if length <= 16:
                copy16(out, target, data, pos)
            else:
                copy_bytes(out, target, data, pos, length)
            pos += length
            target += length
            continue
        if kind == 1:
            length = ((tag >> 2) & 7) + 4
            offset = ((tag >> 5) << 8) | load8(data, pos)
            pos += 1
        elif kind == 2:
            length = (tag >> 2) + 1
            offset = load16(data, pos)
            pos += 2
        else:
            length = (tag >> 2) + 1
            offset = load32(data, pos)
            pos += 4
        if pos > end or offset == 0 or offset > target - out_pos or length > out_end - target:
            return BAD_COMPRESSED_DATA
        copy_within(out, target, offset, length, out_end + 16)
        target += length
    return 0 if target == out_end else BAD_COMPRESSED_DATA


@kernel("i8 x x u1 u1 i8")
def decompress_snappy_pages(pages, first, last, raw, scratch, state):
    """Decompress the value sections of rows `first` to `last` of the page table into the scratch buffer.

    Returns 0 or a negative status, with the page in item 0 of `state`. Level sections of V2 pages are not compressed.
    """
    for number in range(first, last):
        page = number * PAGE_FIELDS
        if pages[page + P_IS_COMPRESSED] == 0:
            continue
        levels = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
        start = pages[page + P_BODY] + levels
        end = pages[page + P_BODY] + pages[page + P_COMPRESSED]
        target = pages[page + P_SCRATCH]
        status = decompress_snappy(raw, start, end, scratch, target, target + pages[page + P_UNCOMPRESSED] - levels)
        if status < 0:
            state[0] = number
            return status
    return 0
