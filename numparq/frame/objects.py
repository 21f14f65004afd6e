"""Columns of Python objects: dates, times, UUIDs, booleans beside nulls, bytes.

The objects are made once for each distinct value where that pays, and then only pointed to.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable

import numpy as np
import pandas as pd

from ..column.buffer import BinaryPiece

_CHUNK = 1 << 15  # rows at a time: their indices stay in the cache
_MIN_DAY = datetime.date.min.toordinal() - datetime.date(1970, 1, 1).toordinal()
_MAX_DAY = datetime.date.max.toordinal() - datetime.date(1970, 1, 1).toordinal()
_SMALL_TABLE = 4096
_SAMPLE = 1024
_US_OF = {"ms": 1000, "us": 1}
_US_OF_DAY = 86_400_000_000


def null_mask(validity: np.ndarray | None, null_count: int) -> np.ndarray | None:
    """Give a bool array that is True at nulls, or None where there are none."""
    if validity is None or null_count == 0:
        return None
    return np.logical_not(validity.view(bool))


def take_objects(table: np.ndarray, indices: np.ndarray, lowest: int = 0) -> np.ndarray:
    """Look objects up: item i of the result is ``table[indices[i] - lowest]``, with every index inside of the table."""
    out = np.empty(len(indices), object)
    shifted = np.empty(min(_CHUNK, len(indices)), np.intp)
    for start in range(0, len(indices), _CHUNK):
        part = indices[start : start + _CHUNK]
        places = shifted[: len(part)]
        np.subtract(part, lowest, out=places, casting="unsafe")
        np.take(table, places, out=out[start : start + _CHUNK], mode="clip")
    return out


def distinct_objects(values: np.ndarray, make: Callable[[np.ndarray], list]) -> np.ndarray:
    """Make one object of each value, or of each distinct value where a sample shows many repeats.

    Parameters
    ----------
    values : numpy.ndarray
        Integers.
    make : callable
        Gives the list of objects of an array of values.

    Returns
    -------
    numpy.ndarray
        dtype object.
    """
    sample = values[:: max(1, len(values) // _SAMPLE)]
    out = np.empty(len(values), object)
    if len(np.unique(sample)) * 2 < len(sample):
        codes, distinct = pd.factorize(values)
        table = np.empty(len(distinct), object)
        table[:] = make(distinct)
        return take_objects(table, codes)
    out[:] = make(values)
    return out


def dates(days: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Make `datetime.date` objects.

    Parameters
    ----------
    days : numpy.ndarray
        int32, days since 1970-01-01; 0 at nulls.
    validity : numpy.ndarray or None
        uint8, 1 where there is a value.
    null_count : int
        How many nulls there are.

    Returns
    -------
    numpy.ndarray
        dtype object, None at nulls. Where a day lies outside of the years 1 to 9999, which `datetime.date` cannot
        express: datetime64[s].
    """
    if len(days) == 0:
        return np.empty(0, object)
    lowest, highest = int(days.min()), int(days.max())
    mask = null_mask(validity, null_count)
    if lowest < _MIN_DAY or highest > _MAX_DAY:
        seconds = days.astype("M8[D]").astype("M8[s]")
        if mask is not None:
            seconds[mask] = np.datetime64("NaT")
        return seconds
    if highest - lowest < max(_SMALL_TABLE, len(days) // 2):
        table = np.arange(lowest, highest + 1).astype("M8[D]").astype(object)
        out = take_objects(table, days, lowest)
    else:
        out = days.astype("M8[D]").astype(object)
    if mask is not None:
        out[mask] = None
    return out


def times(values: np.ndarray, unit: str, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Make `datetime.time` objects.

    Parameters
    ----------
    values : numpy.ndarray
        int32 or int64, time since midnight; 0 at nulls.
    unit : {"ms", "us", "ns"}
        Of `values`.
    validity, null_count
        As in `dates`.

    Returns
    -------
    numpy.ndarray
        dtype object, None at nulls. Where a value is not within a day or has a fraction of a microsecond, which
        `datetime.time` cannot express: timedelta64 of the unit.
    """
    mask = null_mask(validity, null_count)
    wide = values.astype(np.int64)
    microseconds = wide * _US_OF[unit] if unit in _US_OF else wide // 1000
    inexact = unit == "ns" and bool((microseconds * 1000 != wide).any())
    if inexact or (len(wide) and (microseconds.min() < 0 or microseconds.max() >= _US_OF_DAY)):
        deltas = wide.view(f"m8[{unit}]")
        if mask is not None:
            deltas[mask] = np.timedelta64("NaT")
        return deltas
    out = distinct_objects(microseconds, _time_list)
    if mask is not None:
        out[mask] = None
    return out


def _time_list(microseconds: np.ndarray) -> list[datetime.time]:
    seconds, fraction = np.divmod(microseconds, 1_000_000)
    minutes, seconds = np.divmod(seconds, 60)
    hours, minutes = np.divmod(minutes, 60)
    return list(map(datetime.time, hours.tolist(), minutes.tolist(), seconds.tolist(), fraction.tolist()))


_BOOLEANS = np.array([False, True, None], object)


def booleans(values: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Make True, False and None objects of a bool array; the array itself where there are no nulls."""
    mask = null_mask(validity, null_count)
    if mask is None:
        return values
    codes = values.view(np.uint8)
    codes[mask] = 2
    return take_objects(_BOOLEANS, codes)


def uuids(values: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Make `uuid.UUID` objects of 16-byte items (big-endian), None at nulls."""
    out = np.empty(len(values), object)
    out[:] = [uuid.UUID(int=int.from_bytes(item, "big")) for item in values.tolist()]
    mask = null_mask(validity, null_count)
    if mask is not None:
        out[mask] = None
    return out


def fixed_bytes(values: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Make `bytes` objects of items of a fixed size, None at nulls."""
    out = np.empty(len(values), object)
    out[:] = values.tolist()
    mask = null_mask(validity, null_count)
    if mask is not None:
        out[mask] = None
    return out


def binary_objects(pieces: list[BinaryPiece], make: Callable[..., np.ndarray], null: object) -> np.ndarray:
    """Make one object array of all pieces.

    Parameters
    ----------
    pieces : list of BinaryPiece
        The rows.
    make : callable
        `make_str_array` or `make_bytes_array` of the kernels.
    null : object
        What stands for a null.

    Returns
    -------
    numpy.ndarray
        dtype object.
    """
    made = [make(piece.offsets, piece.data, piece.validity, null) for piece in pieces]
    if len(made) == 1:
        return made[0]
    return np.concatenate(made) if made else np.empty(0, object)
