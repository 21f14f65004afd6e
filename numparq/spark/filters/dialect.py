"""Settings of a session that decide what filter text means, its time zone among them."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")


class SparkDialect(NamedTuple):
    """Settings of a session that decide what filter text means; by default those of a new one.

    Attributes
    ----------
    time_zone : tzinfo or None
        Zone of timestamps without one; None if it is not known.
    case_sensitive : bool
        Whether column names are exact.
    ansi : bool
        Whether an integer beside a float becomes a double, and not a float.
    escapes : bool
        Whether a backslash in a string is an escape character.
    quoted_names : bool
        Whether double quotes are those of names.
    """

    time_zone: datetime.tzinfo | None = None
    case_sensitive: bool = False
    ansi: bool = True
    escapes: bool = True
    quoted_names: bool = False


DEFAULT_DIALECT = SparkDialect()


def session_dialect(spark: SparkSession) -> SparkDialect:
    """Return what the settings of a session say."""

    def is_set(name: str, default: str) -> bool:
        return (spark.conf.get(name, default) or default).lower() == "true"

    ansi = is_set("spark.sql.ansi.enabled", "true")
    return SparkDialect(
        session_time_zone(spark),
        is_set("spark.sql.caseSensitive", "false"),
        ansi,
        not is_set("spark.sql.parser.escapedStringLiterals", "false"),
        ansi and is_set("spark.sql.ansi.doubleQuotedIdentifiers", "false"),
    )


def session_time_zone(spark: SparkSession) -> datetime.tzinfo:
    """Return the time zone of a session."""
    return parse_time_zone(spark.conf.get("spark.sql.session.timeZone") or "UTC")


def parse_time_zone(text: str) -> datetime.tzinfo:
    """Parse a time zone's name or offset, as Spark writes them."""
    offset = _OFFSET.fullmatch(text.strip())
    try:
        if offset is None:
            return ZoneInfo("UTC" if text.strip() == "Z" else text.strip())
        sign = -1 if offset[1] == "-" else 1
        return datetime.timezone(sign * datetime.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("a time zone such as Europe/Paris or +02:00") from None
