"""Fixed-size values of selected rows, decoded from data pages."""

from __future__ import annotations

import numpy as np

from numparq.kernels.decode.binary_pages import STATE_PAGE
from numparq.kernels.decode.casts import cast_values
from numparq.kernels.decode.fixed_pages import check_fixed_size
from numparq.kernels.decode.pad_nulls import fill_nulls
from numparq.kernels.decode.page_sections import VALUES_END, VALUES_POS, check_values_end
from numparq.kernels.encodings.dictionary import index_width
from numparq.kernels.encodings.hybrid_rle import load_partial, read_run_header, run_values
from numparq.kernels.enums import PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.memory import copy_bytes, load32, load64, store8, store32, store64
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import (
    BAD_COMPRESSED_DATA,
    INDEX_OUT_OF_RANGE,
    NO_DICTIONARY,
    NULL_FOUND,
    TRUNCATED,
    UNSUPPORTED_ENCODING,
)
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_FILL,
    C_ITEM_SIZE,
    C_NULL_COUNT,
    C_NULLS,
    C_TYPE_LENGTH,
    CHUNK_FIELDS,
    CODES,
    NULLS_MASK,
    NULLS_RAISE,
    P_CHUNK,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    PAGE_FIELDS,
)

from .lazy_pages import (
    STATE_TAKEN,
    WHOLE_PAGE,
    count_selected_rows,
    decompress_up_to,
    find_value_indices,
    has_nulls,
    open_page,
)


@helper
def take_entry(dictionary, place, item, out, target):
    """Copy one value of a dictionary."""
    if item == 8:
        store64(out, target, load64(dictionary, place))
    elif item == 4:
        store32(out, target, load32(dictionary, place))
    else:
        copy_bytes(out, target, dictionary, place, item)


@helper
def take_dictionary_values(
    data, pos, end, count, width, dictionary, base, limit, item, values, taken, here, out, out_pos
):
    """Look up those of a page's `count` indices that are wanted, passing over the others run by run.

    Return the end position of all `count` indices, or a status.

    Parameters are those of `gather_indices`, and of `take_plain`.
    """
    size = (width + 7) >> 3
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    done = 0
    i = taken
    while done < count:
        pos, header = read_run_header(data, pos, end)
        if pos < 0:
            return pos
        run = run_values(header, count - done)
        if run < 0:
            return run
        length = (run * width + 7) >> 3 if header & 1 else size
        if length > end - pos:
            return TRUNCATED
        index = 0 if header & 1 else load_partial(data, pos, size)
        while i < taken + here and values[i] < done + run:
            if values[i] >= 0:
                if header & 1:
                    bit = (pos << 3) + (values[i] - done) * width
                    index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
                if index >= limit:
                    return INDEX_OUT_OF_RANGE
                take_entry(dictionary, base + index * item, item, out, out_pos + i * item)
            i += 1
        pos += (header >> 1) * width if header & 1 else size
        done += run
    return pos


@helper
def take_plain(data, pos, conversion, stored, item, values, taken, here, out, out_pos):
    """Convert those of a page's PLAIN values that are wanted; 0 or a status.

    Parameters
    ----------
    data, pos, conversion, stored, item
        The values: where the first one lies, and as in `cast_values`.
    values, taken, here
        As in `find_value_indices`.
    out, out_pos
        Where the value of the very first place goes.
    """
    for i in range(taken, taken + here):
        if values[i] >= 0:
            status = cast_values(data, pos + values[i] * stored, 1, conversion, stored, item, out, out_pos + i * item)
            if status < 0:
                return status
    return 0


