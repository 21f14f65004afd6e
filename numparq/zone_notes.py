"""Time zones as text that tells which library they are of: zones that are not equal to others of the same name."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any

_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{6}))?)?$")


def zone_text(zone: Any) -> str:
    """Name a time zone so that `zone_of` gives one that pandas takes for the same.

    Parameters
    ----------
    zone : datetime.tzinfo
        Of the standard library, pytz or dateutil.

    Returns
    -------
    str
        A name of the IANA database or an offset such as ``+05:30`` or ``+05:30:17``; in front of it ``dateutil/`` or
        ``pytz/`` where the zone is of that library, and the standard library's is not the same to pandas.

    Raises
    ------
    ValueError
        When the zone is of another kind.
    """
    library = type(zone).__module__.partition(".")[0]
    name = _dateutil_name(zone) if library == "dateutil" else getattr(zone, "key", None) or getattr(zone, "zone", None)
    if not isinstance(name, str) or not name:
        offset = zone.utcoffset(None)
        if offset is None:
            raise ValueError(f"the time zone {zone!r} has neither a name nor an offset")
        name = offset_text(offset)
        library = "" if library != "pytz" and library != "dateutil" else library
    elif library == "pytz":  # to pandas, the zones of the standard library of the same name are equal
        library = ""
    return f"{library}/{name}" if library in ("dateutil", "pytz") else name


def _dateutil_name(zone: Any) -> str | None:
    kind = type(zone).__name__
    if kind in ("tzutc", "tzlocal"):
        return kind
    path = getattr(zone, "_filename", None)
    return path.rpartition("zoneinfo/")[2] if isinstance(path, str) and "zoneinfo/" in path else None


def offset_text(offset: datetime.timedelta) -> str:
    """Write an offset from UTC: hours and minutes, then seconds and microseconds where there are any."""
    sign = "-" if offset < datetime.timedelta(0) else "+"
    seconds, micros = divmod(abs(offset) // datetime.timedelta(microseconds=1), 1_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if seconds % 60 or micros:
        text += f":{seconds % 60:02}"
    return text + (f".{micros:06}" if micros else "")


def zone_of(text: str) -> datetime.tzinfo:
    """Give the time zone that `zone_text` named.

    Raises
    ------
    Exception
        Of several kinds, where there is no such zone here.
    """
    library, _, name = text.partition("/")
    if library == "dateutil":
        return _dateutil_zone(name)
    if library == "pytz":
        import pytz

        return pytz.FixedOffset(_offset(name) // datetime.timedelta(minutes=1))
    if _OFFSET.match(text):
        return datetime.timezone(_offset(text))
    return datetime.UTC if text == "UTC" else zoneinfo.ZoneInfo(text)


def _dateutil_zone(name: str) -> datetime.tzinfo:
    from dateutil import tz

    if name in ("tzutc", "tzlocal"):
        return getattr(tz, name)()
    if _OFFSET.match(name):
        return tz.tzoffset(None, _offset(name).total_seconds())
    found = tz.gettz(name)
    if found is None:
        raise zoneinfo.ZoneInfoNotFoundError(name)
    return found


def _offset(text: str) -> datetime.timedelta:
    match = _OFFSET.match(text)
    if match is None:
        raise ValueError(f"{text!r} is no offset from UTC")
    sign, hours, minutes, seconds, micros = match.groups(default="0")
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=int(micros))
    return -offset if sign == "-" else offset
