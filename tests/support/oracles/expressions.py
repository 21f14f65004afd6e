"""Truth of an expression for one row: SQL's three values and exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any


def truth(expression: Any, row: Mapping[Any, Any], meaning: Callable[[Any, Any], Any]) -> bool | None:
    """Return True, False, or None for unknown.

    `row` maps names to exactly comparable values (fractions, infinite or NaN floats, strings, bytes), None for nulls.
    `meaning` converts a literal for a column to the same form.
    """
    kind = type(expression).__name__
    if kind == "Constant":
        return expression.value
    if kind == "Not":
        inner = truth(expression.part, row, meaning)
        return None if inner is None else not inner
    if kind in ("And", "Or"):
        found = [truth(part, row, meaning) for part in expression.parts]
        decisive = kind == "Or"
        return decisive if decisive in found else None if None in found else not decisive
    if type(expression.operand).__name__ == "OtherColumn":
        other = row[expression.operand.name]
        return None if other is None else predicate_truth(expression, row[expression.name], lambda column: other)
    return predicate_truth(expression, row[expression.name], lambda literal: meaning(expression.name, literal))


def predicate_truth(test: Any, value: Any, meaning: Callable[[Any], Any]) -> bool | None:
    if test.op == "is null":
        return value is None
    if test.op == "is not null":
        return value is not None
    if value is None:
        return None
    if test.op == "is nan":
        return value != value
    if test.op == "contains":
        return any(element is not None and element == meaning(test.operand) for element in value)
    if test.op == "in":
        return any(value == meaning(literal) for literal in test.operand)
    if test.op == "not in":
        return all(value != meaning(literal) for literal in test.operand)
    if test.op == "startswith":
        return value[: len(meaning(test.operand))] == meaning(test.operand)
    if test.op == "like":
        pattern, escape = test.operand
        return like_matches(meaning(pattern), escape if escape is None else meaning(escape), value)
    literal = meaning(test.operand)
    return {
        "==": lambda: value == literal,
        "!=": lambda: value != literal,
        "<": lambda: value < literal,
        "<=": lambda: value <= literal,
        ">": lambda: value > literal,
        ">=": lambda: value >= literal,
    }[test.op]()


def like_matches(pattern: Any, escape: Any, value: Any) -> bool:
    """Whether a str or bytes value matches a LIKE pattern."""
    percent, one = ("%", "_") if isinstance(pattern, str) else (b"%", b"_")

    @cache
    def fits(at: int, place: int) -> bool:
        if at == len(pattern):
            return place == len(value)
        character = pattern[at : at + 1]
        if character == escape:
            escaped = pattern[at + 1 : at + 2]
            return value[place : place + 1] == escaped and fits(at + 2, place + 1)
        if character == percent:
            return any(fits(at + 1, later) for later in range(place, len(value) + 1))
        if place == len(value):
            return False
        return (character == one or character == value[place : place + 1]) and fits(at + 1, place + 1)

    return fits(0, 0)
