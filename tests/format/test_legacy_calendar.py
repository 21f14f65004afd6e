"""The legacy calendar of Spark against an oracle: days, instants in time zones, the dtypes of both."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from numparq.errors import UnsupportedError
from numparq.format.legacy_calendar import Rebase
from support.oracles.legacy_calendar import START_OF_1900, rebase_day, rebase_second

HOUR = 3600
STANDARD = {
    "UTC": 0,
    "America/Los_Angeles": -8 * HOUR,
    "America/New_York": -5 * HOUR,
    "Asia/Kolkata": 5 * HOUR + HOUR // 2,
    "Asia/Manila": 8 * HOUR,
    "Europe/Paris": HOUR,
    "Europe/Dublin": 0,
}
YEAR_2 = -719_000  # of which `datetime` knows all local times


def edges(starts, least):
    return sorted({int(start) + by for start in starts for by in (-1, 0, 1) if start > least})


def test_days_keep_year_month_and_day():
    days = [*edges(Rebase("D").table.starts, -(1 << 31)), -(1 << 31), -719_163, 0, (1 << 31) - 1]
    rng = np.random.default_rng(0)
    days += rng.integers(-(1 << 31), 1 << 31, 300).tolist() + rng.integers(-800_000, -140_000, 300).tolist()
    values = np.array(days, "i4")
    Rebase("D").apply(values)
    assert values.tolist() == list(map(rebase_day, days))


@pytest.mark.parametrize("zone", STANDARD)
def test_instants_keep_the_local_time(zone):
    table, rng = Rebase("us", zone).table, np.random.default_rng(1)
    seconds = [*edges(table.starts, YEAR_2 * 86_400), START_OF_1900 - 1, START_OF_1900, 0]
    seconds += rng.integers(YEAR_2 * 86_400, START_OF_1900 + 10**8, 300).tolist()
    values = np.array(seconds, "M8[s]").astype("M8[us]") + np.timedelta64(7, "us")
    Rebase("us", zone).apply(values)
    wanted = [rebase_second(second, zone, STANDARD[zone]) for second in seconds]
    np.testing.assert_array_equal(values, np.array(wanted, "M8[s]").astype("M8[us]") + np.timedelta64(7, "us"))


@pytest.mark.parametrize(
    ("zone", "same"),
    [("GMT", "UTC"), ("Z", "UTC"), ("+05:30", "GMT+05:30"), ("UTC-08:00", "-08:00"), ("Etc/GMT+8", "-08:00")],
)
def test_names_of_offsets(zone, same):
    first, second = Rebase("us", zone).table, Rebase("us", same).table
    assert [first.starts.tolist(), first.shifts.tolist()] == [second.starts.tolist(), second.shifts.tolist()]


def test_unknown_zones_count_as_utc():
    with pytest.warns(UserWarning, match="time zone 'Mars/Olympus' is unknown"):
        table = Rebase("us", "Mars/Olympus").table
    assert table.starts.tolist() == Rebase("us", "UTC").table.starts.tolist()


@pytest.mark.parametrize(
    ("stored", "dtype", "read"),
    [
        ("1500-06-11", "M8[D]", "1500-06-01"),
        ("1500-06-11", "M8[ms]", "1500-06-01"),
        ("1500-06-11", "M8[s]", "1500-06-01"),
        ("NaT", "M8[ms]", "NaT"),
        ("1700-01-01", "M8[ns]", "1700-01-01"),
    ],
)
def test_days_in_other_dtypes(stored, dtype, read):
    values = np.array([stored], dtype)
    Rebase("D").apply(values)
    np.testing.assert_array_equal(values, np.array([read], dtype))


def test_values_beyond_the_dtype_are_errors():
    values = np.array([-(1 << 63) + 1], "M8[ns]")
    with pytest.raises(UnsupportedError, match=r"legacy calendar is outside the range of \[ns\]"):
        Rebase("ns", "Asia/Kolkata").apply(values)


SPARK_ZONES = ["UTC", "America/Los_Angeles", "Asia/Kolkata", "Europe/Paris", "Europe/Berlin", "Asia/Tokyo"]


@pytest.mark.pyspark
@pytest.mark.parametrize("zone", SPARK_ZONES)
def test_shifts_are_those_of_spark(zone):
    """Spark's own tables lie in its jar, from the year 1 on."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
    (jar,) = Path(pyspark.__file__).parent.glob("jars/spark-sql-api_*.jar")
    with zipfile.ZipFile(jar) as files:
        (record,) = (
            each for each in json.loads(files.read("julian-gregorian-rebase-micros.json")) if each["tz"] == zone
        )
    starts, shifts = (np.array(record[name]) for name in ("switches", "diffs"))
    mine = Rebase("us", zone).table
    seconds = np.concatenate([edges + by for edges in (starts, mine.starts) for by in (-1, 0, 1)])
    seconds = seconds[seconds >= starts[0]]
    found, wanted = (shift[start.searchsorted(seconds, side="right") - 1] for start, shift in (mine, (starts, shifts)))
    np.testing.assert_array_equal(found, wanted)
