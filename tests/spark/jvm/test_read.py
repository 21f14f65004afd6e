"""``spark.read.format("numparq")`` and ``numparq.spark.read`` against Spark's own reader: rows, columns, partitions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.errors import SchemaError
from support.spark.source_table import ROWS, load_numparq

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("registered")]


def rows(df):
    return sorted(map(repr, df.collect()))


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2_000, 10**9])
def test_splits_of_any_size(spark, stored_folder, size):
    expected = rows(spark.read.parquet(stored_folder))
    found = load_numparq(spark, stored_folder, splitBytes=str(size), minSplits="1")
    assert rows(found) == expected
    assert rows(numparq.spark.read(spark, stored_folder, split_bytes=size, min_splits=1)) == expected
    assert (found.rdd.getNumPartitions() > 3) == (size == 2_000)


FILTERS = {
    "n > 10": "n > 10",
    "n >= 49 or key in (3, 250)": "n >= 49 or key in (3, 250)",
    "not n > 10": "not n > 10",
    "n is null and s = 'bb'": "n is null and s = 'bb'",
    "s like 'c%' and x between -0.5 and 0.5": "s like 'c%' and x between -0.5 and 0.5",
    "key = 123": "key = 123",
    "key > 100000": "key > 100000",
}


@pytest.mark.parametrize("text", FILTERS)
def test_filter_strings(spark, stored_folder, text):
    expected = rows(spark.read.parquet(stored_folder).filter(FILTERS[text]))
    assert rows(load_numparq(spark, stored_folder, filter=text)) == expected
    assert rows(numparq.spark.read(spark, stored_folder, filters=text, split_bytes=5_000)) == expected


def test_filter_expressions_and_lists(spark, stored_folder):
    expected = rows(spark.read.parquet(stored_folder).filter("n > 40 or n is null").select("s", "row"))
    assert (
        rows(numparq.spark.read(spark, stored_folder, ["s", "row"], (col("n") > 40) | col("n").is_null())) == expected
    )
    expected = rows(spark.read.parquet(stored_folder).filter("n > 40 or s in ('a', 'bb')").select("s", "row"))
    assert (
        rows(numparq.spark.read(spark, stored_folder, ["s", "row"], [[("n", ">", 40)], [("s", "in", ["a", "bb"])]]))
        == expected
    )


def test_literals_of_decimal_columns(spark, tmp_path):
    spark.sql("select cast(id / 10 as decimal(9, 2)) as d, id / 10D as f from range(50)").write.parquet(
        str(tmp_path / "a")
    )
    for text in ("d = 1.1", "f = 1.1", "d > 3.3 and f <= 4.4"):
        expected = rows(spark.read.parquet(str(tmp_path / "a")).filter(text.replace("f = 1.1", "f = 1.1D")))
        assert rows(load_numparq(spark, str(tmp_path / "a"), filter=text)) == expected
        assert expected


def test_queries_on_one_frame_share_no_filters(spark, stored_folder):
    """Spark 4.3 applies pushed filters of one query to the next query of the same frame."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for found in (
            load_numparq(spark, stored_folder),
            numparq.spark.read(spark, stored_folder),
            load_numparq(spark, stored_folder, filter="row >= 0"),
        ):
            assert found.filter("row = 3").count() == 1
            assert found.count() == ROWS
            assert found.filter("row < 10").union(found.filter("row >= 2990")).count() == 20
            assert found.alias("a").join(found.filter("key = 5").alias("b"), "row").count() == 10
            found.createOrReplaceTempView("leaking")
            assert spark.sql("select count(*) from leaking where n > 1000").first()[0] == 0
            assert spark.sql("select count(*), count(distinct key) from leaking").first()[:] == (ROWS, ROWS // 10)
            assert rows(found.select("row").filter("row = 7")) == ["Row(row=7)"]
            assert len(found.collect()) == ROWS
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


# --- columns ----------------------------------------------------------------------------------------------------------


def test_selected_columns(spark, stored_folder, frame):
    found = load_numparq(spark, stored_folder, columns="s, row")
    assert found.columns == ["s", "row"]
    assert found.count() == ROWS
    assert rows(load_numparq(spark, stored_folder, columns='["key"]', filter="n = 3")) == rows(
        spark.read.parquet(stored_folder).filter("n = 3").select("key")
    )


def test_no_columns(spark, stored_folder):
    for found in (load_numparq(spark, stored_folder, columns=""), numparq.spark.read(spark, stored_folder, [])):
        assert found.columns == []
        assert found.count() == ROWS
    assert numparq.spark.read(spark, stored_folder, [], "key = 7").count() == 10


def test_counting_reads_no_data(spark, stored_folder, tmp_path):
    """The pages are overwritten with zeros: an unfiltered count reads only footers."""
    source = f"{stored_folder}/0.parquet"
    spoilt = bytearray(Path(source).read_bytes())
    spoilt[4:2_000] = bytes(1_996)
    (tmp_path / "a.parquet").write_bytes(spoilt)
    assert numparq.spark.read(spark, str(tmp_path), []).count() == 1000
    with pytest.raises(Exception, match=r"a\.parquet"):
        numparq.spark.read(spark, str(tmp_path), ["row"]).collect()


def test_fields_of_structs_and_virtual_columns(spark, tmp_path):
    pq.write_table(pa.table({"s": [{"x": 1, "y": "a"}, {"x": 2, "y": None}]}), tmp_path / "a.parquet")
    found = load_numparq(spark, str(tmp_path), columns='[["s", "x"]]', include="row_number, file")
    assert [tuple(row) for row in found.collect()] == [
        (1, 0, str(tmp_path / "a.parquet")),
        (2, 1, str(tmp_path / "a.parquet")),
    ]
    assert found.schema.simpleString().endswith("row_number:bigint,file:string>")


@pytest.mark.parametrize("how", ["option", "function"])
def test_user_schema(spark, stored_folder, frame, how):
    ddl = "X double, gone array<int>, n bigint, row decimal(20, 0)"
    found = (
        spark.read.format("numparq").schema(ddl).load(stored_folder)
        if how == "option"
        else numparq.spark.read(spark, stored_folder, schema=ddl)
    )
    expected = spark.read.parquet(stored_folder).selectExpr(
        "x as X", "cast(null as array<int>) as gone", "cast(n as bigint) n", "cast(row as decimal(20, 0)) as row"
    )
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)
    assert rows(found.filter("n = 5").select("row")) == rows(expected.filter("n = 5").select("row"))


