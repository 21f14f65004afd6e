"""Transcode data pages in delta, BYTE_STREAM_SPLIT and ALP encodings to PLAIN."""

from __future__ import annotations

from numparq.kernels.encodings.alp import alp_to_plain
from numparq.kernels.encodings.byte_stream_split import join_streams
from numparq.kernels.encodings.delta_binary_packed import read_deltas, read_header
from numparq.kernels.encodings.delta_byte_arrays import (
    total_length,
    total_prefixed_length,
    write_with_lengths,
    write_with_prefixes,
)
from numparq.kernels.enums import (
    BYTE_ARRAY,
    BYTE_STREAM_SPLIT,
    DATA_PAGE_V2,
    DELTA_BINARY_PACKED,
    DELTA_LENGTH_BYTE_ARRAY,
    DOUBLE,
    INT32,
    PLAIN,
)
from numparq.kernels.memory import copy_bytes, load32
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_COUNT, BAD_DELTA, BAD_LENGTH, NEED_ROOM
from numparq.kernels.tables import (
    C_QUIRKS,
    C_TYPE,
    C_TYPE_LENGTH,
    CHUNK_FIELDS,
    P_CHUNK,
    P_DEFINITION_BYTES,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_NULLS,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_ROW,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    P_UNREAD,
    PAGE_FIELDS,
    PREFIX_CARRYOVER,
)

from .page_sections import find_value_section

# Items of `state`: the page of the result; the bytes it needs; position in `out` and size of the last DELTA_BYTE_ARRAY
# string; end of the values in their section: what follows them is ignored.
# With PREFIX_CARRYOVER, the caller puts that string of the previous page at the start of `out`.
STATE_PAGE, STATE_NEEDED, STATE_PREVIOUS, STATE_PREVIOUS_SIZE, STATE_STOP = range(5)
STATE_FIELDS = 5


@helper
def mark_plain(pages, page, place, kept, size):
    """Rewrite the row of a page whose PLAIN values follow the `kept` bytes at `place` of the scratch buffer."""
    levels = kept
    if pages[page + P_TYPE] == DATA_PAGE_V2:
        levels = pages[page + P_REPETITION_BYTES] + pages[page + P_DEFINITION_BYTES]
    pages[page + P_ENCODING] = PLAIN
    pages[page + P_IS_COMPRESSED] = 1
    pages[page + P_SCRATCH] = place
    pages[page + P_UNCOMPRESSED] = levels + size
    return 0


@kernel("i8 i8 x x u1 u1 u1 x i8")
def transcode_alp_pages(chunks, pages, first, last, raw, scratch, out, room, state):
    """Transcode ALP pages `first` to `last` to PLAIN, as many as fit in `out`; return the page after the last one done.

    Their rows are rewritten, with `out` as scratch. NEED_ROOM: the first page needs ``state[STATE_NEEDED]`` bytes.
    """
    filled = 0
    for number in range(first, last):
        state[STATE_PAGE] = number
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        kept, pos, end = find_value_section(chunks, chunk, pages, page, raw, scratch)
        if kept < 0:
            return kept
        data = scratch if pages[page + P_IS_COMPRESSED] else raw
        value_size = 8 if chunks[chunk + C_TYPE] == DOUBLE else 4
        left = room - filled - kept
        size = 0
        if pages[page + P_ENCODING] != PLAIN:  # of a leaf in lists without values, as for the delta encodings
            most = pages[page + P_NUM_VALUES]
            size, stop = alp_to_plain(data, pos, end, most, value_size, left, out, filled + kept)
            pages[page + P_UNREAD] += end - stop
        if size < 0:
            return size
        if size > left:
            state[STATE_NEEDED] = kept + size
            return number if number > first else NEED_ROOM
        copy_bytes(out, filled, data, pos - kept, kept)
        mark_plain(pages, page, filled, kept, size)
        filled += kept + size
    return last


@helper
def deltas_to_plain(data, pos, end, most, size, room, out, out_pos, state):
    """Transcode DELTA_BINARY_PACKED values of `size` bytes; return the PLAIN size, or a status."""
    pos, count = read_deltas(data, pos, end, most, size, room, out, out_pos)
    if pos < 0:
        return pos
    state[STATE_STOP] = pos
    return min(count, most) * size


@helper
def streams_to_plain(data, pos, end, most, width, room, out, out_pos):
    """Transcode BYTE_STREAM_SPLIT values of `width` bytes; return the PLAIN size, or a status."""
    count = (end - pos) // width if width > 0 else 0
    if count * width != end - pos:
        return BAD_LENGTH
    if count > most:
        return BAD_COUNT
    if count * width <= room:
        join_streams(data, pos, count, width, out, out_pos)
    return count * width


@helper
def may_have_prefixes(data, pos, end, count):
    """Whether a second delta header of as many values follows, as in DELTA_BYTE_ARRAY.

    One bit of the page header distinguishes that encoding from DELTA_LENGTH_BYTE_ARRAY.
    """
    pos, _, _, suffixes, _ = read_header(data, pos, end)
    return pos >= 0 and suffixes == count


