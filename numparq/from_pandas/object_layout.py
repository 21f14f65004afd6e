"""Memory layout of str, bytes, date and NumPy array objects, probed once for the kernels."""

from __future__ import annotations

import ctypes
import datetime
from functools import lru_cache

import numpy as np
import pandas as pd

from numparq.kernels.kernel_groups import text_kernels

# Bit positions in a str's state: kind (3 bits), compact, ASCII. CPython up to 3.13, and from 3.14.
_STATES = ((2, 5, 6), (16, 19, 20))
_STATE, _TYPE, _SIZE, _ITEMS = 32, 8, 16, 24
_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}  # by bytes per character
_SAMPLE_BYTES = b"\x00sample\xff"

_MIN_ROWS, _MAX_CLASSES, _CHUNK_ROWS = 64, 32, 1 << 20

_SAMPLE_DATE = datetime.date(0x0102, 3, 4)
_SAMPLE_DATETIME = datetime.datetime(0x0102, 3, 4, 5, 6, 7, 0x08090A)
_SAMPLE_ARRAY = np.arange(24, dtype="i2").reshape(6, 4)[::2]


class _NonCompactStr(str):
    """A str that is not compact."""


@lru_cache(maxsize=1)
def object_layout() -> np.ndarray | None:
    """Return the memory layout of str and bytes objects for the kernels (int64); None if they do not know it."""
    # New strings: one in use may have its UTF-8 cached, which __sizeof__ counts.
    samples = [
        ("".join(("ab", tail)), kind, ascii_)
        for tail, kind, ascii_ in (("c", 1, 1), ("é", 1, 0), ("中", 2, 0), ("\U0001f600", 4, 0))
    ]
    sizes = [sample.__sizeof__() - 4 * kind for sample, kind, _ in samples]
    heads = [sizes[0], sizes[1], bytes.__basicsize__ - 1]
    contents = [
        ctypes.string_at(id(sample) + size, 3 * kind) for (sample, kind, _), size in zip(samples, sizes, strict=True)
    ]
    if contents != [sample.encode(_CODECS[kind]) for sample, kind, _ in samples] or len(set(sizes[1:])) > 1:
        return None
    if ctypes.string_at(id(_SAMPLE_BYTES) + heads[2], len(_SAMPLE_BYTES)) != _SAMPLE_BYTES:
        return None
    if _int64(id("ab") + _TYPE) != id(str) or _int64(id(b"abc") + _SIZE) != 3 or _int64(id("abcd") + _SIZE) != 4:
        return None
    for kind_shift, compact, ascii_bit in _STATES:
        right = [
            (state >> kind_shift & 7, state >> compact & 1, state >> ascii_bit & 1) == (kind, 1, ascii_)
            for state, kind, ascii_ in (
                (_uint32(id(sample) + _STATE), kind, ascii_) for sample, kind, ascii_ in samples
            )
        ]
        odd = _NonCompactStr("é")
        if all(right) and not _uint32(id(odd) + _STATE) >> compact & 1:
            return np.array([kind_shift, compact, ascii_bit, *heads], np.int64)
    return None


def _int64(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _uint32(address: int) -> int:
    return ctypes.c_uint32.from_address(address).value


@lru_cache(maxsize=1)
def kernel_constants() -> np.ndarray:
    """Return the objects that kernels compare with, in the order of `numparq.kernels.objects.strings`."""
    found = np.empty(13, object)
    found[:] = [None, pd.NA, pd.NaT, float, np.float64, str, bytes, int, bool, True, list, tuple, dict]
    return found


def distinct_classes(values: np.ndarray) -> dict[type, None]:
    """Return the classes of objects as the keys of a dict, in order of first appearance."""
    if object_layout() is None or len(values) < _MIN_ROWS:
        return dict.fromkeys(map(type, values.tolist()))
    room = np.zeros(_MAX_CLASSES + 1, np.int64)
    found = 0
    for start in range(0, len(values), _CHUNK_ROWS):
        part = np.ascontiguousarray(values[start : start + _CHUNK_ROWS])
        found = text_kernels.distinct_types(part, len(part), room, len(room))
    if found >= _MAX_CLASSES:
        return dict.fromkeys(map(type, values.tolist()))
    return dict.fromkeys(_class_by_address(address) for address in room[1 : found + 1].tolist())


def _class_by_address(address: int) -> type:
    return ctypes.cast(address, ctypes.py_object).value if address else type(None)


@lru_cache(maxsize=1)
def date_layout() -> int | None:
    """Return the offset of year, month and day within a date object; None if they are not found."""
    return _fields_offset(_SAMPLE_DATE, bytes((1, 2, 3, 4)))


@lru_cache(maxsize=1)
def datetime_layout() -> int | None:
    """Return the offset of the fields from year to microsecond within a datetime; None if they are not found.

    The byte before them is 1 with a time zone, else 0.
    """
    found = _fields_offset(_SAMPLE_DATETIME, bytes(range(1, 11)))
    if found is None:
        return None
    zoned = _SAMPLE_DATETIME.replace(tzinfo=datetime.UTC)
    flags = [ctypes.c_uint8.from_address(id(each) + found - 1).value for each in (_SAMPLE_DATETIME, zoned)]
    return found if flags == [0, 1] else None


def _fields_offset(sample: datetime.date, fields: bytes) -> int | None:
    """Return the offset of bytes within an object; None without them, or if its type is not where kernels expect it."""
    found = ctypes.string_at(id(sample), type(sample).__basicsize__).find(fields, object.__basicsize__)
    return found if found >= 0 and _int64(id(sample) + _TYPE) == id(type(sample)) else None


@lru_cache(maxsize=1)
def knows_containers() -> bool:
    """Whether the sizes of lists, tuples and dicts, and the items of the first two, are where kernels expect them."""
    first, containers = object(), (["", ""], ("", ""), {"a": "", "b": ""})
    for sample in ([first, ""], (first, "")):
        items = id(sample) + _ITEMS if isinstance(sample, tuple) else _int64(id(sample) + _ITEMS)
        if _int64(items) != id(first):
            return False
    return all(_int64(id(each) + _TYPE) == id(type(each)) and _int64(id(each) + _SIZE) == 2 for each in containers)


@lru_cache(maxsize=1)
def array_layout() -> np.ndarray | None:
    """Return the layout of NumPy arrays, as `numparq.kernels.objects.arrays` wants it; None for an unknown one."""
    data, dimensions, shape, strides, dtype = (object.__basicsize__ + offset for offset in (0, 8, 16, 24, 40))
    sample, address = _SAMPLE_ARRAY, id(_SAMPLE_ARRAY)
    if np.ndarray.__basicsize__ < dtype + 8 or _int64(address + _TYPE) != id(np.ndarray):
        return None
    if (_int64(address + data), _uint32(address + dimensions)) != (sample.ctypes.data, sample.ndim):
        return None
    if _int64(address + dtype) != id(sample.dtype) or any(
        [_int64(_int64(address + place) + 8 * axis) for axis in range(sample.ndim)] != list(expected)
        for place, expected in ((shape, sample.shape), (strides, sample.strides))
    ):
        return None
    return np.array([id(np.ndarray), data, dimensions, shape, strides, dtype], np.int64)
