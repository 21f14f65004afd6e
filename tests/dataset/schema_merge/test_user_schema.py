"""Schema merge with a schema from the caller."""

from __future__ import annotations

from typing import Any

import pytest

import numparq
from numparq.dataset.schema_merge.column_mapping import MappedColumn
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.arrow_type import ArrowType
from numparq.format.physical_type import BYTE_ARRAY, DOUBLE, INT64
from numparq.format.schema import OPTIONAL, REQUIRED
from numparq.format.schema_node import SchemaNode
from support.dataset_schemas import STRING, match_columns, open_column, open_nodes, open_table

pa = pytest.importorskip("pyarrow")


def test_user_schema_is_dataset_schema() -> None:
    file = open_table({"b": pa.array([1], pa.int32()), "a": ["x"], "c": [1]})
    node = SchemaNode("b", OPTIONAL, INT64)
    for user_schema in (
        pa.schema([("a", pa.string()), ("b", pa.int64()), ("d", pa.float64())]),
        {"a": pa.string(), "b": node, "d": ArrowType("float", 64)},
        [("a", pa.string()), ("b", pa.int64()), ("d", pa.float64())],
        open_nodes(
            SchemaNode("a", OPTIONAL, BYTE_ARRAY, logical=STRING), node, SchemaNode("d", OPTIONAL, DOUBLE)
        ).schema,
    ):
        schema = DatasetSchema.from_files([file], schema=user_schema)
        assert str(schema.schema).split("\n")[1:-1] == [
            "  optional binary a (STRING);",
            "  optional int64 b;",
            "  optional double d;",
        ]
        a, b, d = match_columns(schema, file)
        assert (a.is_same, b.is_same, d) == (True, False, MappedColumn(None, False))
    assert DatasetSchema.from_files([], schema=pa.schema([("a", pa.int8())])).schema.columns == ["a"]
    with pytest.raises(ValueError, match="no file"):
        DatasetSchema.from_files([])
    with pytest.raises(ValueError, match="'a' twice"):
        DatasetSchema.from_files([file], schema=[("a", pa.string()), ("a", pa.string())])


@pytest.mark.parametrize(
    ("file_type", "schema_type", "words"),
    [
        (pa.int64(), pa.int32(), ("int64", "int32")),
        (pa.float64(), pa.float32(), ("float64", "float32")),
        (pa.decimal128(9, 2), pa.float64(), ("decimal(9, 2)", "float64")),
        (pa.timestamp("ns"), pa.timestamp("us"), ("timestamp[ns]", "timestamp[us]")),
        (pa.decimal128(9, 2), pa.decimal128(9, 3), ("decimal(9, 2)", "decimal(9, 3)")),
        (pa.string(), pa.int64(), ("string", "int64")),
        (pa.string(), pa.list_(pa.string()), ("string", "list")),
    ],
)
def test_files_must_fit_user_schema(file_type: Any, schema_type: Any, words: tuple[str, str]) -> None:
    file = open_column(file_type, "one.parquet")
    with pytest.raises(numparq.SchemaError) as raised:
        DatasetSchema.from_files([file], schema=pa.schema([("a", schema_type)])).check_columns()
    assert raised.value.where == {"file": "one.parquet", "column": "a"}
    assert words[0] in str(raised.value)
    assert words[1] in str(raised.value)


def test_user_schema_sets_int96_type_and_time_zone() -> None:
    int96 = open_table({"a": pa.nulls(1, pa.timestamp("ns"))}, use_deprecated_int96_timestamps=True)
    berlin = pa.timestamp("us", "Europe/Berlin")
    schema = DatasetSchema.from_files(
        [int96, open_column(pa.timestamp("us", "UTC"))], schema=pa.schema([("a", berlin)])
    )
    assert schema.schema_file.arrow_schema.field_type(0).timezone == "Europe/Berlin"
    for files in ([int96, open_column(berlin)], [open_column(berlin), int96]):
        assert DatasetSchema.from_files(files).schema_file.arrow_schema.field_type(0).timezone == "Europe/Berlin"


def test_schema_of_a_file_keeps_arrow_types() -> None:
    file = open_table(
        {"a": pa.nulls(1, pa.duration("s")), "b": pa.nulls(1, pa.list_(pa.timestamp("us", "Asia/Tokyo")))}
    )
    schema = DatasetSchema.from_files([file], schema=file.schema)
    assert schema.schema_file.arrow_schema.field_type(0) == ArrowType("duration", unit="s")
    assert schema.schema_file.arrow_schema.field_hint(1).children(1)[0].type.timezone == "Asia/Tokyo"
    assert all(match.is_same for match in match_columns(schema, file))


def test_pyarrow_schema_with_field_ids() -> None:
    def field_with_id(name: str, kind: Any, number: int) -> Any:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    inner = pa.struct([field_with_id("u", pa.int64(), 4)])
    first = open_table(
        pa.table(
            [[1], [{"x": 2}]],
            pa.schema(
                [
                    field_with_id("a", pa.int64(), 1),
                    field_with_id("s", pa.struct([field_with_id("x", pa.int64(), 4)]), 2),
                ]
            ),
        )
    )
    user_schema = pa.schema([field_with_id("t", inner, 2), field_with_id("b", pa.int64(), 1)])
    schema = DatasetSchema.from_files([first], schema=user_schema, resolve="field_id")
    s, a = match_columns(schema, first)
    assert (s.column.name, a.column.name, a.is_same, s.is_same) == ("t", "a", True, True)
    assert [child.name for child in s.column.type.children] == ["u"]
    assert [leaf.name for leaf in s.column.leaves] == ["s.x"]
    with pytest.raises(numparq.SchemaError, match="no field id"):
        DatasetSchema.from_files([first], schema=pa.schema([("a", pa.int64())]), resolve="field_id")


def test_missing_required_column_becomes_optional() -> None:
    schema_argument = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False)])
    schema = DatasetSchema.from_files(
        [open_table(pa.table({"a": [1]}, pa.schema([schema_argument.field(0)])))], schema=schema_argument
    )
    assert [leaf.repetition for leaf in schema.schema] == [REQUIRED, OPTIONAL]
