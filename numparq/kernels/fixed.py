"""Pages of values of a fixed size, to rows of the output: levels, values, conversion, placing."""

from __future__ import annotations

from ..errors import BAD_COUNT, BAD_PAGE, NO_DICTIONARY, NULL_FOUND, TRUNCATED, UNSUPPORTED_ENCODING
from .convert import convert
from .hybrid import decode_bits, gather_indices, unpack_bits
from .levels import decode_validity, level_section
from .memory import copy_bytes, fill_bytes, load8, load32, store32
from .place import count_present, fill_rows, place
from .registry import helper, kernel
from .tables import (
    BOOLEAN,
    C_CONVERSION,
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_FILL,
    C_ITEM_SIZE,
    C_MASK,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_NULLS,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE,
    C_TYPE_LENGTH,
    CHUNK_FIELDS,
    CODES,
    COPY,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    NULLS_MASK,
    NULLS_REFUSE,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_NULLS,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_ROW,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE,
    RLE_DICTIONARY,
)

# Where the parts of a page are: items of the kernels' `state`, behind those that mean something to the caller.
LEVELS_POS, LEVELS_END, VALUES_POS, VALUES_END = 4, 5, 6, 7
STATE_FIELDS = 8


@helper
def find_parts(chunks, chunk, pages, page, raw, scratch, parts):
    """Find the level section and the value section of a data page; 0 or a status.

    The positions are in the raw buffer, but for sections that were compressed: those are in the scratch buffer.
    """
    body = pages[page + P_BODY]
    optional = chunks[chunk + C_MAX_DEFINITION] > 0
    if pages[page + P_TYPE] == DATA_PAGE_V2:
        levels = body + pages[page + P_REPETITION_BYTES]
        level_bytes = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
        parts[LEVELS_POS] = levels
        parts[LEVELS_END] = levels + pages[page + P_DEFINITION_BYTES]
        if pages[page + P_IS_COMPRESSED]:
            parts[VALUES_POS] = pages[page + P_SCRATCH]
            parts[VALUES_END] = parts[VALUES_POS] + pages[page + P_UNCOMPRESSED] - level_bytes
        else:
            parts[VALUES_POS] = body + level_bytes
            parts[VALUES_END] = body + pages[page + P_COMPRESSED]
        return 0
    compressed = pages[page + P_IS_COMPRESSED] != 0
    start = pages[page + P_SCRATCH] if compressed else body
    end = start + (pages[page + P_UNCOMPRESSED] if compressed else pages[page + P_COMPRESSED])
    parts[LEVELS_POS] = start
    parts[LEVELS_END] = start
    if optional:
        pos, stop = level_section(
            scratch if compressed else raw, start, end, pages[page + P_NUM_VALUES], pages[page + P_DEFINITION_ENCODING]
        )
        if pos < 0:
            return pos
        parts[LEVELS_POS] = pos
        parts[LEVELS_END] = stop
    parts[VALUES_POS] = parts[LEVELS_END]
    parts[VALUES_END] = end
    return 0


@helper
def page_validity(chunks, chunk, pages, page, raw, scratch, parts, validity, valid_pos):
    """Decode the validity of a data page; the number of values that are present, or a status."""
    num_values = pages[page + P_NUM_VALUES]
    num_nulls = pages[page + P_NUM_NULLS]
    if chunks[chunk + C_MAX_DEFINITION] == 0:
        return num_values if num_nulls <= 0 else BAD_COUNT
    if pages[page + P_TYPE] == DATA_PAGE_V2:
        present = decode_validity(raw, parts[LEVELS_POS], parts[LEVELS_END], num_values, RLE, validity, valid_pos)
        # Some writers (parquet-cpp, of columns without statistics) say that there are no nulls; the levels know.
        if present >= 0 and num_nulls != 0 and present != num_values - num_nulls:
            return BAD_COUNT
        return present
    return decode_validity(
        scratch if pages[page + P_IS_COMPRESSED] else raw,
        parts[LEVELS_POS],
        parts[LEVELS_END],
        num_values,
        pages[page + P_DEFINITION_ENCODING],
        validity,
        valid_pos,
    )


