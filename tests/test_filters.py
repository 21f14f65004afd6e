"""Filtered reads, case by case: the traps known in advance, each way of skipping, errors, other arguments beside."""

from __future__ import annotations

import io
import math
import uuid
from decimal import Decimal
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from filtering.forging import forged
from filtering.reading import assert_same
from filtering.touched import pages, regions, touched
from frames import written

from numparq import Coalescing, ParquetFile, RuntimeFilter, col, read_parquet, to_parquet
from numparq.column.read import page_walk as column_pages
from numparq.errors import InvalidFileError, ParquetError, SchemaError, UnsupportedError

NAN = math.nan


def numbers(data, filters, **options):
    """The rows of a file that satisfy, by their numbers."""
    return read_parquet(data, [], filters, include=["row_number"], **options)["row_number"].tolist()


def one(values, arrow_type=None, **options):
    """A file by pyarrow of one column ``x``, in pages of a few rows."""
    table = pa.table({"x": pa.array(values, arrow_type)})
    few = {"write_page_index": True, "write_batch_size": 2, "data_page_size": 1, "row_group_size": 6}
    return written(table, **(few | options))


def own(values, **options):
    """The same by numparq."""
    frame = pd.DataFrame({"x": values if hasattr(values, "dtype") else pd.array(values)})
    return to_parquet(frame, **({"max_rows_per_page": 2, "row_group_size": 6} | options))


# --- what is true -----------------------------------------------------------------------------------------------------

FLOATS = [3.0, 3.0, 3.0, NAN, NAN, NAN, 4.0, 5.0, None, None, 2.0, -0.0]
x = col("x")


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
    """A NaN is unequal to everything and not out of any range; bounds do not speak of it."""
    column = pd.arrays.ArrowExtensionArray(pa.array(FLOATS, from_pandas=False))
    groups, few = sizes
    data = own(
        pd.Series(column),
        row_group_size=groups,
        max_rows_per_page=few,
        column_order=order,
        bloom_filter_options={"x": True} if bloom else None,
    )
    assert numbers(data, filters) == rows


@pytest.mark.parametrize("zero", [0.0, -0.0, 0])
@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_both_zeros_are_asked_of_bloom_filters(zero, stored, dtype):
    values = np.array([-1, stored, 1, 2], dtype)
    for order in ("type", "ieee754"):
        data = own(pd.Series(values), bloom_filter_options={"x": {"fpp": 1e-9}}, column_order=order)
        assert numbers(data, x == zero) == [1]
        assert numbers(data, x.isin([zero, 7])) == [1]
        assert numbers(data, x != zero) == [0, 2, 3]


@pytest.mark.parametrize(
    ("values", "arrow_type", "options"),
    [
        ([Decimal("1.10"), Decimal("-2.50"), None, Decimal("0.00")], pa.decimal128(25, 2), {}),
        ([1, 10**9, None, 86_400 * 10**9 * 9], pa.timestamp("ns"), {"use_deprecated_int96_timestamps": True}),
    ],
)
def test_bloom_filters_that_tell_nothing(values, arrow_type, options):
    table = pa.table({"x": pa.array(values, arrow_type)})
    data = written(table, bloom_filter_options={"x": True}, **options)
    for row, value in enumerate(table["x"].to_pylist()):
        if value is not None:
            assert numbers(data, x == value) == [row]


def test_decimals_of_any_length():
    """The same number may be stored in several lengths, so that no Bloom filter has them all."""
    from hostile import handmade as h

    stored = [b"\x01", b"\x00\x01", b"\x00\x00\x02", b"", b"\xff\xff"]
    decimal = h.idl().LogicalType(DECIMAL=h.idl().DecimalType(scale=1, precision=9))
    element = {"logicalType": decimal, "converted_type": 5, "scale": 1, "precision": 9}
    column = h.Column("x", h.BYTE_ARRAY, [[h.data_page(5, h.plain(h.BYTE_ARRAY, stored))]], element=element)
    data = h.file([5], [column]).stored()
    assert numbers(data, x == Decimal("0.1")) == [0, 1]
    assert numbers(data, x >= Decimal("0.1")) == [0, 1, 2]
    assert numbers(data, x == 0) == [3]
    assert numbers(data, x < 0) == [4]


