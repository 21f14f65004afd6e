"""Schemas of many files as one: united, resolved by name, position or field id, or given."""

from __future__ import annotations

import io
import json
from typing import Any

import pandas as pd
import pytest

import numparq
from numparq.column.projection import select_columns
from numparq.dataset.schema_merge.column_mapping import MappedColumn
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.arrow_type import ArrowType
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY, DOUBLE, INT32, INT64, INT96
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


class Named(io.BytesIO):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def opened(table: Any, name: str = "file", **options: Any) -> OpenFile:
    """A file of pyarrow's, of a table or a dict of columns."""
    buffer = Named(name)
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), buffer, **options)
    return OpenFile(buffer)


def of_type(kind: Any, name: str = "file", **options: Any) -> OpenFile:
    return opened({"a": pa.nulls(0, kind)}, name, **options)


def of_nodes(*nodes: SchemaNode, name: str = "file") -> OpenFile:
    """A file of no rows with a schema of any sort."""
    from numparq.format.schema_node import to_schema_elements
    from numparq.format.thrift.encode import encode_struct

    footer = encode_struct(
        "FileMetaData", {"version": 1, "schema": to_schema_elements(nodes), "num_rows": 0, "row_groups": []}
    )
    buffer = Named(name)
    buffer.write(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return OpenFile(buffer)


def matched(schema: DatasetSchema, file: OpenFile, columns: Any = None) -> list[MappedColumn]:
    return schema.matches(file, select_columns(schema.schema, columns))


def column_of(schema: DatasetSchema) -> str:
    """The line of the schema that tells of its first column."""
    return str(schema.schema).split("\n")[1].strip()


# --- types ----------------------------------------------------------------------------------------------------------

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
def test_types_are_widened_as_pyarrow_does(first: Any, second: Any) -> None:
    for one, other in ((first, second), (second, first)):
        schema = DatasetSchema.of([of_type(one), of_type(other)])
        wanted = pa.unify_schemas([pa.schema([("a", one)]), pa.schema([("a", other)])], promote_options="permissive")
        same = DatasetSchema.of([of_type(wanted.field("a").type)])
        assert str(schema.schema) == str(same.schema)


# Pairs that pyarrow refuses, or unites at a loss.
OURS = [
    (pa.date32(), pa.timestamp("ms"), "int64 a (TIMESTAMP(MILLIS, local))"),
    (pa.int32(), pa.decimal128(9, 2), "decimal(12, 2)"),
    (pa.uint64(), pa.decimal128(4, 1), "decimal(21, 1)"),
    (pa.decimal256(76, 2), pa.decimal256(76, 10), "decimal(84, 10)"),
    (pa.dictionary(pa.int8(), pa.string()), pa.string(), "binary a (STRING)"),
    (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC"), "int64 a (TIMESTAMP(MICROS, utc))"),
]


@pytest.mark.parametrize(("first", "second", "line"), OURS, ids=str)
def test_more_types_are_widened(first: Any, second: Any, line: str) -> None:
    for one, other in ((first, second), (second, first)):
        schema = DatasetSchema.of([of_type(one), of_type(other)])
        assert line.lower() in column_of(schema).lower()


CONFLICTS = [
    (pa.int64(), pa.float64(), "int64", "float64"),
    (pa.int64(), pa.uint64(), "int64", "uint64"),
    (pa.string(), pa.binary(), "string", "binary"),
    (pa.bool_(), pa.int8(), "bool", "int8"),
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
def test_a_conflict_names_both_files_the_column_and_the_types(first: Any, second: Any, one: str, other: str) -> None:
    files = [of_type(first, "first.parquet"), of_type(first, "more.parquet"), of_type(second, "last.parquet")]
    with pytest.raises(numparq.SchemaError) as raised:
        DatasetSchema.of(files)
    assert raised.value.where == {"file": "last.parquet", "column": "a"}
    assert one in str(raised.value)
    assert other in str(raised.value)
    assert "'first.parquet'" in str(raised.value)


def test_a_conflict_within_a_column_names_the_path() -> None:
    files = [of_type(pa.list_(pa.struct([("x", kind)]))) for kind in (pa.int64(), pa.string())]
    with pytest.raises(numparq.SchemaError) as raised:
        DatasetSchema.of(files)
    assert raised.value.where["column"] == "a.element.x"


def test_what_types_unite_to_does_not_depend_on_the_order_of_files() -> None:
    kinds = [pa.int32(), pa.uint32(), pa.float64()]  # the integers alone would be int64, which no float holds
    for order in (kinds, kinds[::-1], [kinds[1], kinds[2], kinds[0]]):
        assert column_of(DatasetSchema.of([of_type(kind) for kind in order])) == "optional double a;"


def test_int96_unites_with_timestamps() -> None:
    int96 = opened({"a": pa.nulls(1, pa.timestamp("ns"))}, use_deprecated_int96_timestamps=True)
    assert int96.schema.leaf(0).physical == INT96
    for unit, word in (("ms", "MICROS"), ("us", "MICROS"), ("ns", "NANOS")):
        schema = DatasetSchema.of([int96, of_type(pa.timestamp(unit))])
        assert column_of(schema) == f"optional int64 a (TIMESTAMP({word}, local));"
    assert matched(DatasetSchema.of([int96, int96]), int96)[0].is_same


def decimal(precision: int, scale: int) -> LogicalType:
    return LogicalType("DECIMAL", precision=precision, scale=scale)


def micros(utc: bool) -> LogicalType:
    return LogicalType("TIME", unit="MICROS", utc=utc)


FIXED = 7
SIGNED = LogicalType("INTEGER", bit_width=32, signed=True)
LOGICAL = [  # physical type, length, logical type: of two files; the line of both; whether each is decoded as that
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
def test_what_is_stored_in_several_ways(first: Any, second: Any, line: str, same: Any) -> None:
    def stored(physical: int, length: int, logical: Any) -> OpenFile:
        kind = LogicalType(logical) if isinstance(logical, str) else logical
        return of_nodes(SchemaNode("a", OPTIONAL, physical, length, kind))

    files = [stored(*first), stored(*second)]
    for order in (files, files[::-1]):
        schema = DatasetSchema.of(order)
        assert line in column_of(schema)
        found = tuple(matched(schema, file)[0].is_same for file in files)
        assert found == same if same is not None else sum(found) == 1


@pytest.mark.parametrize("logical", ["GEOMETRY", "INTERVAL"])
def test_bytes_that_are_something_of_their_own_do_not_become_any_bytes(logical: str) -> None:
    kind = (FIXED, 12) if logical == "INTERVAL" else (BYTE_ARRAY, 0)
    files = [
        of_nodes(SchemaNode("a", OPTIONAL, *kind, LogicalType(logical))),
        of_nodes(SchemaNode("a", OPTIONAL, *kind)),
    ]
    with pytest.raises(numparq.SchemaError, match=logical):
        DatasetSchema.of(files)
    given = DatasetSchema.of(files, schema=files[1].schema)
    assert all(matched(given, file)[0].is_same for file in files)


# --- columns --------------------------------------------------------------------------------------------------------


def test_columns_come_in_the_order_of_their_first_appearance() -> None:
    first, second = opened({"b": [1], "a": ["x"]}), opened({"c": [1.5], "a": ["y"], "b": [2]})
    schema = DatasetSchema.of([first, second])
    assert schema.schema.columns == ["b", "a", "c"]
    assert [match.is_same for match in matched(schema, first)] == [True, True, False]
    assert matched(schema, first)[2] == MappedColumn(None, False)
    assert [match.column.index for match in matched(schema, second)] == [2, 1, 0]
    assert all(match.is_same for match in matched(schema, second))


def test_what_is_missing_somewhere_is_optional() -> None:
    required = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False)])
    first = opened(pa.table({"a": [1], "b": [2]}, required))
    second = opened(pa.table({"a": [1]}, required.remove(1)))
    third = opened({"b": pa.nulls(1, pa.int64()), "a": [1]})
    assert str(DatasetSchema.of([first, second]).schema).split("\n")[1:3] == [
        "  required int64 a;",
        "  optional int64 b;",
    ]
    schema = DatasetSchema.of([first, third])
    assert all(leaf.repetition == OPTIONAL for leaf in schema.schema)
    assert matched(schema, first) == [
        MappedColumn(first.schema.leaf(0), True),
        MappedColumn(first.schema.leaf(1), True),
    ]


def test_columns_of_nothing_but_nulls_are_missing() -> None:
    first, second = of_type(pa.null()), of_type(pa.list_(pa.int64()))
    schema = DatasetSchema.of([first, second])
    assert matched(schema, first) == [MappedColumn(None, False)]
    assert matched(schema, second)[0].is_same
    assert matched(DatasetSchema.of([first, first]), first)[0].is_same


def test_the_first_file_stands_for_files_with_one_schema() -> None:
    files = [opened(pa.Table.from_pandas(pd.DataFrame({"a": range(count), "b": 1.5}))) for count in (3, 7, 1000)]
    schema = DatasetSchema.of(files)
    assert schema.schema is files[0].schema
    assert schema.prototype.num_row_groups == 1
    assert schema.prototype.pandas_metadata.index == ()
    assert files[0].pandas_metadata.index != ()
    assert DatasetSchema.of(files[:1]).prototype is files[0]
    for file in files:
        assert all(match.is_same for match in matched(schema, file))
    assert not DatasetSchema.of([*files, opened({"a": [1]})]).prototype.num_row_groups


def test_same_columns_do_not_need_the_same_bytes() -> None:
    first, second = opened({"a": [1]}), opened({"a": [1]}, store_schema=False)
    schema = DatasetSchema.of([first, second])
    assert matched(schema, first)[0].is_same
    assert matched(schema, second)[0].is_same


def test_two_columns_of_one_name_are_told_apart_by_position_only() -> None:
    twice = pa.table([[1], ["x"]], names=["a", "a"])
    first, second = opened(twice, "first"), opened(pa.table([[1], ["x"], [1.5]], names=["a", "a", "b"]), "second")
    with pytest.raises(numparq.SchemaError, match="two columns called 'a'"):
        DatasetSchema.of([first, second])
    assert all(match.is_same for match in matched(DatasetSchema.of([first, first]), first))


# --- nested columns ---------------------------------------------------------------------------------------------------


def test_fields_of_structs_are_united_by_name() -> None:
    first = opened({"s": [{"x": 1, "y": "a"}]})
    second = opened({"s": [{"z": 1.5, "x": 2}]})
    schema = DatasetSchema.of([first, second])
    assert [leaf.name for leaf in schema.schema] == ["s.x", "s.y", "s.z"]
    whole, part = matched(schema, second, ["s"])[0], matched(schema, second, ["s.x"])[0]
    assert not whole.is_same
    assert [leaf.name for leaf in whole.column.leaves] == ["s.z", "s.x"]
    assert part.is_same
    assert part.column.name == "x"
    assert part.column.shape.kind == "leaf"
    assert matched(schema, second, ["s.y"]) == [MappedColumn(None, False)]


def test_what_is_around_a_missing_field_is_read_from_another() -> None:
    first = opened({"l": pa.array([[{"x": [1, 2], "y": 1}]])})
    second = opened({"l": pa.array([[{"x": [1, 2], "z": 1}]])})
    schema = DatasetSchema.of([first, second])
    (match,) = matched(schema, second, ["l.list.element.y"])
    assert not match.is_same
    assert [leaf.name for leaf in match.column.leaves] == ["l.list.element.z"]  # not x, which has a list more
    given = DatasetSchema.of([second], schema=pa.schema([("l", pa.list_(pa.struct([("y", pa.int64())])))]))
    (match,) = matched(given, second)
    assert [leaf.name for leaf in match.column.leaves] == ["l.list.element.z"]
    assert not match.is_same
    assert match.column.shape.children[0].children[0].name not in ("y", "z")  # nobody takes it for the field wanted


STRING = LogicalType("STRING")
LIST, MAP = LogicalType("LIST"), LogicalType("MAP")


def a_list(repeated: SchemaNode) -> SchemaNode:
    return SchemaNode("l", OPTIONAL, logical=LIST, children=(repeated,))


def test_a_list_is_a_list_however_it_is_expressed() -> None:
    element = SchemaNode("element", OPTIONAL, INT32)
    today = of_nodes(a_list(SchemaNode("list", REPEATED, children=(element,))))
    bag = of_nodes(a_list(SchemaNode("bag", REPEATED, children=(SchemaNode("array_element", OPTIONAL, INT32),))))
    two = of_nodes(a_list(SchemaNode("array", REPEATED, INT32)))
    bare = of_nodes(SchemaNode("l", REPEATED, INT32))
    schema = DatasetSchema.of([bag, today, two, bare])
    assert [leaf.name for leaf in schema.schema] == ["l.bag.array_element"]
    assert matched(schema, today)[0].is_same
    assert matched(schema, bag)[0].is_same
    assert not matched(schema, two)[0].is_same  # whose elements are never null: other levels
    schema = DatasetSchema.of([two, bare])
    assert [leaf.name for leaf in schema.schema] == ["l.list.element"]
    assert matched(schema, two)[0].is_same
    assert not matched(schema, bare)[0].is_same


def test_values_of_maps_are_widened() -> None:
    def a_map(value: int) -> OpenFile:
        pair = SchemaNode("key", REQUIRED, BYTE_ARRAY, logical=STRING), SchemaNode("value", OPTIONAL, value)
        return of_nodes(
            SchemaNode("m", OPTIONAL, logical=MAP, children=(SchemaNode("key_value", REPEATED, children=pair),))
        )

    schema = DatasetSchema.of([a_map(INT32), a_map(DOUBLE)])
    assert [leaf.physical for leaf in schema.schema] == [BYTE_ARRAY, DOUBLE]
    assert matched(schema, a_map(DOUBLE))[0].is_same
    assert not matched(schema, a_map(INT32))[0].is_same
    assert matched(schema, a_map(INT32), ["m.key_value.key"])[0].is_same


# --- by position and by field id --------------------------------------------------------------------------------------


def test_by_position_names_are_those_of_the_first_file() -> None:
    first = opened({"a": [1], "s": [{"x": 1}]})
    second = opened({"p": pa.array([1], pa.int32()), "q": [{"u": 1, "v": 2}], "r": ["x"]})
    schema = DatasetSchema.of([first, second], resolve="position")
    assert [leaf.name for leaf in schema.schema] == ["a", "s.x", "s.v", "r"]
    a, s, r = matched(schema, second)
    assert (a.column.name, a.is_same, r.column.name, r.is_same) == ("p", False, "r", True)
    assert [child.name for child in s.column.shape.children] == ["x", "v"]
    assert s.is_same
    assert [leaf.name for leaf in s.column.leaves] == ["q.u", "q.v"]
    assert matched(schema, first)[2] == MappedColumn(None, False)
    with pytest.raises(numparq.SchemaError, match="int64 here, and string"):
        DatasetSchema.of([opened({"b": ["x"], "a": [1]}), first], resolve="position")


def with_ids(**columns: int) -> OpenFile:
    return of_nodes(
        *(SchemaNode(name, OPTIONAL, INT64, field_id=number) for name, number in columns.items()), name="ids"
    )


def test_by_field_id_columns_may_be_renamed_and_reordered() -> None:
    first, second = with_ids(a=1, b=2), with_ids(x=3, y=1)
    schema = DatasetSchema.of([first, second], resolve="field_id")
    assert schema.schema.columns == ["a", "b", "x"]
    assert [match.column and match.column.name for match in matched(schema, second)] == ["y", None, "x"]
    assert schema.schema.field_id(3) == 3
    with pytest.raises(numparq.SchemaError, match="two different columns are called 'b'"):
        DatasetSchema.of([first, with_ids(b=1, c=2), with_ids(a=1, b=7)], resolve="field_id")


def test_by_field_id_all_files_have_to_have_them() -> None:
    for files in ([opened({"a": [1]}, "without")], [with_ids(a=1), opened({"a": [1]}, "without")]):
        with pytest.raises(numparq.SchemaError, match="no field id") as raised:
            DatasetSchema.of(files, resolve="field_id")
        assert raised.value.where == {"file": "without", "column": "a"}
    with pytest.raises(ValueError, match="resolve is one of"):
        DatasetSchema.of([with_ids(a=1)], resolve="names")


# --- a schema that is given -------------------------------------------------------------------------------------------


def test_a_given_schema_is_that_of_the_dataset() -> None:
    file = opened({"b": pa.array([1], pa.int32()), "a": ["x"], "c": [1]})
    node = SchemaNode("b", OPTIONAL, INT64)
    for given in (
        pa.schema([("a", pa.string()), ("b", pa.int64()), ("d", pa.float64())]),
        {"a": pa.string(), "b": node, "d": ArrowType("float", 64)},
        [("a", pa.string()), ("b", pa.int64()), ("d", pa.float64())],
        of_nodes(SchemaNode("a", OPTIONAL, BYTE_ARRAY, logical=STRING), node, SchemaNode("d", OPTIONAL, DOUBLE)).schema,
    ):
        schema = DatasetSchema.of([file], schema=given)
        assert str(schema.schema).split("\n")[1:-1] == [
            "  optional binary a (STRING);",
            "  optional int64 b;",
            "  optional double d;",
        ]
        a, b, d = matched(schema, file)
        assert (a.is_same, b.is_same, d) == (True, False, MappedColumn(None, False))
    assert DatasetSchema.of([], schema=pa.schema([("a", pa.int8())])).schema.columns == ["a"]
    with pytest.raises(ValueError, match="no file"):
        DatasetSchema.of([])
    with pytest.raises(ValueError, match="'a' twice"):
        DatasetSchema.of([file], schema=[("a", pa.string()), ("a", pa.string())])


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
        DatasetSchema.of([of_type(have, "one.parquet")], schema=pa.schema([("a", asked)]))
    assert raised.value.where == {"file": "one.parquet", "column": "a"}
    assert words[0] in str(raised.value)
    assert words[1] in str(raised.value)


def test_a_given_schema_says_what_int96_and_time_zones_are() -> None:
    int96 = opened({"a": pa.nulls(1, pa.timestamp("ns"))}, use_deprecated_int96_timestamps=True)
    berlin = pa.timestamp("us", "Europe/Berlin")
    schema = DatasetSchema.of([int96, of_type(pa.timestamp("us", "UTC"))], schema=pa.schema([("a", berlin)]))
    assert schema.prototype.arrow_schema.field_type(0).timezone == "Europe/Berlin"
    with pytest.raises(numparq.SchemaError):
        DatasetSchema.of([int96, of_type(berlin)])


def test_a_schema_out_of_a_file_has_what_the_files_say_besides() -> None:
    file = opened({"a": pa.nulls(1, pa.duration("s")), "b": pa.nulls(1, pa.list_(pa.timestamp("us", "Asia/Tokyo")))})
    schema = DatasetSchema.of([file], schema=file.schema)
    assert schema.prototype.arrow_schema.field_type(0) == ArrowType("duration", unit="s")
    assert schema.prototype.arrow_schema.field_hint(1).children(1)[0].type.timezone == "Asia/Tokyo"
    assert all(match.is_same for match in matched(schema, file))


def test_fields_of_pyarrow_s_may_have_field_ids() -> None:
    def numbered(name: str, kind: Any, number: int) -> Any:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    inner = pa.struct([numbered("u", pa.int64(), 4)])
    first = opened(
        pa.table(
            [[1], [{"x": 2}]],
            pa.schema([numbered("a", pa.int64(), 1), numbered("s", pa.struct([numbered("x", pa.int64(), 4)]), 2)]),
        )
    )
    given = pa.schema([numbered("t", inner, 2), numbered("b", pa.int64(), 1)])
    schema = DatasetSchema.of([first], schema=given, resolve="field_id")
    s, a = matched(schema, first)
    assert (s.column.name, a.column.name, a.is_same, s.is_same) == ("t", "a", True, True)
    assert [child.name for child in s.column.shape.children] == ["u"]
    assert [leaf.name for leaf in s.column.leaves] == ["s.x"]
    with pytest.raises(numparq.SchemaError, match="no field id"):
        DatasetSchema.of([first], schema=pa.schema([("a", pa.int64())]), resolve="field_id")


def test_a_required_column_that_a_file_lacks_becomes_optional() -> None:
    asked = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False)])
    schema = DatasetSchema.of([opened(pa.table({"a": [1]}, pa.schema([asked.field(0)])))], schema=asked)
    assert [leaf.repetition for leaf in schema.schema] == [REQUIRED, OPTIONAL]


