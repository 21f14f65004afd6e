"""Hypothesis strategies for predicates, and the schema they bind to."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from numparq.expr.expression import col

from .leaf_kinds import KINDS, StubFlatSchema


@st.composite
def comparisons(draw, name):
    """Draw one predicate on a column named after its kind."""
    kind, column = KINDS[name], col(name)
    some = st.lists(kind.literals, max_size=6)
    ops = ["==", "!=", "<", "<=", ">", ">=", "in", "not in", "null", "not null", "between"]
    op = draw(st.sampled_from(ops + ["startswith", "like"] * 3 if kind.text else ops))
    if op in ("null", "not null"):
        return column.is_null() if op == "null" else column.is_not_null()
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


def schema_of(*names):
    leaves = [replace(KINDS[name].leaf, index=place, column=place, path=(name,)) for place, name in enumerate(names)]
    return StubFlatSchema(leaves)
