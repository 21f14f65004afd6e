"""Spark's footer keys: row metadata, version, time zone, legacy calendar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from numparq.format.legacy_calendar import Rebase
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import INT96

KeyValues = Mapping[str, bytes]

ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
VERSION, TIME_ZONE = "org.apache.spark.version", "org.apache.spark.timeZone"
LEGACY_DATES, LEGACY_INT96 = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
# First Spark versions with the proleptic Gregorian calendar; earlier ones used the Julian calendar before 1582.
_FIRST_PROLEPTIC_DATES, _FIRST_PROLEPTIC_INT96 = b"3.0.0", b"3.1.0"
_UNITS = {"MILLIS": "ms", "MICROS": "us"}


_INSTANT = LogicalType("TIMESTAMP", unit="NANOS", utc=True)
CORRECTED, LEGACY, EXCEPTION = REBASE_MODES = ("CORRECTED", "LEGACY", "EXCEPTION")


class SparkCalendar(NamedTuple):
    """Calendar of a file, or of files that do not say.

    Attributes
    ----------
    dates, int96 : str
        A rebase mode of Spark: ``"CORRECTED"`` (today's calendar), ``"LEGACY"``, or ``"EXCEPTION"``: today's, but a
        value that the calendars disagree on is an error. `dates` is also that of INT64 timestamps.
    zone : str
        Time zone of the writer, if the calendar is the legacy one.
    int96_instants : bool
        Whether INT96 timestamps are instants, as to Spark, or have no time zone, as to pandas with pyarrow.
    """

    dates: str = CORRECTED
    int96: str = CORRECTED
    zone: str = "UTC"
    int96_instants: bool = False

    @classmethod
    def from_key_values(cls, keys: KeyValues, unsaid: SparkCalendar | None = None) -> SparkCalendar:
        """Return the calendar that Spark takes: by the keys of its own files, else `unsaid` (default: today's).

        Files that name no zone (Spark 2) have that of `unsaid`, by default UTC.
        """
        unsaid = unsaid or TODAYS_CALENDAR
        version, dates, int96 = keys.get(VERSION), unsaid.dates, unsaid.int96
        if version is not None:
            dates = LEGACY if version < _FIRST_PROLEPTIC_DATES or LEGACY_DATES in keys else CORRECTED
            int96 = LEGACY if version < _FIRST_PROLEPTIC_INT96 or LEGACY_INT96 in keys else CORRECTED
        if LEGACY not in (dates, int96):
            return cls(dates, int96, int96_instants=unsaid.int96_instants)
        zone = keys[TIME_ZONE].decode("utf-8", "replace") if TIME_ZONE in keys else unsaid.zone
        return cls(dates, int96, zone, unsaid.int96_instants)

    @property
    def without_rebase(self) -> SparkCalendar:
        """The same in today's calendar."""
        return SparkCalendar(int96_instants=self.int96_instants)

    def logical_type(self, physical: int, logical: LogicalType | None) -> LogicalType | None:
        """Return the logical type of a leaf column: that of INT96, which has none, as this calendar says."""
        return _INSTANT if self.int96_instants and physical == INT96 else logical

    def rebase(self, physical: int, logical: LogicalType | None) -> Rebase | None:
        """Return the conversion of a leaf column's values from the legacy calendar; None if they need none.

        Spark never wrote timestamps without a time zone, nor nanoseconds of INT64, in the legacy calendar.
        """
        mode = self.int96 if physical == INT96 else self.dates
        if mode == CORRECTED:
            return None
        if physical == INT96:
            return Rebase("ns", self.zone, mode == EXCEPTION)
        if logical is not None and logical.kind == "DATE":
            return Rebase("D", "", mode == EXCEPTION)
        if logical is None or logical.kind != "TIMESTAMP" or not logical.utc or logical.unit not in _UNITS:
            return None
        return Rebase(_UNITS[logical.unit], self.zone, mode == EXCEPTION)


# What files that do not say are in: to pandas, and to Spark.
TODAYS_CALENDAR, SPARKS_CALENDAR = SparkCalendar(), SparkCalendar(int96_instants=True)


def drop_calendar(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return footer keys for rows of the file once they are read, in the proleptic Gregorian calendar."""
    if SparkCalendar.from_key_values(keys) == TODAYS_CALENDAR:
        return dict(keys)
    kept = {key: value for key, value in keys.items() if key not in (LEGACY_DATES, LEGACY_INT96, TIME_ZONE)}
    return kept | {VERSION: max(kept[VERSION], _FIRST_PROLEPTIC_INT96)}
