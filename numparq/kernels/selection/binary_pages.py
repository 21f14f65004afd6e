"""BYTE_ARRAY values of selected rows, decoded from data pages."""

from __future__ import annotations

import numpy as np

from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE, decode_binary_page
from numparq.kernels.decode.page_sections import VALUES_END, VALUES_POS
from numparq.kernels.decode.snappy import decompress_snappy_page
from numparq.kernels.encodings.dictionary import index_width
from numparq.kernels.encodings.hybrid_rle import decode_hybrid_indices
from numparq.kernels.encodings.plain import copy_string
from numparq.kernels.enums import DICTIONARY_PAGE, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.memory import load32, store8
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_COMPRESSED_DATA, BAD_COUNT, NEED_ROOM, TRUNCATED, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_NULL_COUNT,
    C_ROW_START,
    C_ROW_STOP,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_TYPE,
    PAGE_FIELDS,
)

from .fixed_pages import take_indices
from .lazy_pages import (
    STATE_DECOMPRESSED,
    STATE_FIRST,
    STATE_LAST,
    STATE_TAKEN,
    WHOLE_PAGE,
    decompress_up_to,
    find_value_indices,
    is_sparse,
    open_page,
    select_page_rows,
)

# Bytes decompressed by one call: a string's end depends on all lengths before it.
STEP = 32 << 10
# Strings of one length that are skipped at once.
_SKIPPED_AT_ONCE = 8


@helper
def skip_plain_run(data, pos, end, count):
    """Skip at most `count` length-prefixed values whose lengths lie before `end`; return the position and the rest.

    A position depends on all lengths before it, which is slow; several values of one length are skipped at once.
    """
    while count >= _SKIPPED_AT_ONCE and pos + 4 <= end:
        length = load32(data, pos)
        if pos + _SKIPPED_AT_ONCE * (length + 4) > end:
            break
        differ = 0
        for i in range(1, _SKIPPED_AT_ONCE):
            differ |= load32(data, pos + i * (length + 4)) ^ length
        if differ == 0:
            pos += _SKIPPED_AT_ONCE * (length + 4)
            count -= _SKIPPED_AT_ONCE
            continue
        for _ in range(_SKIPPED_AT_ONCE):
            if pos + 4 > end:
                return pos, count
            pos += 4 + load32(data, pos)
            count -= 1
    while count > 0 and pos + 4 <= end:
        pos += 4 + load32(data, pos)
        count -= 1
    return pos, count


@helper
def take_plain_strings(pages, page, raw, scratch, values, count, offsets, row, out, room, state):
    """Copy the PLAIN strings of `count` rows of a page; return the end of the bytes written, or a status."""
    data = scratch if pages[page + P_IS_COMPRESSED] else raw
    pos = state[VALUES_POS]
    end = state[VALUES_END]
    written = state[STATE_BYTES]
    value = 0
    for i in range(count):
        offsets[row + i + 1] = written
        if values[i] < 0:
            continue
        left = values[i] - value
        while True:
            available = min(state[STATE_DECOMPRESSED], end)
            pos, left = skip_plain_run(data, pos, available, left)
            if left == 0 and pos + 4 <= available and pos + 4 + load32(data, pos) <= available:
                break
            if available == end:
                return TRUNCATED
            if decompress_up_to(pages, page, raw, scratch, state, available + STEP) < 0:
                return BAD_COMPRESSED_DATA
        length = load32(data, pos)
        if length > room - written:
            state[STATE_NEEDED] = written + length
            return NEED_ROOM
        copy_string(out, written, data, pos + 4, length)
        written += length
        offsets[row + i + 1] = written
        pos += 4 + length
        value = values[i] + 1
    return written


@helper
def find_page_indices(chunks, pages, page, data, present, values, count, indices, places, state):
    """Write the dictionary indices of `count` rows of a decompressed page to `places`; return 0 or a status."""
    pos = state[VALUES_POS]
    end = state[VALUES_END]
    width = index_width(chunks, 0, data, pos, end, present)
    if width < 0 or present == 0:
        return min(width, 0)
    limit = chunks[C_DICTIONARY_SIZE]
    if is_sparse(pages, page, count):
        return min(take_indices(data, pos + 1, end, present, width, limit, values, count, places), 0)
    pos = decode_hybrid_indices(data, pos + 1, end, present, width, limit, indices, 0)
    if pos >= 0:
        for i in range(count):
            if values[i] >= 0:
                places[i] = load32(indices, values[i] << 2)
    return min(pos, 0)


