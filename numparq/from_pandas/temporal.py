"""Dates, times, timestamps, durations and periods to leaf values: NumPy, pandas and Python objects."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.time_zones import portable_zone_name
from numparq.kernels import text_kernels
from numparq.kernels.status import BAD_VALUE, check_status

from .column_values import (
    ColumnValues,
    Convert,
    flat_object_values,
    flat_values,
    native_contiguous,
    present_chunks,
    row_slicer,
    validity_bytes,
)
from .object_layout import date_layout, kernel_constants

_NAT = np.iinfo(np.int64).min
_MAX_SECONDS = np.iinfo(np.int64).max // 1000

_US_PER_SECOND = 1_000_000
_UNITS = ("s", "ms", "us", "ns")
_MAX_TIMEDELTA = datetime.timedelta(microseconds=(1 << 63) - 1)


def days_by_kernel(values: np.ndarray) -> LeafValues | None:
    """Give the days since 1970 of dates.

    Parameters
    ----------
    values : object
        The dates; None, NaN, NaT and NA are nulls.

    Returns
    -------
    LeafValues or None
        None where there is something else among them, or a kernel cannot be trusted to see what they are.
    """
    fields = date_layout()
    if fields is None:
        return None
    objects, count = np.ascontiguousarray(values), len(values)
    days, validity = np.empty(count, np.int32), np.empty(count, np.uint8)
    present = text_kernels.read_dates(objects, count, kernel_constants(), id(datetime.date), fields, days, validity)
    if present == BAD_VALUE:
        return None
    return LeafValues(days, validity=None if check_status(present) == count else validity)


def _tick_leaf(values: np.ndarray) -> LeafValues:
    """Give the 64-bit integers of an array of datetime64, timedelta64 or periods; NaT is the smallest of them."""
    integers = native_contiguous(values).view(np.int64)
    return LeafValues(integers, validity=validity_bytes(integers != _NAT))


def _second_leaf(values: np.ndarray) -> LeafValues:
    """Give milliseconds of seconds: the format has no timestamps in seconds."""
    leaf = _tick_leaf(values)
    present = leaf.values if leaf.validity is None else leaf.values[leaf.validity.view(bool)]
    if len(present) and max(-int(present.min()), int(present.max())) > _MAX_SECONDS:
        raise SchemaError("a timestamp is beyond the range of milliseconds, the longest unit that Parquet has")
    return LeafValues(leaf.values * 1000, validity=leaf.validity)


def timestamp_converter(unit: str) -> Convert:
    """Give the function that makes a leaf of an array of datetime64 of a unit."""
    return _second_leaf if unit == "s" else _tick_leaf


def numpy_temporal_values(values: np.ndarray, timezone: str = "") -> ColumnValues:
    """Give the source of an array of datetime64 or timedelta64.

    Parameters
    ----------
    values : numpy.ndarray
        Of a unit from seconds to nanoseconds.
    timezone : str
        Of timestamps: the zone, where the values are moments in UTC.

    Raises
    ------
    SchemaError
        When the unit is another.
    """
    unit, count = np.datetime_data(values.dtype)
    if unit not in ("s", "ms", "us", "ns") or count != 1:
        raise SchemaError(f"a column of dtype {values.dtype} cannot be written: its unit has to be s, ms, us or ns")
    if values.dtype.kind == "m":
        return flat_values(ArrowType("duration", unit=unit), row_slicer(values), _tick_leaf)
    return flat_values(
        ArrowType("timestamp", unit=unit, timezone=timezone), row_slicer(values), timestamp_converter(unit)
    )


def zoned_timestamp_values(array: Any) -> ColumnValues:
    """Give the source of a DatetimeArray that has a time zone."""
    unit = array.dtype.unit
    return numpy_temporal_values(array.asi8.view(f"M8[{unit}]"), portable_zone_name(array.dtype.tz))


def period_values(array: Any) -> ColumnValues:
    """Give the source of a PeriodArray: its ordinals, as pandas' extension type of Arrow has it."""
    metadata = json.dumps({"freq": array.freqstr})
    arrow_type = ArrowType("int", 64, extension="pandas.period", extension_metadata=metadata)
    return flat_values(arrow_type, row_slicer(array.asi8), _tick_leaf)


