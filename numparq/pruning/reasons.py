"""Predicates in the words of a plan."""

from __future__ import annotations

from ..predicate.expression import And, Expression

__all__ = ["conjuncts", "reason"]

_LONGEST = 100


def conjuncts(bound: Expression) -> tuple[Expression, ...]:
    """Give the parts of which all have to hold, so that it can be told which of them cut what."""
    return bound.parts if isinstance(bound, And) else (bound,)


def reason(bound: Expression) -> str:
    """Give a predicate as it was written, cut short where it is long."""
    text = repr(bound)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
