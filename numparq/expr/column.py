"""Columns in expressions: `col()`, its comparisons and its methods."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from numparq.util.arguments import did_you_mean

from .expression import ColumnName, ColumnPredicate, Expression, LiteralError, Operand, OtherColumn
from .literal_arrays import literal_array
from .literals import LiteralPosition, TypedLiteral, locate_literal
from .sort_keys import KeyDomain

# Methods of other libraries' columns -> what to write instead.
_METHOD_ADVICE = {
    "str": "call startswith(), endswith() or like() on the column itself",
    "dt": "compare the column with dates or timestamps, as in .between('2024-01-01', '2024-01-31')",
    "list": "call contains() on the column itself",
    "cast": "compare the column itself: numbers, decimals and timestamps of different types are compared exactly",
    "astype": "compare the column itself: numbers, decimals and timestamps of different types are compared exactly",
    "is_in": "use isin()",
    "is_not_in": "use not_in()",
    "is_between": "use between()",
    "is_valid": "use is_not_null()",
    "isnull": "use is_null()",
    "notnull": "use is_not_null()",
    "isnan": "use is_nan()",
    "starts_with": "use startswith()",
    "ends_with": "use endswith()",
    "match": "use like(), with % for any text",
    "rlike": "use like(), with % for any text",
    "ilike": "filter the frame after reading: there is no comparison that ignores case",
    "field": "name the path, as in col('a.b')",
    "eq": "use ==",
    "ne": "use !=",
    "lt": "use <",
    "le": "use <=",
    "gt": "use >",
    "ge": "use >=",
}
_ESCAPE = "\\"

_PLAIN_TYPES = frozenset({bool, int, float, str, bytes, Decimal, datetime.datetime, datetime.date})


def _compared(op: str) -> Callable[[Any, object], ColumnPredicate]:
    """Return the method of `ColumnReference` for a comparison operator."""
    return lambda column, value: comparison(column.name, op, value)


@dataclass(frozen=True)
class _ConditionLiteral(TypedLiteral):
    """The True that a column alone is compared with, which only booleans equal."""

    def __repr__(self) -> str:
        return "True"

    def locate(self, domain: KeyDomain) -> LiteralPosition | None:
        """Return the position of True; LiteralError for a column of another type."""
        if domain.type.kind != "bool":
            raise LiteralError("a column alone is a condition only if it is boolean; compare it with a literal")
        return locate_literal(True, domain)


class ColumnReference(Operand):
    """A column in an expression; made by `col`.

    Compared with a literal or another column by ``==``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``, it becomes an
    `Expression`. So it does by its methods. A comparison is unknown for nulls. A column of booleans is a condition by
    itself.

    Attributes
    ----------
    name : str or tuple of str
        The column.
    """

    __slots__ = ("name",)
    __array_ufunc__ = None  # a NumPy scalar on the left defers to our operators

    def __init__(self, name: ColumnName) -> None:
        self.name = name

    def __reduce__(self) -> tuple[type[ColumnReference], tuple[ColumnName]]:
        return ColumnReference, (self.name,)

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    def __hash__(self) -> int:
        return hash((ColumnReference, self.name))

    if not TYPE_CHECKING:  # otherwise type checkers would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError that says what to write instead of a method of other libraries."""
            text = f"a column of an expression has no attribute {name!r}"
            if name.startswith("_"):  # copy and pickle ask for some
                raise AttributeError(text)
            methods = [method for method in dir(ColumnReference) if not method.startswith("_")]
            hint = f"; {_METHOD_ADVICE[name]}" if name in _METHOD_ADVICE else did_you_mean(name, methods)
            raise AttributeError(text + hint)

    def __bool__(self) -> bool:
        raise TypeError(
            f"the truth value of {self!r} is undefined; combine conditions by &, | and ~ in parentheses, not by and, "
            "or and not"
        )

    def _condition(self) -> Expression:
        return ColumnPredicate(self.name, "==", _ConditionLiteral())

    def __invert__(self) -> Expression:
        return ~self._condition()

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(f"{value!r} in {self!r} is undefined; use {self!r}.isin([{value!r}]), or contains() for lists")

    __eq__ = _compared("==")  # type: ignore[assignment]
    __ne__ = _compared("!=")  # type: ignore[assignment]
    __lt__ = _compared("<")
    __le__ = _compared("<=")
    __gt__ = _compared(">")
    __ge__ = _compared(">=")

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
        """Match rows whose value lies between two literals or columns, both included.

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

    def is_nan(self) -> ColumnPredicate:
        """Match rows whose value is NaN; unknown for nulls, false for types that have no NaN.

        Returns
        -------
        Expression
        """
        return ColumnPredicate(self.name, "is nan")

    def isna(self) -> Expression:
        """Match rows that pandas calls missing: null or NaN.

        Returns
        -------
        Expression
        """
        return self.is_null() | self.is_nan()

    def notna(self) -> Expression:
        """Match rows that pandas calls present: neither null nor NaN.

        Returns
        -------
        Expression
        """
        return ~self.isna()

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

    def endswith(self, suffix: str | bytes) -> ColumnPredicate:
        """Match rows whose string or bytes end with a suffix.

        Parameters
        ----------
        suffix : str, or bytes for a column of bytes
            The suffix.

        Returns
        -------
        Expression

        Raises
        ------
        TypeError
            If `suffix` is neither.
        """
        if isinstance(suffix, str):
            return self.like("%" + escape_like(suffix), _ESCAPE)
        if isinstance(suffix, bytes):
            return self.like(b"%" + escape_like(suffix.decode("latin-1")).encode("latin-1"), _ESCAPE.encode())
        raise TypeError(f"endswith() takes a string, or bytes for a column of bytes, not {suffix!r}")

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
        kind = str if isinstance(pattern, str) else bytes
        if escape is not None and (not isinstance(escape, kind) or len(escape) != 1):
            raise ValueError(f"escape must be one character of the pattern's type, {kind.__name__}, not {escape!r}")
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
        Compare it with a literal or another column, or call ``isin``, ``not_in``, ``between``, ``is_null``,
        ``is_not_null``, ``isna``, ``notna``, ``is_nan``, ``startswith``, ``endswith``, ``like`` or ``contains``.
        Combine the results by ``&``, ``|`` and ``~``. A column of booleans needs no comparison.

    Raises
    ------
    TypeError
        If `name` is not a string or a tuple of strings.

    Examples
    --------
    >>> from numparq.expr.column import col
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
    """Return the comparison of a column with a literal or a `ColumnReference`; TypeError for a null."""
    other = isinstance(value, ColumnReference)
    return ColumnPredicate(name, op, OtherColumn(value.name) if other else _literal(name, op, value))  # type: ignore[attr-defined]


def escape_like(text: str) -> str:
    """Return a LIKE pattern for a text itself, with a backslash as the escape character."""
    return "".join(_ESCAPE + character if character in (_ESCAPE, "%", "_") else character for character in text)


def is_null_literal(value: object) -> bool:
    """Whether a literal is a null: None, NaT or pandas.NA, but not NaN."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return type(value).__name__ in ("datetime64", "timedelta64") and value != value


def _literal(name: ColumnName, op: str, value: object) -> object:
    if isinstance(value, (ColumnReference, Expression)):
        raise TypeError(f"{ColumnReference(name)!r} {op} {value!r}: a column takes a literal here")
    if is_null_literal(value):
        raise TypeError(
            f"{ColumnReference(name)!r} {op} {value!r} matches no row; use is_null() to match nulls, is_not_null() to "
            "match values"
        )
    return value


def _listed(values: object, what: str) -> Sequence[object]:
    if isinstance(values, (str, bytes, ColumnReference, Expression)) or not isinstance(values, Iterable):
        raise TypeError(f"{what}() takes a list of values, not {values!r}")
    array = literal_array(values)
    if array is not None:
        return array
    listed = tuple(values)
    types = set(map(type, listed))
    if types <= _PLAIN_TYPES:  # none is null or a column
        return listed
    for value in listed:
        if isinstance(value, (ColumnReference, Expression)):
            raise TypeError(f"{what}() takes a list of literals, but {value!r} is a column")
    return tuple(value for value in listed if not is_null_literal(value))
