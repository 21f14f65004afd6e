"""Fused read of one row range: headers, CRC, decompression and decoding in one call."""

from __future__ import annotations

import numpy as np

from numparq.kernels.checksums import check_page_crcs
from numparq.kernels.decode.fixed_pages import decode_fixed_pages
from numparq.kernels.decode.page_headers import scan_pages_at
from numparq.kernels.decode.scratch_layout import T_DECOMPRESSED, T_DICTIONARY, T_ITEM, T_VALUES, lay_out_scratch
from numparq.kernels.decode.snappy import decompress_snappy_pages
from numparq.kernels.enums import DELTA_BINARY_PACKED, DICTIONARY_PAGE, RLE_DICTIONARY
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_COUNT, NEED_ROOM, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    B_SNAPPY,
    C_ROW_START,
    C_ROW_STOP,
    P_ENCODING,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    PAGE_FIELDS,
)

from .binary_pages import take_binary_pages
from .fixed_pages import take_fixed_pages
from .lazy_pages import STATE_FIELDS, STATE_TAKEN

# Items of `room`: bytes of the scratch buffers; after NEED_ROOM, those needed.
R_DECOMPRESSED, R_DICTIONARY, R_DENSE, R_LEVELS = range(4)
ROOM_FIELDS = 4


@helper
def cover_row_range(chunks, pages, first, last):
    """Whether consecutive data pages hold all selected rows."""
    row = pages[first * PAGE_FIELDS + P_ROW]
    if row > chunks[C_ROW_START]:
        return False
    for number in range(first, last):
        page = number * PAGE_FIELDS
        if pages[page + P_ROW] != row:
            return False
        row += pages[page + P_NUM_VALUES]
    return row >= chunks[C_ROW_STOP]


@helper
def transcoded_encoding(pages, first, last):
    """Return the encoding of all data pages if it must be transcoded; 0 if none must be, or a status."""
    found = 0
    for number in range(first, last):
        encoding = pages[number * PAGE_FIELDS + P_ENCODING]
        if encoding < DELTA_BINARY_PACKED or encoding == RLE_DICTIONARY:
            encoding = 0
        if number > first and encoding != found:
            return UNSUPPORTED_ENCODING
        found = encoding
    return found


@helper
def prepare_pages(
    raw, located, num_located, verify, chunks, pages, table, slots, record, stack, batches, totals, state, room
):
    """Scan headers, check CRCs and lay out the scratch buffers; return the first data page, or a status."""
    if num_located <= 0:
        return BAD_COUNT
    status = scan_pages_at(raw, located, num_located, 1, chunks, pages, table, slots, record, stack, state)
    if status < 0:
        return status
    if verify:
        status = check_page_crcs(pages, 0, num_located, raw, state)
        if status < 0:
            return status
    status = lay_out_scratch(chunks, pages, num_located, np.int64(1) << 62, batches, totals)
    if status < 0:
        return status
    first = 1 if pages[P_TYPE] == DICTIONARY_PAGE else 0
    if first >= num_located or batches[B_SNAPPY] == 0 or not cover_row_range(chunks, pages, first, num_located):
        return UNSUPPORTED_ENCODING
    dense = totals[T_VALUES] * totals[T_ITEM]
    if (
        totals[T_DECOMPRESSED] > room[R_DECOMPRESSED]
        or totals[T_DICTIONARY] > room[R_DICTIONARY]
        or dense > room[R_DENSE]
        or totals[T_VALUES] > room[R_LEVELS]
    ):
        room[R_DECOMPRESSED] = totals[T_DECOMPRESSED]
        room[R_DICTIONARY] = totals[T_DICTIONARY]
        room[R_DENSE] = dense
        room[R_LEVELS] = totals[T_VALUES]
        return NEED_ROOM
    for item in range(STATE_FIELDS):
        state[item] = 0
    return first


@kernel("u1 i8 x x i8 i8 i8 i8 i8 i8 i8 i8 i8 i8 u1 u1 u1 u1 i4 x i8 u1 x u1 x")
def fused_read_fixed(
    raw,
    located,
    num_located,
    verify,
    chunks,
    pages,
    table,
    slots,
    record,
    stack,
    batches,
    totals,
    state,
    room,
    scratch,
    dictionary,
    dense,
    levels,
    places,
    count,
    values,
    mask,
    row,
    out,
    out_pos,
):
    """Read a row range of a flat chunk of fixed-size values in one call; the output is valid if that returns 0.

    Otherwise it returns a status, or the encoding of all pages if they must be transcoded; they are then decompressed.
    """
    # If `count` is not 0, the rows at `places`, counted from the first one, are taken one by one. Else pages are
    # decoded as a whole.
    first = prepare_pages(
        raw, located, num_located, verify, chunks, pages, table, slots, record, stack, batches, totals, state, room
    )
    if first < 0:
        return first
    encoding = transcoded_encoding(pages, first, num_located)
    if encoding != 0:
        if encoding < 0 or first:
            return UNSUPPORTED_ENCODING
        status = decompress_snappy_pages(pages, 0, num_located, raw, scratch, state)
        return status if status < 0 else encoding
    whole = first if count else num_located
    if whole:
        status = decompress_snappy_pages(pages, 0, whole, raw, scratch, state)
        if status < 0:
            return status
        status = decode_fixed_pages(chunks, pages, 0, whole, raw, scratch, dictionary, dense, levels, mask, out, state)
        if status < 0:
            return status
        for item in range(STATE_FIELDS):
            state[item] = 0
    if not count:
        return 0
    status = take_fixed_pages(
        chunks,
        pages,
        first,
        num_located,
        raw,
        scratch,
        1,
        dictionary,
        levels,
        places,
        count,
        values,
        mask,
        row,
        out,
        out_pos,
        state,
    )
    return BAD_COUNT if status == 0 and state[STATE_TAKEN] != count else status


@kernel("u1 i8 x x i8 i8 i8 i8 i8 i8 i8 i8 i8 i8 u1 u1 i4 x i8 u1 i8 u1 x")
def fused_read_binary(
    raw,
    located,
    num_located,
    verify,
    chunks,
    pages,
    table,
    slots,
    record,
    stack,
    batches,
    totals,
    state,
    room,
    scratch,
    levels,
    places,
    count,
    values,
    validity,
    offsets,
    out,
    size,
):
    """Read a row range of a flat chunk of PLAIN byte arrays in one call; return 0 or a status.

    If `out`, of `size` bytes, is too small, the status is NEED_ROOM with `room` unchanged.
    """
    first = prepare_pages(
        raw, located, num_located, verify, chunks, pages, table, slots, record, stack, batches, totals, state, room
    )
    if first < 0:
        return first
    offsets[0] = 0
    status = take_binary_pages(
        chunks,
        pages,
        first,
        num_located,
        raw,
        scratch,
        1,
        levels,
        places,
        count,
        values,
        validity,
        offsets,
        out,
        size,
        state,
    )
    return BAD_COUNT if status == 0 and state[STATE_TAKEN] != count else status
