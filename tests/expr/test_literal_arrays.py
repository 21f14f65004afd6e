"""Lists of literals taken as arrays: the key ranges that each literal by itself gives, whatever holds them."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import col
from numparq.expr import literal_arrays
from numparq.expr.expression import LiteralError
from numparq.expr.key_ranges import union
from numparq.expr.literal_arrays import in_list_ranges
from numparq.expr.literals import locate_literal
from numparq.expr.sort_keys import key_domain
from support.filters.leaf_kinds import KINDS

MOMENT = dt.datetime(2026, 7, 1, 12, 30, 15, 250_001)
BERLIN = dt.timezone(dt.timedelta(hours=2))
TYPES = ("int8", "uint32", "int64", "uint64", "float", "double", "bool", "decimal32", "decimal fixed", "date")
TYPES += ("time ns", "timestamp ms", "timestamp ns", "timestamp us utc", "string", "binary", "enum", "fixed", "int96")
LISTS = {
    "ints": [*range(-3, 9), 127, 128, 255, 256, 2**31, -(2**31) - 1, 2**62],
    "large ints": [2**64 - 1, 2**63, 5, -(2**63)],
    "huge ints": [2**64, 10**30, 7],
    "bools and ints": [True, 3],
    "floats": [0.5, 1.0, -0.0, float("inf"), 2.0**60, 1.1],
    "NaN": [float("nan"), 1.0],
    "numpy floats": [np.float64(1.1), np.float64(0.5)],
    "narrow floats": [np.float32(1.1), np.float32(0.5)],
    "decimals": [Decimal("1.10"), Decimal("7"), Decimal("-0.03"), Decimal("1e20")],
    "decimals between": [Decimal("1.105"), Decimal("2.5")],
    "decimals that are not finite": [Decimal("Infinity"), Decimal("NaN"), Decimal(1)],
    "datetimes": [MOMENT, MOMENT.replace(microsecond=0), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)],
    "zoned datetimes": [MOMENT.replace(tzinfo=dt.UTC), MOMENT.replace(tzinfo=BERLIN)],
    "some zoned": [MOMENT, MOMENT.replace(tzinfo=dt.UTC)],
    "timestamps": [pd.Timestamp(MOMENT), pd.Timestamp("2026-07-01 00:00:00.000000001")],
    "dates": [dt.date(2026, 7, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "dates and datetimes": [dt.date(2026, 7, 1), MOMENT],
    "strings": [f"key {number}" for number in range(30)] + ["", "ä", "key 7", "\0"],
    "few strings": ["b", "a"],
    "surrogates": ["a"] * 9 + ["\ud800"],
    "bytes": [b"%d" % number for number in range(30)] + [b"", b"\xff"],
    "mixed": [1, "a", b"b"],
    "empty": [],
}


@pytest.fixture(autouse=True)
def short_lists(monkeypatch):
    """Take lists of any length as arrays."""
    monkeypatch.setattr(literal_arrays, "_FEW", -1)


def domain_of(kind):
    return key_domain(KINDS[kind].leaf)


def located(values, domain):
    return union(at for at in (locate_literal(value, domain) for value in values) if at is not None)


@pytest.mark.parametrize("values", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("kind", TYPES)
def test_lists(kind, values):
    domain = domain_of(kind)
    try:
        expected = located(values, domain)
    except LiteralError:
        found = in_list_ranges(tuple(values), domain)
        assert found is None or not len(values)
    else:
        found = in_list_ranges(tuple(values), domain)
        assert found is None or union(found) == expected


ARRAYS = {
    "int64": np.array([3, -1, 2**40]),
    "uint64": np.array([3, 2**64 - 1], np.uint64),
    "big-endian": np.array([3, 4], ">i4"),
    "strided": np.arange(20)[::3],
    "float64": np.array([1.1, np.nan, -0.0]),
    "float32": np.array([1.1, 0.5], np.float32),
    "datetime64": np.array(["2026-07-01", "NaT", "2026-07-01T12:30:15.250"], "M8[ms]"),
    "datetime64 hours": np.array(["2026-07-01"], "M8[h]"),
    "objects": np.array(["a", None, "b"], object),
    "str": np.array(["a", "b"]),
    "Series of ints": pd.Series([5, 6], index=[7, 9]),
    "Series of float32": pd.Series([1.1, 0.5], dtype="float32"),
    "Series of Float32": pd.Series([1.1, None], dtype="Float32"),
    "Series of Int64": pd.Series([1, None], dtype="Int64"),
    "Series of str": pd.Series(["a", None, "ä"] * 5),
    "Series of datetimes": pd.Series([pd.Timestamp(MOMENT), pd.NaT]),
    "Series of zoned datetimes": pd.Series([pd.Timestamp(MOMENT, tz="Europe/Berlin"), pd.NaT]),
    "Series of categories": pd.Series(["a", "b", None], dtype="category"),
    "Series of bools": pd.Series([True, False]),
    "Series of Arrow ints": pd.Series([1, None], dtype=pd.ArrowDtype(pa.int32())),
    "Series of Arrow floats": pd.Series([1.1, None], dtype=pd.ArrowDtype(pa.float32())),
    "Series of Arrow decimals": pd.Series([Decimal("1.10"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "Index": pd.Index([1, 2]),
    "RangeIndex": pd.RangeIndex(5),
    "DatetimeIndex": pd.date_range("2026-07-01", periods=3, tz="UTC"),
    "Arrow ints": pa.array([1, None, 3]),
    "Arrow strings": pa.array([*"abcdefghijkl", None]).slice(2),
    "Arrow views": pa.array(["a", None], pa.string_view()),
    "Arrow binary": pa.array([b"a", b"\xff"] * 6),
    "Arrow dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "Arrow chunks": pa.chunked_array([["a"], ["b", None]]),
    "Arrow timestamps": pa.array([MOMENT, None], pa.timestamp("us")),
    "Arrow instants": pa.array([MOMENT, None], pa.timestamp("us", "Europe/Berlin")),
    "Arrow dates": pa.array([dt.date(2026, 7, 1), None]),
    "Arrow decimals": pa.array([Decimal("1.10"), None]),
    "Arrow bools": pa.array([True, None]),
}


@pytest.mark.parametrize("values", ARRAYS.values(), ids=ARRAYS)
def test_arrays(values):
    """An array means its literals one by one, for every type of column; nulls among them are ignored."""
    operand = col("a").isin(values).operand
    assert len(operand) == len([*operand])
    for kind in TYPES:
        domain = domain_of(kind)
        found = in_list_ranges(operand, domain)
        try:
            expected = located(operand, domain)
        except LiteralError:
            assert found is None
        else:
            assert found is None or union(found) == expected


@pytest.mark.parametrize("values", ARRAYS.values(), ids=ARRAYS)
def test_predicates_of_arrays(values):
    predicate = col("a").isin(values)
    if not any(value != value for value in predicate.operand):  # NaN
        assert predicate == col("a").isin(values)
    assert hash(predicate) == hash(col("a").isin(values))
    assert predicate != col("a").isin(values[:0])
    assert repr(pickle.loads(pickle.dumps(predicate))) == repr(predicate)
    assert repr(predicate).startswith("col('a').isin([")


def test_later_changes_of_an_array_do_not_matter():
    for values in (np.arange(5), pd.Series(np.arange(5))):
        predicate = col("a").isin(values)
        before = copy.copy(values)
        values[:] = 9
        assert [*predicate.operand] == [*before]


FRAME = pd.DataFrame(
    {
        "int": np.arange(2000) * 7 % 1999,
        "float": np.arange(2000) / 4,
        "text": [f"customer number {number:06}" for number in range(2000)],
        "price": [Decimal(number) / 100 for number in range(2000)],
        "wide": pd.array([Decimal(number) / 100 for number in range(2000)], pd.ArrowDtype(pa.decimal128(30, 2))),
        "time": pd.date_range("2026-07-01", periods=2000, freq="7min"),
        "instant": pd.date_range("2026-07-01", periods=2000, freq="7min", tz="Europe/Berlin"),
        "day": [dt.date(2026, 1, 1) + dt.timedelta(number % 300) for number in range(2000)],
    }
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("isin") / "t.parquet"
    numparq.to_parquet(FRAME, path, row_group_size=500, max_rows_per_page=100)
    return path


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("step", [3, 97])
@pytest.mark.parametrize("name", FRAME)
def test_reads(path, name, step, negated):
    """The rows that pandas' isin gives, by a list, a Series and an Arrow array, beside rows that no file has."""
    column = FRAME[name]
    expected = FRAME[~column.isin(column[::step])] if negated else FRAME[column.isin(column[::step])]
    for values in (column[::step].tolist(), column[::step], pa.array(column[::step])):
        predicate = col(name).not_in(values) if negated else col(name).isin(values)
        found = numparq.read_parquet(path, filters=predicate)
        assert found["int"].tolist() == expected["int"].tolist()