@helper
def decode_booleans(data, pos, end, encoding, count, out, out_pos):
    """Decode booleans, PLAIN bits or RLE, to one byte each; 0 or a status."""
    if encoding == PLAIN:
        if (count + 7) >> 3 > end - pos:
            return TRUNCATED
        unpack_bits(data, pos, count, out, out_pos)
        return 0
    if encoding != RLE:
        return UNSUPPORTED_ENCODING
    if count == 0:
        return 0
    if end - pos < 4:
        return TRUNCATED
    size = load32(data, pos)
    if size > end - pos - 4:
        return TRUNCATED
    status = decode_bits(data, pos + 4, pos + 4 + size, count, out, out_pos)
    return min(status, 0)


@helper
def index_width(chunks, chunk, data, pos, end, count):
    """Give the bits of a dictionary index, which stand in the byte before the indices; or a status."""
    if count == 0:  # a chunk of nulls may well have no dictionary
        return 0
    if chunks[chunk + C_DICTIONARY_SIZE] < 0:
        return NO_DICTIONARY
    if pos >= end:
        return TRUNCATED
    width = load8(data, pos)
    return width if width <= 32 else BAD_PAGE


@helper
def decode_values(chunks, chunk, data, pos, end, encoding, count, dictionary, out, out_pos):
    """Decode `count` values, dense, as they are in the output; 0 or a status."""
    item = chunks[chunk + C_ITEM_SIZE]
    stored = chunks[chunk + C_TYPE_LENGTH]
    conversion = chunks[chunk + C_CONVERSION]
    if encoding == PLAIN_DICTIONARY or encoding == RLE_DICTIONARY:
        width = index_width(chunks, chunk, data, pos, end, count)
        if width < 0 or count == 0:
            return min(width, 0)
        base = chunks[chunk + C_DICTIONARY]
        limit = chunks[chunk + C_DICTIONARY_SIZE]
        return gather_indices(data, pos + 1, end, count, width, dictionary, base, limit, item, out, out_pos)
    if conversion == CODES:
        return NO_DICTIONARY
    if chunks[chunk + C_TYPE] == BOOLEAN:
        return decode_booleans(data, pos, end, encoding, count, out, out_pos)
    if encoding != PLAIN:
        return UNSUPPORTED_ENCODING
    if count * stored > end - pos:
        return TRUNCATED
    return convert(data, pos, count, conversion, stored, item, out, out_pos)


@helper
def wanted_rows(chunks, chunk, pages, page):
    """Give the rows of a data page that are wanted, counted within it: (first, the one behind the last)."""
    first = max(chunks[chunk + C_ROW_START] - pages[page + P_ROW], 0)
    last = min(chunks[chunk + C_ROW_STOP] - pages[page + P_ROW], pages[page + P_NUM_VALUES])
    return first, last


@helper
def place_rows(chunks, chunk, values, pos, present, nulls, first, last, num_values, validity, out, target):
    """Place the rows `first` to `last` of a page whose values lie dense at `pos`."""
    item = chunks[chunk + C_ITEM_SIZE]
    skip = first if present == num_values else count_present(validity, 0, first)
    pos += skip * item
    if nulls == 0:
        copy_bytes(out, target, values, pos, (last - first) * item)
    elif nulls == last - first:
        fill_rows(nulls, item, chunks[chunk + C_FILL], out, target)
    else:
        place(values, pos, validity, first, last - first, item, chunks[chunk + C_FILL], out, target)
    return 0