def test_lossy_user_schema_is_refused(spark, stored_folder):
    with pytest.raises(SchemaError, match=r"float.*double.*column 'x'"):
        numparq.spark.read(spark, stored_folder, schema="row bigint, x float")
    with pytest.raises(
        Exception, match=r"smallint of the schema cannot hold all values of the stored type bigint.*column 'row'"
    ):
        spark.read.format("numparq").schema("row smallint").load(stored_folder).count()
    with pytest.raises(Exception, match="the schema does not allow them"):
        numparq.spark.read(spark, stored_folder, schema="n int not null").collect()
    with pytest.raises(ValueError, match="a schema and the option 'columns' cannot be combined"):
        numparq.spark.read(spark, stored_folder, ["n"], schema="n int")


def test_user_schema_of_missing_columns(spark, stored_folder):
    found = numparq.spark.read(spark, stored_folder, schema="gone map<string, int>")
    assert (found.count(), found.filter("gone is null").count()) == (ROWS, ROWS)


def test_columns_missing_in_some_files(spark, tmp_path):
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": pa.array([3], pa.int64()), "b": ["x"]}), tmp_path / "b.parquet")
    found = load_numparq(spark, str(tmp_path))
    assert found.schema.simpleString() == "struct<a:bigint,b:string>"
    assert rows(found) == ["Row(a=1, b=None)", "Row(a=2, b=None)", "Row(a=3, b='x')"]


# --- partition columns ------------------------------------------------------------------------------------------------


def test_partition_columns_match_spark(spark, frame, tmp_path):
    keyed = spark.createDataFrame(frame[:300].assign(year=frame.row % 3 + 2020, zone=frame.s + " /=%"))
    keyed.write.partitionBy("year", "zone").parquet(str(tmp_path / "a"))
    expected = spark.read.parquet(str(tmp_path / "a"))
    for found in (load_numparq(spark, str(tmp_path / "a")), numparq.spark.read(spark, str(tmp_path / "a"))):
        assert found.schema == expected.schema
        assert rows(found) == rows(expected)
    some = load_numparq(spark, str(tmp_path / "a"), filter="year = 2021 and n > 0", columns="zone, row")
    assert rows(some) == rows(expected.filter("year = 2021 and n > 0").select("zone", "row"))
    typed = load_numparq(spark, str(tmp_path / "a"), partitioning='{"year": "int64"}', columns="year")
    assert typed.schema.simpleString() == "struct<year:bigint>"
    assert load_numparq(spark, str(tmp_path / "a"), partitioning="none").columns == list(frame.columns)


def test_inferred_partition_types(spark, tmp_path):
    """Types match Spark's inference; timestamps, and numbers valid only in Java, stay text."""
    names = {
        "big=3000000000/day=2024-01-31/share=1.5/mixed=1/odd=2024-02-30": 1,
        "big=-1/day=1999-01-01/share=2/mixed=x/odd=1": 2,
        "big=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__/share=-1.5e0/mixed=2.5/odd=0x10": 3,
    }
    for name, value in names.items():
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(pa.table({"a": [value]}), tmp_path / name / "a.parquet")
    expected = spark.read.parquet(str(tmp_path))
    assert expected.schema.simpleString() == "struct<a:bigint,big:bigint,day:date,share:double,mixed:string,odd:string>"
    found = numparq.spark.read(spark, str(tmp_path))
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)
    some = numparq.spark.read(spark, str(tmp_path), ["a"], "day > '2000-01-01' and share > 1")
    assert rows(some) == ["Row(a=1)"]
    ddl = "day string, a int, big decimal(20, 0)"
    with pytest.raises(SchemaError, match="column 'a'"):
        numparq.spark.read(spark, str(tmp_path), schema=ddl)
    texts = numparq.spark.read(spark, str(tmp_path), schema=ddl.replace("a int", "a bigint"))
    assert rows(texts) == rows(expected.selectExpr("cast(day as string)", "a", "cast(big as decimal(20, 0)) as big"))


def test_directory_partitioning(spark, frame, tmp_path):
    (tmp_path / "2020" / "x").mkdir(parents=True)
    numparq.to_parquet(frame[:5], tmp_path / "2020" / "x" / "a.parquet", index=False)
    found = load_numparq(spark, str(tmp_path), partitioning="year, what", columns="year, what, row")
    assert rows(found) == [f"Row(year=2020, what='x', row={row})" for row in range(5)]
