"""Unbound expressions: predicates on columns, AND, OR, NOT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from numparq.util.column_name import ColumnName as ColumnName

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

_METHODS = {
    "in": "isin",
    "not in": "not_in",
    "is null": "is_null",
    "is not null": "is_not_null",
    "is nan": "is_nan",
    "startswith": "startswith",
    "contains": "contains",
}
_SHOWN = 10


class Operand:
    """Operators ``&`` and ``|``, which need a condition on both sides: an `Expression`, or a column of booleans."""

    __slots__ = ()

    def _condition(self) -> Expression:
        """Return the expression that it stands for."""
        raise NotImplementedError

    def __and__(self, other: object) -> Expression:
        return _combine(self, "&", other, And)

    def __or__(self, other: object) -> Expression:
        return _combine(self, "|", other, Or)

    def __rand__(self, other: object) -> Expression:
        return _combine(other, "&", self, And)

    def __ror__(self, other: object) -> Expression:
        return _combine(other, "|", self, Or)


def _combine(left: object, operator: str, right: object, kind: type[And | Or]) -> Expression:
    if isinstance(left, Operand) and isinstance(right, Operand):
        sides = left._condition(), right._condition()
        first, second = (side.parts if isinstance(side, kind) else (side,) for side in sides)
        return kind(first + second)
    raise TypeError(
        f"{left!r} {operator} {right!r} needs predicates on both sides; {operator} binds tighter than comparisons, so "
        f"put these in parentheses, as in (col('a') > 1) {operator} (col('b') < 5)"
    )


class Expression(Operand):
    """A filter on rows, not yet bound to a file; true, false or unknown (null) for each row.

    Expressions are built from `numparq.col` and combined by ``&``, ``|`` and ``~``. They have no truth value.
    """

    __slots__ = ()

    def _condition(self) -> Expression:
        return self

    def __invert__(self) -> Expression:
        return self.part if isinstance(self, Not) else Not(self)

    def _refuse_order(self, other: object) -> NoReturn:
        raise TypeError(
            f"{self!r} is a condition, and cannot be compared with {other!r}; & and | bind tighter than comparisons, "
            "so put these in parentheses, as in (col('a') > 1) & (col('b') < 5)"
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse_order

    def __bool__(self) -> bool:
        raise TypeError(
            f"the truth value of {self!r} is undefined; combine expressions by &, | and ~ in parentheses, not by "
            "and, or and not, and use between() instead of a < column < b, isin() instead of in"
        )


def as_condition(operand: Operand) -> Expression:
    """Return an expression as it is, and a column alone as the condition that its booleans are."""
    return operand._condition()


@dataclass(frozen=True, slots=True)
class OtherColumn:
    """The column on the right of a comparison of two columns.

    Attributes
    ----------
    name : str or tuple of str
        The column.
    """

    name: ColumnName

    def __repr__(self) -> str:
        return f"col({self.name!r})"


@dataclass(frozen=True, slots=True, repr=False)
class ColumnPredicate(Expression):
    """A predicate on one column.

    Attributes
    ----------
    name : str or tuple of str
        The column; of a comparison of two columns, the left one.
    op : str
        One of COMPARISONS, ``"in"``, ``"not in"``, ``"startswith"``, ``"like"``, ``"contains"``, ``"is null"``,
        ``"is not null"`` or ``"is nan"``.
    operand : object
        A literal, or an `OtherColumn` in a comparison; a sequence of literals for ``in`` and ``not in``, pattern and
        escape character for ``like``.
    """

    __test__ = False  # keeps pytest from collecting it

    name: ColumnName
    op: str
    operand: Any = None

    @property
    def names(self) -> tuple[ColumnName, ...]:
        """Names of the columns that it reads."""
        return (self.name, self.operand.name) if isinstance(self.operand, OtherColumn) else (self.name,)

    def __repr__(self) -> str:
        column = f"col({self.name!r})"
        if self.op in COMPARISONS:
            return f"({column} {self.op} {self.operand!r})"
        if self.op == "like":
            pattern, escape = self.operand
            return f"{column}.like({pattern!r}{f', escape={escape!r}' if escape else ''})"
        if self.op in ("in", "not in"):
            return f"{column}.{_METHODS[self.op]}({_shortened(self.operand)})"
        return f"{column}.{_METHODS[self.op]}({'' if self.op.startswith('is') else repr(self.operand)})"


def _shortened(values: Sequence[Any]) -> str:
    """Return a list of values as text, only the first of many."""
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return f"[{shown}]" if len(values) <= _SHOWN else f"[{shown}, ... of {len(values)}]"


@dataclass(frozen=True, slots=True, repr=False)
class And(Expression):
    """True if all parts are true; without parts, true.

    Attributes
    ----------
    parts : tuple of Expression
        The conditions.
    """

    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"({' & '.join(map(repr, self.parts))})"


@dataclass(frozen=True, slots=True, repr=False)
class Or(Expression):
    """True if any part is true; without parts, false.

    Attributes
    ----------
    parts : tuple of Expression
        The conditions.
    """

    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"({' | '.join(map(repr, self.parts))})"


@dataclass(frozen=True, slots=True, repr=False)
class Not(Expression):
    """True if its part is false, unknown if that is unknown.

    Attributes
    ----------
    part : Expression
        The condition that is negated.
    """

    part: Expression

    def __repr__(self) -> str:
        return f"~{self.part!r}"


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """An expression with the same value for every row."""

    value: bool


class LiteralError(Exception):
    """A literal cannot be compared with the values of a column; the text says why."""
