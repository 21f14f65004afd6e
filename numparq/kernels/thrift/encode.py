"""Records of int64 words encoded as Thrift structs, by a table of operations."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import copy_bytes, store8
from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.status import BAD_VALUE, NEED_ROOM

from .wire import FALSE, I16, I32, LIST, STRUCT, TRUE, get_word, put_word

# An operation writes one field. Its words: its kind, the field's id, its word in the record, and its wire type (of a
# list the elements'; of a list of structs the number of their fields, whose operations follow).
O_KIND, O_FIELD, O_WORD, O_TYPE, OPERATION_WORDS = range(5)
# Fields of one word: INTEGER, BOOLEAN. Of two: BYTES (position and length in `data`), the lists (first word in `items`
# and number of elements), and RAW, a value that is encoded already (position and length in `data`). BEGIN and END
# enclose the fields of a struct, which is absent if all of them are.
INTEGER, BOOLEAN, BYTES, INTEGERS, BOOLEANS, BYTE_STRINGS, STRUCTS, RAW, BEGIN, END = range(10)
ABSENT = -(1 << 63)
FRAME_WORDS = 3  # per level of nested structs: last field id, position before the header, position after it
_HEADER_BYTES = 16  # more than the bytes of a field header and a number


@inlined
def write_varint(out, pos, value):
    """Write an unsigned varint; return the end position."""
    while value > np.uint64(127):
        store8(out, pos, np.int64(value & np.uint64(127)) | 128)
        value >>= np.uint64(7)
        pos += 1
    store8(out, pos, np.int64(value))
    return pos + 1


@inlined
def write_integer(out, pos, value):
    """Write a zigzag varint; return the end position."""
    return write_varint(out, pos, np.uint64((value << 1) ^ (value >> 63)))


@inlined
def write_header(out, pos, wire, field, last):
    """Write a field header; return the end position."""
    if 0 < field - last < 16:
        store8(out, pos, (field - last) << 4 | wire)
        return pos + 1
    store8(out, pos, wire)
    return write_integer(out, pos + 1, field)


@helper
def is_in_range(value, wire):
    """Whether an integer fits its type."""
    if wire == I32:
        return -(1 << 31) <= value < 1 << 31
    return wire != I16 or -(1 << 15) <= value < 1 << 15


@helper
def write_integers(table, operation, count, items, first, out, pos):
    """Write a struct of `count` integers, whose operations follow `operation`; return the end position or a status."""
    last = np.int64(0)
    for k in range(count):
        field = operation + (k + 1) * OPERATION_WORDS
        value = get_word(items, first + k)
        wire = get_word(table, field + O_TYPE)
        if not is_in_range(value, wire):
            return np.int64(BAD_VALUE)
        pos = write_integer(out, write_header(out, pos, wire, get_word(table, field + O_FIELD), last), value)
        last = get_word(table, field + O_FIELD)
    store8(out, pos, 0)
    return pos + 1


@helper
def write_elements(table, operation, items, first, count, data, out, pos, room):
    """Write a list's header and its elements; return the end position or a status."""
    kind = get_word(table, operation + O_KIND)
    wire = get_word(table, operation + O_TYPE)
    store8(out, pos, min(count, 15) << 4 | (STRUCT if kind == STRUCTS else wire))
    pos += 1
    if count >= 15:
        pos = write_varint(out, pos, np.uint64(count))
    for i in range(count):
        needed = (
            wire * _HEADER_BYTES
            if kind == STRUCTS
            else get_word(items, first + 2 * i + 1)
            if kind == BYTE_STRINGS
            else 0
        )
        if pos + _HEADER_BYTES + needed > room:
            return np.int64(NEED_ROOM)
        if kind == STRUCTS:
            pos = write_integers(table, operation, wire, items, first + i * wire, out, pos)
        elif kind == BYTE_STRINGS:
            pos = write_varint(out, pos, np.uint64(needed))
            copy_bytes(out, pos, data, get_word(items, first + 2 * i), needed)
            pos += needed
        elif kind == BOOLEANS:
            store8(out, pos, TRUE if get_word(items, first + i) else FALSE)
            pos += 1
        elif is_in_range(get_word(items, first + i), wire):
            pos = write_integer(out, pos, get_word(items, first + i))
        else:
            return np.int64(BAD_VALUE)
        if pos < 0:
            return pos
    return pos


@helper
def write_field(table, operation, words, word, items, data, last, out, pos, room):
    """Write a field that is present; return the end position or a status."""
    kind = get_word(table, operation + O_KIND)
    wire = get_word(table, operation + O_TYPE)
    field = get_word(table, operation + O_FIELD)
    first = get_word(words, word)
    if kind == INTEGER:
        if not is_in_range(first, wire):
            return np.int64(BAD_VALUE)
        return write_integer(out, write_header(out, pos, wire, field, last), first)
    if kind == BOOLEAN:
        return write_header(out, pos, TRUE if first else FALSE, field, last)
    count = get_word(words, word + 1)
    if kind == BYTES or kind == RAW:
        if pos + 2 * _HEADER_BYTES + count > room:
            return np.int64(NEED_ROOM)
        pos = write_header(out, pos, wire, field, last)
        if kind == BYTES:
            pos = write_varint(out, pos, np.uint64(count))
        copy_bytes(out, pos, data, first, count)
        return pos + count
    pos = write_header(out, pos, LIST, field, last)
    return write_elements(table, operation, items, first, count, data, out, pos, room)


@kernel("i8 x i8 x i8 u1 x i8 u1 x i8")
def write_thrift_structs(table, num_operations, words, stride, items, data, count, stack, out, room, ends):
    """Encode `count` structs of `stride` words each, one after another, and store their ends.

    Return the end position, NEED_ROOM if `out` has not enough of its `room` bytes, or BAD_VALUE.
    """
    pos = np.int64(0)
    for i in range(count):
        last = np.int64(0)
        frame = np.int64(0)
        k = np.int64(0)
        while k < num_operations:
            operation = k * OPERATION_WORDS
            kind = get_word(table, operation + O_KIND)
            field = get_word(table, operation + O_FIELD)
            k += 1 + (get_word(table, operation + O_TYPE) if kind == STRUCTS else 0)
            if pos + 2 * _HEADER_BYTES > room:
                return NEED_ROOM
            if kind == BEGIN:
                put_word(stack, frame, last)
                put_word(stack, frame + 1, pos)
                pos = write_header(out, pos, STRUCT, field, last)
                put_word(stack, frame + 2, pos)
                frame += FRAME_WORDS
                last = np.int64(0)
            elif kind == END:
                frame -= FRAME_WORDS
                if pos == get_word(stack, frame + 2):  # no field was present
                    pos = get_word(stack, frame + 1)
                    last = get_word(stack, frame)
                else:
                    store8(out, pos, 0)
                    pos += 1
                    last = field
            else:
                word = i * stride + get_word(table, operation + O_WORD)
                if get_word(words, word) != ABSENT:
                    pos = write_field(table, operation, words, word, items, data, last, out, pos, room)
                    if pos < 0:
                        return pos
                    last = field
        store8(out, pos, 0)
        pos += 1
        ends[i] = pos
    return pos
