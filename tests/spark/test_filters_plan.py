"""Tables planned with Spark's filter text: rows, names in other case, refused comparisons. Needs no Java."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")

from numparq.dataset.splits.table import split_table
from numparq.errors import SchemaError
from numparq.spark.filters.dialect import SparkDialect
from numparq.spark.filters.plan import plan_with_text

pytestmark = pytest.mark.pyspark

PARIS = SparkDialect(ZoneInfo("Europe/Paris"))
NOON = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)
BIG = 9007199254740993
HUGE = 9223372036854775808  # to Spark, all of a bigint column is below, nulls too


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Four rows: a number, NaN, the number's neighbour, null."""
    ns = pa.array([0, 1, 999, None], pa.int64()).cast(pa.timestamp("ns"))
    columns = {
        "row": pa.array(range(4)),
        "x": pa.array([1.0, math.nan, 3.0, None]),
        "f": pa.array([0.1, math.nan, 16777216.0, None], pa.float32()),
        "n": pa.array([BIG - 1, BIG, 3, None], pa.int64()),
        "d": pa.array([Decimal("1.10"), Decimal("2.00"), Decimal("3.00"), None]),
        "s": pa.array(["a%", "ab", "a\\b", None]),
        "day": pa.array([datetime.date(2024, 7, 1), datetime.date(2024, 7, 2), datetime.date(1500, 1, 1), None]),
        "at": pa.array([NOON, NOON + datetime.timedelta(hours=2), NOON, None], pa.timestamp("us", "UTC")),
        "local": pa.array([NOON.replace(tzinfo=None)] * 3 + [None], pa.timestamp("us")),
        "fine": ns,
        "a.b": pa.array([7, 8, 9, None]),
        "st": pa.array([{"In.ner": 1}, {"In.ner": 2}, None, {"In.ner": None}]),
    }
    path = tmp_path_factory.mktemp("text") / "a.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return str(path)


def rows(file, text, dialect=PARIS):
    def plan(filters):
        return split_table(file, ["row"], filters)

    table = plan_with_text(text, dialect, plan)
    return [row for split in table.splits for row in table.frame(split)["row"]]


ROWS = {
    "x > 2": [1, 2],
    "x >= 1": [0, 1, 2],
    "x < 2": [0],
    "x <> 3": [0, 1],
    "not x > 2": [0],
    "x = x": [0, 1, 2],
    "x >= f": [0, 1],
    "f <= x": [0, 1],
    "x < f": [2],
    "x <=> f": [1, 3],
    "not x <=> 1": [1, 2, 3],
    "f = 0.1": [],
    "f > 0.1": [0, 1, 2],
    "f = 16777217": [],
    "f in (16777216, 0.5)": [2],
    f"n = {BIG}": [1],
    "n > 2.5": [0, 1, 2],
    "n < 1e2": [2],
    f"n <= {HUGE}": [0, 1, 2, 3],
    f"N <= {HUGE}.5": [0, 1, 2, 3],
    f"not n > {HUGE}": [0, 1, 2, 3],
    f"n > -{HUGE} and x > 2": [1, 2],
    f"n < -{HUGE} or n is null": [3],
    f"n between 3 and {HUGE}": [0, 1, 2],
    f"n not between {HUGE} and {HUGE}9": [0, 1, 2, 3],
    f"st.`in.ner` < {HUGE}": [0, 1, 2, 3],
    f"n <> {HUGE}": [0, 1, 2],
    f"not n in ({HUGE})": [0, 1, 2],
    f"x < {HUGE}": [0, 2],
    f"d < {HUGE}": [0, 1, 2],
    "n <= 9223372036854775807": [0, 1, 2],
    "d = 1.1": [0],
    r"s like 'a\%'": [0],
    r"s like 'a\\\\b'": [2],
    "s like 'a_'": [0, 1],
    "S = 'ab'": [1],
    "day = '2024-7-1'": [0],
    "at = '2024-07-01 14:00'": [0, 2],
    "at > '2024-07-01 12:00:00Z'": [1],
    "at >= '2024-07-01T16:00:00+02:00'": [1],
    "local = '2024-07-01 12:00:00'": [0, 1, 2],
    "fine = '1970-01-01'": [0, 1, 2],
    "fine > '1970-01-01'": [],
    "`A.B` = 8": [1],
    "st.`in.NER` = 2": [1],
    "ROW <=> row": [0, 1, 2, 3],
}


@pytest.mark.parametrize("text", ROWS)
def test_rows(file, text):
    assert rows(file, text) == ROWS[text]


REFUSED = {
    "n = 9007199254740992e0": "rounds the column to double",
    "d = 1.1e0": "rounds the column to double",
    "d = '1.1'": "Spark casts text to its type",
    "n = '3'": "Spark casts text to its type",
    "n = x": "Spark rounds a number to a float",
    "x < d": "Spark rounds a number to a float",
    "day = '2024-07-01 12:00'": "not a date such as",
    "at = '2024'": "not a timestamp such as",
    "at = '2024-07-01 25:00'": "not a timestamp such as",
    "at = '2024-07-01 12:00 Nowhere/Land'": "not a timestamp such as",
    "local = '2024-07-01 12:00:00Z'": "the column has local times",
    "a.b = 8": "no column",
    "nope = 8": "no column 'nope'",
    f"s < {HUGE}": "cannot be compared",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(file, text):
    with pytest.raises(SchemaError, match=REFUSED[text]):
        rows(file, text)


def test_numbers_outside_bigint_beside_partition_columns(tmp_path):
    table = pa.table({"row": [0, 1], "p": [1, None], "u": pa.array([1, None], pa.uint64())})
    pq.write_to_dataset(table, tmp_path, partition_cols=["p"])
    for text in (f"p < {HUGE}", f"not p > {HUGE}"):
        assert sorted(rows(str(tmp_path), text)) == [0, 1]
    assert rows(str(tmp_path), f"u <= {HUGE}") == [0]  # a decimal to Spark


def test_a_plus_before_a_number_outside_bigint_is_refused(file):
    with pytest.raises(ValueError, match=r"write it without \+"):
        rows(file, f"n < +{HUGE}")


def test_settings_of_a_session(file):
    assert rows(file, "f = 16777217", SparkDialect(ansi=False)) == [2]
    with pytest.raises(SchemaError, match="no column 'S'"):
        rows(file, "S = 'ab'", SparkDialect(case_sensitive=True))
    with pytest.raises(SchemaError, match="set the option 'timeZone'"):
        rows(file, "at = '2024-07-01 14:00'", SparkDialect())
    assert rows(file, "at = '2024-07-01 12:00Z'", SparkDialect()) == [0, 2]


def test_clock_changes_are_as_in_java(tmp_path):
    """A time that a zone skips is later by the gap; one that it has twice is the first."""
    spring = datetime.datetime(2024, 3, 31, 1, 30, tzinfo=datetime.UTC)
    autumn = datetime.datetime(2024, 10, 27, 0, 30, tzinfo=datetime.UTC)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"row": [0, 1], "at": pa.array([spring, autumn], pa.timestamp("us", "UTC"))}), path)
    assert rows(path, "at = '2024-03-31 02:30'") == [0]
    assert rows(path, "at = '2024-10-27 02:30'") == [1]
