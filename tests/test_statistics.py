"""Statistics of chunks and pages: orders, truncation, floats; and that pyarrow says the same."""

from __future__ import annotations

import numpy as np
import pytest
from driving.statistics import BYTES, NAN, TEXT, WHOLE, arrow_columns, column, double, floats, plain_of
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import statistics as twin

from numparq import ParquetFile
from numparq.leaves import Node
from numparq.metadata.encode import encode
from numparq.metadata.logical_type import LogicalType
from numparq.statistics import (
    NO_ORDER,
    Order,
    PageBounds,
    chunk_statistics,
    merge,
    order_of,
    orders_of,
    page_bounds,
    page_statistics,
    truncate_max,
    truncate_min,
)


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        (column(0), Order("boolean", 1)),
        (column(1), Order("signed", 4)),
        (column(2, "TIMESTAMP", unit="MICROS", utc=True), Order("signed", 8)),
        (column(1, "DATE"), Order("signed", 4)),
        (column(1, "INTEGER", bit_width=8, signed=False), Order("unsigned", 4)),
        (column(2, "INTEGER", bit_width=64, signed=False), Order("unsigned", 8)),
        (column(2, "INTEGER", bit_width=64, signed=True), Order("signed", 8)),
        (column(1, "DECIMAL", precision=9, scale=2), Order("signed", 4)),
        (column(6, "DECIMAL", precision=9, scale=2), Order("decimal")),
        (column(7, "DECIMAL", 5, precision=9, scale=2), Order("decimal", 5)),
        (column(3), NO_ORDER),
        (column(4), Order("float", 4)),
        (column(7, "FLOAT16", 2), Order("float", 2)),
        (column(6), Order("bytes", cut="bytes")),
        (column(6, "STRING"), Order("bytes", cut="text")),
        (column(6, "ENUM"), Order("bytes", cut="text")),
        (column(6, "JSON"), Order("bytes")),
        (column(6, "BSON"), Order("bytes")),
        (column(7, "UUID", 16), Order("bytes", 16)),
        (column(7, None, 100), Order("bytes", 100)),
        (column(7, "INTERVAL", 12), NO_ORDER),
        (column(6, "GEOMETRY"), NO_ORDER),
        (column(6, "GEOGRAPHY"), NO_ORDER),
        (column(1, "UNKNOWN"), NO_ORDER),
    ],
)
def test_orders(node, wanted):
    assert order_of(node) == wanted
    assert order_of(node).column_order == {"TYPE_ORDER": {}}
    total = order_of(node, "ieee754")
    assert total.total == (wanted.kind == "float")
    assert total.column_order == ({"IEEE_754_TOTAL_ORDER": {}} if total.total else {"TYPE_ORDER": {}})
    encode("ColumnOrder", total.column_order)


def test_an_order_that_there_is_not():
    with pytest.raises(ValueError, match="ieee754"):
        order_of(column(4), "total")


def test_parts_of_a_variant_have_no_order():
    typed = Node("typed_value", 1, children=(Node("value", 1, 6), Node("typed_value", 1, 2)))
    variant = Node("v", 1, None, 0, LogicalType("VARIANT"), (Node("metadata", 0, 6), Node("value", 1, 6), typed))
    other = Node("o", 1, None, 0, None, (Node("value", 1, 6),))
    kinds = [order.kind for order in orders_of([variant, other, column(4)], "ieee754")]
    assert kinds == ["none", "none", "none", "signed", "bytes", "float"]
    assert [order.total for order in orders_of([column(4), column(5)], ["type", "ieee754"])] == [False, True]


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
def test_text_is_cut_between_code_points(value, length, low, high):
    exact = len(value) <= length
    assert truncate_min(value, length, TEXT) == (low, exact)
    assert truncate_max(value, length, TEXT) == (high, exact)


@pytest.mark.parametrize(
    ("value", "length", "low", "high"),
    [
        (b"\x01\x02\x03", 2, b"\x01\x02", b"\x01\x03"),
        (b"\x01\xff\x03", 2, b"\x01\xff", b"\x02"),
        (b"\xff\xff\x03", 2, b"\xff\xff", None),
        (b"\xff\xff", 2, b"\xff\xff", b"\xff\xff"),
    ],
)
def test_bytes_are_cut_anywhere(value, length, low, high):
    exact = len(value) <= length
    assert truncate_min(value, length, BYTES) == (low, exact)
    assert truncate_max(value, length, BYTES) == (high, exact)


@settings(deadline=None, max_examples=200)
@given(value=st.text(max_size=12), length=st.integers(1, 12))
def test_cut_text_is_a_bound_and_text(value, length):
    raw = value.encode()
    low, low_exact = truncate_min(raw, length, TEXT)
    high, high_exact = truncate_max(raw, length, TEXT)
    assert low is not None and low <= raw and len(low) <= length and value.startswith(low.decode())
    assert low_exact == high_exact == (len(raw) <= length)
    if high is not None:
        assert high >= raw and len(high) <= length + 1 and high.decode() >= value
    else:
        assert all(letter == "\U0010ffff" for letter in raw[:length].decode(errors="ignore"))


