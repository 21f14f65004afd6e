"""The data source in SQL: views, tables with a path per query, and errors for tables without one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def sql(spark, tmp_path):
    """Run a statement; drop its tables and views before and after the test."""
    numparq.spark.register(spark)
    _drop(spark)
    yield lambda text: [tuple(row) for row in spark.sql(text).collect()]
    _drop(spark)


def _drop(spark):
    for name in ("dear", "global_temp.dear"):
        spark.sql(f"DROP VIEW IF EXISTS {name}")
    spark.sql("DROP TABLE IF EXISTS numparq_table")


@pytest.fixture
def folder(tmp_path):
    pq.write_table(pa.table({"a": [1, 2, 3], "s": ["x", "y", "z"]}), tmp_path / "a.parquet")
    return str(tmp_path)


def test_temporary_views(sql, folder):
    sql(f"CREATE TEMPORARY VIEW dear USING numparq OPTIONS (path '{folder}', columns 's, a', filter 'a > 1')")
    assert sql("SELECT * FROM dear WHERE s <> 'z'") == [("y", 2)]
    sql(f"CREATE GLOBAL TEMPORARY VIEW dear (a decimal(20, 0)) USING numparq OPTIONS (path '{folder}')")
    assert sql("SELECT sum(a), count(*) FROM global_temp.dear") == [(6, 3)]


def test_table_path_is_an_option_of_each_query(sql, spark, folder, tmp_path):
    """Spark stores only the columns of the table."""
    sql("CREATE TABLE numparq_table (a bigint, s string) USING numparq")
    assert sql(f"SELECT a FROM numparq_table WITH (path = '{folder}', filter = 'a > 1') WHERE s = 'y'") == [(2,)]
    assert spark.read.option("path", folder).table("numparq_table").count() == 3
    other = tmp_path / "other"
    sql(f"INSERT INTO numparq_table WITH (path = '{other}') VALUES (7, 'q')")
    assert sql(f"SELECT * FROM numparq_table WITH (path = '{other}')") == [(7, "q")]
    sql(f"INSERT OVERWRITE numparq_table WITH (path = '{other}') VALUES (8, 'r')")
    assert sql(f"SELECT * FROM numparq_table WITH (path = '{other}')") == [(8, "r")]
    with pytest.raises(Exception, match=r"the path is missing.*Spark stores neither path nor options.*WITH \(path"):
        sql("SELECT * FROM numparq_table")


@pytest.mark.parametrize("place", ["OPTIONS (path '{0}')", "LOCATION '{0}'"])
def test_create_table_with_path_is_refused(sql, spark, folder, place):
    with pytest.raises(Exception, match="CREATE TABLE cannot infer the columns: Spark stores neither path"):
        sql(f"CREATE TABLE numparq_table USING numparq {place.format(folder)}")
    with pytest.raises(Exception, match="Spark stores neither path nor options"):
        spark.catalog.createTable("numparq_table", path=folder, source="numparq")
    with pytest.raises(Exception, match="the path is missing"):
        spark.range(3).write.format("numparq").mode("append").saveAsTable("numparq_table")


def test_direct_query_of_a_path_is_unsupported(sql, folder):
    with pytest.raises(Exception, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
        sql(f"SELECT * FROM numparq.`{folder}`")
