"""Time zones of sessions, as Spark writes them."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")


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