@helper
def decode_rows(
    chunks, chunk, pages, page, data, parts, present, nulls, first, last, dictionary, dense, validity, out, target
):  # fmt: skip
    """Decode the values of a page and write its rows `first` to `last`; 0 or a status."""
    num_values = pages[page + P_NUM_VALUES]
    encoding = pages[page + P_ENCODING]
    pos = parts[VALUES_POS]
    end = parts[VALUES_END]
    if present == last - first and nulls == 0 and present == num_values:
        return decode_values(chunks, chunk, data, pos, end, encoding, present, dictionary, out, target)
    if encoding == PLAIN and chunks[chunk + C_CONVERSION] == COPY and chunks[chunk + C_TYPE] != BOOLEAN:
        if present * chunks[chunk + C_ITEM_SIZE] > end - pos:
            return TRUNCATED
        return place_rows(chunks, chunk, data, pos, present, nulls, first, last, num_values, validity, out, target)
    status = decode_values(chunks, chunk, data, pos, end, encoding, present, dictionary, dense, 0)
    if status < 0:
        return status
    return place_rows(chunks, chunk, dense, 0, present, nulls, first, last, num_values, validity, out, target)


@helper
def decode_page(chunks, chunk, pages, page, raw, scratch, dictionary, dense, validity, mask, out, parts):
    """Decode one data page into its rows of the output; the nulls among the rows wanted, or a status."""
    first, last = wanted_rows(chunks, chunk, pages, page)
    if first >= last:
        return 0
    status = find_parts(chunks, chunk, pages, page, raw, scratch, parts)
    if status < 0:
        return status
    present = page_validity(chunks, chunk, pages, page, raw, scratch, parts, validity, 0)
    if present < 0:
        return present
    nulls = 0
    if present < pages[page + P_NUM_VALUES]:
        nulls = last - first - count_present(validity, first, last - first)
    if nulls > 0 and chunks[chunk + C_NULLS] == NULLS_REFUSE:
        return NULL_FOUND
    row = pages[page + P_ROW] + first - chunks[chunk + C_ROW_START]
    target = chunks[chunk + C_OUT] + row * chunks[chunk + C_ITEM_SIZE]
    data = scratch if pages[page + P_IS_COMPRESSED] else raw
    status = decode_rows(
        chunks, chunk, pages, page, data, parts, present, nulls, first, last, dictionary, dense, validity, out, target
    )
    if status < 0:
        return status
    if chunks[chunk + C_NULLS] == NULLS_MASK:
        masked = chunks[chunk + C_MASK] + row
        if nulls == 0:
            fill_bytes(mask, masked, 1, last - first)
        else:
            copy_bytes(mask, masked, validity, first, last - first)
    return nulls


@helper
def decode_dictionary(chunks, chunk, pages, page, raw, scratch, dictionary):
    """Convert a dictionary page's values into the dictionary buffer; 0 or a status."""
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
    if chunks[chunk + C_CONVERSION] == CODES:
        for i in range(count):
            store32(dictionary, base + (i << 2), i)
        return 0
    if chunks[chunk + C_TYPE] == BOOLEAN:
        return decode_booleans(data, pos, end, PLAIN, count, dictionary, base)
    stored = chunks[chunk + C_TYPE_LENGTH]
    if count * stored > end - pos:
        return TRUNCATED
    return convert(
        data, pos, count, chunks[chunk + C_CONVERSION], stored, chunks[chunk + C_ITEM_SIZE], dictionary, base
    )


@kernel("i8 i8 x x u1 u1 u1 u1 u1 u1 u1 i8")
def decode_fixed_pages(chunks, pages, first, last, raw, scratch, dictionary, dense, validity, mask, out, state):
    """Decode rows `first` to `last` of the page table into the output.

    Parameters
    ----------
    chunks, pages : int64 tables
        As in `tables`. Null counts are added to the chunks; a dictionary page sets its chunk's dictionary size.
    first, last : int
        The pages.
    raw, scratch : uint8
        The file's bytes, and the decompressed ones.
    dictionary : uint8
        Room for the dictionaries, at each chunk's C_DICTIONARY.
    dense, validity : uint8
        Room for the largest page's values (stored and converted size) and levels.
    mask, out : uint8
        The validity kept for NULLS_MASK, and the output.
    state : int64, STATE_FIELDS
        Item 0 is the page that a negative status is about.

    Returns
    -------
    int
        0, or a negative status.
    """
    for number in range(first, last):
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        if pages[page + P_TYPE] == DICTIONARY_PAGE:
            status = decode_dictionary(chunks, chunk, pages, page, raw, scratch, dictionary)
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
