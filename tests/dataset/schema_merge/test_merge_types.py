"""Schema merge: the common type of a column, and type conflicts."""

from __future__ import annotations

from typing import Any

import pytest

import numparq
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema, check_one_table
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY, INT32, INT64, INT96
from numparq.format.schema import OPTIONAL
from numparq.format.schema_node import SchemaNode
from support.dataset_schemas import first_column_line, match_columns, open_column, open_nodes, open_table

pa = pytest.importorskip("pyarrow")
# Pairs for which pyarrow's permissive unification loses nothing.
WIDENED = [
    (pa.int8(), pa.int16()),
    (pa.int16(), pa.int32()),
    (pa.int32(), pa.int64()),
    (pa.uint8(), pa.uint64()),
    (pa.int8(), pa.uint8()),
    (pa.int16(), pa.uint32()),
    (pa.int64(), pa.uint32()),
    (pa.int8(), pa.float16()),
    (pa.int16(), pa.float32()),
    (pa.int32(), pa.float32()),
    (pa.uint32(), pa.float64()),
    (pa.int64(), pa.float64()),
    (pa.uint64(), pa.float64()),
    (pa.float32(), pa.float64()),
    (pa.float16(), pa.float64()),
    (pa.timestamp("ms"), pa.timestamp("us")),
    (pa.time32("ms"), pa.time64("ns")),
    (pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")),
    (pa.duration("ms"), pa.duration("us")),
    (pa.decimal128(9, 2), pa.decimal128(10, 5)),
    (pa.decimal128(38, 2), pa.decimal128(38, 10)),
    (pa.binary(4), pa.binary()),
    (pa.binary(4), pa.binary(5)),
    (pa.string(), pa.large_string()),
    (pa.null(), pa.int8()),
    (pa.null(), pa.list_(pa.string())),
    (pa.list_(pa.int8()), pa.list_(pa.int16())),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
    (pa.struct([("x", pa.int8())]), pa.struct([("y", pa.int8()), ("x", pa.int16())])),
    (pa.list_(pa.struct([("x", pa.int8())])), pa.list_(pa.struct([("x", pa.float64()), ("y", pa.string())]))),
]


@pytest.mark.parametrize(("first", "second"), WIDENED, ids=str)
def test_types_are_widened_like_pyarrow(first: Any, second: Any) -> None:
    for one, other in ((first, second), (second, first)):
        schema = DatasetSchema.from_files([open_column(one), open_column(other)])
        expected = pa.unify_schemas([pa.schema([("a", one)]), pa.schema([("a", other)])], promote_options="permissive")
        same = DatasetSchema.from_files([open_column(expected.field("a").type)])
        assert str(schema.schema) == str(same.schema)


# Pairs that pyarrow refuses or merges with loss.
WIDENED_BEYOND_PYARROW = [
    (pa.date32(), pa.timestamp("ms"), "int64 a (TIMESTAMP(MILLIS, local))"),
    (pa.int32(), pa.decimal128(9, 2), "decimal(12, 2)"),
    (pa.uint64(), pa.decimal128(4, 1), "decimal(21, 1)"),
    (pa.decimal256(76, 2), pa.decimal256(76, 10), "decimal(84, 10)"),
    (pa.dictionary(pa.int8(), pa.string()), pa.string(), "binary a (STRING)"),
    (pa.int64(), pa.float32(), "double a;"),
    (pa.int64(), pa.uint64(), "int64 a;"),
    (pa.int8(), pa.uint64(), "int64 a;"),
    (pa.bool_(), pa.int8(), "int32 a (INTEGER(8, signed))"),
    (pa.bool_(), pa.uint64(), "int64 a (INTEGER(64, unsigned))"),
    (pa.bool_(), pa.float16(), "float16"),
    (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC"), "int64 a (TIMESTAMP(MICROS, utc))"),
]


@pytest.mark.parametrize(("first", "second", "line"), WIDENED_BEYOND_PYARROW, ids=str)
def test_types_are_widened_beyond_pyarrow(first: Any, second: Any, line: str) -> None:
    for one, other in ((first, second), (second, first)):
        schema = DatasetSchema.from_files([open_column(one), open_column(other)])
        assert line.lower() in first_column_line(schema).lower()


CONFLICTS = [
    (pa.string(), pa.binary(), "string", "binary"),
    (pa.bool_(), pa.string(), "bool", "string"),
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), "timestamp[us]", "timestamp[us, UTC]"),
    (pa.date32(), pa.timestamp("us", "UTC"), "date", "timestamp[us, UTC]"),
    (pa.decimal128(9, 2), pa.float64(), "decimal(9, 2)", "float64"),
    (pa.duration("s"), pa.int64(), "duration", "int64"),
    (pa.list_(pa.int8()), pa.int8(), "list", "int8"),
    (pa.struct([("x", pa.int8())]), pa.int8(), "struct", "int8"),
    (pa.string(), pa.int8(), "string", "int8"),
    (pa.date32(), pa.string(), "date", "string"),
]


