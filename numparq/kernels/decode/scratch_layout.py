"""Scratch layout: batches of pages, and where decompressed pages and dictionaries go."""

from __future__ import annotations

import numpy as np

from numparq.kernels.enums import BOOLEAN, DICTIONARY_PAGE, SNAPPY
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_DICTIONARY, BAD_RATIO
from numparq.kernels.tables import (
    B_FIRST,
    B_SNAPPY,
    B_TRANSCODER,
    BATCH_FIELDS,
    C_CAST,
    C_CODEC,
    C_DICTIONARY,
    C_ITEM_SIZE,
    C_MAX_RATIO,
    C_TYPE,
    C_TYPE_LENGTH,
    CHUNK_FIELDS,
    CODES,
    ENCODINGS,
    NO_TRANSCODER,
    P_CHUNK,
    P_COMPRESSED,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
    PHYSICAL_TYPES,
    SLACK,
)

# Items of `totals`.
T_PAGE = 0  # the page of a negative status
T_DECOMPRESSED = 1  # bytes of the largest batch, decompressed
T_VALUES = 2  # values of the largest data page
T_ITEM = 3  # bytes of the largest value, stored or cast
T_DICTIONARY = 4  # bytes of all dictionaries, cast
TOTAL_FIELDS = 5


@helper
def padded_size(size):
    """Return a size rounded up to the next position, SLACK included."""
    return (size + 2 * SLACK - 1) & -SLACK


@helper
def lay_out_dictionary(chunks, chunk, pages, page, totals):
    """Reserve space for the values of a dictionary; return 0 or a status."""
    count = pages[page + P_NUM_VALUES]
    size = pages[page + P_UNCOMPRESSED]
    stored = chunks[chunk + C_TYPE_LENGTH]
    if chunks[chunk + C_CAST] == CODES and stored <= 0:
        stored = np.int64(4)  # a BYTE_ARRAY value has at least its four bytes of length
    if count > 8 * size or (chunks[chunk + C_TYPE] != BOOLEAN and stored > 0 and count > size // stored):
        return BAD_DICTIONARY
    chunks[chunk + C_DICTIONARY] = totals[T_DICTIONARY]
    totals[T_DICTIONARY] += padded_size(count * chunks[chunk + C_ITEM_SIZE])
    return 0


@helper
def find_transcoder(chunks, chunk, pages, page, transcoders):
    """Return the transcoder of a page, if any; unknown encodings have none."""
    encoding = pages[page + P_ENCODING]
    if pages[page + P_TYPE] == DICTIONARY_PAGE or encoding < 0 or encoding >= ENCODINGS:
        return NO_TRANSCODER
    return transcoders[encoding * PHYSICAL_TYPES + chunks[chunk + C_TYPE]]


@kernel("i8 i8 x x i8 i8 i8")
def lay_out_scratch(chunks, pages, num_pages, batch_bytes, transcoders, batches, totals):
    """Divide pages into batches of about `batch_bytes`, and assign P_SCRATCH and C_DICTIONARY; return their number.

    `transcoders` has the transcoder of each encoding and physical type; a batch has pages of one transcoder.
    A sentinel batch follows the last. `totals` takes the space needed, and in T_PAGE the page of a negative status.
    """
    count = 0
    last_transcoder = NO_TRANSCODER
    filled = 0
    for item in range(TOTAL_FIELDS):
        totals[item] = 0
    for number in range(num_pages):
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        totals[T_PAGE] = number
        totals[T_ITEM] = max(totals[T_ITEM], chunks[chunk + C_ITEM_SIZE], chunks[chunk + C_TYPE_LENGTH])
        if pages[page + P_TYPE] == DICTIONARY_PAGE:
            status = lay_out_dictionary(chunks, chunk, pages, page, totals)
            if status < 0:
                return status
        else:
            totals[T_VALUES] = max(totals[T_VALUES], pages[page + P_NUM_VALUES])
        transcoder = find_transcoder(chunks, chunk, pages, page, transcoders)
        if number == 0 or filled >= batch_bytes or transcoder != last_transcoder:
            batches[count * BATCH_FIELDS + B_FIRST] = number
            batches[count * BATCH_FIELDS + B_SNAPPY] = 1
            batches[count * BATCH_FIELDS + B_TRANSCODER] = last_transcoder = transcoder
            count += 1
            filled = 0
        if pages[page + P_IS_COMPRESSED] == 0:
            continue
        size = pages[page + P_UNCOMPRESSED]
        ratio = chunks[chunk + C_MAX_RATIO]
        if ratio > 0 and size // ratio > pages[page + P_COMPRESSED] + 16:
            return BAD_RATIO
        if chunks[chunk + C_CODEC] != SNAPPY:
            batches[(count - 1) * BATCH_FIELDS + B_SNAPPY] = 0
        pages[page + P_SCRATCH] = filled
        filled += padded_size(size)
        totals[T_DECOMPRESSED] = max(totals[T_DECOMPRESSED], filled)
    batches[count * BATCH_FIELDS + B_FIRST] = num_pages
    return count
