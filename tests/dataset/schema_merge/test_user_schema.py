"""Schema merge: a schema that the caller gives."""

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


def test_a_given_schema_is_that_of_the_dataset() -> None:
    file = open_table({"b": pa.array([1], pa.int32()), "a": ["x"], "c": [1]})
    node = SchemaNode("b", OPTIONAL, INT64)
    for given in (
        pa.schema([("a", pa.string()), ("b", pa.int64()), ("d", pa.float64())]),
        {"a": pa.string(), "b": node, "d": ArrowType("float", 64)},
        [("a", pa.string()), ("b", pa.int64()), ("d", pa.float64())],
        open_nodes(
            SchemaNode("a", OPTIONAL, BYTE_ARRAY, logical=STRING), node, SchemaNode("d", OPTIONAL, DOUBLE)
        ).schema,
    ):
        schema = DatasetSchema.from_files([file], schema=given)
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
    ("have", "asked", "words"),
    [
        (pa.int64(), pa.int32(), ("int64", "int32")),
        (pa.float64(), pa.int64(), ("float64", "int64")),
        (pa.timestamp("ns"), pa.timestamp("us"), ("timestamp[ns]", "timestamp[us]")),
        (pa.decimal128(9, 2), pa.decimal128(9, 3), ("decimal(9, 2)", "decimal(9, 3)")),
        (pa.string(), pa.binary(), ("string", "binary")),
        (pa.string(), pa.list_(pa.string()), ("string", "list")),
    ],
)
def test_files_have_to_fit_a_given_schema(have: Any, asked: Any, words: tuple[str, str]) -> None:
    with pytest.raises(numparq.SchemaError) as raised:
        DatasetSchema.from_files([open_column(have, "one.parquet")], schema=pa.schema([("a", asked)]))
    assert raised.value.where == {"file": "one.parquet", "column": "a"}
    assert words[0] in str(raised.value)
    assert words[1] in str(raised.value)


def test_a_given_schema_says_what_int96_and_time_zones_are() -> None:
    int96 = open_table({"a": pa.nulls(1, pa.timestamp("ns"))}, use_deprecated_int96_timestamps=True)
    berlin = pa.timestamp("us", "Europe/Berlin")
    schema = DatasetSchema.from_files(
        [int96, open_column(pa.timestamp("us", "UTC"))], schema=pa.schema([("a", berlin)])
    )
    assert schema.schema_file.arrow_schema.field_type(0).timezone == "Europe/Berlin"
    with pytest.raises(numparq.SchemaError):
        DatasetSchema.from_files([int96, open_column(berlin)])


def test_a_schema_out_of_a_file_has_what_the_files_say_besides() -> None:
    file = open_table(
        {"a": pa.nulls(1, pa.duration("s")), "b": pa.nulls(1, pa.list_(pa.timestamp("us", "Asia/Tokyo")))}
    )
    schema = DatasetSchema.from_files([file], schema=file.schema)
    assert schema.schema_file.arrow_schema.field_type(0) == ArrowType("duration", unit="s")
    assert schema.schema_file.arrow_schema.field_hint(1).children(1)[0].type.timezone == "Asia/Tokyo"
    assert all(match.is_same for match in match_columns(schema, file))


def test_fields_of_pyarrow_s_may_have_field_ids() -> None:
    def numbered(name: str, kind: Any, number: int) -> Any:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    inner = pa.struct([numbered("u", pa.int64(), 4)])
    first = open_table(
        pa.table(
            [[1], [{"x": 2}]],
            pa.schema([numbered("a", pa.int64(), 1), numbered("s", pa.struct([numbered("x", pa.int64(), 4)]), 2)]),
        )
    )
    given = pa.schema([numbered("t", inner, 2), numbered("b", pa.int64(), 1)])
    schema = DatasetSchema.from_files([first], schema=given, resolve="field_id")
    s, a = match_columns(schema, first)
    assert (s.column.name, a.column.name, a.is_same, s.is_same) == ("t", "a", True, True)
    assert [child.name for child in s.column.type.children] == ["u"]
    assert [leaf.name for leaf in s.column.leaves] == ["s.x"]
    with pytest.raises(numparq.SchemaError, match="no field id"):
        DatasetSchema.from_files([first], schema=pa.schema([("a", pa.int64())]), resolve="field_id")


def test_a_required_column_that_a_file_lacks_becomes_optional() -> None:
    asked = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False)])
    schema = DatasetSchema.from_files([open_table(pa.table({"a": [1]}, pa.schema([asked.field(0)])))], schema=asked)
    assert [leaf.repetition for leaf in schema.schema] == [REQUIRED, OPTIONAL]
