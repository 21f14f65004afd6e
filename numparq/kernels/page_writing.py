"""Values of many column chunks in one call: dictionaries indexed, and pages encoded before compression."""

from __future__ import annotations

import numpy as np

from .encodings.delta_binary_packed import encode_deltas
from .encodings.dictionary import index_binary, index_fixed
from .encodings.hybrid_rle import encode_hybrid_i4, encode_hybrid_u1, write_run_header
from .encodings.plain import encode_plain_binary, encode_plain_booleans
from .enums import DELTA_BINARY_PACKED, PLAIN, RLE, RLE_DICTIONARY
from .memory import copy_bytes, store8, store32
from .registry import helper, kernel

# Words of a page in the table of `encode_pages`. Ends are exclusive; the kernel writes the last three: the bytes
# of `out` where the repetition levels, all levels and the values end.
(
    W_FIRST_ENTRY,
    W_LAST_ENTRY,
    W_FIRST_VALUE,
    W_LAST_VALUE,
    W_ENCODING,
    W_BIT_WIDTH,
    W_REPETITION_END,
    W_LEVELS_END,
    W_END,
) = range(9)
W_FIELDS = 9

# How values lie in memory: bytes of one, or one of these.
BINARY_VALUES, BIT_VALUES = 0, -1


@helper
def table_bits(room):
    """Return log2 of a hash table's size for `room` entries: a crowded table costs more than a large one."""
    most = 18
    while (1 << most) < 2 * room:
        most += 1
    bits = 4
    while bits < most and (1 << bits) < 8 * room:
        bits += 1
    return bits


@helper
def clear_table(table, bits):
    """Set the ``1 << bits`` slots of a hash table to 0."""
    for slot in range(1 << bits):
        table[slot] = 0


@kernel("u1 x i8 x x i4 x x u1 i4 i8")
def index_fixed_chunks(
    values, width, bounds, num_chunks, page_size, table, probe_count, probe_entries, dictionary, codes, counts
):
    """Index the values of each chunk as `index_fixed` does; `counts` takes its entries, or a negative status.

    Chunk c has the values bounds[c] to bounds[c + 1] (exclusive). The entries of all follow each other.
    """
    pos = 0
    for chunk in range(num_chunks):
        first = bounds[chunk]
        count = bounds[chunk + 1] - first
        room = max(min(count, page_size // width), 1)
        bits = table_bits(room)
        clear_table(table, bits)
        found = index_fixed(
            values[first * width :],
            width,
            count,
            table,
            bits,
            room,
            probe_count,
            probe_entries,
            dictionary[pos:],
            codes[first:],
        )
        counts[chunk] = found
        pos += max(found, 0) * width
    return 0


@kernel("u1 x i8 i8 i8 x x i4 i8 x x i4 i4 i8")
def index_binary_chunks(
    data,
    data_size,
    starts,
    ends,
    bounds,
    num_chunks,
    page_size,
    table,
    known,
    probe_count,
    probe_entries,
    firsts,
    codes,
    counts,
):
    """Index binary values of each chunk as `index_binary` does; `counts` and `bounds` as in `index_fixed_chunks`.

    `firsts` takes the first occurrence of each entry, by its number among all values.
    """
    pos = 0
    for chunk in range(num_chunks):
        first = bounds[chunk]
        count = bounds[chunk + 1] - first
        room = max(min(count, page_size // 4), 1)
        bits = table_bits(room)
        clear_table(table, bits)
        found = index_binary(
            data,
            data_size,
            starts[first:],
            ends[first:],
            count,
            table,
            known,
            bits,
            room,
            page_size,
            probe_count,
            probe_entries,
            firsts[pos:],
            codes[first:],
        )
        counts[chunk] = found
        for i in range(pos, pos + max(found, 0)):
            firsts[i] += first
        pos += max(found, 0)
    return 0


@helper
def write_levels(levels, maximum, first, last, prefixed, out, pos):
    """Write a page's levels of one kind, in V1 pages after their length; return the new position.

    A negative `maximum` stands for levels that are all at it; 0 writes nothing.
    """
    if maximum == 0:
        return pos
    start = pos
    pos += 4 * prefixed
    if maximum < 0:
        if last > first:
            pos = write_run_header(out, pos, (last - first) << 1)
            store8(out, pos, -maximum)
            pos += 1
    else:
        width = 0
        while maximum >> width:
            width += 1
        pos = encode_hybrid_u1(levels, first, last, width, out, pos)
    if prefixed:
        store32(out, start, pos - start - 4)
    return pos


@kernel("i8 x x x u1 x u1 x u1 x x i8 i8 i4 i8 i4 u1")
def encode_pages(
    pages,
    first_page,
    last_page,
    version,
    repetition,
    max_repetition,
    definition,
    max_definition,
    data,
    data_size,
    width,
    starts,
    ends,
    data4,
    data8,
    codes,
    out,
):
    """Write pages `first_page` to `last_page` (exclusive) one after another, and their ends; return the last end.

    Levels are as in `write_levels`; a page in another encoding than those below gets its levels only.
    """
    pos = 0
    for page in range(first_page, last_page):
        at = page * W_FIELDS
        first_entry, last_entry = pages[at + W_FIRST_ENTRY], pages[at + W_LAST_ENTRY]
        first, last = pages[at + W_FIRST_VALUE], pages[at + W_LAST_VALUE]
        encoding = pages[at + W_ENCODING]
        prefixed = np.int64(version == 1)
        pos = write_levels(repetition, max_repetition, first_entry, last_entry, prefixed, out, pos)
        pages[at + W_REPETITION_END] = pos
        pos = write_levels(definition, max_definition, first_entry, last_entry, prefixed, out, pos)
        pages[at + W_LEVELS_END] = pos
        if encoding == RLE_DICTIONARY:
            bit_width = pages[at + W_BIT_WIDTH]
            store8(out, pos, bit_width)
            pos = encode_hybrid_i4(codes, first, last, bit_width, out, pos + 1)
        elif encoding == DELTA_BINARY_PACKED and width == 4:
            pos = encode_deltas(data4, first, last, 32, out, pos)
        elif encoding == DELTA_BINARY_PACKED and width == 8:
            pos = encode_deltas(data8, first, last, 0, out, pos)
        elif encoding == RLE:
            end = encode_hybrid_u1(data, first, last, 1, out, pos + 4)
            store32(out, pos, end - pos - 4)
            pos = end
        elif encoding == PLAIN:
            if width == BINARY_VALUES:
                pos = encode_plain_binary(data, data_size, starts, ends, first, last, out, pos)
            elif width == BIT_VALUES:
                pos = encode_plain_booleans(data, first, last, out, pos)
            else:
                copy_bytes(out, pos, data, first * width, (last - first) * width)
                pos += (last - first) * width
        pages[at + W_END] = pos
    return pos
