"""Spark's legacy calendar: Julian days before 1582-10-15, and the standard time of each zone before 1900."""

from __future__ import annotations

import datetime
import zoneinfo
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from numparq.errors import UnsupportedError

from .key_values.time_zones import time_zone_from_text, warn_of_unknown_zone

_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_PER_DAY = {"D": 1} | {unit: _DAY * count for unit, count in _PER_SECOND.items()}
_FIRST_GREGORIAN_DAY = -141_427  # 1582-10-15
_MARCH_OF_YEAR_0, _DAYS_OF_CENTURY = -719_470, 36_525  # Julian
_LAST_JULIAN_CENTURY = 15
# Earliest century of int32 days, and of int64 microseconds.
_FIRST_CENTURY_OF_DAYS, _FIRST_CENTURY_OF_INSTANTS = -58_900, -2_930
_FIRST_MOMENT = -(1 << 55)  # seconds or days before all others
_NAT = np.iinfo(np.int64).min
# Java's old classes know no change of a zone before 1900: until then, they apply the present standard time. Spark's
# tables have that of 2022.
_START_OF_1900 = -2_208_988_800
_YEAR_OF_STANDARD_TIME = 2022
_FIRST_YEAR_OF_CHANGES = 1800  # Manila changed its day in 1844
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Shifts(NamedTuple):
    """Table of the number of days or seconds to add to stored ones, from each start on; the last is 0."""

    starts: np.ndarray
    shifts: np.ndarray


