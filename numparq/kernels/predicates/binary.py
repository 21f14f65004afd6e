"""Binary values matched against ranges and LIKE patterns."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, load32, load64
from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.words import big_endian_prefix, swap_bytes

from .fixed import hash_slot
from .masks import combine, is_decided

SEGMENT_START, SEGMENT_END, HEAD, HEAD_MASK, WHOLE_HEAD, NUM_WILDCARDS, SEGMENT_FIELDS = range(
    7
)  # of a piece of a pattern


@inlined
def string_start(offsets, item, width, i):
    """Give where a string begins."""
    if item == 4:
        return load32(offsets, 4 * i)
    if item == 8:
        return np.int64(load64(offsets, 8 * i))
    return i * width


@inlined
def compare_words(first, second):
    """Compare two words: negative, 0 or positive."""
    return (1 if first > second else 0) - (1 if first < second else 0)


@helper
def compare_strings(data, size, start, end, other, other_size, other_start, other_end):
    """Compare two strings as unsigned bytes: negative, 0 or positive."""
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


@helper
def count_edges_below(data, size, start, end, edges, edges_size, places, num_edges, words, low, shared):
    """Count the edges that a string is not below, where it begins with the word of edge `low`, behind what all share.

    It is not below those in front; those that have the same word are compared with it.
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
            order = (end - start) - (stop - edge)  # with the same word, the longer one has zeros behind
        if order >= 0:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def count_words_below(words, steps, word):
    """Count the words that are less than one, without a jump that could be guessed wrong."""
    place = np.uint64(0)  # unsigned: Numba would look whether an index is negative
    for step in range(steps):
        half = np.uint64(1 << (steps - 1 - step))
        place += half * np.uint64(words[place + half - np.uint64(1)] < word)
    return np.int64(place)


@kernel("u8 x u8 i8 x")
def fill_word_table(words, num_edges, table, firsts, shift):
    """Fill a table of the different words of edges, as `fill_key_table`, and with each its first edge."""
    last = (1 << (64 - shift)) - 1
    for i in range(num_edges):
        if i == 0 or words[i] != words[i - 1]:
            slot = hash_slot(words[i], shift)
            while table[slot] != words[0] and i > 0:
                slot = (slot + 1) & last
            table[slot] = words[i]
            firsts[slot] = i
    return num_edges


@inlined
def find_edge(table, firsts, shift, empty, none, word):
    """Give the first of the edges that have a word; `none` if none has it."""
    last = (1 << (64 - shift)) - 1
    slot = hash_slot(word, shift)
    while (table[slot] != word) & (table[slot] != empty):
        slot = (slot + 1) & last
    return firsts[slot] if table[slot] == word else none


@kernel("u1 x u1 x x u1 x i8 x u8 x u8 i8 x x x u1 x x x x u1")
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
    table,
    firsts,
    shift,
    shared,
    flip,
    validity,
    has_validity,
    opens,
    keeps,
    count,
    out,
):
    """Join whether strings are in ranges.

    Parameters
    ----------
    data, size : uint8 array, int
        The strings, and how many bytes there are.
    edges, edges_size : uint8 array, int
        Where ranges begin and end, by turns, ascending, one string behind the other. An odd number leaves the last
        range without an end.
    places : int64 array
        Where each edge begins, and where the last one ends.
    words : uint64 array
        The first eight bytes of each edge behind what all share, big-endian; ``(1 << steps) - 1`` items, of which
        those behind the edges' have all bits set.
    table, firsts, shift : uint64 array, int64 array, int
        If all ranges are of a single string: the different words of edges, in ``1 << (64 - shift)`` slots, and of each
        the first edge; both as `fill_word_table` fills them, with the first word and 0 in all of them before. Else
        `shift` is 0.
    shared : int
        The bytes with which all edges begin.
    flip : int
        What the first word of a string is xor-ed with: 0, or where strings are numbers of one width in big-endian
        two's complement, and edges such numbers with the sign bit turned round, the top bit; then nothing is shared.
    """
    turned = np.uint64(np.int64(flip))
    for i in range(count):
        before = out[i]
        if is_decided(before, opens, keeps):
            out[i] = 1 if opens == 1 else 0
            continue
        if has_validity and validity[i] == 0:
            out[i] = combine(before, 0, opens, keeps)
            continue
        start = string_start(offsets, item, width, i)
        end = string_start(offsets, item, width, i + 1)
        order = 0
        if shared:
            stop = min(end, start + shared)
            order = compare_strings(data, size, start, stop, edges, edges_size, places[0], places[0] + shared)
        if order != 0:
            found = num_edges & 1 if order > 0 else 0
        else:
            word = big_endian_prefix(data, size, start + shared, end) ^ turned
            if shift:
                below = find_edge(table, firsts, shift, words[0], num_edges, word)
            else:
                below = count_words_below(words, steps, word)
            if below < num_edges and words[below] == word:
                below = count_edges_below(
                    data, size, start, end, edges, edges_size, places, num_edges, words, below, shared
                )
            found = below & 1
        out[i] = combine(before, found, opens, keeps)
    return count


# --- patterns ---------------------------------------------------------------------------------------------------------


@inlined
def is_continuation_byte(data, place):
    """Whether a byte is one that follows in a code point of several."""
    return load8(data, place) & 0xC0 == 0x80


@helper
def code_point_size(data, place, end):
    """Count the bytes of the code point at a place; 0 where there is none."""
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
    """Give the place behind a piece of a pattern that fits here; -1 where it does not."""
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
    """Give the place behind the first fit of a piece from a place on; -1 where there is none."""
    first = segments[piece + SEGMENT_START]
    stop = segments[piece + SEGMENT_END]
    head = np.uint64(segments[piece + HEAD])
    mask = np.uint64(segments[piece + HEAD_MASK])
    is_whole = segments[piece + WHOLE_HEAD]
    last = end - (stop - first)  # each item takes a byte at least
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
    """Whether the last piece fits somewhere from a place on, so that it ends with the string."""
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
    """Whether a string fits as a whole."""
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
    """Join whether strings fit a pattern, or if `negated` (1) do not.

    Parameters
    ----------
    data, size : uint8 array, int
        The strings, and how many bytes there are.
    pattern_bytes, wildcards : uint8 arrays
        What the pieces consist of: a byte, or where `ones` is 1 any one character.
    segments : int64 array
        PIECE_FIELDS items a piece, between which anything may stand: where it begins and ends in `letters`; its first
        bytes up to a character that may be any, at most eight, as a little-endian word, and the mask of these; whether
        they are all that it has; and how many of its characters may be any.
    is_text : int
        Whether a character is a code point of UTF-8, not a byte.
    """
    for i in range(count):
        before = out[i]
        if is_decided(before, opens, keeps):
            out[i] = 1 if opens == 1 else 0
            continue
        found = 0
        if not (has_validity and validity[i] == 0):
            start = string_start(offsets, item, width, i)
            end = string_start(offsets, item, width, i + 1)
            fits = matches_pattern(data, size, start, end, pattern_bytes, wildcards, segments, num_pieces, is_text)
            found = (1 if fits else 0) ^ negated
        out[i] = combine(before, found, opens, keeps)
    return count
