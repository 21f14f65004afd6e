"""Frames shredded under a user's schema: exact conversion, or an error that names the value."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
from numparq.errors import SchemaError  # noqa: E402
from numparq.format.arrow_type import ArrowType  # noqa: E402
from numparq.format.logical_type import LogicalType  # noqa: E402
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64, INT96, PHYSICAL_NAMES  # noqa: E402
from numparq.format.schema import OPTIONAL, REQUIRED  # noqa: E402
from numparq.format.schema_node import SchemaNode  # noqa: E402
from numparq.from_pandas.frame import shred_frame  # noqa: E402
from support.data.leaf_values import leaf_to_list  # noqa: E402
from support.shredded import numparq_schema, rows_of  # noqa: E402

D = decimal.Decimal


def f(dtype, *values):
    return [np.array(value, dtype).tobytes() for value in values]


def big(length, *values):
    return [value.to_bytes(length, "big", signed=True) for value in values]


# frame values, type, stored values
EXACT = {
    "int-int8": (np.array([1, -128, 127]), pa.int8(), [1, -128, 127]),
    "int-uint32": (np.array([0, 2**32 - 1]), pa.uint32(), [0, -1]),
    "uint64-int64": (np.array([0, 2**63 - 1], "u8"), pa.int64(), [0, 2**63 - 1]),
    "uint8-uint64": (np.array([0, 255], "u1"), pa.uint64(), [0, 255]),
    "int32-int64": (np.array([-1, 7], "i4"), pa.int64(), [-1, 7]),
    "nullable-int16": (pd.array([1, None], "Int64"), pa.int16(), [1, None]),
    "float-int": (np.array([1.0, np.nan, -(2.0**53)]), pa.int64(), [1, None, -(2**53)]),
    "float-uint64": (np.array([2.0**63]), pa.uint64(), [-(2**63)]),
    "int-float": (np.array([1, 2**53]), pa.float64(), f("f8", 1, 2**53)),
    "uint64-float": (np.array([2**63, 2**64 - 2048], "u8"), pa.float64(), f("f8", 2.0**63, 2.0**64 - 2048)),
    "lowest-float": (np.array([-(2**63)]), pa.float32(), f("f4", -(2.0**63))),
    "int-float16": (np.array([1, -2048]), pa.float16(), f("f2", 1, -2048)),
    "float-float32": (np.array([0.1, np.nan, np.inf]), pa.float32(), [f("f4", 0.1)[0], None, f("f4", np.inf)[0]]),
    "float32-float64": (np.array([0.5], "f4"), pa.float64(), f("f8", 0.5)),
    "float16-float32": (np.array([0.5], "f2"), pa.float32(), f("f4", 0.5)),
    "int-bool": (pd.array([1, None, 0], "UInt8"), pa.bool_(), [1, None, 0]),
    "category-bool": (pd.Categorical([1, None, 0, 1], categories=[0, 1]), pa.bool_(), [1, None, 0, 1]),
    "bool-int": (np.array([True, False]), pa.int32(), [1, 0]),
    "int-timestamp": (np.array([1, 2]), pa.timestamp("ms"), [1, 2]),
    "int-timestamp-s": (np.array([1, -2]), pa.timestamp("s"), [1000, -2000]),
    "int-time": (pd.array([0, None, 86_399_999], "Int64"), pa.time32("ms"), [0, None, 86_399_999]),
    "int-time-s": (np.array([0, 86_399], "u8"), pa.time32("s"), [0, 86_399_000]),
    "int-time-ns": (np.array([86_400 * 10**9 - 1]), pa.time64("ns"), [86_400 * 10**9 - 1]),
    "int-date": (np.array([-1, 2], "i2"), pa.date32(), [-1, 2]),
    "int-date64": (np.array([-86_400_000]), pa.date64(), [-1]),
    "int-duration": (np.array([-(2**63), 5]), pa.duration("s"), [-(2**63), 5]),
    "int-decimal": (np.array([1, -20]), pa.decimal128(5, 2), big(3, 100, -2000)),
    "decimal": ([D("1.5"), None, D("-2")], pa.decimal128(10, 3), [*big(5, 1500), None, *big(5, -2000)]),
    "decimal-narrower": ([D("1.500")], pa.decimal128(3, 1), big(2, 15)),
    "decimal256": ([D("1.5")], pa.decimal256(60, 1), big(26, 15)),
    "ns-us": (np.array([5000, -3000], "M8[ns]"), pa.timestamp("us"), [5, -3]),
    "ns-s": (np.array([10**9, -(10**9)], "M8[ns]"), pa.timestamp("s"), [1000, -1000]),
    "s-ns": (np.array([1, -1], "M8[s]"), pa.timestamp("ns"), [10**9, -(10**9)]),
    "us-date": (np.array(["2020-01-01", "NaT", "1969-12-31"], "M8[us]"), pa.date32(), [18262, None, -1]),
    "date-us": ([datetime.date(1970, 1, 2), None], pa.timestamp("us"), [86_400_000_000, None]),
    "date-date64": ([datetime.date(1970, 1, 2), None], pa.date64(), [1, None]),
    "zone": (pd.date_range("1970", periods=1, tz="Asia/Tokyo"), pa.timestamp("ms", "UTC"), [-9 * 3_600_000]),
    "time": ([datetime.time(0, 0, 1)], pa.time32("ms"), [1000]),
    "time-ns": ([datetime.time(0, 0, 1)], pa.time64("ns"), [10**9]),
    "duration": (np.array([10**9], "m8[ns]"), pa.duration("s"), [1]),
    "duration-time": (np.array([10**9], "m8[ns]"), pa.time64("us"), [10**6]),
    "str-binary": (["a", None], pa.binary(), [b"a", None]),
    "str-decimal": (
        ["1.5", None, "-.25", "+2e1", "0e-9", "007.", "1200000E-4"],
        pa.decimal128(6, 2),
        [*big(3, 150), None, *big(3, -25, 2000, 0, 700, 12000)],
    ),
    "str-decimal-category": (pd.Categorical(["9", None, "1"]), pa.decimal128(2, 1), [*big(1, 90), None, *big(1, 10)]),
    "str-large": (["a", "é"], pa.large_string(), [b"a", "é".encode()]),
    "bytes-str": ([b"a", None, "é".encode()], pa.string(), [b"a", None, "é".encode()]),
    "bytes-fixed": ([b"ab", None, b"cd"], pa.binary(2), [b"ab", None, b"cd"]),
    "fixed-binary": (pd.array([b"ab", None], pd.ArrowDtype(pa.binary(2))), pa.binary(), [b"ab", None]),
    "category": (pd.Categorical([300, 1, None], categories=[1, 300]), pa.int16(), [300, 1, None]),
    "category-str": (pd.Categorical(["a", None]), pa.dictionary(pa.int32(), pa.string()), [b"a", None]),
    **{
        f"null-{kind}": ([None, np.nan], kind, [None, None])
        for kind in (
            pa.int8(),
            pa.int64(),
            pa.bool_(),
            pa.float16(),
            pa.float64(),
            pa.string(),
            pa.binary(3),
            pa.date32(),
            pa.timestamp("ns", "UTC"),
            pa.decimal128(20, 2),
            pa.duration("s"),
            pa.null(),
        )
    },
}


def frame_of(values):
    return pd.DataFrame({"a": pd.Series(values, dtype=object) if isinstance(values, list) else values})


@pytest.mark.parametrize("name", EXACT)
def test_values_convert_exactly(name):
    values, kind, expected = EXACT[name]
    frame = frame_of(values)
    shredded = shred_frame(frame, schema=pa.schema([("a", kind)]))
    assert rows_of(shredded, 0, len(frame)) == [expected]
    for start in range(len(frame)):
        assert rows_of(shredded, start, start + 1) == [expected[start : start + 1]]
    model = shred_frame(pd.DataFrame({"a": pd.array([None], pd.ArrowDtype(kind))}))
    assert numparq_schema(shredded) == numparq_schema(model)
    assert shredded.arrow_fields == model.arrow_fields


REFUSED = {
    "int8": (np.array([1, 128]), pa.int8(), "row 1: 128 does not fit int8"),
    "unsigned": (np.array([5, -1]), pa.uint64(), "row 1: -1 does not fit uint64"),
    "large": (np.array([2**63], "u8"), pa.int64(), "9223372036854775808"),
    "fraction": (np.array([np.nan, 1.5]), pa.int64(), "row 1: 1.5 does not fit int64"),
    "infinite": (np.array([np.inf]), pa.int64(), "inf"),
    "too-large": (np.array([2.0**63]), pa.int64(), "does not fit int64"),
    "inexact": (np.array([2**53 + 1]), pa.float64(), "9007199254740993 does not fit float64"),
    "inexact-uint64": (np.array([2**63 + 1], "u8"), pa.float64(), "9223372036854775809 does not fit float64"),
    "rounded-up": (np.array([2**31 - 1], "i4"), pa.float32(), "2147483647 does not fit float32"),
    "half": (np.array([2049]), pa.float16(), "2049 does not fit float16"),
    "single": (np.array([1e300]), pa.float32(), r"1e\+300"),
    "decimal": ([D("1.55")], pa.decimal128(5, 1), "does not fit"),
    "digits": ([D("1000")], pa.decimal128(4, 1), "does not fit"),
    "int-bool": (np.array([1, 2]), pa.bool_(), "row 1: 2 does not fit bool"),
    "text-digits": (["1000"], pa.decimal128(4, 1), "row 0: '1000' does not fit decimal"),
    "text-scale": (["1", "1.55"], pa.decimal128(5, 1), "row 1: '1.55' does not fit"),
    "text-word": (["1_0"], pa.decimal128(5, 1), "row 0: '1_0' does not fit"),
    "text-infinite": (["Infinity"], pa.decimal128(5, 1), "'Infinity' does not fit"),
    "text-empty": ([""], pa.decimal128(5, 1), "'' does not fit"),
    "text-huge": (["1e999999"], pa.decimal128(5, 1), "'1e999999' does not fit"),
    "text-long": (["0" * 5000], pa.decimal128(5, 1), "does not fit"),
    "int-digits": (np.array([1000]), pa.decimal128(4, 1), "1000"),
    "nanoseconds": (np.array([5001], "M8[ns]"), pa.timestamp("us"), r"row 0: .*5001"),
    "milliseconds": (np.array([1001], "M8[ms]"), pa.timestamp("s"), "row 0"),
    "range": (np.array([2**40], "M8[s]"), pa.timestamp("ns"), "row 0"),
    "noon": (np.array(["2020-01-01T12"], "M8[ms]"), pa.date32(), "2020-01-01T12"),
    "day": (np.array([86_400], "m8[s]"), pa.time64("us"), "row 0"),
    "int-day": (np.array([0, 86_400_000]), pa.time32("ms"), r"row 1: 86400000 does not fit time\[ms\]"),
    "int-day-s": (np.array([86_400], "i4"), pa.time32("s"), "row 0: 86400 does not"),
    "int-day-us": (np.array([86_400 * 10**6]), pa.time64("us"), "row 0: 86400000000 does not"),
    "int-day-ns": (np.array([86_400 * 10**9]), pa.time64("ns"), "row 0: 86400000000000 does not"),
    "int-before-midnight": (np.array([-1]), pa.time64("us"), "row 0: -1 does not"),
    "int-unsigned-time": (np.array([2**64 - 1], "u8"), pa.time64("us"), "row 0: 18446744073709551615 does not"),
    "int-seconds": (np.array([2**60]), pa.timestamp("s"), "row 0: 1152921504606846976 does not"),
    "int-noon": (np.array([1]), pa.date64(), "row 0: 1 does not"),
    "int-days": (np.array([2**31]), pa.date32(), "row 0: 2147483648 does not"),
    "zone": (np.array([1], "M8[us]"), pa.timestamp("us", "UTC"), "time zone"),
    "text": ([b"\xff"], pa.string(), "xff"),
    "length": ([b"ab", b"abc"], pa.binary(2), "row 1: b'abc'"),
    "kind": (np.array([1]), pa.string(), "int64 cannot be written as utf8"),
    "nested": (np.array([1]), pa.list_(pa.int64()), "structure"),
    "category": (pd.Categorical([300]), pa.int8(), "300 does not fit int8"),
    "null": ([1, None], pa.field("a", pa.int64(), nullable=False), "row 1 is null"),
    "decimal-double": ([D("1.5")], pa.float64(), "cannot be written"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_lossy_conversion_is_refused(name):
    values, kind, message = REFUSED[name]
    frame = frame_of(values)
    with pytest.raises(SchemaError, match=f"{message}.*column 'a'"):
        shred_frame(frame, schema={"a": kind}).columns[0].read_leaves(0, len(frame))


def decimal_node(physical, precision, length=0, repetition=OPTIONAL):
    return SchemaNode("x", repetition, physical, length, LogicalType("DECIMAL", precision=precision, scale=1))


PHYSICAL = {
    "int32": ([D("1.5"), None, D("-2")], decimal_node(INT32, 9), [15, None, -20]),
    "int64": ([D("1.5"), None, D("-2")], decimal_node(INT64, 18), [15, None, -20]),
    "fixed": ([D("1.5"), D("-2")], decimal_node(FIXED_LEN_BYTE_ARRAY, 5, 7), big(7, 15, -20)),
    "binary": ([D("1.5"), D("-2")], decimal_node(BYTE_ARRAY, 5), big(3, 15, -20)),
    "required": ([1, 2], SchemaNode("x", REQUIRED, INT64), [1, 2]),
    "enum": (["a"], SchemaNode("x", OPTIONAL, BYTE_ARRAY, logical=LogicalType("STRING")), [b"a"]),
    "int96": (
        np.array([0, "NaT", -1], "M8[ns]"),
        SchemaNode("x", OPTIONAL, INT96),
        [
            bytes(8) + (2_440_588).to_bytes(4, "little"),
            None,
            (86_400 * 10**9 - 1).to_bytes(8, "little") + (2_440_587).to_bytes(4, "little"),
        ],
    ),
    "uuid": ([b"x" * 16], SchemaNode("x", OPTIONAL, FIXED_LEN_BYTE_ARRAY, 16, LogicalType("UUID")), [b"x" * 16]),
    "field-id": (np.array([1]), SchemaNode("x", OPTIONAL, INT64, field_id=7), [1]),
}


@pytest.mark.parametrize("name", PHYSICAL)
def test_schema_nodes_set_the_physical_type(name):
    values, node, expected = PHYSICAL[name]
    column = shred_frame(frame_of(values), schema={"a": node}).columns[0]
    assert column.node == SchemaNode(
        "a", node.repetition, node.physical, node.type_length, node.logical, (), node.field_id
    )
    (leaf,) = column.read_leaves(0, len(expected))
    assert leaf_to_list(leaf, column.node, len(expected)) == expected, PHYSICAL_NAMES[node.physical]


@pytest.mark.parametrize(
    "node",
    [
        decimal_node(INT32, 10),
        decimal_node(FIXED_LEN_BYTE_ARRAY, 20, 3),
        SchemaNode("x", OPTIONAL, INT64, logical=LogicalType("STRING")),
    ],
)
def test_invalid_schema_nodes_are_refused(node):
    with pytest.raises((SchemaError, ValueError)):
        shred_frame(frame_of([D("1.5")]), schema={"a": node}).columns[0].read_leaves(0, 1)


def test_schema_selects_and_orders_columns():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]}, index=pd.Index([5, 6], name="key"))
    shredded = shred_frame(frame, schema=pa.schema([("c", pa.float32()), ("key", pa.int32()), ("a", pa.int64())]))
    assert [column.node.name for column in shredded.columns] == ["c", "key", "a"]
    assert rows_of(shredded, 0, 2)[1] == [5, 6]
    assert '"index_columns": ["key"]' in shredded.key_value_metadata["pandas"]
    without = shred_frame(frame, schema=[SchemaNode("a", OPTIONAL, INT64)])
    assert [column.node.name for column in without.columns] == ["a"]
    assert '"index_columns": []' in without.key_value_metadata["pandas"]
    partly = shred_frame(frame, schema={"a": ArrowType("int", 8)})
    assert [str(column.node.logical) for column in partly.columns] == ["INTEGER(8, signed)", "STRING", "None", "None"]


def test_schema_with_missing_column_is_refused():
    for schema in (pa.schema([("b", pa.int8())]), {"b": pa.int8()}):
        with pytest.raises(SchemaError, match="'b'"):
            shred_frame(pd.DataFrame({"a": [1]}), schema=schema)


def test_empty_frame_gets_schema_columns():
    schema = pa.schema(
        [
            ("a", pa.int8()),
            ("b", pa.list_(pa.string())),
            ("c", pa.struct([("x", pa.int8())])),
            ("d", pa.timestamp("us", "UTC")),
        ]
    )
    shredded = shred_frame(pd.DataFrame(), index=False, schema=schema)
    assert [column.node.name for column in shredded.columns] == ["a", "b", "c", "d"]
    for column in shredded.columns:
        column.read_leaves(0, 0)


def test_nested_columns_under_a_schema():
    kind = pa.list_(pa.int8())
    frame = frame_of([[1, 2], None, []])
    shredded = shred_frame(frame, schema=pa.schema([("a", kind)]))
    assert (
        shredded.columns[0].node == shred_frame(pd.DataFrame({"a": pd.array([], pd.ArrowDtype(kind))})).columns[0].node
    )
    (leaf,) = shredded.columns[0].read_leaves(0, 3)
    assert leaf.values.tolist() == [1, 2]
    nothing = shred_frame(frame_of([None, None]), schema=pa.schema([("a", kind)]))
    (leaf,) = nothing.columns[0].read_leaves(0, 2)
    assert leaf.definition_levels.tolist() == [0, 0]


@pytest.mark.parametrize("schema", ["a: int", 5, [("a", "int")], {"a": "int32"}])
def test_invalid_schema_argument_is_refused(schema):
    with pytest.raises(TypeError):
        shred_frame(pd.DataFrame({"a": [1]}), schema=schema)


def test_schema_with_duplicate_name_is_refused():
    with pytest.raises(ValueError, match="twice"):
        shred_frame(pd.DataFrame({"a": [1]}), schema=pa.schema([("a", pa.int8()), ("a", pa.int8())]))
