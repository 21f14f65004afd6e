"""Binary values matched against ranges and LIKE patterns."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, load32, load64
from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.words import big_endian_prefix, swap_bytes

from .masks import combine, is_decided

SEGMENT_START, SEGMENT_END, HEAD, HEAD_MASK, WHOLE_HEAD, NUM_WILDCARDS, SEGMENT_FIELDS = range(
    7
)  # of a pattern segment


# Item of offsets that are the starts of PLAIN strings: int64, each with its length in the four bytes before it.
PREFIXED = -8


@inlined
def string_bounds(data, offsets, item, width, i):
    """Return where a string begins and ends: by offsets of `item` bytes (4, 8 or PREFIXED), or at a fixed `width`."""
    if item == PREFIXED:
        start = np.int64(load64(offsets, 8 * i))
        return start, start + load32(data, start - 4)
    if item == 4:
        return load32(offsets, 4 * i), load32(offsets, 4 * i + 4)
    if item == 8:
        return np.int64(load64(offsets, 8 * i)), np.int64(load64(offsets, 8 * i + 8))
    return i * width, (i + 1) * width


@inlined
def compare_words(first, second):
    """Compare two words; return -1, 0 or 1."""
    return (1 if first > second else 0) - (1 if first < second else 0)


@helper
def compare_strings(data, size, start, end, other, other_size, other_start, other_end):
    """Compare two strings as unsigned bytes; return a negative number, 0 or a positive one."""
    while (end - start >= 8) & (other_end - other_start >= 8):
        first = load64(data, start)
        second = load64(other, other_start)
        if first != second:
            return compare_words(swap_bytes(first), swap_bytes(second))
        start += 8
        other_start += 8
    order = compare_words(
        big_endian_prefix(data, size, start, end), big_endian_prefix(other, other_size, other_start, other_end)
    )
    return order if order != 0 else (end - start) - (other_end - other_start)


@kernel("u1 x i8 i8 u1 x i8 i8 x u1")
def compare_string_rows(data, size, starts, ends, other, other_size, other_starts, other_ends, count, out):
    """Compare two columns of strings row by row: 0 if the first string is less, 1 if they are equal, else 2.

    String i lies from ``starts[i]`` to ``ends[i]``.
    """
    for i in range(count):
        order = compare_strings(data, size, starts[i], ends[i], other, other_size, other_starts[i], other_ends[i])
        out[i] = compare_words(order, 0) + 1
    return count


@helper
def count_edges_below(data, size, start, end, edges, edges_size, places, num_edges, words, low, shared):
    """Count the edges up to a string that, after the shared prefix, begins with the word of edge `low`.

    Edges before `low` are below the string; those with the same word are compared with it.
    """
    word = words[low]
    first = low
    high = num_edges
    while first < high:
        middle = (first + high) >> 1
        if words[middle] == word:
            first = middle + 1
        else:
            high = middle
    skipped = shared + 8
    while low < high:
        middle = (low + high) >> 1
        edge = places[middle]
        stop = places[middle + 1]
        if end - start > skipped and stop - edge > skipped:
            order = compare_strings(data, size, start + skipped, end, edges, edges_size, edge + skipped, stop)
        else:
            order = (end - start) - (stop - edge)  # with the same word, the longer one ends with zeros
        if order >= 0:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def count_words_below(words, steps, word):
    """Count the words below a given one, by a binary search without branches."""
    place = np.uint64(0)  # unsigned: Numba tests signed indices for negative ones
    for step in range(steps):
        half = np.uint64(1 << (steps - 1 - step))
        place += half * np.uint64(words[place + half - np.uint64(1)] < word)
    return np.int64(place)


# `edges` has the start and exclusive end of each range by turns, ascending, concatenated; edge i begins at
# `places[i]`. An odd number leaves the last range open. All edges share their first `shared` bytes.
# `words` has each edge's next eight bytes, big-endian, then all ones, up to ``(1 << steps) - 1`` items.
# `flip` is xor-ed to a string's first word: the top bit for two's complement numbers of one width, else 0.
@kernel("u1 x u1 x x u1 x i8 x u8 x x x u1 x x x x u1")
def match_byte_ranges(
    data,
    size,
    offsets,
    item,
    width,
    edges,
    edges_size,
    places,
    num_edges,
    words,
    steps,
    shared,
    flip,
    validity,
    has_validity,
    opens,
    keeps,
    count,
    out,
):
    """Match strings in ranges, given by their sorted edges."""
    turned = np.uint64(np.int64(flip))
    front = min(shared, 8)
    unused = np.uint64(64 - 8 * max(front, 1))
    head = big_endian_prefix(edges, edges_size, places[0], places[0] + front) >> unused
    for i in range(count):
        before = out[i]
        if is_decided(before, opens, keeps):
            out[i] = 1 if opens == 1 else 0
            continue
        if has_validity and validity[i] == 0:
            out[i] = combine(before, 0, opens, keeps)
            continue
        start, end = string_bounds(data, offsets, item, width, i)
        order = 0
        if front:
            order = compare_words(big_endian_prefix(data, size, start, end) >> unused, head)
            if order == 0 and shared > front:
                stop = min(end, start + shared)
                order = compare_strings(
                    data, size, start + 8, stop, edges, edges_size, places[0] + 8, places[0] + shared
                )
        if order != 0:
            found = num_edges & 1 if order > 0 else 0
        else:
            word = big_endian_prefix(data, size, start + shared, end) ^ turned
            below = count_words_below(words, steps, word)
            if below < num_edges and words[below] == word:
                below = count_edges_below(
                    data, size, start, end, edges, edges_size, places, num_edges, words, below, shared
                )
            found = below & 1
        out[i] = combine(before, found, opens, keeps)
    return count


@kernel("u1 x u1 x x u1 x x u1 x x x x u1")
def match_string(
    data, size, offsets, item, width, string, length, negated, validity, has_validity, opens, keeps, count, out
):
    """Match strings that equal `string`, of `length` bytes, or if `negated` (1) do not."""
    # Strings of one length mostly differ in their last bytes: many keys end with a number.
    tail = min(length, 8)
    word = big_endian_prefix(string, length, length - tail, length)
    for i in range(count):
        found = 0
        if not (has_validity and validity[i] == 0):
            start, end = string_bounds(data, offsets, item, width, i)
            if end - start == length and big_endian_prefix(data, size, end - tail, end) == word:
                found = 1 if compare_strings(data, size, start, end, string, length, 0, length) == 0 else 0
            found ^= negated
        out[i] = combine(out[i], found, opens, keeps)
    return count


# --- LIKE patterns ----------------------------------------------------------------------------------------------------


@inlined
def is_continuation_byte(data, place):
    """Whether a byte continues a code point."""
    return load8(data, place) & 0xC0 == 0x80


@helper
def code_point_size(data, place, end):
    """Return the bytes of the code point at a position; 0 if there is none."""
    byte = load8(data, place)
    if byte < 0x80:
        return 1
    if byte < 0xC0 or byte >= 0xF8:
        return 0
    size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    if end - place < size:
        return 0
    for i in range(1, size):
        if not is_continuation_byte(data, place + i):
            return 0
    return size


@helper
def match_segment_at(data, place, end, pattern_bytes, wildcards, first, stop, is_text):
    """Return the position after a pattern segment that matches here, or -1."""
    for i in range(first, stop):
        if place >= end:
            return -1
        if wildcards[i]:
            taken = code_point_size(data, place, end) if is_text else 1
            if taken == 0:
                return -1
            place += taken
        else:
            if load8(data, place) != np.int64(pattern_bytes[i]):
                return -1
            place += 1
    return place


@helper
def find_segment(data, size, place, end, pattern_bytes, wildcards, segments, piece, is_text):
    """Return the position after the first match of a segment from `place` on, or -1."""
    first = segments[piece + SEGMENT_START]
    stop = segments[piece + SEGMENT_END]
    head = np.uint64(segments[piece + HEAD])
    mask = np.uint64(segments[piece + HEAD_MASK])
    is_whole = segments[piece + WHOLE_HEAD]
    last = end - (stop - first)  # each item matches at least one byte
    quick = min(last, size - 8)
    while place <= quick:
        if load64(data, place) & mask == head:
            if is_whole:
                return place + stop - first
            behind = match_segment_at(data, place, end, pattern_bytes, wildcards, first, stop, is_text)
            if behind >= 0:
                return behind
        place += 1
    while place <= last:
        behind = match_segment_at(data, place, end, pattern_bytes, wildcards, first, stop, is_text)
        if behind >= 0:
            return behind
        place += 1
    return -1


@helper
def matches_suffix(data, place, end, pattern_bytes, wildcards, segments, piece, is_text):
    """Whether the last segment matches the end of the string, from `place` on."""
    first = segments[piece + SEGMENT_START]
    stop = segments[piece + SEGMENT_END]
    last = end - (stop - first)
    if segments[piece + NUM_WILDCARDS] == 0 or not is_text:
        return last >= place and match_segment_at(data, last, end, pattern_bytes, wildcards, first, stop, is_text) >= 0
    while place <= last:
        if match_segment_at(data, place, end, pattern_bytes, wildcards, first, stop, is_text) == end:
            return True
        place += 1
    return False


@helper
def matches_pattern(data, size, start, end, pattern_bytes, wildcards, segments, num_pieces, is_text):
    """Whether a whole string matches the pattern."""
    place = match_segment_at(
        data, start, end, pattern_bytes, wildcards, segments[SEGMENT_START], segments[SEGMENT_END], is_text
    )
    if num_pieces == 1:
        return place == end
    last = (num_pieces - 1) * SEGMENT_FIELDS
    piece = SEGMENT_FIELDS
    while place >= 0 and piece < last:
        place = find_segment(data, size, place, end, pattern_bytes, wildcards, segments, piece, is_text)
        piece += SEGMENT_FIELDS
    return place >= 0 and matches_suffix(data, place, end, pattern_bytes, wildcards, segments, last, is_text)


@kernel("u1 x u1 x x u1 u1 i8 x x x u1 x x x x u1")
def match_like(
    data,
    size,
    offsets,
    item,
    width,
    pattern_bytes,
    wildcards,
    segments,
    num_pieces,
    is_text,
    negated,
    validity,
    has_validity,
    opens,
    keeps,
    count,
    out,
):
    """Match strings that match a LIKE pattern, or if `negated` (1) do not."""
    # Anything may stand between segments. A segment is items of `pattern_bytes`; where `wildcards` is 1, any character:
    # a UTF-8 code point if `is_text`, else a byte. Fields: start, exclusive end, the first bytes (at most eight, up to
    # a wildcard) as a little-endian word, its mask, whether it is the whole segment, and the number of wildcards.
    for i in range(count):
        before = out[i]
        if is_decided(before, opens, keeps):
            out[i] = 1 if opens == 1 else 0
            continue
        found = 0
        if not (has_validity and validity[i] == 0):
            start, end = string_bounds(data, offsets, item, width, i)
            fits = matches_pattern(data, size, start, end, pattern_bytes, wildcards, segments, num_pieces, is_text)
            found = (1 if fits else 0) ^ negated
        out[i] = combine(before, found, opens, keeps)
    return count
