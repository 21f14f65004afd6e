"""Temporal literals as exact numbers of the unit of a date, time, timestamp or duration column."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.format.arrow_type import ArrowType

from .expression import LiteralError

if TYPE_CHECKING:
    import pandas as pd

_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NS_OF_DAY = 86_400 * 10**9
# Nanoseconds of NumPy's units.
_NUMPY_NS: dict[str, Fraction] = {
    "W": Fraction(7 * _NS_OF_DAY),
    "D": Fraction(_NS_OF_DAY),
    "h": Fraction(3600 * 10**9),
    "m": Fraction(60 * 10**9),
    **{unit: Fraction(ns) for unit, ns in _NS.items()},
    "ps": Fraction(1, 10**3),
    "fs": Fraction(1, 10**6),
    "as": Fraction(1, 10**9),
}
_MONTHS = {"Y": 12, "M": 1}
_YEARS_OF_CYCLE, _DAYS_OF_CYCLE = 400, 146_097  # period of the Gregorian calendar
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LOOKS_LIKE_A_DATE = re.compile(r"\s*\d{4}(-\d|\d{4}\b|\s*$)")
_TIME = re.compile(r"(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")


def timestamp_number(value: Any, arrow_type: ArrowType) -> Fraction:
    """Return a timestamp in a TIMESTAMP column's unit since 1970; a literal without a zone has the column's."""
    nanoseconds, aware = _moment(parse_timestamp(value) if isinstance(value, str) else value)
    if aware and not arrow_type.timezone:
        raise LiteralError("it has a time zone, but the column has local times")
    if not aware and arrow_type.timezone:
        nanoseconds = _in_zone(nanoseconds, arrow_type.timezone)
    return nanoseconds / _NS[arrow_type.unit]


def date_number(value: Any, arrow_type: ArrowType) -> Fraction:
    """Return a date, or a timestamp without zone, in days since 1970."""
    nanoseconds, aware = _moment(parse_timestamp(value) if isinstance(value, str) else value)
    if aware:
        raise LiteralError("it has a time zone, but dates have none")
    return nanoseconds / _NS_OF_DAY


def time_number(value: Any, arrow_type: ArrowType) -> Fraction:
    """Return a time of day, or a duration since midnight, in a TIME column's unit."""
    if isinstance(value, str):
        found = _TIME.fullmatch(value.strip())
        if not found:
            raise LiteralError("it is not a time of day")
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[:3])
        if hours > 23 or minutes > 59 or seconds > 59:
            raise LiteralError("it is not a time of day")
        nanoseconds = Fraction((hours * 3600 + minutes * 60 + seconds) * 10**9 + int((found[4] or "").ljust(9, "0")))
        return nanoseconds / _NS[arrow_type.unit]
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise LiteralError("it has a time zone, but times of day are compared without one")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return Fraction(seconds * 10**9 + value.microsecond * 1000, _NS[arrow_type.unit])
    return duration_number(value, arrow_type)


def duration_number(value: Any, arrow_type: ArrowType) -> Fraction:
    """Return a duration in the column's unit."""
    if hasattr(value, "asm8"):
        value = value.asm8
    if isinstance(value, np.timedelta64):
        return _numpy_ns(value) / _NS[arrow_type.unit]
    if isinstance(value, datetime.timedelta):
        return Fraction(value // _MICROSECOND * 1000, _NS[arrow_type.unit])
    raise LiteralError("it is not a duration" if arrow_type.kind == "duration" else "it is not a time of day")


def _moment(value: Any) -> tuple[Fraction, bool]:
    """Return nanoseconds since 1970 (in UTC if the value has a zone), and whether it has one."""
    if isinstance(value, datetime.datetime) and hasattr(value, "asm8"):  # pandas.Timestamp: keep nanoseconds
        return _numpy_ns(value.asm8), value.tzinfo is not None
    if isinstance(value, np.datetime64):
        return _numpy_ns(value), False
    if isinstance(value, datetime.datetime):
        offset = value.utcoffset()
        since = (
            value.replace(tzinfo=None) - _EPOCH - (offset or datetime.timedelta())
        )  # a timedelta: UTC may be before year 1
        return Fraction(since // _MICROSECOND * 1000), offset is not None
    if isinstance(value, datetime.date):
        return Fraction((value.toordinal() - _EPOCH.toordinal()) * _NS_OF_DAY), False
    raise LiteralError("it is not a date or timestamp")


def _numpy_ns(value: Any) -> Fraction:
    unit, count = np.datetime_data(value.dtype)
    if unit in ("Y", "M"):
        if isinstance(value, np.timedelta64):
            raise LiteralError("months and years have no fixed length")
        return Fraction(_days_of_months(int(value.astype(np.int64)) * count * _MONTHS[unit]) * _NS_OF_DAY)
    if unit not in _NUMPY_NS:
        raise LiteralError("it has no unit")
    return int(value.astype(np.int64)) * count * _NUMPY_NS[unit]


def _days_of_months(months: int) -> int:
    """Return the days from 1970 to the start of a month, however distant: NumPy's int64 arithmetic would wrap."""
    years, month = divmod(months, 12)
    cycles, year = divmod(1970 + years, _YEARS_OF_CYCLE)
    first = datetime.date(year or _YEARS_OF_CYCLE, month + 1, 1).toordinal() - (0 if year else _DAYS_OF_CYCLE)
    return first + cycles * _DAYS_OF_CYCLE - _EPOCH.toordinal()


def _in_zone(nanoseconds: Fraction, timezone: str) -> Fraction:
    """Return nanoseconds since 1970 in UTC for those of a local time in the column's time zone."""
    import pandas as pd

    seconds, rest = divmod(nanoseconds, 10**9)
    try:
        moment = pd.Timestamp(np.datetime64(int(seconds), "s")).tz_localize(timezone, "NaT", "NaT")
    except (ValueError, OverflowError, LookupError) as error:
        raise LiteralError(f"it has no time zone, and is no time in that of the column, {timezone}: {error}") from None
    if moment is pd.NaT:
        raise LiteralError(
            f"it has no time zone, and clocks of the column's, {timezone}, show this time twice or never; use a "
            "literal with a time zone"
        )
    return _numpy_ns(moment.asm8) + rest


def parse_date(text: str) -> datetime.date:
    """Parse an ISO 8601 date; LiteralError for anything else."""
    try:
        return datetime.date.fromisoformat(text.strip())
    except ValueError:
        raise LiteralError("it is not a date such as 2024-01-31") from None


def parse_timestamp(text: str) -> pd.Timestamp:
    """Parse an ISO 8601 timestamp, with a time zone or without; LiteralError for anything else."""
    import pandas as pd

    try:
        if not _LOOKS_LIKE_A_DATE.match(text):
            raise ValueError(text)
        return pd.Timestamp(text)
    except (ValueError, OverflowError, LookupError) as error:
        raise LiteralError(
            f"it is not a date or timestamp: {error}" if str(error) != text else "it is not a date or timestamp"
        ) from None
