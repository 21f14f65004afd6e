"""Data and dictionary pages of BYTE_ARRAY values, decoded into offsets and bytes."""

from __future__ import annotations

import numpy as np

from numparq.kernels.encodings.dictionary import index_width
from numparq.kernels.encodings.hybrid_rle import decode_hybrid_indices
from numparq.kernels.encodings.plain import copy_string, read_plain_binary, read_plain_entries, skip_plain_binary
from numparq.kernels.enums import DICTIONARY_PAGE, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.memory import copy_bytes, fill_bytes, load8, load32
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_DICTIONARY, NEED_ROOM, TRUNCATED, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_DICTIONARY_UNREAD,
    C_NULL_COUNT,
    C_ROW_START,
    C_VALIDITY,
    CHUNK_FIELDS,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_ROW,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    P_UNREAD,
    PAGE_FIELDS,
)

from .page_sections import VALUES_END, VALUES_POS, VALUES_STOP, end_values, open_page

# Items of `state`: the page of a negative status; bytes written, before and after; bytes needed in all.
# After NEED_ROOM, decoding can resume from that page, of which nothing was written, with an output of the bytes needed.
STATE_PAGE, STATE_BYTES, STATE_NEEDED = 0, 1, 2
STATE_ENTRIES = 3  # entries written, before and after


@helper
def sum_entry_bytes(indices, first, count, base, dictionary_offsets):
    """Sum the lengths of the dictionary values at `count` int32 indices, counted from entry `base`."""
    total = 0
    for i in range(first, first + count):
        index = np.uint64(base + load32(indices, i << 2))  # unsigned: Numba then needs no check for negative ones
        total += dictionary_offsets[index + np.uint64(1)] - dictionary_offsets[index]
    return total


@helper
def take_entries(
    indices, first, base, validity, valid_pos, optional, count, entry_offsets, entries, offsets, row, out, out_pos
):
    """Write dictionary values by index to `count` rows; return the end of the bytes written."""
    place = first << 2
    for i in range(count):
        if optional and load8(validity, valid_pos + i) == 0:
            offsets[row + i + 1] = out_pos
            continue
        index = np.uint64(base + load32(indices, place))
        place += 4
        start = entry_offsets[index]
        length = entry_offsets[index + np.uint64(1)] - start
        copy_string(out, out_pos, entries, start, length)
        out_pos += length
        offsets[row + i + 1] = out_pos
    return out_pos


@helper
def decode_plain_rows(chunks, chunk, data, present, skip, valid, start, count, memory, row, room, state):
    """Decode the values of a PLAIN page into `count` rows; return the end of the bytes written, or a status."""
    _, _, _, levels, _, offsets, out = memory
    pos = state[VALUES_POS]
    end = state[VALUES_END]
    if 4 * present > end - pos:
        return TRUNCATED
    pos = skip_plain_binary(data, pos, end, skip)
    if pos < 0:
        return pos
    if 4 * valid > end - pos:
        return TRUNCATED
    written = state[STATE_BYTES]
    limit = written + (end - pos - 4 * valid if valid > 0 else 0)
    state[STATE_NEEDED] = limit
    if limit > room:
        return NEED_ROOM
    stop = read_plain_binary(data, pos, levels, start, valid < count, count, offsets, row, out, written, limit)
    if stop >= 0:
        end_values(state, pos + 4 * valid + stop - written)
    return stop


@helper
def decode_indexed_rows(chunks, chunk, data, present, skip, valid, start, count, memory, row, room, state):
    """Decode a dictionary-encoded page into `count` rows; return the end of the bytes written, or a status."""
    entry_offsets, entries, indices, levels, _, offsets, out = memory
    pos = state[VALUES_POS]
    end = state[VALUES_END]
    width = index_width(chunks, chunk, data, pos, end, present)
    if width < 0:
        return width
    end_values(state, pos)
    if present > 0:
        limit = chunks[chunk + C_DICTIONARY_SIZE]
        pos = decode_hybrid_indices(data, pos + 1, end, present, width, limit, indices, 0)
        if end_values(state, pos) < 0:
            return pos
    base = chunks[chunk + C_DICTIONARY]
    written = state[STATE_BYTES]
    state[STATE_NEEDED] = written + sum_entry_bytes(indices, skip, valid, base, entry_offsets)
    if state[STATE_NEEDED] > room:
        return NEED_ROOM
    return take_entries(
        indices, skip, base, levels, start, valid < count, count, entry_offsets, entries, offsets, row, out, written
    )


