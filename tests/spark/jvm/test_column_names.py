"""Names that differ in case only, and types of partition columns, as the settings of a session have them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.errors import SchemaError

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def setting(spark):
    """Set what a test sets; afterwards it is as before."""
    done = []

    def change(name, value):
        done.append(name)
        spark.conf.set(name, value)

    numparq.spark.register(spark)
    yield change
    for name in done:
        spark.conf.unset(name)


def write(folder, name="a.parquet", **columns):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / name)
    return str(folder)


def rows(of):
    return of.schema.simpleString(), sorted(map(str, of.collect()))


def test_names_are_exact_where_the_session_says_so(spark, setting, tmp_path):
    setting("spark.sql.caseSensitive", "true")
    path = write(tmp_path, a=[1, 2], A=[10, 20], S=[{"x": 1, "X": 2}, None])
    for schema in (None, "a bigint", "A bigint, a bigint", "s struct<x: bigint>, S struct<X: bigint>"):
        native = spark.read.schema(schema) if schema else spark.read
        loaded = spark.read.format("numparq").option("caseSensitive", "true")
        wanted = rows(native.parquet(path))
        assert rows(numparq.spark.read(spark, path, schema=schema)) == wanted
        assert rows((loaded.schema(schema) if schema else loaded).load(path)) == wanted
    assert rows(numparq.spark.read(spark, path).filter("A = 10").select("a")) == ("struct<a:bigint>", ["Row(a=1)"])


def test_names_that_spark_does_not_tell_apart(spark, tmp_path):
    """Several columns are no answer, be they of one file or of two."""
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


def test_partition_columns_stand_where_files_have_them(spark, tmp_path):
    path = write(tmp_path, "k=7/a.parquet", k=[5], v=[1])
    assert rows(numparq.spark.read(spark, path)) == rows(spark.read.parquet(path))


VALUES = [["5"], ["1.0"], ["NaN", "1"], ["2020-01-01"], ["9" * 20, "1"], ["__HIVE_DEFAULT_PARTITION__", "1"]]


@pytest.mark.parametrize("infers", ["true", "false"])
def test_types_of_partition_columns(spark, setting, tmp_path, infers):
    setting("spark.sql.sources.partitionColumnTypeInference.enabled", infers)
    for number, values in enumerate(VALUES):
        folder = tmp_path / str(number)
        for value in values:
            write(folder, f"k={value}/a.parquet", a=[1])
        wanted = rows(spark.read.parquet(str(folder)))
        assert rows(numparq.spark.read(spark, str(folder))) == wanted
        loaded = spark.read.format("numparq").option("partitionColumnTypeInference", infers)
        assert rows(loaded.load(str(folder))) == wanted
