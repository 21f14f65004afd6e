"""Schema merge: top-level and nested columns matched by name, position or field id."""

from __future__ import annotations

import pandas as pd
import pytest

import numparq
from numparq.dataset.schema_merge.column_mapping import MappedColumn
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY, DOUBLE, INT32, INT64
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode
from support.dataset_schemas import STRING, match_columns, open_column, open_nodes, open_table

pa = pytest.importorskip("pyarrow")


def test_columns_are_ordered_by_first_appearance() -> None:
    first, second = open_table({"b": [1], "a": ["x"]}), open_table({"c": [1.5], "a": ["y"], "b": [2]})
    schema = DatasetSchema.from_files([first, second])
    assert schema.schema.columns == ["b", "a", "c"]
    assert [match.is_same for match in match_columns(schema, first)] == [True, True, False]
    assert match_columns(schema, first)[2] == MappedColumn(None, False)
    assert [match.column.index for match in match_columns(schema, second)] == [2, 1, 0]
    assert all(match.is_same for match in match_columns(schema, second))


def test_columns_missing_in_some_file_are_optional() -> None:
    required = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False)])
    first = open_table(pa.table({"a": [1], "b": [2]}, required))
    second = open_table(pa.table({"a": [1]}, required.remove(1)))
    third = open_table({"b": pa.nulls(1, pa.int64()), "a": [1]})
    assert str(DatasetSchema.from_files([first, second]).schema).split("\n")[1:3] == [
        "  required int64 a;",
        "  optional int64 b;",
    ]
    schema = DatasetSchema.from_files([first, third])
    assert all(leaf.repetition == OPTIONAL for leaf in schema.schema)
    assert match_columns(schema, first) == [
        MappedColumn(first.schema.leaf(0), True),
        MappedColumn(first.schema.leaf(1), True),
    ]


def test_null_type_columns_count_as_missing() -> None:
    first, second = open_column(pa.null()), open_column(pa.list_(pa.int64()))
    schema = DatasetSchema.from_files([first, second])
    assert match_columns(schema, first) == [MappedColumn(None, False)]
    assert match_columns(schema, second)[0].is_same
    assert match_columns(DatasetSchema.from_files([first, first]), first)[0].is_same


def test_first_file_represents_files_of_one_schema() -> None:
    files = [open_table(pa.Table.from_pandas(pd.DataFrame({"a": range(count), "b": 1.5}))) for count in (3, 7, 1000)]
    schema = DatasetSchema.from_files(files)
    assert schema.schema is files[0].schema
    assert schema.schema_file.num_row_groups == 1
    assert schema.schema_file.pandas_metadata.index == ()
    assert files[0].pandas_metadata.index != ()
    assert DatasetSchema.from_files(files[:1]).schema_file is files[0]
    for file in files:
        assert all(match.is_same for match in match_columns(schema, file))
    assert not DatasetSchema.from_files([*files, open_table({"a": [1]})]).schema_file.num_row_groups


def test_equal_columns_may_have_different_footers() -> None:
    first, second = open_table({"a": [1]}), open_table({"a": [1]}, store_schema=False)
    schema = DatasetSchema.from_files([first, second])
    assert match_columns(schema, first)[0].is_same
    assert match_columns(schema, second)[0].is_same


def test_duplicate_column_names_require_one_schema() -> None:
    twice = pa.table([[1], ["x"]], names=["a", "a"])
    first, second = (
        open_table(twice, "first"),
        open_table(pa.table([[1], ["x"], [1.5]], names=["a", "a", "b"]), "second"),
    )
    with pytest.raises(numparq.SchemaError, match="two columns named 'a'"):
        DatasetSchema.from_files([first, second]).check_columns()
    assert all(match.is_same for match in match_columns(DatasetSchema.from_files([first, first]), first))


def test_struct_fields_are_merged_by_name() -> None:
    first = open_table({"s": [{"x": 1, "y": "a"}]})
    second = open_table({"s": [{"z": 1.5, "x": 2}]})
    schema = DatasetSchema.from_files([first, second])
    assert [leaf.name for leaf in schema.schema] == ["s.x", "s.y", "s.z"]
    whole, part = match_columns(schema, second, ["s"])[0], match_columns(schema, second, ["s.x"])[0]
    assert not whole.is_same
    assert [leaf.name for leaf in whole.column.leaves] == ["s.z", "s.x"]
    assert part.is_same
    assert part.column.name == "x"
    assert part.column.type.kind == "leaf"
    assert match_columns(schema, second, ["s.y"]) == [MappedColumn(None, False)]


def test_missing_field_takes_levels_of_sibling() -> None:
    first = open_table({"l": pa.array([[{"x": [1, 2], "y": 1}]])})
    second = open_table({"l": pa.array([[{"x": [1, 2], "z": 1}]])})
    schema = DatasetSchema.from_files([first, second])
    (match,) = match_columns(schema, second, ["l.list.element.y"])
    assert not match.is_same
    # x is nested in one more list
    assert [leaf.name for leaf in match.column.leaves] == ["l.list.element.z"]
    user_schema = DatasetSchema.from_files(
        [second], schema=pa.schema([("l", pa.list_(pa.struct([("y", pa.int64())])))])
    )
    (match,) = match_columns(user_schema, second)
    assert [leaf.name for leaf in match.column.leaves] == ["l.list.element.z"]
    assert not match.is_same
    assert match.column.type.children[0].children[0].name not in ("y", "z")  # no name of a requested field


