"""Nested columns written with an explicit schema: any physical type, and any layout of lists and maps."""

from __future__ import annotations

import datetime
import decimal
import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import SchemaError
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64, INT96
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode

D = decimal.Decimal
DECIMAL = LogicalType("DECIMAL", precision=5, scale=2)
LIST, MAP, STRING = LogicalType("LIST"), LogicalType("MAP"), LogicalType("STRING")

STORED = {
    "INT32": (INT32, 0),
    "INT64": (INT64, 0),
    "BYTE_ARRAY": (BYTE_ARRAY, 0),
    "of 3 bytes": (FIXED_LEN_BYTE_ARRAY, 3),
    "of 5 bytes": (FIXED_LEN_BYTE_ARRAY, 5),
}


def group(name, *children, repetition=OPTIONAL, logical=None):
    return SchemaNode(name, repetition, logical=logical, children=children)


def list_of(repeated, name="a"):
    return group(name, repeated, logical=LIST)


def number(name="x", repetition=OPTIONAL):
    return SchemaNode(name, repetition, INT64)


def write_column(node, values, **options):
    out = io.BytesIO()
    numparq.to_parquet(pd.DataFrame({"a": pd.Series(values, dtype=object)}), out, schema=[node], **options)
    return out.getvalue()


def as_lists(value):
    """Convert arrays to lists, recursively."""
    if isinstance(value, dict):
        return {name: as_lists(item) for name, item in value.items()}
    return [as_lists(item) for item in value] if isinstance(value, np.ndarray) else value


def assert_round_trip(node, values, **options):
    data = write_column(node, values, **options)
    assert [as_lists(item) for item in numparq.read_parquet(io.BytesIO(data))["a"]] == values
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(io.BytesIO(data)).column("a").to_pylist() == values


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["coded", "plain"])
def test_nested_decimals(stored, options):
    physical, length = STORED[stored]
    items = [D("1.25"), None, D("-3.00"), D("999.99")]
    leaf = SchemaNode("element", OPTIONAL, physical, length, DECIMAL)
    assert_round_trip(list_of(group("list", leaf, repetition=REPEATED)), [items, None, [], [None]], **options)
    leaf = SchemaNode("x", OPTIONAL, physical, length, DECIMAL)
    assert_round_trip(group("a", leaf), [{"x": item} for item in items] + [None], **options)
    assert_round_trip(group("a", leaf), [{"x": None}, None], **options)
    assert_round_trip(SchemaNode("a", REPEATED, physical, length, DECIMAL), [items[2:], [], items[:1]], **options)


def test_decimals_beyond_the_precision_are_refused():
    node = group("a", SchemaNode("x", OPTIONAL, INT32, 0, DECIMAL))
    with pytest.raises(SchemaError, match=r"1234.00 does not fit DECIMAL\(5, 2\)"):
        write_column(node, [{"x": D("1234.00")}])


@pytest.mark.parametrize("items", [[None, None], [pd.Timestamp("1960-01-01 00:00:00.000000001"), None]])
def test_nested_int96(items):
    leaf = SchemaNode("x", OPTIONAL, INT96)
    data = write_column(group("a", leaf), [{"x": item} for item in items])
    assert numparq.read_parquet(io.BytesIO(data), dtype_backend="pyarrow")["a"].tolist() == [
        {"x": item} for item in items
    ]


def test_nested_arrow_decimals():
    pa = pytest.importorskip("pyarrow")
    values = [[D("1.25"), None], None, [D("-7.00")]]
    column = pd.Series(values, dtype=pd.ArrowDtype(pa.list_(pa.decimal128(5, 2))))
    node = list_of(group("list", SchemaNode("element", OPTIONAL, INT32, 0, DECIMAL), repetition=REPEATED))
    out = io.BytesIO()
    numparq.to_parquet(pd.DataFrame({"a": column}), out, schema=[node])
    assert [as_lists(item) for item in numparq.read_parquet(out)["a"]] == values


