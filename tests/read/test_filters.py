"""Filtered reads: floats, nulls, decimals, truncated bounds, literals, errors."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from numparq import ParquetFile, col, read_parquet, to_parquet
from numparq.errors import SchemaError
from support.compare import write_by_pyarrow
from support.files.forged_metadata import forge
from support.filters.keyed_file import matching_row_numbers, x

NAN = math.nan


def one(values, arrow_type=None, **options):
    """Write a column ``x`` with pyarrow, in pages of a few rows."""
    table = pa.table({"x": pa.array(values, arrow_type)})
    few = {"write_page_index": True, "write_batch_size": 2, "data_page_size": 1, "row_group_size": 6}
    return write_by_pyarrow(table, **(few | options))


def own(values, **options):
    """Write a column ``x`` with numparq, in pages of a few rows."""
    frame = pd.DataFrame({"x": values if hasattr(values, "dtype") else pd.array(values)})
    return to_parquet(frame, **({"max_rows_per_page": 2, "row_group_size": 6} | options))


FLOATS = [3.0, 3.0, 3.0, NAN, NAN, NAN, 4.0, 5.0, None, None, 2.0, -0.0]


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        (~(x > 3), [0, 1, 2, 3, 4, 5, 10, 11]),
        (x <= 3, [0, 1, 2, 10, 11]),
        (x != 3, [3, 4, 5, 6, 7, 10, 11]),
        (~(x == 3), [3, 4, 5, 6, 7, 10, 11]),
        (x == 0, [11]),
        (x < 0, []),
        (x.isin([NAN, 5]), [7]),
        (x.not_in([3, NAN]), [3, 4, 5, 6, 7, 10, 11]),
        (x.not_in([None, 3]), [3, 4, 5, 6, 7, 10, 11]),
        (~x.between(0, 3), [3, 4, 5, 6, 7]),
        (x.is_null(), [8, 9]),
        (~x.is_null() & ~(x >= -100), [3, 4, 5]),
        (x == NAN, []),
        (x != NAN, [0, 1, 2, 3, 4, 5, 6, 7, 10, 11]),
        (~((x > 3) | x.is_null()), [0, 1, 2, 3, 4, 5, 10, 11]),
        ([("x", "not in", [3.0]), ("x", "!=", 4)], [3, 4, 5, 7, 10, 11]),
        ([[("x", "=", 4)], [("x", "<", 3)]], [6, 10, 11]),
        (("x", ">=", 4), [6, 7]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("bloom", [False, True])
@pytest.mark.parametrize("order", ["type", "ieee754"])
@pytest.mark.parametrize("sizes", [(12, 2), (6, 3), (3, 3), (2, 1)])
def test_floats_with_nans_and_nulls(filters, rows, bloom, order, sizes):
    """A NaN is unequal to everything and in no range. Bounds do not cover it."""
    column = pd.arrays.ArrowExtensionArray(pa.array(FLOATS, from_pandas=False))
    groups, few = sizes
    data = own(
        pd.Series(column),
        row_group_size=groups,
        max_rows_per_page=few,
        column_order=order,
        bloom_filter_options={"x": True} if bloom else None,
    )
    assert matching_row_numbers(data, filters) == rows


@pytest.mark.parametrize("zero", [0.0, -0.0, 0])
@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bloom_filters_are_probed_for_both_zeros(zero, stored, dtype):
    values = np.array([-1, stored, 1, 2], dtype)
    for order in ("type", "ieee754"):
        data = own(pd.Series(values), bloom_filter_options={"x": {"fpp": 1e-9}}, column_order=order)
        assert matching_row_numbers(data, x == zero) == [1]
        assert matching_row_numbers(data, x.isin([zero, 7])) == [1]
        assert matching_row_numbers(data, x != zero) == [0, 2, 3]


@pytest.mark.parametrize(
    ("values", "arrow_type", "options"),
    [
        ([Decimal("1.10"), Decimal("-2.50"), None, Decimal("0.00")], pa.decimal128(25, 2), {}),
        ([1, 10**9, None, 86_400 * 10**9 * 9], pa.timestamp("ns"), {"use_deprecated_int96_timestamps": True}),
    ],
)
def test_unusable_bloom_filters_are_ignored(values, arrow_type, options):
    table = pa.table({"x": pa.array(values, arrow_type)})
    data = write_by_pyarrow(table, bloom_filter_options={"x": True}, **options)
    for row, value in enumerate(table["x"].to_pylist()):
        if value is not None:
            assert matching_row_numbers(data, x == value) == [row]


def test_decimals_stored_in_several_lengths():
    """Bytes of several lengths may store one number, so no Bloom filter has them all."""
    from support.files import builder as h

    stored = [b"\x01", b"\x00\x01", b"\x00\x00\x02", b"", b"\xff\xff"]
    decimal = h.extended_idl().LogicalType(DECIMAL=h.extended_idl().DecimalType(scale=1, precision=9))
    element = {"logicalType": decimal, "converted_type": 5, "scale": 1, "precision": 9}
    column = h.FileColumn("x", h.BYTE_ARRAY, [[h.data_page(5, h.encode_plain(h.BYTE_ARRAY, stored))]], element=element)
    data = h.build_file([5], [column]).stored()
    assert matching_row_numbers(data, x == Decimal("0.1")) == [0, 1]
    assert matching_row_numbers(data, x >= Decimal("0.1")) == [0, 1, 2]
    assert matching_row_numbers(data, x == 0) == [3]
    assert matching_row_numbers(data, x < 0) == [4]


WITH_NULLS = [1, None, 3, 4, None, 6]


@pytest.mark.parametrize("forgery", ["no null counts", "no statistics", "no orders", "unset orders", "one bound"])
def test_missing_null_counts_are_not_zero(forgery):
    data = forge(own(pd.array(WITH_NULLS, "Int64")), (forgery,))
    assert matching_row_numbers(data, x.is_null()) == [1, 4]
    assert matching_row_numbers(data, x.is_not_null()) == [0, 2, 3, 5]
    assert matching_row_numbers(data, x >= 0) == [0, 2, 3, 5]
    assert matching_row_numbers(data, ~(x > 4)) == [0, 2, 3]


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
@pytest.mark.parametrize("forgery", ["no orders", "wrong deprecated bounds", "deprecated bounds only", "unset orders"])
def test_unsigned_bounds_without_an_order(kind, forgery):
    high = np.iinfo(kind).max
    data = forge(own(np.array([1, high, 5, high - 1], kind)), (forgery,))
    assert matching_row_numbers(data, x > 5) == [1, 3]
    assert matching_row_numbers(data, x == high) == [1]


def test_is_null_in_structs_and_lists():
    """The null count of a nested leaf includes the nulls of its parents."""
    struct = pa.array([{"a": 1}, {"a": None}, None, {"a": 4}], pa.struct([("a", pa.int64())]))
    lists = pa.array([[1, None], [], None, [None]], pa.list_(pa.int64()))
    data = write_by_pyarrow(pa.table({"s": struct, "l": lists}), row_group_size=2, write_page_index=True)
    assert matching_row_numbers(data, col("s").is_null()) == [2]
    assert matching_row_numbers(data, col("s").is_not_null()) == [0, 1, 3]
    assert matching_row_numbers(data, col("s.a").is_null()) == [1, 2]
    assert matching_row_numbers(data, col(("s", "a")) != 1) == [3]
    assert matching_row_numbers(data, col("l").is_null()) == [2]
    assert matching_row_numbers(data, ~col("l").is_null()) == [0, 1, 3]
    assert matching_row_numbers(data, col("l").contains(1)) == [0]
    assert matching_row_numbers(data, ~col("l").contains(1)) == [1, 3]


def test_null_pages_between_ordered_pages():
    values = [None, None, 1, 2, None, None, 3, 4, None, None, 5, 6, None, None]
    for column in (values, [None if value is None else -value for value in values]):
        data = own(pd.array(column, "Int64"), row_group_size=100)
        for row, value in enumerate(column):
            if value is not None:
                assert matching_row_numbers(data, x == value) == [row]
        assert matching_row_numbers(data, x.is_null()) == [0, 1, 4, 5, 8, 9, 12, 13]
        assert matching_row_numbers(data, (x > 2) | (x < -2)) == [6, 7, 10, 11]


def test_ordered_pages_may_overlap():
    values = [0, 50, 10, 60, 20, 70, 30, 80]  # pages [0, 50], [10, 60], ...: both bounds ascend
    data = own(np.array(values), row_group_size=100)
    for row, value in enumerate(values):
        assert matching_row_numbers(data, x == value) == [row]
        assert matching_row_numbers(data, x.between(value - 5, value + 5)) == [row]
    assert matching_row_numbers(data, (x > 15) & (x < 65)) == [1, 3, 4, 6]


@pytest.mark.parametrize("forgery", [(), ("no encoding stats",)])
def test_dictionaries_without_all_values(forgery):
    """The writer falls back to PLAIN after a full dictionary, so a value missing from it may still be stored."""
    values = [f"value {number:04d}" for number in range(400)]
    data = forge(
        one(values, dictionary_pagesize_limit=100, row_group_size=400, write_statistics=False, write_page_index=False),
        forgery,
    )
    for number in (0, 3, 17, 399):
        assert matching_row_numbers(data, x == values[number]) == [number]
    assert matching_row_numbers(data, x.isin(["value 0398", "other"])) == [398]


LONG = "p" * 80


@pytest.mark.parametrize("writer", [one, own])
def test_truncated_bounds(writer):
    """String bounds are truncated. Those with only the last code point cannot be incremented."""
    values = [LONG + end for end in "cab"] + ["\U0010ffff" * 30, "\U0010ffff" * 30 + "a", "\uffff"]
    data = writer(values)
    for row, value in enumerate(values):
        assert matching_row_numbers(data, x == value) == [row]
        assert row in matching_row_numbers(data, x >= value)
        assert row in matching_row_numbers(data, x <= value)
        assert row not in matching_row_numbers(data, x != value)
    assert matching_row_numbers(data, x > LONG + "b") == [0, 3, 4, 5]
    assert matching_row_numbers(data, x.startswith(LONG)) == [0, 1, 2]
    assert matching_row_numbers(data, x.like("%b")) == [2]
    assert matching_row_numbers(data, x > "\uffff") == [3, 4], "by code points, not by UTF-16"


@pytest.mark.parametrize(
    ("values", "kind", "filters", "rows"),
    [
        ([1, 2, None, 4], pa.int32(), x < 2**70, [0, 1, 3]),
        ([1, 2, None, 4], pa.int32(), x > -(2**70), [0, 1, 3]),
        ([1, 2, None, 4], pa.int32(), x != 3.5, [0, 1, 3]),
        ([1, 2, None, 4], pa.int32(), x > 1.5, [1, 3]),
        ([1, 2, None, 4], pa.uint8(), x >= -1, [0, 1, 3]),
        ([1, 2, None, 4], pa.uint8(), x == 257, []),
        ([2**63, 2**63 - 1, 0], pa.uint64(), x >= 2**63, [0]),
        ([0.1, 0.5], pa.float32(), x == 0.1, [0]),
        ([0.1, 0.5], pa.float32(), x == np.float64(0.1), []),
        ([0.1, 0.5], pa.float32(), x > np.float64(0.1), [0, 1]),
        ([0.1, 0.5], pa.float32(), x.isin([0.1]), [0]),
        ([Decimal("1.1"), None, Decimal("2.0")], pa.decimal128(9, 1), x == 1.1, [0]),
        ([Decimal("1.1"), None, Decimal("2.0")], pa.decimal128(9, 1), x == "1.10", [0]),
        ([Decimal("1.1"), None, Decimal("2.0")], pa.decimal128(30, 1), x >= 2, [2]),
        ([0, 86_400_000], pa.timestamp("ms"), x == "1970-01-02", [1]),
        ([0, 86_400_000], pa.timestamp("ms"), x > np.datetime64(1, "ns"), [1]),
        ([0, 3_600_000], pa.timestamp("ms", "Europe/Berlin"), x == "1970-01-01 01:00", [0]),
        ([0, 3_600_000], pa.timestamp("ms", "Europe/Berlin"), x == "1970-01-01T01:00Z", [1]),
        ([0, 1], pa.date32(), x < "1970-01-01T12:00", [0]),
        ([b"a" * 16, b"\xff" * 16], pa.uuid(), x == uuid.UUID(bytes=b"a" * 16), [0]),
        ([b"a" * 16, b"\xff" * 16], pa.uuid(), x > str(uuid.UUID(bytes=b"a" * 16)), [1]),
        ([b"a\xff", b"a"], pa.binary(), x.like(b"a_"), [0]),
        ([True, None, False], pa.bool_(), x == True, [0]),  # noqa: E712
        ([True, None, False], pa.bool_(), x < 1, [2]),
    ],
    ids=repr,
)
def test_literals_of_each_type(values, kind, filters, rows):
    assert matching_row_numbers(one(values, kind), filters) == rows


@pytest.mark.parametrize(
    ("values", "kind", "literal"),
    [
        ([1], pa.int64(), "1"),
        (["a"], pa.string(), b"a"),
        (["a"], pa.string(), 1),
        ([b"a"], pa.binary(), "a"),
        ([0], pa.timestamp("ms"), pd.Timestamp(0, tz="UTC")),
        ([0], pa.date32(), "yesterday"),
        ([0], pa.time32("ms"), 7),
        ([b"a" * 16], pa.uuid(), "no uuid"),
    ],
)
def test_incomparable_literals(values, kind, literal):
    with pytest.raises(SchemaError, match="cannot be compared with the column 'x'") as raised:
        read_parquet(one(values, kind), filters=x == literal)
    assert repr(literal) in str(raised.value)
    with pytest.raises(SchemaError):
        read_parquet(one(values, kind), filters=[("x", "in", [literal])])


def test_invalid_filters():
    data = own(np.arange(5))
    with pytest.raises(SchemaError, match="no column 'y'"):
        read_parquet(data, filters=col("y") == 1)
    with pytest.raises(SchemaError, match="did you mean 'x'"):
        read_parquet(data, ["x"], [("xx", "==", 1)])
    with pytest.raises(SchemaError):
        read_parquet(data, filters=(x == 1) | col("x.y").is_null())
    for filters, error in (
        ([], ValueError),
        ("x >> 1", ValueError),
        (1, TypeError),
        ([("x", "~", 1)], ValueError),
        (x, SchemaError),
        ([("x", "==")], ValueError),
        (True, TypeError),
    ):
        with pytest.raises(error):
            read_parquet(data, filters=filters)
        with ParquetFile(data) as file, pytest.raises(error):
            file.read(filters=filters)


def test_contains_needs_a_list_of_simple_values():
    data = write_by_pyarrow(pa.table({"l": [[{"a": 1}], []], "m": [[1], [2]], "n": [1, 2]}))
    for filters in (col("l").contains(1), col("m") == 1, col("n").contains(1), col("l.list.element.a") == 1):
        with pytest.raises(SchemaError):
            read_parquet(data, filters=filters)
