"""Dates, times, timestamps, durations and periods to leaf values: NumPy, pandas and Python objects."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.time_zones import portable_zone_name
from numparq.kernels.kernel_groups import text_kernels
from numparq.kernels.status import BAD_VALUE, check_status

from .column_values import (
    ColumnValues,
    Convert,
    can_read_all,
    flat_object_values,
    native_contiguous,
    present_chunks,
    sliced_values,
    validity_bytes,
)
from .object_layout import date_layout, datetime_layout, kernel_constants

_NAT = np.iinfo(np.int64).min
_MAX_SECONDS = np.iinfo(np.int64).max // 1000

_US_PER_SECOND = 1_000_000
_UNITS = ("s", "ms", "us", "ns")
_MAX_TIMEDELTA = datetime.timedelta(microseconds=(1 << 63) - 1)


def read_dates(values: np.ndarray) -> LeafValues | None:
    """Return the days since 1970 of date objects, read by a kernel, with None, NaN, NaT and NA as nulls.

    The result is None if there are other objects or the memory layout of dates is unknown.
    """
    return _read_objects(text_kernels.read_dates, values, datetime.date, date_layout(), np.int32)


def read_datetimes(values: np.ndarray) -> LeafValues | None:
    """Return the microseconds since 1970 of datetime objects without a time zone, else as `read_dates` does."""
    return _read_objects(text_kernels.read_datetimes, values, datetime.datetime, datetime_layout(), np.int64)


def _read_objects(
    kernel: Callable[..., int], values: np.ndarray, cls: type, fields: int | None, dtype: type
) -> LeafValues | None:
    if fields is None:
        return None
    objects, count = np.ascontiguousarray(values), len(values)
    out: np.ndarray = np.empty(count, dtype)
    validity = np.empty(count, np.uint8)
    present = kernel(objects, count, kernel_constants(), id(cls), fields, out, validity)
    if present == BAD_VALUE:
        return None
    return LeafValues(out, validity=None if check_status(present) == count else validity)


def _tick_leaf(values: np.ndarray) -> LeafValues:
    """Return the 64-bit integers of datetime64, timedelta64 or periods; NaT, the smallest integer, is null."""
    integers = native_contiguous(values).view(np.int64)
    return LeafValues(integers, validity=validity_bytes(integers != _NAT))


def _second_leaf(values: np.ndarray) -> LeafValues:
    """Return seconds as milliseconds, since Parquet has no timestamps in seconds."""
    leaf = _tick_leaf(values)
    present = leaf.values if leaf.validity is None else leaf.values[leaf.validity.view(bool)]
    if len(present) and max(-int(present.min()), int(present.max())) > _MAX_SECONDS:
        raise SchemaError("a timestamp is beyond the range of milliseconds, the coarsest unit of Parquet")
    return LeafValues(leaf.values * 1000, validity=leaf.validity)


def timestamp_converter(unit: str) -> Convert:
    """Return the function from datetime64 array to leaf values for a unit."""
    return _second_leaf if unit == "s" else _tick_leaf


def numpy_temporal_values(values: np.ndarray, timezone: str = "") -> ColumnValues:
    """Return the values of a datetime64 or timedelta64 array in s, ms, us or ns; SchemaError for other units.

    With a `timezone`, timestamps are UTC.
    """
    unit, count = np.datetime_data(values.dtype)
    if unit not in ("s", "ms", "us", "ns") or count != 1:
        raise SchemaError(f"a column of dtype {values.dtype} cannot be written: its unit must be s, ms, us or ns")
    if values.dtype.kind == "m":
        return sliced_values(ArrowType("duration", unit=unit), values, _tick_leaf)
    return sliced_values(ArrowType("timestamp", unit=unit, timezone=timezone), values, timestamp_converter(unit))


def zoned_timestamp_values(array: Any) -> ColumnValues:
    """Return the values of a DatetimeArray with a time zone."""
    unit = array.dtype.unit
    return numpy_temporal_values(array.asi8.view(f"M8[{unit}]"), portable_zone_name(array.dtype.tz))


def period_values(array: Any) -> ColumnValues:
    """Return the values of a PeriodArray: its ordinals, like pandas' Arrow extension type."""
    metadata = json.dumps({"freq": array.freqstr})
    arrow_type = ArrowType("int", 64, extension="pandas.period", extension_metadata=metadata)
    return sliced_values(arrow_type, array.asi8, _tick_leaf)