# --- what is noted of the frames -------------------------------------------------------------------------------------


def framed(frame: pd.DataFrame, **options: Any) -> OpenFile:
    return opened(pa.Table.from_pandas(frame, **options))


def test_index_columns_are_kept_where_all_files_have_them() -> None:
    first = framed(pd.DataFrame({"a": [1]}, index=pd.Index(["x"], name="i")))
    second = framed(pd.DataFrame({"a": [2], "b": [3]}, index=pd.Index(["y"], name="i")))
    third = framed(pd.DataFrame({"a": [1], "i": ["z"]}))
    bare = opened({"a": [1], "i": ["z"]})
    assert DatasetSchema.of([first, second]).prototype.pandas_metadata.index == ("i",)
    assert DatasetSchema.of([first, bare]).prototype.pandas_metadata.index == ("i",)
    assert DatasetSchema.of([first, third]).prototype.pandas_metadata.index == ()


def test_dtypes_are_noted_of_columns_that_are_not_widened() -> None:
    first = framed(pd.DataFrame({"a": pd.array([1], "Int32"), "b": pd.array([1], "Int32")}))
    second = framed(pd.DataFrame({"b": pd.array([1], "Int32"), "a": [1.5], "c": pd.array([1], "Int16")}))
    metadata = DatasetSchema.of([first, second]).prototype.pandas_metadata
    assert metadata.extension_dtype("a") is None
    assert (metadata.extension_dtype("b"), metadata.extension_dtype("c")) == (pd.Int32Dtype(), pd.Int16Dtype())
    assert metadata.index == ()