def date_objects(values: np.ndarray) -> ColumnValues:
    """Give the source of `datetime.date` objects."""
    slow = flat_object_values(ArrowType("date", unit="D"), values, lambda part: part.astype("M8[D]").astype(np.int32))

    def leaves(start: int, stop: int) -> list[LeafValues]:
        found = days_by_kernel(values[start:stop])
        return slow.leaves(start, stop) if found is None else [found]

    return ColumnValues(ArrowType("date", unit="D"), leaves)


def time_objects(values: np.ndarray) -> ColumnValues:
    """Give the source of `datetime.time` objects: microseconds."""

    def convert(part: np.ndarray) -> np.ndarray:
        if any(value.tzinfo is not None for value in part):
            raise SchemaError("a time with a time zone cannot be written: Parquet's have none")
        seconds = [(value.hour * 60 + value.minute) * 60 + value.second for value in part]
        fractions = [value.microsecond for value in part]
        return np.array(seconds, np.int64) * _US_PER_SECOND + np.array(fractions, np.int64)

    return flat_object_values(ArrowType("time", unit="us"), values, convert)


def _finest_unit(values: np.ndarray, classes: Iterable[type]) -> str:
    """Find the unit that holds moments or durations: microseconds, or nanoseconds where they are needed.

    Of NumPy's own scalars the finest unit that one of them has, if there are no others.
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
    """Give the integers of moments or durations in a unit.

    Raises
    ------
    SchemaError
        When one is beyond the range of the unit.
    """
    exact = np.empty(len(part), object)
    exact[:] = [getattr(value, "asm8", value) for value in part]  # as NumPy's scalars, pandas' keep their nanoseconds
    found = exact.astype(dtype)
    coarse = f"{dtype[0]}8[s]"
    # NumPy takes Python's timedeltas for microseconds, which wrap around, whatever the unit.
    wrapped = any(isinstance(value, datetime.timedelta) and abs(value) > _MAX_TIMEDELTA for value in exact)
    if wrapped or (found.astype(coarse) != exact.astype(coarse)).any():
        raise SchemaError(f"a moment or duration is beyond the range of {dtype}, which others of the column need")
    return found.view(np.int64)


def datetime_objects(values: np.ndarray, classes: Iterable[type]) -> ColumnValues:
    """Give the source of `datetime.datetime` objects: local ones, or moments in the zone of the first.

    Raises
    ------
    SchemaError
        When some have a time zone and some have none.
    """
    unit = _finest_unit(values, classes)
    zones: dict[Any, None] = {}
    for part in present_chunks(values):
        zones.update(dict.fromkeys(getattr(value, "tzinfo", None) for value in part))
    if None in zones and len(zones) > 1:
        raise SchemaError("some datetimes have a time zone, and some have none: one column cannot hold both")
    zone = next(iter(zones))
    arrow_type = ArrowType("timestamp", unit=unit, timezone="" if zone is None else portable_zone_name(zone))
    dtype = f"M8[{'ms' if unit == 's' else unit}]"  # the format has no timestamps in seconds

    def convert(part: np.ndarray) -> np.ndarray:
        if zone is None:
            return _object_ticks(part, dtype)
        return pd.DatetimeIndex(pd.to_datetime(part, utc=True)).as_unit(unit).asi8

    return flat_object_values(arrow_type, values, convert)


def timedelta_objects(values: np.ndarray, classes: Iterable[type]) -> ColumnValues:
    """Give the source of `datetime.timedelta` objects."""
    unit = _finest_unit(values, classes)
    return flat_object_values(ArrowType("duration", unit=unit), values, lambda part: _object_ticks(part, f"m8[{unit}]"))
