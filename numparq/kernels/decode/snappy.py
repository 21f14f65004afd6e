"""Snappy raw blocks, decompressed whole or up to a position."""

from __future__ import annotations

import numpy as np

from numparq.kernels.encodings.hybrid_rle import load_partial, read_run_header
from numparq.kernels.memory import copy16, copy_bytes, load64, store64
from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.status import BAD_COMPRESSED_DATA
from numparq.kernels.tables import (
    P_BODY,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_IS_COMPRESSED,
    P_REPETITION_BYTES,
    P_SCRATCH,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
)


def _copies() -> np.ndarray:
    """Return for each copy tag: bytes after it (bits 0 to 2), length (3 to 9), high bits of the offset (10 and up)."""
    table = np.zeros(256, np.int64)
    for tag in range(256):
        if tag & 3 == 1:
            table[tag] = 1 | ((tag >> 2 & 7) + 4) << 3 | (tag >> 5 << 8) << 10
        elif tag & 3:
            table[tag] = (2 if tag & 3 == 2 else 4) | ((tag >> 2) + 1) << 3
    return table


_COPIES = _copies()
_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(5)], np.int64)


def _short_copies() -> tuple[np.ndarray, np.ndarray]:
    """Return for each tag of a copy with one or two bytes after it: length (bits 0 to 6), high bits of the offset.

    The second table masks the low bits of the offset. All other tags get an offset beyond any.
    """
    table, masks = np.full(256, 1 << 62, np.int64), np.zeros(256, np.uint64)
    for tag in range(256):
        if tag & 3 in (1, 2):
            table[tag] = _COPIES[tag] >> 3
            masks[tag] = _LOW_BYTES[tag & 3]
    return table, masks


_SHORT_COPIES, _OFFSETS = _short_copies()
# Bits that are clear in the tag of a literal of at most 16 bytes.
_NO_SHORT_LITERAL = 0xC3
# Bytes that `decompress_copy_literal_pairs` may load from a pair's position, and store at the output's: a copy of 64
# and a literal.
_LOADED, _STORED = 32, 96


@helper
def copy_overlapping(out, target, offset, length):
    """Copy `length` bytes from less than eight bytes back, a pattern that repeats."""
    # The pattern is doubled until eight bytes at a time can be copied.
    source = target - offset
    end = target + length
    while target - source < 8:
        store64(out, target, load64(out, source))
        target += target - source
    while target < end:
        store64(out, target, load64(out, source))
        target += 8
        source += 8


@inlined
def copy_back(out, target, offset, length):
    """Copy `length` (at most 64) bytes from `offset` back; up to 16 bytes after them may be overwritten."""
    if offset < 8:
        copy_overlapping(out, target, offset, length)
        return
    # Eight bytes at a time, each stored before the next are loaded: source and target may overlap.
    source = target - offset
    store64(out, target, load64(out, source))
    store64(out, target + 8, load64(out, source + 8))
    done = 16
    while done < length:
        store64(out, target + done, load64(out, source + done))
        done += 8


@helper
def copy_literal(out, target, data, pos, length):
    """Copy a literal; up to 16 bytes after it may be loaded and overwritten."""
    if length > 64:
        copy_bytes(out, target, data, pos, length)
        return
    done = 0
    while done < length:
        copy16(out, target + done, data, pos + done)
        done += 16


@helper
def literal_length(data, pos, end, length):
    """Read a literal's length of one to four bytes (`length` is 61 to 64), or return BAD_COMPRESSED_DATA."""
    size = length - 60
    if size > end - pos:
        return BAD_COMPRESSED_DATA
    return load_partial(data, pos, size) + 1


