"""Types that numparq's data source returns match Spark's own reader on the same files."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.errors import InvalidFileError, SchemaError, UnsupportedError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")

from pyspark.sql import types  # noqa: E402

from numparq.spark.scan import arrow_batches  # noqa: E402
from numparq.spark.scan.arrow_batches import RecordBatchBuilder, worker_arrow_schema  # noqa: E402
from numparq.spark.schema.from_parquet import spark_schema  # noqa: E402

DAY = datetime.date(2021, 3, 4)
MOMENT = datetime.datetime(1965, 1, 2, 3, 4, 5, 678901)
D = decimal.Decimal

# Values by Arrow type; nulls come in between.
FLAT = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, 127]),
    "int16": (pa.int16(), [-32768, 32767]),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "uint8": (pa.uint8(), [0, 255]),
    "uint16": (pa.uint16(), [0, 65535]),
    "uint32": (pa.uint32(), [0, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**64 - 1]),
    "float32": (pa.float32(), [1.5, -0.0, float("inf")]),
    "float64": (pa.float64(), [1e300, -0.0, float("-inf")]),
    "decimal4": (pa.decimal128(7, 2), [D("12345.67"), D("-0.01")]),
    "decimal8": (pa.decimal128(18, 6), [D("123456789012.345678"), D("-0.000001")]),
    "decimal16": (pa.decimal128(38, 10), [D("1234567890123456789012345678.0123456789"), D("-1.0000000000")]),
    "string": (pa.string(), ["", "žluť 😀", "x" * 300]),
    "large_string": (pa.large_string(), ["", "a"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"]),
    "binary": (pa.binary(), [b"", b"\x00\xff"]),
    "fixed": (pa.binary(5), [b"abcde", b"\x00" * 5]),
    "date": (pa.date32(), [DAY, datetime.date(1500, 1, 1), datetime.date(9999, 12, 31)]),
    "instant_ms": (pa.timestamp("ms", "UTC"), [MOMENT.replace(microsecond=7000, tzinfo=datetime.UTC)]),
    "instant": (pa.timestamp("us", "Europe/Berlin"), [MOMENT.replace(tzinfo=datetime.UTC)]),
    "local_ms": (pa.timestamp("ms"), [MOMENT.replace(microsecond=7000)]),
    "local": (pa.timestamp("us"), [MOMENT, datetime.datetime(9999, 1, 1)]),
    "time": (pa.time64("us"), [datetime.time(0, 0), datetime.time(23, 59, 59, 999999)]),
    "time_ns": (pa.time64("ns"), [datetime.time(1, 2, 3, 4000)]),
    "duration": (pa.duration("us"), [datetime.timedelta(days=-3, microseconds=1)]),
    "null": (pa.null(), [None]),
    "json": (pa.json_(pa.string()), ['{"a": 1}']),
}
NESTED = {
    "list": (pa.list_(pa.int32()), [[1, None, 3], [], [4]]),
    "of_unsigned": (pa.list_(pa.uint8()), [[1, None, 255], [], [4]]),
    "deep": (pa.list_(pa.list_(pa.string())), [[["a", None], None, []], [], [["b"]]]),
    "structs": (pa.list_(pa.struct({"x": pa.uint32(), "y": pa.string()})), [[{"x": 1, "y": None}, None], []]),
    "map": (pa.map_(pa.string(), pa.float64()), [[("a", 1.5), ("b", None)], []]),
    "of_lists": (pa.map_(pa.int16(), pa.list_(pa.decimal128(9, 2))), [[(1, [D("1.25"), None]), (2, None)]]),
    "struct": (
        pa.struct(
            [
                pa.field("n", pa.uint16()),
                pa.field("must", pa.int64(), False),
                pa.field("in", pa.struct({"t": pa.timestamp("us", "UTC"), "l": pa.list_(pa.date32())})),
            ]
        ),
        [
            {"n": 1, "must": 2, "in": None},
            {"n": None, "must": 3, "in": {"t": MOMENT.replace(tzinfo=datetime.UTC), "l": [DAY, None]}},
        ],
    ),
}
ROWS = 50


def table_of(columns, nullable=True):
    made = {}
    for name, (kind, values) in columns.items():
        cycle = [values[row % len(values)] if row % 3 or not nullable else None for row in range(ROWS)]
        storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        plain = storage.value_type if pa.types.is_dictionary(storage) else storage
        array = pa.array(cycle, plain).cast(storage)
        made[name] = pa.ExtensionArray.from_storage(kind, array) if storage is not kind else array
    return pa.table(made)


def by_pyarrow(table, path):
    pq.write_table(table, path, row_group_size=20)


def by_numparq(table, path):
    frame = pd.DataFrame({name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names})
    numparq.to_parquet(frame, path, index=False, row_group_size=20)


def check(spark, path):
    """Compare Spark's reader with the data source and with `numparq.spark.read`."""
    expected = spark.read.parquet(str(path))
    for got in (spark.read.format("numparq").load(str(path)), numparq.spark.read(spark, str(path))):
        assert got.schema == expected.schema
        assert got.toArrow().to_pylist() == expected.toArrow().to_pylist()
    return expected


