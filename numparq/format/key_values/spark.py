"""Spark's footer keys: row metadata, version, time zone, legacy calendar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

KeyValues = Mapping[str, bytes]

ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
VERSION, TIME_ZONE = "org.apache.spark.version", "org.apache.spark.timeZone"
LEGACY_DATES, LEGACY_INT96 = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
# First Spark versions with the proleptic Gregorian calendar; earlier ones used the Julian calendar before 1582.
_FIRST_PROLEPTIC_DATES, _FIRST_PROLEPTIC_INT96 = b"3.0.0", b"3.1.0"


class SparkCalendar(NamedTuple):
    """Calendar of a file for Spark: whether dates and INT96 are in the legacy one, and the zone of its shifts."""

    legacy_dates: bool
    legacy_int96: bool
    zone: bytes | None

    @classmethod
    def from_key_values(cls, keys: KeyValues) -> SparkCalendar:
        """Return the calendar as Spark chooses it; files of other writers have the current one."""
        version = keys.get(VERSION)
        if version is None:
            return cls(False, False, None)
        old_dates = version < _FIRST_PROLEPTIC_DATES or LEGACY_DATES in keys
        old_int96 = version < _FIRST_PROLEPTIC_INT96 or LEGACY_INT96 in keys
        return cls(old_dates, old_int96, keys.get(TIME_ZONE) if old_dates or old_int96 else None)
