"""Look-ups read on the driver: same rows, types and errors as from tasks."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.spark.scan import local_frame

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.driver_reads]

ROWS = 20_000
COLUMNS = "id bigint, small tinyint, short smallint, int int, x double, f float, flag boolean, text string, raw binary"
ALL = f"{COLUMNS}, day date, at timestamp, wall timestamp_ntz, price decimal(20,3)"


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """Write a table with Spark of every type that driver reads pass through unchanged, with nulls."""
    path = str(tmp_path_factory.mktemp("few") / "table")
    nulls = "case when id % 5 = 0 then null else {} end"
    values = {
        "small": "cast(id % 100 as tinyint)",
        "short": "cast(id % 1000 as smallint)",
        "int": "cast(id as int)",
        "x": "case when id % 7 = 0 then double('NaN') else id / 3 end",
        "f": "cast(id as float)",
        "flag": "id % 2 = 0",
        "text": "concat('é', id)",
        "raw": "cast(cast(id as string) as binary)",
        "day": "date_add(date '1969-12-01', cast(id as int))",
        "at": "timestamp_micros(id * 1000003 - 5000000000)",
        "wall": "cast(timestamp_micros(id * 1000003) as timestamp_ntz)",
        "price": "cast(id as decimal(20,3)) / 8",
    }
    kinds = dict(part.split(" ", 1) for part in ALL.split(", "))
    texts = [f"cast({nulls.format(value)} as {kinds[name]}) as {name}" for name, value in values.items()]
    spark.range(0, ROWS, 1, 4).selectExpr("id", *texts).write.parquet(path)
    return path


def is_local(df):
    return "LocalTableScan" in df._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_rows_and_types_match_tasks(spark, folder, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        filters = col("id").between(8_990, 9_010)
        here = numparq.spark.read(spark, folder, filters=filters)
        tasks = numparq.spark.read(spark, folder, filters=filters, driver_bytes=0)
        native = spark.read.parquet(folder).where("id between 8990 and 9010")
        assert is_local(here)
        assert not is_local(tasks)
        assert here.schema == tasks.schema == native.schema
        assert here.count() == 21
        for other in (tasks, native):
            assert here.exceptAll(other).count() == other.exceptAll(here).count() == 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_empty_results_and_column_order(spark, folder):
    nothing = numparq.spark.read(spark, folder, ["text", "id"], col("id") < 0)
    assert nothing.columns == ["text", "id"]
    assert nothing.collect() == []
    row = numparq.spark.read(spark, folder, ["price", "day", "at"], "id = 8").first()
    at = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=8 * 1_000_003 - 5_000_000_000)
    assert row == (Decimal("1.000"), dt.date(1969, 12, 9), at)


def test_rows_stay_after_the_file_is_deleted(spark, tmp_path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(pd.DataFrame({"id": np.arange(10)}), path)
    df = numparq.spark.read(spark, str(path), filters=col("id") > 7)
    path.unlink()
    assert sorted(row["id"] for row in df.union(df).collect()) == [8, 8, 9, 9]


NESTED = {
    "numbers": "array(int(id), null, 3)",
    "instants": "array(timestamp_micros(id * 1000003), null)",
    "named": "map('a', named_struct('x', id / 2, 'at', timestamp_micros(id)), 'b', null)",
    "days": "map(id, date_add(date '2020-02-27', int(id)))",
    "deep": "named_struct('t', concat('é', id), 'walls', array(timestamp_ntz '1900-01-01 00:00:00'), 'within', "
    "named_struct('price', cast(id as decimal(20,3)), 'raw', array(array(binary(string(id))))))",
    "nothing": "cast(if(id % 2 = 0, array(), array(array())) as array<array<int>>)",
    "empty": "cast(if(id % 2 = 0, map(), map('', '')) as map<string, string>)",
}


@pytest.fixture(scope="module")
def nested(spark, tmp_path_factory):
    """Write a table of nested columns with Spark, with nulls and empty values at every level."""
    path = str(tmp_path_factory.mktemp("nested") / "table")
    texts = [f"case when id % 3 = 2 then null else {value} end as {name}" for name, value in NESTED.items()]
    spark.range(0, 1000, 1, 2).selectExpr("id", *texts).write.parquet(path)
    return path


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_nested_columns_match_tasks(spark, nested, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        here = numparq.spark.read(spark, nested, filters=col("id").between(4, 9))
        tasks = numparq.spark.read(spark, nested, filters=col("id").between(4, 9), driver_bytes=0)
        native = spark.read.parquet(nested).where("id between 4 and 9")
        assert is_local(here)
        assert not is_local(tasks)
        for other in (tasks, native):
            assert here.schema == other.schema
            assert repr(here.sort("id").collect()) == repr(here.collect()) == repr(other.sort("id").collect())
            assert repr(here.toPandas().to_dict()) == repr(other.sort("id").toPandas().to_dict())
            assert here.toArrow().equals(other.sort("id").toArrow(), check_metadata=True)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_without_local_frame_only_simple_columns(spark, folder, nested, monkeypatch):
    monkeypatch.setattr(local_frame, "create_local_frame", lambda *arguments: None)
    assert is_local(numparq.spark.read(spark, folder, filters=col("id") == 3))
    df = numparq.spark.read(spark, nested, filters=col("id") == 3)
    assert not is_local(df)
    assert df.first()["numbers"] == [3, None, 3]


def test_large_or_unfiltered_reads_use_tasks(spark, tmp_path):
    frame = pd.DataFrame({"id": np.arange(ROWS), "text": ["a" * 1000] * ROWS, "list": [[1, 2]] * ROWS})
    numparq.to_parquet(frame, tmp_path / "a.parquet")  # some kilobytes, and 20 MB in memory
    path = str(tmp_path)
    assert not is_local(numparq.spark.read(spark, path, ["id", "text"], "id >= 0"))
    assert not is_local(numparq.spark.read(spark, path, ["id"]))
    assert not is_local(numparq.spark.read(spark, path, ["id"], "id = 3", driver_bytes=10))
    assert is_local(numparq.spark.read(spark, path, ["id", "text", "list"], "id = 3"))
    keys = spark.createDataFrame([(3,), (5,)], "id bigint")
    found = numparq.spark.read(spark, path, ["id"], runtime_filters={"id": keys})
    assert is_local(found)
    assert sorted(row["id"] for row in found.collect()) == [3, 5]


def test_damage_raises_on_collect(spark, tmp_path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(pd.DataFrame({"x": np.random.default_rng(1).normal(size=1000)}), path, compression="none")
    with numparq.ParquetFile(path) as file:
        chunk = file.metadata.row_groups[0].columns[0].meta_data
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(data)
    df = numparq.spark.read(spark, str(path), filters=col("x").is_not_null())
    with pytest.raises(Exception, match=r"CRC.*a\.parquet.*row group 0.*x.*page 0"):
        df.collect()


@pytest.mark.parametrize("given", ["1MB", True])
def test_driver_bytes_is_a_number(spark, folder, given):
    with pytest.raises(TypeError, match="driver_bytes"):
        numparq.spark.read(spark, folder, filters="id = 3", driver_bytes=given)
