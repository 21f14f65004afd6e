"""Partitioned datasets exchanged with Spark: values and partition columns are equal."""

from __future__ import annotations

import pytest

import numparq
from numparq import col
from support.data import partitioned_tables
from support.data.partitioned_tables import KEYS, key_columns

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEVERAL = [*((kind,) for kind in KEYS), ("int with null", "text"), ("date", "text with null", "flag")]


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS"])
@pytest.mark.parametrize("kinds", SEVERAL, ids=str)
def test_reads_partitions_written_by_spark(spark, tmp_path, kinds, timestamps):
    table = partitioned_tables.table(*kinds)
    spark.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    folder = tmp_path / "a"
    spark.createDataFrame(table).write.partitionBy(*key_columns(table)).parquet(str(folder))
    partitioned_tables.assert_same_rows(partitioned_tables.read(folder, table), table)
    keys = table["key"].to_pylist()
    for value in dict.fromkeys(keys):
        predicate = col("key").is_null() if value is None else col("key") == value
        got = partitioned_tables.read(folder, table, columns=["n"], filters=predicate)
        assert sorted(got["n"]) == [n for n, key in enumerate(keys) if key == value]


def test_spark_appends_with_wider_and_new_columns(spark, tmp_path):
    """A later write has a wider type and one more column, in a partition that has files of both."""
    folder = str(tmp_path / "a")
    spark.sql("select id, cast(id as int) as number, id % 2 as key from range(6)").write.partitionBy("key").parquet(
        folder
    )
    later = spark.sql("select id, id + 10000000000 as number, 'new' as note, 1 as key from range(6, 8)")
    later.write.mode("append").partitionBy("key").parquet(folder)
    got = numparq.read_parquet(folder).sort_values("id")
    assert got["number"].tolist() == [*range(6), 10000000006, 10000000007]
    assert [None if note != note else note for note in got["note"]] == [None] * 6 + ["new"] * 2
    assert got["key"].tolist() == [0, 1, 0, 1, 0, 1, 1, 1]


@pytest.mark.parametrize("kinds", SEVERAL, ids=str)
def test_spark_reads_our_partitions(spark, tmp_path, kinds):
    table = partitioned_tables.table(*kinds)
    partitioned_tables.write(table, tmp_path / "a")
    schema = spark.createDataFrame(table).schema
    partitioned_tables.assert_same_rows(spark.read.schema(schema).parquet(str(tmp_path / "a")).toArrow(), table)
