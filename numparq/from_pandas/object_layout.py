"""CPython's memory layout of str, bytes and date objects, probed once for the kernels."""

from __future__ import annotations

import ctypes
import datetime
from functools import lru_cache

import numpy as np
import pandas as pd

from numparq.kernels import text_kernels

# Bit positions in a str's state: kind (3 bits), compact, ASCII. CPython up to 3.13, and from 3.14.
_STATES = ((2, 5, 6), (16, 19, 20))
_STATE, _TYPE, _SIZE = 32, 8, 16
_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}  # by bytes per character
_SAMPLE_BYTES = b"\x00sample\xff"

_MIN_ROWS, _MAX_CLASSES, _CHUNK_ROWS = 64, 32, 1 << 20

_SAMPLE_DATE = datetime.date(0x0102, 3, 4)


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
    found = np.empty(7, object)
    found[:] = [None, pd.NA, pd.NaT, float, np.float64, str, bytes]
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
    size = type(_SAMPLE_DATE).__basicsize__
    found = ctypes.string_at(id(_SAMPLE_DATE), size).find(bytes((1, 2, 3, 4)), object.__basicsize__)
    return (
        found if found >= 0 and ctypes.c_ssize_t.from_address(id(_SAMPLE_DATE) + 8).value == id(datetime.date) else None
    )
