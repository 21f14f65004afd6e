"""Which calendar a file is in: Spark's keys first, then the rebase modes for files that do not say."""

import numpy as np
import pytest

from numparq.errors import UnsupportedError
from numparq.format.key_values.spark import (
    CORRECTED,
    EXCEPTION,
    LEGACY,
    LEGACY_DATES,
    LEGACY_INT96,
    TIME_ZONE,
    TODAYS_CALENDAR,
    VERSION,
    SparkCalendar,
    drop_calendar,
)
from numparq.format.legacy_calendar import Rebase
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import INT32, INT64, INT96

DATE, LOCAL = LogicalType("DATE"), LogicalType("TIMESTAMP", unit="MICROS", utc=False)
OLD = SparkCalendar(LEGACY, EXCEPTION, "Asia/Tokyo", True)
PARIS = {TIME_ZONE: b"Europe/Paris"}


@pytest.mark.parametrize(
    ("keys", "unsaid", "calendar"),
    [
        ({}, TODAYS_CALENDAR, TODAYS_CALENDAR),
        ({}, OLD, OLD),
        (PARIS, OLD, OLD._replace(zone="Europe/Paris")),
        ({VERSION: b"4.0.0"}, OLD, SparkCalendar(int96_instants=True)),
        ({VERSION: b"2.4.8"}, OLD, SparkCalendar(LEGACY, LEGACY, "Asia/Tokyo", True)),
        ({VERSION: b"2.4.8"}, None, SparkCalendar(LEGACY, LEGACY, "UTC")),
        ({VERSION: b"3.0.1"} | PARIS, None, SparkCalendar(CORRECTED, LEGACY, "Europe/Paris")),
        ({VERSION: b"4.0.0", LEGACY_DATES: b""} | PARIS, None, SparkCalendar(LEGACY, CORRECTED, "Europe/Paris")),
        ({VERSION: b"4.0.0", LEGACY_INT96: b""} | PARIS, None, SparkCalendar(CORRECTED, LEGACY, "Europe/Paris")),
    ],
)
def test_calendars(keys, unsaid, calendar):
    assert SparkCalendar.from_key_values(keys, unsaid) == calendar


def test_rebased_types():
    assert OLD.rebase(INT32, DATE) == Rebase("D")
    assert OLD.rebase(INT64, LogicalType("TIMESTAMP", unit="MILLIS", utc=True)) == Rebase("ms", "Asia/Tokyo")
    assert OLD.rebase(INT96, None) == Rebase("ns", "Asia/Tokyo", True)
    nanoseconds = LogicalType("TIMESTAMP", unit="NANOS", utc=True)
    assert [OLD.rebase(INT64, logical) for logical in (LOCAL, nanoseconds, None)] == [None] * 3
    assert TODAYS_CALENDAR.rebase(INT32, DATE) is TODAYS_CALENDAR.rebase(INT96, None) is None


def test_int96_has_a_zone_where_it_is_instants():
    assert OLD.logical_type(INT96, None).utc
    assert TODAYS_CALENDAR.logical_type(INT96, None) is None
    assert OLD.logical_type(INT64, LOCAL) is LOCAL


def test_values_of_an_unknown_calendar_are_refused():
    rebase = SparkCalendar(EXCEPTION).rebase(INT32, DATE)
    rebase.apply(np.array([-141_427, 0], "i4"))
    with pytest.raises(UnsupportedError, match=r"does not say .* set the rebase mode to CORRECTED or LEGACY"):
        rebase.apply(np.array([-141_428], "i4"))


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ({"a": b"b", VERSION: b"4.0.0"}, {"a": b"b", VERSION: b"4.0.0"}),
        ({"a": b"b", VERSION: b"4.0.0", LEGACY_DATES: b""} | PARIS, {"a": b"b", VERSION: b"4.0.0"}),
        ({VERSION: b"2.4.8"}, {VERSION: b"3.1.0"}),
        (PARIS, PARIS),
    ],
)
def test_keys_of_rows_that_were_read(keys, left):
    assert drop_calendar(keys) == left
