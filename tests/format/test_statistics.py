"""Statistics of chunks and pages: column orders, truncation, floats; equal to pyarrow's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq import ParquetFile
from numparq.format.column_order import NO_ORDER, ColumnOrder, leaf_order, leaf_orders
from numparq.format.logical_type import LogicalType
from numparq.format.page_bounds import PageBounds, compute_page_bounds, truncate_max_value, truncate_min_value
from numparq.format.schema_node import SchemaNode
from numparq.format.statistics import merge_page_bounds
from numparq.format.thrift.encode import encode_struct
from support.data.statistics_columns import (
    BYTES,
    NAN,
    TEXT,
    WHOLE,
    arrow_columns,
    column_node,
    double_bytes,
    float_bounds,
    to_leaf_values,
)
from support.oracles import statistics as oracle
from support.written_statistics import chunk_statistics, page_statistics


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (column_node(0), ColumnOrder("boolean", 1)),
        (column_node(1), ColumnOrder("signed", 4)),
        (column_node(2, "TIMESTAMP", unit="MICROS", utc=True), ColumnOrder("signed", 8)),
        (column_node(1, "DATE"), ColumnOrder("signed", 4)),
        (column_node(1, "INTEGER", bit_width=8, signed=False), ColumnOrder("unsigned", 4)),
        (column_node(2, "INTEGER", bit_width=64, signed=False), ColumnOrder("unsigned", 8)),
        (column_node(2, "INTEGER", bit_width=64, signed=True), ColumnOrder("signed", 8)),
        (column_node(1, "DECIMAL", precision=9, scale=2), ColumnOrder("signed", 4)),
        (column_node(6, "DECIMAL", precision=9, scale=2), ColumnOrder("decimal")),
        (column_node(7, "DECIMAL", 5, precision=9, scale=2), ColumnOrder("decimal", 5)),
        (column_node(3), NO_ORDER),
        (column_node(4), ColumnOrder("float", 4)),
        (column_node(7, "FLOAT16", 2), ColumnOrder("float", 2)),
        (column_node(6), ColumnOrder("bytes", truncation="bytes")),
        (column_node(6, "STRING"), ColumnOrder("bytes", truncation="text")),
        (column_node(6, "ENUM"), ColumnOrder("bytes", truncation="text")),
        (column_node(6, "JSON"), ColumnOrder("bytes")),
        (column_node(6, "BSON"), ColumnOrder("bytes")),
        (column_node(7, "UUID", 16), ColumnOrder("bytes", 16)),
        (column_node(7, None, 100), ColumnOrder("bytes", 100)),
        (column_node(7, "INTERVAL", 12), NO_ORDER),
        (column_node(6, "GEOMETRY"), NO_ORDER),
        (column_node(6, "GEOGRAPHY"), NO_ORDER),
        (column_node(1, "UNKNOWN"), NO_ORDER),
    ],
)
def test_column_orders(node, expected):
    assert leaf_order(node) == expected
    assert leaf_order(node).thrift_union == {"TYPE_ORDER": {}}
    total = leaf_order(node, "ieee754")
    assert total.total == (expected.kind == "float")
    assert total.thrift_union == ({"IEEE_754_TOTAL_ORDER": {}} if total.total else {"TYPE_ORDER": {}})
    encode_struct("ColumnOrder", total.thrift_union)


def test_unknown_order_is_refused():
    with pytest.raises(ValueError, match="ieee754"):
        leaf_order(column_node(4), "total")


def test_variant_leaves_have_no_order():
    typed = SchemaNode("typed_value", 1, children=(SchemaNode("value", 1, 6), SchemaNode("typed_value", 1, 2)))
    variant = SchemaNode(
        "v", 1, None, 0, LogicalType("VARIANT"), (SchemaNode("metadata", 0, 6), SchemaNode("value", 1, 6), typed)
    )
    other = SchemaNode("o", 1, None, 0, None, (SchemaNode("value", 1, 6),))
    kinds = [order.kind for order in leaf_orders([variant, other, column_node(4)], "ieee754")]
    assert kinds == ["none", "none", "none", "signed", "bytes", "float"]
    assert [order.total for order in leaf_orders([column_node(4), column_node(5)], ["type", "ieee754"])] == [
        False,
        True,
    ]


# --- truncation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "length", "low", "high"),
    [
        (b"abcdef", 6, b"abcdef", b"abcdef"),
        (b"abcdef", 3, b"abc", b"abd"),
        ("aé€x".encode(), 3, "aé".encode(), "aê".encode()),
        ("aé€x".encode(), 5, "aé".encode(), "aê".encode()),
        ("aé€x".encode(), 6, "aé€".encode(), "aé₭".encode()),
        ("a\U0010ffffx".encode(), 5, "a\U0010ffff".encode(), b"b"),
        ("\U0010ffff\U0010ffffx".encode(), 8, "\U0010ffff\U0010ffff".encode(), None),
        ("a\ud7ffx".encode(), 4, "a\ud7ff".encode(), "a\ue000".encode()),
        (b"a\x7fx", 2, b"a\x7f", "a\x80".encode()),
        ("€x".encode(), 2, b"", None),
        (b"ab\xff\xfe", 3, None, None),
    ],
)
def test_text_is_truncated_between_code_points(value, length, low, high):
    exact = len(value) <= length
    assert truncate_min_value(value, length, TEXT) == (low, exact)
    assert truncate_max_value(value, length, TEXT) == (high, exact)


@pytest.mark.parametrize(
    ("value", "length", "low", "high"),
    [
        (b"\x01\x02\x03", 2, b"\x01\x02", b"\x01\x03"),
        (b"\x01\xff\x03", 2, b"\x01\xff", b"\x02"),
        (b"\xff\xff\x03", 2, b"\xff\xff", None),
        (b"\xff\xff", 2, b"\xff\xff", b"\xff\xff"),
    ],
)
def test_bytes_are_truncated_anywhere(value, length, low, high):
    exact = len(value) <= length
    assert truncate_min_value(value, length, BYTES) == (low, exact)
    assert truncate_max_value(value, length, BYTES) == (high, exact)


@given(value=st.text(max_size=12), length=st.integers(1, 12))
def test_truncated_text_is_a_valid_bound(value, length):
    raw = value.encode()
    low, low_exact = truncate_min_value(raw, length, TEXT)
    high, high_exact = truncate_max_value(raw, length, TEXT)
    assert low is not None
    assert low <= raw
    assert len(low) <= length
    assert value.startswith(low.decode())
    assert low_exact == high_exact == (len(raw) <= length)
    if high is not None:
        assert high >= raw
        assert len(high) <= length + 1
        assert high.decode() >= value
    else:
        assert all(letter == "\U0010ffff" for letter in raw[:length].decode(errors="ignore"))


def test_untruncatable_values_are_whole_or_omitted():
    assert (
        truncate_min_value(b"{}" * 100, 64, WHOLE) == truncate_max_value(b"{}" * 100, 64, WHOLE) == (b"{}" * 100, True)
    )
    assert truncate_min_value(b"{}" * 600, 64, WHOLE) == (None, False)
    assert truncate_max_value(b"{}" * 600, 2000, WHOLE) == (b"{}" * 600, True)
    assert truncate_max_value(b"\1" * 20, 16, ColumnOrder("decimal", 20)) == (b"\1" * 20, True)
    with pytest.raises(ValueError, match="at least one byte"):
        truncate_max_value(b"", 0, TEXT)


# --- floats -----------------------------------------------------------------------------------------------------------


def test_nans_are_counted_but_never_bounds_in_type_order():
    found = float_bounds("type", [NAN, 1.0, 2.0], [NAN, NAN], [], [-3.0])
    assert found.nan_counts == [1, 2, 0, 0]
    assert page_statistics(found, 1, 5) == {"null_count": 5, "nan_count": 2}
    assert page_statistics(found, 2, 5) == {"null_count": 5, "nan_count": 0}
    assert chunk_statistics(found, 7) == {
        "null_count": 7,
        "nan_count": 3,
        "min_value": double_bytes(-3.0),
        "max_value": double_bytes(2.0),
        "is_min_value_exact": True,
        "is_max_value_exact": True,
    }
    assert chunk_statistics(float_bounds("type", [NAN]), 0) == {"null_count": 0, "nan_count": 1}


def test_nan_pages_have_bounds_in_total_order():
    found = float_bounds("ieee754", [NAN, 1.0], [NAN, -NAN])
    assert found.nan_counts == [1, 2]
    assert found.min_values == [double_bytes(1.0), double_bytes(-NAN)]
    assert found.max_values == [double_bytes(1.0), double_bytes(NAN)]
    assert merge_page_bounds(found) == (double_bytes(1.0), double_bytes(1.0), 3)
    assert merge_page_bounds(float_bounds("ieee754", [NAN], [NAN, -NAN])) == (double_bytes(-NAN), double_bytes(NAN), 3)


def test_signed_zeros():
    for zeros in ([0.0], [-0.0], [0.0, -0.0]):
        found = float_bounds("type", zeros, [*zeros, 1.0], [*zeros, -1.0])
        assert found.min_values == [double_bytes(-0.0), double_bytes(-0.0), double_bytes(-1.0)]
        assert found.max_values == [double_bytes(0.0), double_bytes(1.0), double_bytes(0.0)]
        assert merge_page_bounds(found)[:2] == (double_bytes(-1.0), double_bytes(1.0))
    assert merge_page_bounds(float_bounds("ieee754", [0.0]))[:2] == (double_bytes(0.0), double_bytes(0.0))
    assert merge_page_bounds(float_bounds("ieee754", [-0.0], [0.0]))[:2] == (double_bytes(-0.0), double_bytes(0.0))


@given(
    pages_=st.lists(st.lists(st.floats(width=32) | st.sampled_from([NAN, 0.0, -0.0]), max_size=5), max_size=5),
    column_order=st.sampled_from(["type", "ieee754"]),
)
def test_chunk_bounds_equal_bounds_of_all_values(pages_, column_order):
    whole = oracle.bounds(
        "float", column_order == "ieee754", [double_bytes(value) for page in pages_ for value in page]
    )
    assert merge_page_bounds(float_bounds(column_order, *pages_)) == whole


# --- as dicts ---------------------------------------------------------------------------------------------------------


def test_exactness_and_omitted_fields():
    long = b"\xff" * 99
    pages_ = PageBounds(BYTES, [1, 0, 2], [b"b" * 99, None, b"a" * 80], [long, None, b"c"])
    assert chunk_statistics(pages_, 3) == {
        "null_count": 3,
        "min_value": b"a" * 64,
        "is_min_value_exact": False,
    }
    assert page_statistics(pages_, 2, 0, length=100)["max_value"] == b"c"
    assert page_statistics(pages_, 1, 9) == {"null_count": 9}


def test_columns_without_an_order_have_counts_only():
    found = compute_page_bounds(leaf_order(column_node(3)), np.zeros(24, np.uint8), np.array([0, 1, 2], np.int64))
    assert found.num_values == [1, 1]
    assert chunk_statistics(found, 4) == {"null_count": 4}


# --- against pyarrow --------------------------------------------------------------------------------------------------


def test_equal_to_pyarrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = arrow_columns()
    pq.write_table(table, tmp_path / "a.parquet")
    file = ParquetFile(tmp_path / "a.parquet")
    bounds = np.array([0, 50, 50, 200], np.int64)
    for leaf, array, chunk in zip(file.schema, table.columns, file.metadata.row_groups[0].columns, strict=True):
        values, places = to_leaf_values(array.combine_chunks(), leaf)
        mine = chunk_statistics(compute_page_bounds(leaf_order(leaf), values, bounds, **places), 0)
        theirs = chunk.meta_data.statistics
        assert (mine["min_value"], mine["max_value"]) == (theirs.min_value, theirs.max_value), leaf.name
        assert pa.types.is_floating(array.type) == ("nan_count" in mine)