@pytest.mark.parametrize(("first", "second", "one", "other"), CONFLICTS, ids=str)
def test_conflict_names_files_column_and_types(first: Any, second: Any, one: str, other: str) -> None:
    files = [
        open_column(first, "first.parquet"),
        open_column(first, "more.parquet"),
        open_column(second, "last.parquet"),
    ]
    with pytest.raises(numparq.SchemaError) as raised:
        DatasetSchema.from_files(files).check_columns()
    assert raised.value.where == {"file": "last.parquet", "column": "a"}
    assert one in str(raised.value)
    assert other in str(raised.value)
    assert "'first.parquet'" in str(raised.value)


def test_nested_conflict_names_the_path() -> None:
    files = [open_column(pa.list_(pa.struct([("x", kind)]))) for kind in (pa.int64(), pa.string())]
    with pytest.raises(numparq.SchemaError) as raised:
        DatasetSchema.from_files(files).check_columns()
    assert raised.value.where["column"] == "a.element.x"


def test_common_type_is_independent_of_file_order() -> None:
    # The integers alone give int64, of which float64 holds only some.
    kinds = [pa.int32(), pa.uint32(), pa.float64()]
    for order in (kinds, kinds[::-1], [kinds[1], kinds[2], kinds[0]]):
        assert (
            first_column_line(DatasetSchema.from_files([open_column(kind) for kind in order])) == "optional double a;"
        )


def test_int96_merges_with_timestamps() -> None:
    int96 = open_table({"a": pa.nulls(1, pa.timestamp("ns"))}, use_deprecated_int96_timestamps=True)
    assert int96.schema.leaf(0).physical == INT96
    for unit, word in (("ms", "MICROS"), ("us", "MICROS"), ("ns", "NANOS")):
        schema = DatasetSchema.from_files([int96, open_column(pa.timestamp(unit))])
        assert first_column_line(schema) == f"optional int64 a (TIMESTAMP({word}, local));"
    assert match_columns(DatasetSchema.from_files([int96, int96]), int96)[0].is_same


def decimal(precision: int, scale: int) -> LogicalType:
    return LogicalType("DECIMAL", precision=precision, scale=scale)


def micros(utc: bool) -> LogicalType:
    return LogicalType("TIME", unit="MICROS", utc=utc)


FIXED = 7
SIGNED = LogicalType("INTEGER", bit_width=32, signed=True)
LOGICAL = [  # two files' (physical type, length, logical type); the schema line of both; whether each needs no cast
    ((BYTE_ARRAY, 0, "ENUM"), (BYTE_ARRAY, 0, None), "binary a;", (True, True)),
    ((BYTE_ARRAY, 0, "JSON"), (BYTE_ARRAY, 0, "STRING"), "binary a (STRING);", (True, True)),
    ((BYTE_ARRAY, 0, "BSON"), (FIXED, 3, None), "binary a;", (True, False)),
    ((INT32, 0, SIGNED), (INT32, 0, None), "int32 a", (True, True)),
    ((INT64, 0, micros(True)), (INT64, 0, micros(False)), "int64 a (TIME(MICROS, ", (True, True)),
    ((BYTE_ARRAY, 0, decimal(5, 2)), (FIXED, 4, decimal(5, 2)), "(DECIMAL(5, 2));", None),
    ((INT64, 0, decimal(10, 2)), (INT64, 0, decimal(15, 2)), "int64 a (DECIMAL(15, 2));", (True, True)),
    ((INT32, 0, decimal(9, 0)), (INT64, 0, decimal(18, 9)), "int64 a (DECIMAL(18, 9));", (False, True)),
    ((INT32, 0, decimal(9, 0)), (INT64, 0, decimal(18, 10)), "array(9) a (DECIMAL(19, 10));", (False, False)),
]


@pytest.mark.parametrize(("first", "second", "line", "same"), LOGICAL, ids=lambda item: str(item)[:40])
def test_common_type_of_different_storage(first: Any, second: Any, line: str, same: Any) -> None:
    def open_stored(physical: int, length: int, logical: Any) -> OpenFile:
        kind = LogicalType(logical) if isinstance(logical, str) else logical
        return open_nodes(SchemaNode("a", OPTIONAL, physical, length, kind))

    files = [open_stored(*first), open_stored(*second)]
    for order in (files, files[::-1]):
        schema = DatasetSchema.from_files(order)
        assert line in first_column_line(schema)
        found = tuple(match_columns(schema, file)[0].is_same for file in files)
        assert found == same if same is not None else sum(found) == 1


@pytest.mark.parametrize("logical", ["GEOMETRY", "INTERVAL"])
def test_geometry_and_interval_do_not_merge_with_plain_bytes(logical: str) -> None:
    kind = (FIXED, 12) if logical == "INTERVAL" else (BYTE_ARRAY, 0)
    files = [
        open_nodes(SchemaNode("a", OPTIONAL, *kind, LogicalType(logical))),
        open_nodes(SchemaNode("a", OPTIONAL, *kind)),
    ]
    with pytest.raises(numparq.SchemaError, match=logical):
        check_one_table(files)
    user_schema = DatasetSchema.from_files(files, schema=files[1].schema)
    assert all(match_columns(user_schema, file)[0].is_same for file in files)
