"""A DataFrame of rows held by the driver equals one of `createDataFrame`, and Python gets its rows without a job."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from numparq.spark.scan import local_frame as local_frame_module
from numparq.spark.scan.arrow_batches import worker_arrow_schema
from numparq.spark.scan.local_frame import create_local_frame

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLUMNS = (
    "flag boolean, small tinyint, short smallint, int int, id bigint, f float, x double, price decimal(20,3), "
    "text string, raw binary, day date, at timestamp, wall timestamp_ntz"
)
AT = dt.datetime(2021, 3, 14, 2, 30, 0, 123456)
ROWS = [
    (
        True,
        1,
        -300,
        70_000,
        1 << 40,
        0.5,
        1 / 3,
        Decimal("1.125"),
        "é",
        b"\x00\xff",
        AT.date(),
        AT.replace(tzinfo=dt.UTC),
        AT,
    ),
    (None,) * 13,
    (
        False,
        -128,
        32_767,
        -(1 << 31),
        -(1 << 63),
        math.inf,
        math.nan,
        Decimal("-99999999999999999.999"),
        "",
        b"",
        dt.date(1, 1, 1),
        dt.datetime(1883, 11, 18, 12, tzinfo=dt.UTC),
        dt.datetime(2200, 1, 1),
    ),
]
ARROW = "spark.sql.execution.arrow"


@pytest.fixture(scope="module")
def schema(spark):
    from pyspark.sql.types import StructType

    return StructType.fromDDL(COLUMNS)


def table_of(schema, rows):
    arrow = worker_arrow_schema(schema)
    columns = [*zip(*rows, strict=True)] or [()] * len(arrow)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, arrow, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow)


@pytest.fixture
def settings(spark):
    """Change session settings for one test."""
    before = {}

    def change(**values):
        for name, value in values.items():
            key = name.replace("__", ".")
            before.setdefault(key, spark.conf.get(key))
            spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        spark.conf.set(key, value)


def jobs_of(spark, do):
    """Call a function; return its result and the number of Spark jobs it ran."""
    context, group = spark.sparkContext, f"jobs of {id(do)}"
    context.setJobGroup(group, group)
    try:
        result = do()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    return result, len(context.statusTracker().getJobIdsForGroup(group))


def assert_same(local, expected):
    assert local.schema == expected.schema
    assert local.columns == expected.columns
    assert local.dtypes == expected.dtypes
    assert repr(local.collect()) == repr(expected.collect())
    pd.testing.assert_frame_equal(local.toPandas(), expected.toPandas())
    assert local.toArrow().schema.equals(expected.toArrow().schema, check_metadata=True)
    assert repr(local.toArrow().to_pylist()) == repr(expected.toArrow().to_pylist())
    assert local.union(local).count() == 2 * expected.count()


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], []], ids=["three", "one", "none"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+05:30"])
def test_local_frame_matches_create_dataframe(spark, schema, settings, zone, rows):
    settings(spark__sql__session__timeZone=zone)
    table = table_of(schema, rows)
    local = create_local_frame(spark, table, schema)
    assert type(local).__name__ == "LocalFrame"
    assert_same(local, spark.createDataFrame(table, schema))


@pytest.mark.parametrize(
    "setting",
    [
        {"spark__sql__execution__arrow__pyspark__enabled": "false"},
        {"spark__sql__execution__arrow__pyspark__selfDestruct__enabled": "true"},
        {"spark__sql__execution__arrow__useLargeVarTypes": "true"},
        {"spark__sql__execution__arrow__maxRecordsPerBatch": "2"},
        {"spark__sql__execution__arrow__localRelationThreshold": "0"},
    ],
    ids=lambda setting: next(iter(setting)).rpartition("__")[2],
)
def test_local_frame_under_other_settings(spark, schema, settings, setting):
    table = table_of(schema, ROWS)
    early = create_local_frame(spark, table, schema)
    settings(**setting)
    expected, late = spark.createDataFrame(table, schema), create_local_frame(spark, table, schema)
    assert (late is None) == any(name.endswith("useLargeVarTypes") for name in setting)
    for local in (early, late or early):
        assert_same(local, expected)


@pytest.mark.parametrize("rows", [ROWS, []], ids=["three", "none"])
def test_rows_reach_python_without_a_job(spark, schema, rows):
    local = create_local_frame(spark, table_of(schema, rows), schema)
    for get in (local.toPandas, local.collect):
        found, jobs = jobs_of(spark, get)
        assert len(found) == len(rows)
        assert jobs == 0
    assert jobs_of(spark, local.select("id").toPandas)[0].columns.tolist() == ["id"]


def test_cached_local_frame_is_read_by_spark(spark, schema):
    local = create_local_frame(spark, table_of(schema, ROWS), schema).cache()
    try:
        found, jobs = jobs_of(spark, local.toPandas)
        assert len(found) == 3
        assert jobs == 1
    finally:
        local.unpersist()
    assert jobs_of(spark, local.toPandas)[1] == 0


def test_local_frame_uses_its_own_session(spark, schema):
    table = table_of(schema, ROWS)
    other = spark.newSession()
    other.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    other.createDataFrame(table, schema)  # makes it the active session of this thread
    local = create_local_frame(spark, table, schema)
    assert local.sparkSession is type(spark).getActiveSession() is spark
    assert spark._jvm.SparkSession.active().equals(spark._jsparkSession)
    assert_same(local, spark.createDataFrame(table, schema))


def test_local_frame_is_immutable(spark, schema):
    from pyspark.sql.types import StructType

    mine = StructType([*schema.fields])
    table = table_of(mine, ROWS[:1])
    local = create_local_frame(spark, table, mine)
    mine.add("more", "string")
    assert local.schema == schema
    assert len(local.columns) == 13
    first = local.toPandas()
    expected = first.copy(deep=True)
    first.loc[0, "text"] = "other"
    first["id"] += 7
    pd.testing.assert_frame_equal(local.toPandas(), expected)
    assert local.collect()[0]["text"] == "é"


@pytest.mark.parametrize("name", ["_jvm_methods", "_frame_class", "_ipc_stream"])
def test_no_local_frame_if_spark_internals_differ(spark, schema, monkeypatch, name):
    def fail(*arguments):
        raise AttributeError(name)

    monkeypatch.setattr(local_frame_module, name, fail)
    assert create_local_frame(spark, table_of(schema, ROWS), schema) is None


def test_no_local_frame_if_spark_encrypts(spark, schema, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "_encryption_enabled", True)
    files = []
    monkeypatch.setattr(local_frame_module.tempfile, "mkstemp", lambda **where: files.append(where))
    assert create_local_frame(spark, table_of(schema, ROWS), schema) is None
    assert not files


def batches(self, split_batches: bool = False) -> list[pa.RecordBatch]: ...
def batches_of_names(self, names: list[str]) -> list[pa.RecordBatch]: ...
def batches_and_more(self) -> tuple[list[pa.RecordBatch], int]: ...
def without_annotation(self): ...


@pytest.mark.parametrize(
    ("method", "is_known"),
    [
        (batches, True),
        (batches_of_names, False),
        (batches_and_more, False),
        (without_annotation, False),
    ],
)
def test_only_known_signatures_are_replaced(method, is_known):
    assert local_frame_module._is_known(type("Frame", (), {"_collect_as_arrow": method})) is is_known
