"""str and bytes objects to the bytes of a file: by kernels where CPython lays objects out as they expect it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from ..errors import BAD_UTF8, BAD_VALUE, SchemaError, check
from ..kernels import text_kernels

Encoded = tuple[np.ndarray, np.ndarray, np.ndarray]

# Where the bits of a str's state are: kind (3 bits), compact, ASCII. CPython to 3.13, and from 3.14.
_STATES = ((2, 5, 6), (16, 19, 20))
_STATE, _TYPE, _SIZE = 32, 8, 16
_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}  # by bytes of a character
_SAMPLE_BYTES = b"\x00sample\xff"


class _Subclass(str):
    """A str that is not compact."""


@lru_cache(maxsize=1)
def object_layout() -> np.ndarray | None:
    """Find out how str and bytes objects lie in memory.

    Returns
    -------
    int64 or None
        For the kernels; None where it is none of the ways that they know.
    """
    # New strings: one that is in use may have its UTF-8 attached, which counts as its size.
    samples = [("".join(("ab", tail)), kind, ascii_) for tail, kind, ascii_ in
               (("c", 1, 1), ("é", 1, 0), ("中", 2, 0), ("\U0001f600", 4, 0))]  # fmt: skip
    sizes = [sample.__sizeof__() - 4 * kind for sample, kind, _ in samples]
    heads = [sizes[0], sizes[1], bytes.__basicsize__ - 1]
    contents = [ctypes.string_at(id(sample) + size, 3 * kind) for (sample, kind, _), size in
                zip(samples, sizes, strict=True)]  # fmt: skip
    if contents != [sample.encode(_CODECS[kind]) for sample, kind, _ in samples] or len(set(sizes[1:])) > 1:
        return None
    if ctypes.string_at(id(_SAMPLE_BYTES) + heads[2], len(_SAMPLE_BYTES)) != _SAMPLE_BYTES:
        return None
    if _int64(id("ab") + _TYPE) != id(str) or _int64(id(b"abc") + _SIZE) != 3 or _int64(id("abcd") + _SIZE) != 4:
        return None
    for kind_shift, compact, ascii_bit in _STATES:
        right = [
            (state >> kind_shift & 7, state >> compact & 1, state >> ascii_bit & 1) == (kind, 1, ascii_)
            for state, kind, ascii_ in ((_word(id(sample) + _STATE), kind, ascii_) for sample, kind, ascii_ in samples)
        ]
        odd = _Subclass("é")
        if all(right) and not _word(id(odd) + _STATE) >> compact & 1:
            return np.array([kind_shift, compact, ascii_bit, *heads], np.int64)
    return None


def _int64(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _word(address: int) -> int:
    return ctypes.c_uint32.from_address(address).value


@lru_cache(maxsize=1)
def constants() -> np.ndarray:
    """Give what kernels compare objects and their types with, in the order of `numparq.kernels.text`."""
    found = np.empty(7, object)
    found[:] = [None, pd.NA, pd.NaT, float, np.float64, str, bytes]
    return found


def encode_strings(values: np.ndarray, first_row: int = 0) -> Encoded:
    """Encode str objects as UTF-8.

    Parameters
    ----------
    values : object
        The strings; None, NaN, NaT and NA are nulls.
    first_row : int
        What an error calls the first of them.

    Returns
    -------
    data : uint8
        The strings, one behind the other.
    offsets : int64, one more than values
        String i is ``data[offsets[i]:offsets[i + 1]]``.
    validity : uint8
        0 for a null, else 1.

    Raises
    ------
    SchemaError
        When a string holds lone surrogates, which UTF-8 cannot express, or is none; its row is named.
    """
    layout = object_layout()
    if layout is None:
        return _encoded_slowly(values, first_row, _utf8)
    objects, known = np.ascontiguousarray(values), constants()
    offsets, validity = np.empty(len(values) + 1, np.int64), np.empty(len(values), np.uint8)
    size = text_kernels.measure_strings(objects, len(objects), known, layout, offsets, validity)
    if size in (BAD_UTF8, BAD_VALUE):  # an error that is to be told, or strings of a class of their own
        return _encoded_slowly(values, first_row, _utf8)
    data = np.empty(check(size), np.uint8)
    check(text_kernels.copy_strings(objects, len(objects), known, layout, offsets, validity, data), SchemaError)
    return data, offsets, validity


def encode_bytes(values: np.ndarray, first_row: int = 0) -> Encoded:
    """Put bytes objects one behind the other; parameters and returns are those of `encode_strings`.

    Raises
    ------
    SchemaError
        When an object is neither bytes, bytearray nor memoryview; its row is named.
    """
    layout = object_layout()
    if layout is None:
        return _encoded_slowly(values, first_row, _bytes)
    objects, known = np.ascontiguousarray(values), constants()
    offsets, validity = np.empty(len(values) + 1, np.int64), np.empty(len(values), np.uint8)
    size = text_kernels.measure_bytes(objects, len(objects), known, offsets, validity)
    if size == BAD_VALUE:
        return _encoded_slowly(values, first_row, _bytes)
    data = np.empty(check(size), np.uint8)
    check(text_kernels.copy_bytes_objects(objects, len(objects), known, layout, offsets, validity, data),
          SchemaError)  # fmt: skip
    return data, offsets, validity


def _utf8(value: Any) -> bytes:
    if not isinstance(value, str):
        raise SchemaError(f"a string is wanted, not a value of type {type(value).__name__}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise SchemaError(f"the string {value[:40]!r} is no Unicode text: {error.reason}") from None


def _bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise SchemaError(f"bytes are wanted, not a value of type {type(value).__name__}")
    return bytes(value)


def _encoded_slowly(values: np.ndarray, first_row: int, encode: Callable[[Any], bytes]) -> Encoded:
    present = ~pd.isna(values)
    parts = []
    for row, (value, there) in enumerate(zip(values.tolist(), present.tolist(), strict=True), first_row):
        try:
            parts.append(encode(value) if there else b"")
        except SchemaError as error:
            raise SchemaError(f"row {row}: {error.message}") from None
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets, present.view(np.uint8)


def classes_of(values: np.ndarray) -> dict[type, None]:
    """List the classes of objects, in the order of their first appearance.

    Parameters
    ----------
    values : object
        The objects.
    """
    if object_layout() is None or len(values) < _FEW:
        return dict.fromkeys(map(type, values.tolist()))
    room = np.zeros(_MANY + 1, np.int64)
    found = 0
    for start in range(0, len(values), _CHUNK):
        part = np.ascontiguousarray(values[start : start + _CHUNK])
        found = text_kernels.distinct_types(part, len(part), room, len(room))
    if found >= _MANY:
        return dict.fromkeys(map(type, values.tolist()))
    return dict.fromkeys(_class_at(address) for address in room[1 : found + 1].tolist())


_FEW, _MANY, _CHUNK = 64, 32, 1 << 20


def _class_at(address: int) -> type:
    return ctypes.cast(address, ctypes.py_object).value if address else type(None)