WITHOUT = [1, None, 3, 4, None, 6]


@pytest.mark.parametrize("forgery", ["no null counts", "no statistics", "no orders", "unset orders", "one bound"])
def test_a_count_that_is_not_there_is_not_zero(forgery):
    data = forged(own(pd.array(WITHOUT, "Int64")), (forgery,))
    assert numbers(data, x.is_null()) == [1, 4]
    assert numbers(data, x.is_not_null()) == [0, 2, 3, 5]
    assert numbers(data, x >= 0) == [0, 2, 3, 5]
    assert numbers(data, ~(x > 4)) == [0, 2, 3]


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
@pytest.mark.parametrize("forgery", ["no orders", "wrong deprecated bounds", "deprecated bounds only", "unset orders"])
def test_unsigned_bounds_without_an_order(kind, forgery):
    high = np.iinfo(kind).max
    data = forged(own(np.array([1, high, 5, high - 1], kind)), (forgery,))
    assert numbers(data, x > 5) == [1, 3]
    assert numbers(data, x == high) == [1]


def test_what_is_null_in_structs_and_lists():
    """The null count of a leaf in them counts more than the nulls that are asked for."""
    struct = pa.array([{"a": 1}, {"a": None}, None, {"a": 4}], pa.struct([("a", pa.int64())]))
    lists = pa.array([[1, None], [], None, [None]], pa.list_(pa.int64()))
    data = written(pa.table({"s": struct, "l": lists}), row_group_size=2, write_page_index=True)
    assert numbers(data, col("s").is_null()) == [2]
    assert numbers(data, col("s").is_not_null()) == [0, 1, 3]
    assert numbers(data, col("s.a").is_null()) == [1, 2]
    assert numbers(data, col(("s", "a")) != 1) == [3]
    assert numbers(data, col("l").is_null()) == [2]
    assert numbers(data, ~col("l").is_null()) == [0, 1, 3]
    assert numbers(data, col("l").contains(1)) == [0]
    assert numbers(data, ~col("l").contains(1)) == [1, 3]


def test_null_pages_are_outside_of_the_order():
    values = [None, None, 1, 2, None, None, 3, 4, None, None, 5, 6, None, None]
    for column in (values, [None if value is None else -value for value in values]):
        data = own(pd.array(column, "Int64"), row_group_size=100)
        for row, value in enumerate(column):
            if value is not None:
                assert numbers(data, x == value) == [row]
        assert numbers(data, x.is_null()) == [0, 1, 4, 5, 8, 9, 12, 13]
        assert numbers(data, (x > 2) | (x < -2)) == [6, 7, 10, 11]


def test_pages_in_order_may_overlap():
    values = [0, 50, 10, 60, 20, 70, 30, 80]  # pages [0, 50], [10, 60], ...: both bounds ascend
    data = own(np.array(values), row_group_size=100)
    for row, value in enumerate(values):
        assert numbers(data, x == value) == [row]
        assert numbers(data, x.between(value - 5, value + 5)) == [row]
    assert numbers(data, (x > 15) & (x < 65)) == [1, 3, 4, 6]


@pytest.mark.parametrize("forgery", [(), ("no encoding stats",)])
def test_dictionaries_that_do_not_have_all_values(forgery):
    """The writer falls back to PLAIN behind a full dictionary: what is not in it may be there all the same."""
    values = [f"value {number:04d}" for number in range(400)]
    data = forged(
        one(values, dictionary_pagesize_limit=100, row_group_size=400, write_statistics=False, write_page_index=False),
        forgery,
    )
    for number in (0, 3, 17, 399):
        assert numbers(data, x == values[number]) == [number]
    assert numbers(data, x.isin(["value 0398", "other"])) == [398]


