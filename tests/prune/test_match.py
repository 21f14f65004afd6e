"""Vectorized pruning of many containers must match scalar pruning of each."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.expr.bind import bind
from numparq.expr.bound import BloomPredicate, ContainsPredicate, NullPredicate, ValuePredicate, bound_predicates
from numparq.expr.column import col
from numparq.expr.sort_keys import key_domain
from numparq.format.bloom_filter import BloomFilter
from numparq.format.column_order import INT96_ORDER, NO_ORDER, TOTAL_ORDER, TYPE_ORDER, leaf_order
from numparq.format.page_index import UNKNOWN
from numparq.prune.key_intervals import key_intervals
from numparq.prune.match import (
    containers_may_match,
    containers_must_match,
    predicate_may_match,
    predicate_must_match,
)
from numparq.prune.statistics import PruningStatistics, valid_counts
from support.filters.leaf_kinds import KINDS
from support.filters.strategies import expressions, schema_of
from support.oracles.match_one import may_match, must_match


def orders_of(leaf):
    found = [leaf_order(leaf, TYPE_ORDER), leaf_order(leaf, TOTAL_ORDER), leaf_order(leaf, INT96_ORDER), NO_ORDER]
    return st.sampled_from([*found[:2], *found])


@st.composite
def container_statistics(draw, name):
    """Draw statistics with arbitrary bounds (any order, odd lengths, absent) and counts."""
    kind = KINDS[name]
    bound = st.none() | kind.stored.map(kind.plain) | kind.stored.map(kind.plain) | st.binary(max_size=17)
    plain = draw(st.lists(st.tuples(bound, bound), min_size=1, max_size=5))
    data, places = bytearray(b"?"), []
    for pair in plain:
        for value in pair:
            places.append((UNKNOWN, 0) if value is None else (len(data), len(value)))
            data += value or b""
    ends = np.array(places, np.int64).reshape(-1, 2, 2)
    count = len(plain)
    numbers = st.lists(st.integers(UNKNOWN, 3), min_size=count, max_size=count).map(lambda n: np.array(n, np.int64))
    flags = st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
    num_values = draw(numbers)
    nulls, nans = (np.minimum(draw(numbers), np.where(num_values < 0, 3, num_values)) for _ in "ab")
    return PruningStatistics(
        np.frombuffer(bytes(data), np.uint8),
        ends[:, 0],
        ends[:, 1],
        num_values,
        nulls,
        nans,
        draw(flags),
        draw(flags),
        draw(orders_of(kind.leaf)),
    )


@pytest.mark.quick_cases(14)
@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_vectorized_pruning_matches_scalar(name, data):
    containers = data.draw(container_statistics(name))
    schema = schema_of(name)
    if data.draw(st.booleans()):
        schema.leaves[0] = replace(schema.leaves[0], max_definition_level=0)
    bound = bind(data.draw(expressions(name)), schema)
    each = [{0: containers.container(run)} for run in range(len(containers))]
    assert containers_may_match(bound, {0: containers}, len(containers)).tolist() == [
        may_match(bound, facts) for facts in each
    ]
    assert containers_must_match(bound, {0: containers}, len(containers)).tolist() == [
        must_match(bound, facts) for facts in each
    ]


@pytest.mark.parametrize("name", ["int64", "double", "string"])
@given(data=st.data())
def test_vectorized_pruning_of_lists_matches_scalar(name, data):
    containers = data.draw(container_statistics(name))
    leaf = replace(KINDS[name].leaf, path=(name, "list", "element"), max_definition_level=3, max_repetition_level=1)
    bound = bind(data.draw(expressions(name)), schema_of(name))
    for test in bound_predicates(bound):
        inner = replace(test, leaf=leaf)
        for predicate in (
            [inner]
            if isinstance(test, NullPredicate)
            else [inner, *(ContainsPredicate(leaf, 1, inner, no) for no in (0, 1))]
        ):
            each = [{leaf.index: containers.container(run)} for run in range(len(containers))]
            assert predicate_may_match(predicate, containers).tolist() == [
                may_match(predicate, facts) for facts in each
            ]
            assert predicate_must_match(predicate, containers).tolist() == [
                must_match(predicate, facts) for facts in each
            ]


def test_columns_without_statistics():
    bound = bind((col("int64") > 5) | col("string").is_null(), schema_of("int64", "string"))
    assert containers_may_match(bound, {}, 3).tolist() == [True] * 3
    assert containers_must_match(bound, {}, 3).tolist() == [False] * 3


@given(containers=container_statistics("int64"))
def test_vectorized_bloom_predicate_matches_scalar(containers):
    leaf = schema_of("int64").leaves[0]
    test = BloomPredicate(leaf, key_domain(leaf), BloomFilter(np.zeros(32, np.uint8)))
    each = [{0: containers.container(run)} for run in range(len(containers))]
    assert predicate_may_match(test, containers).tolist() == [may_match(test, facts) for facts in each]
    assert predicate_must_match(test, containers).tolist() == [must_match(test, facts) for facts in each]


def strings(*pairs):
    data, places = b"", []
    for value in (value for pair in pairs for value in pair):
        places.append((len(data), len(value)))
        data += value
    ends = np.array(places, np.int64).reshape(-1, 2, 2)
    known = PruningStatistics.unknown(np.full(len(pairs), 9))
    return replace(
        known,
        data=np.frombuffer(data, np.uint8),
        lows=ends[:, 0],
        highs=ends[:, 1],
        order=leaf_order(KINDS["string"].leaf),
    )


ZERO, NAN = 0.0, float("nan")
PAIRS = {
    "double": [
        (None, None),
        (5.0, 5.0),
        (5.0, 6.0),
        (None, 6.0),
        (5.0, None),
        (6.0, 5.0),
        (NAN, 6.0),
        (NAN, NAN),
        (5.0, NAN),
        (ZERO, 1.0),
        (-1.0, -ZERO),
        (ZERO, -ZERO),
    ],
    "int64": [
        (None, None),
        (5, 5),
        (5, 6),
        (None, 6),
        (5, None),
        (6, 5),
        (b"\6\0\0\0", 6),
        (5, b""),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
    ],
    "int8": [(5, 6), (257, 6), (5, 257), (-129, 6), (128, None), (127, None), (None, -128)],
    "string": [
        (None, None),
        (b"b", b"b"),
        (b"a", b"b"),
        (b"b1", b"b2"),
        (b"c", b"d"),
        (b"d", b"e"),
        (b"d", b"a"),
        (b"c", None),
    ],
}
PREDICATES = {
    "double": [
        lambda x: x > 5.5,
        lambda x: x >= 5,
        lambda x: ~(x > 6),
        lambda x: ~(x > 0),
        lambda x: x != 5,
        lambda x: x.isin([4, 5, 7]),
        lambda x: x.not_in([5, 6]),
        lambda x: x == 0,
        lambda x: x <= -ZERO,
        lambda x: x == float("inf"),
        lambda x: x == float("-inf"),
        lambda x: ~(x > 5.5) | (x > 5.5),
    ],
    "int64": [
        lambda x: x > 5,
        lambda x: x >= 5,
        lambda x: x < 5,
        lambda x: x != 5,
        lambda x: x.isin([4, 5, 7]),
        lambda x: x.not_in([5, 6]),
        lambda x: x.isin([1, 9]),
        lambda x: x == 2**63 - 1,
        lambda x: x == -(2**63),
    ],
    "int8": [lambda x: x > 5, lambda x: x == 127, lambda x: x == -128, lambda x: x.isin([1, 6, 127])],
    "string": [
        lambda x: x == "b",
        lambda x: x != "b",
        lambda x: x.startswith("b"),
        lambda x: ~x.startswith("b"),
        lambda x: x.like("b%x"),
        lambda x: ~x.like("b%x"),
        lambda x: x.isin(["a", "z"]),
    ],
}


def all_containers(name, order):
    """Return statistics with every pair of bounds and every possible count of values, nulls and NaNs, or unknown."""
    flags, nans = (False, True), (UNKNOWN, 0, 1, 2, 3) if name == "double" else (UNKNOWN,)
    known = [
        (n, *some)
        for n, *some in product((UNKNOWN, 0, 3), (UNKNOWN, 0, 1, 3), nans)
        if n < 0 or sum(max(count, 0) for count in some) <= n
    ]
    every = list(product(PAIRS[name], known, flags, flags if name == "string" else (False,)))
    data, ends = b"", []
    for value in (value for pair, *_ in every for value in pair):
        plain = value or b"" if value is None or isinstance(value, bytes) else KINDS[name].plain(value)
        ends.append((UNKNOWN, 0) if value is None else (len(data), len(plain)))
        data += plain
    places = np.array(ends, np.int64).reshape(-1, 2, 2)
    numbers = np.array([about for _, about, *_ in every], np.int64).T.copy()
    no_value, is_exact = (np.array([about[place] for about in every]) for place in (2, 3))
    return PruningStatistics(
        np.frombuffer(data, np.uint8), places[:, 0], places[:, 1], *numbers, no_value, is_exact, order
    )


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("optional", [0, 1])
def test_vectorized_pruning_of_every_container_matches_scalar(name, optional):
    schema = schema_of(name)
    schema.leaves[0] = replace(schema.leaves[0], max_definition_level=optional)
    total = [leaf_order(KINDS[name].leaf, TOTAL_ORDER)] if name == "double" else []
    for order in (leaf_order(KINDS[name].leaf, TYPE_ORDER), NO_ORDER, *total):
        containers = all_containers(name, order)
        some = np.arange(len(containers))[::-3].copy()
        each = [{0: containers.container(run)} for run in range(len(containers))]
        for predicate in (*PREDICATES[name], lambda x: x.is_null(), lambda x: x.is_not_null()):
            bound = bind(predicate(col(name)), schema)
            may, must = [may_match(bound, facts) for facts in each], [must_match(bound, facts) for facts in each]
            assert containers_may_match(bound, {0: containers}, len(containers)).tolist() == may
            assert containers_must_match(bound, {0: containers}, len(containers)).tolist() == must
            assert containers_may_match(bound, {0: containers.take(some)}, len(some)).tolist() == may[::-3]
            assert containers_must_match(bound, {0: containers.take(some)}, len(some)).tolist() == must[::-3]
            if optional and order is not NO_ORDER:
                assert {*may} == {*must} == {True, False}


def test_impossible_counts_are_unknown():
    counts, limits = np.array([-5, 0, 3, 4, 9, -1]), np.array([3, 3, 3, 3, UNKNOWN, UNKNOWN])
    assert valid_counts(counts, limits).tolist() == [UNKNOWN, 0, 3, UNKNOWN, 9, UNKNOWN]


def test_string_bounds_compare_by_eight_byte_prefix():
    containers = strings((b"a", b"b"), (b"abcdefgh1", b"abcdefgh9"), (b"x", b"x"), (b"z", b"a"), (b"c", b"d"))
    test = bind(col("string") == "k", schema_of("string"))
    assert isinstance(test, ValuePredicate)
    intervals = key_intervals(containers, test.leaf, test.domain)
    assert intervals.compare_prefixes(test.ranges)[0].tolist() == [True, False, False, False, True]
    test = bind(col("string").startswith("c") | (col("string") == "abcdefgh5"), schema_of("string"))
    assert intervals.compare_prefixes(test.ranges)[1].tolist() == [True, False, False, False, False]
    assert predicate_may_match(test, containers).tolist() == [True, True, False, True, True]
