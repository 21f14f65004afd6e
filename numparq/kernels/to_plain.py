"""Data pages in the delta encodings and BYTE_STREAM_SPLIT, made PLAIN: their rows of the page table are rewritten.

What comes after knows PLAIN and dictionaries only. So a page's values are written to another buffer as PLAIN has them,
behind a copy of what stands in front of them (the level section of version 1), and its row then says that it is PLAIN
and lies there, decompressed.

The helpers return how many bytes the PLAIN values take, or a status; they write nothing where that is more than `room`.
"""

from __future__ import annotations

from ..errors import BAD_COUNT, BAD_LENGTH, NEED_ROOM
from .byte_stream_split import join_streams
from .delta import read_deltas
from .delta_strings import copy_lengths, join_prefixes, total_length, total_with_prefixes
from .memory import copy_bytes, load32
from .registry import helper, kernel
from .tables import (
    BYTE_ARRAY,
    BYTE_STREAM_SPLIT,
    C_FAULTS,
    C_TYPE,
    C_TYPE_LENGTH,
    CHUNK_FIELDS,
    DELTA_BINARY_PACKED,
    DELTA_LENGTH_BYTE_ARRAY,
    INT32,
    P_CHUNK,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_ROW,
    PAGE_FIELDS,
    PREFIXES_GO_ON,
)
from .value_section import STATE_LAST, STATE_LAST_SIZE, STATE_NEEDED, STATE_PAGE, find_values, say_plain


@helper
def deltas_to_plain(data, pos, end, most, size, room, out, out_pos):
    """Write DELTA_BINARY_PACKED values of `size` bytes."""
    pos, count = read_deltas(data, pos, end, most, size, room, out, out_pos)
    return pos if pos < 0 else count * size


@helper
def streams_to_plain(data, pos, end, most, width, room, out, out_pos):
    """Write BYTE_STREAM_SPLIT values of `width` bytes."""
    count = (end - pos) // width if width > 0 else 0
    if count * width != end - pos:
        return BAD_LENGTH
    if count > most:
        return BAD_COUNT
    if count * width <= room:
        join_streams(data, pos, count, width, out, out_pos)
    return count * width


@helper
def lengths_to_plain(data, pos, end, most, lengths, room, out, out_pos):
    """Write DELTA_LENGTH_BYTE_ARRAY values; `lengths` has room for those of `most`."""
    pos, count = read_deltas(data, pos, end, most, 4, 4 * most, lengths, 0)
    if pos < 0:
        return pos
    total = total_length(lengths, 0, count, end - pos)
    if total >= 0 and total + 4 * count <= room:
        copy_lengths(data, pos, count, lengths, out, out_pos)
    return total + 4 * count if total >= 0 else total


@helper
def prefixes_to_plain(data, pos, end, most, width, lengths, room, out, out_pos, state):
    """Write DELTA_BYTE_ARRAY values, of `width` bytes each, or, if it is -1, of any length, with that in front.

    The string that the first one may continue is where `state` says; then it is the last one.
    """
    pos, count = read_deltas(data, pos, end, most, 4, 4 * most, lengths, 0)
    if pos < 0:
        return pos
    pos, suffixes = read_deltas(data, pos, end, most, 4, 4 * most, lengths, 4 * count)
    if pos < 0:
        return pos
    if suffixes != count:
        return BAD_COUNT
    total = total_with_prefixes(lengths, count, width, state[STATE_LAST_SIZE])
    if total < 0 or total_length(lengths, 4 * count, count, end - pos) < 0:
        return BAD_LENGTH
    prefix_size = 4 if width < 0 else 0
    total += prefix_size * count
    if total <= room:
        join_prefixes(data, pos, count, lengths, prefix_size, state[STATE_LAST], out, out_pos)
        if count > 0:
            size = load32(lengths, (count - 1) << 2) + load32(lengths, (2 * count - 1) << 2)
            state[STATE_LAST] = out_pos + total - size
            state[STATE_LAST_SIZE] = size
    return total


@helper
def values_to_plain(chunks, chunk, encoding, data, pos, end, most, lengths, room, out, out_pos, state):
    """Write a value section as PLAIN."""
    if pos >= end:  # where all are null, a writer may leave even the header out
        return 0
    width = chunks[chunk + C_TYPE_LENGTH]
    if encoding == DELTA_BINARY_PACKED:
        size = 4 if chunks[chunk + C_TYPE] == INT32 else 8
        return deltas_to_plain(data, pos, end, most, size, room, out, out_pos)
    if encoding == BYTE_STREAM_SPLIT:
        return streams_to_plain(data, pos, end, most, width, room, out, out_pos)
    if encoding == DELTA_LENGTH_BYTE_ARRAY:
        return lengths_to_plain(data, pos, end, most, lengths, room, out, out_pos)
    width = -1 if chunks[chunk + C_TYPE] == BYTE_ARRAY else width
    return prefixes_to_plain(data, pos, end, most, width, lengths, room, out, out_pos, state)


@kernel("i8 i8 x x u1 u1 u1 u1 x i8")
def decode_to_plain(chunks, pages, first, last, raw, scratch, lengths, out, room, state):
    """Make data pages PLAIN, as many of the rows `first` to `last` of the page table as there is room for.

    Parameters
    ----------
    chunks, pages : int64 tables
        The pages' rows are rewritten; all of them are in an encoding of this group that their type allows.
    first, last : int
        The pages.
    raw, scratch : uint8
        The file's bytes, and the decompressed ones.
    lengths : uint8
        Room for eight bytes for each value of the largest page of strings.
    out : uint8
        What the rewritten rows call scratch; `room` of its bytes may be used.
    state : int64, STATE_FIELDS
        Item STATE_PAGE is the page that a negative status is about. Where the writer has PREFIXES_GO_ON, the string in
        front of the first page is that of STATE_LAST_SIZE bytes at the beginning of `out`; on return the items say
        where the last one lies.

    Returns
    -------
    int
        The page behind the last one that was done, or a negative status. NEED_ROOM: not even the first one has room;
        it needs the bytes of item STATE_NEEDED.
    """
    goes_on = chunks[pages[first * PAGE_FIELDS + P_CHUNK] * CHUNK_FIELDS + C_FAULTS] & PREFIXES_GO_ON
    state[STATE_LAST] = 0
    filled = state[STATE_LAST_SIZE] if goes_on else 0
    for number in range(first, last):
        state[STATE_PAGE] = number
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        kept, pos, end = find_values(chunks, chunk, pages, page, raw, scratch)
        if kept < 0:
            return kept
        data = scratch if pages[page + P_IS_COMPRESSED] else raw
        encoding = pages[page + P_ENCODING]
        most = pages[page + P_NUM_VALUES]
        left = room - filled - kept
        target = filled + kept
        if goes_on == 0 or pages[page + P_ROW] == 0:
            state[STATE_LAST_SIZE] = 0
        size = values_to_plain(chunks, chunk, encoding, data, pos, end, most, lengths, left, out, target, state)
        if size < 0:
            return size
        if size > left:
            state[STATE_NEEDED] = filled + kept + size
            return number if number > first else NEED_ROOM
        copy_bytes(out, filled, data, pos - kept, kept)
        say_plain(pages, page, filled, kept, size)
        filled = target + size
    return last