@dataclass(frozen=True, slots=True)
class Rebase:
    """Conversion of a leaf column from Spark's legacy calendar to the proleptic Gregorian one.

    Days and local times keep their year, month, day and time of day, and so become other days and instants. Days are
    never reordered, but several may become one: 1500-02-29 and 1500-03-01. Instants may be reordered.

    Attributes
    ----------
    unit : str
        Unit of sort keys: ``"D"``, ``"ms"``, ``"us"`` or ``"ns"``.
    zone : str
        The writer's time zone; of no effect for days.
    is_refused : bool
        Whether the calendar is not known: `apply` then raises for values that the calendars disagree on.
    """

    unit: str
    zone: str = ""
    is_refused: bool = False

    @property
    def table(self) -> Shifts:
        """Shifts of stored days, or of stored seconds since 1970."""
        return _day_shifts() if self.unit == "D" else _instant_shifts(self.zone)

    def per_step(self, unit: str) -> int:
        """Return how many of a unit make a day or second, as `table` counts."""
        return (_PER_DAY if self.unit == "D" else _PER_SECOND)[unit]

    @property
    def farthest(self) -> int:
        """Number of sort keys that no value is moved farther than."""
        return int(np.abs(self.table.shifts).max()) * self.per_step(self.unit)

    @property
    def end(self) -> int:
        """First sort key that no calendar moves, nor any later one."""
        return int(self.table.starts[-1]) * self.per_step(self.unit)

    def segments(self, low: float, high: float) -> Iterator[tuple[float, float, int]]:
        """Yield ranges of stored keys that cover those from `low` to `high` (exclusive), with their shift."""
        step, (starts, shifts) = self.per_step(self.unit), self.table
        at = max(bisect_right(starts, low // step) - 1, 0)
        while low < high:
            end = int(starts[at + 1]) * step if at + 1 < len(starts) else high
            yield low, min(end, high), int(shifts[at]) * step
            low, at = end, at + 1

    def apply(self, values: np.ndarray, unit: str = "") -> None:
        """Rebase decoded values in place: datetime64, or integers of a unit, by default that of sort keys. NaT stays.

        Raises UnsupportedError if a rebased value is outside the range of int64, or for any if `is_refused`.
        """
        if values.dtype.kind == "M":
            unit = np.datetime_data(values.dtype)[0]
        step = self.per_step(unit or self.unit)
        numbers = values.view(f"i{values.dtype.itemsize}")
        starts, shifts = self.table
        places = np.flatnonzero((numbers < int(starts[-1]) * step) & (numbers != _NAT))
        if not len(places):
            return
        if self.is_refused:
            raise UnsupportedError(
                "the file does not say whether its days before 1582 and instants before 1900 are in Spark's legacy "
                "calendar; set the rebase mode to CORRECTED or LEGACY"
            )
        stored = numbers[places].astype(np.int64)
        added = shifts[starts.searchsorted(stored // step, side="right") - 1] * step
        made = stored + added
        if bool(((made < stored) != (added < 0)).any()):
            raise UnsupportedError(
                f"a timestamp of Spark's legacy calendar is outside the range of [{unit or self.unit}]; "
                "convert the file with Spark, or do not select the column"
            )
        numbers[places] = made


def _century_shifts(first: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the Julian days from which on a shift holds, from a century on, and the shifts, in days."""
    centuries = np.arange(first, _LAST_JULIAN_CENTURY + 1, dtype=np.int64)
    centuries = centuries[centuries % 4 != 0]  # both calendars have a 29th of February in years such as 1200
    days = centuries * _DAYS_OF_CENTURY + _MARCH_OF_YEAR_0
    days[0] = _FIRST_MOMENT
    return days, centuries // 4 + 2 - centuries


@lru_cache(maxsize=1)
def _day_shifts() -> Shifts:
    days, shifts = _century_shifts(_FIRST_CENTURY_OF_DAYS)
    return Shifts(np.append(days, _FIRST_GREGORIAN_DAY), np.append(shifts, 0))


@lru_cache(maxsize=16)
def _instant_shifts(name: str) -> Shifts:
    zone = _zone(name)
    standard = min(
        _offset(zone, datetime.datetime(_YEAR_OF_STANDARD_TIME, month, 15, tzinfo=datetime.UTC))
        for month in range(1, 13)
    )
    local, changes = _changes_before_1900(zone)
    days, shifts = _century_shifts(_FIRST_CENTURY_OF_INSTANTS)
    starts = [*(days * _DAY - standard).tolist(), _FIRST_GREGORIAN_DAY * _DAY - standard]
    offsets = [*(shifts * _DAY + standard - local).tolist(), standard - local]
    for instant, offset in changes:  # a local time that occurs twice is the later one
        starts.append(instant + offset - standard)
        offsets.append(standard - offset)
    starts.append(_START_OF_1900)
    offsets.append(0)
    starts[0] = _FIRST_MOMENT
    kept = [0, *(at for (_, one), (at, two) in pairwise(enumerate(offsets)) if one != two)]
    return Shifts(np.array(starts, np.int64)[kept], np.array(offsets, np.int64)[kept])


def _zone(name: str) -> datetime.tzinfo:
    """Return the time zone that Java has under a name; UTC, with a warning, for unknown ones."""
    text = name.removeprefix("GMT").removeprefix("UTC") or "UTC"
    try:
        return time_zone_from_text("UTC" if text == "Z" else text)
    except (ValueError, OSError, LookupError, zoneinfo.ZoneInfoNotFoundError):
        warn_of_unknown_zone(name)
        return datetime.UTC


def _offset(zone: datetime.tzinfo, moment: datetime.datetime) -> int:
    offset = moment.astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def _changes_before_1900(zone: datetime.tzinfo) -> tuple[int, list[tuple[int, int]]]:
    """Return a zone's first offset from UTC, and each later one with the instant of its start; in seconds."""

    def offset(instant: int) -> int:
        return _offset(zone, _EPOCH + datetime.timedelta(seconds=instant))

    year = datetime.timedelta(days=365) // datetime.timedelta(seconds=1)
    first = (_FIRST_YEAR_OF_CHANGES - 1970) * year
    found = []
    for start, end in pairwise([*range(first, _START_OF_1900, year // 12), _START_OF_1900]):
        before = offset(start)
        if offset(end) != before:
            low, high = start, end
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            found.append((high, offset(high)))
    return offset(first), found
