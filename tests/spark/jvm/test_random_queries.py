"""Random filter text and queries: the rows are those of Spark's own reader, in several zones and calendars."""

from __future__ import annotations

import random

import pytest

import numparq
from numparq.errors import ParquetError
from support.spark.random_queries import COLUMNS, SCHEMA, ZONES, make_rows, random_filter, random_query

pytestmark = [pytest.mark.spark, pytest.mark.slow]

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
from py4j.protocol import Py4JJavaError  # noqa: E402
from pyspark.errors import PySparkException  # noqa: E402

# Name of a table, its timestamps and calendar as Spark's writer has them, and rows of a row group for numparq's.
TABLES = {
    "micros": ("TIMESTAMP_MICROS", "CORRECTED", 0),
    "legacy": ("INT96", "LEGACY", 0),
    "millis": ("TIMESTAMP_MILLIS", "LEGACY", 0),
    "mine": ("TIMESTAMP_MICROS", "CORRECTED", 40),
}
_ROWS = 300
# What numparq says where it takes less than Spark.
REFUSALS = [
    "Spark rounds",
    "Spark casts text",
    "cannot be compared with",
    "makes doubles of all",
    "is no number of Spark",
]


@pytest.fixture(scope="module")
def settings(spark):
    """Set settings of the session until the module ends."""
    before = {}

    def set_all(**values):
        for name, value in values.items():
            key = name.replace("__", ".")
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield set_all
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.fixture(scope="module")
def folders(spark, registered, settings, tmp_path_factory):
    """Write the tables, of three files each."""
    root, rng, made = tmp_path_factory.mktemp("tables"), random.Random(7), {}
    for name, (kind, mode, group) in TABLES.items():
        spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
        settings(spark__sql__parquet__outputTimestampType=kind)
        settings(spark__sql__parquet__datetimeRebaseModeInWrite=mode, spark__sql__parquet__int96RebaseModeInWrite=mode)
        rows = spark.createDataFrame(make_rows(rng, _ROWS), SCHEMA).selectExpr(*COLUMNS).repartition(3, "row")
        writer = rows.write.format("numparq").option("rowGroupSize", group).option("maxRowsPerPage", 10)
        made[name] = str(root / name)
        (writer if group else rows.write.format("parquet")).mode("append").save(made[name])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    settings(spark__sql__parquet__filterPushdown="false")  # with it, `x <=> 0` misses -0.0
    return made


def answer(frame):
    """Return the rows of a DataFrame in no order, as Spark prints them: Python has no year 0."""
    texts = frame.toDF(*map(str, range(len(frame.columns)))).selectExpr(
        *(f"cast(`{number}` as string)" for number in range(len(frame.columns)))
    )
    return sorted(map(str, texts.collect()))


def native_answer(spark, query):
    """Return the rows of a query by Spark alone; None if Spark refuses it."""
    try:
        return answer(spark.sql(query))
    except (PySparkException, Py4JJavaError):
        return None


def is_expected(error):
    """Whether an error is one of those where numparq takes less than Spark."""
    return any(known in str(error) for known in REFUSALS)


@pytest.mark.parametrize("seed", range(4))
def test_filter_text(spark, folders, settings, seed):
    """Of what Spark takes, numparq refuses some; the rest has the same rows."""
    rng, taken, refused = random.Random(seed), 0, 0
    for _ in range(40):
        name, zone, text = rng.choice(list(folders)), rng.choice(ZONES), random_filter(rng)
        settings(spark__sql__session__timeZone=zone)
        expected = native_answer(spark, f"select row from parquet.`{folders[name]}` where {text}")
        if expected is None:
            continue
        try:
            if rng.random() < 0.3:
                options = {"filter": text, "timeZone": zone, "columns": "row"}
                found = answer(spark.read.format("numparq").options(**options).load(folders[name]))
            else:
                found = answer(numparq.spark.read(spark, folders[name], ["row"], text))
        except (ParquetError, ValueError, PySparkException) as error:
            refused += 1
            if not is_expected(error):
                raise
            continue
        taken += 1
        assert found == expected, (seed, name, zone, text)
    assert taken >= 10, (taken, refused)


@pytest.mark.parametrize("seed", range(100, 103))
def test_queries(spark, folders, settings, seed):
    rng, taken = random.Random(seed), 0
    for _ in range(25):
        query, filters = random_query(rng)
        names = [rng.choice(list(folders)) for _ in range(2)]
        settings(spark__sql__session__timeZone=rng.choice(ZONES))
        paths = [folders[name] for name in names]
        tables = [f"(select * from parquet.`{paths[n]}` where {text})" for n, text in enumerate(filters)]
        expected = native_answer(spark, query.format(*tables))
        if expected is None:
            continue
        try:
            for number, (path, text) in enumerate(zip(paths, filters, strict=True)):
                numparq.spark.read(spark, path, filters=text).createOrReplaceTempView(f"mine_{number}")
        except (ParquetError, ValueError) as error:
            if not is_expected(error):
                raise
            continue
        taken += 1
        found = answer(spark.sql(query.format("mine_0", "mine_1")))
        assert found == expected, (seed, names, filters, query)
    assert taken >= 8
