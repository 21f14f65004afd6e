"""Python objects from values: each distinct object is built once, then taken by index."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from numparq.kernels.objects.strings import DECODE_ERROR, NULL_OBJECT
from numparq.kernels.status import check_status

_CHUNK_ROWS = 1 << 15  # rows at a time: their indices fit the CPU cache
_BUILT_ROWS = 1 << 12
_SAMPLE_ROWS = 1024


def null_mask(validity: np.ndarray | None, null_count: int) -> np.ndarray | None:
    """Return a bool array that is True at nulls, or None if there are none."""
    if validity is None or null_count == 0:
        return None
    mask: np.ndarray = np.logical_not(validity.view(bool))
    return mask


def take_objects(table: np.ndarray, indices: np.ndarray, lowest: int = 0) -> np.ndarray:
    """Return ``table[indices - lowest]`` as an object array; every index must be within the table."""
    out = np.empty(len(indices), object)
    shifted = np.empty(min(_CHUNK_ROWS, len(indices)), np.intp)
    for start in range(0, len(indices), _CHUNK_ROWS):
        part = indices[start : start + _CHUNK_ROWS]
        places = shifted[: len(part)]
        np.subtract(part, lowest, out=places, casting="unsafe")
        np.take(table, places, out=out[start : start + _CHUNK_ROWS], mode="clip")
    return out


def build_objects(values: np.ndarray, make: Callable[[np.ndarray], Any]) -> np.ndarray:
    """Return an object for each value, built some rows at a time: the lists that `make` returns are temporary."""
    out = np.empty(len(values), object)
    for start in range(0, len(values), _BUILT_ROWS):
        part = values[start : start + _BUILT_ROWS]
        out[start : start + len(part)] = make(part)
    return out


def distinct_objects(values: np.ndarray, make: Callable[[np.ndarray], list[Any]]) -> np.ndarray:
    """Return an object for each integer, built once per distinct value if a sample shows many repeats.

    `make` returns the list of objects of an array.
    """
    sample = values[:: max(1, len(values) // _SAMPLE_ROWS)]
    if len(np.unique(sample)) * 2 < len(sample):
        codes, distinct = pd.factorize(values)
        return take_objects(build_objects(distinct, make), codes)
    return build_objects(values, make)


def uuid_objects(values: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Return `uuid.UUID` objects of 16-byte big-endian items, None at nulls."""
    out = build_objects(values, lambda part: [uuid.UUID(int=int.from_bytes(item, "big")) for item in part.tolist()])
    mask = null_mask(validity, null_count)
    if mask is not None:
        out[mask] = None
    return out


def str_object_array(offsets: np.ndarray, data: np.ndarray, validity: np.ndarray | None, na: object) -> np.ndarray:
    """Return str objects of UTF-8 data and offsets (int64, one more than values), `na` where validity is 0.

    Raises CorruptPageError for invalid UTF-8 or offsets outside the data.
    """
    from numparq.kernels.kernel_groups import object_kernels

    arguments, out = _binary_arguments(offsets, data, validity, na)
    check_status(object_kernels.build_str_objects(*arguments, ascii_head(), out))
    return out


def bytes_object_array(offsets: np.ndarray, data: np.ndarray, validity: np.ndarray | None, na: object) -> np.ndarray:
    """Return bytes objects; parameters are those of `str_object_array`."""
    from numparq.kernels.kernel_groups import object_kernels

    arguments, out = _binary_arguments(offsets, data, validity, na)
    check_status(object_kernels.build_bytes_objects(*arguments, out))
    return out


def _binary_arguments(
    offsets: np.ndarray, data: np.ndarray, validity: np.ndarray | None, na: object
) -> tuple[tuple[Any, ...], np.ndarray]:
    """Return the arguments that both kernels take, and the array for the objects."""
    count = len(offsets) - 1
    constants = np.empty(2, object)
    constants[NULL_OBJECT], constants[DECODE_ERROR] = na, UnicodeDecodeError
    mask = data[:0] if validity is None else validity
    return (offsets, data, len(data), mask, int(validity is not None), count, constants), np.empty(count, object)


@lru_cache(maxsize=1)
def ascii_head() -> int:
    """Return the offset of the characters in an ASCII str object; 0 if they are not found there."""
    sample = "".join(("ab", "c"))  # new: one in use may have its UTF-8 cached, which __sizeof__ counts
    head = sample.__sizeof__() - len(sample) - 1
    return head if ctypes.string_at(id(sample) + head, len(sample) + 1) == b"abc\0" else 0