LONG = "p" * 80


@pytest.mark.parametrize("writer", [one, own])
def test_bounds_that_were_cut(writer):
    """Bounds of strings are cut; those of the last code points cannot be made larger."""
    values = [LONG + end for end in "cab"] + ["\U0010ffff" * 30, "\U0010ffff" * 30 + "a", "\uffff"]
    data = writer(values)
    for row, value in enumerate(values):
        assert numbers(data, x == value) == [row]
        assert row in numbers(data, x >= value)
        assert row in numbers(data, x <= value)
        assert row not in numbers(data, x != value)
    assert numbers(data, x > LONG + "b") == [0, 3, 4, 5]
    assert numbers(data, x.startswith(LONG)) == [0, 1, 2]
    assert numbers(data, x.like("%b")) == [2]
    assert numbers(data, x > "\uffff") == [3, 4], "by code points, not by UTF-16"


# --- literals ---------------------------------------------------------------------------------------------------------


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
        ([Decimal("1.1"), None, Decimal("2.0")], pa.decimal128(9, 1), x == 1.1, []),
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
def test_literals(values, kind, filters, rows):
    assert numbers(one(values, kind), filters) == rows


@pytest.mark.parametrize(
    ("values", "kind", "literal"),
    [
        ([1], pa.int64(), "1"),
        (["a"], pa.string(), b"a"),
        (["a"], pa.string(), 1),
        ([b"a"], pa.binary(), "a"),
        ([0], pa.timestamp("ms"), pd.Timestamp(0, tz="UTC")),
        ([0], pa.timestamp("ms", "UTC"), pd.Timestamp(0)),
        ([0], pa.date32(), "yesterday"),
        ([0], pa.time32("ms"), 7),
        ([b"a" * 16], pa.uuid(), "no uuid"),
    ],
)
def test_literals_that_cannot_be_compared(values, kind, literal):
    with pytest.raises(SchemaError, match="cannot be compared with the column 'x'") as raised:
        read_parquet(one(values, kind), filters=x == literal)
    assert repr(literal) in str(raised.value)
    with pytest.raises(SchemaError):
        read_parquet(one(values, kind), filters=[("x", "in", [literal])])


def test_errors():
    data = own(np.arange(5))
    with pytest.raises(SchemaError, match="no column 'y'"):
        read_parquet(data, filters=col("y") == 1)
    with pytest.raises(SchemaError, match="did you mean 'x'"):
        read_parquet(data, ["x"], [("xx", "==", 1)])
    with pytest.raises(SchemaError):
        read_parquet(data, filters=(x == 1) | col("x.y").is_null())
    for filters, error in (
        ([], ValueError),
        ("x > 1", TypeError),
        ([("x", "~", 1)], ValueError),
        (x, TypeError),
        ([("x", "==")], ValueError),
        (True, TypeError),
    ):
        with pytest.raises(error):
            read_parquet(data, filters=filters)
        with ParquetFile(data) as file, pytest.raises(error):
            file.read(filters=filters)


def test_a_list_is_asked_for_simple_values_only():
    data = written(pa.table({"l": [[{"a": 1}], []], "m": [[1], [2]], "n": [1, 2]}))
    for filters in (col("l").contains(1), col("m") == 1, col("n").contains(1), col("l.list.element.a") == 1):
        with pytest.raises(SchemaError):
            read_parquet(data, filters=filters)


# --- skipping ---------------------------------------------------------------------------------------------------------

ROWS, GROUP, PAGE = 1000, 200, 20
FRAME = pd.DataFrame(
    {
        "key": np.arange(ROWS) * 2,
        "value": np.arange(ROWS) / 7,
        "word": [f"w{row * 7 % 40:02d}" for row in range(ROWS)],
        "note": [f"note {row * 7919 % ROWS}" for row in range(ROWS)],
    }
)
OPTIONS = {"row_group_size": GROUP, "max_rows_per_page": PAGE, "use_dictionary": ["word"], "compression": None}
DATA = to_parquet(FRAME, **OPTIONS)
key = col("key")


