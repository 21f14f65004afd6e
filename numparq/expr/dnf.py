"""Filters in disjunctive normal form: the lists of tuples of pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numparq.util.arguments import did_you_mean

from .column import ColumnReference, col, comparison
from .expression import COMPARISONS, And, ColumnPredicate, Expression, Or

_OPERATORS = (*COMPARISONS, "=", "in", "not in")
# Operators of SQL and of other libraries -> what to write instead.
_ADVICE = {
    "=>": "write '>='",
    "=<": "write '<='",
    "<>": "write '!='",
    "is": "use numparq.col(...).is_null()",
    "is not": "use numparq.col(...).is_not_null()",
    **{
        operator: f"use numparq.col(...).{operator}(...)"
        for operator in ("between", "like", "startswith", "endswith", "contains")
    },
    "not between": "use ~numparq.col(...).between(...)",
    "not like": "use ~numparq.col(...).like(...)",
    "is null": "use numparq.col(...).is_null()",
    "is not null": "use numparq.col(...).is_not_null()",
}


def from_dnf(filters: object) -> Expression:
    """Return filters in disjunctive normal form as an expression: tuples of a list are ANDed, lists are ORed.

    A tuple is ``(column, operator, value)``; errors as in `filters.as_expression`.
    """
    if isinstance(filters, tuple) and _is_predicate(filters):
        return _predicate(filters, "filters")
    if not isinstance(filters, (list, tuple)):
        raise TypeError(
            "filters must be a list of tuples (column, operator, value), a list of such lists, an expression on "
            f"numparq.col, a pyarrow expression, or text, not {_describe_filters(filters)}{_hint(filters)}"
        )
    if not filters:
        raise ValueError("filters is empty; use filters=None to read all rows")
    if all(isinstance(item, tuple) and _is_predicate(item) for item in filters):
        return _conjunction(filters, "filters")
    for place, item in enumerate(filters):
        if not isinstance(item, (list, tuple)) or (isinstance(item, tuple) and _is_predicate(item)):
            raise TypeError(
                f"filters must be a list of tuples, or of lists of tuples; filters[{place}] is {item!r} among lists"
                if isinstance(item, tuple)
                else f"filters[{place}] must be a tuple (column, operator, value) or a list of them, not {item!r}"
            )
    parts = [_conjunction(item, f"filters[{place}]") for place, item in enumerate(filters)]
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _hint(filters: object) -> str:
    """Return what a True or False comes from: an expression compared with something."""
    is_compared = isinstance(filters, bool)
    return "; & and | bind tighter than ==, so put comparisons in parentheses" if is_compared else ""


def _is_predicate(item: tuple[Any, ...]) -> bool:
    """Whether a tuple is a predicate, not a sequence of them: it begins with a name, or a path and an operator."""
    if not item:
        return False
    return isinstance(item[0], str) or (len(item) > 1 and isinstance(item[1], str))


def _conjunction(items: Sequence[object], where: str) -> Expression:
    if not items:
        raise ValueError(f"{where} is empty; it needs at least one tuple (column, operator, value)")
    parts = [_predicate(item, f"{where}[{place}]") for place, item in enumerate(items)]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _predicate(item: object, where: str) -> Expression:
    if not isinstance(item, tuple):
        raise TypeError(f"{where} must be a tuple (column, operator, value), not {item!r}")
    if len(item) != 3:
        raise ValueError(f"{where} must have three items (column, operator, value), not {len(item)}: {item!r}")
    name, operator, value = item
    try:
        column = col(name)
        if not isinstance(operator, str) or operator not in _OPERATORS:
            advice = _ADVICE.get(operator.lower()) if isinstance(operator, str) else None
            hint = f"; {advice}" if advice else did_you_mean(operator, _OPERATORS)
            raise ValueError(f"operator {operator!r} is not one of {', '.join(_OPERATORS)}{hint}")
        return _test(column, operator, value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None


def _test(column: ColumnReference, operator: str, value: Any) -> ColumnPredicate:
    if operator == "in":
        return column.isin(value)
    if operator == "not in":
        return column.not_in(value)
    return comparison(column.name, "==" if operator == "=" else operator, value)


def _describe_filters(filters: object) -> str:
    """Return the invalid `filters` for a message: its repr, or its type name if that is long (Series, frame)."""
    text = repr(filters)
    return text if len(text) <= 100 and "\n" not in text else type(filters).__name__
