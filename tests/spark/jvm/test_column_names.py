"""Column names that differ only in case, and partition column types, under the session's settings."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.errors import SchemaError

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def setting(spark):
    """Change session settings for one test."""
    changed = []

    def change(name, value):
        changed.append(name)
        spark.conf.set(name, value)

    numparq.spark.register(spark)
    yield change
    for name in changed:
        spark.conf.unset(name)


def write(folder, name="a.parquet", **columns):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / name)
    return str(folder)


def rows(df):
    return df.schema.simpleString(), sorted(map(str, df.collect()))


def test_case_sensitive_session(spark, setting, tmp_path):
    setting("spark.sql.caseSensitive", "true")
    path = write(tmp_path, a=[1, 2], A=[10, 20], S=[{"x": 1, "X": 2}, None])
    for schema in (None, "a bigint", "A bigint, a bigint", "s struct<x: bigint>, S struct<X: bigint>"):
        native = spark.read.schema(schema) if schema else spark.read
        loaded = spark.read.format("numparq").option("caseSensitive", "true")
        expected = rows(native.parquet(path))
        assert rows(numparq.spark.read(spark, path, schema=schema)) == expected
        assert rows((loaded.schema(schema) if schema else loaded).load(path)) == expected
    assert rows(numparq.spark.read(spark, path).filter("A = 10").select("a")) == ("struct<a:bigint>", ["Row(a=1)"])


def test_ambiguous_names_are_refused(spark, tmp_path):
    """A name that matches several columns is ambiguous, in one file or in two."""
    one, two = write(tmp_path / "one", a=[1], A=[10]), write(tmp_path / "two", a=[1])
    write(tmp_path / "two", "b.parquet", A=[2])
    for path in (one, two):
        with pytest.raises(SchemaError, match=r"matches several columns regardless of case: a, A; set caseSensitive"):
            numparq.spark.read(spark, path, schema="a bigint")
        assert numparq.spark.read(spark, path, schema="A bigint, a bigint").columns == ["A", "a"]
        assert numparq.spark.read(spark, path, ["A"]).columns == ["A"]
    small = {"A": spark.sql("select 10L as A")}
    assert rows(numparq.spark.read(spark, one, ["a"], "A = 10", runtime_filters=small))[1] == ["Row(a=1)"]
    other = write(tmp_path / "other", A=[10])
    assert rows(numparq.spark.read(spark, other, schema="a bigint")) == rows(
        spark.read.schema("a bigint").parquet(other)
    )


def test_position_of_partition_columns(spark, tmp_path):
    path = write(tmp_path, "k=7/a.parquet", k=[5], v=[1])
    assert rows(numparq.spark.read(spark, path)) == rows(spark.read.parquet(path))


VALUES = [["5"], ["1.0"], ["NaN", "1"], ["2020-01-01"], ["9" * 20, "1"], ["__HIVE_DEFAULT_PARTITION__", "1"]]


@pytest.mark.parametrize("infers", ["true", "false"])
def test_partition_types_match_spark(spark, setting, tmp_path, infers):
    setting("spark.sql.sources.partitionColumnTypeInference.enabled", infers)
    for number, values in enumerate(VALUES):
        folder = tmp_path / str(number)
        for value in values:
            write(folder, f"k={value}/a.parquet", a=[1])
        expected = rows(spark.read.parquet(str(folder)))
        assert rows(numparq.spark.read(spark, str(folder))) == expected
        loaded = spark.read.format("numparq").option("partitionColumnTypeInference", infers)
        assert rows(loaded.load(str(folder))) == expected