def expected(keep, columns=None):
    return FRAME.loc[keep, columns or list(FRAME)].reset_index(drop=True)


def test_row_groups_are_skipped_by_statistics():
    """And those that satisfy as a whole are not asked: neither their indexes nor the filter's column."""
    frame, found = touched(DATA, columns=["value"], filters=key >= 2 * 600)
    assert_same(frame, expected(FRAME["key"] >= 1200, ["value"]))
    assert {region[1] for region in found} == {3, 4}
    assert found == {("page", group, "value", page) for group in (3, 4) for page in range(10)}


def test_pages_are_skipped_by_the_column_index():
    frame, found = touched(DATA, columns=["key", "value", "word"], filters=key == 2 * 250)
    assert_same(frame, expected(FRAME["key"] == 500, ["key", "value", "word"]))
    assert pages(found) == {(1, name, 2) for name in ("key", "value", "word")}
    assert {region for region in found if region[0] == "dictionary"} == {("dictionary", 1, "word")}
    assert {region[1] for region in found} == {1}
    assert ("column index", 1, "value") not in found, "nothing is asked of it"


def test_ranges_over_several_columns_are_intersected():
    filters = (key < 2 * 450) & (col("value") > 390 / 7)
    frame, found = touched(DATA, columns=["note"], filters=filters)
    assert_same(frame, expected((FRAME["key"] < 900) & (FRAME["value"] > 390 / 7), ["note"]))
    assert pages(found, "note") == {(1, 9), (2, 0), (2, 1), (2, 2)}


def test_either_of_two_ranges():
    frame, found = touched(DATA, columns=["note"], filters=(key < 10) | (key > 2 * 990))
    assert_same(frame, expected((FRAME["key"] < 10) | (FRAME["key"] > 1980), ["note"]))
    assert pages(found, "note") == {(0, 0), (4, 9)}


def test_a_bloom_filter_knows_what_is_absent():
    data = to_parquet(FRAME, bloom_filter_options={"key": {"fpp": 1e-6}}, **OPTIONS)
    frame, found = touched(data, filters=key == 501)
    assert_same(frame, expected([]))
    assert {region[0] for region in found} <= {"bloom"}
    assert found
    assert {region[1] for region in found} == {1}, "statistics come first"
    frame, found = touched(data, filters=key.isin([501, 700, 703]))
    assert_same(frame, expected(FRAME["key"] == 700))
    assert {group for group, _, _ in pages(found)} == {1}


def test_a_dictionary_knows_what_is_absent():
    data = to_parquet(FRAME, **OPTIONS | {"write_page_index": False})
    where = {name: place for name, place in regions(data).items() if name[0] in ("dictionary", "chunk")}
    frame, found = touched(data, where, filters=col("word") == "w07a")
    assert_same(frame, expected([]))
    assert {region[0] for region in found} == {"dictionary"}


def test_a_null_count_knows_that_there_are_none():
    frame, found = touched(DATA, filters=col("note").is_null())
    assert_same(frame, expected([]))
    assert not found


def test_other_columns_are_read_where_rows_are_left():
    """Without statistics of any kind: first the filter's column, then the row groups that have something left."""
    data = to_parquet(FRAME, **OPTIONS | {"write_statistics": False, "write_page_index": False})
    frame, found = touched(data, columns=["value"], filters=key == 2 * 250)
    assert_same(frame, expected(FRAME["key"] == 500, ["value"]))
    assert found == {("chunk", group, "key") for group in range(5)} | {("chunk", 1, "value")}


