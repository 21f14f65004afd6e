"""Nested columns for writing, from objects and Arrow arrays: schema, levels and values as pyarrow writes them."""

from __future__ import annotations

import datetime
import decimal
import uuid
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, INT32, INT64
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode, leaf_columns
from numparq.from_pandas.nested.column import nested_column
from numparq.from_pandas.nested.elements import element_values
from numparq.types.pyarrow import field_to_pyarrow
from support.data.nested_columns import ARROW, COLUMNS, MOMENT, NAN, PAIRS, ZONED, nested_strategies, object_series
from support.oracles.nested import levels_by_pyarrow, shred_rows

# --- inferred columns -------------------------------------------------------------------------------------------------


def plain(node: SchemaNode, values: LeafValues) -> bytes:
    """Encode the values of a leaf column as PLAIN."""
    items = values.values
    if node.physical == BYTE_ARRAY:
        starts, ends = values.starts, values.ends
        if values.codes is not None:
            starts, ends = starts[values.codes], ends[values.codes]
        texts = [items[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    if node.physical == FIXED_LEN_BYTE_ARRAY:
        items = items.reshape(-1, node.type_length)
    if values.codes is not None:
        items = items[values.codes]
    return np.packbits(items, bitorder="little").tobytes() if node.physical == BOOLEAN else items.tobytes()


def schema_text(node: SchemaNode) -> str:
    """Return the text of a schema node in the form that pyarrow prints."""
    repetition = ("required", "optional", "repeated")[node.repetition]
    if node.physical is None:
        kind = node.logical.kind.title() if node.logical else ""
        inner = "\n".join(schema_text(child) for child in node.children)
        return f"{repetition} group {node.name}{f' ({kind})' if kind else ''} {{\n{inner}\n}}"
    names = ["boolean", "int32", "int64", "int96", "float", "double", "binary"]
    name = names[node.physical] if node.physical < 7 else f"fixed_len_byte_array({node.type_length})"
    return f"{repetition} {name} {node.name}".strip()


def schema_of_pyarrow(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    pq.write_table(table.slice(0, 0), sink)
    lines = str(pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema).split("\n")[2:-2]
    lines = [line.strip().replace("field_id=-1 ", "") for line in lines]
    fields = [line if "group" in line or line == "}" else " ".join(line.rstrip(";").split()[:3]) for line in lines]
    return "\n".join(fields)


def compare(column: Any, array: pa.Array | pa.ChunkedArray, num_ranges: int = 3) -> None:
    """Compare a column with what pyarrow writes for the array, for all rows and for row ranges."""
    table = pa.table({"c": array})
    assert schema_text(column.node) == schema_of_pyarrow(table)
    bounds = sorted({0, len(table), *np.random.default_rng(0).integers(0, len(table) + 1, num_ranges).tolist()})
    ranges = list(pairwise(bounds))
    for start, stop in [*ranges, (0, len(table)), (0, 0)]:
        leaves, leaf_values = leaf_columns([column.node]), column.read_leaves(start, stop)
        expected = levels_by_pyarrow(table.slice(start, stop - start))
        for node, got, (levels, values) in zip(leaves, leaf_values, expected, strict=True):
            assert got.validity is None
            assert [d for d, _ in levels] == got.definition_levels.tolist()
            assert [r for _, r in levels] == (
                got.repetition_levels.tolist() if node.max_repetition_level else [0] * len(levels)
            )
            assert plain(node, got) == values


@pytest.mark.parametrize("name", COLUMNS)
def test_objects_match_pyarrow(name):
    values = COLUMNS[name]
    expected = pa.array([sorted(item) if isinstance(item, set) else item for item in values], from_pandas=True)
    if name == "no rows":
        return
    compare(nested_column("c", object_series(values)), expected)


@given(st.data())
def test_random_objects_match_pyarrow_and_reference(data):
    inner = data.draw(nested_strategies(3))
    values = data.draw(st.lists(st.none() | st.lists(inner, max_size=4), max_size=12))
    column = nested_column("c", object_series(values))
    compare(column, pa.array(values))
    compare_with_reference(column, values)


def compare_with_reference(column: Any, rows: list) -> None:
    for node, got, want in zip(
        leaf_columns([column.node]), column.read_leaves(0, len(rows)), shred_rows(column.node, rows), strict=True
    ):
        assert [d for d, _, _ in want] == got.definition_levels.tolist()
        assert [r for _, r, _ in want] == (
            got.repetition_levels.tolist() if node.max_repetition_level else [0] * len(want)
        )


# --- objects that pyarrow refuses or writes differently ---------------------------------------------------------------


def leaf(values: list, node: SchemaNode | None = None) -> LeafValues:
    (only,) = nested_column("c", object_series(values), node).read_leaves(0, len(values))
    return only


def test_timestamps_keep_nanoseconds():
    fine = pd.Timestamp("2020-01-01 00:00:00.123456789")
    column = nested_column("c", object_series([[MOMENT], [fine]]))
    assert column.field.children[0].type.unit == "ns"
    assert column.read_leaves(1, 2)[0].values.tolist() == [fine.value]


def test_uuids_and_pandas_arrays_as_lists():
    number = uuid.uuid4()
    assert leaf([[number], None]).values.tobytes() == number.bytes
    assert leaf([pd.Series([1, 2]), pd.Index([3]), pd.array([4, None]), frozenset({5})]).values.tolist() == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_masked_array_items_are_null():
    """pyarrow writes the value under the mask."""
    got = leaf([np.ma.array([1, 2], mask=[False, True]), [3]])
    assert (got.values.tolist(), got.definition_levels.tolist()) == ([1, 3], [3, 2, 3])


def test_two_dimensional_arrays_are_lists_of_lists():
    got = leaf([np.array([[1, 2], [3, 4]]), np.zeros((0, 2), np.int64)])
    assert got.values.tolist() == [1, 2, 3, 4]
    assert got.definition_levels.tolist() == [5, 5, 5, 5, 1]
    assert got.repetition_levels.tolist() == [0, 2, 1, 2, 0]


def test_inferred_type_covers_all_rows():
    """Inference reads 8192 rows at a time; the type must fit them all."""
    many = 2 * 8192
    column = nested_column("c", object_series([{"a": [1]}] * many + [{"b": ["x"]}] * many + [{"a": [0.5, None]}]))
    assert [child.name for child in column.node.children] == ["a", "b"]
    assert [child.children[0].type.kind for child in column.field.children] == ["float", "utf8"]
    assert column.read_leaves(0, 1)[0].values.tolist() == [1.0]
    cases = [
        ([decimal.Decimal("1.23")], [decimal.Decimal("100")], "precision", 5),
        ([np.int8(1)], [np.uint8(1)], "bit_width", 16),
        ([1], [1 << 63], "signed", False),
        ([np.float32(1)], [1.5], "bit_width", 64),
        ([MOMENT], [pd.Timestamp(1)], "unit", "ns"),
        ([None], ["x"], "kind", "utf8"),
        (["x"], [], "kind", "utf8"),
    ]
    for one, other, parameter, expected in cases:
        column = nested_column("c", object_series([one] * many + [other]))
        assert getattr(column.field.children[0].type, parameter) == expected


WRONG = {
    "a list among numbers": ([[1], 1], "c"),
    "a list and a dict": ([[1], {}], "c"),
    "texts among numbers": ([[1, "a"]], "c.list.element"),
    "a number as key": ([{1: 2}], "c"),
    "a struct without fields": ([{}], "c"),
    "an inner struct without fields": ([[{}]], "c.list.element"),
    "an unknown class": ([[object()]], "c.list.element"),
    "beyond 64 bits": ([{"a": 1 << 64}], "c.a"),
    "with and without a zone": ([[MOMENT, ZONED]], "c.list.element"),
    "complex numbers": ([[1j]], "c.list.element"),
    "an array of no dimension": ([np.array(5)], "c"),
    "both in later rows": ([[1]] * 9000 + [["a"]], "c.list.element"),
    "a zone in later rows": ([[MOMENT]] * 9000 + [[ZONED]], "c.list.element"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_objects_are_refused(name):
    values, where = WRONG[name]
    with pytest.raises(SchemaError) as caught:
        nested_column("c", object_series(values)).read_leaves(0, len(values))
    assert caught.value.where["column"] in (where, where.split(".")[-1])


def test_self_containing_list_is_refused():
    values: list = [1]
    values[0] = values
    with pytest.raises(SchemaError, match="deep"):
        nested_column("c", object_series([values]))


def test_negative_integer_with_uint64_is_refused():
    column = nested_column("c", object_series([[1 << 63]] * 8192 + [[-1]]))
    with pytest.raises(SchemaError, match=r"does not fit|not a whole number"):
        column.read_leaves(8192, 8193)


# --- objects with a schema --------------------------------------------------------------------------------------------

STRING, LIST, MAP = LogicalType("STRING"), LogicalType("LIST"), LogicalType("MAP")


def list_node(name: str, element: SchemaNode, repetition: int = OPTIONAL) -> SchemaNode:
    return SchemaNode(name, repetition, logical=LIST, children=(SchemaNode("list", REPEATED, children=(element,)),))


def map_node(name: str, key: SchemaNode, value: SchemaNode) -> SchemaNode:
    return SchemaNode(name, logical=MAP, children=(SchemaNode("key_value", REPEATED, children=(key, value)),))


def test_maps_from_dicts_and_pairs():
    node = map_node(
        "c",
        SchemaNode("key", REQUIRED, BYTE_ARRAY, logical=STRING),
        list_node("value", SchemaNode("element", OPTIONAL, INT64)),
    )
    values = [{"a": [1]}, [("a", None), ("b", [])], {}, None, [], [["x", [None, 2]]]]
    expected = pa.array([*values[:-1], [("x", [None, 2])]], pa.map_(pa.string(), pa.list_(pa.int64())))
    compare(nested_column("c", object_series(values), node), expected)
    for wrong in ([{None: [1]}], [[(1, 2, 3)]], [[1]], [5], [{"a": 5}]):
        with pytest.raises(SchemaError) as caught:
            nested_column("c", object_series(wrong), node).read_leaves(0, 1)
        assert caught.value.where["column"].startswith("c")


def test_structs_from_tuples_and_partial_dicts():
    node = SchemaNode(
        "c", children=(SchemaNode("a", OPTIONAL, INT64), SchemaNode("b", OPTIONAL, BYTE_ARRAY, logical=STRING))
    )
    values = [(1, "x"), {"b": "y"}, None]
    data_type = pa.struct([("a", pa.int64()), ("b", pa.string())])
    expected = pa.array([{"a": 1, "b": "x"}, {"b": "y"}, None], data_type)
    compare(nested_column("c", object_series(values), node), expected)
    with pytest.raises(SchemaError, match="tuple"):
        nested_column("c", object_series([(1,)]), node).read_leaves(0, 1)


def test_repeated_fields_without_list_annotation():
    """The columns are those of the address book example in Impala's documentation."""
    name = SchemaNode("name", REQUIRED, BYTE_ARRAY, logical=STRING)
    contacts = SchemaNode(
        "contacts", REPEATED, children=(name, SchemaNode("phoneNumber", OPTIONAL, BYTE_ARRAY, logical=STRING))
    )
    people = [[{"name": "Dmitriy Ryaboy", "phoneNumber": "555 987 6543"}, {"name": "Chris Aniszczyk"}], []]
    compare_with_reference(nested_column("contacts", object_series(people), contacts), people)
    phones = SchemaNode("ownerPhoneNumbers", REPEATED, BYTE_ARRAY, logical=STRING)
    numbers = [["555 123 4567", "555 666 1337"], []]
    column = nested_column("ownerPhoneNumbers", object_series(numbers), phones)
    compare_with_reference(column, numbers)
    assert column.read_leaves(0, 2)[0].definition_levels.tolist() == [1, 1, 0]
    old = SchemaNode("c", logical=LIST, children=(SchemaNode("pair", REPEATED, children=contacts.children),))
    compare_with_reference(nested_column("c", object_series(people), old), people)


def test_elements_convert_to_the_schema_type():
    cases: list[tuple[SchemaNode, list, list]] = [
        (SchemaNode("e", OPTIONAL, INT64), [1, 2.0, None, NAN, True], [1, 2, 1]),
        (
            SchemaNode("e", OPTIONAL, INT32, logical=LogicalType("TIME", unit="MILLIS", utc=False)),
            [datetime.time(0, 0, 1, 2000)],
            [1002],
        ),
        (
            SchemaNode("e", OPTIONAL, INT64, logical=LogicalType("TIMESTAMP", unit="MILLIS", utc=True)),
            [MOMENT.replace(microsecond=6000), ZONED],
            [1577934245006, 1577930640000],
        ),
        (
            SchemaNode("e", OPTIONAL, INT64, logical=LogicalType("TIMESTAMP", unit="NANOS", utc=False)),
            np.array(["2020-01-01"], "M8[s]"),
            [1577836800 * 10**9],
        ),
        (SchemaNode("e", OPTIONAL, FIXED_LEN_BYTE_ARRAY, 2), [b"ab", None, b"cd"], [97, 98, 99, 100]),
    ]
    for node, elements, expected in cases:
        assert leaf([elements], list_node("c", node)).values.tolist() == expected
    texts = leaf([["a", b"b"]], list_node("c", SchemaNode("e", OPTIONAL, BYTE_ARRAY, logical=STRING)))
    assert texts.values.tobytes() == b"ab"
    tens = leaf(
        [[decimal.Decimal("1.5"), 2]],
        list_node(
            "c", SchemaNode("e", OPTIONAL, FIXED_LEN_BYTE_ARRAY, 2, LogicalType("DECIMAL", precision=4, scale=1))
        ),
    )
    assert tens.values.tolist() == [0, 15, 0, 20]


@pytest.mark.parametrize(
    ("node", "elements"),
    [
        (SchemaNode("e", OPTIONAL, INT64), [1.5]),
        (SchemaNode("e", OPTIONAL, INT64), ["1"]),
        (SchemaNode("e", OPTIONAL, INT64), [1 << 63]),
        (SchemaNode("e", OPTIONAL, INT32), [1 << 31]),
        (SchemaNode("e", OPTIONAL, INT32, logical=LogicalType("INTEGER", bit_width=8, signed=True)), [128]),
        (SchemaNode("e", OPTIONAL, INT32, logical=LogicalType("INTEGER", bit_width=8, signed=True)), np.array([128])),
        (SchemaNode("e", OPTIONAL, BYTE_ARRAY, logical=STRING), [1]),
        (SchemaNode("e", OPTIONAL, BYTE_ARRAY, logical=STRING), ["\ud800"]),
        (SchemaNode("e", OPTIONAL, BYTE_ARRAY, logical=STRING), [1.5]),
        (SchemaNode("e", OPTIONAL, FIXED_LEN_BYTE_ARRAY, 2), [b"abc"]),
        (SchemaNode("e", OPTIONAL, INT64, logical=LogicalType("TIMESTAMP", unit="MILLIS", utc=False)), [MOMENT]),
        (
            SchemaNode("e", OPTIONAL, INT32, logical=LogicalType("TIME", unit="MILLIS", utc=False)),
            [datetime.time(0, 0, 0, 1)],
        ),
        (SchemaNode("e", OPTIONAL, INT32, logical=LogicalType("UNKNOWN")), [1]),
        (SchemaNode("e", REQUIRED, INT64), [None]),
        (SchemaNode("e", OPTIONAL, DOUBLE), [(1 << 53) + 1]),
        (SchemaNode("e", OPTIONAL, DOUBLE), np.array([(1 << 53) + 1])),
        (SchemaNode("e", OPTIONAL, FIXED_LEN_BYTE_ARRAY, 2, LogicalType("FLOAT16")), [1 << 20]),
    ],
)
def test_elements_that_do_not_fit_the_schema(node, elements):
    with pytest.raises(SchemaError) as caught:
        leaf([elements], list_node("c", node))
    assert caught.value.where["column"] in ("c.list.e", "c.list.element")


# --- Arrow arrays -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARROW)
def test_arrow_arrays_match_pyarrow(name):
    values, data_type = ARROW[name]
    array = pa.array(values, data_type)
    nothing = pa.array([], data_type)
    twice = pa.chunked_array([array.slice(1), nothing, array, pa.array(values[::-1], data_type)])
    for data in (array, array.slice(1), array.slice(2, 1), twice, nothing, pa.chunked_array([], data_type)):
        compare(nested_column("c", data), data)


def test_fixed_size_lists_of_size_zero():
    """pyarrow 26 writes the level of an element for each empty list."""
    array = pa.array([[], None, []], pa.list_(pa.int64(), 0))
    compare(nested_column("c", array), pa.array([[], None, []], pa.list_(pa.int64())))


def test_arrow_dtype_column():
    array = pd.array([[1, None], None, []], pd.ArrowDtype(pa.list_(pa.int64())))
    compare(nested_column("c", array), pa.array([[1, None], None, []]))


def test_null_lists_and_structs_with_child_values():
    lists = pa.ListArray.from_arrays([0, 2, 3, 5], pa.array([1, 2, 3, 4, 5]), mask=pa.array([False, True, False]))
    compare(nested_column("c", lists), lists)
    structs = pa.StructArray.from_arrays(
        [lists, pa.array(["x", "y", None])], ["a", "b"], mask=pa.array([True, False, False])
    )
    compare(nested_column("c", structs), structs)
    compare(nested_column("c", structs.slice(1)), structs.slice(1))


def test_list_views_in_any_order():
    views = pa.ListViewArray.from_arrays([3, 0, 1, 0], [2, 3, 1, 0], pa.array([1, 2, None, 4, 5]))
    expected = pa.array([[4, 5], [1, 2, None], [2], []])
    compare(nested_column("c", views), expected)
    compare(nested_column("c", views.slice(1, 2)), expected.slice(1, 2))
    masked = pa.LargeListViewArray.from_arrays(
        [3, 0], [2, 3], pa.array([1, 2, None, 4, 5]), mask=pa.array([True, False])
    )
    compare(nested_column("c", masked), pa.array([None, [1, 2, None]]))


def test_nested_dictionaries_and_run_end_encoding():
    coded = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1]), pa.array([[1], [2, None]]))
    compare(nested_column("c", coded), pa.array([[2, None], None, [1], [2, None]]))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([5, None]))
    compare(nested_column("c", pa.ListArray.from_arrays([0, 1, 3], runs)), pa.array([[5], [5, None]]))
    with_null = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["a", None]))
    compare(nested_column("c", pa.ListArray.from_arrays([0, 1, 2], with_null)), pa.array([[None], ["a"]]))


