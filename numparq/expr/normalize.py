"""Normalize expressions: negations at the predicates, AND and OR flat, one predicate a column."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from .bound import BoundPredicate, ContainsPredicate, NullPredicate, ValuePredicate
from .expression import And, ColumnPredicate, Constant, Expression, Not, Or
from .key_ranges import RangeTuple, intersection, union

# Operators that equal the negation of another one, for nulls and NaNs too.
_POSITIVE = {"!=": "==", "not in": "in", "is not null": "is null"}

_TEXT = 400


def normalize(expression: Expression, negated: bool = False) -> Expression:
    """Return the normal form of an expression, or of its negation.

    It consists of And, Or, ColumnPredicate and ``Not(ColumnPredicate)``, or is a Constant. No predicate of it is
    ``!=``, ``not in`` or ``is not null``.
    """
    if isinstance(expression, Not):
        return normalize(expression.part, not negated)
    if isinstance(expression, Constant):
        return Constant(expression.value != negated)
    if isinstance(expression, (And, Or)):
        together = all_of if isinstance(expression, And) != negated else any_of
        return together([normalize(part, negated) for part in expression.parts])
    assert isinstance(expression, ColumnPredicate)
    if expression.op in _POSITIVE:
        expression, negated = (
            ColumnPredicate(expression.name, _POSITIVE[expression.op], expression.operand),
            not negated,
        )
    return Not(expression) if negated else expression


def all_of(parts: list[Expression]) -> Expression:
    """Join parts by AND; drop constants and flatten nested ANDs."""
    return _joined(parts, And, Constant(True), Constant(False))


def any_of(parts: list[Expression]) -> Expression:
    """Join parts by OR; drop constants and flatten nested ORs."""
    return _joined(parts, Or, Constant(False), Constant(True))


def _joined(parts: list[Expression], kind: type[And] | type[Or], neutral: Constant, decisive: Constant) -> Expression:
    kept: list[Expression] = []
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else [part]:
            if inner == decisive:
                return decisive
            if inner != neutral:
                kept.append(inner)
    return neutral if not kept else kept[0] if len(kept) == 1 else kind(tuple(kept))


# --- simplify bound predicates ----------------------------------------------------------------------------------------


def simplify(predicate: BoundPredicate) -> Expression:
    """Replace a predicate that no value satisfies by False, and one that every value satisfies by a null check."""
    if isinstance(predicate, ContainsPredicate):
        if isinstance(simplify(predicate.predicate), Constant) and not predicate.predicate.ranges:
            absent = NullPredicate(predicate.leaf, predicate.definition_level, True, predicate.text)
            return (absent if predicate.definition_level else Constant(True)) if predicate.negated else Constant(False)
        return predicate
    if not isinstance(predicate, ValuePredicate) or predicate.pattern is not None:
        return predicate
    if not predicate.ranges and not predicate.matches_nan:
        return Constant(False)
    domain = predicate.domain
    has_all_keys = predicate.ranges == RangeTuple(((domain.low, domain.high),))
    if has_all_keys and (predicate.matches_nan or domain.kind != "float"):
        level = predicate.leaf.max_definition_level
        return NullPredicate(predicate.leaf, level, True, predicate.text) if level else Constant(True)
    return predicate


def merge_predicates(parts: list[Expression], together: bool) -> list[Expression]:
    """Merge predicates on one column: intersect their key ranges in an AND (`together`), unite them in an OR."""
    of_leaf: dict[int, list[ValuePredicate]] = {}
    kept: list[Expression | list[ValuePredicate]] = []
    for part in parts:
        if not isinstance(part, ValuePredicate) or part.pattern is not None:
            kept.append(part)
        elif part.leaf.index in of_leaf:
            of_leaf[part.leaf.index].append(part)
        else:
            of_leaf[part.leaf.index] = same = [part]
            kept.append(same)
    return [
        simplify(_merge(part, together) if isinstance(part, list) else part)
        if isinstance(part, (BoundPredicate, list))
        else part
        for part in kept
    ]


def _merge(predicates: list[ValuePredicate], together: bool) -> ValuePredicate:
    """Merge predicates on one column, by halves: one after the other, 10,000 of them would take seconds."""
    first, *others = predicates
    if not others:
        return first
    join, every, sign = (intersection, all, "&") if together else (union, any, "|")
    text = first.text
    for other in others:
        if len(text) + len(other.text) <= _TEXT:
            text = f"{text} {sign} {other.text}"
        elif not text.endswith("..."):
            text = f"{text} {sign} ..."
    sets = [*map(attrgetter("ranges"), predicates)]
    while len(sets) > 1:
        sets = [*map(join, sets[::2], sets[1::2]), *sets[len(sets) // 2 * 2 :]]
    nan = every(map(attrgetter("matches_nan"), predicates))
    return replace(first, ranges=sets[0], matches_nan=nan, text=text)
