"""Files of Spark's legacy calendar, and INT96: as Spark's own reader takes them, in three session zones."""

from __future__ import annotations

from contextlib import contextmanager

import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

import numparq

pytestmark = [pytest.mark.spark, pytest.mark.slow]

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
from pyspark.errors import PySparkException  # noqa: E402

ZONES = ["UTC", "America/Los_Angeles", "Asia/Kolkata"]
MOMENTS = [
    "0001-01-01 00:00:00", "0500-03-01 12:00:00", "1500-02-28 23:59:59.5", "1500-03-01 00:00:00", "1582-10-04 23:00:00",
    "1582-10-15 00:00:00", "1582-10-15 05:00:00", "1844-12-31 12:00:00", "1883-11-18 12:03:00", "1899-12-31 23:30:00",
    "1900-01-01 00:30:00", "2020-06-01 00:00:00",
]  # fmt: skip
FILTERS = [
    "d < date'1500-03-01'",
    "d in (date'1500-03-01', date'2020-06-01')",
    "t < timestamp'1582-10-15 00:00:00'",
    "t = timestamp'1899-12-31 23:30:00'",
    "t between timestamp'1883-11-18 12:03:00' and timestamp'1900-01-01 00:00:00'",
]


@contextmanager
def configured(spark, zone, kind="INT96", mode="CORRECTED"):
    """A session in a time zone, whose files have a type of timestamps and a calendar."""
    names = {
        "spark.sql.session.timeZone": zone,
        "spark.sql.parquet.outputTimestampType": kind,
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
        "spark.sql.parquet.int96RebaseModeInWrite": mode,
    }
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def write(spark, folder, moments, first=0):
    rows = spark.createDataFrame(list(enumerate(moments, first)), "i int, s string").coalesce(1)
    columns = ["i", "cast(s as timestamp) t", "cast(s as date) d", "array(cast(s as date)) ds"]
    columns += ["named_struct('t', cast(s as timestamp)) st", "cast(s as timestamp_ntz) n"]
    rows.selectExpr(*columns).write.mode("append").parquet(str(folder))


def values(rows):
    """Rows as numbers, which no time zone of Python changes."""
    columns = ["i", "unix_micros(t)", "unix_date(d)", "unix_date(ds[0])", "unix_micros(st.t)", "cast(n as string)"]
    return [tuple(row) for row in rows.selectExpr(*columns).orderBy("i").collect()]


@pytest.mark.parametrize(
    ("zone", "kind"), list(zip(ZONES, ["TIMESTAMP_MILLIS", "TIMESTAMP_MICROS", "INT96"], strict=True)), ids=ZONES
)
def test_legacy_files(spark, registered, tmp_path, zone, kind):
    with configured(spark, zone, kind, "LEGACY"):
        write(spark, tmp_path / "a", MOMENTS)
        native, mine = spark.read.parquet(str(tmp_path / "a")), spark.read.format("numparq").load(str(tmp_path / "a"))
        assert values(mine) == values(native)
        for text in FILTERS:
            rows = [row.i for row in native.where(text).select("i").collect()]
            assert [row.i for row in mine.where(text).select("i").collect()] == rows
        day = pd.Timestamp("1500-03-01").date()
        kept = numparq.spark.read(spark, tmp_path / "a", filters=numparq.col("d") == day)
        assert [row.i for row in kept.select("i").collect()] == [3]
        mine.write.format("numparq").mode("append").save(str(tmp_path / "copy"))
        assert values(spark.read.parquet(str(tmp_path / "copy"))) == values(native)
    if kind == "INT96":  # INT96 in structs are written as far as nanoseconds reach
        return
    with configured(spark, "UTC"):
        numparq.spark.optimize(spark, tmp_path / "a", force=True)
        assert values(spark.read.parquet(str(tmp_path / "a"))) == values(spark.read.parquet(str(tmp_path / "copy")))


@pytest.mark.parametrize("zone", ZONES)
def test_int96_are_instants(spark, registered, tmp_path, zone):
    """INT96 beside other timestamps, appends, filters with time zones, and frames of jobs."""
    folder = str(tmp_path / "a")
    with configured(spark, zone):
        write(spark, folder, ["2020-06-01 00:00:00", "2020-06-02 00:00:00"])
        more = spark.read.parquet(folder).selectExpr("i + 10 i", "t", "d", "ds", "st", "n")
        more.write.format("numparq").mode("append").save(folder)  # INT64 beside INT96
        with configured(spark, zone, "TIMESTAMP_MILLIS"):
            write(spark, folder, ["2020-06-03 00:00:00"], first=20)
        native = spark.read.parquet(folder)
        assert values(spark.read.format("numparq").load(folder)) == values(native)
        moment = pd.Timestamp("2020-06-02", tz=zone)
        for filters in (numparq.col("t") >= moment, [("st.t", ">=", moment)]):
            found = numparq.spark.read(spark, folder, filters=filters).select("i").collect()
            assert sorted(row.i for row in found) == [1, 11, 20]

        def identity(frame):
            assert str(frame["t"].dtype) == "datetime64[us, UTC]"
            return frame

        for only in ([("i", "<", 10)], None):
            made = numparq.spark.map_pandas(spark, folder, identity, native.schema, list(native.columns), only)
            wanted = native if only is None else native.where("i < 10")
            assert values(made) == values(wanted)


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION", "CORRECTED"])
def test_rebase_modes_of_files_that_do_not_say(spark, registered, tmp_path, mode):
    """The session's settings decide in `read` and the jobs, options in the data source."""
    days = pa.array([-171_499, -141_428, 0, 19_000], pa.int32())
    instants = pa.compute.multiply(days.cast(pa.int64()), 86_400_000_000).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"i": range(4), "d": days.cast(pa.date32()), "t": instants})
    names = [f"spark.sql.parquet.{name}RebaseModeInRead" for name in ("datetime", "int96")]
    before = {name: spark.conf.get(name) for name in names}
    pq.write_table(table, tmp_path / "a.parquet", store_schema=False)
    pq.write_table(table.drop(["d"]), tmp_path / "b.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    zone = spark._jvm.java.util.TimeZone.getDefault().getID()
    modes = {"datetimeRebaseMode": mode, "int96RebaseMode": mode, "timeZone": zone}
    try:
        for name in names:
            spark.conf.set(name, mode)
        for file, columns in {"a": ["i", "unix_date(d)", "unix_micros(t)"], "b": ["i", "unix_micros(t)"]}.items():
            path = str(tmp_path / f"{file}.parquet")

            def found(frame, columns=columns):
                try:
                    return [tuple(row) for row in frame.selectExpr(*columns).orderBy("i").collect()]
                except PySparkException:
                    return "refused"

            expected = found(spark.read.parquet(path))
            assert (expected == "refused") == (mode == "EXCEPTION")
            assert found(numparq.spark.read(spark, path)) == expected
            assert found(spark.read.format("numparq").options(**modes).load(path)) == expected
            mapped = numparq.spark.map_pandas(spark, path, lambda rows: rows, "i bigint, t timestamp", ["i", "t"])
            moments = expected if expected == "refused" else [(row[0], row[-1]) for row in expected]
            assert found(mapped, ["i", "unix_micros(t)"]) == moments
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
