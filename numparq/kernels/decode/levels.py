"""Definition and repetition levels of data pages, to validity or to one byte each."""

from __future__ import annotations

import numpy as np

from numparq.kernels.encodings.bit_packing import unpack_bits_ordered, unpack_levels
from numparq.kernels.encodings.hybrid_rle import decode_hybrid_bits, next_run
from numparq.kernels.enums import BIT_PACKED, DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE
from numparq.kernels.memory import fill_bytes, load8, load32, load64, store8
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_LEVELS, TRUNCATED
from numparq.kernels.tables import (
    ARRAY_FILLERS,
    BIT_PACKED_LOW,
    P_BODY,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_NULLS,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_REPETITION_ENCODING,
    P_ROW,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    P_UNREAD,
    PAGE_FIELDS,
)

# Items of `state`: the page of a negative status; levels, present values and rows so far; the writer's C_QUIRKS.
STATE_PAGE, STATE_LEVELS, STATE_VALUES, STATE_ROWS, STATE_QUIRKS = range(5)
STATE_FIELDS = 5


@helper
def find_level_section(data, pos, end, count, encoding):
    """Return start (or a status) and end of the one-bit levels at the start of a V1 page.

    RLE sections begin with their length in four bytes; BIT_PACKED ones (deprecated) have the size that `count` needs.
    """
    if encoding == RLE:
        if end - pos < 4:
            return TRUNCATED, 0
        size = load32(data, pos)
        if size > end - pos - 4:
            return TRUNCATED, 0
        return pos + 4, pos + 4 + size
    if encoding == BIT_PACKED or encoding == BIT_PACKED_LOW:
        size = (count + 7) >> 3
        if size > end - pos:
            return TRUNCATED, 0
        return pos, pos + size
    return BAD_LEVELS, 0


@helper
def decode_validity(data, pos, end, count, encoding, out, out_pos):
    """Decode `count` one-bit levels to bytes; return the end position or a status, and the number of values present."""
    if encoding == BIT_PACKED or encoding == BIT_PACKED_LOW:
        return end, unpack_bits_ordered(data, pos, count, 7 if encoding == BIT_PACKED else 0, out, out_pos)
    return decode_hybrid_bits(data, pos, end, count, out, out_pos)


@helper
def level_bit_width(most):
    """Return the bit width of levels from 0 to `most`."""
    width = 0
    while (most >> width) > 0:
        width += 1
    return width


@helper
def decode_hybrid_levels(data, pos, end, count, width, out, out_pos):
    """Decode `count` RLE / bit-packed levels of `width` bits (2 to 8); return the end position or a status."""
    done = 0
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    while done < count:
        pos, header, here = next_run(data, pos, end, count - done, width)
        if pos < 0:
            return pos
        if header & 1:
            bit = pos << 3
            for i in range(here):
                level = (load64(data, bit >> 3) >> np.uint64(bit & 7)) & mask
                store8(out, out_pos + done + i, np.int64(level))
                bit += width
            pos += (header >> 1) * width
        else:
            fill_bytes(out, out_pos + done, load8(data, pos), here)
            pos += 1
        done += here
    return pos


@helper
def check_section_end(pos, end):
    """Return 0 if the levels of a V2 page, whose length its header states, fill their section, else a status."""
    # Values begin at the end of the section: a wrong length, which no checksum covers, would change them.
    return min(pos, 0) if pos < 0 or pos >= end else BAD_LEVELS


@helper
def check_zero_levels(data, pos, end, count):
    """Check the section of levels that are 0 by the schema; return 0 or a status.

    It is empty, or has runs of zero bits (V2 pages of parquet-mr before 1.9).
    """
    done = 0
    while pos < end:
        pos, header, here = next_run(data, pos, end, count - done, 0)
        if pos < 0:
            return pos
        done += here
        if (header & 1 == 0 and header >> 1 > here) or (done == count and pos < end):
            return BAD_LEVELS
    return 0 if done == 0 or done == count else TRUNCATED


@helper
def decode_levels(data, pos, end, count, most, encoding, out, out_pos):
    """Decode `count` levels, 0 to `most`, to bytes; return the end position or a status.

    Levels above `most` are not refused here.
    """
    width = level_bit_width(most)
    if encoding == BIT_PACKED or encoding == BIT_PACKED_LOW:
        unpack_levels(data, pos, count, width, encoding == BIT_PACKED, out, out_pos)
        return end
    if width == 1:
        stop, _ = decode_hybrid_bits(data, pos, end, count, out, out_pos)
        return stop
    return decode_hybrid_levels(data, pos, end, count, width, out, out_pos)


@helper
def count_values(definition, at, count, most):
    """Count the levels that equal `most`, the maximum definition level; BAD_LEVELS if one is higher."""
    present = 0
    highest = 0
    for i in range(at, at + count):
        level = np.int64(definition[i])
        present += np.int64(level == most)
        highest = max(highest, level)
    return present if highest <= most else BAD_LEVELS


@helper
def count_rows(definition, repetition, at, count, most, element_levels):
    """Count the entries that begin a row; BAD_LEVELS if one continues a list that has no element there.

    ``element_levels[d]`` is the definition level from which on the list at repetition level d has an element.
    """
    rows = 0
    for i in range(at, at + count):
        depth = np.int64(repetition[i])
        if depth == 0:
            rows += 1
            continue
        if depth > most or i == 0:
            return BAD_LEVELS
        level = element_levels[depth]
        if np.int64(definition[i]) < level or np.int64(definition[i - 1]) < level:
            return BAD_LEVELS
    return rows


