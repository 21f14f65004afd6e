"""Predicates bound to a wide type, evaluated on narrow values: the result must match the widened values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.expr.bind import bind
from numparq.expr.bound import NullPredicate, ValuePredicate
from numparq.expr.column import col
from numparq.expr.evaluate import evaluate
from numparq.expr.expression import Constant, LiteralError
from numparq.expr.sort_keys import key_domain
from numparq.expr.unwrap_cast import unwrap_cast
from support.filters.leaf_kinds import KINDS, StubFlatSchema
from support.filters.strategies import comparisons


def same(value):
    return value


# (narrow kind, wide kind): conversion of a stored value.
WIDENINGS = {
    ("int32", "int64"): same,
    ("int8", "int32"): same,
    ("uint16", "int32"): same,
    ("uint32", "int64"): same,
    ("uint32", "uint64"): same,
    ("bool", "int32"): int,
    ("int32", "double"): float,
    ("int8", "float"): float,
    ("int32", "decimal wide"): lambda value: value * 100,
    ("float", "double"): float,
    ("float16", "float"): float,
    ("float16", "double"): float,
    ("date", "timestamp ns"): lambda value: value * 86_400 * 10**9,
    ("timestamp ms", "timestamp ns"): lambda value: value * 10**6,
    ("int96", "timestamp ns"): same,
    ("time ms", "time ns"): lambda value: value * 10**6,
    ("decimal32", "decimal64"): lambda value: value * 10,
    ("decimal32", "decimal wide"): same,
    ("decimal bytes", "decimal wide"): same,
    ("decimal fixed", "decimal bytes"): same,
    ("string", "binary"): str.encode,
    ("fixed", "binary"): same,
    ("enum", "string"): same,
}
PAIRS = pytest.mark.parametrize(("narrow", "wide"), WIDENINGS, ids=" in ".join)


@pytest.mark.parametrize("negated", [False, True], ids=["", "not"])
@PAIRS
@given(data=st.data())
def test_unwrapped_predicate_matches_widened_values(narrow, wide, negated, data):
    kind, widened = KINDS[narrow], WIDENINGS[narrow, wide]
    items = data.draw(st.lists(kind.stored, min_size=1, max_size=6))
    literals = KINDS[wide].literals
    if wide in ("int32", "int64", "uint64", "double", "float"):  # stored values are valid literals as well
        literals = st.one_of(literals, st.sampled_from([widened(item) for item in items]))
    expression = data.draw(st.one_of(comparisons(wide), literals.map(col(wide).__gt__), literals.map(col(wide).__eq__)))
    leaf = replace(KINDS[wide].leaf, index=0, column=0, path=(wide,))
    test = bind(~expression if negated else expression, StubFlatSchema([leaf]))
    expected = evaluate(test, {0: KINDS[wide].values([widened(item) for item in items])}, len(items))
    got = evaluate(_unwrapped(test, kind.leaf), {0: kind.values(items)}, len(items))
    assert got.tolist() == expected.tolist()


def _unwrapped(bound, leaf):
    if isinstance(bound, (Constant, NullPredicate)):
        return bound
    if isinstance(bound, ValuePredicate):
        return unwrap_cast(bound, leaf, key_domain(leaf))
    return type(bound)(tuple(_unwrapped(part, leaf) for part in bound.parts))


def ranges(expression, wide, narrow):
    test = bind(expression, StubFlatSchema([replace(KINDS[wide].leaf, index=0, column=0, path=("x",))]))
    leaf = KINDS[narrow].leaf
    return unwrap_cast(test, leaf, key_domain(leaf)).ranges


def test_literals_out_of_range_match_nothing_or_all():
    assert ranges(col("x") > 2**40, "int64", "int32") == ()
    assert ranges(col("x") < 2**40, "int64", "int32") == ((-(2**31), 2**31),)
    assert ranges(col("x") == 2**31, "int64", "int32") == ()


def test_literal_between_narrow_values_equals_none():
    assert ranges(col("x") == 0.1, "double", "float") == ()
    assert ranges(col("x") == float(np.float32(0.1)), "double", "float") != ()
    assert ranges(col("x") == "1970-01-02T12:00", "timestamp ns", "date") == ()
    assert ranges(col("x") > "1970-01-02T12:00", "timestamp ns", "date") == ((2, 2**31),)
    assert ranges(~(col("x") == "1970-01-02T12:00"), "timestamp ns", "date") == ((-(2**31), 2**31),)


@pytest.mark.parametrize(("wide", "narrow"), [("string", "int32"), ("int64", "date"), ("time ns", "timestamp ns")])
def test_incompatible_types_are_refused(wide, narrow):
    literal = {"string": "a", "int64": 1, "time ns": "10:00"}[wide]
    with pytest.raises(LiteralError, match="are not comparable with type"):
        ranges(col("x") == literal, wide, narrow)
