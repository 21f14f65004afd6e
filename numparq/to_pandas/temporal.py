"""Dates, times, periods and zoned timestamps from decoded integers."""

from __future__ import annotations

import contextlib
import datetime
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.buffers import DecodedColumn
from numparq.format.key_values.time_zones import warn_of_unknown_zone
from numparq.types.output_type import OutputType

from .objects import build_objects, distinct_objects, null_mask, take_objects

_MIN_DAY = datetime.date.min.toordinal() - datetime.date(1970, 1, 1).toordinal()
_MAX_DAY = datetime.date.max.toordinal() - datetime.date(1970, 1, 1).toordinal()
_SMALL_TABLE = 4096
_US_PER_TICK = {"ms": 1000, "us": 1}
_US_PER_DAY = 86_400_000_000


def date_objects(days: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Return `datetime.date` objects, None at nulls, of days since 1970 (int32, 0 at nulls).

    If any day is outside years 1 to 9999, the result is datetime64[s].
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
        out = build_objects(days, lambda part: part.astype("M8[D]").astype(object))
    if mask is not None:
        out[mask] = None
    return out


def time_objects(values: np.ndarray, unit: str, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Return `datetime.time` objects, None at nulls, of times since midnight (0 at nulls) in ms, us or ns.

    If any value exceeds a day or has a fraction of a microsecond, the result is timedelta64 of the unit.
    """
    mask = null_mask(validity, null_count)
    if not are_times(values, unit):
        deltas = values.astype(np.int64).view(f"m8[{unit}]")
        if mask is not None:
            deltas[mask] = np.timedelta64("NaT")
        return deltas
    microseconds = _microseconds(values, unit)
    out = distinct_objects(microseconds, _to_times)
    if mask is not None:
        out[mask] = None
    return out


def are_times(values: np.ndarray, unit: str) -> bool:
    """Whether all values are within a day and whole microseconds, as `datetime.time` has them."""
    microseconds = _microseconds(values, unit)
    if unit == "ns" and bool((microseconds * 1000 != values).any()):
        return False
    return not len(values) or bool(microseconds.min() >= 0 and microseconds.max() < _US_PER_DAY)


def _microseconds(values: np.ndarray, unit: str) -> np.ndarray:
    wide = values.astype(np.int64)
    return wide * _US_PER_TICK[unit] if unit in _US_PER_TICK else wide // 1000


def _to_times(microseconds: np.ndarray) -> list[datetime.time]:
    seconds, fraction = np.divmod(microseconds, 1_000_000)
    minutes, seconds = np.divmod(seconds, 60)
    hours, minutes = np.divmod(minutes, 60)
    return list(map(datetime.time, hours.tolist(), minutes.tolist(), seconds.tolist(), fraction.tolist()))


def zoned_timestamps(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return timestamps with a time zone, in the output type's unit unless a value is out of its range."""
    values = buffer.fixed_values
    if target.unit:
        with contextlib.suppress(pd.errors.OutOfBoundsDatetime):
            values = pd.DatetimeIndex(values, copy=False).as_unit(target.unit).to_numpy()
    unit = np.datetime_data(values.dtype)[0]
    zone = target.pandas_dtype.tz if target.pandas_dtype is not None else target.type.timezone
    try:
        dtype = pd.DatetimeTZDtype(unit, zone)
    except Exception:  # zoneinfo and pandas raise various errors for an unknown name
        warn_of_unknown_zone(zone)
        dtype = pd.DatetimeTZDtype(unit, "UTC")
    return pd.array(values.view("i8"), dtype=dtype, copy=False)


def period_array(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return an array of periods."""
    return pd.arrays.PeriodArray(buffer.fixed_values, dtype=target.pandas_dtype, copy=False)
