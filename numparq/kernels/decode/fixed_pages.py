"""Data and dictionary pages of fixed-size values, decoded into rows of the output."""

from __future__ import annotations

from numparq.kernels.encodings.dictionary import gather_indices, index_width
from numparq.kernels.encodings.plain import decode_booleans
from numparq.kernels.enums import BOOLEAN, DICTIONARY_PAGE, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.memory import copy_bytes, fill_bytes, store32
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import NO_DICTIONARY, NULL_FOUND, TRUNCATED, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_DICTIONARY_UNREAD,
    C_FILL,
    C_ITEM_SIZE,
    C_NULL_COUNT,
    C_NULLS,
    C_OUT,
    C_ROW_START,
    C_TYPE,
    C_TYPE_LENGTH,
    C_VALIDITY,
    CHUNK_FIELDS,
    CODES,
    COPY,
    NULLS_MASK,
    NULLS_RAISE,
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

from .casts import cast_values
from .pad_nulls import fill_nulls, pad_nulls
from .page_sections import VALUES_END, VALUES_POS, VALUES_STOP, end_values, open_page


@helper
def check_fixed_size(chunks, chunk, sections, count):
    """Return 0 if a value section has `count` PLAIN values of fixed size, and store where they end, else a status."""
    stop = sections[VALUES_POS] + count * chunks[chunk + C_TYPE_LENGTH]
    return end_values(sections, stop if stop <= sections[VALUES_END] else TRUNCATED)


@helper
def decode_values(chunks, chunk, data, sections, encoding, count, dictionary, out, out_pos):
    """Decode `count` dense values and cast them to the output type; return 0 or a status."""
    pos = sections[VALUES_POS]
    end = sections[VALUES_END]
    item = chunks[chunk + C_ITEM_SIZE]
    stored = chunks[chunk + C_TYPE_LENGTH]
    conversion = chunks[chunk + C_CAST]
    if encoding == PLAIN_DICTIONARY or encoding == RLE_DICTIONARY:
        width = index_width(chunks, chunk, data, pos, end, count)
        if width < 0 or count == 0:
            return end_values(sections, width if width < 0 else pos)
        base = chunks[chunk + C_DICTIONARY]
        limit = chunks[chunk + C_DICTIONARY_SIZE]
        pos = gather_indices(data, pos + 1, end, count, width, dictionary, base, limit, item, out, out_pos)
        return end_values(sections, pos)
    if conversion == CODES:
        return NO_DICTIONARY
    if chunks[chunk + C_TYPE] == BOOLEAN:
        return end_values(sections, decode_booleans(data, pos, end, encoding, count, out, out_pos))
    if encoding != PLAIN:
        return UNSUPPORTED_ENCODING
    status = check_fixed_size(chunks, chunk, sections, count)
    if status < 0:
        return status
    return cast_values(data, pos, count, conversion, stored, item, out, out_pos)


@helper
def write_rows(chunks, chunk, values, pos, nulls, first, count, validity, out, target):
    """Write `count` rows from row `first` of a page, whose dense values begin at `pos`."""
    item = chunks[chunk + C_ITEM_SIZE]
    if nulls == 0:
        copy_bytes(out, target, values, pos, count * item)
    elif nulls == count:
        fill_nulls(nulls, item, chunks[chunk + C_FILL], out, target)
    else:
        pad_nulls(values, pos, validity, first, count, item, chunks[chunk + C_FILL], out, target)
    return 0


@helper
def decode_rows(
    chunks,
    chunk,
    data,
    encoding,
    parts,
    present,
    skip,
    nulls,
    first,
    count,
    dictionary,
    dense,
    validity,
    out,
    target,
):
    """Decode the values of a page and write `count` rows from row `first`; return 0 or a status."""
    if present == count and nulls == 0:
        return decode_values(chunks, chunk, data, parts, encoding, present, dictionary, out, target)
    skipped = skip * chunks[chunk + C_ITEM_SIZE]
    if encoding == PLAIN and chunks[chunk + C_CAST] == COPY and chunks[chunk + C_TYPE] != BOOLEAN:
        status = check_fixed_size(chunks, chunk, parts, present)
        if status < 0:
            return status
        pos = parts[VALUES_POS]
        return write_rows(chunks, chunk, data, pos + skipped, nulls, first, count, validity, out, target)
    status = decode_values(chunks, chunk, data, parts, encoding, present, dictionary, dense, 0)
    if status < 0:
        return status
    return write_rows(chunks, chunk, dense, skipped, nulls, first, count, validity, out, target)