def test_nullable_numbers_stay_nullable_when_they_are_widened() -> None:
    first = framed(pd.DataFrame({"a": pd.array([1], "Int32"), "b": pd.array([1], "UInt8")}))
    second = framed(pd.DataFrame({"a": pd.array([1], "Int64"), "b": pd.array([1], "Float32")}))
    metadata = DatasetSchema.of([first, second]).prototype.pandas_metadata
    assert (metadata.extension_dtype("a"), metadata.extension_dtype("b")) == (pd.Int64Dtype(), pd.Float32Dtype())


def test_labels_are_kept_when_columns_are_widened() -> None:
    files = [framed(pd.DataFrame({1: pd.array([1], dtype), 2: ["a"]})) for dtype in ("int32", "int64")]
    metadata = DatasetSchema.of(files).prototype.pandas_metadata
    assert metadata.label("1") == files[0].pandas_metadata.label("1")


def test_geometries_of_two_crs_do_not_unite() -> None:
    def located(crs: str, **more: Any) -> OpenFile:
        notes = json.dumps({"primary_column": "g", "columns": {"g": {"encoding": "WKB", "crs": crs, **more}}})
        table = pa.table({"g": pa.nulls(1, pa.binary())}).replace_schema_metadata({"geo": notes})
        return opened(table, crs)

    first, second, third = located("A", bbox=[0, 0, 1, 1]), located("A", bbox=[2, 2, 3, 3]), located("B")
    assert DatasetSchema.of([first, second]).schema is DatasetSchema.of([first]).schema
    other = opened({"x": [1]})
    assert DatasetSchema.of([other, first, second]).prototype.geospatial["g"].crs == "A"
    with pytest.raises(numparq.SchemaError, match="CRS") as raised:
        DatasetSchema.of([first, third])
    assert raised.value.where == {"file": "B", "column": "g"}