@helper
def take_page_values(
    chunks, chunk, pages, page, raw, scratch, state, present, dictionary, values, taken, here, out, out_pos
):
    """Take the wanted values of a page; 0 or a status."""
    data = scratch if pages[page + P_IS_COMPRESSED] else raw
    pos = state[VALUES_POS]
    end = state[VALUES_END]
    item = chunks[chunk + C_ITEM_SIZE]
    stored = chunks[chunk + C_TYPE_LENGTH]
    encoding = pages[page + P_ENCODING]
    if encoding == PLAIN_DICTIONARY or encoding == RLE_DICTIONARY:
        if decompress_up_to(pages, page, raw, scratch, state, WHOLE_PAGE) < 0:
            return BAD_COMPRESSED_DATA
        width = index_width(chunks, chunk, data, pos, end, present)
        if width < 0 or present == 0:
            return min(width, 0)
        base = chunks[chunk + C_DICTIONARY]
        limit = chunks[chunk + C_DICTIONARY_SIZE]
        pos = take_dictionary_values(
            data, pos + 1, end, present, width, dictionary, base, limit, item, values, taken, here, out, out_pos
        )
        return check_values_end(chunks, chunk, pos, end)
    if chunks[chunk + C_CAST] == CODES:
        return NO_DICTIONARY
    if encoding != PLAIN:
        return UNSUPPORTED_ENCODING
    status = check_fixed_size(chunks, chunk, pos, end, present)
    if status < 0:
        return status
    last = taken + here - 1
    while last > taken and values[last] < 0:
        last -= 1
    if decompress_up_to(pages, page, raw, scratch, state, pos + (values[last] + 1) * stored) < 0:
        return BAD_COMPRESSED_DATA
    return take_plain(data, pos, chunks[chunk + C_CAST], stored, item, values, taken, here, out, out_pos)


@helper
def write_nulls(values, taken, here, item, fill, out, out_pos, keeps, mask, row):
    """Write what stands for the nulls among wanted values and, if they are kept (`keeps`), the validity of all."""
    for i in range(taken, taken + here):
        if values[i] < 0:
            fill_nulls(1, item, fill, out, out_pos + i * item)
        if keeps:
            store8(mask, row + i, 0 if values[i] < 0 else 1)
    return 0


@kernel("i8 i8 x x u1 u1 x u1 u1 i4 x i8 u1 x u1 x i8")
def take_fixed_pages(
    chunks,
    pages,
    first,
    last,
    raw,
    scratch,
    is_stored,
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
):
    """Decode the values of some rows of data pages into the output, one behind the other.

    Parameters
    ----------
    chunks, pages, first, last, raw, scratch, dictionary, mask, out
        As for `decode_fixed_pages`; no dictionary pages, and no BOOLEAN values. The C_MASK of a chunk is the place of
        its first wanted row.
    is_stored : int
        Whether pages that are compressed (in Snappy then) are so still; they are decompressed as far as need be.
    levels : uint8
        Room for the largest page's levels.
    places, count : int32
        The places of the rows to be taken, in order.
    values : int64
        Room for `count` numbers.
    row, out_pos : int
        The positions in `mask` and `out` of the first of all the places.
    state : int64, STATE_FIELDS
        Item STATE_PAGE is the page that a negative status is about; of STATE_TAKEN places the values are taken already.

    Returns
    -------
    int
        0, or a negative status.
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
        present = open_page(chunks, chunk, pages, page, raw, scratch, is_stored, levels, state)
        if present < 0:
            return present
        optional = present < pages[page + P_NUM_VALUES]
        if optional and chunks[chunk + C_NULLS] == NULLS_RAISE and has_nulls(chunks, chunk, pages, page, levels):
            return NULL_FOUND
        nulls = find_value_indices(places, taken, here, shift, levels, optional, values)
        if nulls < here:
            status = take_page_values(
                chunks, chunk, pages, page, raw, scratch, state, present, dictionary, values, taken, here, out, out_pos
            )
            if status < 0:
                return status
        keeps = chunks[chunk + C_NULLS] == NULLS_MASK
        if nulls > 0 or keeps:
            item = chunks[chunk + C_ITEM_SIZE]
            write_nulls(values, taken, here, item, chunks[chunk + C_FILL], out, out_pos, keeps, mask, row)
        chunks[chunk + C_NULL_COUNT] += nulls
        state[STATE_TAKEN] = taken + here
    return 0