LIST, MAP = LogicalType("LIST"), LogicalType("MAP")


def list_node(repeated: SchemaNode) -> SchemaNode:
    return SchemaNode("l", OPTIONAL, logical=LIST, children=(repeated,))


def test_list_encodings_are_merged() -> None:
    element = SchemaNode("element", OPTIONAL, INT32)
    today = open_nodes(list_node(SchemaNode("list", REPEATED, children=(element,))))
    bag = open_nodes(list_node(SchemaNode("bag", REPEATED, children=(SchemaNode("array_element", OPTIONAL, INT32),))))
    two = open_nodes(list_node(SchemaNode("array", REPEATED, INT32)))
    bare = open_nodes(SchemaNode("l", REPEATED, INT32))
    schema = DatasetSchema.from_files([bag, today, two, bare])
    assert [leaf.name for leaf in schema.schema] == ["l.bag.array_element"]
    assert match_columns(schema, today)[0].is_same
    assert match_columns(schema, bag)[0].is_same
    assert not match_columns(schema, two)[0].is_same  # its elements are never null, so levels differ
    schema = DatasetSchema.from_files([two, bare])
    assert [leaf.name for leaf in schema.schema] == ["l.list.element"]
    assert match_columns(schema, two)[0].is_same
    assert not match_columns(schema, bare)[0].is_same


def test_map_values_are_widened() -> None:
    def open_map(value: int) -> OpenFile:
        pair = SchemaNode("key", REQUIRED, BYTE_ARRAY, logical=STRING), SchemaNode("value", OPTIONAL, value)
        return open_nodes(
            SchemaNode("m", OPTIONAL, logical=MAP, children=(SchemaNode("key_value", REPEATED, children=pair),))
        )

    schema = DatasetSchema.from_files([open_map(INT32), open_map(DOUBLE)])
    assert [leaf.physical for leaf in schema.schema] == [BYTE_ARRAY, DOUBLE]
    assert match_columns(schema, open_map(DOUBLE))[0].is_same
    assert not match_columns(schema, open_map(INT32))[0].is_same
    assert match_columns(schema, open_map(INT32), ["m.key_value.key"])[0].is_same


def test_position_resolution_uses_names_of_first_file() -> None:
    first = open_table({"a": [1], "s": [{"x": 1}]})
    second = open_table({"p": pa.array([1], pa.int32()), "q": [{"u": 1, "v": 2}], "r": ["x"]})
    schema = DatasetSchema.from_files([first, second], resolve="position")
    assert [leaf.name for leaf in schema.schema] == ["a", "s.x", "s.v", "r"]
    a, s, r = match_columns(schema, second)
    assert (a.column.name, a.is_same, r.column.name, r.is_same) == ("p", False, "r", True)
    assert [child.name for child in s.column.type.children] == ["x", "v"]
    assert s.is_same
    assert [leaf.name for leaf in s.column.leaves] == ["q.u", "q.v"]
    assert match_columns(schema, first)[2] == MappedColumn(None, False)
    with pytest.raises(numparq.SchemaError, match="int64 here, but string"):
        DatasetSchema.from_files([open_table({"b": ["x"], "a": [1]}), first], resolve="position").check_columns()


def with_ids(**columns: int) -> OpenFile:
    return open_nodes(
        *(SchemaNode(name, OPTIONAL, INT64, field_id=number) for name, number in columns.items()), name="ids"
    )


def test_field_id_resolution_allows_renames_and_reordering() -> None:
    first, second = with_ids(a=1, b=2), with_ids(x=3, y=1)
    schema = DatasetSchema.from_files([first, second], resolve="field_id")
    assert schema.schema.columns == ["a", "b", "x"]
    assert [match.column and match.column.name for match in match_columns(schema, second)] == ["y", None, "x"]
    assert schema.schema.field_id(3) == 3
    with pytest.raises(numparq.SchemaError, match="two different columns of different files are named 'b'"):
        DatasetSchema.from_files([first, with_ids(b=1, c=2), with_ids(a=1, b=7)], resolve="field_id").check_columns()


def test_field_id_resolution_requires_ids_in_all_files() -> None:
    for files in ([open_table({"a": [1]}, "without")], [with_ids(a=1), open_table({"a": [1]}, "without")]):
        with pytest.raises(numparq.SchemaError, match="no field id") as raised:
            DatasetSchema.from_files(files, resolve="field_id")
        assert raised.value.where == {"file": "without", "column": "a"}
    with pytest.raises(ValueError, match="resolve must be one of"):
        DatasetSchema.from_files([with_ids(a=1)], resolve="names")
