"""Parse filter text as Spark's SQL would."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from numparq.expr.column import ColumnReference
from numparq.expr.expression import ColumnName, Expression
from numparq.expr.literals import TypedLiteral
from numparq.expr.parse import INTEGER, FilterParser, Token, unquote

from .dialect import SparkDialect
from .literals import SparkNumber, SparkText

__all__ = ["parse_spark_filter"]

Operand = ColumnReference | TypedLiteral | bool | int | str

_PART = r"(?:[^\W\d]\w*|`(?:[^`]|``)+`)"
_TOKENS = re.compile(
    rf"""\s*(?:
    (?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    |(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<word>{_PART}(?:\.{_PART})*)
    |(?P<sign><=>|<=|>=|<>|!=|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE | re.DOTALL,
)
_PARTS = re.compile(_PART)
_MAX_DIGITS = 38
_EXACT_DOUBLES = 1 << 53
_EXACT_FLOATS = 1 << 24
_LARGE_INTEGERS = 1 << 63

# Escape sequences of strings. LIKE sees the backslash before its wildcards.
_ESCAPE = re.compile(r"\\([01][0-7]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|''|\"\"", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def parse_spark_filter(text: str, dialect: SparkDialect) -> Expression:
    """Parse filter text into an expression; raises ValueError."""
    return _SparkParser(text, dialect).parse()


# --- comparisons: to Spark, NaN equals itself and is above all numbers ------------------------------------------------


def _equal(column: ColumnReference, operand: Operand) -> Expression:
    found: Expression = column == operand
    return found | (column.is_nan() & operand.is_nan()) if isinstance(operand, ColumnReference) else found


def _greater(column: ColumnReference, operand: Operand) -> Expression:
    nan: Expression = column.is_nan()
    found: Expression = column > operand
    return found | (nan & ~operand.is_nan() if isinstance(operand, ColumnReference) else nan)


def _greater_or_equal(column: ColumnReference, operand: Operand) -> Expression:
    nan: Expression = column.is_nan()
    if isinstance(operand, ColumnReference):  # unknown if the other is null
        nan = nan & (operand.is_nan() | ~operand.is_nan())
    found: Expression = column >= operand
    return found | nan


def _less(column: ColumnReference, operand: Operand) -> Expression:
    if isinstance(operand, ColumnReference):
        return _greater(operand, column)
    found: Expression = column < operand
    return found


def _less_or_equal(column: ColumnReference, operand: Operand) -> Expression:
    if isinstance(operand, ColumnReference):
        return _greater_or_equal(operand, column)
    found: Expression = column <= operand
    return found


def _null_safe_equal(column: ColumnReference, operand: Operand) -> Expression:
    if not isinstance(operand, ColumnReference):
        return column.is_not_null() & (column == operand)
    equal = column.is_not_null() & operand.is_not_null() & _equal(column, operand)
    return (column.is_null() & operand.is_null()) | equal


class _SparkParser(FilterParser):
    """Parser of one filter text."""

    tokens = _TOKENS
    comparisons: ClassVar[Mapping[str, Callable[[Any, Any], Expression]]] = {
        **dict.fromkeys(("=", "=="), _equal),
        **dict.fromkeys(("!=", "<>"), lambda column, operand: ~_equal(column, operand)),
        "<=>": _null_safe_equal,
        "<": _less,
        "<=": _less_or_equal,
        ">": _greater,
        ">=": _greater_or_equal,
    }
    default_escape = "\\"

    def __init__(self, text: str, dialect: SparkDialect) -> None:
        self._dialect = dialect
        super().__init__(text)

    def column_name(self, token: Token) -> ColumnName:
        """Return the column, or the path into structs, that a name means."""
        path = [unquote(part) if part[0] == "`" else part for part in _PARTS.findall(token.text)]
        return path[0] if len(path) == 1 and "." not in path[0] else tuple(path)

    def text(self, token: Token) -> str:
        """Return a string, without its escape characters."""
        if token.text[0] == '"' and self._dialect.quoted_names:
            self.fail("double quotes are those of names in this session, use backticks", token.position)
        if not self._dialect.escapes:
            return SparkText(token.text[1:-1], self._dialect.time_zone)
        quote = token.text[0]
        text = _ESCAPE.sub(lambda found: _unescape(found, quote), token.text[1:-1])
        return SparkText(text, self._dialect.time_zone)

    def number(self, token: Token) -> int | SparkNumber:
        """Return a number, plain if numparq compares it as Spark does."""
        number = Decimal(token.text)
        is_double = "e" in token.text.lower()
        if (len(number.as_tuple().digits) > _MAX_DIGITS) if not is_double else abs(float(number)) == float("inf"):
            self.fail(f"{token.text} is no number of Spark's", token.position)
        if token.text[0] == "+" and not is_double and abs(number) >= _LARGE_INTEGERS:
            self.fail(f"{token.text} is to Spark a sum, not a number; write it without +", token.position)
        if is_double or not INTEGER.fullmatch(token.text):
            return SparkNumber(number, is_double)
        whole = int(token.text)
        return whole if abs(whole) <= _EXACT_FLOATS or not self._dialect.ansi else SparkNumber(whole)

    def in_list(self, column: ColumnReference, values: list[Any]) -> Expression:
        """Return the predicate of an IN list; a double in it would make doubles of large integers."""
        numbers = [getattr(value, "number", value) for value in values if not isinstance(value, (str, bool))]
        has_double = any(isinstance(value, SparkNumber) and value.is_double for value in values)
        if has_double and any(abs(number) >= _EXACT_DOUBLES for number in numbers):
            raise TypeError("a number with an exponent makes doubles of all numbers of the list; write it without")
        return column.isin(values)


def _unescape(found: re.Match[str], quote: str) -> str:
    """Return the text of an escape sequence."""
    code = found[1]
    if code is None:  # two quotes: one, in quotes of this kind
        return quote if found[0][0] == quote else found[0]
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if len(code) == 3 else _ESCAPED.get(code, code)
