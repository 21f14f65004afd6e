"""Python objects to leaves: numbers, dates, times, moments and UUIDs, each range of rows as it is asked for."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..leaves import LeafValues
from .dates import days_of_dates
from .moments import zone_name
from .numbers import number_converter
from .pairs import PRESENT, complex_numbers
from .source import Source

_CHUNK = 1 << 16
_LARGEST_EXACT = 1 << 53  # integers up to here are floats without loss
_US_OF_SECOND = 1_000_000
_UUID_BYTES = 16
_UNITS = ("s", "ms", "us", "ns")
_LONGEST = datetime.timedelta(microseconds=(1 << 63) - 1)


def nulls() -> Source:
    """Give the source of a column of nothing but nulls, of no type."""

    def leaves(start: int, stop: int) -> list[LeafValues]:
        count = stop - start
        return [LeafValues(np.zeros(count, np.int32), validity=np.zeros(count, np.uint8) if count else None)]

    return Source(ArrowType("null"), leaves)


def present_values(values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Leave nulls out.

    Parameters
    ----------
    values : object
        None, NaN, NaT and NA are nulls.

    Returns
    -------
    present : object
        Those that are none; the array itself, where all are.
    mask : bool or None
        True where there is a value; None where there is one everywhere.
    """
    missing = pd.isna(values)
    if not missing.any():
        return values, None
    return values[~missing], ~missing


def of_objects(
    arrow_type: ArrowType, values: np.ndarray, convert: Callable[[np.ndarray], np.ndarray], width: int = 0
) -> Source:
    """Give a source of objects that are converted by ranges of rows.

    Parameters
    ----------
    arrow_type : ArrowType
        What they become.
    values : object
        All of them.
    convert : callable
        Gives the array of a leaf's values, of objects none of which is null.
    width : int
        Bytes of a value, where those of the leaf are bytes.
    """

    def leaves(start: int, stop: int) -> list[LeafValues]:
        present, mask = present_values(values[start:stop])
        found = convert(present)
        if mask is None:
            return [LeafValues(found)]
        if width:
            spread = np.zeros((stop - start, width), np.uint8)
            spread[mask] = found.reshape(-1, width)
            return [LeafValues(spread.reshape(-1), validity=mask.view(np.uint8))]
        out = np.zeros(stop - start, found.dtype)
        out[mask] = found
        return [LeafValues(out, validity=mask.view(np.uint8))]

    return Source(arrow_type, leaves)


def _chunks(values: np.ndarray) -> Iterable[np.ndarray]:
    """Give the values that there are, some at a time."""
    for start in range(0, len(values), _CHUNK):
        yield present_values(values[start : start + _CHUNK])[0]


def booleans(values: np.ndarray) -> Source:
    """Give the source of bool objects."""
    return of_objects(ArrowType("bool"), values, lambda part: part.astype(bool).view(np.uint8))


def _common_dtype(classes: Iterable[type], default: type) -> np.dtype:
    """Give the NumPy dtype that holds scalars, where they all are of NumPy; else the default, as for Python's own."""
    dtypes = [np.dtype(cls) for cls in classes if issubclass(cls, np.generic)]
    plain = any(issubclass(cls, (int, float)) and not issubclass(cls, np.generic) for cls in classes)
    if plain or not dtypes:
        return np.dtype(default)
    common = np.result_type(*dtypes)
    return common if (common.kind == "f") == (dtypes[0].kind == "f") else np.dtype(default)


def integers(values: np.ndarray, classes: Iterable[type]) -> Source:
    """Give the source of int objects: of 64 bits, unsigned where they need that, or of NumPy's scalars' own size."""
    dtype = _common_dtype([cls for cls in classes if issubclass(cls, (int, np.integer))], np.int64)
    if dtype == np.int64 and not _fit(values, np.int64):
        if not _fit(values, np.uint64):
            raise SchemaError("an integer is beyond 64 bits, which is what Parquet's integers have at most")
        dtype = np.dtype(np.uint64)
    arrow_type, convert = number_converter(dtype)
    return of_objects(arrow_type, values, lambda part: convert(part.astype(dtype)).values)


def _fit(values: np.ndarray, dtype: type) -> bool:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return all(low <= int(min(part)) and int(max(part)) <= high for part in _chunks(values) if len(part))


def floats(values: np.ndarray, classes: Iterable[type]) -> Source:
    """Give the source of float objects: of 64 bits, or of NumPy's scalars' own size."""
    dtype = _common_dtype([cls for cls in classes if issubclass(cls, (float, np.floating))], np.float64)
    arrow_type, convert = number_converter(dtype)
    width = 2 if dtype.itemsize == 2 else 0
    return of_objects(arrow_type, values, lambda part: convert(part.astype(dtype)).values, width)


def mixed_floats(values: np.ndarray) -> Source:
    """Give the source of float and int objects: floats, if those hold the integers exactly."""

    def convert(part: np.ndarray) -> np.ndarray:
        found = part.astype(np.float64)
        for place in np.flatnonzero(np.abs(found) >= _LARGEST_EXACT).tolist():
            value = part[place]
            if isinstance(value, (int, np.integer)) and int(found[place]) != int(value):
                raise SchemaError(f"the integer {value} stands beside floats, and is none without loss")
        return found

    return of_objects(ArrowType("float", 64), values, convert)


