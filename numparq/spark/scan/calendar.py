"""Calendar of files that do not say theirs, by the rebase modes of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.format.key_values.spark import CORRECTED, LEGACY, REBASE_MODES, SPARKS_CALENDAR, SparkCalendar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")


def session_calendar(spark: SparkSession) -> SparkCalendar:
    """Return the calendar by a session's settings; that of Spark's JVM is the writers' time zone."""
    dates, int96 = ((spark.conf.get(name, CORRECTED) or CORRECTED).upper() for name in _SETTINGS)
    if LEGACY not in (dates, int96):
        return build_calendar(dates, int96)
    try:
        zone = spark._jvm.java.util.TimeZone.getDefault().getID()  # type: ignore[union-attr]
    except Exception:  # Spark Connect has no JVM here
        zone = spark.conf.get("spark.sql.session.timeZone")
    return build_calendar(dates, int96, zone)


def build_calendar(dates: str = CORRECTED, int96: str = CORRECTED, zone: str | None = None) -> SparkCalendar:
    """Return the calendar of two rebase modes; ValueError for legacy moments without the time zone of their writer."""
    if LEGACY in (dates, int96) and not zone:
        raise ValueError("the rebase mode LEGACY needs the time zone of the writer; set the option 'timeZone'")
    return SPARKS_CALENDAR._replace(dates=dates, int96=int96, zone=zone or SPARKS_CALENDAR.zone)


def parse_rebase_mode(text: str) -> str:
    """Parse a rebase mode."""
    if text.strip().upper() not in REBASE_MODES:
        raise ValueError("CORRECTED, LEGACY or EXCEPTION")
    return text.strip().upper()
