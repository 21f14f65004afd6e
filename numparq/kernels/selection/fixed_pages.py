"""Fixed-size values of selected rows, decoded from data pages."""

from __future__ import annotations

import numpy as np

from numparq.kernels.decode.binary_pages import STATE_PAGE
from numparq.kernels.decode.casts import cast_values
from numparq.kernels.decode.fixed_pages import check_fixed_size, decode_fixed_dictionary, decode_page
from numparq.kernels.decode.pad_nulls import fill_nulls
from numparq.kernels.decode.page_sections import VALUES_END, VALUES_POS
from numparq.kernels.decode.snappy import decompress_snappy_page
from numparq.kernels.encodings.dictionary import index_width
from numparq.kernels.encodings.hybrid_rle import load_partial, next_run
from numparq.kernels.enums import BOOLEAN, DICTIONARY_PAGE, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.memory import copy_bytes, load8, load32, load64, store8, store32, store64
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import (
    BAD_COMPRESSED_DATA,
    BAD_COUNT,
    INDEX_OUT_OF_RANGE,
    NO_DICTIONARY,
    NULL_FOUND,
    UNSUPPORTED_ENCODING,
)
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_FILL,
    C_ITEM_SIZE,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_NULLS,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE,
    C_TYPE_LENGTH,
    C_VALIDITY,
    CODES,
    NULLS_FILL,
    NULLS_MASK,
    NULLS_RAISE,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_TYPE,
    PAGE_FIELDS,
)

