"""PLAIN values of data pages, found where they are decompressed."""

from __future__ import annotations

from numparq.kernels.encodings.plain import skip_plain_binary
from numparq.kernels.enums import BYTE_ARRAY, PLAIN
from numparq.kernels.memory import copy_bytes, fill_bytes, load32
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_LENGTH, BAD_UTF8, TRUNCATED, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    C_NULL_COUNT,
    C_ROW_START,
    C_TYPE,
    C_TYPE_LENGTH,
    C_VALIDITY,
    CHUNK_FIELDS,
    P_CHUNK,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_ROW,
    PAGE_FIELDS,
)

from .fixed_pages import check_fixed_size
from .page_sections import VALUES_END, VALUES_POS, open_page
from .utf8 import is_ascii, is_utf8

# Strings of one length that are found at once.
_FOUND_AT_ONCE = 8


@helper
def find_plain_starts(data, pos, end, count, starts, first):
    """Write where `count` PLAIN strings begin, each after its length; return the position after the last one.

    Else a status.
    """
    i = 0
    while i < count:
        # A position depends on all lengths before it, which is slow; several strings of one length are found at once.
        length = load32(data, pos)
        size = length + 4
        if i + _FOUND_AT_ONCE <= count and pos + _FOUND_AT_ONCE * size <= end:
            differ = 0
            for k in range(1, _FOUND_AT_ONCE):
                differ |= load32(data, pos + k * size) ^ length
            if differ == 0:
                for k in range(_FOUND_AT_ONCE):
                    starts[first + i + k] = pos + k * size + 4
                pos += _FOUND_AT_ONCE * size
                i += _FOUND_AT_ONCE
                continue
        if end - pos < 4:
            return TRUNCATED
        if length > end - pos - 4:
            return BAD_LENGTH
        starts[first + i] = pos + 4
        pos += size
        i += 1
    return pos


@helper
def check_page_utf8(data, pos, end, count, starts, first):
    """Check `count` strings that lie from `pos` to `end`; return 0 or BAD_UTF8."""
    if is_ascii(data, pos, end):  # their lengths included: most are below 128
        return 0
    for i in range(first, first + count):
        if not is_utf8(data, starts[i], starts[i] + load32(data, starts[i] - 4)):
            return BAD_UTF8
    return 0


@helper
def find_page_strings(data, skip, valid, starts, first, is_text, sections):
    """Find `valid` strings of a page, after `skip` others; return 0 or a status."""
    end = sections[VALUES_END]
    pos = skip_plain_binary(data, sections[VALUES_POS], end, skip)
    if pos < 0:
        return pos
    stop = find_plain_starts(data, pos, end, valid, starts, first)
    status = min(stop, 0)
    if status == 0 and is_text:
        status = check_page_utf8(data, pos, stop, valid, starts, first)
    return status


@helper
def find_page_values(chunks, chunk, pages, page, raw, scratch, levels, validity, row, found, num_found, is_text, state):
    """Find the values of the selected rows of a PLAIN data page; return how many there are, and the rows or a status.

    `num_found` values were found before, or runs of values if they are of a fixed size.
    """
    is_binary = chunks[chunk + C_TYPE] == BYTE_ARRAY
    if not is_binary:
        found[2 * num_found] = found[2 * num_found + 1] = 0
    present, start, count, skip, valid = open_page(chunks, chunk, pages, page, raw, scratch, levels, state)
    if present < 0 or count == 0:
        return 0, present
    if pages[page + P_ENCODING] != PLAIN:
        return 0, UNSUPPORTED_ENCODING
    if is_binary:
        data = scratch if pages[page + P_IS_COMPRESSED] else raw
        status = find_page_strings(data, skip, valid, found, num_found, is_text, state)
    else:
        found[2 * num_found] = state[VALUES_POS] + skip * chunks[chunk + C_TYPE_LENGTH]
        found[2 * num_found + 1] = valid
        status = check_fixed_size(chunks, chunk, state, present)
    if status < 0:
        return 0, status
    if valid < count:
        copy_bytes(validity, row, levels, start, count)
    else:
        fill_bytes(validity, row, 1, count)
    return valid, count


@kernel("i8 i8 x x u1 u1 u1 u1 i8 x i8")
def find_plain_values(chunks, pages, first, last, raw, scratch, levels, validity, found, is_text, state):
    """Find the values, nulls left out, of PLAIN data pages `first` to `last` of one chunk, not booleans.

    Return their number, or a status with the page in ``state[0]``. C_VALIDITY is the row of the chunk's first row.

    `found` becomes where strings begin, an item each, after their lengths of four bytes; of values of a fixed size it
    becomes where each page's begin, and how many they are. Positions are in `scratch` if the page was compressed, else
    in `raw`. `is_text`: strings must be UTF-8.
    """
    num_values = 0
    for number in range(first, last):
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        row = chunks[chunk + C_VALIDITY] + max(pages[page + P_ROW] - chunks[chunk + C_ROW_START], 0)
        num_found = num_values if chunks[chunk + C_TYPE] == BYTE_ARRAY else number - first
        valid, count = find_page_values(
            chunks, chunk, pages, page, raw, scratch, levels, validity, row, found, num_found, is_text, state
        )
        if count < 0:
            state[0] = number
            return count
        chunks[chunk + C_NULL_COUNT] += count - valid
        num_values += valid
    return num_values