def date_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of `datetime.date` objects: days since 1970."""

    def convert(part: np.ndarray) -> np.ndarray:
        return part.astype("M8[D]").astype(np.int32)

    return flat_object_values(ArrowType("date", unit="D"), values, convert, read=read_dates)


def time_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of `datetime.time` objects: microseconds."""

    def convert(part: np.ndarray) -> np.ndarray:
        if any(value.tzinfo is not None for value in part):
            raise SchemaError("a time with a time zone cannot be written: Parquet times have no time zone")
        seconds = [(value.hour * 60 + value.minute) * 60 + value.second for value in part]
        fractions = [value.microsecond for value in part]
        return np.array(seconds, np.int64) * _US_PER_SECOND + np.array(fractions, np.int64)

    return flat_object_values(ArrowType("time", unit="us"), values, convert)


def _finest_unit(values: np.ndarray, classes: Iterable[type]) -> str:
    """Return the unit that holds timestamps or durations: microseconds, or nanoseconds if needed.

    NumPy scalars among themselves have the finest unit of any of them.
    """
    scalars = [cls for cls in classes if issubclass(cls, (np.datetime64, np.timedelta64))]
    finest = 0 if scalars else _UNITS.index("us")
    if scalars:
        found = {
            np.datetime_data(value.dtype)[0] if hasattr(value, "dtype") else "us"
            for part in present_chunks(values)
            for value in part
        }
        finest = max(_UNITS.index(unit) if unit in _UNITS else 0 for unit in found)
    if any(issubclass(cls, (pd.Timestamp, pd.Timedelta)) for cls in classes):
        odd = any(
            getattr(value, "nanosecond", getattr(value, "nanoseconds", 0))
            for part in present_chunks(values)
            for value in part
        )
        finest = _UNITS.index("ns") if odd else finest
    return _UNITS[finest]


def _object_ticks(part: np.ndarray, dtype: str) -> np.ndarray:
    """Return timestamps or durations as integers of a unit; SchemaError if one is out of range."""
    exact = np.empty(len(part), object)
    exact[:] = [getattr(value, "asm8", value) for value in part]  # pandas' scalars keep nanoseconds as NumPy's
    coarse = f"{dtype[0]}8[s]"
    # NumPy converts Python timedeltas by way of microseconds, which wrap around, whatever the unit.
    wrapped = any(isinstance(value, datetime.timedelta) and abs(value) > _MAX_TIMEDELTA for value in exact)
    try:
        found = exact.astype(dtype)
    except OverflowError:  # of NumPy 2.5 and later, which does not wrap around
        wrapped = True
    with suppress(OverflowError):  # which refuses to round the least second down
        wrapped = wrapped or bool((found.astype(coarse) != exact.astype(coarse)).any())
    if wrapped:
        raise SchemaError(f"a timestamp or duration is beyond the range of {dtype}, the unit that other values need")
    return found.view(np.int64)


def datetime_objects(values: np.ndarray, classes: Iterable[type]) -> ColumnValues:
    """Return the values of `datetime.datetime` objects, local or in the time zone of the first.

    Raises SchemaError if only some have a time zone.
    """
    read = read_datetimes if can_read_all(values, read_datetimes) else None
    unit, zone = ("us", None) if read else (_finest_unit(values, classes), _time_zone(values))
    arrow_type = ArrowType("timestamp", unit=unit, timezone="" if zone is None else portable_zone_name(zone))
    dtype = f"M8[{'ms' if unit == 's' else unit}]"  # Parquet has no timestamps in seconds

    def convert(part: np.ndarray) -> np.ndarray:
        if zone is None:
            return _object_ticks(part, dtype)
        ticks: np.ndarray = pd.DatetimeIndex(pd.to_datetime(part, utc=True)).as_unit(unit).asi8
        return ticks

    return flat_object_values(arrow_type, values, convert, read=read)


def _time_zone(values: np.ndarray) -> Any:
    """Return the time zone of the first datetime, None for local time; SchemaError if only some have one."""
    zones: dict[Any, None] = {}
    for part in present_chunks(values):
        zones.update(dict.fromkeys(getattr(value, "tzinfo", None) for value in part))
    if None in zones and len(zones) > 1:
        raise SchemaError("some datetimes have a time zone, and some have none: one column cannot hold both")
    return next(iter(zones))


def timedelta_objects(values: np.ndarray, classes: Iterable[type]) -> ColumnValues:
    """Return the values of `datetime.timedelta` objects."""
    unit = _finest_unit(values, classes)
    return flat_object_values(ArrowType("duration", unit=unit), values, lambda part: _object_ticks(part, f"m8[{unit}]"))
