"""Columns of moments and durations: datetime64 with and without a time zone, timedelta64, Period."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..leaves import LeafValues
from .source import Convert, Source, contiguous, flat, slices, validity_of

_NAT = np.iinfo(np.int64).min
_MOST_SECONDS = np.iinfo(np.int64).max // 1000


def _ticks(values: np.ndarray) -> LeafValues:
    """Give the 64-bit integers of an array of datetime64, timedelta64 or periods; NaT is the smallest of them."""
    integers = contiguous(values).view(np.int64)
    return LeafValues(integers, validity=validity_of(integers != _NAT))


def _seconds(values: np.ndarray) -> LeafValues:
    """Give milliseconds of seconds: the format has no timestamps in seconds."""
    leaf = _ticks(values)
    present = leaf.values if leaf.validity is None else leaf.values[leaf.validity.view(bool)]
    if len(present) and max(-int(present.min()), int(present.max())) > _MOST_SECONDS:
        raise SchemaError("a timestamp is beyond the range of milliseconds, the longest unit that Parquet has")
    return LeafValues(leaf.values * 1000, validity=leaf.validity)


def timestamp_converter(unit: str) -> Convert:
    """Give the function that makes a leaf of an array of datetime64 of a unit."""
    return _seconds if unit == "s" else _ticks


def numpy_moments(values: np.ndarray, timezone: str = "") -> Source:
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
        return flat(ArrowType("duration", unit=unit), slices(values), _ticks)
    return flat(ArrowType("timestamp", unit=unit, timezone=timezone), slices(values), timestamp_converter(unit))


def zoned_moments(array: Any) -> Source:
    """Give the source of a DatetimeArray that has a time zone."""
    unit = array.dtype.unit
    return numpy_moments(array.asi8.view(f"M8[{unit}]"), zone_name(array.dtype.tz))


def periods(array: Any) -> Source:
    """Give the source of a PeriodArray: its ordinals, as pandas' extension type of Arrow has it."""
    metadata = json.dumps({"freq": array.freqstr})
    arrow_type = ArrowType("int", 64, extension="pandas.period", extension_metadata=metadata)
    return flat(arrow_type, slices(array.asi8), _ticks)


def zone_name(zone: Any) -> str:
    """Give the name by which readers find a time zone: of the IANA database, or an offset such as ``+05:30``.

    Parameters
    ----------
    zone : datetime.tzinfo
        Of the standard library, pytz or dateutil.

    Raises
    ------
    SchemaError
        When it has no name, nor a fixed offset.
    """
    for attribute in ("key", "zone"):  # zoneinfo; pytz
        name = getattr(zone, attribute, None)
        if isinstance(name, str) and name:
            return name
    path = getattr(zone, "_filename", None)  # dateutil's zones know the file they were read from
    if isinstance(path, str) and "zoneinfo/" in path:
        return path.rpartition("zoneinfo/")[2]
    offset = zone.utcoffset(None) if zone is not None else None
    if offset is None:
        if zone is not None and "tzutc" in type(zone).__name__:
            return "UTC"
        raise SchemaError(f"the time zone {zone!r} has no name that other programs would know")
    return _offset_name(offset, zone)


def _offset_name(offset: datetime.timedelta, zone: Any) -> str:
    if zone is datetime.UTC or ("UTC" in repr(zone).upper() and not offset):
        return "UTC"
    minutes, rest = divmod(offset, datetime.timedelta(minutes=1))
    if rest:
        return "UTC"  # an offset that others do not know; the moments are the same
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
