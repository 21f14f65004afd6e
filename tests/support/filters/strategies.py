"""Hypothesis strategies for predicates, the columns they test and their statistics, and the schema they bind to."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import strategies as st

from numparq.expr.column import col
from numparq.format.column_order import INT96_ORDER, NO_ORDER, TOTAL_ORDER, TYPE_ORDER, leaf_order
from numparq.format.page_bounds import truncate_max_value, truncate_min_value
from numparq.prune.statistics import ContainerStatistics

from .leaf_kinds import KINDS, StubFlatSchema


@st.composite
def comparisons(draw, name):
    """Draw one predicate on a column named after its kind."""
    kind, column = KINDS[name], col(name)
    some = st.lists(kind.literals, max_size=6)
    ops = ["==", "!=", "<", "<=", ">", ">=", "in", "not in", "null", "not null", "na", "nan", "between"]
    op = draw(st.sampled_from(ops + ["startswith", "like"] * 3 if kind.text else ops))
    if op in ("null", "not null"):
        return column.is_null() if op == "null" else column.is_not_null()
    if op in ("na", "nan"):
        return column.isna() if op == "na" else column.is_nan()
    if op in ("in", "not in"):
        return (column.isin if op == "in" else column.not_in)(draw(some))
    if op == "between":
        return column.between(draw(kind.literals), draw(kind.literals))
    if op == "startswith":
        return column.startswith(draw(kind.literals))
    if op == "like":
        literal = draw(kind.literals)
        percent, one = ("%", "_") if isinstance(literal, str) else (b"%", b"_")
        pieces = st.lists(st.sampled_from([percent, one, literal[:1], literal[1:2], literal]), max_size=5)
        return column.like(type(literal)().join(draw(pieces)))
    return {
        "==": column.__eq__,
        "!=": column.__ne__,
        "<": column.__lt__,
        "<=": column.__le__,
        ">": column.__gt__,
        ">=": column.__ge__,
    }[op](draw(kind.literals))


def expressions(*names):
    leafs = st.one_of([comparisons(name) for name in names])
    return st.recursive(
        leafs,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
            inner.map(lambda part: ~part),
        ),
        max_leaves=5,
    )


def schema_of_pair(first, second):
    """Return the schema of a column "a" of one kind and a column "b" of another."""
    leaves = [
        replace(KINDS[kind].leaf, index=place, column=place, path=(name,))
        for place, (name, kind) in enumerate((("a", first), ("b", second)))
    ]
    return StubFlatSchema(leaves)


def schema_of(*names):
    leaves = [replace(KINDS[name].leaf, index=place, column=place, path=(name,)) for place, name in enumerate(names)]
    return StubFlatSchema(leaves)


@st.composite
def columns(draw, name, most=8):
    """Draw stored values of a kind and their validity."""
    items = draw(st.lists(KINDS[name].stored, max_size=most))
    validity = draw(
        st.one_of(st.just([True] * len(items)), st.lists(st.booleans(), min_size=len(items), max_size=len(items)))
    )
    return items, validity


def rows_of(name, items, validity):
    return [KINDS[name].worth(item) if valid else None for item, valid in zip(items, validity, strict=True)]


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


@st.composite
def random_statistics(draw, name, items, validity):
    """Draw true statistics of the values, as vague as a writer may make them."""
    kind = KINDS[name]
    present = [item for item, valid in zip(items, validity, strict=True) if valid]
    nan_count = sum(map(is_nan, present))
    numbers = [item for item in present if not is_nan(item)]
    column_order = draw(st.sampled_from([TYPE_ORDER, TOTAL_ORDER]))
    order = leaf_order(kind.leaf, INT96_ORDER if kind.leaf.physical == 3 else column_order)
    widened = numbers + draw(st.one_of(st.just([]), st.lists(kind.stored.filter(lambda v: not is_nan(v)), max_size=2)))
    low = high = None
    if numbers:
        ranked = sorted(widened, key=kind.worth)
        low, high = kind.plain(ranked[0]), kind.plain(ranked[-1])
    elif (nan_count and order.total) or (draw(st.booleans()) and order.is_float and not order.total):
        low = high = kind.plain(math.nan)
    exact = len(widened) == len(numbers)
    if order.is_float and numbers:
        negative = kind.plain(-0.0)
        low, high = (
            kind.plain(draw(st.sampled_from([0.0, -0.0]))) if bound in (negative, bytes(len(negative))) else bound
            for bound in (low, high)
        )
    if order.is_float and numbers and not order.total and draw(st.integers(0, 9)) == 0:
        low, high = draw(st.sampled_from([(kind.plain(math.nan), high), (low, kind.plain(math.nan))]))
    if low is not None and order.truncation != "whole" and draw(st.booleans()):
        (low, first), (high, second) = truncate_min_value(low, 2, order), truncate_max_value(high, 2, order)
        exact = exact and first and second
    dropped = draw(st.integers(0, 7))
    if dropped in (6, 7):
        low, exact = None, False
    if dropped in (5, 7):
        high, exact = None, False
    null_count = draw(st.sampled_from([None, len(items) - len(present)]))
    all_null = not present and draw(st.booleans())
    counted = draw(st.sampled_from([None, nan_count])) if order.is_float else None
    if draw(st.integers(0, 9)) == 0:  # in an unknown column order
        order, low, high = NO_ORDER, kind.plain(draw(kind.stored)), kind.plain(draw(kind.stored))
    if draw(st.integers(0, 9)) == 0:  # invalid bounds
        low = b"\x01" * draw(st.sampled_from([0, 3, 20])) if order.width else low
    return ContainerStatistics(
        len(items), low, high, null_count, counted, exact and draw(st.booleans()), all_null, order
    )
