"""Joins with a large side filtered by the small side's keys match Spark's own join, for every key type.

Each key is tried as a set, as a range with a Bloom filter, and as a range alone. If Spark cannot read the files, the
reference is a read without keys.
"""

from __future__ import annotations

import datetime
import decimal
import functools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    INT96,
)
from numparq.format.schema import OPTIONAL
from numparq.format.schema_node import SchemaNode

pytestmark = [pytest.mark.spark, pytest.mark.slow]

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")

from pyspark.sql import functions  # noqa: E402

from numparq.spark.scan import runtime_filters  # noqa: E402

ROWS = 300
START = datetime.datetime(2020, 1, 1)
DAY = datetime.timedelta(days=1)
MICROSECOND = datetime.timedelta(microseconds=1)
SPARE = (np.nan, -0.0, 0.0, np.inf, -np.inf, 0.1)


def moments(step, offset=datetime.timedelta()):
    return [START + step * row + offset for row in range(ROWS)]


def floats(row):
    return SPARE[row % 10] if row % 10 < len(SPARE) else row / 4


def decimal_of(physical, precision, length=0):
    return SchemaNode("x", OPTIONAL, physical, length, LogicalType("DECIMAL", precision=precision, scale=1))


def moment_of(unit, *, utc):
    return SchemaNode("x", OPTIONAL, INT64, 0, LogicalType("TIMESTAMP", unit=unit, utc=utc))


def integer_of(bits, *, signed):
    return SchemaNode(
        "x", OPTIONAL, INT64 if bits == 64 else INT32, 0, LogicalType("INTEGER", bit_width=bits, signed=signed)
    )


def named(kind, physical=BYTE_ARRAY, length=0):
    return SchemaNode("x", OPTIONAL, physical, length, LogicalType(kind))