@pytest.fixture(scope="module", autouse=True)
def registered(spark):
    numparq.spark.register(spark)


# --- types that Spark reads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [by_pyarrow, by_numparq])
@pytest.mark.parametrize("columns", [FLAT, NESTED], ids=["flat", "nested"])
def test_types_match_spark(spark, tmp_path, write, columns):
    write(table_of(columns), tmp_path / "a.parquet")
    found = check(spark, tmp_path / "a.parquet")
    assert found.columns == list(columns)


def test_required_columns_match_spark(spark, tmp_path):
    of = {name: column for name, column in FLAT.items() if name != "null"}
    fields = [pa.field(name, kind, False) for name, (kind, _) in of.items()]
    by_pyarrow(table_of(of, nullable=False).cast(pa.schema(fields)), tmp_path / "a.parquet")
    check(spark, tmp_path / "a.parquet")


def test_int96_timestamps_match_spark(spark, tmp_path):
    moments = [MOMENT, None, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)]
    table = pa.table({"t": pa.array(moments, pa.timestamp("us")), "l": pa.array([moments, [], None, [None]])})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    spark.conf.set("spark.sql.parquet.int96RebaseModeInRead", "CORRECTED")
    found = check(spark, tmp_path / "a.parquet")
    assert found.schema.simpleString() == "struct<t:timestamp,l:array<timestamp>>"


SQL = {
    "interval": "make_dt_interval(id, 2, 3, 4.5)",
    "hours": "cast(make_dt_interval(0, id) as interval hour)",
    "time": "cast('12:13:14.567' as time(3))",
    "text": "case when id % 3 = 0 then null else cast(id as string) end",
    "folded": "'A' collate UTF8_LCASE",
    "tiny": "cast(id as tinyint)",
    "amount": "cast(id / 7 as decimal(25, 10))",
    "moment": "timestamp_micros(id * 1234567)",
    "local": "cast(timestamp_micros(id * 7654321) as timestamp_ntz)",
    "many": "array(id, null, id + 1)",
    "pairs": "map(id, struct(cast(id as float) as x, array(date'2020-01-01') as days))",
    "point": "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')",
}


def test_types_written_by_spark(spark, tmp_path):
    spark.range(0, 40, 1, 2).selectExpr(*(f"{sql} as {name}" for name, sql in SQL.items())).write.parquet(
        str(tmp_path / "a")
    )
    expected = spark.read.parquet(str(tmp_path / "a"))
    got = numparq.spark.read(spark, str(tmp_path / "a"))
    assert got.schema == expected.schema

    def rows(of):
        return sorted(map(repr, of.collect()))

    assert rows(got) == rows(expected)
    assert rows(spark.read.format("numparq").load(str(tmp_path / "a"))) == rows(expected)


def test_variants_written_by_spark(spark, tmp_path):
    made = spark.range(20).selectExpr(
        "case when id % 4 = 3 then null else parse_json(concat('{\"n\": ', id, ', \"s\": [\"', id, '\"]}')) end as v",
        "array(parse_json('1'), parse_json('null')) as many",
    )
    made.write.parquet(str(tmp_path / "a"))
    expected, got = spark.read.parquet(str(tmp_path / "a")), numparq.spark.read(spark, str(tmp_path / "a"))
    assert got.schema == expected.schema
    asked = ["to_json(v)", "v is null", "variant_get(v, '$.s[0]', 'string')", "to_json(many[0])", "to_json(many[1])"]
    assert sorted(map(repr, got.selectExpr(*asked).collect())) == sorted(
        map(repr, expected.selectExpr(*asked).collect())
    )


# --- types that Spark cannot read -------------------------------------------------------------------------------------