def test_decimals_of_thousands_of_digits_do_not_unite() -> None:
    def decimals(precision: int, scale: int) -> OpenFile:
        logical = LogicalType("DECIMAL", precision=precision, scale=scale)
        return of_nodes(SchemaNode("a", OPTIONAL, BYTE_ARRAY, logical=logical))

    assert "DECIMAL(800, 300)" in column_of(DatasetSchema.of([decimals(500, 0), decimals(600, 300)]))
    with pytest.raises(numparq.SchemaError):
        DatasetSchema.of([decimals(2**31 - 1, 0), decimals(2**31 - 1, 2**31 - 1)])


def test_metadata_of_any_form_do_no_harm() -> None:
    notes = [
        "{}",
        "[]",
        '{"columns": [{"field_name": 3}, 7], "index_columns": [[1], {"a": 2}, "x"]}',
        "no JSON",
        '{"columns": {}, "index_columns": 7}',
        '{"a":' * 5000,
    ]
    other = framed(pd.DataFrame({"a": pd.array([1], "Int64"), "b": ["x"]}))
    for text in notes:
        bare = opened(pa.table({"a": [1]}).replace_schema_metadata({"pandas": text}))
        for files in ([bare, other], [other, bare]):
            metadata = DatasetSchema.of(files).prototype.pandas_metadata
            assert metadata.extension_dtype("a") == pd.Int64Dtype()
            assert metadata.index == ()