@helper
def decode_page(chunks, chunk, pages, page, raw, scratch, dictionary, dense, validity, mask, out, sections):
    """Decode a data page into its rows of the output; return the nulls among the selected rows, or a status."""
    present, first, count, skip, valid = open_page(chunks, chunk, pages, page, raw, scratch, validity, sections)
    if present < 0 or count == 0:
        return present
    nulls = count - valid
    if nulls > 0 and chunks[chunk + C_NULLS] == NULLS_RAISE:
        return NULL_FOUND
    row = pages[page + P_ROW] + first - chunks[chunk + C_ROW_START]
    target = chunks[chunk + C_OUT] + row * chunks[chunk + C_ITEM_SIZE]
    data = scratch if pages[page + P_IS_COMPRESSED] else raw
    encoding = pages[page + P_ENCODING]
    status = decode_rows(
        chunks,
        chunk,
        data,
        encoding,
        sections,
        present,
        skip,
        nulls,
        first,
        count,
        dictionary,
        dense,
        validity,
        out,
        target,
    )
    if status < 0:
        return status
    pages[page + P_UNREAD] += max(sections[VALUES_END] - sections[VALUES_STOP], 0)
    if chunks[chunk + C_NULLS] == NULLS_MASK:
        masked = chunks[chunk + C_VALIDITY] + row
        if nulls == 0:
            fill_bytes(mask, masked, 1, count)
        else:
            copy_bytes(mask, masked, validity, first, count)
    return nulls


@helper
def decode_fixed_dictionary(chunks, chunk, pages, page, raw, scratch, dictionary):
    """Decode a dictionary page and cast its values into the dictionary buffer; return 0 or a status."""
    count = pages[page + P_NUM_VALUES]
    compressed = pages[page + P_IS_COMPRESSED] != 0
    data = scratch if compressed else raw
    pos = pages[page + P_SCRATCH] if compressed else pages[page + P_BODY]
    end = pos + (pages[page + P_UNCOMPRESSED] if compressed else pages[page + P_COMPRESSED])
    encoding = pages[page + P_ENCODING]
    base = chunks[chunk + C_DICTIONARY]
    if encoding != PLAIN and encoding != PLAIN_DICTIONARY:
        return UNSUPPORTED_ENCODING
    chunks[chunk + C_DICTIONARY_SIZE] = count
    if chunks[chunk + C_CAST] == CODES:
        for i in range(count):
            store32(dictionary, base + (i << 2), i)
        return 0
    if chunks[chunk + C_TYPE] == BOOLEAN:
        stop = decode_booleans(data, pos, end, PLAIN, count, dictionary, base)
        chunks[chunk + C_DICTIONARY_UNREAD] = end - stop
        return min(stop, 0)
    stored = chunks[chunk + C_TYPE_LENGTH]
    if count * stored > end - pos:
        return TRUNCATED
    chunks[chunk + C_DICTIONARY_UNREAD] = end - pos - count * stored
    return cast_values(data, pos, count, chunks[chunk + C_CAST], stored, chunks[chunk + C_ITEM_SIZE], dictionary, base)


@kernel("i8 i8 x x u1 u1 u1 u1 u1 u1 u1 i8")
def decode_fixed_pages(chunks, pages, first, last, raw, scratch, dictionary, dense, validity, mask, out, state):
    """Decode pages `first` to `last` (exclusive) into the output; return 0, or a status with the page in ``state[0]``.

    `dense` and `validity` have room for the values, stored or cast, and levels of the largest page.
    """
    for number in range(first, last):
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        if pages[page + P_TYPE] == DICTIONARY_PAGE:
            status = decode_fixed_dictionary(chunks, chunk, pages, page, raw, scratch, dictionary)
        else:
            status = decode_page(
                chunks, chunk, pages, page, raw, scratch, dictionary, dense, validity, mask, out, state
            )
        if status < 0:
            state[0] = number
            return status
        if pages[page + P_TYPE] != DICTIONARY_PAGE:
            chunks[chunk + C_NULL_COUNT] += status
    return 0
