"""Predicates as plain data with SQL's three-valued truth per row, from docs/filtering.md; independent of numparq.

A column is a list of comparable values (`literals`): numbers, strings and bytes, None for nulls, and lists of those.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .literals import Literal

Name = str | tuple[str, ...]
Worths = Mapping[Name, Sequence[Any]]
Truths = list[bool | None]

COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Comparison:
    """A comparison with one column; `said` is a Literal, or a tuple of them (between, isin, not_in)."""

    name: Name
    op: str
    said: Any = None

    def truths(self, worths: Worths) -> Truths:
        values = worths[self.name]
        if self.op in ("is_null", "is_not_null"):
            return [(value is None) == (self.op == "is_null") for value in values]
        says = _ANSWERS[self.op](self.said)
        return [None if value is None else says(value) for value in values]

    def expression(self) -> Any:
        from numparq import col

        column = col(self.name)
        if self.op in COMPARE:
            return COMPARE[self.op](column, self.said.said)
        if self.said is None:
            return getattr(column, self.op)()
        if self.op in ("isin", "not_in"):
            return getattr(column, self.op)([literal.said for literal in self.said])
        says = [literal.said for literal in self.said] if isinstance(self.said, tuple) else [self.said.said]
        return getattr(column, self.op)(*says)

    def tuples(self) -> tuple:
        """Return the comparison as a pandas tuple."""
        if self.op in ("isin", "not_in"):
            return self.name, {"isin": "in", "not_in": "not in"}[self.op], [literal.said for literal in self.said]
        return self.name, self.op, self.said.said

    def runtime_filter(self) -> Any:
        """Return the comparison as an arrived runtime filter, for isin, >= and <=."""
        from numparq import RuntimeFilter

        if self.op == "isin":
            return RuntimeFilter(self.name, [literal.said for literal in self.said])
        return RuntimeFilter(self.name, **{{">=": "low", "<=": "high"}[self.op]: self.said.said})

    @property
    def names(self) -> set[Name]:
        return {self.name}

    @property
    def parts(self) -> tuple:
        return ()


@dataclass(frozen=True)
class AllOf:
    """True if all parts are true; false if any is false."""

    parts: tuple

    def truths(self, worths: Worths) -> Truths:
        rows = zip(*(part.truths(worths) for part in self.parts), strict=True)
        return [False if False in row else None if None in row else True for row in rows]

    def expression(self) -> Any:
        made = self.parts[0].expression()
        for part in self.parts[1:]:
            made = made & part.expression()
        return made

    @property
    def names(self) -> set[Name]:
        return set().union(*(part.names for part in self.parts))


@dataclass(frozen=True)
class AnyOf:
    """True if any part is true; false if all are false."""

    parts: tuple

    def truths(self, worths: Worths) -> Truths:
        rows = zip(*(part.truths(worths) for part in self.parts), strict=True)
        return [True if True in row else None if None in row else False for row in rows]

    def expression(self) -> Any:
        made = self.parts[0].expression()
        for part in self.parts[1:]:
            made = made | part.expression()
        return made

    @property
    def names(self) -> set[Name]:
        return set().union(*(part.names for part in self.parts))


@dataclass(frozen=True)
class NotOf:
    """True if its part is false."""

    part: Any

    def truths(self, worths: Worths) -> Truths:
        return [None if truth is None else not truth for truth in self.part.truths(worths)]

    def expression(self) -> Any:
        return ~self.part.expression()

    @property
    def names(self) -> set[Name]:
        return self.part.names

    @property
    def parts(self) -> tuple:
        return (self.part,)


@dataclass(frozen=True)
class DnfFilter:
    """A predicate in pandas' form: an OR of ANDs of comparisons."""

    predicate: Any

    def truths(self, worths: Worths) -> Truths:
        return self.predicate.truths(worths)

    def expression(self) -> Any:
        predicate = self.predicate
        if isinstance(predicate, Comparison):
            return [predicate.tuples()]
        if isinstance(predicate, AllOf):
            return [part.tuples() for part in predicate.parts]
        return [
            [ask.tuples() for ask in (part.parts if isinstance(part, AllOf) else (part,))] for part in predicate.parts
        ]

    @property
    def names(self) -> set[Name]:
        return self.predicate.names

    @property
    def parts(self) -> tuple:
        return (self.predicate, *self.predicate.parts)


def _compared(op: str) -> Any:
    return lambda said: lambda value: COMPARE[op](value, said.worth)


def _between(said: tuple) -> Any:
    low, high = (literal.worth for literal in said)
    return lambda value: low <= value and value <= high


def _among(said: tuple) -> Any:
    """Return the literals that can match: NaN equals nothing, nulls are ignored."""
    worths = [literal.worth for literal in said if literal.worth is not None]
    return lambda value: any(value == worth for worth in worths)


def _not_among(said: tuple) -> Any:
    among = _among(said)
    return lambda value: not among(value)


def _starts(said: Literal) -> Any:
    return lambda value: value.startswith(said.worth)


def _contains(said: Literal) -> Any:
    return lambda value: any(element is not None and element == said.worth for element in value)


def _like(said: tuple) -> Any:
    pattern, escape = (literal.worth for literal in said) if len(said) == 2 else (said[0].worth, None)
    fits = like_pattern(pattern, escape)
    return lambda value: fits.fullmatch(value) is not None


@lru_cache(maxsize=1000)
def like_pattern(pattern: Any, escape: Any = None) -> re.Pattern:
    """Return the regular expression of a LIKE pattern, for str or bytes."""
    pieces = [pattern[place : place + 1] for place in range(len(pattern))]
    percent, one, anything, any_one = ("%", "_", ".*", ".") if isinstance(pattern, str) else (b"%", b"_", b".*", b".")
    made, escaped = [], False
    for piece in pieces:
        if not escaped and piece == escape:
            escaped = True
            continue
        made.append(
            re.escape(piece) if escaped or piece not in (percent, one) else anything if piece == percent else any_one
        )
        escaped = False
    return re.compile(type(pattern)().join(made), re.DOTALL)


_ANSWERS = {
    **{op: _compared(op) for op in COMPARE},
    "between": _between,
    "isin": _among,
    "not_in": _not_among,
    "startswith": _starts,
    "contains": _contains,
    "like": _like,
}