@helper
def lengths_to_plain(data, pos, end, most, lengths, room, out, out_pos, state):
    """Transcode DELTA_LENGTH_BYTE_ARRAY values; return the PLAIN size, or a status."""
    pos, count = read_deltas(data, pos, end, most, 4, 4 * most, lengths, 0)
    if pos < 0:
        return pos
    if count > most:  # the strings begin behind all lengths
        return BAD_COUNT
    total = total_length(lengths, 0, count, end - pos)
    if total < 0:
        return total
    if total < end - pos and may_have_prefixes(data, pos, end, count):
        return BAD_DELTA
    if total + 4 * count <= room:
        write_with_lengths(data, pos, count, lengths, out, out_pos)
    state[STATE_STOP] = pos + total
    return total + 4 * count


@helper
def prefixes_to_plain(data, pos, end, most, width, lengths, room, out, out_pos, state):
    """Transcode DELTA_BYTE_ARRAY values of `width` bytes (-1: BYTE_ARRAY); return the PLAIN size, or a status.

    `state` locates the string that the first value may continue, and then the last one.
    """
    pos, count = read_deltas(data, pos, end, most, 4, 4 * most, lengths, 0)
    if pos < 0:
        return pos
    if count > most:
        return BAD_COUNT
    pos, suffixes = read_deltas(data, pos, end, most, 4, 4 * most, lengths, 4 * count)
    if pos < 0:
        return pos
    if suffixes != count:
        return BAD_COUNT
    total = total_prefixed_length(lengths, count, width, state[STATE_PREVIOUS_SIZE])
    stored = total_length(lengths, 4 * count, count, end - pos)
    if total < 0 or stored < 0:
        return BAD_LENGTH
    prefix_size = 4 if width < 0 else 0
    total += prefix_size * count
    state[STATE_STOP] = pos + stored
    if total <= room:
        write_with_prefixes(data, pos, count, lengths, prefix_size, state[STATE_PREVIOUS], out, out_pos)
        if count > 0:
            size = load32(lengths, (count - 1) << 2) + load32(lengths, (2 * count - 1) << 2)
            state[STATE_PREVIOUS] = out_pos + total - size
            state[STATE_PREVIOUS_SIZE] = size
    return total


@helper
def value_section_to_plain(chunks, chunk, encoding, data, pos, end, most, lengths, room, out, out_pos, state):
    """Transcode a value section; return the PLAIN size, above `room` if it does not fit, or a status."""
    if pos >= end or encoding == PLAIN:  # if all are null, a writer may omit even the header; in lists PLAIN says so
        return 0
    width = chunks[chunk + C_TYPE_LENGTH]
    if encoding == DELTA_BINARY_PACKED:
        size = 4 if chunks[chunk + C_TYPE] == INT32 else 8
        return deltas_to_plain(data, pos, end, most, size, room, out, out_pos, state)
    if encoding == BYTE_STREAM_SPLIT:
        return streams_to_plain(data, pos, end, most, width, room, out, out_pos)
    if encoding == DELTA_LENGTH_BYTE_ARRAY:
        return lengths_to_plain(data, pos, end, most, lengths, room, out, out_pos, state)
    width = -1 if chunks[chunk + C_TYPE] == BYTE_ARRAY else width
    return prefixes_to_plain(data, pos, end, most, width, lengths, room, out, out_pos, state)


@kernel("i8 i8 x x u1 u1 u1 u1 x i8")
def transcode_delta_pages(chunks, pages, first, last, raw, scratch, lengths, out, room, state):
    """Transcode delta and BYTE_STREAM_SPLIT pages to PLAIN, as `transcode_alp_pages` does.

    `lengths` has room for eight bytes per value of the largest page of strings.
    """
    goes_on = chunks[pages[first * PAGE_FIELDS + P_CHUNK] * CHUNK_FIELDS + C_QUIRKS] & PREFIX_CARRYOVER
    state[STATE_PREVIOUS] = 0
    filled = state[STATE_PREVIOUS_SIZE] if goes_on else 0
    for number in range(first, last):
        state[STATE_PAGE] = number
        page = number * PAGE_FIELDS
        chunk = pages[page + P_CHUNK] * CHUNK_FIELDS
        kept, pos, end = find_value_section(chunks, chunk, pages, page, raw, scratch)
        if kept < 0:
            return kept
        data = scratch if pages[page + P_IS_COMPRESSED] else raw
        encoding = pages[page + P_ENCODING]
        most = pages[page + P_NUM_VALUES]
        left = room - filled - kept
        target = filled + kept
        if goes_on == 0 or pages[page + P_ROW] == 0:
            state[STATE_PREVIOUS_SIZE] = 0
        state[STATE_STOP] = end
        size = value_section_to_plain(chunks, chunk, encoding, data, pos, end, most, lengths, left, out, target, state)
        if size < 0:
            return size
        if size > left:
            state[STATE_NEEDED] = filled + kept + size
            return number if number > first else NEED_ROOM
        copy_bytes(out, filled, data, pos - kept, kept)
        if encoding == BYTE_STREAM_SPLIT and pos < end:  # where a value lies depends on how many the section has
            pages[page + P_NUM_NULLS] = most - size // chunks[chunk + C_TYPE_LENGTH]
        pages[page + P_UNREAD] += end - state[STATE_STOP]
        mark_plain(pages, page, filled, kept, size)
        filled = target + size
    return last