def test_durations_within_others_have_one_unit() -> None:
    files = [of_type(pa.list_(pa.duration(unit))) for unit in ("s", "ns")]
    with pytest.raises(numparq.SchemaError, match=r"duration\[ns\] here"):
        DatasetSchema.of(files)
    with pytest.raises(numparq.SchemaError, match=r"duration\[s\] here"):
        DatasetSchema.of(files, schema=pa.schema([("a", pa.list_(pa.duration("ns")))]))


def test_arrow_types_are_kept_where_they_agree() -> None:
    words = pa.dictionary(pa.int8(), pa.string())
    first = opened({"d": pa.nulls(1, words), "e": pa.nulls(1, words), "t": pa.nulls(1, pa.duration("s"))})
    second = opened({"d": pa.nulls(1, words), "e": pa.nulls(1, pa.string()), "t": pa.nulls(1, pa.duration("ns"))})
    arrow_schema = DatasetSchema.of([first, second]).prototype.arrow_schema
    assert arrow_schema.field_type(0).dictionary is not None
    assert arrow_schema.field_type(1) == ArrowType("utf8")
    assert arrow_schema.field_type(2) == ArrowType("duration", unit="ns")
    matches = matched(DatasetSchema.of([first, second]), first)
    assert [match.is_same for match in matches] == [True, True, False]


def test_files_are_own_where_numparq_wrote_all() -> None:
    def own(frame: pd.DataFrame) -> OpenFile:
        return OpenFile(numparq.to_parquet(frame))

    first, second = own(pd.DataFrame({"a": [1]})), own(pd.DataFrame({"b": [1]}))
    assert DatasetSchema.of([first, second]).prototype.is_own
    assert not DatasetSchema.of([first, opened({"b": [1]})]).prototype.is_own
