"""Random predicates over a table: literals from the data or near it, nested up to three deep."""

from __future__ import annotations

from typing import Any

import numpy as np

from .literals import Literal, pattern_for, pick
from .predicates import COMPARE, AllOf, AnyOf, Comparison, DnfFilter, NotOf
from .tables import FilterTarget, RandomTable, filter_targets

Rng = np.random.Generator


def random_predicate(rng: Rng, table: RandomTable) -> Any:
    askable = filter_targets(table)
    if rng.random() < 0.25:
        return _random_tuples(rng, table, [target for target in askable if target.about.near is not None])
    return _random_expression(rng, table, askable, int(rng.integers(0, 4)))


def _random_expression(rng: Rng, table: RandomTable, askable: list[FilterTarget], depth: int) -> Any:
    if depth == 0 or rng.random() < 0.2:
        return random_comparison(rng, table, pick(rng, *askable))
    kind = pick(rng, "all", "all", "some", "some", "no")
    if kind == "no":
        return NotOf(_random_expression(rng, table, askable, depth - 1))
    parts = tuple(_random_expression(rng, table, askable, depth - 1) for _ in range(int(rng.integers(2, 4))))
    return AllOf(parts) if kind == "all" else AnyOf(parts)


def _random_tuples(rng: Rng, table: RandomTable, askable: list[FilterTarget]) -> Any:
    if not askable:
        return random_comparison(rng, table, pick(rng, *filter_targets(table)))

    def conjunction() -> Any:
        asks = tuple(_tuple_question(rng, table, pick(rng, *askable)) for _ in range(int(rng.integers(1, 4))))
        return AllOf(asks)

    if rng.random() < 0.5:
        return DnfFilter(conjunction())
    return DnfFilter(AnyOf(tuple(conjunction() for _ in range(int(rng.integers(1, 4))))))


def _tuple_question(rng: Rng, table: RandomTable, target: FilterTarget) -> Comparison:
    op = pick(rng, *COMPARE, "isin", "not_in")
    said = random_literals(rng, table, target) if op in ("isin", "not_in") else literal(rng, table, target)
    return Comparison(target.name, op, said)


def random_comparison(rng: Rng, table: RandomTable, target: FilterTarget) -> Comparison:
    """Draw a comparison that the column supports."""
    about = target.about
    ops = ["is_null", "is_not_null"]
    if about.near is not None:
        ops += [*COMPARE, "==", "==", "isin", "isin", "not_in", "between", "between"] * 2
    if about.text:
        ops += ["startswith", "like"] * 4
    if about.element is not None and about.element.near is not None:
        ops += ["contains"] * 4
    op = pick(rng, *ops)
    if op.startswith("is_"):
        return Comparison(target.name, op)
    if op in ("isin", "not_in"):
        return Comparison(target.name, op, random_literals(rng, table, target))
    if op == "between":
        return Comparison(target.name, op, (literal(rng, table, target), literal(rng, table, target)))
    if op == "like":
        return Comparison(target.name, op, pattern_for(rng, value_near(rng, table, target)))
    if op == "startswith":
        value = value_near(rng, table, target)
        cut = value[: int(rng.integers(0, len(value) + 1))]
        return Comparison(target.name, op, Literal(cut, cut) if rng.random() < 0.7 else _plain(about.near(rng, value)))
    return Comparison(target.name, op, literal(rng, table, target))


def random_runtime_filter(rng: Rng, table: RandomTable) -> tuple[Comparison, ...]:
    """Draw a runtime filter: a set of values or a range."""
    askable = [
        target for target in filter_targets(table) if target.about.near is not None and target.column != "nothing"
    ]
    if not askable:
        return ()
    target = pick(rng, *askable)
    if rng.random() < 0.6:
        return (Comparison(target.name, "isin", random_literals(rng, table, target)),)
    return (Comparison(target.name, pick(rng, ">=", "<="), literal(rng, table, target)),)


def _plain(said: Literal) -> Literal:
    """Return the literal as str or bytes, which prefixes must be."""
    return Literal(said.worth, said.worth)


def random_literals(rng: Rng, table: RandomTable, target: FilterTarget) -> tuple[Literal, ...]:
    found = [literal(rng, table, target) for _ in range(pick(rng, 0, 1, 2, 5, 40))]
    if rng.random() < 0.2:
        found.append(Literal(None, None))
    return tuple(found)


def literal(rng: Rng, table: RandomTable, target: FilterTarget) -> Literal:
    about = target.about.element if target.about.element is not None else target.about
    return about.near(rng, value_near(rng, table, target))


def value_near(rng: Rng, table: RandomTable, target: FilterTarget) -> Any:
    """Draw a value from the data, a neighbour, or a possible value."""
    values = target.values(table)
    about = target.about
    found = None
    if values and rng.random() < 0.75:
        found = values[int(rng.integers(0, len(values)))]
    if about.element is not None:
        found = found[int(rng.integers(0, len(found)))] if found else None
        about = about.element
    if found is None:
        found = (
            about.make(int(rng.integers(0, 2500))) if rng.random() < 0.7 or not about.edges else pick(rng, *about.edges)
        )
    return 0 if found is None else found  # of a column that has only nulls