def test_other_columns_are_read_page_by_page():
    """An offset index stands alone: it has the places of the pages that the rows left over are in."""
    data = forged(DATA, ("no null counts", "no statistics"))
    data = forged(data, ("no column index",) * 10)
    frame, found = touched(data, columns=["value"], filters=col("note") == FRAME["note"][250])
    assert_same(frame, expected(FRAME.index == 250, ["value"]))
    assert pages(found, "value") == {(1, 2)}


def test_a_read_of_everything_touches_no_index():
    data = to_parquet(FRAME, bloom_filter_options={"key": True, "word": True}, **OPTIONS)
    for options in ({}, {"filters": key >= 0}, {"filters": key.is_not_null() & (col("note") != "x")}):
        frame, found = touched(data, **options)
        assert_same(frame, FRAME)
        assert {region[0] for region in found} == {"page", "dictionary"}


def test_a_range_of_rows_is_read_page_by_page():
    frame, found = touched(DATA, columns=["value", "note"], row_range=(250, 265))
    assert_same(frame, FRAME.loc[250:264, ["value", "note"]].reset_index(drop=True))
    assert pages(found) == {(1, name, page) for name in ("value", "note") for page in (2, 3)}
    frame, found = touched(DATA, columns=["value"], nrows=5)
    assert pages(found) == {(0, "value", 0)}


def test_the_first_rows_that_satisfy():
    filters = col("word") == "w07"
    frame, found = touched(DATA, columns=["value"], filters=filters, nrows=2)
    assert_same(frame, expected(FRAME["word"] == "w07", ["value"])[:2])
    assert {group for group, _ in pages(found, "value")} == {0}


@pytest.mark.parametrize("limit", [50, 1 << 20])
@pytest.mark.parametrize("size", [60, 200, 1000])
def test_windows_without_a_wanted_row(size, limit):
    """Of strings that nobody says who wrote, pages that are not wanted may be needed by later ones."""
    values = ["v" * 80 + str(number % 3) for number in range(13)]
    data = written(pa.table({"x": values}), write_batch_size=10, dictionary_pagesize_limit=limit)
    for made in (data, forged(data, ("by nobody",))):
        with mock.patch.object(column_pages, "WINDOW_BYTES", size):
            assert numbers(made, x == values[0], row_range=(12, 13)) == [12]
            assert read_parquet(made, filters=x == values[2])["x"].tolist() == [values[2]] * 4
            assert read_parquet(made, row_range=(12, 13))["x"].tolist() == values[12:]


def test_a_look_up_in_an_object_store():
    pytest.importorskip("fsspec")
    from object_store import ObjectStore

    rows = 60_000
    big = pd.DataFrame(
        {
            "key": np.arange(rows),
            "value": np.random.default_rng(3).random(rows),
            "text": [f"{row:09d}" for row in range(rows)],
        }
    )
    data = to_parquet(big, row_group_size=20_000, max_rows_per_page=500, use_dictionary=False)
    store = ObjectStore()
    store.pipe("/a", data)
    store.reset()
    frame = read_parquet("/a", filters=[("key", "==", 33_333)], filesystem=store)
    assert_same(frame, big[big["key"] == 33_333].reset_index(drop=True))
    assert store.round_trips <= 4
    assert store.num_bytes < len(data) // 4


@pytest.mark.parametrize("filters", [None, (col("a") > 0.5) | (col("c") > 0.5)])
def test_gaps_between_columns_are_not_fetched(filters):
    """Where the reader was told to fetch over no gap, chunks are not read over one either, which would fetch anew."""
    pytest.importorskip("fsspec")
    from object_store import ObjectStore

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(8000), "b": rng.integers(0, 99, 8000, "i1"), "c": rng.random(8000)})
    # With something long behind the rows, for these not to come along with the footer.
    data = to_parquet(
        frame, compression=None, use_dictionary=False, row_group_size=1000, key_value_metadata={"long": "x" * 100_000}
    )
    store = ObjectStore()
    store.pipe("/a", data)
    store.reset()
    found = read_parquet("/a", ["a", "c"], filters, filesystem=store, coalescing=Coalescing(0, 1 << 20))
    kept = frame[["a", "c"]]
    assert_same(found, kept if filters is None else kept[(kept["a"] > 0.5) | (kept["c"] > 0.5)].reset_index(drop=True))
    with ParquetFile(data) as file:
        chunks = [chunk.meta_data for group in file.metadata.row_groups for chunk in group.columns]
    wanted = sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema != ["b"])
    behind = max(chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks)
    assert sum(stop - start for start, stop in store.requests if stop <= behind) == wanted


