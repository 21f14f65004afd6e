"""Kernels that take str and bytes objects apart: their sizes in UTF-8 first, then the bytes, without a loop in Python.

They look into the objects as CPython lays them out; `numparq.shred.text` checks that it is so, and goes another way
where it is not. They hold the GIL, and keep no reference: nothing that they call can free an object.
"""

from __future__ import annotations

import numpy as np

from ..errors import BAD_LENGTH, BAD_UTF8, BAD_VALUE
from .addresses import bits_at, byte_at, copy_from, half_at, int64_at, word_at
from .memory import popcount, store8
from .registry import helper, inlined, kernel

# Items of `constants`: what stands for nulls, and the types that are told apart.
NONE, NA, NAT, FLOAT, FLOAT64, STR, BYTES = range(7)
# Items of `layout`: how a str is laid out.
KIND_SHIFT, COMPACT_BIT, ASCII_BIT, ASCII_HEAD, COMPACT_HEAD, BYTES_HEAD = range(6)

_TYPE, _SIZE, _STATE, _FLOAT_VALUE = 8, 16, 32, 16  # where they stand in an object
_HIGH_BITS = np.uint64(0x8080808080808080)
_INFINITY_BITS = 0x7FF0000000000000
_MAGNITUDE_BITS = 0x7FFFFFFFFFFFFFFF
_NO_TEXT = -1
_NULL = 0
_VALUE = 1


@inlined
def is_null(object_, type_, constants):
    """Whether an object stands for a null: None, NA, NaT, a float that is NaN, or no object at all."""
    if object_ == 0 or object_ == constants[NONE] or object_ == constants[NA] or object_ == constants[NAT]:
        return True
    if type_ == constants[FLOAT] or type_ == constants[FLOAT64]:
        return (int64_at(object_ + _FLOAT_VALUE) & _MAGNITUDE_BITS) > _INFINITY_BITS
    return False


@helper
def latin_size(address, count):
    """Count the bytes of UTF-8 that characters below 256, of a byte each, take."""
    end = address + count
    while end - address >= 8:
        count += popcount(bits_at(address) & _HIGH_BITS)
        address += 8
    while address < end:
        count += byte_at(address) >> 7
        address += 1
    return count


@inlined
def character_size(character):
    """Count the bytes of UTF-8 that a character takes; a negative number for a surrogate."""
    if character < 0x80:
        return 1
    if character < 0x800:
        return 2
    if character < 0x10000:
        return _NO_TEXT if 0xD800 <= character < 0xE000 else 3
    return 4


@helper
def wide_size(address, count, width):
    """Count the bytes of UTF-8 that characters of 2 or 4 bytes each take; `_NO_TEXT` where one is a surrogate."""
    size = 0
    for i in range(count):
        taken = character_size(half_at(address + 2 * i) if width == 2 else word_at(address + 4 * i))
        if taken < 0:
            return _NO_TEXT
        size += taken
    return size


@inlined
def text_size(object_, layout):
    """Count the bytes of a str in UTF-8; `_NO_TEXT` where it has lone surrogates."""
    count = int64_at(object_ + _SIZE)
    state = word_at(object_ + _STATE)
    if (state >> layout[ASCII_BIT]) & 1:
        return count
    width = (state >> layout[KIND_SHIFT]) & 7
    if width == 1:
        return latin_size(object_ + layout[COMPACT_HEAD], count)
    return wide_size(object_ + layout[COMPACT_HEAD], count, width)


@helper
def put_character(out, pos, character):
    """Write a character, which is no surrogate, as UTF-8; where the next one goes."""
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
def put_text(object_, layout, out, pos):
    """Write a str that is not ASCII."""
    address = object_ + layout[COMPACT_HEAD]
    width = (word_at(object_ + _STATE) >> layout[KIND_SHIFT]) & 7
    for i in range(int64_at(object_ + _SIZE)):
        if width == 1:
            character = byte_at(address + i)
        elif width == 2:
            character = half_at(address + 2 * i)
        else:
            character = word_at(address + 4 * i)
        pos = put_character(out, pos, character)
    return pos


