"""The value section of a data page, and what the page table says once its values have been made PLAIN elsewhere."""

from __future__ import annotations

from .levels import level_section
from .registry import helper
from .tables import (
    C_MAX_DEFINITION,
    DATA_PAGE_V2,
    P_BODY,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    PLAIN,
)

# Items of `state`, of the kernels that make pages PLAIN: the page that the answer is about; the bytes that it needs;
# and where in `out` the last string with a prefix lies, and its length.
STATE_PAGE, STATE_NEEDED, STATE_LAST, STATE_LAST_SIZE = range(4)
STATE_FIELDS = 4


@helper
def find_values(chunks, chunk, pages, page, raw, scratch):
    """Find the value section of a data page: (what is kept of the bytes before it or a status, its start, its end).

    The positions are in the scratch buffer where the section was compressed, else in the raw one.
    """
    compressed = pages[page + P_IS_COMPRESSED] != 0
    pos = pages[page + P_SCRATCH] if compressed else pages[page + P_BODY]
    end = pos + (pages[page + P_UNCOMPRESSED] if compressed else pages[page + P_COMPRESSED])
    if pages[page + P_TYPE] == DATA_PAGE_V2:  # its levels are never compressed: they stay where they are
        levels = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
        return 0, (pos if compressed else pos + levels), (end - levels if compressed else end)
    if chunks[chunk + C_MAX_DEFINITION] == 0:
        return 0, pos, end
    count = pages[page + P_NUM_VALUES]
    status, stop = level_section(scratch if compressed else raw, pos, end, count, pages[page + P_DEFINITION_ENCODING])
    if status < 0:
        return status, 0, 0
    return stop - pos, stop, end


@helper
def say_plain(pages, page, place, kept, size):
    """Rewrite the row of a page whose PLAIN values lie behind the `kept` bytes at `place` of the scratch buffer."""
    levels = kept
    if pages[page + P_TYPE] == DATA_PAGE_V2:
        levels = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
    pages[page + P_ENCODING] = PLAIN
    pages[page + P_IS_COMPRESSED] = 1
    pages[page + P_SCRATCH] = place
    pages[page + P_UNCOMPRESSED] = levels + size
    return 0
