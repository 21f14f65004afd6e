"""Unbound expressions: col(), column predicates, AND, OR, NOT."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from numparq.typing import ColumnName as ColumnName

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
    """A filter on rows, not yet bound to a file; true, false or unknown (null) for each row.

    Expressions are built from `numparq.col` and combined by ``&``, ``|`` and ``~``. They have no truth value.
    """

    __slots__ = ()

    def __and__(self, other: object) -> Expression:
        return And((*_parts(self, And), *_parts(other, And))) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: object) -> Expression:
        return Or((*_parts(self, Or), *_parts(other, Or))) if isinstance(other, Expression) else NotImplemented

    def __invert__(self) -> Expression:
        return self.part if isinstance(self, Not) else Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            f"the truth value of {self!r} is undefined; combine expressions by &, | and ~ in parentheses, not by "
            "and, or and not, and use between() instead of a < column < b"
        )


def _parts(expression: Expression, kind: type) -> tuple[Expression, ...]:
    return expression.parts if isinstance(expression, kind) else (expression,)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, repr=False)
class ColumnPredicate(Expression):
    """A predicate on one column.

    Attributes
    ----------
    op : str
        One of COMPARISONS, ``"in"``, ``"not in"``, ``"startswith"``, ``"like"``, ``"contains"``, ``"is null"``
        or ``"is not null"``.
    operand : object
        A literal; a tuple of literals for ``in`` and ``not in``, pattern and escape character for ``like``.
    """

    __test__ = False  # keeps pytest from collecting it

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


def _shortened(values: tuple[Any, ...]) -> str:
    """Return a list of values as text, only the first of many."""
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return f"[{shown}]" if len(values) <= _SHOWN else f"[{shown}, ... of {len(values)}]"


@dataclass(frozen=True, slots=True, repr=False)
class And(Expression):
    """True if all parts are true; without parts, true."""

    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"({' & '.join(map(repr, self.parts))})"


@dataclass(frozen=True, slots=True, repr=False)
class Or(Expression):
    """True if any part is true; without parts, false."""

    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"({' | '.join(map(repr, self.parts))})"


@dataclass(frozen=True, slots=True, repr=False)
class Not(Expression):
    """True if its part is false, unknown if that is unknown."""

    part: Expression

    def __repr__(self) -> str:
        return f"~{self.part!r}"


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """An expression with the same value for every row."""

    value: bool


class ColumnReference:
    """A column in an expression; made by `col`.

    Compared with a literal by ``==``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``, it becomes an `Expression`. So it does by
    its methods. A comparison is unknown for nulls.
    """

    __slots__ = ("name",)
    __array_ufunc__ = None  # a NumPy scalar on the left defers to our operators

    def __init__(self, name: ColumnName) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    def __hash__(self) -> int:
        return hash((ColumnReference, self.name))

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} alone is not a predicate; compare it with a literal, as in {self!r} == True")

    def __eq__(self, other: object) -> ColumnPredicate:  # type: ignore[override]
        return comparison(self.name, "==", other)

    def __ne__(self, other: object) -> ColumnPredicate:  # type: ignore[override]
        return comparison(self.name, "!=", other)

    def __lt__(self, other: object) -> ColumnPredicate:
        return comparison(self.name, "<", other)

    def __le__(self, other: object) -> ColumnPredicate:
        return comparison(self.name, "<=", other)

    def __gt__(self, other: object) -> ColumnPredicate:
        return comparison(self.name, ">", other)

    def __ge__(self, other: object) -> ColumnPredicate:
        return comparison(self.name, ">=", other)

    def isin(self, values: Iterable[object]) -> ColumnPredicate:
        """Match rows whose value equals any of some literals.

        Parameters
        ----------
        values : iterable
            Literals. Nulls (None, NaT, pandas.NA) among them are ignored: use `is_null` to match nulls.

        Returns
        -------
        Expression

        Raises
        ------
        TypeError
            If `values` is a single string, not iterable, or holds columns or expressions.
        """
        return ColumnPredicate(self.name, "in", _listed(values, "isin"))

    def not_in(self, values: Iterable[object]) -> ColumnPredicate:
        """Match rows whose value equals none of some literals; nulls do not match.

        Parameters
        ----------
        values : iterable
            Literals, as for `isin`.

        Returns
        -------
        Expression

        Raises
        ------
        TypeError
            As for `isin`.
        """
        return ColumnPredicate(self.name, "not in", _listed(values, "not_in"))

    def between(self, low: object, high: object) -> Expression:
        """Match rows whose value lies between two literals, both included.

        Parameters
        ----------
        low, high : object
            The smallest and the largest value that match.

        Returns
        -------
        Expression
        """
        return comparison(self.name, ">=", low) & comparison(self.name, "<=", high)

    def is_null(self) -> ColumnPredicate:
        """Match rows whose value is null; a NaN is not.

        Returns
        -------
        Expression
        """
        return ColumnPredicate(self.name, "is null")

    def is_not_null(self) -> ColumnPredicate:
        """Match rows whose value is not null; a NaN is a value.

        Returns
        -------
        Expression
        """
        return ColumnPredicate(self.name, "is not null")

    def startswith(self, prefix: str | bytes) -> ColumnPredicate:
        """Match rows whose string or bytes begin with a prefix.

        Parameters
        ----------
        prefix : str, or bytes for a column of bytes
            The prefix.

        Returns
        -------
        Expression

        Raises
        ------
        TypeError
            If `prefix` is neither.
        """
        if not isinstance(prefix, (str, bytes)):
            raise TypeError(f"startswith() takes a string, or bytes for a column of bytes, not {prefix!r}")
        return ColumnPredicate(self.name, "startswith", prefix)

    def like(self, pattern: str | bytes, escape: str | bytes | None = None) -> ColumnPredicate:
        """Match rows whose whole string matches a pattern, as LIKE in SQL.

        Parameters
        ----------
        pattern : str, or bytes for a column of bytes
            ``%`` stands for any number of characters, ``_`` for exactly one.
        escape : str or bytes, optional
            One character; ``%``, ``_`` or itself after it stand for themselves. By default there is none.

        Returns
        -------
        Expression

        Raises
        ------
        TypeError
            If `pattern` is neither str nor bytes.
        ValueError
            If `escape` is not one character of the pattern's type.
        """
        if not isinstance(pattern, (str, bytes)):
            raise TypeError(f"like() takes a string, or bytes for a column of bytes, not {pattern!r}")
        if escape is not None and (type(escape) is not type(pattern) or len(escape) != 1):
            raise ValueError(
                f"escape must be one character of the pattern's type, {type(pattern).__name__}, not {escape!r}"
            )
        return ColumnPredicate(self.name, "like", (pattern, escape))

    def contains(self, value: object) -> ColumnPredicate:
        """Match rows whose list has an element equal to a literal; null elements are ignored.

        Parameters
        ----------
        value : object
            The literal.

        Returns
        -------
        Expression

        Raises
        ------
        TypeError
            If `value` is a null or a column.
        """
        return ColumnPredicate(self.name, "contains", _literal(self.name, "contains", value))


def col(name: ColumnName) -> ColumnReference:
    """Return a reference to a column, to build filters with.

    Parameters
    ----------
    name : str or tuple of str
        As in ``columns=``: a top-level column, or else a dotted path to a field of a struct. A tuple is always a
        path.

    Returns
    -------
    ColumnReference
        Compare it with a literal, or call ``isin``, ``not_in``, ``between``, ``is_null``, ``is_not_null``,
        ``startswith``, ``like`` or ``contains``. Combine the results by ``&``, ``|`` and ``~``.

    Raises
    ------
    TypeError
        If `name` is not a string or a tuple of strings.

    Examples
    --------
    >>> from numparq.expr.expression import col
    >>> (col("fare") > 10) & ~col("zone").isin(["A", "B"])
    ((col('fare') > 10) & ~col('zone').isin(['A', 'B']))
    """
    if isinstance(name, tuple):
        if not name or not all(isinstance(step, str) for step in name):
            raise TypeError(f"a path to a column must be a tuple of names, not {name!r}")
    elif not isinstance(name, str):
        raise TypeError(f"a column name must be a string or a tuple of strings, not {name!r}")
    return ColumnReference(name)


def comparison(name: ColumnName, op: str, value: object) -> ColumnPredicate:
    """Return the comparison of a column with a literal; TypeError for a null or another column."""
    return ColumnPredicate(name, op, _literal(name, op, value))


def is_null_literal(value: object) -> bool:
    """Whether a literal is a null: None, NaT or pandas.NA, but not NaN."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return type(value).__name__ in ("datetime64", "timedelta64") and value != value


def _literal(name: ColumnName, op: str, value: object) -> object:
    if isinstance(value, (ColumnReference, Expression)):
        raise TypeError(f"{ColumnReference(name)!r} {op} {value!r}: a column can only be compared with a literal")
    if is_null_literal(value):
        raise TypeError(
            f"{ColumnReference(name)!r} {op} {value!r} matches no row; use is_null() to match nulls, is_not_null() to "
            "match values"
        )
    return value


def _listed(values: object, what: str) -> tuple[object, ...]:
    if isinstance(values, (str, bytes, ColumnReference, Expression)) or not isinstance(values, Iterable):
        raise TypeError(f"{what}() takes a list of values, not {values!r}")
    listed = tuple(values)
    for value in listed:
        if isinstance(value, (ColumnReference, Expression)):
            raise TypeError(f"{what}() takes a list of literals, but {value!r} is a column")
    return tuple(value for value in listed if not is_null_literal(value))


class LiteralError(Exception):
    """A literal cannot be compared with the values of a column; the text says why."""
