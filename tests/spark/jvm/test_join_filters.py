"""Join keys as runtime filters; pushdown of query filters, and the probe that forbids it."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.errors import SchemaError, UnsupportedError
from numparq.spark.scan import runtime_filters
from numparq.spark.scan.runtime_filters import build_runtime_filters

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
from pyspark.sql import (
    datasource,
    types,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 4_000
START = datetime.datetime(2020, 1, 1)


@pytest.fixture(scope="module")
def stored_folder(tmp_path_factory):
    """Write rows sorted by key, in pages of 100, with Bloom filters."""
    folder = tmp_path_factory.mktemp("stored")
    number = np.arange(ROWS)
    days = [(START + datetime.timedelta(days=int(each))).date() for each in number]
    amounts = [decimal.Decimal(int(each)).scaleb(-1) for each in number]
    quarters = np.where(number % 7 == 0, np.nan, number / 4)  # NaN, which pandas' own floats would make null
    frame = pd.DataFrame(
        {
            "id": number,
            "small": number.astype("i4"),
            "s": [f"k{each:05}" for each in number],
            "day": pd.array(days, pd.ArrowDtype(pa.date32())),
            "t": START + pd.to_timedelta(number, "h"),
            "x": pd.arrays.ArrowExtensionArray(pa.array(quarters)),
            "d": pd.array(amounts, pd.ArrowDtype(pa.decimal128(9, 1))),
        }
    )
    numparq.to_parquet(
        frame,
        folder / "a.parquet",
        index=False,
        row_group_size=1_000,
        max_rows_per_page=100,
        bloom_filter_options={"id": True, "s": True},
    )
    return str(folder)


# By column: SQL for the small side's key from a number.
KEYS = {
    "id": "cast(n as int)",
    "small": "n",
    "s": "format_string('k%05d', n)",
    "day": "date_add(date'2020-01-01', cast(n as int))",
    "t": "cast(timestamp'2020-01-01 00:00:00' + make_dt_interval(0, cast(n as int)) as timestamp_ntz)",
    "d": "cast(n / 10 as decimal(12, 2))",
    "x": "n / 4",
}


@pytest.mark.parametrize("limit", [runtime_filters.MAX_VALUES, 5], ids=["values", "range and Bloom filter"])
@pytest.mark.parametrize("column", KEYS)
def test_filtered_joins_match(spark, stored_folder, monkeypatch, column, limit):
    """Matching rows equal those of an unfiltered read; few others are read."""
    monkeypatch.setattr(runtime_filters, "MAX_VALUES", limit)
    small = spark.range(-20, 5_000, 50).selectExpr("id as n").filter("n between 900 and 1800 or n < 0 or n = 4500")
    small = small.union(spark.sql("select cast(null as bigint)")).selectExpr(f"{KEYS[column]} as key")
    found = numparq.spark.read(
        spark, stored_folder, list(dict.fromkeys(["id", column])), runtime_filters={column: small}
    )
    joined = found.join(small, found[column] == small.key)
    expected = [number for number in range(930, 1801) if (number + 20) % 50 == 0]
    expected = [number for number in expected if column != "x" or number % 7]
    assert sorted(row[0] for row in joined.select(found[0]).collect()) == expected
    assert found.count() < ROWS


def test_row_groups_without_keys_are_not_read(spark, stored_folder, monkeypatch):
    from numparq.spark.scan.plan import SparkScan
    from numparq.spark.scan.request import ReadRequest

    small = spark.range(1_200, 1_300)
    for limit in (runtime_filters.MAX_VALUES, 5):
        monkeypatch.setattr(runtime_filters, "MAX_VALUES", limit)
        filters = build_runtime_filters(spark, {"id": small})
        table = SparkScan.plan(ReadRequest(stored_folder, runtime_filters=filters))
        groups = {group.row_group for split in table.splits for part in split.parts for group in part.groups}
        assert groups == {1}


def test_key_dataframe_is_evaluated_once(spark, stored_folder):
    """It is evaluated when the read is planned, not in the tasks."""
    calls = spark.sparkContext.accumulator(0)

    def counted(batches):
        for batch in batches:
            calls.add(1)
            yield batch

    small = spark.range(0, 10, 1, 1).mapInArrow(counted, "id bigint")
    found = numparq.spark.read(spark, stored_folder, ["id"], runtime_filters={"id": small})
    assert calls.value == 1
    assert (found.count(), found.count()) == (10, 10)
    assert calls.value == 1


def test_empty_keys_read_nothing(spark, stored_folder):
    found = numparq.spark.read(spark, stored_folder, runtime_filters={"id": spark.range(0)})
    assert found.count() == 0


def test_nan_keys_match_nan(spark, stored_folder, monkeypatch):
    """Spark's own reader would skip NaN rows by bounds that exclude NaN."""
    small = spark.sql("select double('nan') as x union all select 1.0D")
    for limit in (runtime_filters.MAX_COLLECTED, 1):
        monkeypatch.setattr(runtime_filters, "MAX_COLLECTED", limit)
        found = numparq.spark.read(spark, stored_folder, ["id", "x"], runtime_filters={"x": small})
        assert found.join(small, "x").count() == 1 + len(range(0, ROWS, 7))


