"""Time zones as text: IANA names and offsets, both ways."""

from __future__ import annotations

import datetime
import re
import warnings
import zoneinfo
from typing import Any

from numparq.errors import SchemaError

_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{6}))?)?")
_UTC_OFFSET = re.compile(r"(?:UTC)?[+-]\d\d:?\d\d")  # fastparquet writes "UTC+01:00"
_SHORT_OFFSET = re.compile(r"([+-](?:[01]\d|2[0-3])):?([0-5]\d)?", re.ASCII)  # ISO 8601, as pyarrow takes it
# Prefixes select a library: after "dateutil/", pandas opens any path.
_NAME = re.compile(r"(?!dateutil/|pytz/)[A-Za-z][\w+-]*(?:/[\w+-]+)*", re.ASCII)
_MAX_NAME = 100


def is_zone_name(text: str) -> bool:
    """Whether a text is an offset, or has the form of an IANA name, which cannot lead out of the zone database."""
    return len(text) <= _MAX_NAME and (_NAME.fullmatch(text) or _UTC_OFFSET.fullmatch(text)) is not None


def full_offset(text: str) -> str:
    """Return an offset such as ``+01`` or ``+0130`` with colon and minutes, as libraries know it; other text as is."""
    match = _SHORT_OFFSET.fullmatch(text)
    return text if match is None else f"{match[1]}:{match[2] or '00'}"


def warn_of_unknown_zone(zone: Any) -> None:
    """Warn that a column is read in UTC, because its zone is no name or offset, or unknown here."""
    warnings.warn(f"the time zone {zone!r:.{_MAX_NAME}} is unknown on this system; the column is in UTC", stacklevel=3)


def portable_zone_name(zone: Any) -> str:
    """Return a time zone's IANA name or offset such as ``+05:30``; SchemaError if it has neither."""
    for attribute in ("key", "zone"):  # zoneinfo; pytz
        name = getattr(zone, attribute, None)
        if isinstance(name, str) and name:
            return name
    path = getattr(zone, "_filename", None)  # dateutil: path of the zone file
    if isinstance(path, str) and "zoneinfo/" in path:
        return path.rpartition("zoneinfo/")[2]
    offset = zone.utcoffset(None) if zone is not None else None
    if offset is None:
        if zone is not None and "tzutc" in type(zone).__name__:
            return "UTC"
        raise SchemaError(f"time zone {zone!r} has neither a name nor a fixed offset from UTC; use zoneinfo.ZoneInfo")
    return _offset_name(offset, zone)


def _offset_name(offset: datetime.timedelta, zone: Any) -> str:
    if zone is datetime.UTC or ("UTC" in repr(zone).upper() and not offset):
        return "UTC"
    minutes, rest = divmod(offset, datetime.timedelta(minutes=1))
    if rest:
        return "UTC"  # other readers have no offsets with seconds; the instants stay the same
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def time_zone_to_text(zone: Any) -> str:
    """Return a name from which `time_zone_from_text` restores an equal time zone (equal to pandas).

    An IANA name or offset, after ``dateutil/`` or ``pytz/`` if needed; ValueError if the zone has neither.
    """
    library = type(zone).__module__.partition(".")[0]
    name = _dateutil_name(zone) if library == "dateutil" else getattr(zone, "key", None) or getattr(zone, "zone", None)
    if not isinstance(name, str) or not name:
        offset = zone.utcoffset(None)
        if offset is None:
            raise ValueError(f"the time zone {zone!r} has neither a name nor an offset")
        name = offset_text(offset)
        library = "" if library != "pytz" and library != "dateutil" else library
    elif library == "pytz":  # pandas treats the standard library's zone of that name as equal
        library = ""
    return f"{library}/{name}" if library in ("dateutil", "pytz") else name


def _dateutil_name(zone: Any) -> str | None:
    kind = type(zone).__name__
    if kind in ("tzutc", "tzlocal"):
        return kind
    path = getattr(zone, "_filename", None)
    return path.rpartition("zoneinfo/")[2] if isinstance(path, str) and "zoneinfo/" in path else None


def offset_text(offset: datetime.timedelta) -> str:
    """Return an offset from UTC as text: hours, minutes, and seconds and microseconds unless 0."""
    sign = "-" if offset < datetime.timedelta(0) else "+"
    seconds, micros = divmod(abs(offset) // datetime.timedelta(microseconds=1), 1_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if seconds % 60 or micros:
        text += f":{seconds % 60:02}"
    return text + (f".{micros:06}" if micros else "")


def time_zone_from_text(text: str) -> datetime.tzinfo:
    """Return the time zone named by `time_zone_to_text`; raises any Exception if it is unknown here."""
    library, _, name = text.partition("/")
    if library == "dateutil":
        return _dateutil_zone(name)
    if library == "pytz":
        import pytz

        fixed: datetime.tzinfo = pytz.FixedOffset(_offset(name) // datetime.timedelta(minutes=1))
        return fixed
    if _OFFSET.fullmatch(text):
        return datetime.timezone(_offset(text))
    return datetime.UTC if text == "UTC" else zoneinfo.ZoneInfo(_checked(text))


def _checked(name: str) -> str:
    if not is_zone_name(name):
        raise zoneinfo.ZoneInfoNotFoundError(f"{name[:_MAX_NAME]!r} is not a name of the IANA time zone database")
    return name


def _dateutil_zone(name: str) -> datetime.tzinfo:
    from dateutil import tz

    if name in ("tzutc", "tzlocal"):
        zone: datetime.tzinfo | None = getattr(tz, name)()
    elif _OFFSET.fullmatch(name):
        zone = tz.tzoffset(None, _offset(name).total_seconds())
    else:
        zone = tz.gettz(_checked(name))
    if zone is None:
        raise zoneinfo.ZoneInfoNotFoundError(name)
    return zone


def _offset(text: str) -> datetime.timedelta:
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an offset from UTC")
    sign, hours, minutes, seconds, micros = match.groups(default="0")
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=int(micros))
    return -offset if sign == "-" else offset