@helper
def decompress_element(data, pos, end, out, out_pos, target, out_end):
    """Decompress any literal or copy; return the position after it or BAD_COMPRESSED_DATA, and that of the output."""
    word = load64(data, pos)
    tag = np.int64(word & np.uint64(0xFF))
    pos += 1
    if tag & 3 == 0:
        length = (tag >> 2) + 1
        if length > 60:
            size = length - 60
            length = literal_length(data, pos, end, length)
            pos += size
        if length < 0 or length > end - pos or length > out_end - target:
            return BAD_COMPRESSED_DATA, target
        copy_literal(out, target, data, pos, length)
        return pos + length, target + length
    entry = _COPIES[tag]
    extra = entry & 7
    length = (entry >> 3) & 127
    offset = np.int64((word >> np.uint64(8)) & np.uint64(_LOW_BYTES[extra])) + (entry >> 10)
    pos += extra
    if (pos > end) | (offset == 0) | (offset > target - out_pos) | (length > out_end - target):
        return BAD_COMPRESSED_DATA, target
    copy_back(out, target, offset, length)
    return pos, target + length


@inlined
def decompress_copy_literal_pair(data, pos, out, out_pos, target):
    """Decompress a copy with the short literal that may follow; return the positions in `data` and `out`, and True.

    False, and no other positions: the element is of another kind, or damaged.
    """
    word = load64(data, pos)
    tag = np.int64(word & np.uint64(0xFF))
    entry = _SHORT_COPIES[tag]
    word >>= np.uint64(8)
    offset = np.int64(word & _OFFSETS[tag]) + (entry >> 7)
    if np.uint64(offset - 1) >= np.uint64(target - out_pos):
        return pos, target, False
    copy_back(out, target, offset, entry & 127)
    target += entry & 127
    extra = tag & 3
    # Whether a literal follows is unpredictable, so that is no branch: 16 bytes are copied, and count if it does.
    following = np.int64(word >> np.uint64(extra << 3))
    pos += extra + 1
    copy16(out, target, data, pos + 1)
    length = ((following & 0xFF) >> 2) + 1
    counts = -np.int64(following & _NO_SHORT_LITERAL == 0)
    return pos + (counts & (length + 1)), target + (counts & length), True


@inlined
def decompress_copy_literal_pairs(data, pos, last, out, out_pos, target, out_last):
    """Decompress such pairs up to an element of another kind, or to `last` and `out_last`; return the positions."""
    while pos < last and target < out_last:
        pos, target, is_pair = decompress_copy_literal_pair(data, pos, out, out_pos, target)
        if not is_pair:
            break
    return pos, target


@helper
def decompress_two_snappy(data, pos, end, other, other_end, out, out_pos, out_end, other_out, other_out_end):
    """Decompress two raw Snappy blocks by turns, until one of them is nearly done.

    Return the next element of each, or BAD_COMPRESSED_DATA, and where its output goes.
    """
    # An element's position depends on those before: each waits for the last. Two blocks do not wait for one another.
    target, other_target = out_pos, other_out
    last, other_last = end - _LOADED, other_end - _LOADED
    out_last, other_out_last = out_end - _STORED, other_out_end - _STORED
    while pos < last and target < out_last and other < other_last and other_target < other_out_last:
        pos, target, is_pair = decompress_copy_literal_pair(data, pos, out, out_pos, target)
        if not is_pair:
            pos, target = decompress_element(data, pos, end, out, out_pos, target, out_end)
            if pos < 0:
                break
        other, other_target, is_pair = decompress_copy_literal_pair(data, other, out, other_out, other_target)
        if not is_pair:
            other, other_target = decompress_element(
                data, other, other_end, out, other_out, other_target, other_out_end
            )
            if other < 0:
                break
    return pos, target, other, other_target


@helper
def decompress_snappy_until(data, pos, end, out, out_pos, target, wanted, out_end):
    """Resume a raw Snappy block at the element at `pos`, until the output, at `target`, reaches `wanted`.

    Return the next element or BAD_COMPRESSED_DATA, and the output's position. 64 bytes past either end may be touched.
    """
    out_last = min(wanted, out_end - _STORED)
    while pos < end and target < wanted:
        pos, target = decompress_copy_literal_pairs(data, pos, end - _LOADED, out, out_pos, target, out_last)
        if pos < end and target < wanted:
            pos, target = decompress_element(data, pos, end, out, out_pos, target, out_end)
            if pos < 0:
                return pos, target
    if target < wanted or (target == out_end and pos < end):
        return BAD_COMPRESSED_DATA, target
    return pos, target