from .lazy_pages import (
    STATE_FIRST,
    STATE_LAST,
    STATE_TAKEN,
    WHOLE_PAGE,
    decompress_up_to,
    find_value_indices,
    has_nulls,
    is_sparse,
    open_page,
    select_page_rows,
)
from .rows import take_fixed_indices


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
def take_indices(data, pos, end, count, width, limit, values, selected, places):
    """Write the selected ones of a page's `count` dictionary indices to `places`, skipping the others by run.

    `values` has the ordinals of the `selected` ones, -1 for a null. Return the end of all `count` indices, or a status.
    """
    size = (width + 7) >> 3
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    done = 0
    i = 0
    while done < count:
        pos, header, run = next_run(data, pos, end, count - done, width)
        if pos < 0:
            return pos
        index = 0 if header & 1 else load_partial(data, pos, size)
        while i < selected and values[i] < done + run:
            if values[i] >= 0:
                if header & 1:
                    bit = (pos << 3) + (values[i] - done) * width
                    index = np.int64((load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask)
                if index >= limit:
                    return INDEX_OUT_OF_RANGE
                places[i] = index
            i += 1
        pos += (header >> 1) * width if header & 1 else size
        done += run
    return pos


@helper
def take_dictionary_values(chunks, data, state, present, dictionary, values, count, places, out, target):
    """Write the dictionary values of `count` rows of a decompressed page; return 0 or a status."""
    pos = state[VALUES_POS]
    end = state[VALUES_END]
    width = index_width(chunks, 0, data, pos, end, present)
    if width < 0 or present == 0:
        return min(width, 0)
    item = chunks[C_ITEM_SIZE]
    pos = take_indices(data, pos + 1, end, present, width, chunks[C_DICTIONARY_SIZE], values, count, places)
    if pos < 0:
        return pos
    for i in range(count):
        if values[i] >= 0:
            take_entry(dictionary, chunks[C_DICTIONARY] + places[i] * item, item, out, target + i * item)
    return 0


@helper
def check_plain_size(chunks, pages, page, present, state):
    """Check the size of PLAIN values before memory for the rows that a page claims is touched; return 0 or a status."""
    if pages[page + P_ENCODING] != PLAIN or chunks[C_CAST] == CODES:
        return 0
    return check_fixed_size(chunks, 0, state, present)


@helper
def take_page_values(chunks, pages, page, raw, scratch, state, present, dictionary, values, count, places, out, target):
    """Write the values of `count` rows of a page from `target` on, casted; return 0 or a status.

    PLAIN values have been counted.
    """
    data = scratch if pages[page + P_IS_COMPRESSED] else raw
    encoding = pages[page + P_ENCODING]
    if encoding == PLAIN_DICTIONARY or encoding == RLE_DICTIONARY:
        if decompress_up_to(pages, page, raw, scratch, state, WHOLE_PAGE) < 0:
            return BAD_COMPRESSED_DATA
        return take_dictionary_values(chunks, data, state, present, dictionary, values, count, places, out, target)
    conversion = chunks[C_CAST]
    if conversion == CODES:
        return NO_DICTIONARY
    if encoding != PLAIN:
        return UNSUPPORTED_ENCODING
    pos = state[VALUES_POS]
    status = 0
    item = chunks[C_ITEM_SIZE]
    stored = chunks[C_TYPE_LENGTH]
    last = count - 1
    while last > 0 and values[last] < 0:
        last -= 1
    if decompress_up_to(pages, page, raw, scratch, state, pos + (values[last] + 1) * stored) < 0:
        return BAD_COMPRESSED_DATA
    for i in range(last + 1):
        if values[i] >= 0 and status >= 0:
            status = cast_values(data, pos + values[i] * stored, 1, conversion, stored, item, out, target + i * item)
    return status


@helper
def take_page_rows(chunks, pages, page, raw, scratch, is_stored, count, memory, state):
    """Write `count` rows of a page one by one; return the nulls among them, or a status."""
    dictionary, _, levels, places, values, _, mask, out = memory
    present = open_page(chunks, 0, pages, page, raw, scratch, is_stored, levels, state)
    status = present if present < 0 else check_plain_size(chunks, pages, page, present, state)
    if status < 0:
        return status
    optional = present < pages[page + P_NUM_VALUES]
    if optional and chunks[C_NULLS] == NULLS_RAISE and has_nulls(chunks, 0, pages, page, levels):
        return NULL_FOUND
    nulls = find_value_indices(pages, page, places, count, levels, optional, values, state)
    target = chunks[C_OUT]
    if nulls < count:
        status = take_page_values(
            chunks, pages, page, raw, scratch, state, present, dictionary, values, count, places, out, target
        )
        if status < 0:
            return status
    item = chunks[C_ITEM_SIZE]
    has_mask = chunks[C_NULLS] == NULLS_MASK
    if nulls > 0 or has_mask:
        for i in range(count):
            if values[i] < 0:
                fill_nulls(1, item, chunks[C_FILL], out, target + i * item)
            if has_mask:
                store8(mask, chunks[C_VALIDITY] + i, 0 if values[i] < 0 else 1)
    return nulls


@helper
def gather_page_rows(chunks, pages, page, raw, scratch, count, rows_mask, memory, state):
    """Decode the rows around the selected ones into `rows`, then their validity, and gather; return as above."""
    dictionary, dense, levels, places, _, rows, mask, out = memory
    target = chunks[C_OUT]
    row = chunks[C_VALIDITY]
    policy = chunks[C_NULLS]
    chunks[C_OUT] = 0
    chunks[C_VALIDITY] = rows_mask
    if policy == NULLS_FILL and chunks[C_MAX_DEFINITION] > 0:
        chunks[C_NULLS] = NULLS_MASK  # filled as well, and then nulls can be counted
    nulls = decode_page(chunks, 0, pages, page, raw, scratch, dictionary, dense, levels, rows, rows, state)
    chunks[C_NULLS] = policy
    if nulls < 0:
        return nulls
    take_fixed_indices(rows, chunks[C_ITEM_SIZE], places, count, out, target)
    if policy == NULLS_MASK:
        for i in range(count):
            store8(mask, row + i, load8(rows, rows_mask + places[i]))
    if nulls == 0:
        return 0
    nulls = count
    for i in range(count):
        nulls -= load8(rows, rows_mask + places[i])
    return nulls


@helper
def read_page_rows(chunks, pages, page, raw, scratch, is_stored, count, rows_mask, memory, state):
    """Write `count` selected rows of a page to C_OUT and C_VALIDITY; return the nulls among them, or a status.

    `memory` has dictionary, dense, levels, places, values, rows, mask and output, as in `read_fixed_rows`.
    """
    if is_sparse(pages, page, count) and chunks[C_TYPE] != BOOLEAN:
        return take_page_rows(chunks, pages, page, raw, scratch, is_stored, count, memory, state)
    status = decompress_snappy_page(pages, page, raw, scratch) if is_stored else 0
    if status < 0:
        return status
    if count < state[STATE_LAST] - state[STATE_FIRST]:
        return gather_page_rows(chunks, pages, page, raw, scratch, count, rows_mask, memory, state)
    dictionary, dense, levels, _, _, _, mask, out = memory
    return decode_page(chunks, 0, pages, page, raw, scratch, dictionary, dense, levels, mask, out, state)


@kernel("i8 i8 x x u1 u1 x u1 u1 u1 i8 x u1 x i4 i8 u1 x u1 u1 x i8")
def read_fixed_rows(
    chunks,
    pages,
    first,
    last,
    raw,
    scratch,
    is_stored,
    dictionary,
    dense,
    levels,
    bounds,
    num_ranges,
    mask,
    mask_row,
    places,
    values,
    rows,
    rows_mask,
    out_mask,
    out,
    limit,
    state,
):
    """Decode at most `limit` selected rows of pages `first` to `last` (exclusive) of one chunk, one behind the other.

    Return 0, or a status with the page in ``state[0]``; STATE_TAKEN counts the rows, before and after.
    """
    # Selected are the rows of `num_ranges` ranges (first, exclusive last), or those of the one range that have a 1 in
    # `mask`, which begins at row `mask_row` (-1: none). C_OUT and C_VALIDITY are the places of the very first row.
    # `is_stored`: compressed pages are still compressed, by Snappy; they are decompressed as far as needed.
    # The largest page's values fit in `dense`, stored or casted, and in `rows` with their validity from `rows_mask` on;
    # levels, `places` and `values` have an item for each.
    memory = dictionary, dense, levels, places, values, rows, out_mask, out
    start, stop, target, row = chunks[C_ROW_START], chunks[C_ROW_STOP], chunks[C_OUT], chunks[C_VALIDITY]
    status = 0
    for number in range(first, last):
        state[STATE_PAGE] = number
        page = number * PAGE_FIELDS
        if pages[page + P_TYPE] == DICTIONARY_PAGE:
            status = decompress_snappy_page(pages, page, raw, scratch) if is_stored else 0
            if status >= 0:
                status = decode_fixed_dictionary(chunks, 0, pages, page, raw, scratch, dictionary)
            count = 0
        else:
            count = select_page_rows(pages, page, bounds, num_ranges, mask, mask_row, places, state)
            if count > limit - state[STATE_TAKEN]:
                status = BAD_COUNT
        if count > 0 and status >= 0:
            chunks[C_ROW_START] = state[STATE_FIRST]
            chunks[C_ROW_STOP] = state[STATE_LAST]
            chunks[C_OUT] = target + state[STATE_TAKEN] * chunks[C_ITEM_SIZE]
            chunks[C_VALIDITY] = row + state[STATE_TAKEN]
            status = read_page_rows(chunks, pages, page, raw, scratch, is_stored, count, rows_mask, memory, state)
            chunks[C_NULL_COUNT] += max(status, 0)
            state[STATE_TAKEN] += count
        if status < 0:
            break
    chunks[C_ROW_START], chunks[C_ROW_STOP], chunks[C_OUT], chunks[C_VALIDITY] = start, stop, target, row
    return min(status, 0)
