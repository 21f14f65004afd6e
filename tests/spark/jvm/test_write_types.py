"""All of Spark's types written through ``df.write.format("numparq")`` and read back by Spark."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 400
# SQL by type: a value from the row number, 0 to 399.
VALUES = {
    "bool": "id % 2 = 0",
    "byte": "cast(id % 100 - 50 as tinyint)",
    "short": "cast(id * 30 - 9000 as smallint)",
    "int": "cast(id * 1000000 - 300000000 as int)",
    "long": "id * 10000000000000000 - 3000000000000000000",
    "float": "cast(id as float) / 3",
    "double": "if(id % 50 = 0, double('NaN'), cast(id as double) / 7 - 40)",
    "decimal5": "cast(id / 10 - 30 as decimal(5, 2))",
    "decimal18": "cast(id as decimal(18, 3)) * 1000000000 - 5",
    "decimal38": "cast(cast(id as decimal(20, 0)) * 12345678901 - 5 as decimal(38, 10))",
    "string": "concat('Ä', lpad(id, 3, '0'), repeat('x', cast(id % 90 as int)))",
    "binary": "cast(concat('b', lpad(id, 3, '0')) as binary)",
    "date": "date_add(date'1500-01-01', cast(id * 300 as int))",
    "timestamp": "timestamp_micros(id * 100000000000007 - 30000000000000000)",
    "ntz": "timestamp_ntz'1400-01-01 00:00:00.000001' + make_dt_interval(cast(id * 500 as int))",
    "time": "cast(concat(lpad(id % 24, 2, '0'), ':00:00.00000', id % 10) as time(6))",
    "interval": "make_dt_interval(cast(id - 300 as int), 1, 2, 3.25)",
    "variant": 'parse_json(concat(\'{"a": \', id, \', "b": [null, "x"]}\'))',
}
FLAT = {name: f"if(id % 7 = 3, null, {value})" for name, value in VALUES.items()}
# Nestings of a value, with nulls at every level.
NESTINGS = {
    "array": "case id % 5 when 0 then null when 1 then array() else array({0}, null, {0}) end",
    "struct": "if(id % 5 = 0, null, struct({0} as `x y`, if(id % 5 = 1, null, struct({0} as inner)) as s))",
    "map": "case id % 5 when 0 then null when 1 then map() else map('k', {0}, concat('j', id), null) end",
    "deep": "if(id % 5 = 0, null, array(map(1, array(struct({0} as x), null)), null))",
}
COMPARED = [name for name in VALUES if name != "variant"]


@pytest.fixture(scope="module")
def numparq_spark(spark: Any) -> Any:
    from numparq.spark.data_source.source import NumparqDataSource

    spark.dataSource.register(NumparqDataSource)
    return spark


def frame(spark: Any, expressions: dict[str, str]) -> Any:
    numbers = spark.range(0, ROWS, 1, 2)
    return numbers.selectExpr("id", *[f"{expression} as `{name}`" for name, expression in expressions.items()])


def rows(df: Any) -> list[str]:
    """Return the rows as text, so that NaN equals itself."""
    return [repr(row) for row in df.sort("id").collect()]


def plain(schema: Any) -> Any:
    """Return a schema with everything nullable, as a reader of files has it."""
    import json

    def nullable(of: Any) -> Any:
        if isinstance(of, dict):
            flags = {"nullable", "containsNull", "valueContainsNull"}
            return {key: True if key in flags else nullable(value) for key, value in of.items()}
        return list(map(nullable, of)) if isinstance(of, list) else of

    return nullable(json.loads(schema.json()))


@pytest.mark.parametrize("nesting", [None, *NESTINGS])
def test_every_type_round_trips_through_spark(numparq_spark, tmp_path, nesting):
    expressions = FLAT if nesting is None else {n: NESTINGS[nesting].format(f"({v})") for n, v in FLAT.items()}
    df = frame(numparq_spark, expressions)
    writer = df.write.format("numparq").mode("append")
    writer.option("rowGroupSize", 100).option("maxRowsPerPage", 20).save(str(tmp_path / "data"))
    expected = rows(df)
    for vectorized in ("true", "false"):  # Spark has two readers
        numparq_spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        try:
            found = numparq_spark.read.parquet(str(tmp_path / "data"))
            assert plain(found.schema) == plain(df.schema)
            assert rows(found) == expected
        finally:
            numparq_spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.parametrize("bloom", [False, True])
def test_spark_pushdown_finds_every_row(numparq_spark, tmp_path, bloom):
    df = frame(numparq_spark, {**FLAT, "nested": "struct(id as n)"}).cache()
    writer = df.write.format("numparq").mode("append").option("rowGroupSize", 100).option("maxRowsPerPage", 20)
    if bloom:
        writer = writer.option("bloomFilters", ", ".join(name for name in COMPARED if name != "bool"))
    writer.save(str(tmp_path / "data"))
    found = numparq_spark.read.parquet(str(tmp_path / "data"))
    operators = ("=",) if bloom else ("<=>", ">")
    tests = [f"{name} {operator} ({VALUES[name].replace('id', '250')})" for name in COMPARED for operator in operators]
    if not bloom:
        tests += [f"{name} is null" for name in COMPARED] + ["nested.n = 250", "string like 'Ä25%'", "not (int <=> 1)"]
    counts = df.selectExpr(*[f"count_if({test}) as `{number}`" for number, test in enumerate(tests)]).collect()[0]
    parts = [found.where(test).selectExpr(f"{number} as number", "id") for number, test in enumerate(tests)]
    got = dict(reduce(lambda one, other: one.union(other), parts).groupBy("number").count().collect())
    assert {tests[number]: got.get(number, 0) for number in range(len(tests))} == dict(zip(tests, counts, strict=True))


def test_spark_filters_find_nan(numparq_spark, tmp_path):
    df = numparq_spark.range(0, 1000, 1, 1).selectExpr("id", "if(id % 7 = 0, double('NaN'), id / 1000) as x")
    df.write.format("numparq").mode("append").option("rowGroupSize", 100).option("maxRowsPerPage", 20).save(
        str(tmp_path / "data")
    )
    found = numparq_spark.read.parquet(str(tmp_path / "data"))
    assert [found.where(test).count() for test in ("x = double('NaN')", "x > 5", "x <= 0.5")] == [143, 143, 429]


def test_session_time_zone_does_not_matter(numparq_spark, tmp_path):
    df = frame(numparq_spark, {"t": FLAT["timestamp"], "l": f"array({FLAT['timestamp']})"})
    expected = rows(df.selectExpr("id", "unix_micros(t) t", "unix_micros(l[0]) l"))
    for zone in ("America/New_York", "Asia/Kolkata"):
        numparq_spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            df.write.format("numparq").mode("overwrite").save(str(tmp_path / "data"))
        finally:
            numparq_spark.conf.set("spark.sql.session.timeZone", "UTC")
        found = numparq_spark.read.parquet(str(tmp_path / "data"))
        assert rows(found.selectExpr("id", "unix_micros(t) t", "unix_micros(l[0]) l")) == expected


def test_not_null_columns_are_required(numparq_spark, tmp_path):
    from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

    schema = StructType(
        [
            StructField("id", LongType(), False, {"comment": "Ä"}),
            StructField("l", ArrayType(StringType(), False), False),
        ]
    )
    df = numparq_spark.createDataFrame([(1, ["a"]), (2, [])], schema)
    df.write.format("numparq").mode("append").save(str(tmp_path / "data"))
    parquet = pytest.importorskip("pyarrow.parquet")
    file = parquet.ParquetFile(next((tmp_path / "data").glob("*.parquet")))
    assert not any(field.nullable for field in file.schema_arrow)
    assert not file.schema_arrow.field("l").type.value_field.nullable
    found = numparq_spark.read.parquet(str(tmp_path / "data"))
    assert rows(found) == rows(df)
    assert found.schema["id"].metadata == {"comment": "Ä"}


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("null", "needs a type"),
        ("make_ym_interval(1, 2)", "cast"),
        ("struct(array(null) as x)", "needs a type"),
    ],
)
def test_unsupported_types_are_refused(numparq_spark, tmp_path, value, advice):
    df = numparq_spark.range(3).selectExpr("id", f"{value} as odd")
    with pytest.raises(Exception, match=rf"cannot be written: (.|\n)*{advice}(.|\n)*column 'odd'") as caught:
        df.write.format("numparq").mode("append").save(str(tmp_path / "data"))
    assert "UnsupportedError" in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_numparq_and_pyarrow_read_the_written_file(numparq_spark, tmp_path):
    import numparq

    parquet = pytest.importorskip("pyarrow.parquet")
    names = [name for name in FLAT if name != "variant"]
    df = frame(numparq_spark, {name: FLAT[name] for name in names})
    df.coalesce(1).write.format("numparq").mode("append").save(str(tmp_path / "data"))
    (path,) = Path(tmp_path / "data").glob("*.parquet")
    table = parquet.read_table(path)
    expected = df.sort("id").toArrow()
    for name in expected.column_names:
        assert table[name].cast(expected.schema.field(name).type).equals(expected[name]) or name == "double"
    assert str(table.schema.field("interval").type) == "duration[us]"
    found = numparq.read_parquet(path, dtype_backend="pyarrow")
    assert [str(dtype) for dtype in found.dtypes] == [f"{kind}[pyarrow]" for kind in table.schema.types]
