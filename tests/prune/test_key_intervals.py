"""Pruning of one container by its statistics, one trap per case; the scalar reference must agree."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.expr.bind import bind
from numparq.expr.sort_keys import key_domain
from numparq.format.column_order import INT96_ORDER, NO_ORDER, TOTAL_ORDER, TYPE_ORDER, leaf_order
from numparq.prune.bloom_filters import bloom_hashes
from numparq.prune.key_intervals import key_intervals
from numparq.prune.statistics import ContainerStatistics, PruningStatistics
from support.filters.leaf_kinds import StubFlatSchema, int96, leaf
from support.oracles.match_one import as_arrays
from support.oracles.match_one import checked_may_match as may_match
from support.oracles.match_one import checked_must_match as must_match
from support.oracles.pruning import facts_of

X, NAN = col("x"), float("nan")
INTEGER, UNSIGNED, TEXT = leaf(1), leaf(1, "INTEGER", bit_width=32, signed=False), leaf(6, "STRING")
DOUBLE, SMALL, MOMENT = leaf(5), leaf(1, "INTEGER", bit_width=8, signed=True), leaf(3)
UNSCALED = leaf(6, "DECIMAL", precision=10, scale=0)
CODES = {id(INTEGER): "<i", id(UNSIGNED): "<I", id(DOUBLE): "<d", id(SMALL): "<i"}


def plain(column, value):
    if value is None or isinstance(value, bytes):
        return value
    return struct.pack(CODES[id(column)], value)


def column_statistics(column, low=None, high=None, *, order=TYPE_ORDER, rows=10, **more):
    return ContainerStatistics(rows, plain(column, low), plain(column, high), order=leaf_order(column, order), **more)


def may(expression, column, statistics):
    return may_match(bind(expression, StubFlatSchema([column])), {0: statistics})


def must(expression, column, statistics):
    return must_match(bind(expression, StubFlatSchema([column])), {0: statistics})


@pytest.mark.parametrize(
    ("column", "expression", "statistics", "expected"),
    [
        # bounds
        (INTEGER, X > 5, column_statistics(INTEGER, 1, 5), False),
        (INTEGER, X >= 5, column_statistics(INTEGER, 1, 5), True),
        (INTEGER, X < 1, column_statistics(INTEGER, 1, 5), False),
        (INTEGER, X < 1, column_statistics(INTEGER, None, 5), True),
        (INTEGER, X > 5, column_statistics(INTEGER, None, 5), False),
        (INTEGER, X.isin([0, 9]), column_statistics(INTEGER, 1, 5), False),
        (INTEGER, X.isin([0, 3, 9]), column_statistics(INTEGER, 1, 5), True),
        (INTEGER, X.between(6, 7), column_statistics(INTEGER, 1, 5), False),
        (INTEGER, X > 5, column_statistics(INTEGER, 5, 1), True),
        (INTEGER, X > 5, column_statistics(INTEGER, b"\x01", b"\x02"), True),
        (INTEGER, X > 5, ContainerStatistics(10, plain(INTEGER, 1), plain(INTEGER, 5), order=NO_ORDER), True),
        (INTEGER, X > 5, ContainerStatistics(0), False),
        (INTEGER, (X > 5) | (X == 3), column_statistics(INTEGER, 1, 5), True),
        # another order than the column's
        (
            UNSIGNED,
            X > 5,
            ContainerStatistics(10, plain(INTEGER, 1), plain(INTEGER, 5), order=leaf_order(INTEGER)),
            True,
        ),
        (UNSIGNED, X > 2**31, column_statistics(UNSIGNED, 1, 2**32 - 1), True),
        # bounds beyond INT8 do not compare
        (SMALL, X == 1, column_statistics(SMALL, 257, 257), True),
        # nulls
        (INTEGER, X.is_null(), column_statistics(INTEGER, 1, 5), True),
        (INTEGER, X.is_null(), column_statistics(INTEGER, 1, 5, null_count=0), False),
        (INTEGER, X.is_not_null(), column_statistics(INTEGER, null_count=10), False),
        (INTEGER, X.is_not_null(), column_statistics(INTEGER, null_count=9), True),
        (INTEGER, X.is_not_null(), column_statistics(INTEGER, all_null=True), False),
        (INTEGER, X != 3, column_statistics(INTEGER, all_null=True), False),
        (INTEGER, X.is_null(), column_statistics(INTEGER, all_null=True, null_count=0), True),
        # != and not in
        (INTEGER, X != 3, column_statistics(INTEGER, 3, 3), False),
        (INTEGER, X != 3, column_statistics(INTEGER, 3, 4), True),
        (INTEGER, X.not_in([3, 4]), column_statistics(INTEGER, 3, 4), False),
        (DOUBLE, X != 3, column_statistics(DOUBLE, 3.0, 3.0), True),
        (DOUBLE, X != 3, column_statistics(DOUBLE, 3.0, 3.0, nan_count=1), True),
        (DOUBLE, X != 3, column_statistics(DOUBLE, 3.0, 3.0, nan_count=0), False),
        (TEXT, X != "a", column_statistics(TEXT, b"a", b"a"), True),
        (TEXT, X != "a", column_statistics(TEXT, b"a", b"a", is_exact=True), False),
        (TEXT, X == "b", column_statistics(TEXT, b"a", b"a"), False),
        # NaN
        (DOUBLE, ~(X > 3), column_statistics(DOUBLE, 5.0, 6.0), True),
        (DOUBLE, X <= 3, column_statistics(DOUBLE, 5.0, 6.0), False),
        (DOUBLE, ~(X > 3), column_statistics(DOUBLE, 5.0, 6.0, nan_count=0), False),
        (DOUBLE, X > 3, column_statistics(DOUBLE, NAN, NAN), True),
        (DOUBLE, X > 3, column_statistics(DOUBLE, 1.0, NAN), True),
        (DOUBLE, X > 3, column_statistics(DOUBLE, NAN, 1.0), True),
        (DOUBLE, X > 3, column_statistics(DOUBLE, NAN, NAN, order=TOTAL_ORDER), False),
        (DOUBLE, X != 3, column_statistics(DOUBLE, NAN, NAN, order=TOTAL_ORDER), True),
        (DOUBLE, X > 3, column_statistics(DOUBLE, null_count=4, nan_count=6), False),
        (DOUBLE, ~(X > 3), column_statistics(DOUBLE, null_count=4, nan_count=6), True),
        (DOUBLE, X.isin([NAN]), column_statistics(DOUBLE, nan_count=5), False),
        (DOUBLE, X == NAN, column_statistics(DOUBLE), False),
        # zeros
        (DOUBLE, X == 0, column_statistics(DOUBLE, -1.0, -0.0), True),
        (DOUBLE, X >= 0, column_statistics(DOUBLE, -1.0, -0.0), True),
        (DOUBLE, X == -0.0, column_statistics(DOUBLE, 0.0, 1.0), True),
        (DOUBLE, X <= -0.0, column_statistics(DOUBLE, 0.0, 1.0, order=TOTAL_ORDER), True),
        (DOUBLE, X < 0, column_statistics(DOUBLE, 0.0, 1.0), False),
        (DOUBLE, X == 0, column_statistics(DOUBLE, 0.0, -0.0), True),
        # strings with truncated bounds
        (TEXT, X.startswith("abc"), column_statistics(TEXT, b"ab", b"ac"), True),
        (TEXT, X.startswith("abc"), column_statistics(TEXT, b"abd", b"ac"), False),
        (TEXT, X.startswith("b"), column_statistics(TEXT, b"a", b"b"), True),
        (TEXT, X.startswith("b"), column_statistics(TEXT, b"a", b"az"), False),
        (TEXT, X.like("b%x"), column_statistics(TEXT, b"c", b"d"), False),
        (TEXT, X.like("%x"), column_statistics(TEXT, b"c", b"d"), True),
        (TEXT, ~X.like("b%x"), column_statistics(TEXT, b"b", b"b", is_exact=True), True),
        (TEXT, ~X.startswith("b"), column_statistics(TEXT, b"b1", b"b2"), False),
        # decimals of any length, INT96
        (UNSCALED, X > 5, column_statistics(UNSCALED, b"\xff", b"\x00\x05"), False),
        (UNSCALED, X < 0, column_statistics(UNSCALED, b"\xff\xff", b"\x05"), True),
        (MOMENT, X > "1970-01-01", column_statistics(MOMENT, int96(-5), int96(0), order=INT96_ORDER), False),
        (MOMENT, X > "1970-01-01", column_statistics(MOMENT, int96(-5), int96(0)), True),
        (
            MOMENT,
            X > "1970-01-01",
            column_statistics(MOMENT, b"\xff" * 11 + b"\x80", int96(0), order=INT96_ORDER),
            True,
        ),
    ],
)
def test_may_match(column, expression, statistics, expected):
    assert may(expression, column, statistics) is expected


@pytest.mark.parametrize(
    ("column", "expression", "statistics", "expected"),
    [
        (INTEGER, X > 0, column_statistics(INTEGER, 1, 5, null_count=0), True),
        (INTEGER, X > 0, column_statistics(INTEGER, 1, 5), False),
        (INTEGER, X > 1, column_statistics(INTEGER, 1, 5, null_count=0), False),
        (INTEGER, X > 0, column_statistics(INTEGER, 1, None, null_count=0), True),
        (INTEGER, X.is_not_null(), column_statistics(INTEGER, null_count=0), True),
        (INTEGER, X.is_null(), column_statistics(INTEGER, null_count=10), True),
        (INTEGER, X.is_null(), column_statistics(INTEGER, null_count=9), False),
        (DOUBLE, X > 0, column_statistics(DOUBLE, 1.0, 5.0, null_count=0), False),
        (DOUBLE, X > 0, column_statistics(DOUBLE, 1.0, 5.0, null_count=0, nan_count=0), True),
        (DOUBLE, ~(X < 0), column_statistics(DOUBLE, 1.0, 5.0, null_count=0), True),
        (DOUBLE, X != 9, column_statistics(DOUBLE, null_count=0, nan_count=10), True),
        (TEXT, X.startswith("a"), column_statistics(TEXT, b"a", b"az", null_count=0), True),
        (TEXT, ~X.like("b%x"), column_statistics(TEXT, b"c", b"d", null_count=0), True),
        (TEXT, X.like("b%x"), column_statistics(TEXT, b"b", b"bz", null_count=0), False),
    ],
)
def test_must_match(column, expression, statistics, expected):
    assert must(expression, column, statistics) is expected


def test_null_count_in_groups_does_not_prune_is_null():
    column = replace(INTEGER, path=("s", "x"), max_definition_level=2)
    schema = SimpleNamespace(
        columns=["s"],
        positions={"s": 0},
        num_leaves=1,
        flat_leaf=lambda place: None,
        column_element=lambda place: 1,
        leaf=lambda place: column,
        column_leaves=lambda place: range(1),
        schema_element=lambda number: SimpleNamespace(
            name=".sx"[number], repetition=1, leaf=None if number == 1 else 0, children=[2]
        ),
    )
    none, every = column_statistics(INTEGER, 1, 5, null_count=0), column_statistics(INTEGER, 1, 5, null_count=10)
    for expression in (col("s.x").is_null(), col("s.x").is_not_null(), col("s").is_null(), col("s").is_not_null()):
        for statistics in (none, every):
            assert may_match(bind(expression, schema), {0: statistics})
            assert not must_match(bind(expression, schema), {0: statistics})
    assert not may_match(bind(col("s.x") > 5, schema), {0: none})
    assert not must_match(bind(col("s.x") > 0, schema), {0: none})
    assert not may_match(bind(col("s.x").is_not_null(), schema), {0: none._replace(all_null=True)})


def test_keys_follow_the_domain():
    arrays = as_arrays(column_statistics(SMALL, 257, 258))
    for column, low, high in ((SMALL, -128, 127), (INTEGER, 257, 258), (SMALL, -128, 127)):
        keys = key_intervals(arrays, column, key_domain(column))
        assert (keys.lows.tolist(), keys.highs.tolist(), keys.interval(0)) == ([low], [high], (low, high + 1))
    narrow = key_intervals(arrays, INTEGER, key_domain(SMALL))
    assert narrow is key_intervals(arrays, INTEGER, key_domain(SMALL))
    assert (narrow.lows.tolist(), key_intervals(arrays, INTEGER, key_domain(INTEGER)).lows.tolist()) == ([-128], [257])


def test_columns_without_statistics():
    bound = bind((X > 5) & col("y").is_null(), StubFlatSchema([INTEGER, leaf(1, name="y")]))
    assert may_match(bound, {})
    assert not must_match(bound, {})
    assert not may_match(bound, {0: column_statistics(INTEGER, 1, 5)})


def test_container_statistics_from_chunk_statistics():
    statistics = SimpleNamespace(
        min_value=b"a",
        max_value=b"b",
        min=None,
        max=None,
        null_count=2,
        nan_count=None,
        is_min_value_exact=True,
        is_max_value_exact=None,
    )
    found = facts_of(statistics, 10, TEXT, leaf_order(TEXT), None)
    assert found == ContainerStatistics(10, b"a", b"b", 2, None, False, order=leaf_order(TEXT))
    statistics.is_max_value_exact = True
    assert facts_of(statistics, 10, TEXT, leaf_order(TEXT), None).is_exact
    assert facts_of(None, 10, TEXT, leaf_order(TEXT), None).min_value is None
    deprecated = SimpleNamespace(
        **{**vars(statistics), "min_value": None, "max_value": None, "min": plain(INTEGER, 1), "max": plain(INTEGER, 5)}
    )
    assert not may(X > 5, INTEGER, facts_of(deprecated, 10, INTEGER, leaf_order(INTEGER), None))
    assert may(X > 5, UNSIGNED, facts_of(deprecated, 10, UNSIGNED, leaf_order(UNSIGNED), None))


def test_statistics_written_by_numparq():
    frame = pd.DataFrame({"x": np.arange(10.0), "t": pd.date_range("2020", periods=10)})
    file = numparq.ParquetFile(io.BytesIO(numparq.to_parquet(frame)))
    chunks = file.metadata.row_groups[0].columns
    statistics = {
        place: facts_of(chunk.meta_data.statistics, 10, leaf_, leaf_order(leaf_, order), "numparq version 0.1.0")
        for place, (chunk, leaf_, order) in enumerate(zip(chunks, file.schema, (TOTAL_ORDER, TYPE_ORDER), strict=True))
    }
    assert not may_match(bind(X > 9, file.schema), statistics)
    assert may_match(bind((X > 8) & (col("t") >= "2020-01-10"), file.schema), statistics)
    assert not may_match(bind(col("t") > "2020-01-10", file.schema), statistics)
    assert must_match(bind(col("t") >= "2020-01-01", file.schema), statistics)


def probes(expression, column):
    return bloom_hashes(bind(expression, StubFlatSchema([column])))


def test_predicates_without_bloom_probes():
    for expression in (X != 3, X > 3, X.is_null(), ~X.isin([3])):
        assert probes(expression, INTEGER) is None
    for column in (leaf(0), SMALL, UNSCALED):
        assert probes(X == 1, column) is None
    assert probes(X == "1970-01-01", MOMENT) is None
    assert probes(X != NAN, DOUBLE) is None
    assert probes(~X.like("a%b"), TEXT) is None
    assert probes(X.like("a%b"), TEXT) is None


def test_bloom_probes_of_predicates():
    assert len(probes(X == 0, DOUBLE)) == len(probes(X == -0.0, DOUBLE)) == 2
    assert len(probes(X.isin([0.0, 1.5, NAN]), DOUBLE)) == 3
    assert len(probes(X.between(3, 6), INTEGER)) == 4
    assert probes(X.isin([5, 7]), INTEGER).tolist() == [probes(X.isin([n]), INTEGER)[0] for n in (5, 7)]
    assert len(probes(X.isin(["a", "a\0", "a\0\0", "b"]), TEXT)) == 4
    assert probes(X == "a", TEXT)[0] == probes(X.like("a"), TEXT)[0]


def test_bounds_of_strings_hold_all_that_may_have_been_truncated_to_them() -> None:
    data = np.frombuffer(b"aab\xff", np.uint8)
    lows = np.array([[0, 1], [0, 1], [0, 1], [3, 1], [-1, 0]])
    highs = np.array([[0, 1], [0, 1], [2, 1], [3, 1], [2, 1]])
    nothing, no = np.full(5, -1), np.zeros(5, np.bool_)
    is_exact = np.array([True, False, False, False, True])
    statistics = PruningStatistics(data, lows, highs, np.full(5, 9), nothing, nothing, no, is_exact, leaf_order(TEXT))
    lower, upper, known = key_intervals(statistics, TEXT, key_domain(TEXT)).bounds()
    assert known.tolist() == [True, True, True, False, False]  # no bytes are greater than all that begin with 0xff
    assert list(zip(lower[:3], upper[:3], strict=True)) == [(b"a", b"a"), (b"a", b"b"), (b"a", b"b")]