@helper
def read_snappy_preamble(data, pos, end, size):
    """Return the position of the first element of a block that fills `size` bytes, or BAD_COMPRESSED_DATA."""
    pos, length = read_run_header(data, pos, end)
    return pos if pos >= 0 and length == size else BAD_COMPRESSED_DATA


@helper
def decompress_snappy(data, pos, end, out, out_pos, out_end):
    """Decompress a raw Snappy block that fills ``out[out_pos:out_end]``; return 0 or BAD_COMPRESSED_DATA.

    Up to 64 bytes past `end` may be loaded, and up to 64 past `out_end` overwritten.
    """
    pos = read_snappy_preamble(data, pos, end, out_end - out_pos)
    if pos >= 0:
        pos, _ = decompress_snappy_until(data, pos, end, out, out_pos, out_pos, out_end, out_end)
    return min(pos, 0)


@helper
def snappy_bounds(pages, page):
    """Return where the compressed value section of a page begins and ends, and likewise where it is decompressed to.

    Level sections of V2 pages are not compressed.
    """
    levels = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
    body = pages[page + P_BODY]
    target = pages[page + P_SCRATCH]
    return body + levels, body + pages[page + P_COMPRESSED], target, target + pages[page + P_UNCOMPRESSED] - levels


@helper
def decompress_snappy_page(pages, page, raw, scratch):
    """Decompress the value section of a page, if it is compressed, to its P_SCRATCH; return 0 or a status."""
    if pages[page + P_IS_COMPRESSED] == 0:
        return 0
    start, end, target, target_end = snappy_bounds(pages, page)
    return decompress_snappy(raw, start, end, scratch, target, target_end)


@helper
def decompress_two_snappy_pages(pages, page, other, raw, scratch):
    """Decompress the value sections of two compressed pages at once; return 0 or BAD_COMPRESSED_DATA."""
    pos, end, out, out_end = snappy_bounds(pages, page)
    pos2, end2, out2, out_end2 = snappy_bounds(pages, other)
    pos = read_snappy_preamble(raw, pos, end, out_end - out)
    pos2 = read_snappy_preamble(raw, pos2, end2, out_end2 - out2)
    if pos < 0 or pos2 < 0:
        return BAD_COMPRESSED_DATA
    pos, target, pos2, target2 = decompress_two_snappy(raw, pos, end, pos2, end2, scratch, out, out_end, out2, out_end2)
    if pos < 0 or pos2 < 0:
        return BAD_COMPRESSED_DATA
    pos, _ = decompress_snappy_until(raw, pos, end, scratch, out, target, out_end, out_end)
    pos2, _ = decompress_snappy_until(raw, pos2, end2, scratch, out2, target2, out_end2, out_end2)
    return min(pos, pos2, 0)


@kernel("i8 x x u1 u1 i8")
def decompress_snappy_pages(pages, first, last, raw, scratch, state):
    """Decompress the value sections of pages `first` to `last` (exclusive) into the scratch buffer.

    Return 0, or a status with the page in ``state[0]``.
    """
    number = first
    while number < last:
        page = number * PAGE_FIELDS
        other = page + PAGE_FIELDS
        if number + 1 < last and pages[page + P_IS_COMPRESSED] and pages[other + P_IS_COMPRESSED]:
            if decompress_two_snappy_pages(pages, page, other, raw, scratch) >= 0:
                number += 2
                continue
        status = decompress_snappy_page(pages, page, raw, scratch)
        if status < 0:
            state[0] = number
            return status
        number += 1
    return 0