@kernel("O x O i8 i8 u1", gil=True)
def measure_strings(objects, count, constants, layout, offsets, validity):
    """Find where the UTF-8 of each str goes.

    Parameters
    ----------
    objects, count : object, int
        The strings, and how many there are; None, NaN, NaT and NA are nulls.
    constants : object, 7
        By `NONE` and its like.
    layout : int64, 6
        By `KIND_SHIFT` and its like.
    offsets : int64, count + 1
        Output: string i goes to bytes offsets[i] to offsets[i + 1].
    validity : uint8, count
        Output: 0 for a null, else 1.

    Returns
    -------
    int
        How many bytes they take together. BAD_UTF8 where one has lone surrogates, BAD_VALUE where an object is not
        exactly a str, or one of an old form.
    """
    total = 0
    offsets[0] = 0
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + _TYPE)
        if type_ == constants[STR]:
            if (word_at(object_ + _STATE) >> layout[COMPACT_BIT]) & 1 == 0:
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
def copy_strings(objects, count, constants, layout, offsets, validity, out):
    """Write the UTF-8 of each str to where `measure_strings` found that it goes.

    Returns
    -------
    int
        How many bytes they take together. BAD_LENGTH where an object is not the one that was measured.
    """
    for i in range(count):
        if validity[i] == _NULL:
            continue
        object_ = objects[i]
        start = offsets[i]
        size = offsets[i + 1] - start
        if object_ == 0 or int64_at(object_ + _TYPE) != constants[STR]:
            return BAD_LENGTH
        if (word_at(object_ + _STATE) >> layout[COMPACT_BIT]) & 1 == 0 or text_size(object_, layout) != size:
            return BAD_LENGTH
        if (word_at(object_ + _STATE) >> layout[ASCII_BIT]) & 1:
            copy_from(out, start, object_ + layout[ASCII_HEAD], size)
        else:
            put_text(object_, layout, out, start)
    return offsets[count]


@kernel("O x O i8 u1", gil=True)
def measure_bytes(objects, count, constants, offsets, validity):
    """Find where each bytes object goes; the parameters are those of `measure_strings`.

    Returns
    -------
    int
        How many bytes they take together. BAD_VALUE where an object is not exactly a bytes object.
    """
    total = 0
    offsets[0] = 0
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + _TYPE)
        if type_ == constants[BYTES]:
            total += int64_at(object_ + _SIZE)
            validity[i] = _VALUE
        elif is_null(object_, type_, constants):
            validity[i] = _NULL
        else:
            return BAD_VALUE
        offsets[i + 1] = total
    return total


@kernel("O x O i8 i8 u1 u1", gil=True)
def copy_bytes_objects(objects, count, constants, layout, offsets, validity, out):
    """Write each bytes object to where `measure_bytes` found that it goes; returns as `copy_strings`."""
    for i in range(count):
        if validity[i] == _NULL:
            continue
        object_ = objects[i]
        start = offsets[i]
        size = offsets[i + 1] - start
        if object_ == 0 or int64_at(object_ + _TYPE) != constants[BYTES] or int64_at(object_ + _SIZE) != size:
            return BAD_LENGTH
        copy_from(out, start, object_ + layout[BYTES_HEAD], size)
    return offsets[count]


@kernel("O x i8 x", gil=True)
def distinct_types(objects, count, types, room):
    """List the types of objects, in the order of their first appearance.

    Parameters
    ----------
    objects, count : object, int
        The objects; no object at all counts as type 0.
    types : int64, room
        In and out: item 0 is how many are listed, then the addresses of the types.
    room : int
        Items of `types`; further types are left out.

    Returns
    -------
    int
        How many are listed.
    """
    found = types[0]
    last = types[1] if found else -1
    for i in range(count):
        object_ = objects[i]
        type_ = 0 if object_ == 0 else int64_at(object_ + _TYPE)
        if type_ == last:
            continue
        last = type_
        known = False
        for k in range(1, found + 1):
            known = known or types[k] == type_
        if not known and found + 1 < room:
            found += 1
            types[found] = type_
    types[0] = found
    return found
