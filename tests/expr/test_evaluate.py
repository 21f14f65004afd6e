"""Random predicates over every column kind: values, statistics, Bloom filters and dictionaries against a reference."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numparq.expr.bind import bind
from numparq.expr.bound import ValuePredicate, bound_predicates
from numparq.expr.column import col
from numparq.expr.evaluate import evaluate, evaluate_predicate
from numparq.format.bloom_filter import BloomFilter, hash_values
from numparq.format.column_order import TOTAL_ORDER, TYPE_ORDER, leaf_order
from numparq.prune.bloom_filters import bloom_hashes
from numparq.prune.statistics import ContainerStatistics
from support.filters.leaf_kinds import KINDS
from support.filters.strategies import columns, comparisons, expressions, is_nan, random_statistics, rows_of, schema_of
from support.oracles.expressions import truth
from support.oracles.match_one import may_match, must_match
from support.oracles.pruning import may_contain

EVERY_KIND = pytest.mark.parametrize("name", KINDS)


def reference_mask(expression, names, *columns_):
    rows = zip(*columns_, strict=True)
    found = [
        truth(expression, dict(zip(names, row, strict=True)), lambda name, v: KINDS[name].meaning(v)) for row in rows
    ]
    return [answer is True for answer in found]


@EVERY_KIND
@given(data=st.data())
def test_mask_matches_row_by_row_reference(name, data):
    expression = data.draw(expressions(name))
    items, validity = data.draw(columns(name))
    bound = bind(expression, schema_of(name))
    found = evaluate(bound, {0: KINDS[name].values(items, validity)}, len(items))
    assert found.tolist() == reference_mask(expression, [name], rows_of(name, items, validity))


@pytest.mark.quick_cases(14)
@EVERY_KIND
@given(data=st.data())
def test_dictionary_codes_match_row_by_row_reference(name, data):
    expression = data.draw(expressions(name))
    entries = data.draw(st.lists(KINDS[name].stored, max_size=5))
    codes = data.draw(st.lists(st.integers(-1, len(entries) - 1), max_size=9))
    validity = data.draw(st.none() | st.lists(st.booleans(), min_size=len(codes), max_size=len(codes)))
    items = [entries[code] if code >= 0 else None for code in codes]
    valid = [code >= 0 and (validity is None or validity[place]) for place, code in enumerate(codes)]
    values = KINDS[name].values(entries)
    values.codes = np.array(codes, np.int32)
    values.validity = None if validity is None else np.array(validity, np.uint8)
    found = evaluate(bind(expression, schema_of(name)), {0: values}, len(codes))
    assert found.tolist() == reference_mask(expression, [name], rows_of(name, items, valid))


@given(data=st.data())
def test_several_columns_match_row_by_row_reference(data):
    names = data.draw(st.lists(st.sampled_from(list(KINDS)), min_size=2, max_size=3, unique=True))
    expression = data.draw(expressions(*names))
    drawn = [data.draw(columns(name, 5)) for name in names]
    count = min(len(items) for items, _ in drawn)
    drawn = [(items[:count], validity[:count]) for items, validity in drawn]
    values = {place: KINDS[name].values(*drawn[place]) for place, name in enumerate(names)}
    rows = [rows_of(name, *column) for name, column in zip(names, drawn, strict=True)]
    found = evaluate(bind(expression, schema_of(*names)), values, count)
    assert found.tolist() == reference_mask(expression, names, *rows)


@pytest.mark.quick_cases(14)
@EVERY_KIND
@given(data=st.data())
def test_statistics_never_prune_matching_rows(name, data):
    simple = comparisons(name)
    expression = data.draw(st.one_of(simple, simple.map(lambda test: ~test), expressions(name)))
    items, validity = data.draw(st.one_of(columns(name), columns(name, 2)))
    found = data.draw(random_statistics(name, items, validity))
    expected = reference_mask(expression, [name], rows_of(name, items, validity))
    bound = bind(expression, schema_of(name))
    if not may_match(bound, {0: found}):
        assert not any(expected), found
    if must_match(bound, {0: found}):
        assert all(expected), found


@pytest.mark.quick_cases(2)
@pytest.mark.quick_cases(5)
@EVERY_KIND
def test_statistics_prune_some_containers(name):
    """A `may_match` that always returns True would pass the test above."""
    pruned, whole = [], []

    @settings(max_examples=100, derandomize=True, database=None)
    @given(data=st.data())
    def draw_one(data):
        bound = bind(data.draw(comparisons(name)), schema_of(name))
        found = data.draw(random_statistics(name, *data.draw(columns(name, 2))))
        pruned.append(not may_match(bound, {0: found}))
        whole.append(must_match(bound, {0: found}))

    draw_one()
    assert np.mean(pruned) >= 0.2
    assert np.mean(whole) >= 0.2


def all_statistics(items):
    """Yield all statistics that a writer may store for some floats; None is null."""
    kind = KINDS["double"]
    present = [item for item in items if item is not None]
    numbers = sorted(item for item in present if not is_nan(item))
    for total, nans, nulls, flipped in product((False, True), (False, True), (False, True), (1, -1)):
        low = high = None
        if numbers:
            low, high = (kind.plain(bound * flipped if bound == 0 else bound) for bound in (numbers[0], numbers[-1]))
        elif present and total:
            low = high = kind.plain(math.nan)
        yield ContainerStatistics(
            len(items),
            low,
            high,
            len(items) - len(present) if nulls else None,
            len(present) - len(numbers) if nans else None,
            order=leaf_order(kind.leaf, TOTAL_ORDER if total else TYPE_ORDER),
        )


def test_statistics_of_every_small_float_page():
    column, literals = col("double"), (-1.0, 0.0, 3.0, math.nan)
    simple = [op(column, literal) for op in (lt, le, eq, ne, ge, gt) for literal in literals]
    simple += [column.isin([0, 3]), column.between(0, 3), column.is_null()]
    pages = [
        items for size in (1, 2) for items in combinations_with_replacement((None, math.nan, -0.0, 0.0, 3.0), size)
    ]
    for expression in [*simple, *(~test for test in simple)]:
        bound = bind(expression, schema_of("double"))
        for items in pages:
            expected = reference_mask(
                expression, ["double"], rows_of("double", items, [item is not None for item in items])
            )
            for found in all_statistics(items):
                assert may_match(bound, {0: found}) or not any(expected), (expression, items, found)
                assert not must_match(bound, {0: found}) or all(expected), (expression, items, found)


def bloom_filter_of(kind, items):
    plain = [kind.plain(item) for item in items]
    ends = np.cumsum([len(value) for value in plain], dtype=np.int64)
    starts = ends - np.array([len(value) for value in plain], np.int64)
    return BloomFilter.build(hash_values(kind.leaf, np.frombuffer(b"".join(plain), np.uint8), starts, ends))


@pytest.mark.quick_cases(14)
@EVERY_KIND
@given(data=st.data())
def test_bloom_filters_and_dictionaries_never_prune_matching_rows(name, data):
    expression = data.draw(expressions(name))
    items, validity = data.draw(columns(name))
    kind, bound = KINDS[name], bind(expression, schema_of(name))
    present = [item for item, valid in zip(items, validity, strict=True) if valid]
    if kind.leaf.physical not in (0, 3):
        bloom_filter = bloom_filter_of(kind, present)
        expected = reference_mask(expression, [name], rows_of(name, items, validity))
        if not may_contain(bound, {0: bloom_filter}):
            assert not any(expected)
    for test in bound_predicates(bound):
        if isinstance(test, ValuePredicate):
            dictionary = evaluate_predicate(test, kind.values(present))
            whole = evaluate_predicate(test, kind.values(items, validity))
            assert dictionary.tolist() == whole[np.array(validity, bool)].tolist()


# Booleans, INT96 and BYTE_ARRAY decimals have no Bloom filter probes.
@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("bool", "int96", "decimal bytes")])
def test_bloom_filters_prune_some_containers(name):
    """A `may_contain` that always returns True would pass the test above."""
    kind, pruned = KINDS[name], []

    @settings(max_examples=100, derandomize=True, database=None)
    @given(data=st.data())
    def draw_one(data):
        bound = bind(data.draw(comparisons(name)), schema_of(name))
        items, validity = data.draw(columns(name, 2))
        present = [item for item, valid in zip(items, validity, strict=True) if valid]
        pruned.append(not may_contain(bound, {0: bloom_filter_of(kind, present)}))

    draw_one()
    assert any(pruned)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in sorted(set(KINDS) - {"bool", "int8", "uint16", "int96", "decimal bytes"})
        if not name.startswith(("date", "time"))
    ],
)
@given(data=st.data())
def test_bloom_probes_hash_the_stored_bytes(name, data):
    kind = KINDS[name]
    items = data.draw(st.lists(kind.stored.filter(lambda v: not is_nan(v)), min_size=1, max_size=3))
    exact = {"string": str, "enum": str}.get(name, lambda value: value)
    literals = {"decimal32": 2, "decimal64": 3, "decimal fixed": 2, "decimal wide": 2}
    if name in literals:
        from decimal import Context, Decimal

        literals_ = [Decimal(item).scaleb(-literals[name], Context(prec=60)) for item in items]
    else:
        literals_ = [exact(item) for item in items]
    (test,) = bound_predicates(bind(col(name).isin(literals_), schema_of(name)))
    probes = bloom_hashes(test)
    plain = [kind.plain(item) for item in items]
    ends = np.cumsum([len(value) for value in plain], dtype=np.int64)
    starts = ends - np.array([len(value) for value in plain], np.int64)
    hashes = hash_values(kind.leaf, np.frombuffer(b"".join(plain), np.uint8), starts, ends)
    assert set(hashes.tolist()) <= set(probes.tolist())
    assert len(probes) <= 2 * len(set(plain))
