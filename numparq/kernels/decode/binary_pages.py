"""Data pages of BYTE_ARRAY values, decoded into offsets and bytes."""

from __future__ import annotations

from numparq.kernels.encodings.dictionary import index_width
from numparq.kernels.encodings.hybrid_rle import decode_hybrid_indices
from numparq.kernels.encodings.plain import copy_string, read_plain_binary, skip_plain_binary
from numparq.kernels.enums import DICTIONARY_PAGE, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.memory import copy_bytes, fill_bytes, load8, load32
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import NEED_ROOM, TRUNCATED, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    C_DICTIONARY_SIZE,
    C_NULL_COUNT,
    C_ROW_START,
    C_VALIDITY,
    CHUNK_FIELDS,
    P_CHUNK,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    PAGE_FIELDS,
)

from .pad_nulls import count_valid
from .page_sections import VALUES_END, VALUES_POS, decode_page_validity, find_sections, rows_in_range

# Items of `state`: the page of a negative status; bytes written, before and after; bytes needed in all.
# After NEED_ROOM, decoding can resume from that page, of which nothing was written, with an output of the bytes needed.
STATE_PAGE, STATE_BYTES, STATE_NEEDED = 0, 1, 2


@helper
def sum_entry_bytes(indices, first, count, dictionary_offsets):
    """Sum the lengths of the dictionary values at `count` int32 indices."""
    total = 0
    for i in range(first, first + count):
        index = load32(indices, i << 2)
        total += dictionary_offsets[index + 1] - dictionary_offsets[index]
    return total


@helper
def take_entries(
    indices, first, validity, valid_pos, optional, count, entry_offsets, entries, offsets, row, out, out_pos
):
    """Write dictionary values by index to `count` rows; return the end of the bytes written."""
    place = first << 2
    for i in range(count):
        if optional and load8(validity, valid_pos + i) == 0:
            offsets[row + i + 1] = out_pos
            continue
        index = load32(indices, place)
        place += 4
        start = entry_offsets[index]
        length = entry_offsets[index + 1] - start
        copy_string(out, out_pos, entries, start, length)
        out_pos += length
        offsets[row + i + 1] = out_pos
    return out_pos


@helper
def decode_plain_rows(data, pos, end, skip, wanted, levels, start, optional, count, offsets, row, out, room, state):
    """Decode the values of a PLAIN page into `count` rows; return the end of the bytes written, or a status."""
    pos = skip_plain_binary(data, pos, end, skip)
    if pos < 0:
        return pos
    if 4 * wanted > end - pos:
        return TRUNCATED
    written = state[STATE_BYTES]
    limit = written + (end - pos - 4 * wanted if wanted > 0 else 0)
    state[STATE_NEEDED] = limit
    if limit > room:
        return NEED_ROOM
    return read_plain_binary(data, pos, levels, start, optional, count, offsets, row, out, written, limit)


@helper
def decode_indexed_rows(
    chunks,
    chunk,
    data,
    pos,
    end,
    present,
    skip,
    wanted,
    levels,
    start,
    optional,
    count,
    entry_offsets,
    entries,
    indices,
    offsets,
    row,
    out,
    room,
    state,
):
    """Decode a dictionary-encoded page into `count` rows; return the end of the bytes written, or a status."""
    width = index_width(chunks, chunk, data, pos, end, present)
    if width < 0:
        return width
    status = decode_hybrid_indices(data, pos + 1, end, present, width, chunks[chunk + C_DICTIONARY_SIZE], indices, 0)
    if status < 0:
        return status
    written = state[STATE_BYTES]
    state[STATE_NEEDED] = written + sum_entry_bytes(indices, skip, wanted, entry_offsets)
    if state[STATE_NEEDED] > room:
        return NEED_ROOM
    return take_entries(
        indices, skip, levels, start, optional, count, entry_offsets, entries, offsets, row, out, written
    )


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
    """Decode pages `first` to `last`, all with one dictionary, into offsets and bytes; return 0 or a status.

    `indices` and `levels` have room for the largest page. The caller sets the first offset; rows follow each other.
    """
    for number in range(first, last):
        page = number * PAGE_FIELDS
        if pages[page + P_TYPE] == DICTIONARY_PAGE:
            continue
        state[STATE_PAGE] = number
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        start, stop = rows_in_range(chunks, chunk, pages, page)
        if start >= stop:
            continue
        status = find_sections(chunks, chunk, pages, page, raw, scratch, state)
        if status < 0:
            return status
        present = decode_page_validity(chunks, chunk, pages, page, raw, scratch, state, levels, 0)
        if present < 0:
            return present
        optional = present < pages[page + P_NUM_VALUES]
        skip = count_valid(levels, 0, start) if optional else start
        wanted = count_valid(levels, start, stop - start) if optional else stop - start
        row = chunks[chunk + C_VALIDITY] + pages[page + P_ROW] + start - chunks[chunk + C_ROW_START]
        data = scratch if pages[page + P_IS_COMPRESSED] else raw
        pos = state[VALUES_POS]
        end = state[VALUES_END]
        encoding = pages[page + P_ENCODING]
        if encoding == PLAIN:
            written = decode_plain_rows(
                data, pos, end, skip, wanted, levels, start, optional, stop - start, offsets, row, out, room, state
            )
        elif encoding == PLAIN_DICTIONARY or encoding == RLE_DICTIONARY:
            written = decode_indexed_rows(
                chunks,
                chunk,
                data,
                pos,
                end,
                present,
                skip,
                wanted,
                levels,
                start,
                optional,
                stop - start,
                entry_offsets,
                entries,
                indices,
                offsets,
                row,
                out,
                room,
                state,
            )
        else:
            return UNSUPPORTED_ENCODING
        if written < 0:
            return written
        state[STATE_BYTES] = written
        chunks[chunk + C_NULL_COUNT] += stop - start - wanted
        if optional:
            copy_bytes(validity, row, levels, start, stop - start)
        else:
            fill_bytes(validity, row, 1, stop - start)
    return 0
