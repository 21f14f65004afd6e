"""PLAIN byte arrays of selected rows, copied from data pages."""

from __future__ import annotations

from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from numparq.kernels.decode.page_sections import VALUES_END, VALUES_POS, check_values_end
from numparq.kernels.encodings.plain import copy_string
from numparq.kernels.enums import PLAIN
from numparq.kernels.memory import load32, store8
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_COMPRESSED_DATA, NEED_ROOM, TRUNCATED, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    C_NULL_COUNT,
    CHUNK_FIELDS,
    P_CHUNK,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    PAGE_FIELDS,
)

from .lazy_pages import (
    STATE_DECOMPRESSED,
    STATE_TAKEN,
    count_selected_rows,
    decompress_up_to,
    find_value_indices,
    open_page,
)

# Bytes that are decompressed at once: where a string ends only the lengths before it tell.
STEP = 32 << 10
# Strings that are passed over at once where they are of one length.
_TOGETHER = 8


@helper
def skip_plain_run(data, pos, end, count):
    """Pass at most `count` length-prefixed values whose lengths lie before `end`: (position, how many are left).

    Where one is told from the one before, each has to wait for that. Several of one length are passed at once.
    """
    while count >= _TOGETHER and pos + 4 <= end:
        length = load32(data, pos)
        if pos + _TOGETHER * (length + 4) > end:
            break
        differ = 0
        for i in range(1, _TOGETHER):
            differ |= load32(data, pos + i * (length + 4)) ^ length
        if differ == 0:
            pos += _TOGETHER * (length + 4)
            count -= _TOGETHER
            continue
        for _ in range(_TOGETHER):
            if pos + 4 > end:
                return pos, count
            pos += 4 + load32(data, pos)
            count -= 1
    while count > 0 and pos + 4 <= end:
        pos += 4 + load32(data, pos)
        count -= 1
    return pos, count


@helper
def take_page_binary(chunks, chunk, pages, page, raw, scratch, state, present, values, taken, here, offsets, out, room):
    """Copy the wanted ones of a page's PLAIN strings; the bytes written up to, or a status."""
    data = scratch if pages[page + P_IS_COMPRESSED] else raw
    pos = state[VALUES_POS]
    end = state[VALUES_END]
    written = state[STATE_BYTES]
    value = 0
    if 4 * present > end - pos:
        return TRUNCATED
    for i in range(taken, taken + here):
        offsets[i + 1] = written
        if values[i] < 0:
            continue
        left = values[i] - value
        while True:
            there = min(state[STATE_DECOMPRESSED], end)
            pos, left = skip_plain_run(data, pos, there, left)
            if left == 0 and pos + 4 <= there and pos + 4 + load32(data, pos) <= there:
                break
            if there == end:
                return TRUNCATED
            if decompress_up_to(pages, page, raw, scratch, state, there + STEP) < 0:
                return BAD_COMPRESSED_DATA
        length = load32(data, pos)
        if length > room - written:
            state[STATE_NEEDED] = written + length
            return NEED_ROOM
        copy_string(out, written, data, pos + 4, length)
        written += length
        offsets[i + 1] = written
        pos += 4 + length
        value = values[i] + 1
    status = check_values_end(chunks, chunk, pos, end) if value == present and present > 0 else 0
    return written if status == 0 else status


@kernel("i8 i8 x x u1 u1 x u1 i4 x i8 u1 i8 u1 x i8")
def take_binary_pages(
    chunks,
    pages,
    first,
    last,
    raw,
    scratch,
    is_stored,
    levels,
    places,
    count,
    values,
    validity,
    offsets,
    out,
    room,
    state,
):
    """Copy the strings of some rows of PLAIN data pages, one behind the other.

    Parameters
    ----------
    chunks, pages, first, last, raw, scratch, is_stored, levels, places, count, values
        As for `take_fixed_pages`.
    validity : uint8, `count`
        Written for optional columns.
    offsets, out, room
        As for `decode_binary_pages`; a row each place.
    state : int64, STATE_FIELDS
        As for `take_fixed_pages`; item STATE_BYTES is the number of bytes written, before and after.

    Returns
    -------
    int
        0, or a negative status. NEED_ROOM: call again from the page of STATE_PAGE on, with room for at least
        STATE_NEEDED bytes.
    """
    for number in range(first, last):
        state[STATE_PAGE] = number
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        taken = state[STATE_TAKEN]
        here, shift = count_selected_rows(chunks, chunk, pages, page, places, count, taken)
        if here <= 0:
            if here < 0:
                return here
            continue
        if pages[page + P_ENCODING] != PLAIN:
            return UNSUPPORTED_ENCODING
        present = open_page(chunks, chunk, pages, page, raw, scratch, is_stored, levels, state)
        if present < 0:
            return present
        optional = present < pages[page + P_NUM_VALUES]
        nulls = find_value_indices(places, taken, here, shift, levels, optional, values)
        written = take_page_binary(
            chunks, chunk, pages, page, raw, scratch, state, present, values, taken, here, offsets, out, room
        )
        if written < 0:
            return written
        for i in range(taken, taken + here):
            store8(validity, i, 0 if values[i] < 0 else 1)
        chunks[chunk + C_NULL_COUNT] += nulls
        state[STATE_BYTES] = written
        state[STATE_TAKEN] = taken + here
    return 0