def test_what_is_only_valid_whole_is_whole_or_left_out():
    assert truncate_min(b"{}" * 100, 64, WHOLE) == truncate_max(b"{}" * 100, 64, WHOLE) == (b"{}" * 100, True)
    assert truncate_min(b"{}" * 600, 64, WHOLE) == (None, False)
    assert truncate_max(b"{}" * 600, 2000, WHOLE) == (b"{}" * 600, True)
    assert truncate_max(b"\1" * 20, 16, Order("decimal", 20)) == (b"\1" * 20, True)
    with pytest.raises(ValueError, match="at least one byte"):
        truncate_max(b"", 0, TEXT)


# --- floats -----------------------------------------------------------------------------------------------------------


def test_nans_are_counted_and_never_bounds_of_the_type_order():
    found = floats("type", [NAN, 1.0, 2.0], [NAN, NAN], [], [-3.0])
    assert found.nan_counts == [1, 2, 0, 0]
    assert page_statistics(found, 1, 5) == {"null_count": 5, "nan_count": 2}
    assert page_statistics(found, 2, 5) == {"null_count": 5, "nan_count": 0}
    assert chunk_statistics(found, 7) == {
        "null_count": 7, "nan_count": 3, "min_value": double(-3.0), "max_value": double(2.0),
        "is_min_value_exact": True, "is_max_value_exact": True,
    }  # fmt: skip
    assert chunk_statistics(floats("type", [NAN]), 0) == {"null_count": 0, "nan_count": 1}


def test_pages_of_nans_have_bounds_under_the_total_order():
    found = floats("ieee754", [NAN, 1.0], [NAN, -NAN])
    assert found.nan_counts == [1, 2]
    assert found.min_values == [double(1.0), double(-NAN)] and found.max_values == [double(1.0), double(NAN)]
    assert merge(found) == (double(1.0), double(1.0), 3)
    assert merge(floats("ieee754", [NAN], [NAN, -NAN])) == (double(-NAN), double(NAN), 3)


def test_zeros():
    for zeros in ([0.0], [-0.0], [0.0, -0.0]):
        found = floats("type", zeros, [*zeros, 1.0], [*zeros, -1.0])
        assert found.min_values == [double(-0.0), double(-0.0), double(-1.0)]
        assert found.max_values == [double(0.0), double(1.0), double(0.0)]
        assert merge(found)[:2] == (double(-1.0), double(1.0))
    assert merge(floats("ieee754", [0.0]))[:2] == (double(0.0), double(0.0))
    assert merge(floats("ieee754", [-0.0], [0.0]))[:2] == (double(-0.0), double(0.0))


@settings(deadline=None, max_examples=60)
@given(
    pages_=st.lists(st.lists(st.floats(width=32) | st.sampled_from([NAN, 0.0, -0.0]), max_size=5), max_size=5),
    column_order=st.sampled_from(["type", "ieee754"]),
)
def test_a_chunk_has_the_bounds_of_all_its_values(pages_, column_order):
    whole = twin.bounds("float", column_order == "ieee754", [double(value) for page in pages_ for value in page])
    assert merge(floats(column_order, *pages_)) == whole


# --- as dicts ---------------------------------------------------------------------------------------------------------


def test_exactness_and_what_is_left_out():
    long = b"\xff" * 99
    pages_ = PageBounds(BYTES, [1, 0, 2], [b"b" * 99, None, b"a" * 80], [long, None, b"c"])
    assert chunk_statistics(pages_, 3, distinct_count=2) == {
        "null_count": 3, "distinct_count": 2, "min_value": b"a" * 64, "is_min_value_exact": False,
    }  # fmt: skip
    assert page_statistics(pages_, 2, 0, length=100)["max_value"] == b"c"
    assert page_statistics(pages_, 1, 9) == {"null_count": 9}
    encode("Statistics", chunk_statistics(pages_, 3))


def test_columns_without_an_order_have_counts_only():
    found = page_bounds(order_of(column(3)), np.zeros(24, np.uint8), np.array([0, 1, 2], np.int64))
    assert found.num_values == [1, 1]
    assert chunk_statistics(found, 4) == {"null_count": 4}


# --- against pyarrow --------------------------------------------------------------------------------------------------


def test_pyarrow_says_the_same(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = arrow_columns()
    pq.write_table(table, tmp_path / "a.parquet")
    file = ParquetFile(tmp_path / "a.parquet")
    bounds = np.array([0, 50, 50, 200], np.int64)
    for leaf, array, chunk in zip(file.schema, table.columns, file.metadata.row_groups[0].columns, strict=True):
        values, places = plain_of(array.combine_chunks(), leaf)
        mine = chunk_statistics(page_bounds(order_of(leaf), values, bounds, **places), 0)
        theirs = chunk.meta_data.statistics
        assert (mine["min_value"], mine["max_value"]) == (theirs.min_value, theirs.max_value), leaf.name
        assert pa.types.is_floating(array.type) == ("nan_count" in mine)
