"""Time zones as text: IANA names and offsets, both ways."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any

from numparq.errors import SchemaError

_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{6}))?)?$")


def portable_zone_name(zone: Any) -> str:
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


def time_zone_to_text(zone: Any) -> str:
    """Name a time zone so that `time_zone_from_text` gives one that pandas takes for the same.

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


def time_zone_from_text(text: str) -> datetime.tzinfo:
    """Give the time zone that `time_zone_to_text` named.

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
