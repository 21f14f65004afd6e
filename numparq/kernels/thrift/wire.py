"""Thrift compact protocol: varints, headers, and skipping of values."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, load64, popcount
from numparq.kernels.registry import helper, inlined
from numparq.kernels.status import BAD_LENGTH, BAD_THRIFT_TYPE, BAD_VARINT, TOO_DEEP, TRUNCATED

# Types on the wire. A bool field has no value after its header: the type is the value.
TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)

# Layout of `stack`, the work area of every reader: STACK_WORDS int64s. The caller sets the first two.
S_TOP = 0  # the arena's first free word, advanced by every list
S_ROOM = 1  # number of words of the arena
S_FIELD_POSITION = 2  # position of the last field begun, for messages
S_FRAMES = 3  # frames of the structs being read, outermost first
MAX_DEPTH = 16  # nested structs in a layout
FRAME_WORDS = 5
S_SKIPPED = S_FRAMES + MAX_DEPTH * FRAME_WORDS  # frames of the values being skipped
MAX_SKIPPED_DEPTH = 64
SKIPPED_WORDS = 2
STACK_WORDS = S_SKIPPED + MAX_SKIPPED_DEPTH * SKIPPED_WORDS

_ONE, _TWO, _FOUR = np.uint64(1), np.uint64(2), np.uint64(4)
_CONTINUED = np.uint64(0x8080808080808080)
_BITS_7 = np.uint64(0x7F7F7F7F7F7F7F7F)
_EVEN_7, _ODD_7 = np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00)
_EVEN_14, _ODD_14 = np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000)
_EVEN_28, _ODD_28 = np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000)
_LAST_OF_64 = np.int64(1)  # largest tenth byte of a varint: one bit
_INFINITE = np.int64(-1)  # elements to come of a struct being skipped: up to its stop byte


@inlined
def get_word(words, i):
    """Return ``words[i]`` without Numba's test for a negative signed index, which costs a third of the time."""
    return words[np.uint64(i)]


@inlined
def put_word(words, i, value):
    """Set ``words[i]`` without the test for a negative index."""
    words[np.uint64(i)] = value


@inlined
def read_varint(data, pos, end):
    """Read an unsigned varint; return the position or a status, and its 64 bits as an int64."""
    if pos >= end:
        return TRUNCATED, np.int64(0)
    byte = load8(data, pos)
    if byte < 0x80:
        return pos + 1, byte
    if pos + 8 > end:
        return read_varint_bytewise(data, pos, end)
    word = load64(data, pos)
    lasts = ~word & _CONTINUED  # the lowest set bit belongs to the varint's last byte
    if lasts == 0:
        return read_varint_bytewise(data, pos, end)
    whole = lasts ^ (lasts - _ONE)  # ones up to that bit, so eight per byte of the varint
    word = word & whole & _BITS_7
    word = ((word & _ODD_7) >> _ONE) | (word & _EVEN_7)
    word = ((word & _ODD_14) >> _TWO) | (word & _EVEN_14)
    word = ((word & _ODD_28) >> _FOUR) | (word & _EVEN_28)
    return pos + (popcount(whole) >> 3), np.int64(word)


@helper
def read_varint_bytewise(data, pos, end):
    """Read an unsigned varint that is long or near the end, as `read_varint` does."""
    value = np.int64(0)
    for shift in range(0, 70, 7):
        if pos >= end:
            return TRUNCATED, value
        byte = load8(data, pos)
        pos += 1
        if shift == 63 and byte > _LAST_OF_64:
            return BAD_VARINT, value
        value |= np.int64(byte & 0x7F) << np.int64(shift)
        if byte < 0x80:
            return pos, value
    return BAD_VARINT, value


@inlined
def skip_varint(data, pos, end):
    """Return the position after a varint, or a status."""
    if pos + 8 <= end:
        lasts = ~load64(data, pos) & _CONTINUED
        if lasts != 0:
            return pos + (popcount(lasts ^ (lasts - _ONE)) >> 3)
    pos, _ = read_varint_bytewise(data, pos, end)
    return pos


@inlined
def read_length(data, pos, end):
    """Read the length of a string or list; return the position or a status, and the length, at most the bytes left."""
    pos, length = read_varint(data, pos, end)
    if pos >= 0 and (length < 0 or length > end - pos):
        return BAD_LENGTH, length
    return pos, length