def complexes(values: np.ndarray) -> Source:
    """Give the source of complex objects: as NumPy's complex numbers, a null being a null struct."""
    model = complex_numbers(np.empty(0, np.complex128))

    def leaves(start: int, stop: int) -> list[LeafValues]:
        present, mask = present_values(values[start:stop])
        found = complex_numbers(present.astype(np.complex128)).leaves(0, len(present))
        if mask is not None:
            for leaf in found:
                leaf.definition = mask.view(np.uint8) * np.uint8(PRESENT)
        return found

    return replace(model, leaves=leaves)


def dates(values: np.ndarray) -> Source:
    """Give the source of `datetime.date` objects."""
    slow = of_objects(ArrowType("date", unit="D"), values, lambda part: part.astype("M8[D]").astype(np.int32))

    def leaves(start: int, stop: int) -> list[LeafValues]:
        found = days_of_dates(values[start:stop])
        return slow.leaves(start, stop) if found is None else [found]

    return Source(ArrowType("date", unit="D"), leaves)


def times(values: np.ndarray) -> Source:
    """Give the source of `datetime.time` objects: microseconds."""

    def convert(part: np.ndarray) -> np.ndarray:
        if any(value.tzinfo is not None for value in part):
            raise SchemaError("a time with a time zone cannot be written: Parquet's have none")
        seconds = [(value.hour * 60 + value.minute) * 60 + value.second for value in part]
        fractions = [value.microsecond for value in part]
        return np.array(seconds, np.int64) * _US_OF_SECOND + np.array(fractions, np.int64)

    return of_objects(ArrowType("time", unit="us"), values, convert)


def uuids(values: np.ndarray) -> Source:
    """Give the source of `uuid.UUID` objects."""

    def convert(part: np.ndarray) -> np.ndarray:
        return np.frombuffer(b"".join([value.bytes for value in part]), np.uint8)

    return of_objects(ArrowType("uuid", byte_width=16), values, convert, _UUID_BYTES)


def _finest(values: np.ndarray, classes: Iterable[type]) -> str:
    """Find the unit that holds moments or durations: microseconds, or nanoseconds where they are needed.

    Of NumPy's own scalars the finest unit that one of them has, if there are no others.
    """
    scalars = [cls for cls in classes if issubclass(cls, (np.datetime64, np.timedelta64))]
    finest = 0 if scalars else _UNITS.index("us")
    if scalars:
        found = {np.datetime_data(value.dtype)[0] if hasattr(value, "dtype") else "us"
                 for part in _chunks(values) for value in part}  # fmt: skip
        finest = max(_UNITS.index(unit) if unit in _UNITS else 0 for unit in found)
    if any(issubclass(cls, (pd.Timestamp, pd.Timedelta)) for cls in classes):
        odd = any(getattr(value, "nanosecond", getattr(value, "nanoseconds", 0))
                  for part in _chunks(values) for value in part)  # fmt: skip
        finest = _UNITS.index("ns") if odd else finest
    return _UNITS[finest]


def _ticks(part: np.ndarray, dtype: str) -> np.ndarray:
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
    wrapped = any(isinstance(value, datetime.timedelta) and abs(value) > _LONGEST for value in exact)
    if wrapped or (found.astype(coarse) != exact.astype(coarse)).any():
        raise SchemaError(f"a moment or duration is beyond the range of {dtype}, which others of the column need")
    return found.view(np.int64)


def datetimes(values: np.ndarray, classes: Iterable[type]) -> Source:
    """Give the source of `datetime.datetime` objects: local ones, or moments in the zone of the first.

    Raises
    ------
    SchemaError
        When some have a time zone and some have none.
    """
    unit = _finest(values, classes)
    zones: dict[Any, None] = {}
    for part in _chunks(values):
        zones.update(dict.fromkeys(getattr(value, "tzinfo", None) for value in part))
    if None in zones and len(zones) > 1:
        raise SchemaError("some datetimes have a time zone, and some have none: one column cannot hold both")
    zone = next(iter(zones))
    arrow_type = ArrowType("timestamp", unit=unit, timezone="" if zone is None else zone_name(zone))
    dtype = f"M8[{'ms' if unit == 's' else unit}]"  # the format has no timestamps in seconds

    def convert(part: np.ndarray) -> np.ndarray:
        if zone is None:
            return _ticks(part, dtype)
        return pd.DatetimeIndex(pd.to_datetime(part, utc=True)).as_unit(unit).asi8

    return of_objects(arrow_type, values, convert)


def timedeltas(values: np.ndarray, classes: Iterable[type]) -> Source:
    """Give the source of `datetime.timedelta` objects."""
    unit = _finest(values, classes)
    return of_objects(ArrowType("duration", unit=unit), values, lambda part: _ticks(part, f"m8[{unit}]"))


def decimals(values: np.ndarray) -> Source:
    """Give the source of `decimal.Decimal` objects, of the precision and scale that they need together."""
    from .decimals import decimal_objects

    return decimal_objects(values)
