"""Kernels that make Python objects of binary values: str and bytes, one for each row, without a loop in Python."""

from __future__ import annotations

import numpy as np

from ..errors import BAD_LENGTH, BAD_UTF8, NO_MEMORY, check
from .memory import load8, load64
from .pyapi import address_of, clear_error, copy_to, current_error, decode_utf8, decref, incref, new_bytes, new_str
from .registry import helper, kernel

_HIGH_BITS = np.uint64(0x8080808080808080)
_NO_BITS = np.uint64(0)
_ASCII_HEAD = "".__sizeof__() - 1  # bytes of an ASCII str object before its characters
_MISSING, _DECODE_ERROR = 0, 1  # items of `constants`


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
def make_string(data, pos, size):
    """Make a str of UTF-8; its address, or 0 with the error set."""
    if size > 1 and is_ascii(data, pos, size):
        made = new_str(size, 127)
        if made != 0:
            copy_to(made + _ASCII_HEAD, data, pos, size)
        return made
    return decode_utf8(address_of(data, pos), size, 0)  # of up to one character there are ready-made ones


@helper
def put_object(out, i, made):
    """Put an object, whose reference is handed over, in place of the one that is there."""
    before = out[i]
    out[i] = made
    decref(before)


@helper
def failure(constants):
    """Clear the error that is set; what it was, as a status."""
    status = BAD_UTF8 if current_error() == constants[_DECODE_ERROR] else NO_MEMORY
    clear_error()
    return status


@kernel("i8 u1 x u1 x x O O", gil=True)
def make_strings(offsets, data, size, validity, masked, count, constants, out):
    """Make a str of each value.

    Parameters
    ----------
    offsets : int64, count + 1
        Value i is bytes offsets[i] to offsets[i + 1] of `data`.
    data, size : uint8, int
        UTF-8, and how many bytes of it there are.
    validity, masked : uint8, int
        One byte a row, 0 for a null, where `masked` is not 0.
    count : int
        Rows.
    constants : object, 2
        What stands for a null; the class UnicodeDecodeError.
    out : object, count
        The strings.

    Returns
    -------
    int
        0, or a negative status.
    """
    for i in range(count):
        if masked and validity[i] == 0:
            made = constants[_MISSING]
            incref(made)
        else:
            start = offsets[i]
            end = offsets[i + 1]
            if start < 0 or end < start or end > size:
                return BAD_LENGTH
            made = make_string(data, start, end - start)
            if made == 0:
                return failure(constants)
        put_object(out, i, made)
    return 0


@kernel("i8 u1 x u1 x x O O", gil=True)
def make_byte_strings(offsets, data, size, validity, masked, count, constants, out):
    """Make a bytes object of each value; the parameters are those of `make_strings`.

    Returns
    -------
    int
        0, or a negative status.
    """
    for i in range(count):
        if masked and validity[i] == 0:
            made = constants[_MISSING]
            incref(made)
        else:
            start = offsets[i]
            end = offsets[i + 1]
            if start < 0 or end < start or end > size:
                return BAD_LENGTH
            made = new_bytes(address_of(data, start), end - start)
            if made == 0:
                return failure(constants)
        put_object(out, i, made)
    return 0


def make_str_array(offsets: np.ndarray, data: np.ndarray, validity: np.ndarray | None, na: object) -> np.ndarray:
    """Make an array of str objects.

    Parameters
    ----------
    offsets : int64, shape (n + 1,)
        Value i is bytes offsets[i] to offsets[i + 1] of `data`.
    data : uint8
        UTF-8.
    validity : uint8, shape (n,), or None
        1 where there is a value; None where there is one everywhere.
    na : object
        What stands for a null.

    Returns
    -------
    object, shape (n,)
        The strings.

    Raises
    ------
    CorruptPageError
        When a value is not valid UTF-8, or the offsets are not within `data`.
    """
    return _objects("make_strings", offsets, data, validity, na)


def make_bytes_array(offsets: np.ndarray, data: np.ndarray, validity: np.ndarray | None, na: object) -> np.ndarray:
    """Make an array of bytes objects; the parameters are those of `make_str_array`.

    Returns
    -------
    object, shape (n,)
        The bytes objects.
    """
    return _objects("make_byte_strings", offsets, data, validity, na)


def _objects(name: str, offsets: np.ndarray, data: np.ndarray, validity: np.ndarray | None, na: object) -> np.ndarray:
    from . import object_kernels

    count = len(offsets) - 1
    constants = np.empty(2, object)
    constants[_MISSING], constants[_DECODE_ERROR] = na, UnicodeDecodeError
    mask = data[:0] if validity is None else validity
    out = np.empty(count, object)
    call = getattr(object_kernels, name)
    check(call(offsets, data, len(data), mask, int(validity is not None), count, constants, out))
    return out