# --- other arguments beside -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [["value"], ["key", "value"]])
def test_what_statistics_decide_is_not_fetched_to_be_asked(columns):
    """No byte of a remote file: neither of a column that nobody wants, nor twice of one that is wanted, too."""
    pytest.importorskip("fsspec")
    from object_store import ObjectStore

    store = ObjectStore()
    # With something long behind the rows, for these not to come along with the footer.
    store.pipe("/a", to_parquet(FRAME, key_value_metadata={"long": "x" * 100_000}, **OPTIONS))
    options = {"filesystem": store, "coalescing": Coalescing(gap=0, max_bytes=1 << 20)}
    sizes = []
    for filters in (None, key >= 0, key.is_not_null()):
        store.reset()
        assert_same(read_parquet("/a", columns, filters, **options), FRAME[columns])
        sizes.append(store.num_bytes)
    assert sizes == sizes[:1] * 3


BACKENDS = [{}, {"dtype_backend": "numpy_nullable"}, {"dtype_backend": "pyarrow"}]
MIXED = pd.DataFrame(
    {
        "i": pd.array([1, 2, None, 4] * 5, "Int16"),
        "n": np.arange(20),
        "f": np.arange(20, dtype="f4"),
        "s": ["a", None, "b", "c"] * 5,
        "b": [True, False] * 10,
        "t": pd.date_range("2024", periods=20, tz="UTC"),
        "c": pd.Categorical(["x", "y", None, "z"] * 5),
    }
)


@pytest.mark.parametrize("options", BACKENDS, ids=repr)
@pytest.mark.parametrize("writer", ["numparq", "pyarrow"])
@pytest.mark.parametrize(
    "filters", [col("n") > 100, col("n") == 4.5, (col("s") == "bb") & (col("n") >= 0), col("n").isin([])]
)
def test_nothing_left(options, writer, filters):
    """The dtypes are those of the whole."""
    data = to_parquet(MIXED, row_group_size=8) if writer == "numparq" else written(MIXED, row_group_size=8)
    got, whole = read_parquet(data, filters=filters, **options), read_parquet(data, **options)
    assert_same(got, whole[:0])
    assert list(got.columns) == list(MIXED)


def test_dtypes_are_those_of_the_whole():
    """Integers beside nulls are floats, whatever rows are left."""
    data = written(pa.table({"i": pa.array([1, None, 3, 4]), "b": [True, None, False, True], "n": [0, 1, 2, 3]}))
    for filters in (col("n") >= 2, col("i").is_not_null(), col("n") == 1, col("n") < 0):
        got = read_parquet(data, filters=filters)
        assert got.dtypes.tolist() == read_parquet(data).dtypes.tolist() == [np.float64, object, np.int64]


def test_a_column_that_is_not_read():
    got = read_parquet(DATA, ["note", "value"], key.isin([2, 1998]))
    assert_same(got, expected([1, 999], ["note", "value"]))
    assert list(read_parquet(DATA, [], key < 10).index) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("writer", ["numparq", "pandas"])
def test_a_filter_on_the_index(writer):
    frame = MIXED.set_index(pd.Index(np.arange(20)[::-1] ** 2, name="n"))[["f", "s"]]
    data = to_parquet(frame, row_group_size=6) if writer == "numparq" else _by_pandas(frame)
    whole = read_parquet(data)
    for columns in (None, ["s"], []):
        got = read_parquet(data, columns, filters=col("n").between(4, 11))
        assert_same(got, (whole if columns is None else whole[columns]).iloc[16:18])
    got = read_parquet(data, filters=col("f") > 100)
    assert_same(got, whole[:0])


