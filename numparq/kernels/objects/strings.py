"""str and bytes objects built from offsets and bytes, and copied back into them."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, load64, popcount, store8
from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.status import BAD_LENGTH, BAD_UTF8, BAD_VALUE, NO_MEMORY

from .cpython import (
    address_of,
    clear_error,
    copy_from,
    copy_to,
    current_error,
    decode_utf8,
    decref,
    has_new_str,
    incref,
    int64_at,
    new_bytes,
    new_str,
    uint8_at,
    uint16_at,
    uint32_at,
    uint64_at,
)
from .types import BYTES, SIZE_OFFSET, STATE_OFFSET, STR, TYPE_OFFSET, is_null

_HIGH_BITS = np.uint64(0x8080808080808080)
_NO_BITS = np.uint64(0)
NULL_OBJECT, DECODE_ERROR = 0, 1  # items of `constants`

# Items of `layout`: bits and offsets of str and bytes objects.
KIND_SHIFT, COMPACT_BIT, ASCII_BIT, ASCII_HEAD, COMPACT_HEAD, BYTES_HEAD = range(6)

_NO_TEXT = -1
_NULL = 0
_VALUE = 1


@helper
def is_ascii(data, pos, size):
    """Whether `size` bytes are all below 128."""
    end = pos + size
    bits = _NO_BITS
    while end - pos >= 8:
        bits |= load64(data, pos)
        pos += 8
    rest = 0
    while pos < end:
        rest |= load8(data, pos)
        pos += 1
    return (bits & _HIGH_BITS) == _NO_BITS and rest < 128


@helper
def make_string(data, pos, size, ascii_head):
    """Build a str from UTF-8; return its address, or 0 with the error set.

    `ascii_head` is the offset of an ASCII str's characters, 0 if that is not known.
    """
    if size > 1 and ascii_head > 0 and has_new_str() and is_ascii(data, pos, size):
        made = new_str(size, 127)
        if made != 0:
            copy_to(made + ascii_head, data, pos, size)
        return made
    return decode_utf8(address_of(data, pos), size, 0)  # CPython caches strs of up to one character


@helper
def replace_object(out, i, made):
    """Replace an object of an array; the reference to the new one is taken over."""
    before = out[i]
    out[i] = made
    decref(before)


@helper
def clear_error_status(constants):
    """Clear the error that is set and return it as a status."""
    status = BAD_UTF8 if current_error() == constants[DECODE_ERROR] else NO_MEMORY
    clear_error()
    return status


@kernel("i8 u1 x u1 x x O x O", gil=True)
def build_str_objects(offsets, data, size, validity, masked, count, constants, ascii_head, out):
    """Build a str from each value, bytes ``offsets[i]`` to ``offsets[i + 1]`` of `data`; return 0 or a status.

    `validity` counts only if `masked` is not 0. `constants` are the object for nulls and the class UnicodeDecodeError.
    `ascii_head` is the offset of an ASCII str's characters, 0 if that is not known.
    """
    for i in range(count):
        if masked and validity[i] == 0:
            made = constants[NULL_OBJECT]
            incref(made)
        else:
            start = offsets[i]
            end = offsets[i + 1]
            if start < 0 or end < start or end > size:
                return BAD_LENGTH
            made = make_string(data, start, end - start, ascii_head)
            if made == 0:
                return clear_error_status(constants)
        replace_object(out, i, made)
    return 0


@kernel("i8 u1 x u1 x x O O", gil=True)
def build_bytes_objects(offsets, data, size, validity, masked, count, constants, out):
    """Build a bytes object from each value, as `build_str_objects` does; return 0 or a status."""
    for i in range(count):
        if masked and validity[i] == 0:
            made = constants[NULL_OBJECT]
            incref(made)
        else:
            start = offsets[i]
            end = offsets[i + 1]
            if start < 0 or end < start or end > size:
                return BAD_LENGTH
            made = new_bytes(address_of(data, start), end - start)
            if made == 0:
                return clear_error_status(constants)
        replace_object(out, i, made)
    return 0


@helper
def latin_size(address, count):
    """Return the UTF-8 size of `count` one-byte characters (Latin-1)."""
    end = address + count
    while end - address >= 8:
        count += popcount(uint64_at(address) & _HIGH_BITS)
        address += 8
    while address < end:
        count += uint8_at(address) >> 7
        address += 1
    return count


@inlined
def character_size(character):
    """Return the UTF-8 size of a character; negative for a surrogate."""
    if character < 0x80:
        return 1
    if character < 0x800:
        return 2
    if character < 0x10000:
        return _NO_TEXT if 0xD800 <= character < 0xE000 else 3
    return 4


@helper
def wide_size(address, count, width):
    """Return the UTF-8 size of characters of `width` 2 or 4 bytes; `_NO_TEXT` if one is a surrogate."""
    size = 0
    for i in range(count):
        taken = character_size(uint16_at(address + 2 * i) if width == 2 else uint32_at(address + 4 * i))
        if taken < 0:
            return _NO_TEXT
        size += taken
    return size


@inlined
def text_size(object_, layout):
    """Return the UTF-8 size of a str; `_NO_TEXT` if it has lone surrogates."""
    count = int64_at(object_ + SIZE_OFFSET)
    state = uint32_at(object_ + STATE_OFFSET)
    if (state >> layout[ASCII_BIT]) & 1:
        return count
    width = (state >> layout[KIND_SHIFT]) & 7
    if width == 1:
        return latin_size(object_ + layout[COMPACT_HEAD], count)
    return wide_size(object_ + layout[COMPACT_HEAD], count, width)


@helper
def write_character(out, pos, character):
    """Write a character that is no surrogate as UTF-8; return the position after it."""
    if character < 0x80:
        store8(out, pos, character)
        return pos + 1
    if character < 0x800:
        store8(out, pos, 0xC0 | (character >> 6))
        store8(out, pos + 1, 0x80 | (character & 0x3F))
        return pos + 2
    if character < 0x10000:
        store8(out, pos, 0xE0 | (character >> 12))
        store8(out, pos + 1, 0x80 | ((character >> 6) & 0x3F))
        store8(out, pos + 2, 0x80 | (character & 0x3F))
        return pos + 3
    store8(out, pos, 0xF0 | (character >> 18))
    store8(out, pos + 1, 0x80 | ((character >> 12) & 0x3F))
    store8(out, pos + 2, 0x80 | ((character >> 6) & 0x3F))
    store8(out, pos + 3, 0x80 | (character & 0x3F))
    return pos + 4


@helper
def write_text(object_, layout, out, pos):
    """Write a str that is not ASCII as UTF-8; return the position after it."""
    address = object_ + layout[COMPACT_HEAD]
    width = (uint32_at(object_ + STATE_OFFSET) >> layout[KIND_SHIFT]) & 7
    for i in range(int64_at(object_ + SIZE_OFFSET)):
        if width == 1:
            character = uint8_at(address + i)
        elif width == 2:
            character = uint16_at(address + 2 * i)
        else:
            character = uint32_at(address + 4 * i)
        pos = write_character(out, pos, character)
    return pos


@kernel("O x O i8 i8 u1", gil=True)
def measure_str_objects(objects, count, constants, layout, offsets, validity):
    """Write UTF-8 offsets and validity of str objects; return the total of bytes, or a status.

    BAD_UTF8 means lone surrogates; BAD_VALUE an object that is neither null nor exactly a str, or not a compact one.
    """
    total = 0
    offsets[0] = 0
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + TYPE_OFFSET)
        if type_ == constants[STR]:
            if (uint32_at(object_ + STATE_OFFSET) >> layout[COMPACT_BIT]) & 1 == 0:
                return BAD_VALUE
            size = text_size(object_, layout)
            if size < 0:
                return BAD_UTF8
            total += size
            validity[i] = _VALUE
        elif is_null(object_, type_, constants):
            validity[i] = _NULL
        else:
            return BAD_VALUE
        offsets[i + 1] = total
    return total


@kernel("O x O i8 i8 u1 u1", gil=True)
def copy_str_objects(objects, count, constants, layout, offsets, validity, out):
    """Write the UTF-8 of measured str objects at `offsets`; return the total of bytes.

    BAD_LENGTH means that an object is not the one that was measured.
    """
    for i in range(count):
        if validity[i] == _NULL:
            continue
        object_ = objects[i]
        start = offsets[i]
        size = offsets[i + 1] - start
        if object_ == 0 or int64_at(object_ + TYPE_OFFSET) != constants[STR]:
            return BAD_LENGTH
        if (uint32_at(object_ + STATE_OFFSET) >> layout[COMPACT_BIT]) & 1 == 0 or text_size(object_, layout) != size:
            return BAD_LENGTH
        if (uint32_at(object_ + STATE_OFFSET) >> layout[ASCII_BIT]) & 1:
            copy_from(out, start, object_ + layout[ASCII_HEAD], size)
        else:
            write_text(object_, layout, out, start)
    return offsets[count]


@kernel("O x O i8 u1", gil=True)
def measure_bytes_objects(objects, count, constants, offsets, validity):
    """Write offsets and validity of bytes objects; return the total of bytes.

    BAD_VALUE means an object that is neither null nor exactly a bytes object.
    """
    total = 0
    offsets[0] = 0
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + TYPE_OFFSET)
        if type_ == constants[BYTES]:
            total += int64_at(object_ + SIZE_OFFSET)
            validity[i] = _VALUE
        elif is_null(object_, type_, constants):
            validity[i] = _NULL
        else:
            return BAD_VALUE
        offsets[i + 1] = total
    return total


@kernel("O x O i8 i8 u1 u1", gil=True)
def copy_bytes_objects(objects, count, constants, layout, offsets, validity, out):
    """Write measured bytes objects at `offsets`; return the total of bytes, or a status as `copy_str_objects`."""
    for i in range(count):
        if validity[i] == _NULL:
            continue
        object_ = objects[i]
        start = offsets[i]
        size = offsets[i + 1] - start
        if (
            object_ == 0
            or int64_at(object_ + TYPE_OFFSET) != constants[BYTES]
            or int64_at(object_ + SIZE_OFFSET) != size
        ):
            return BAD_LENGTH
        copy_from(out, start, object_ + layout[BYTES_HEAD], size)
    return offsets[count]