# Unusual layouts of lists, and values.
_GROUPS = [[{"x": 1}, {"x": None}], [], [{"x": 2}]]
FORMS = {
    "group of one field, repeated": (group("a", number(), repetition=REPEATED), _GROUPS),
    "within a struct": (
        group("a", group("r", number(), repetition=REPEATED)),
        [{"r": item} for item in _GROUPS] + [None],
    ),
    "within a list": (
        list_of(group("list", group("element", group("r", number(), repetition=REPEATED)), repetition=REPEATED)),
        [[{"r": item} for item in _GROUPS], None, [None]],
    ),
    "two levels": (list_of(number("item", REPEATED)), [[1, 2], None, []]),
    "two levels, groups of two": (
        list_of(group("item", number(), number("y"), repetition=REPEATED)),
        [[{"x": 1, "y": 2}, {"x": 3, "y": None}], None, []],
    ),
    "array": (list_of(group("array", number(), repetition=REPEATED)), [*_GROUPS, None]),
    "tuple": (list_of(group("a_tuple", number(), repetition=REPEATED)), [*_GROUPS, None]),
    "group around what is repeated": (
        list_of(group("list", number("x", REPEATED), repetition=REPEATED)),
        [[{"x": [1]}, {"x": []}, {"x": [2, 3]}], None, []],
    ),
    "two levels, twice": (
        list_of(group("array", number("item", REPEATED), repetition=REPEATED, logical=LIST)),
        [[[1, 2], []], None, [], [[3]]],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_list_layouts(form):
    assert_round_trip(*FORMS[form])


def test_maps_of_decimals():
    value = SchemaNode("value", OPTIONAL, INT32, 0, DECIMAL)
    key = SchemaNode("key", REQUIRED, BYTE_ARRAY, 0, STRING)
    node = group("a", group("key_value", key, value, repetition=REPEATED), logical=MAP)
    data = write_column(node, [{"a": D("1.00"), "b": None}, None, {}])
    assert numparq.read_parquet(io.BytesIO(data))["a"].tolist() == [[("a", D("1.00")), ("b", None)], None, []]


_TEXT = SchemaNode("key", REQUIRED, BYTE_ARRAY, 0, STRING)
MAPS = {
    "misnamed, key not required": (
        group(
            "a",
            group("entry", SchemaNode("k", OPTIONAL, BYTE_ARRAY, 0, STRING), number("v"), repetition=REPEATED),
            logical=MAP,
        ),
        [[("a", 1), ("b", None)], None, []],
    ),
    "without values": (group("a", group("map", _TEXT, repetition=REPEATED), logical=MAP), [["x", "y"], None, []]),
    "MAP_KEY_VALUE around": (
        group("a", group("map", _TEXT, number("value"), repetition=REPEATED), logical=LogicalType("MAP_KEY_VALUE")),
        [[("a", 1), ("b", None)], None, []],
    ),
    "MAP_KEY_VALUE within": (
        group(
            "a",
            group("map", _TEXT, number("value"), repetition=REPEATED, logical=LogicalType("MAP_KEY_VALUE")),
            logical=MAP,
        ),
        [[("a", 1), ("b", None)], None, []],
    ),
    "three fields, which are no map": (
        group("a", group("map", _TEXT, number("value"), number("more"), repetition=REPEATED), logical=MAP),
        [{"map": [{"key": "a", "value": 1, "more": None}]}, None, {"map": []}],
    ),
    "a list whose field is not repeated": (group("a", number("element"), logical=LIST), [{"element": 1}, None]),
}


@pytest.mark.parametrize("form", MAPS)
def test_map_layouts(form):
    node, values = MAPS[form]
    assert [as_lists(item) for item in numparq.read_parquet(io.BytesIO(write_column(node, values)))["a"]] == values


@pytest.mark.parametrize(
    ("kind", "value"),
    [("time32", datetime.time(1, 2, 3, 500_000)), ("timestamp", datetime.datetime(2020, 1, 1, 0, 0, 3, 500_000))],
)
def test_seconds_are_stored_as_milliseconds(kind, value):
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema([("a", pa.struct([("x", getattr(pa, kind)("s"))]))])
    frame = pd.DataFrame({"a": pd.Series([{"x": value}, {"x": None}], dtype=object)})
    assert numparq.read_parquet(numparq.to_parquet(frame, schema=schema))["a"].tolist() == [{"x": value}, {"x": None}]
    finer = pd.DataFrame({"a": [{"x": value.replace(microsecond=1)}]})
    with pytest.raises(SchemaError, match="cannot be stored in ms without loss; round it first"):
        numparq.to_parquet(finer, schema=schema)
