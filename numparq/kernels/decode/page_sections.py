"""Level and value sections of a data page, its validity, and its selected rows."""

from __future__ import annotations

from numparq.kernels.enums import DATA_PAGE_V2, RLE
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_COUNT
from numparq.kernels.tables import (
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_ROW_START,
    C_ROW_STOP,
    C_VALIDITY,
    CHUNK_FIELDS,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_DEFINITION_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_NULLS,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_ROW,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
)

from .levels import check_section_end, check_zero_levels, decode_validity, find_level_section
from .pad_nulls import count_valid

# Sections of a page: items of the kernels' `state` after those that the caller reads.
LEVELS_POS, LEVELS_END, VALUES_POS, VALUES_END = 4, 5, 6, 7
VALUES_STOP = 8  # where the values decoded last end; what follows them in their section is ignored
STATE_FIELDS = 9


@helper
def find_sections(chunks, chunk, pages, page, raw, scratch, sections):
    """Store where the level and the value section of a data page are; return 0 or a status.

    Positions are in the raw buffer, or in the scratch buffer for sections that were compressed.
    """
    body = pages[page + P_BODY]
    optional = chunks[chunk + C_MAX_DEFINITION] > 0
    if pages[page + P_TYPE] == DATA_PAGE_V2:
        levels = body + pages[page + P_REPETITION_BYTES]
        level_bytes = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
        sections[LEVELS_POS] = levels
        sections[LEVELS_END] = levels + pages[page + P_DEFINITION_BYTES]
        if pages[page + P_IS_COMPRESSED]:
            sections[VALUES_POS] = pages[page + P_SCRATCH]
            sections[VALUES_END] = sections[VALUES_POS] + pages[page + P_UNCOMPRESSED] - level_bytes
        else:
            sections[VALUES_POS] = body + level_bytes
            sections[VALUES_END] = body + pages[page + P_COMPRESSED]
        status = check_zero_levels(raw, body, levels, pages[page + P_NUM_VALUES])
        if not optional and status >= 0:
            status = check_zero_levels(raw, levels, sections[LEVELS_END], pages[page + P_NUM_VALUES])
        return status
    compressed = pages[page + P_IS_COMPRESSED] != 0
    start = pages[page + P_SCRATCH] if compressed else body
    end = start + (pages[page + P_UNCOMPRESSED] if compressed else pages[page + P_COMPRESSED])
    sections[LEVELS_POS] = start
    sections[LEVELS_END] = start
    if optional:
        pos, stop = find_level_section(
            scratch if compressed else raw, start, end, pages[page + P_NUM_VALUES], pages[page + P_DEFINITION_ENCODING]
        )
        if pos < 0:
            return pos
        sections[LEVELS_POS] = pos
        sections[LEVELS_END] = stop
    sections[VALUES_POS] = sections[LEVELS_END]
    sections[VALUES_END] = end
    return 0


@helper
def end_values(sections, pos):
    """Store where the values of a page end; return 0, or `pos` if that is a status."""
    sections[VALUES_STOP] = pos
    return min(pos, 0)


@helper
def decode_page_validity(chunks, chunk, pages, page, raw, scratch, sections, validity, valid_pos):
    """Decode the validity of a data page; return the number of values present, or a status."""
    num_values = pages[page + P_NUM_VALUES]
    num_nulls = pages[page + P_NUM_NULLS]
    present = num_values
    if chunks[chunk + C_MAX_DEFINITION] > 0:
        start = sections[LEVELS_POS]
        end = sections[LEVELS_END]
        if pages[page + P_TYPE] == DATA_PAGE_V2:
            stop, present = decode_validity(raw, start, end, num_values, RLE, validity, valid_pos)
            stop = check_section_end(stop, end)
        else:
            data = scratch if pages[page + P_IS_COMPRESSED] else raw
            encoding = pages[page + P_DEFINITION_ENCODING]
            stop, present = decode_validity(data, start, end, num_values, encoding, validity, valid_pos)
        if stop < 0:
            return stop
    return present if num_nulls < 0 or present == num_values - num_nulls else BAD_COUNT


@helper
def rows_in_range(chunks, chunk, pages, page):
    """Return the selected rows of a data page, counted within it: start and exclusive end."""
    first = max(chunks[chunk + C_ROW_START] - pages[page + P_ROW], 0)
    last = min(chunks[chunk + C_ROW_STOP] - pages[page + P_ROW], pages[page + P_NUM_VALUES])
    return first, last


@helper
def open_page(chunks, chunk, pages, page, raw, scratch, levels, sections):
    """Store the sections of a data page, and decode its validity to `levels`.

    Return the number of values present (or a status), the page's first selected row, the number of selected rows, and
    how many values come before these rows, and how many are theirs. Pages without selected rows are not looked at.
    """
    start, stop = rows_in_range(chunks, chunk, pages, page)
    count = stop - start
    if count <= 0:
        return 0, start, 0, 0, 0
    status = find_sections(chunks, chunk, pages, page, raw, scratch, sections)
    if status < 0:
        return status, start, count, 0, 0
    present = decode_page_validity(chunks, chunk, pages, page, raw, scratch, sections, levels, 0)
    if present < 0 or present == pages[page + P_NUM_VALUES]:
        return present, start, count, start, count
    return present, start, count, count_valid(levels, 0, start), count_valid(levels, start, count)


@kernel("i8 x i8 x")
def bound_chunks(chunks, num_chunks, pages, num_pages):
    """Bound the rows of chunks to those of data pages, in order; C_VALIDITY becomes a chunk's first row among all.

    Null counts become 0. Return the number of rows.
    """
    number = 0
    rows = 0
    for which in range(num_chunks):
        chunk = which * CHUNK_FIELDS
        first = number * PAGE_FIELDS
        while number < num_pages and pages[number * PAGE_FIELDS + P_CHUNK] == which:
            number += 1
        stop = chunks[chunk + C_ROW_START]
        if number * PAGE_FIELDS > first:
            last = (number - 1) * PAGE_FIELDS
            stop = min(chunks[chunk + C_ROW_STOP], pages[last + P_ROW] + pages[last + P_NUM_VALUES])
            chunks[chunk + C_ROW_START] = max(chunks[chunk + C_ROW_START], pages[first + P_ROW])
        chunks[chunk + C_ROW_STOP] = max(stop, chunks[chunk + C_ROW_START])
        chunks[chunk + C_VALIDITY] = rows
        chunks[chunk + C_NULL_COUNT] = 0
        rows += chunks[chunk + C_ROW_STOP] - chunks[chunk + C_ROW_START]
    return rows


@helper
def find_value_section(chunks, chunk, pages, page, raw, scratch):
    """Return the bytes of levels kept before a data page's values (or a status), and their start and end.

    Positions are in the scratch buffer if the section was compressed, else in the raw buffer.
    """
    compressed = pages[page + P_IS_COMPRESSED] != 0
    pos = pages[page + P_SCRATCH] if compressed else pages[page + P_BODY]
    end = pos + (pages[page + P_UNCOMPRESSED] if compressed else pages[page + P_COMPRESSED])
    if pages[page + P_TYPE] == DATA_PAGE_V2:  # its levels are never compressed
        levels = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
        return 0, (pos if compressed else pos + levels), (end - levels if compressed else end)
    if chunks[chunk + C_MAX_DEFINITION] == 0:
        return 0, pos, end
    count = pages[page + P_NUM_VALUES]
    status, stop = find_level_section(
        scratch if compressed else raw, pos, end, count, pages[page + P_DEFINITION_ENCODING]
    )
    if status < 0:
        return status, 0, 0
    return stop - pos, stop, end