def test_too_many_keys_become_a_range(spark, stored_folder, monkeypatch):
    monkeypatch.setattr(runtime_filters, "MAX_COLLECTED", 10)
    monkeypatch.setattr(runtime_filters, "MAX_VALUES", 5)
    for keys, column in (("id", "id"), ("format_string('k%05d', id)", "s")):
        small = spark.range(100, 200).selectExpr(f"{keys} as key")
        assert numparq.spark.read(spark, stored_folder, ["id"], runtime_filters={column: small}).count() == 100


def test_runtime_filter_arguments(spark, stored_folder):
    given = numparq.RuntimeFilter("id", values=[5, 3_999])
    more = {"s": spark.sql("select 'k03999' as s, 1 as other")}
    for filters, expected in ((given, [5, 3_999]), ({"id": given}, [5, 3_999]), ([given, more], [3_999])):
        found = numparq.spark.read(spark, stored_folder, ["id"], runtime_filters=filters).collect()
        assert sorted(row.id for row in found) == expected


def test_timestamp_keys_of_int96_and_micros(spark, tmp_path):
    """Spark stores timestamps as INT96, which has no zone for numparq, or as TIMESTAMP with UTC."""
    for kind in ("INT96", "TIMESTAMP_MICROS"):
        spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
        spark.range(1_000).selectExpr("id", "timestamp_seconds(id) as t").write.parquet(str(tmp_path / kind))
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
        small = spark.range(10, 5_000, 100).selectExpr("timestamp_seconds(id) as t")
        found = numparq.spark.read(spark, str(tmp_path / kind), runtime_filters={"t": small})
        assert sorted(row.id for row in found.collect()) == list(range(10, 1_000, 100))
        assert found.join(small, "t").count() == 10


def test_invalid_keys_are_refused(spark, stored_folder):
    with pytest.raises(ValueError, match="the keys for 'id' can be any of a, b"):
        numparq.spark.read(spark, stored_folder, runtime_filters={"id": spark.sql("select 1 as a, 2 as b")})
    with pytest.raises(TypeError, match="a Spark DataFrame, not list"):
        numparq.spark.read(spark, stored_folder, runtime_filters={"id": [1, 2]})
    with pytest.raises(ValueError, match="'id' is on column 's'"):
        numparq.spark.read(spark, stored_folder, runtime_filters={"id": numparq.RuntimeFilter("s", values=["a"])})
    with pytest.raises(TypeError, match="runtime filters must be"):
        numparq.spark.read(spark, stored_folder, runtime_filters=spark.range(3))
    with pytest.raises(SchemaError, match="none"):
        numparq.spark.read(spark, stored_folder, runtime_filters={"none": spark.range(3)})
    with pytest.raises(UnsupportedError, match="collation"):
        numparq.spark.read(spark, stored_folder, runtime_filters={"s": spark.sql("select 'a' collate UTF8_LCASE as s")})


def test_collation_of_a_table_is_refused(spark, tmp_path):
    spark.sql("select 'a' collate UTF8_LCASE as s").write.parquet(str(tmp_path / "a"))
    with pytest.raises(UnsupportedError, match="collation"):
        numparq.spark.read(spark, str(tmp_path / "a"), runtime_filters={"s": spark.sql("select 'A' as s")})


def test_pushdown_is_refused_if_filters_leak(spark):
    """Spark 4.3.0 applies filters of one query to others; fixed versions may register."""
    from numparq.spark.data_source.pushdown import filters_leak

    if not filters_leak(spark):
        pytest.skip("this Spark keeps the filters of queries apart")
    with pytest.raises(UnsupportedError, match="applies the filters of one query to other queries"):
        numparq.spark.register(spark, pushdown=True)