def test_types_that_spark_cannot_read(spark, tmp_path):
    name = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    table = pa.table(
        {
            "half": pa.array([1.5, None, np.float16(0.1)], pa.float16()),
            "uuid": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([name.bytes, None, b"\x00" * 16], pa.binary(16))
            ),
            "ms": pa.array([datetime.time(1, 2, 3, 4000), None, datetime.time(0)], pa.time32("ms")),
            "ns": pa.array([1_000, None, -1_000], pa.timestamp("ns")),
            "ns_utc": pa.array([1_000, None, -1_000], pa.timestamp("ns", "UTC")),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    found = numparq.spark.read(spark, str(tmp_path / "a.parquet"))
    assert found.schema.simpleString() == (
        "struct<half:float,uuid:string,ms:time(3),ns:timestamp_ntz,ns_utc:timestamp>"
    )
    rows = found.selectExpr("half", "uuid", "cast(ms as string)", "cast(ns as string)", "unix_micros(ns_utc)").collect()
    assert [tuple(row) for row in rows] == [
        (1.5, str(name), "01:02:03.004", "1970-01-01 00:00:00.000001", 1),
        (None,) * 5,
        (0.0999755859375, "00000000-0000-0000-0000-000000000000", "00:00:00", "1969-12-31 23:59:59.999999", -1),
    ]


def test_nanoseconds_raise_or_floor(spark, tmp_path):
    pq.write_table(pa.table({"t": pa.array([1_001, -1, None], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    with pytest.raises(Exception, match=r"cannot be stored in microseconds.*column 't'"):
        numparq.spark.read(spark, str(tmp_path)).collect()
    floored = spark.read.format("numparq").option("nanoseconds", "floor").load(str(tmp_path))
    assert floored.selectExpr("cast(t as string)").toArrow().to_pydict() == {
        "t": ["1970-01-01 00:00:00.000001", "1969-12-31 23:59:59.999999", None]
    }


def test_decimal_beyond_38_digits_is_refused(spark, tmp_path):
    table = pa.table({"ok": [1], "d": pa.array([D(10) ** 50], pa.decimal256(60, 2))})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(UnsupportedError, match=r"not support DECIMAL\(60, 2\).* \(column 'd'\)"):
        numparq.spark.read(spark, str(tmp_path))
    assert numparq.spark.read(spark, str(tmp_path), ["ok"]).collect()[0].ok == 1


# --- schemas, without a session ---------------------------------------------------------------------------------------


def schema_with_metadata(fields, arrow):
    metadata = {b"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields}).encode()}
    return spark_schema(arrow.with_metadata(metadata))


def field(name, kind):
    return {"name": name, "type": kind, "nullable": False, "metadata": {"comment": "c"}}


def test_spark_schema_metadata_is_used_if_it_fits():
    arrow = pa.schema({"a": pa.int64(), "b": pa.int64(), "c": pa.int32()})
    found = schema_with_metadata(
        [field("a", "interval day to second"), field("b", "string"), field("d", "long")], arrow
    )
    assert found.simpleString() == "struct<a:interval day to second,b:bigint,c:int>"
    assert all(each.nullable for each in found)
    assert found["a"].metadata == {"comment": "c"}


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b'{"type": "struct", "fields": 3}', b"[" * 100_000])
def test_damaged_spark_schema_metadata_is_ignored(text):
    arrow = pa.schema({"a": pa.int64()}, {b"org.apache.spark.sql.parquet.row.metadata": text})
    assert spark_schema(arrow).simpleString() == "struct<a:bigint>"


def test_udt_classes_of_files_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "named_by_a_file.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    of = {"type": "udt", "class": "x", "pyClass": "named_by_a_file.Kind", "sqlType": "interval day to second"}
    nested = {"type": "array", "elementType": of, "containsNull": True}
    found = schema_with_metadata(
        [field("a", of), field("b", nested)], pa.schema({"a": pa.int64(), "b": pa.list_(pa.int64())})
    )
    assert found.simpleString() == "struct<a:interval day to second,b:array<interval day to second>>"


# --- batches, without a session ---------------------------------------------------------------------------------------


def made(table, schema=None, **options):
    schema = spark_schema(table.schema) if schema is None else types.StructType.fromDDL(schema)
    batches = list(RecordBatchBuilder(schema, **options).from_table(table))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(worker_arrow_schema(schema), check_metadata=True)
    return pa.Table.from_batches(batches, worker_arrow_schema(schema)), [batch.num_rows for batch in batches]


@pytest.mark.parametrize("columns", [FLAT, NESTED], ids=["flat", "nested"])
@pytest.mark.parametrize("rows", [1, 7, None])
def test_batches_of_chunked_tables(columns, rows):
    table = table_of(columns)
    whole = pa.concat_tables([table.slice(0, 0), table.slice(3, 20), table.slice(31), table.slice(4, 1)])
    found, sizes = made(whole, max_rows=rows)
    assert sum(sizes) == whole.num_rows
    assert max(sizes) <= (rows or ROWS)
    same = [name for name in columns if name not in ("duration", "null", "json")]
    assert found.select(same).to_pylist() == whole.select(same).to_pylist()


def test_list_layouts_become_lists():
    values = [[1, 2], None, [3, None]]
    kinds = [pa.large_list(pa.int8()), pa.list_(pa.int8(), 2), pa.list_view(pa.int8())]
    table = pa.table({str(place): pa.array(values, kind) for place, kind in enumerate(kinds)})
    assert made(table)[0].to_pydict() == {str(place): values for place in range(3)}


def test_batches_are_limited_in_bytes(monkeypatch):
    monkeypatch.setattr(arrow_batches, "MAX_BYTES", 1000)
    texts = pa.array(["x" * 90] * 100)
    table = pa.table({"plain": texts, "coded": texts.dictionary_encode()})
    found, sizes = made(table)
    assert found.to_pydict() == table.to_pydict()
    assert max(sizes) <= 1000 / 180


@pytest.mark.parametrize("kind", [pa.large_string(), pa.large_binary()], ids=str)
def test_values_beyond_two_gigabytes(kind):
    """The leading bytes are never touched, so they take no memory."""
    data = np.zeros((3 << 30) + 10, np.uint8)
    data[-10:] = ord("x")
    offsets = np.array([0, 5, 5, 3 << 30, (3 << 30) + 10], np.int64)
    validity = pa.py_buffer(bytes([0b1101]))
    array = pa.Array.from_buffers(kind, 4, [validity, pa.py_buffer(offsets), pa.py_buffer(data)])
    found, _ = made(pa.table({"s": array}).slice(3))
    assert found["s"].cast(pa.string()).to_pylist() == ["x" * 10]


def test_batches_without_columns():
    table = pa.table({"": pa.nulls(10)}).select([])
    assert made(table, max_rows=4)[1] == [4, 4, 2]
    found, sizes = made(table, "a int, b array<string>", max_rows=4)
    assert (found.to_pylist(), sizes) == ([{"a": None, "b": None}] * 10, [4, 4, 2])


def test_batches_under_a_user_schema():
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int8()),
            "s": pa.array([{"x": 1, "y": "a"}, None]),
            "d": pa.array([DAY, None]),
        }
    )
    found, _ = made(table, "S struct<Y: string, new: map<string, int>>, id decimal(5, 2), d timestamp_ntz, gone double")
    assert found.to_pylist() == [
        {"S": {"Y": "a", "new": None}, "id": D("1.00"), "d": datetime.datetime(2021, 3, 4), "gone": None},
        {"S": None, "id": D("2.00"), "d": None, "gone": None},
    ]


@pytest.mark.parametrize(
    ("column", "schema"),
    [
        (pa.array([1, None]), "a bigint not null"),
        (pa.array([[1, None]]), "a array<bigint> not null"),
        (pa.array([{"x": None}], pa.struct({"x": pa.int64()})), "a struct<x: bigint not null>"),
    ],
)
def test_nulls_in_required_columns_are_refused(column, schema):
    kind = types.StructType.fromDDL(schema)
    if "array" in schema:
        kind = types.StructType([types.StructField("a", types.ArrayType(types.LongType(), False))])
    with pytest.raises(SchemaError, match=r"null.*column 'a'"):
        list(RecordBatchBuilder(kind).from_table(pa.table({"a": column})))


def test_names_that_differ_only_in_case():
    table = pa.table({"a": [1], "A": [2]})
    assert made(table, "A bigint, a bigint")[0].to_pydict() == {"A": [2], "a": [1]}
    table = pa.table({"aB": [1], "Ab": [2]})
    with pytest.raises(SchemaError, match="matches several columns regardless of case: aB, Ab"):
        made(table, "ab bigint")


def test_values_out_of_range_are_refused():
    late = pa.array([2**62], pa.timestamp("ms"))
    with pytest.raises(InvalidFileError, match=r"timestamp\[ms\] cannot be .* out of bounds.*column 't'"):
        made(pa.table({"t": late}))
    with pytest.raises(InvalidFileError, match="not a time of day"):
        made(pa.table({"t": pa.array([86_400_000_000], pa.int64()).view(pa.time64("us"))}))