def _by_pandas(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow")
    return buffer.getvalue()


def test_two_columns_of_the_same_name():
    """As without filters: a name stands for the same one of them."""
    table = pa.table([pa.array([1, 2, 3]), pa.array(["a", "b", "c"]), pa.array([6, 5, 4])], ["x", "y", "x"])
    data = written(table)
    first = read_parquet(data, ["x"]).iloc[:, 0].tolist()
    assert numbers(data, x == first[2]) == [2]
    got = read_parquet(data, filters=col("y") == "b")
    assert_same(got, read_parquet(data).iloc[1:2].reset_index(drop=True))


def test_names_with_dots():
    """A top-level column of just that name comes first; a tuple is a path."""
    struct = pa.array([{"y": 10}, {"y": 20}, {"y": 30}])
    data = written(pa.table({"x.y": [3, 2, 1], "x": struct}))
    assert numbers(data, col("x.y") == 3) == [0]
    assert numbers(data, col(("x", "y")) == 30) == [2]
    assert numbers(data, [("x.y", "<", 3), (("x", "y"), ">", 20)]) == [2]


def test_categories():
    got = read_parquet(DATA, ["word", "key"], col("word").isin(["w00", "w07"]), categories=["word"])
    assert isinstance(got["word"].dtype, pd.CategoricalDtype)
    assert_same(got.astype({"word": "str"}), expected(FRAME["word"].isin(["w00", "w07"]), ["word", "key"]))


def test_categories_of_our_own_stay():
    data = to_parquet(MIXED, row_group_size=8)
    got = read_parquet(data, filters=col("c") == "z")
    assert got["c"].cat.categories.tolist() == ["x", "y", "z"]
    assert got["c"].tolist() == ["z"] * 5


@pytest.mark.parametrize("groups", [[2, 0], [4], [], [1, 1], [3, 1, 3]])
def test_row_groups(groups):
    """In the order wanted, also twice."""
    keep = key.isin([0, 10, 2 * 399, 2 * 400, 2 * 401, 2 * 799, 2 * 999])
    whole = read_parquet(DATA, row_groups=groups)
    wanted = whole[whole["key"].isin([0, 10, 798, 800, 802, 1598, 1998])].reset_index(drop=True)
    assert_same(read_parquet(DATA, filters=keep, row_groups=groups), wanted)
    assert_same(read_parquet(DATA, filters=keep, row_groups=groups, nrows=2), wanted[:2])
    assert_same(
        read_parquet(DATA, filters=col("note").like("%9"), row_groups=groups, threads=3),
        whole[whole["note"].str.endswith("9")].reset_index(drop=True),
    )


def test_rows_are_chosen_before_filters_and_counted_behind_them():
    keep = col("word") == "w07"
    rows = [row for row in range(101, 750) if FRAME["word"][row] == "w07"]
    got = read_parquet(DATA, ["key"], keep, row_range=(101, 750), nrows=7, include=["row_group", "row_number"])
    assert got["row_number"].tolist() == rows[:7]
    assert got["row_group"].tolist() == [row // GROUP for row in rows[:7]]
    assert got["key"].tolist() == [2 * row for row in rows[:7]]
    assert isinstance(got.index, pd.RangeIndex)
    assert len(read_parquet(DATA, ["key"], keep, nrows=0)) == 0


def test_damage_is_not_skipped():
    """What is lost answers no filter; so on_error="skip" is refused, before anything is read."""
    with pytest.raises(UnsupportedError, match="on_error='skip' does not go with filters"):
        read_parquet(DATA, ["value"], key == 8, on_error="skip")
    start, stop = regions(DATA)["page", 1, "key", 2]
    with pytest.raises(ParquetError, match="column 'key'"):
        read_parquet(_spoilt(start, stop), ["value"], key == 500)


def _spoilt(start, stop):
    return DATA[:start] + b"\xff" * (stop - start) + DATA[stop:]


def test_damage_where_no_row_is_wanted():
    start, stop = regions(DATA)["page", 1, "value", 2]
    frame = read_parquet(_spoilt(start, stop), filters=key.between(2 * 300, 2 * 310))
    assert_same(frame, expected(FRAME["key"].between(600, 620)))


def test_explode():
    """The filter chooses rows of the file; their elements follow."""
    table = pa.table({"n": [1, 2, 3, 4], "l": [[1, 2], None, [], [5, None, 7]]})
    data = written(table, row_group_size=2)
    whole = read_parquet(data, explode="l")
    got = read_parquet(data, explode="l", filters=col("n") >= 2)
    assert_same(got, whole[whole["n"] >= 2].reset_index(drop=True), loose=True)
    got = read_parquet(data, explode="l", filters=col("l").contains(7))
    assert_same(got, whole[whole["n"] == 4].reset_index(drop=True), loose=True)


class Telling(io.BytesIO):
    """A file object that does something when it is read for the n-th time."""

    def __init__(self, data, number, what):
        super().__init__(data)
        self.left, self.what = number, what

    def readinto(self, out):
        self.left -= 1
        if self.left == 0:
            self.what()
        return super().readinto(out)


@pytest.mark.parametrize("filters", [None, key >= 100, col("note").like("%7%")], ids=repr)
@pytest.mark.parametrize("given", [{"values": [2 * 50, 2 * 450, 2 * 451, 7, None]}, {"low": 800, "high": 2 * 450}])
def test_a_runtime_filter_that_arrives_meanwhile(filters, given):
    """From then on rows that do not pass are left out; those that pass are all there, in their order."""
    whole = read_parquet(DATA, filters=filters)["key"].tolist()
    late = RuntimeFilter("key")
    assert read_parquet(DATA, filters=filters, runtime_filters=[late])["key"].tolist() == whole
    known = read_parquet(DATA, filters=filters, runtime_filters=[RuntimeFilter("key", **given)])["key"].tolist()
    passes = (lambda value: value in given["values"]) if "values" in given else lambda value: 800 <= value <= 900
    assert known == [value for value in whole if passes(value)]
    for number in (1, 2, 3, 4, 5, 7, 9, 12, 20):
        for threads in (1, 3):
            late = RuntimeFilter("key")
            source = Telling(DATA, number, partial(late.arrive, **given))
            got = read_parquet(source, ["key"], filters, runtime_filters=[late], threads=threads)["key"].tolist()
            assert [value for value in got if passes(value)] == known
            assert set(got) <= set(whole)
            assert got == sorted(got)


def test_one_file_read_many_times():
    """What was read of the indexes stays with the file."""
    source = io.BytesIO(DATA)
    with ParquetFile(source) as file:
        for row in (250, 251, 999, 0):
            assert_same(file.read(filters=key == 2 * row), expected([row]))
        before = file.source.num_requests
        file.read(["value"], filters=key == 2 * 250)
        again = file.source.num_requests
        file.read(["value"], filters=key == 2 * 251)
        assert file.source.num_requests - again <= again - before <= 3
        assert_same(file.read(), FRAME)


def test_files_without_rows():
    for data in (to_parquet(FRAME[:0]), written(pa.table({"key": pa.array([], pa.int64())}))):
        whole = read_parquet(data)
        assert_same(read_parquet(data, filters=key > 3), whole)
        assert_same(read_parquet(data, ["key"], (key > 3) | key.is_null()), whole[["key"]])


def test_an_index_that_contradicts_the_pages():
    """An offset index is taken at its word only if the pages agree."""
    data = forged(DATA, ("lie: moved",))
    try:
        frame = read_parquet(data, filters=key == 500)
    except InvalidFileError:
        return
    assert frame["key"].tolist() in ([500], [])
