"""Spark's legacy calendar, one value at a time: Julian dates by Julian day arithmetic, time zones by `datetime`."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

DAY = 86_400
FIRST_GREGORIAN_DAY = -141_427  # 1582-10-15
START_OF_1900 = -2_208_988_800
JULIAN_DAY_OF_EPOCH = 2_440_588
EPOCH = datetime.datetime(1970, 1, 1)


def julian_date(day: int) -> tuple[int, int, int]:
    """Year, month and day in the Julian calendar of a day since 1970 (Richards' algorithm)."""
    f = day + JULIAN_DAY_OF_EPOCH + 1401
    e = 4 * f + 3
    h = 5 * (e % 1461 // 4) + 2
    month = (h // 153 + 2) % 12 + 1
    return e // 1461 - 4716 + (14 - month) // 12, month, h % 153 // 5 + 1


def gregorian_day(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date in the proleptic Gregorian calendar; the 29th of February counts in every year."""
    moved = year + 400 * 10_000
    months = month - 3 if month > 2 else month + 9
    moved -= month <= 2
    since_march = (153 * months + 2) // 5 + day - 1
    days = 365 * moved + moved // 4 - moved // 100 + moved // 400 + since_march
    return days - 719_468 - 10_000 * 146_097


def rebase_day(day: int) -> int:
    """The day since 1970 that a stored one is read as."""
    return day if day >= FIRST_GREGORIAN_DAY else gregorian_day(*julian_date(day))


def rebase_second(second: int, zone: str, standard: int) -> int:
    """The second since 1970 that a stored one is read as; `standard` is the zone's standard time today, in seconds."""
    if second >= START_OF_1900:
        return second
    day, time = divmod(second + standard, DAY)
    local = rebase_day(day) * DAY + time
    moment = EPOCH + datetime.timedelta(seconds=local)
    # Of two offsets, an overlap has the later one, a gap the one before: the smaller one both times.
    offsets = [moment.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1)]
    return local - round(min(offsets).total_seconds())