@helper
def drop_fillers(definition, repetition, at, count, most, element_levels):
    """Drop entries that continue a null list with the same definition level; return how many entries are left."""
    kept = at
    for i in range(at, at + count):
        level = definition[i]
        depth = np.int64(repetition[i])
        if (
            0 < depth <= most
            and kept > at
            and np.int64(level) < element_levels[depth]
            and level == definition[kept - 1]
        ):
            continue
        definition[kept] = level
        repetition[kept] = repetition[i]
        kept += 1
    return kept - at


@helper
def decode_level_section(pages, page, data, pos, end, most, encoding, out, at):
    """Decode a level section of a V1 page, if it has one; return the position after it, or a status."""
    count = pages[page + P_NUM_VALUES]
    if most == 0:
        return pos
    start, stop = find_level_section(data, pos, end, count * level_bit_width(most), encoding)
    if start < 0:
        return start
    pos = decode_levels(data, start, stop, count, most, encoding, out, at)
    if pos < 0:
        return pos
    pages[page + P_UNREAD] += max(stop - pos, 0)
    return stop


@helper
def decode_levels_v2(raw, pos, end, count, most, out, at):
    """Decode a level section of a V2 page, up to its end; return 0 or a status."""
    if most == 0:
        return check_zero_levels(raw, pos, end, count)
    return check_section_end(decode_levels(raw, pos, end, count, most, RLE, out, at), end)


@helper
def decode_levels_of_page(pages, page, raw, scratch, most_definition, most_repetition, definition, repetition, at):
    """Decode the levels of a data page and strip them from its row of the page table; return 0 or a status."""
    count = pages[page + P_NUM_VALUES]
    compressed = pages[page + P_IS_COMPRESSED] != 0
    if pages[page + P_TYPE] == DATA_PAGE_V2:
        pos = pages[page + P_BODY]
        middle = pos + pages[page + P_REPETITION_BYTES]
        stop = middle + pages[page + P_DEFINITION_BYTES]
        status = decode_levels_v2(raw, pos, middle, count, most_repetition, repetition, at)
        if status >= 0:
            status = decode_levels_v2(raw, middle, stop, count, most_definition, definition, at)
        if status < 0:
            return status
        taken = stop - pos
        if not compressed:
            pages[page + P_BODY] = stop
            pages[page + P_COMPRESSED] -= taken
        pages[page + P_UNCOMPRESSED] -= taken
        return 0
    pos = pages[page + P_SCRATCH] if compressed else pages[page + P_BODY]
    end = pos + (pages[page + P_UNCOMPRESSED] if compressed else pages[page + P_COMPRESSED])
    data = scratch if compressed else raw
    encoding = pages[page + P_REPETITION_ENCODING]
    pos = decode_level_section(pages, page, data, pos, end, most_repetition, encoding, repetition, at)
    if pos < 0:
        return pos
    encoding = pages[page + P_DEFINITION_ENCODING]
    pos = decode_level_section(pages, page, data, pos, end, most_definition, encoding, definition, at)
    if pos < 0:
        return pos
    pages[page + P_UNCOMPRESSED] = end - pos
    if compressed:
        pages[page + P_SCRATCH] = pos
    else:
        pages[page + P_BODY] = pos
        pages[page + P_COMPRESSED] = end - pos
    return 0


@kernel("i8 x x u1 u1 x x i8 u1 u1 i8")
def decode_page_levels(
    pages, first, last, raw, scratch, most_definition, most_repetition, element_levels, definition, repetition, state
):
    """Decode the levels of data pages `first` to `last`, all of one leaf column; return 0 or a status.

    The page table then describes V1 pages of a REQUIRED column: present values only, P_ROW counts values of the chunk.
    """
    for number in range(first, last):
        page = number * PAGE_FIELDS
        if pages[page + P_TYPE] == DICTIONARY_PAGE:
            continue
        state[STATE_PAGE] = number
        count = pages[page + P_NUM_VALUES]
        at = state[STATE_LEVELS]
        present, rows = count, count
        if count > 0:
            status = decode_levels_of_page(
                pages, page, raw, scratch, most_definition, most_repetition, definition, repetition, at
            )
            if status < 0:
                return status
            if most_repetition > 0 and most_definition > 0 and state[STATE_QUIRKS] & ARRAY_FILLERS != 0:
                count = drop_fillers(definition, repetition, at, count, most_repetition, element_levels)
            if most_definition > 0:
                present = count_values(definition, at, count, most_definition)
            if most_repetition > 0:
                rows = count_rows(definition, repetition, at, count, most_repetition, element_levels)
            if present < 0 or rows < 0:
                return BAD_LEVELS
        pages[page + P_TYPE] = DATA_PAGE
        pages[page + P_NUM_NULLS] = -1
        pages[page + P_NUM_VALUES] = present
        pages[page + P_ROW] = state[STATE_VALUES]
        pages[page + P_REPETITION_BYTES] = 0
        pages[page + P_DEFINITION_BYTES] = 0
        if present == 0:  # an empty section may lack even the encoding's header
            pages[page + P_ENCODING] = PLAIN
        state[STATE_LEVELS] += count
        state[STATE_VALUES] += present
        state[STATE_ROWS] += rows
    return 0