@helper
def take_indexed_strings(chunks, values, count, places, entry_offsets, entries, offsets, row, out, room, state):
    """Copy the dictionary strings at `places`; return the end of the bytes written, or NEED_ROOM."""
    base = chunks[C_DICTIONARY]
    written = state[STATE_BYTES]
    needed = written
    for i in range(count):
        if values[i] >= 0:
            entry = np.uint64(base + places[i])
            needed += entry_offsets[entry + np.uint64(1)] - entry_offsets[entry]
    state[STATE_NEEDED] = needed
    if needed > room:
        return NEED_ROOM
    for i in range(count):
        if values[i] >= 0:
            entry = np.uint64(base + places[i])
            length = entry_offsets[entry + np.uint64(1)] - entry_offsets[entry]
            copy_string(out, written, entries, entry_offsets[entry], length)
            written += length
        offsets[row + i + 1] = written
    return written


@helper
def take_page_strings(chunks, pages, page, raw, scratch, is_stored, count, places, values, memory, row, room, state):
    """Copy the strings of `count` rows of a page one by one; return the nulls among them, or a status.

    `memory` is that of `decode_binary_page`.
    """
    entry_offsets, entries, indices, levels, validity, offsets, out = memory
    present = open_page(chunks, 0, pages, page, raw, scratch, is_stored, levels, state)
    if present < 0:
        return present
    optional = present < pages[page + P_NUM_VALUES]
    encoding = pages[page + P_ENCODING]
    if encoding == PLAIN and 4 * present > state[VALUES_END] - state[VALUES_POS]:
        return TRUNCATED
    nulls = find_value_indices(pages, page, places, count, levels, optional, values, state)
    if encoding == PLAIN:
        written = take_plain_strings(pages, page, raw, scratch, values, count, offsets, row, out, room, state)
    elif encoding == PLAIN_DICTIONARY or encoding == RLE_DICTIONARY:
        if decompress_up_to(pages, page, raw, scratch, state, WHOLE_PAGE) < 0:
            return BAD_COMPRESSED_DATA
        data = scratch if pages[page + P_IS_COMPRESSED] else raw
        written = find_page_indices(chunks, pages, page, data, present, values, count, indices, places, state)
        if written == 0:
            written = take_indexed_strings(
                chunks, values, count, places, entry_offsets, entries, offsets, row, out, room, state
            )
    else:
        return UNSUPPORTED_ENCODING
    if written < 0:
        return written
    state[STATE_BYTES] = written
    for i in range(count):
        store8(validity, row + i, 0 if values[i] < 0 else 1)
    return nulls


@kernel("i8 i8 x x u1 u1 x i8 u1 u1 u1 i8 x u1 x i4 i8 u1 i8 u1 x x i8")
def read_binary_rows(
    chunks,
    pages,
    first,
    last,
    raw,
    scratch,
    is_stored,
    entry_offsets,
    entries,
    indices,
    levels,
    bounds,
    num_ranges,
    mask,
    mask_row,
    places,
    values,
    validity,
    offsets,
    out,
    room,
    limit,
    state,
):
    """Decode at most `limit` selected strings of data pages `first` to `last` (exclusive) of one chunk.

    Return 0, or a status with the page in ``state[0]``. NEED_ROOM: resume at that page, with STATE_NEEDED bytes.
    """
    # Parameters are those of `read_fixed_rows` and `decode_binary_pages`.
    memory = entry_offsets, entries, indices, levels, validity, offsets, out
    start, stop = chunks[C_ROW_START], chunks[C_ROW_STOP]
    status = 0
    for number in range(first, last):
        state[STATE_PAGE] = number
        page = number * PAGE_FIELDS
        if pages[page + P_TYPE] == DICTIONARY_PAGE:
            continue
        count = select_page_rows(pages, page, bounds, num_ranges, mask, mask_row, places, state)
        if count == 0:
            continue
        row = state[STATE_TAKEN]
        chunks[C_ROW_START] = state[STATE_FIRST]
        chunks[C_ROW_STOP] = state[STATE_LAST]
        if count > limit - row:
            status = BAD_COUNT
        elif is_sparse(pages, page, count) or count < state[STATE_LAST] - state[STATE_FIRST]:
            status = take_page_strings(
                chunks, pages, page, raw, scratch, is_stored, count, places, values, memory, row, room, state
            )
        else:
            status = decompress_snappy_page(pages, page, raw, scratch) if is_stored else 0
            if status >= 0:
                status = decode_binary_page(chunks, 0, pages, page, raw, scratch, memory, row, room, state)
        if status < 0:
            break
        chunks[C_NULL_COUNT] += status
        state[STATE_TAKEN] = row + count
    chunks[C_ROW_START], chunks[C_ROW_STOP] = start, stop
    return min(status, 0)