def test_dictionary_codes_are_passed_through():
    array = pa.array([["a", "b"], None, ["a"]], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    (got,) = nested_column("c", array).read_leaves(0, 3)
    assert got.codes.tolist() == [0, 1, 0]
    assert nested_column("c", array).field.children[0].type.dictionary is not None


def test_uuid_and_interval_extension_types():
    from pandas.core.arrays.arrow.extension_types import ArrowIntervalType

    numbers = pa.array([[uuid.UUID(int=1).bytes, None], None], pa.list_(pa.binary(16)))
    column = nested_column("c", numbers.cast(pa.list_(pa.uuid())))
    assert column.read_leaves(0, 2)[0].values.tobytes() == uuid.UUID(int=1).bytes
    assert column.node.children[0].children[0].logical == LogicalType("UUID")
    storage = pa.array([{"left": 1, "right": 2}, None])
    column = nested_column("c", pa.ExtensionArray.from_storage(ArrowIntervalType(pa.int64(), "left"), storage))
    assert column.field.type.extension == "pandas.interval"
    compare(column, storage)


def test_arrow_values_are_not_copied():
    array = pa.array([[1, 2], [3], [4]])
    (got,) = nested_column("c", array).read_leaves(1, 3)
    assert got.values.tolist() == [3, 4]
    assert np.shares_memory(got.values, np.frombuffer(array.values.buffers()[1], np.int64))


def test_unsupported_arrow_types_are_refused():
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    for wrong in (union, pa.ListArray.from_arrays([0, 1], union), pa.array([[{}]], pa.list_(pa.struct([])))):
        with pytest.raises(SchemaError) as caught:
            nested_column("c", wrong)
        assert "column" in caught.value.where


def test_arrow_arrays_cast_to_the_schema():
    array = pa.chunked_array(
        [pa.array([{"a": [1, None], "b": "x"}, None], pa.struct([("a", pa.list_(pa.int64())), ("b", pa.string())]))]
    )
    element = SchemaNode("e", OPTIONAL, INT32, logical=LogicalType("INTEGER", bit_width=8, signed=True))
    node = SchemaNode("any", children=(list_node("a", element), SchemaNode("b", OPTIONAL, BYTE_ARRAY)))
    column = nested_column("c", array, node)
    assert column.node.name == column.field.name == "c"
    assert [leaf.values.tolist() for leaf in column.read_leaves(0, 2)] == [[1], [120]]
    with pytest.raises(SchemaError, match="cannot be written as"):
        nested_column("c", array, list_node("c", element))
    with pytest.raises(SchemaError, match="300"):
        nested_column("c", pa.array([[300]]), list_node("c", element)).read_leaves(0, 1)
    nothing = SchemaNode("e", REQUIRED, INT64)
    assert nested_column("c", pa.array([[1], []]), list_node("c", nothing)).read_leaves(0, 2)[
        0
    ].definition_levels.tolist() == [
        2,
        1,
    ]
    with pytest.raises(SchemaError):
        nested_column("c", pa.array([[None]], pa.list_(pa.int64())), list_node("c", nothing)).read_leaves(0, 1)
    for data_type in (PAIRS, pa.large_list(pa.list_(pa.int8(), 2)), pa.struct([("a", pa.timestamp("ms", "UTC"))])):
        empty = pa.array([None], data_type)
        field = nested_column("c", empty).field
        assert nested_column("c", empty, field=field).field == field
        assert field_to_pyarrow(field) == data_type


@given(st.data())
def test_random_chunked_arrow_arrays_match_pyarrow(data):
    inner = data.draw(nested_strategies(3))
    values = data.draw(st.lists(st.none() | st.lists(inner, max_size=4), max_size=12))
    array = pa.array(values)
    cut = data.draw(st.integers(0, len(values)))
    chunked = pa.chunked_array([array.slice(cut), array.slice(0, cut), array], array.type)
    compare(nested_column("c", chunked), chunked)


@pytest.mark.parametrize(
    ("kind", "exact", "stored"),
    [
        ("time", datetime.time(0, 0, 3), 3000),
        ("timestamp", datetime.datetime(1970, 1, 1, 0, 0, 3), 3000),
        ("duration", datetime.timedelta(seconds=3), 3),
    ],
)
def test_fractions_of_a_second_do_not_fit_seconds(kind, exact, stored):
    values, arrow_type = np.array([exact, None], object), ArrowType(kind, unit="s")
    assert element_values(values, arrow_type, ("c", "x")).values[0] == stored
    values[0] = exact + datetime.timedelta(seconds=0.5) if kind != "time" else exact.replace(microsecond=500_000)
    with pytest.raises(SchemaError, match="cannot be stored in s without loss; round it first"):
        element_values(values, arrow_type, ("c", "x"))