@helper
def decode_dictionary_page(chunks, chunk, pages, page, raw, scratch, offsets, out, state):
    """Decode a dictionary page behind the entries before it, and say where its chunk's are; return 0 or a status."""
    encoding = pages[page + P_ENCODING]
    if encoding != PLAIN and encoding != PLAIN_DICTIONARY:
        return UNSUPPORTED_ENCODING
    compressed = pages[page + P_IS_COMPRESSED] != 0
    pos = pages[page + P_SCRATCH] if compressed else pages[page + P_BODY]
    end = pos + (pages[page + P_UNCOMPRESSED] if compressed else pages[page + P_COMPRESSED])
    count = pages[page + P_NUM_VALUES]
    if count > (end - pos) // 4:
        return BAD_DICTIONARY
    entry = state[STATE_ENTRIES]
    data = scratch if compressed else raw
    stop = read_plain_entries(data, pos, end, count, offsets, entry, out, state[STATE_BYTES])
    if stop < 0:
        return stop
    chunks[chunk + C_DICTIONARY_UNREAD] = end - stop
    chunks[chunk + C_DICTIONARY] = entry
    chunks[chunk + C_DICTIONARY_SIZE] = count
    state[STATE_ENTRIES] = entry + count
    state[STATE_BYTES] = offsets[entry + count]
    return 0


@kernel("i8 i8 x x u1 u1 i8 u1 i8")
def decode_binary_dictionaries(chunks, pages, first, last, raw, scratch, offsets, out, state):
    """Decode dictionary pages `first` to `last` (exclusive) into offsets and bytes; return 0 or a status.

    The caller sets the first offset; there is room for the values, and for the bytes of the pages.
    """
    for number in range(first, last):
        page = number * PAGE_FIELDS
        state[STATE_PAGE] = number
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        status = decode_dictionary_page(chunks, chunk, pages, page, raw, scratch, offsets, out, state)
        if status < 0:
            return status
    return 0


@helper
def decode_binary_page(chunks, chunk, pages, page, raw, scratch, memory, row, room, state):
    """Decode the rows of a data page from output row `row` on; return the nulls among them, or a status.

    `memory` has entry offsets, entries, indices, levels, validity, offsets and bytes, as in `decode_binary_pages`.
    """
    _, _, _, levels, validity, _, _ = memory
    present, start, count, skip, valid = open_page(chunks, chunk, pages, page, raw, scratch, levels, state)
    if present < 0 or count == 0:
        return present
    data = scratch if pages[page + P_IS_COMPRESSED] else raw
    encoding = pages[page + P_ENCODING]
    if encoding == PLAIN:
        written = decode_plain_rows(chunks, chunk, data, present, skip, valid, start, count, memory, row, room, state)
    elif encoding == PLAIN_DICTIONARY or encoding == RLE_DICTIONARY:
        written = decode_indexed_rows(chunks, chunk, data, present, skip, valid, start, count, memory, row, room, state)
    else:
        return UNSUPPORTED_ENCODING
    if written < 0:
        return written
    pages[page + P_UNREAD] += max(state[VALUES_END] - state[VALUES_STOP], 0)
    state[STATE_BYTES] = written
    if valid < count:
        copy_bytes(validity, row, levels, start, count)
    else:
        fill_bytes(validity, row, 1, count)
    return count - valid


@kernel("i8 i8 x x u1 u1 i8 u1 u1 u1 u1 i8 u1 x i8")
def decode_binary_pages(
    chunks,
    pages,
    first,
    last,
    raw,
    scratch,
    entry_offsets,
    entries,
    indices,
    levels,
    validity,
    offsets,
    out,
    room,
    state,
):
    """Decode pages `first` to `last` into offsets and bytes; return 0 or a status.

    The dictionary of a chunk is C_DICTIONARY_SIZE entries from entry C_DICTIONARY on.
    `indices` and `levels` have room for the largest page. The caller sets the first offset; rows follow each other.
    """
    memory = entry_offsets, entries, indices, levels, validity, offsets, out
    for number in range(first, last):
        page = number * PAGE_FIELDS
        if pages[page + P_TYPE] == DICTIONARY_PAGE:
            continue
        state[STATE_PAGE] = number
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        row = chunks[chunk + C_VALIDITY] + max(pages[page + P_ROW] - chunks[chunk + C_ROW_START], 0)
        nulls = decode_binary_page(chunks, chunk, pages, page, raw, scratch, memory, row, room, state)
        if nulls < 0:
            return nulls
        chunks[chunk + C_NULL_COUNT] += nulls
    return 0