NANOSECONDS = pa.array(np.arange(ROWS, dtype="i8") * 3_600_000_000_000, pa.timestamp("ns"))
NUMBERS = list(range(ROWS))
TENTHS = [decimal.Decimal(row - 100).scaleb(-1) for row in range(ROWS)]
UUIDS = [bytes([row % 256, row // 256]) * 8 for row in range(ROWS)]
TEXTS = [["", "a", "ä", "𐍈", "a\0", "null", "A"][row % 7] if row % 3 else f"k{row:04}" for row in range(ROWS)]
# Schema node and values by column; every eleventh row becomes null.
COLUMNS = {
    "int96": (SchemaNode("x", OPTIONAL, INT96), pa.array(moments(DAY / 24), pa.timestamp("us"))),
    "ms": (moment_of("MILLIS", utc=True), pa.array(moments(DAY / 24), pa.timestamp("ms", "UTC"))),
    "us": (moment_of("MICROS", utc=True), pa.array(moments(DAY / 24, MICROSECOND), pa.timestamp("us", "UTC"))),
    "ns": (moment_of("NANOS", utc=True), pa.array(moments(DAY / 24), pa.timestamp("ns", "UTC"))),
    "ntz_ms": (moment_of("MILLIS", utc=False), pa.array(moments(DAY / 2), pa.timestamp("ms"))),
    "ntz_us": (moment_of("MICROS", utc=False), pa.array(moments(DAY / 2), pa.timestamp("us"))),
    "ntz_ns": (moment_of("NANOS", utc=False), pa.array(moments(DAY / 2), pa.timestamp("ns"))),
    "day": (named("DATE", INT32), pa.array([each.date() for each in moments(DAY)])),
    "flag": (SchemaNode("x", OPTIONAL, BOOLEAN), pa.array([row % 3 == 0 for row in NUMBERS])),
    "d9": (decimal_of(INT32, 9), pa.array(TENTHS, pa.decimal128(9, 1))),
    "d18": (decimal_of(INT64, 18), pa.array(TENTHS, pa.decimal128(18, 1))),
    "d30": (decimal_of(FIXED_LEN_BYTE_ARRAY, 30, 13), pa.array(TENTHS, pa.decimal128(30, 1))),
    "dfixed": (decimal_of(FIXED_LEN_BYTE_ARRAY, 9, 7), pa.array(TENTHS, pa.decimal128(9, 1))),
    "dbytes": (decimal_of(BYTE_ARRAY, 20), pa.array(TENTHS, pa.decimal128(20, 1))),
    "s": (named("STRING"), pa.array(TEXTS)),
    "enum": (named("ENUM"), pa.array([text.encode() for text in TEXTS])),
    "json": (named("JSON"), pa.array([f'"{text}"' for text in TEXTS])),
    "b": (SchemaNode("x", OPTIONAL, BYTE_ARRAY), pa.array([text.encode() + b"\xff" for text in TEXTS])),
    "bson": (named("BSON"), pa.array([text.encode() + b"\xff" for text in TEXTS])),
    "fixed": (SchemaNode("x", OPTIONAL, FIXED_LEN_BYTE_ARRAY, 16), pa.array(UUIDS, pa.binary(16))),
    "uuid": (named("UUID", FIXED_LEN_BYTE_ARRAY, 16), pa.array(UUIDS, pa.binary(16))),
    "half": (named("FLOAT16", FIXED_LEN_BYTE_ARRAY, 2), pa.array(np.array([floats(row) for row in NUMBERS], "f2"))),
    "float": (SchemaNode("x", OPTIONAL, FLOAT), pa.array(np.array([floats(row) for row in NUMBERS], "f4"))),
    "double": (SchemaNode("x", OPTIONAL, DOUBLE), pa.array(np.array([floats(row) for row in NUMBERS]))),
    "i8": (integer_of(8, signed=True), pa.array([row % 256 - 128 for row in NUMBERS], pa.int8())),
    "i16": (integer_of(16, signed=True), pa.array([row - 100 for row in NUMBERS], pa.int16())),
    "i32": (SchemaNode("x", OPTIONAL, INT32), pa.array([row - 100 for row in NUMBERS], pa.int32())),
    "i64": (SchemaNode("x", OPTIONAL, INT64), pa.array([(row - 100) << 33 for row in NUMBERS], pa.int64())),
    "u8": (integer_of(8, signed=False), pa.array([row % 256 for row in NUMBERS], pa.uint8())),
    "u32": (integer_of(32, signed=False), pa.array([(1 << 32) - 1 - row for row in NUMBERS], pa.uint32())),
    "u64": (integer_of(64, signed=False), pa.array([(1 << 64) - 1 - row for row in NUMBERS], pa.uint64())),
    "time": (
        SchemaNode("x", OPTIONAL, INT64, 0, LogicalType("TIME", unit="MICROS", utc=True)),
        pa.array([row * 1_000_000 for row in NUMBERS], pa.time64("us")),
    ),
    "nothing": (SchemaNode("x", OPTIONAL, INT32, 0, LogicalType("UNKNOWN")), pa.nulls(ROWS)),
}
# Columns that Spark's own reader refuses.
UNREADABLE_BY_SPARK = {"ns", "ntz_ns", "uuid", "half", "time"}


@pytest.fixture(scope="module")
def stored_folder(tmp_path_factory):
    """Write a folder per column: three row groups, pages of twenty rows, Bloom filters if the type has them."""
    folder = tmp_path_factory.mktemp("joined")
    for name, (node, values) in COLUMNS.items():
        present = pa.array([row % 11 != 5 for row in NUMBERS])
        column = pa.compute.if_else(present, values, pa.scalar(None, values.type))
        frame = pd.DataFrame({"id": np.arange(ROWS), "x": pd.arrays.ArrowExtensionArray(column)})
        (folder / name).mkdir()
        blooms = {} if name in ("flag", "nothing") else {"x": True}
        numparq.to_parquet(
            frame,
            folder / name / "a.parquet",
            index=False,
            schema={"x": node},
            row_group_size=100,
            max_rows_per_page=20,
            bloom_filter_options=blooms,
        )
    return folder


HOUR = "timestamp'2020-01-03 05:00:00'"
# Keys in SQL by column; a null is added to each.
KEYS = {
    "int96": [
        [HOUR, "timestamp'2020-01-01 00:00:00'", "timestamp'2020-01-01 00:00:00.000001'"],
        ["timestamp_seconds(316516204800)", HOUR],
        ["timestamp'0001-01-01 00:00:00'", HOUR],
        ["timestamp_ntz'2020-01-03 05:00:00'"],
        ["date'2020-01-03'"],
    ],
    "ms": [[HOUR, "timestamp'2020-01-01 00:00:00.0005'"], ["timestamp_seconds(316516204800)", HOUR]],
    "us": [
        ["timestamp'2020-01-03 05:00:00.000001'", HOUR],
        ["timestamp_ntz'2020-01-03 05:00:00.000001'"],
        ["'2020-01-03 05:00:00.000001'"],
    ],
    "ns": [
        [HOUR, "timestamp'2020-01-01 00:00:00.000001'"],
        ["timestamp'0001-01-01 00:00:00'", HOUR],
        ["timestamp'9999-12-31 23:59:59.999999'", HOUR],
    ],
    "ntz_ms": [["timestamp_ntz'2020-01-04 12:00:00'"], ["date'2020-01-03'", "date'2020-01-05'"], [HOUR]],
    "ntz_us": [
        ["timestamp_ntz'2020-01-04 12:00:00'"],
        ["date'2020-01-03'", "date'2020-01-05'"],
        ["timestamp'2020-01-03 12:00:00'"],
    ],
    "ntz_ns": [["timestamp_ntz'2020-01-04 12:00:00'"], ["date'2020-01-03'", "date'2020-01-05'"]],
    "day": [
        ["date'2020-01-03'", "date'0001-01-01'"],
        ["date'12000-01-01'", "date'2020-01-03'"],
        ["timestamp_ntz'2020-01-03 00:00:00'", "timestamp_ntz'2020-01-04 00:00:01'"],
        ["timestamp'2020-01-03 00:00:00'"],
        ["'2020-01-03'"],
    ],
    "flag": [["true"], ["false", "true"], ["'true'"]],
    **{
        name: [["1.5", "-3.0", "1.55"], ["3", "-9", "4000000"], ["1.5D"]] for name in ("d18", "d30", "dfixed", "dbytes")
    },
    "d9": [
        ["1.5", "-3.0", "1.55"],
        ["cast(1.5 as decimal(20, 10))"],
        ["3", "-9", "4000000"],
        ["cast(3 as tinyint)"],
        ["cast(3 as bigint)", "9223372036854775807L"],
        ["1.5D", "0.1D"],
        ["'1.5'"],
        ["cast(1.5 as decimal(38, 20))"],
        ["cast(3 as decimal(38, 0))"],
    ],
    "s": [["'k0003'", "'a'"], ["''", "'𐍈'", "'a\\0'"], ["'k0003 '"], ["X'61'"], ["cast(X'ff' as string)", "'a'"]],
    "enum": [["'k0003'", "'a'", "''"]],
    "json": [["'\"k0003\"'", "'\"a\"'"]],
    "b": [["X'61ff'", "X'ff'", "X''"], ["'a'"]],
    "bson": [["X'61ff'", "X'ff'", "X''"]],
    "fixed": [["X'03000300030003000300030003000300'", "X'0300'", "X''"]],
    "uuid": [
        ["'03000300-0300-0300-0300-030003000300'", "'0a000A00-0A00-0A00-0A00-0A000A000A00'", "'none'", "''"],
        ["'03000300030003000300030003000300'"],
        ["'none'"],
    ],
    "half": [["float(0.1)", "float(-0.0)", "float('infinity')"], ["0.1D", "0.0D", "9D"]],
    "float": [
        ["float(0.1)", "float(-0.0)", "float('infinity')"],
        ["0.1D", "0.0D", "9D"],
        ["float('nan')", "1F"],
        ["9"],
        ["double('-infinity')", "1e300D"],
    ],
    "double": [
        ["float(0.1)", "float(-0.0)", "9F"],
        ["0.1D", "0.0D", "9D"],
        ["double('nan')", "1D"],
        ["9", "0"],
        ["2.25"],
        ["'9'"],
        ["double('-infinity')", "1e300D"],
    ],
    "i8": [
        ["cast(3 as tinyint)", "cast(-3 as tinyint)"],
        ["cast(300 as smallint)", "cast(7 as smallint)"],
        ["7", "-100", "100000"],
        ["7L", "9223372036854775807L", "(-9223372036854775807L - 1)"],
        ["cast(7 as decimal(20, 0))", "cast(-7 as decimal(20, 0))"],
        ["7.0", "7.5"],
        ["7D", "0.5D"],
        ["'7'"],
        ["cast(7 as decimal(38, 0))", "cast(-100 as decimal(38, 0))"],
    ],
    **{
        name: [["7", "-100", "100000"], ["7L", "9223372036854775807L"], ["7.0"], ["cast(-3 as tinyint)"]]
        for name in ("i16", "i32", "u8", "nothing")
    },
    "i64": [
        ["shiftleft(7L, 33)", "7L", "(-9223372036854775807L - 1)"],
        ["0", "7"],
        ["cast(shiftleft(7L, 33) as double)"],
        ["cast(shiftleft(7L, 33) as decimal(38, 2))", "0.01"],
        ["cast(shiftleft(7L, 33) as decimal(38, 18))"],
    ],
    "u32": [["4294967295L", "-1L"], ["-1", "7"], ["cast(4294967295L as decimal(12, 1))"]],
    "u64": [
        ["cast('18446744073709551615' as decimal(20, 0))", "cast(-1 as decimal(20, 0))"],
        ["-1L", "7L"],
        ["cast('18446744073709551615' as decimal(38, 0))"],
        ["18446744073709551615D"],
    ],
    "time": [["time'00:00:03'", "time'00:00:03.5'"], ["time'23:59:59.999999'"]],
}
# MAX_VALUES and MAX_COLLECTED of each form.
LIMITS = {"set": (2_000, 5_000_000), "Bloom filter": (0, 5_000_000), "range": (0, 0)}


def small_of(spark, keys):
    return spark.sql(f"select * from values ({'), ('.join(keys)}), (null) as small(key)")


def partners(large, small, column="x"):
    """Return the distinct ids of matching rows."""
    return sorted(row[0] for row in large.join(small, large[column] == small["key"]).select(large["id"]).collect())


def check(spark, monkeypatch, path, several, *, native=True, column="x", **options):
    """Compare reads filtered by keys with a join of unfiltered reads; return matching rows and rows read for each.

    Every matching row must be among the rows read.
    """
    plain = spark.read.parquet(str(path)) if native else numparq.spark.read(spark, str(path), driver_bytes=0, **options)
    joined = [
        plain.join(small, plain[column] == small["key"]).select(plain["id"], functions.lit(number))
        for number, small in enumerate(several)
    ]
    pairs = functools.reduce(lambda one, other: one.union(other), joined).collect()
    found = []
    for number, small in enumerate(several):
        expected, read = sorted(row[0] for row in pairs if row[1] == number), {}
        for how, (values, collected) in LIMITS.items():
            if how == "range" and number:
                continue  # the range read does not depend on the keys
            monkeypatch.setattr(runtime_filters, "MAX_VALUES", values)
            monkeypatch.setattr(runtime_filters, "MAX_COLLECTED", collected)
            rows = numparq.spark.read(spark, str(path), runtime_filters={column: small}, **options).collect()
            read[how] = sorted(row["id"] for row in rows)
            assert set(expected) <= set(read[how]), (small.schema, how)
        found.append((expected, read))
    return found


@pytest.mark.driver_reads
@pytest.mark.parametrize("column", KEYS)
def test_key_types_match_spark_joins(spark, stored_folder, monkeypatch, column):
    several = [small_of(spark, keys) for keys in KEYS[column]]
    check(spark, monkeypatch, stored_folder / column, several, native=column not in UNREADABLE_BY_SPARK)


@pytest.mark.parametrize("column", ["us", "s", "double"])
def test_joins_of_task_reads(spark, stored_folder, column):
    """The join runs over rows that tasks read."""
    small = small_of(spark, KEYS[column][0])
    expected = partners(spark.read.parquet(str(stored_folder / column)), small)
    read = numparq.spark.read(spark, str(stored_folder / column), runtime_filters={"x": small})
    assert partners(read, small) == expected
    assert len(set(expected)) <= read.count() < ROWS


# --- rows that are not read -------------------------------------------------------------------------------------------

SELECTIVE = [
    "int96",
    "ms",
    "us",
    "ns",
    "ntz_us",
    "ntz_ns",
    "day",
    "d9",
    "d30",
    "dbytes",
    "s",
    "json",
    "fixed",
    "uuid",
    "i8",
    "i64",
    "u32",
    "u64",
    "time",
]


@pytest.mark.driver_reads
@pytest.mark.parametrize("column", SELECTIVE)
def test_only_matching_rows_are_read(spark, stored_folder, column):
    """A set of keys drops every other row."""
    small = small_of(spark, KEYS[column][0])
    read = numparq.spark.read(spark, str(stored_folder / column), runtime_filters={"x": small})
    assert read.count() == len(set(partners(read, small))) > 0


# --- timestamps -------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_new_york(spark):
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.driver_reads
@pytest.mark.parametrize("column", ["int96", "ms", "us", "ntz_us", "day"])
def test_keys_in_another_time_zone(spark, stored_folder, monkeypatch, in_new_york, column):
    noon = "'2020-01-04 12:00:00'"
    several = [HOUR, f"timestamp{noon}"], [f"timestamp_ntz{noon}"], ["date'2020-01-03'"]
    check(spark, monkeypatch, stored_folder / column, [small_of(spark, keys) for keys in several])


def write_moments(folder, *, is_int96, zone="UTC"):
    """Write 300 timestamps within three microseconds."""
    moments = pa.array(np.arange(1_000_000_000_000_000_000, 1_000_000_000_000_003_000, 10), pa.timestamp("ns", zone))
    table = pa.table({"id": pa.array(range(len(moments))), "x": moments})
    pq.write_table(table, folder / "a.parquet", use_deprecated_int96_timestamps=is_int96, row_group_size=50)


@pytest.mark.driver_reads
@pytest.mark.parametrize("count", [1, 2, 150])
@pytest.mark.parametrize("is_int96", [True, False], ids=["INT96", "TIMESTAMP"])
def test_nanoseconds_within_a_microsecond(spark, tmp_path, monkeypatch, is_int96, count):
    """Spark sees one timestamp, so all of them match its key."""
    write_moments(tmp_path, is_int96=is_int96)
    small = spark.range(count).selectExpr(f"timestamp_micros(1000000000000000 + (id - {count // 2}) * 2) as key")
    options = {} if is_int96 else {"nanoseconds": "floor"}
    ((expected, _),) = check(spark, monkeypatch, tmp_path, [small], native=is_int96, **options)
    assert expected == list(range(100)) + (list(range(200, 300)) if count == 150 else [])


def test_nanoseconds_of_matching_rows_are_refused(spark, tmp_path):
    """The error is raised only if the row is read."""
    write_moments(tmp_path, is_int96=False)
    for moment, count in ((1000000000000001, None), (1, 0)):
        small = spark.sql(f"select timestamp_micros({moment}) as key")
        found = numparq.spark.read(spark, str(tmp_path), runtime_filters={"x": small})
        if count is None:
            with pytest.raises(Exception, match=r"cannot be stored in microseconds.*column 'x'"):
                found.collect()
        else:
            assert found.count() == count


@pytest.mark.driver_reads
@pytest.mark.parametrize(("unit", "plan_files"), [("ms", None), ("us", 1), ("ns", None)])
def test_durations_join_as_integers(spark, tmp_path, monkeypatch, unit, plan_files):
    """The footer's Arrow schema declares durations, which Spark ignores."""
    values = [*range(100), -(1 << 63), (1 << 63) - 1]
    for number in range(2):
        column = pa.array(values, pa.int64()).view(pa.duration(unit))
        pq.write_table(pa.table({"id": list(range(len(values))), "x": column}), tmp_path / f"{number}.parquet")
    several = ["7L", "50L", "-1L"], ["9223372036854775807L"], ["(-9223372036854775807L - 1)", "3L"], ["7"], ["7.0"]
    check(spark, monkeypatch, tmp_path, [small_of(spark, keys) for keys in several], plan_files=plan_files)


# --- build sides ------------------------------------------------------------------------------------------------------


@pytest.mark.driver_reads
@pytest.mark.parametrize("column", ["int96", "us", "day", "flag", "d9", "s", "uuid", "double"])
def test_empty_or_null_keys_read_nothing(spark, stored_folder, monkeypatch, column):
    """Covers every key type."""
    kind = numparq.spark.read(spark, str(stored_folder / column)).schema["x"].dataType.simpleString()
    null = f"select cast(null as {kind}) as key"
    for small in (spark.sql(null), spark.sql(f"{null} where false")):
        for values, collected in LIMITS.values():
            monkeypatch.setattr(runtime_filters, "MAX_VALUES", values)
            monkeypatch.setattr(runtime_filters, "MAX_COLLECTED", collected)
            assert numparq.spark.read(spark, str(stored_folder / column), runtime_filters={"x": small}).collect() == []


@pytest.mark.parametrize("count", [3_000, 60_000])
def test_many_keys_match_spark_joins(spark, tmp_path, monkeypatch, count):
    """More keys than fit in a set: integers of several widths, strings, dates."""
    rows = np.arange(4_000)
    frame = pd.DataFrame(
        {
            "id": rows,
            "i": (rows * 37 % 5_000).astype("i4"),
            "l": rows * 1_000_003,
            "s": [f"key {row}" for row in rows],
            "d": pd.array([datetime.date(1900, 1, 1) + DAY * int(row) for row in rows], pd.ArrowDtype(pa.date32())),
        }
    )
    numparq.to_parquet(
        frame,
        tmp_path / "a.parquet",
        index=False,
        row_group_size=500,
        max_rows_per_page=50,
        bloom_filter_options=dict.fromkeys("ilsd", True),
    )
    keys = {
        "i": ["id * 7", "cast(id % 30000 as smallint)"],
        "l": ["id * 2000006", "cast(id as int)"],
        "s": ["concat('key ', id * 3)"],
        "d": ["date_add(date'1903-01-01', cast(id as int))"],
    }
    for column, filtered in keys.items():
        for sql in filtered:
            small = spark.range(count).selectExpr(f"{sql} as key").union(spark.sql("select null as key"))
            expected = partners(spark.read.parquet(str(tmp_path)), small, column)
            found = numparq.spark.read(spark, str(tmp_path), runtime_filters={column: small})
            assert partners(found, small, column) == expected
            assert len(set(expected)) <= found.count() <= len(rows)


def test_uncollectable_keys_become_a_range(spark, stored_folder, monkeypatch):
    """Spark refuses to collect them; any other failure is raised."""
    calls = []

    def collected(self):
        calls.append(self)
        if len(calls) == 1:
            raise RuntimeError("bigger than spark.driver.maxResultSize (1024.0 MiB)")
        return collect(self)

    small = small_of(spark, ["10", "20"])
    collect = type(small).toArrow
    monkeypatch.setattr(type(small), "toArrow", collected)
    found = numparq.spark.read(spark, str(stored_folder / "i32"), runtime_filters={"x": small})
    assert sorted(row.x for row in found.collect()) == [row for row in range(10, 21) if (row + 100) % 11 != 5]
    broken = spark.range(5).selectExpr("raise_error('no such luck') as key").selectExpr("cast(key as int) as key")
    with pytest.raises(Exception, match="no such luck"):
        numparq.spark.read(spark, str(stored_folder / "i32"), runtime_filters={"x": broken})


# --- many files -------------------------------------------------------------------------------------------------------


def write_each(folder, tables):
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), folder / name)


@pytest.mark.driver_reads
@pytest.mark.parametrize("plan_files", [None, 1])
def test_files_with_different_types(spark, tmp_path, monkeypatch, plan_files):
    """A column is wider in one file than in another and missing in a third."""
    write_each(
        tmp_path,
        {
            "a.parquet": {"id": list(range(50)), "x": pa.array(range(50), pa.int64())},
            "b.parquet": {"id": list(range(50, 90)), "x": pa.array(range(10, 50), pa.int32())},
            "c.parquet": {"id": list(range(90, 99))},
        },
    )
    several = ["12", "45", "3"], ["12L", "9223372036854775807L"], ["cast(12 as decimal(20, 1))"]
    smalls = [small_of(spark, keys) for keys in several]
    found = check(spark, monkeypatch, tmp_path, smalls, native=False, plan_files=plan_files)
    assert [expected for expected, _ in found] == [[3, 12, 45, 52, 85], [12, 52], [12, 52]]
    assert all(read["set"] == expected for expected, read in found)


PARTITIONS = {
    "number": (["1", "2", "__HIVE_DEFAULT_PARTITION__"], [["1"], ["2L", "5L"], ["cast(1 as decimal(5, 1))"], ["'1'"]]),
    "long": (["1", "3000000000"], [["1", "7"], ["3000000000"]]),
    "whole": (["1", "30000000000000000000"], [["1"], ["30000000000000000000"]]),
    "double": (["1.5", "2", "NaN"], [["1.5D", "-0.0D"], ["2"], ["double('nan')"], ["float(1.5)"], ["1.5"]]),
    "day": (
        ["2020-01-01", "2020-01-02"],
        [
            ["date'2020-01-01'"],
            ["timestamp_ntz'2020-01-01 00:00:00'"],
            ["timestamp'2020-01-01 00:00:00'"],
            ["'2020-01-01'"],
        ],
    ),
    "text": (["a", "b%20c", "__HIVE_DEFAULT_PARTITION__"], [["'a'"], ["'b c'"], ["''"]]),
    "nulls": (["__HIVE_DEFAULT_PARTITION__"], [["'a'"]]),
}


@pytest.mark.driver_reads
@pytest.mark.parametrize("name", PARTITIONS)
def test_keys_of_partition_columns(spark, tmp_path, monkeypatch, name):
    values, several = PARTITIONS[name]
    write_each(tmp_path, {f"x={value}/a.parquet": {"id": [2 * at, 2 * at + 1]} for at, value in enumerate(values)})
    check(spark, monkeypatch, tmp_path, [small_of(spark, keys) for keys in several])


@pytest.mark.driver_reads
def test_partition_column_shadows_file_column(spark, tmp_path, monkeypatch):
    """The two columns have different types, and so different hashes."""
    write_each(tmp_path, {f"x={key}/a.parquet": {"id": [key], "x": pa.array([9], pa.int64())} for key in (1, 2, 3)})
    several = [small_of(spark, keys) for keys in (["1", "3"], ["1L", "9L"])]
    found = check(spark, monkeypatch, tmp_path, several, native=False)
    assert [(expected, read["set"]) for expected, read in found] == [([1, 3], [1, 3]), ([1], [1])]


@pytest.mark.driver_reads
def test_keys_of_struct_fields_and_user_schema(spark, tmp_path, monkeypatch):
    write_each(
        tmp_path,
        {"a.parquet": {"id": [1, 2, 3], "x": pa.array([1, 2, 3], pa.int32()), "s": [{"x": 1}, None, {"x": 3}]}},
    )
    small = small_of(spark, ["3", "2"])
    for kind in ("bigint", "double", "decimal(12, 2)", "int"):
        found = check(spark, monkeypatch, tmp_path, [small], schema=f"id bigint, x {kind}", native=False)
        assert found[0][0] == [2, 3]
    read = numparq.spark.read(spark, str(tmp_path), runtime_filters={("s", "x"): small})
    assert [row.id for row in read.collect()] == [3]
    assert partners(read.select("id", "s.x"), small) == [3]


def test_map_pandas_with_runtime_filters(spark, tmp_path):
    """Jobs read partition columns of dates as text."""
    write_each(tmp_path, {f"x=2020-01-0{key}/a.parquet": {"id": [key]} for key in (1, 2, 3)})

    def numbers(frame):
        return frame[["id"]]

    for keys, expected in ((["'2020-01-02'"], [2]), (["date'2020-01-02'"], [1, 2, 3])):
        filtered = numparq.spark.map_pandas(
            spark, str(tmp_path), numbers, "id bigint", runtime_filters={"x": small_of(spark, keys)}
        )
        assert sorted(row.id for row in filtered.collect()) == expected