def test_pushed_filters_drop_rows(stored_folder):
    """Uses the reader directly, as a Spark without the defect would."""
    from numparq.spark.data_source.pushdown import PushdownDataSource

    source = PushdownDataSource({"path": stored_folder, "pushdown": "true", "filter": "id >= 100"})
    reader = source.reader(source.schema())
    assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) == ROWS - 100
    given = [
        datasource.LessThan(("id",), 300),
        datasource.GreaterThan(("x",), 0.0),
        datasource.In(("small",), (1, 150, 299)),
        datasource.Not(datasource.EqualTo(("s",), "k00150")),
        datasource.IsNotNull(("day",)),
        datasource.EqualNullSafe(("id",), 7),
    ]
    assert list(reader.pushFilters(given)) == given
    found = [row for part in reader.partitions() for batch in reader.read(part) for row in batch["id"].to_pylist()]
    assert found == [299]


def test_pushed_timestamps_of_int96(tmp_path):
    """Pushed timestamps have a zone, INT96 has none."""
    from numparq.spark.data_source.pushdown import PushdownDataSource

    moments = pa.array(range(0, 10**7, 10**6), pa.timestamp("us"))
    pq.write_table(pa.table({"t": moments}), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    source = PushdownDataSource({"path": str(tmp_path), "pushdown": "true"})
    reader = source.reader(source.schema())
    limit = datetime.datetime(1970, 1, 1, 0, 0, 7, tzinfo=datetime.UTC)
    reader.pushFilters([datasource.GreaterThan(("t",), limit), datasource.In(("t",), (limit, limit.replace(second=8)))])
    found = [row for part in reader.partitions() for batch in reader.read(part) for row in batch["t"].to_pylist()]
    assert found == [limit.replace(second=8)]


@pytest.mark.parametrize(
    "each",
    [
        datasource.EqualTo(("x",), 1.0),
        datasource.EqualTo(("gone",), 1),
        datasource.EqualTo(("s", "inner"), 1),
        datasource.EqualTo(("s",), None),
        datasource.Not(datasource.In(("id",), (1, None))),
        datasource.EqualNullSafe(("id",), None),
        datasource.StringEndsWith(("s",), "a"),
    ],
    ids=repr,
)
def test_unsupported_filters_are_left_to_spark(each):
    from numparq.spark.data_source.pushdown import to_expression

    schema = types.StructType().add("id", "long").add("x", "double").add("s", "string")
    assert to_expression(each, schema, dict.fromkeys(["id", "x", "s"], False)) is None


D = decimal.Decimal
MIDNIGHT = datetime.datetime(2020, 1, 1)  # in UTC
COLUMNS = {
    "i": pa.array([0, 2**53, 2**53 + 1], pa.int64()),
    "x": pa.array([0.1, 2.0**53, -0.0]),
    "d": pa.array([D("0.1"), D("1.0"), D("0.0")], pa.decimal128(5, 1)),
    "day": pa.array([MIDNIGHT.date(), None, None]),
    "moment": pa.array([MIDNIGHT, MIDNIGHT - datetime.timedelta(hours=9), None], pa.timestamp("us", "UTC")),
    "local": pa.array([MIDNIGHT, MIDNIGHT - datetime.timedelta(hours=9), None], pa.timestamp("us")),
}
# Column, key, and matching rows in a session in Tokyo.
CASES = [
    ("x", "0.1BD", [0]),
    ("x", "9007199254740993L", [1]),
    ("x", "0D", [2]),
    ("x", "0", [2]),
    ("d", "0.1D", [0]),
    ("d", "1", [1]),
    ("i", "9007199254740992D", [1, 2]),
    ("i", "0.0BD", [0]),
    ("moment", "date'2020-01-01'", [1]),
    ("moment", "timestamp_ntz'2020-01-01 00:00:00'", [1]),
    ("moment", "timestamp'2020-01-01 00:00:00'", [1]),
    ("day", "timestamp'2020-01-01 00:00:00'", [0]),
    ("moment", "'2020-01-01'", [1]),
    ("local", "date'2020-01-01'", [0]),
    ("day", "'2020-01-01'", [0]),
]


def test_implicit_casts_keep_matching_rows(spark, tmp_path):
    """Each row has a row group of its own, which wrong literals would prune."""
    pq.write_table(pa.table({"id": [0, 1, 2], **COLUMNS}), tmp_path / "a.parquet", row_group_size=1)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        for column, key, expected in CASES:
            small = spark.sql(f"select {key} as key")
            found = numparq.spark.read(spark, str(tmp_path), ["id", column], runtime_filters={column: small})
            joined = found.join(small, found[column] == small.key).select("id").collect()
            assert sorted(row.id for row in joined) == expected, (column, key)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
