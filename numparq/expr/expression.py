"""Unbound expressions: col(), column predicates, and, or, not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ColumnName = str | tuple[str, ...]
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

_METHODS = {
    "in": "isin",
    "not in": "not_in",
    "is null": "is_null",
    "is not null": "is_not_null",
    "startswith": "startswith",
    "contains": "contains",
}
_SHOWN = 10


class Expression:
    """What may be true, false or unknown of a row; combined by ``&``, ``|`` and ``~``."""

    __slots__ = ()

    def __and__(self, other: Any) -> Expression:
        return And((*_parts(self, And), *_parts(other, And))) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: Any) -> Expression:
        return Or((*_parts(self, Or), *_parts(other, Or))) if isinstance(other, Expression) else NotImplemented

    def __invert__(self) -> Expression:
        return self.part if isinstance(self, Not) else Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self!r} is neither true nor false before it meets a row: combine expressions by &, | and ~ instead of "
            "and, or and not, each in parentheses, and write between() instead of a < column < b"
        )


def _parts(expression: Expression, kind: type) -> tuple[Expression, ...]:
    return expression.parts if isinstance(expression, kind) else (expression,)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, repr=False)
class ColumnPredicate(Expression):
    """What one column is asked.

    Parameters
    ----------
    name : str or tuple of str
        The column, as in ``columns=``.
    op : str
        One of ``COMPARISONS``, ``"in"``, ``"not in"``, ``"startswith"``, ``"like"``, ``"contains"``, ``"is null"``
        or ``"is not null"``.
    operand : object
        A literal; of ``in`` and ``not in`` a tuple of them, of ``like`` a pair of pattern and escape character.
    """

    __test__ = False  # for pytest: this is no test of ours

    name: ColumnName
    op: str
    operand: Any = None

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


def _shortened(values: tuple) -> str:
    """Write a list of values; of a long one its beginning."""
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return f"[{shown}]" if len(values) <= _SHOWN else f"[{shown}, ... of {len(values)}]"


@dataclass(frozen=True, slots=True, repr=False)
class And(Expression):
    """True where all its parts are; without parts, true."""

    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"({' & '.join(map(repr, self.parts))})"


@dataclass(frozen=True, slots=True, repr=False)
class Or(Expression):
    """True where any of its parts is; without parts, false."""

    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"({' | '.join(map(repr, self.parts))})"


@dataclass(frozen=True, slots=True, repr=False)
class Not(Expression):
    """True where its part is false, and unknown where that is unknown."""

    part: Expression

    def __repr__(self) -> str:
        return f"~{self.part!r}"


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """The same for every row."""

    value: bool


class ColumnReference:
    """A column that an expression is about; made by `col`."""

    __slots__ = ("name",)
    __array_ufunc__ = None  # so that NumPy's numbers, on the left, leave themselves to us as they are

    def __init__(self, name: ColumnName) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    def __hash__(self) -> int:
        return hash((ColumnReference, self.name))

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} alone is no condition: compare it with something, as in {self!r} == True")

    def __eq__(self, other: Any) -> ColumnPredicate:  # type: ignore[override]
        return comparison(self.name, "==", other)

    def __ne__(self, other: Any) -> ColumnPredicate:  # type: ignore[override]
        return comparison(self.name, "!=", other)

    def __lt__(self, other: Any) -> ColumnPredicate:
        return comparison(self.name, "<", other)

    def __le__(self, other: Any) -> ColumnPredicate:
        return comparison(self.name, "<=", other)

    def __gt__(self, other: Any) -> ColumnPredicate:
        return comparison(self.name, ">", other)

    def __ge__(self, other: Any) -> ColumnPredicate:
        return comparison(self.name, ">=", other)

    def isin(self, values: Iterable[Any]) -> ColumnPredicate:
        """Ask whether a value is one of some.

        Parameters
        ----------
        values : iterable
            Nulls (None, NaT, pandas.NA) among them count for nothing: `is_null` finds nulls.
        """
        return ColumnPredicate(self.name, "in", _listed(values, "isin"))

    def not_in(self, values: Iterable[Any]) -> ColumnPredicate:
        """Ask whether a value is none of some; a null is neither in nor not in.

        Parameters
        ----------
        values : iterable
            As in `isin`.
        """
        return ColumnPredicate(self.name, "not in", _listed(values, "not_in"))

    def between(self, low: Any, high: Any) -> Expression:
        """Ask whether a value lies between two others, or is one of them."""
        return (self >= low) & (self <= high)

    def is_null(self) -> ColumnPredicate:
        """Ask whether there is no value; a NaN is one."""
        return ColumnPredicate(self.name, "is null")

    def is_not_null(self) -> ColumnPredicate:
        """Ask whether there is a value."""
        return ColumnPredicate(self.name, "is not null")

    def startswith(self, prefix: str | bytes) -> ColumnPredicate:
        """Ask whether a string, or bytes, begin with others."""
        if not isinstance(prefix, (str, bytes)):
            raise TypeError(f"startswith takes a string, or bytes for a column of bytes, not {prefix!r}")
        return ColumnPredicate(self.name, "startswith", prefix)

    def like(self, pattern: str | bytes, escape: str | bytes | None = None) -> ColumnPredicate:
        """Ask whether a whole string fits a pattern, as in SQL.

        Parameters
        ----------
        pattern : str, or bytes for a column of bytes
            ``%`` stands for any characters, none as well, and ``_`` for one.
        escape : str or bytes, optional
            One character, which makes the ``%``, ``_`` or itself behind it stand for themselves.
        """
        if not isinstance(pattern, (str, bytes)):
            raise TypeError(f"like takes a string, or bytes for a column of bytes, not {pattern!r}")
        if escape is not None and (type(escape) is not type(pattern) or len(escape) != 1):
            raise ValueError(f"escape is one character of the kind that the pattern has, not {escape!r}")
        return ColumnPredicate(self.name, "like", (pattern, escape))

    def contains(self, value: Any) -> ColumnPredicate:
        """Ask whether a list has an element equal to a value; elements that are null are passed over."""
        return ColumnPredicate(self.name, "contains", _literal(self.name, "contains", value))


def col(name: ColumnName) -> ColumnReference:
    """Name a column, to say of it which rows are wanted.

    Parameters
    ----------
    name : str or tuple of str
        As in ``columns=``: the name of a top-level column, or else names joined by dots that lead to a field of a
        struct; a tuple is always such a path.

    Returns
    -------
    ColumnReference
        To be compared with literals, or asked by its methods ``isin``, ``not_in``, ``between``, ``is_null``,
        ``is_not_null``, ``startswith``, ``like`` and ``contains``. What comes of that is combined by ``&``, ``|``
        and ``~``.

    Examples
    --------
    >>> from numparq.expr.expression import col
    >>> (col("fare") > 10) & ~col("zone").isin(["A", "B"])
    ((col('fare') > 10) & ~col('zone').isin(['A', 'B']))
    """
    if isinstance(name, tuple):
        if not name or not all(isinstance(step, str) for step in name):
            raise TypeError(f"a path to a column is a tuple of names, not {name!r}")
    elif not isinstance(name, str):
        raise TypeError(f"a column is named by a string or a tuple of them, not by {name!r}")
    return ColumnReference(name)


def comparison(name: ColumnName, op: str, value: Any) -> ColumnPredicate:
    """Make a comparison of a column with a literal."""
    return ColumnPredicate(name, op, _literal(name, op, value))


def is_null_literal(value: Any) -> bool:
    """Tell whether a literal is a null: None, NaT or pandas.NA; a NaN is not."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return type(value).__name__ in ("datetime64", "timedelta64") and value != value


def _literal(name: ColumnName, op: str, value: Any) -> Any:
    if isinstance(value, (ColumnReference, Expression)):
        raise TypeError(
            f"{ColumnReference(name)!r} {op} {value!r}: a column is compared with a literal, not with another one"
        )
    if is_null_literal(value):
        raise TypeError(
            f"{ColumnReference(name)!r} {op} {value!r} is true of no row: nulls are found by is_null(), and what is "
            "not null by is_not_null()"
        )
    return value


def _listed(values: Any, what: str) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes, ColumnReference, Expression)) or not isinstance(values, Iterable):
        raise TypeError(f"{what} takes a list of values, not {values!r}")
    listed = tuple(values)
    for value in listed:
        if isinstance(value, (ColumnReference, Expression)):
            raise TypeError(f"{what} takes a list of literals; {value!r} is a column")
    return tuple(value for value in listed if not is_null_literal(value))


class LiteralError(Exception):
    """A literal that cannot be compared with the values of a column; the text says why."""
