"""Thrift structs decoded into records of int64 words, by a layout table."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, load64
from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.status import BAD_LENGTH, BAD_THRIFT_TYPE, BAD_VARINT, MISSING_FIELD, NEED_ROOM, TRUNCATED

from .wire import (
    BINARY,
    DOUBLE,
    FALSE,
    FRAME_WORDS,
    I16,
    I32,
    I64,
    LIST,
    S_FIELD_POSITION,
    S_FRAMES,
    S_ROOM,
    S_TOP,
    STRUCT,
    TRUE,
    get_word,
    put_word,
    read_length,
    read_list_header,
    read_varint,
    skip_field,
)

N_WORDS, N_REQUIRED, N_KNOWN, N_KEEP, N_LARGEST, N_TEMPLATE, N_START, N_SMALLEST, N_FIELDS = range(9)
F_KIND = 0  # its type on the wire; a field of another type is skipped like an unknown one
F_WORD = 1  # its word in the record; -1: skipped
F_ELEMENT = 2  # the type of a list's elements; TRUE for an enum that may be a bool
F_CHILD = 3  # the node of a struct, or of a list's elements
FIELD_WORDS = 4


@inlined
def begin_record(table, node, arena, base, pos):
    """Fill a record with the values of absent fields."""
    template = get_word(table, node + N_TEMPLATE)
    for i in range(get_word(table, node + N_WORDS)):
        put_word(arena, base + i, get_word(table, template + i))
    if get_word(table, node + N_START) >= 0:
        put_word(arena, base + get_word(table, node + N_START), pos)


@inlined
def read_integer(data, pos, end, kind, arena, word):
    """Read a zigzag varint that must fit the field's type; return the new position, or a status."""
    pos, bits = read_varint(data, pos, end)
    if pos < 0:
        return pos
    value = ((bits >> 1) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(bits & 1)
    if kind != I64:
        limit = np.int64(0x80000000) if kind == I32 else np.int64(0x8000)
        if value >= limit or value < -limit:
            return BAD_VARINT
    put_word(arena, word, value)
    return pos


@inlined
def read_value(data, pos, end, kind, arena, word):
    """Read a scalar or binary value, but not a bool field; a binary one is stored as position and length."""
    if I16 <= kind <= I64:
        return read_integer(data, pos, end, kind, arena, word)
    if kind == BINARY:
        pos, length = read_length(data, pos, end)
        if pos < 0:
            return pos
        put_word(arena, word, pos)
        put_word(arena, word + 1, length)
        return pos + length
    if kind == DOUBLE:
        if end - pos < 8:
            return TRUNCATED
        put_word(arena, word, np.int64(load64(data, pos)))
        return pos + 8
    if pos >= end:
        return TRUNCATED
    byte = load8(data, pos)
    put_word(arena, word, np.int64(byte == TRUE) if kind == TRUE else (byte ^ 0x80) - 0x80)
    return pos + 1


@inlined
def read_values(data, pos, end, kind, count, arena, first):
    """Read the elements of a list of scalars or binary values into one or two words each."""
    step = np.int64(2) if kind == BINARY else np.int64(1)
    for i in range(count):
        pos = read_value(data, pos, end, kind, arena, first + i * step)
        if pos < 0:
            return pos
    return pos


@inlined
def read_list(data, pos, end, table, field, arena, word, stack):
    """Read a list's header and its elements; for structs, only reserve their records in the arena.

    Return the position or a status, the word of the first element, and the number of structs still to be read.
    """
    pos, count, element = read_list_header(data, pos, end)
    kind = get_word(table, field + F_ELEMENT)
    words, smallest = np.int64(1), np.int64(1)
    if kind == STRUCT:
        child = get_word(table, field + F_CHILD)
        words, smallest = get_word(table, child + N_WORDS), get_word(table, child + N_SMALLEST)
    elif kind == BINARY:
        words = np.int64(2)
    first = get_word(stack, S_TOP)
    if pos < 0:
        return pos, first, count
    if count > 0 and element != kind and not (kind == TRUE and element == FALSE):
        return BAD_THRIFT_TYPE, first, count
    if count * smallest > end - pos:  # count <= bytes left, so the product is small
        return BAD_LENGTH, first, count
    if count * words > get_word(stack, S_ROOM) - first:
        return NEED_ROOM, first, count
    put_word(stack, S_TOP, first + count * words)
    put_word(arena, word, first)
    put_word(arena, word + 1, count)
    if kind == STRUCT:
        return pos, first, count
    return read_values(data, pos, end, kind, count, arena, first), first, np.int64(0)


@inlined
def find_field(table, node, field_id, wire):
    """Return a field's id and its position in the table; id 0 and its position if id or type is unknown."""
    if 0 < field_id <= get_word(table, node + N_LARGEST):
        field = node + N_FIELDS + FIELD_WORDS * field_id
        kind = get_word(table, field + F_KIND)
        may_be_bool = kind == TRUE or (kind == I32 and get_word(table, field + F_ELEMENT) == TRUE)
        if kind == wire or (wire <= FALSE and may_be_bool):
            return field_id, field
    return np.int64(0), node + N_FIELDS


@inlined
def read_field_id(data, pos, end, header, last):
    """Read a field's id, a delta in the header or a varint after it; return the position or a status, and the id."""
    if header >= 16:
        return pos, last + (header >> 4)
    pos, bits = read_varint(data, pos, end)
    return pos, ((bits >> 1) & 0x7FFF) ^ -(bits & 1)


@helper
def read_struct(data, pos, end, table, arena, base, stack):
    """Read a struct as `read_thrift_struct` does, for other kernels."""
    frame = np.int64(S_FRAMES)
    node = np.int64(0)  # layout node of the struct being read, whose record is at `base`
    base = np.int64(base)
    mask = np.int64(0)  # bits of its fields read so far
    last = np.int64(0)  # id of the last field
    more = np.int64(0)  # structs still to come, if it is an element of a list
    begin_record(table, node, arena, base, pos)
    while True:
        put_word(stack, S_FIELD_POSITION, pos)
        if pos >= end:
            return TRUNCATED
        header = load8(data, pos)
        pos += 1
        wire = header & 15
        if wire == 0:
            put_word(arena, base, mask)
            if (mask & get_word(table, node + N_REQUIRED)) != get_word(table, node + N_REQUIRED):
                return MISSING_FIELD
            if more > 0:
                more -= 1
                base += get_word(table, node + N_WORDS)
                mask = last = np.int64(0)
                begin_record(table, node, arena, base, pos)
            elif frame == S_FRAMES:
                return pos
            else:
                frame -= FRAME_WORDS
                node, base, mask = get_word(stack, frame), get_word(stack, frame + 1), get_word(stack, frame + 2)
                last, more = get_word(stack, frame + 3), get_word(stack, frame + 4)
            continue
        pos, last = read_field_id(data, pos, end, header, last)
        known, field = find_field(table, node, last, wire)
        seen = mask >> known & 1
        mask = (mask & get_word(table, node + N_KEEP)) | (get_word(table, node + N_KNOWN) & (np.int64(1) << known))
        kind = get_word(table, field + F_KIND)
        word = base + get_word(table, field + F_WORD)
        if pos < 0:
            return pos
        if word < base:
            pos = skip_field(data, pos, end, wire, stack)
        elif wire <= FALSE:
            put_word(arena, word, np.int64(wire == TRUE))
        elif kind < LIST:
            pos = read_value(data, pos, end, kind, arena, word)
        else:
            count = np.int64(1)
            if kind == LIST:
                pos, word, count = read_list(data, pos, end, table, field, arena, word, stack)
            if pos >= 0 and count > 0:
                put_word(stack, frame, node)
                put_word(stack, frame + 1, base)
                put_word(stack, frame + 2, mask)
                put_word(stack, frame + 3, last)
                put_word(stack, frame + 4, more)
                frame += FRAME_WORDS
                again = kind == LIST or seen or get_word(table, node + N_KEEP) == 0
                node, base, more = get_word(table, field + F_CHILD), word, count - 1
                mask = last = np.int64(0)
                if again:
                    begin_record(table, node, arena, base, pos)
                elif get_word(table, node + N_START) >= 0:
                    put_word(arena, base + get_word(table, node + N_START), pos)
        if pos < 0:
            return pos


@kernel("u1 x x i8 i8 x i8")
def read_thrift_struct(data, pos, end, table, arena, base, stack):
    """Read a struct, with the structs and lists in it, into records; return the position after it, or a status.

    `table` is `Layout.table`. The root's record goes to word `base` of the arena, lists to ``stack[S_TOP]`` and on.
    """
    return read_struct(data, pos, end, table, arena, base, stack)


@kernel("u1 i8 i8 i8 x i8 i8 i8")
def read_thrift_structs(data, starts, ends, places, count, table, arena, stack):
    """Read a struct at each of `count` positions into record ``places[i]`` of the arena; return `count`, or a status.

    Struct i ends before ``ends[i]``. A negative start stands for an empty struct. The other parameters are those of
    `read_thrift_struct`.
    """
    for i in range(count):
        record = get_word(places, i) * get_word(table, N_WORDS)
        start = get_word(starts, i)
        if start < 0:
            begin_record(table, np.int64(0), arena, record, np.int64(-1))
            continue
        status = read_struct(data, start, get_word(ends, i), table, arena, record, stack)
        if status < 0:
            return status
    return count


@inlined
def find_field_spans(data, pos, end, first, second, spans, base, stack):
    """Put start and end of the values of two fields to `spans`; return the position after the struct, or a status."""
    last = np.int64(0)
    while pos < end:
        header = load8(data, pos)
        pos += 1
        wire = header & 15
        if wire == 0:
            return pos
        pos, last = read_field_id(data, pos, end, header, last)
        if pos < 0:
            return pos
        start = pos
        pos = skip_field(data, pos, end, wire, stack)
        if pos < 0:
            return pos
        if last == first or last == second:
            at = base if last == first else base + 2
            put_word(spans, at, start)
            put_word(spans, at + 1, pos)
    return np.int64(TRUNCATED)


@kernel("u1 i8 i8 x i8 x x i8 i8 i8 i8")
def read_thrift_roots(data, starts, ends, count, table, first, second, arena, stack, spans, records):
    """Read structs, each with the structs and lists in it, one after the other into the arena; return how many.

    Stops before a struct for which the arena has no room. Struct i begins at ``starts[i]`` and ends before ``ends[i]``;
    ``records[i]`` becomes the word of its record, or a status. Words ``spans[4 * i]`` and on become start and end of
    the values of the fields with ids `first` and `second`, 0 and 0 of one that is absent.
    """
    words = get_word(table, N_WORDS)
    for i in range(count):
        record, start, end = get_word(stack, S_TOP), get_word(starts, i), get_word(ends, i)
        if words > get_word(stack, S_ROOM) - record:
            return i
        put_word(stack, S_TOP, record + words)
        status = read_struct(data, start, end, table, arena, record, stack)
        if status == NEED_ROOM:
            put_word(stack, S_TOP, record)
            return i
        for k in range(4):
            put_word(spans, 4 * i + k, np.int64(0))
        if status >= 0:
            status = find_field_spans(data, start, end, first, second, spans, 4 * i, stack)
        put_word(records, i, record if status >= 0 else status)
    return count