@inlined
def read_list_header(data, pos, end):
    """Read the header of a list or set; return the position or a status, its size and its element type.

    The size is at most the bytes left.
    """
    if pos >= end:
        return TRUNCATED, np.int64(0), np.int64(0)
    header = load8(data, pos)
    pos += 1
    size = header >> 4
    if size == 15:
        pos, size = read_length(data, pos, end)
    elif size > end - pos:
        pos = np.int64(BAD_LENGTH)
    return pos, size, header & 15


@helper
def read_map_header(data, pos, end):
    """Read the header of a map; return the position or a status, the number of entries, and both types.

    The entries are at most half of the bytes left; the types are ``key type << 4 | value type``.
    """
    pos, size = read_length(data, pos, end)
    if pos < 0 or size == 0:
        return pos, size, np.int64(0)
    if pos >= end:
        return TRUNCATED, size, np.int64(0)
    types = load8(data, pos)
    pos += 1
    if size > (end - pos) >> 1:
        pos = np.int64(BAD_LENGTH)
    return pos, size, types


@helper
def skip_sized(data, pos, end, wire):
    """Skip an I8, a double, a binary value or a UUID; return the position after it, or a status."""
    size = np.int64(1)
    if wire == BINARY:
        pos, size = read_length(data, pos, end)
        if pos < 0:
            return pos
    elif wire == DOUBLE:
        size = np.int64(8)
    elif wire == UUID:
        size = np.int64(16)
    elif wire != I8:
        return BAD_THRIFT_TYPE
    return pos + size if size <= end - pos else np.int64(TRUNCATED)


@inlined
def skip_simple_fields(data, pos, end):
    """Skip short fields of a struct; stop at long or container fields, explicit ids, the stop byte or near the end."""
    while pos + 9 <= end:
        word = np.int64(load64(data, pos))  # header and value
        wire = word & 15
        if word & 0xF0 == 0:
            break
        if I16 <= wire <= I64:
            if word & 0x8000 == 0:
                pos += 2
            elif word & 0x800000 == 0:
                pos += 3
            elif word & 0x80000000 == 0:
                pos += 4
            elif word & 0x8000000000 == 0:
                pos += 5
            else:
                break
        elif wire == BINARY and word & 0x8000 == 0:
            pos += 2 + (word >> 8 & 0x7F)
        elif TRUE <= wire <= FALSE:
            pos += 1
        else:
            break
    return pos


@helper
def skip_field(data, pos, end, wire, stack):
    """Skip the value of a field of any type, without recursion; return the position after it, or a status."""
    if wire <= FALSE:
        return pos if wire > 0 else np.int64(BAD_THRIFT_TYPE)
    frame = np.int64(S_SKIPPED)
    left = np.int64(1)
    # Element types of the container, one per nibble, the next in the low one. They are swapped with each element, which
    # serves the keys and values of maps.
    types = wire | wire << 4
    while True:
        if left == 0:  # back to the container around it
            if frame == S_SKIPPED:
                return pos
            frame -= SKIPPED_WORDS
            left = get_word(stack, frame)
            types = get_word(stack, frame + 1)
            continue
        if left == _INFINITE:
            pos = skip_simple_fields(data, pos, end)
            if pos >= end:
                return TRUNCATED
            header = load8(data, pos)
            pos += 1
            wire = header & 15
            if wire == 0:
                left = np.int64(0)
                continue
            if header < 16:
                pos = skip_varint(data, pos, end)
                if pos < 0:
                    return pos
            if wire <= FALSE:
                continue
        else:
            left -= 1
            wire = types & 15
            types = types >> 4 | wire << 4
            wire = np.int64(I8) if TRUE <= wire <= FALSE else wire
        if I16 <= wire <= I64:
            pos = skip_varint(data, pos, end)
        elif wire < LIST or wire > STRUCT:
            pos = skip_sized(data, pos, end, wire)
        else:
            if frame >= S_SKIPPED + MAX_SKIPPED_DEPTH * SKIPPED_WORDS:
                return TOO_DEEP
            put_word(stack, frame, left)
            put_word(stack, frame + 1, types)
            frame += SKIPPED_WORDS
            pos, left, types = skip_container_header(data, pos, end, wire)
        if pos < 0:
            return pos


@helper
def skip_container_header(data, pos, end, wire):
    """Skip the header of a container; return the position or a status, the elements to come or -1, and their types."""
    if wire == STRUCT:
        return pos, _INFINITE, np.int64(0)
    if wire == MAP:
        pos, size, types = read_map_header(data, pos, end)
        return pos, size << 1, types >> 4 | (types & 15) << 4
    pos, size, element = read_list_header(data, pos, end)
    return pos, size, element | element << 4
