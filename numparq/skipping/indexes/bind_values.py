"""Bind predicates to the values of an index, under each type that the dataset's column may have."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from numparq.errors import SchemaError
from numparq.expr.bind import domain_predicate
from numparq.expr.bound import ValuePredicate
from numparq.expr.expression import ColumnPredicate, Expression
from numparq.expr.key_ranges import intersection, union
from numparq.expr.literals import NumberText, printed_decimal
from numparq.expr.sort_keys import KeyDomain
from numparq.format.schema import Leaf

from .index import unwrap_test

LiteralValue: TypeAlias = Any

_DAY_NS = 86_400 * 10**9  # no time zone is farther from UTC
_EXACT_INTEGERS = {"<e": 1 << 11, "<f": 1 << 24, "<d": 1 << 53}


def _unchanged(value: LiteralValue) -> LiteralValue:
    return value


def _exact(value: LiteralValue) -> LiteralValue:
    """Return a number as its exact value, beside columns that would round it."""
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    return Fraction(value) if isinstance(value, NumberText) and value.is_finite() else value


def _printed(value: LiteralValue) -> LiteralValue:
    """Return a float as the decimal that it prints as, which it means beside decimals."""
    return printed_decimal(value) if isinstance(value, (float, np.floating)) and np.isfinite(value) else value


def _rounded(code: str) -> Callable[[LiteralValue], LiteralValue]:
    """Return a function that rounds a plain number as beside floats of a format."""

    def as_float(value: LiteralValue) -> LiteralValue:
        if type(value) not in (int, float, NumberText) or (type(value) is int and abs(value) <= _EXACT_INTEGERS[code]):
            return value
        try:
            number = struct.unpack(code, struct.pack(code, float(value)))[0]
        except (OverflowError, ValueError):
            return _exact(value)
        return Fraction(number) if np.isfinite(number) else number

    return as_float


_Meaning = Callable[[LiteralValue], LiteralValue]
_HALF, _SINGLE, _DOUBLE = map(_rounded, ("<e", "<f", "<d"))
# What a literal may mean beside a column of the dataset whose values a file stores as this type: the dataset's type is
# the file's or a wider one, and it is not known before files are opened.
_OF_SMALL_INTEGERS: tuple[_Meaning, ...] = (_unchanged, _exact, _printed, _DOUBLE, _SINGLE, _HALF)
_OF_INTEGERS: tuple[_Meaning, ...] = (_unchanged, _exact, _printed, _DOUBLE)
_OF_SINGLES: tuple[_Meaning, ...] = (_unchanged, _exact, _DOUBLE, _HALF)
_OF_DOUBLES: tuple[_Meaning, ...] = (_unchanged,)


def _meanings(domain: KeyDomain) -> tuple[_Meaning, ...]:
    if domain.type.kind == "int":
        return _OF_SMALL_INTEGERS if domain.type.bit_width <= 16 else _OF_INTEGERS
    if domain.type.kind == "float":
        return _OF_SINGLES if domain.width <= 4 else _OF_DOUBLES
    return _OF_INTEGERS if domain.type.kind == "decimal" else _OF_DOUBLES


def bind_tests(tests: Sequence[Expression], leaf: Leaf, domain: KeyDomain) -> list[list[ValuePredicate]]:
    """Bind tests that must all be true to the values of an index: once for each meaning of their literals.

    A file is ruled out only if each of the results rules it out. Of one result all predicates must match a value;
    those without a pattern are merged into the first. Raises SchemaError for incomparable literals.
    """
    bound: list[list[ValuePredicate]] = []
    known = set()
    for meaning in _meanings(domain):
        meant = [_mean(test, meaning) for test in tests]
        key = repr(meant)
        if key not in known:
            known.add(key)
            bound.append(_merge([_bind(test, leaf, domain) for test in meant]))
    return bound


def _mean(test: Expression, meaning: _Meaning) -> Expression:
    """Return a predicate with what its literals mean."""
    predicate, negated = unwrap_test(test)
    operand = predicate.operand
    if predicate.op == "in":
        operand = [meaning(value) for value in _items(operand)]
    elif predicate.op not in ("startswith", "like", "is nan"):
        operand = meaning(operand)
    meant = ColumnPredicate(predicate.name, predicate.op, operand)
    return ~meant if negated else meant


def _items(operand: LiteralValue) -> list[LiteralValue]:
    return list(operand)


def _bind(test: Expression, leaf: Leaf, domain: KeyDomain) -> ValuePredicate:
    predicate, negated = unwrap_test(test)
    is_zoned = domain.type.kind == "timestamp" and bool(domain.type.timezone)
    if not is_zoned or predicate.op == "is nan":
        return domain_predicate(predicate, leaf, domain, negated, repr(test))
    return _bind_instants(predicate, leaf, domain, negated)


def _bind_instants(test: ColumnPredicate, leaf: Leaf, domain: KeyDomain, negated: bool) -> ValuePredicate:
    """Bind a predicate to instants: a literal without a zone has the column's, which the store does not know."""
    local = replace(domain, type=replace(domain.type, timezone=""))
    has_zones = {
        _has_zone(value, leaf, local) for value in (_items(test.operand) if test.op == "in" else [test.operand])
    }
    if len(has_zones) > 1:
        raise SchemaError("literals with a time zone and without one are in one list", column=leaf.name)
    if True in has_zones or not has_zones:
        return domain_predicate(test, leaf, domain, negated)
    bound = domain_predicate(test, leaf, local, negated)
    day = int(_DAY_NS / domain.worth)
    wide = union((max(low - day, domain.low), min(end + day, domain.high)) for low, end in bound.ranges)
    return replace(bound, domain=domain, ranges=wide)


def _has_zone(value: LiteralValue, leaf: Leaf, local: KeyDomain) -> bool:
    """Whether a literal has a time zone, so that it cannot be compared with local times."""
    try:
        domain_predicate(ColumnPredicate(leaf.path, "==", value), leaf, local, False)
    except SchemaError:
        return True
    return False


def _merge(predicates: Iterable[ValuePredicate]) -> list[ValuePredicate]:
    """Merge the predicates without a pattern into one."""
    merged: ValuePredicate | None = None
    patterns = []
    for predicate in predicates:
        if predicate.pattern is not None:
            patterns.append(predicate)
        elif merged is None:
            merged = predicate
        else:
            nan = merged.matches_nan and predicate.matches_nan
            merged = replace(merged, ranges=intersection(merged.ranges, predicate.ranges), matches_nan=nan)
    return [*([] if merged is None else [merged]), *patterns]
