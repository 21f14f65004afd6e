"""Parse filter text as Spark's SQL would."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

import numpy as np

from numparq.expr.column import ColumnReference
from numparq.expr.expression import ColumnName, Expression, LiteralError
from numparq.expr.literals import LiteralPosition, TypedLiteral, locate_literal
from numparq.expr.parse import INTEGER, FilterParser, Token, unquote
from numparq.expr.sort_keys import KeyDomain
from numparq.spark.filters.dialect import parse_time_zone

from .dialect import SparkDialect

_EXACT_DOUBLES = 1 << 53  # beyond that, several integers are one double
_DATE = re.compile(r"\s*(\d{4})-(\d\d?)-(\d\d?)\s*")
_MOMENT = re.compile(
    r"\s*(\d{4}-\d\d?-\d\d?)(?:[ T](\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d{1,6}))?)?\s*([A-Za-z+-].*?)?)?\s*"
)
_TIME = re.compile(r"\s*\d\d:\d\d(:\d\d(\.\d{1,6})?)?\s*")

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

    def typed_literal(self, kind: Token, token: Token) -> NoReturn:
        """Refuse a date or timestamp with its type: Spark casts the column to it."""
        self.fail(f"write {token.text} without {kind.text}, or filter the DataFrame", kind.position)

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


@dataclass(frozen=True, repr=False)
class SparkNumber(TypedLiteral):
    """A number: beside floats a double, else exact. Spark casts exact numbers to double if `is_double`."""

    number: Decimal | int
    is_double: bool = False

    def __repr__(self) -> str:
        return repr(float(self.number)) if self.is_double else str(self.number)

    def locate(self, domain: KeyDomain) -> LiteralPosition | None:
        """Return its position; LiteralError where the cast to double would find unequal numbers equal."""
        if domain.is_float:
            return locate_literal(np.float64(float(self.number)), domain)
        if self.is_double and (domain.type.kind != "int" or abs(float(self.number)) >= _EXACT_DOUBLES):
            raise LiteralError("Spark rounds the column to double beside a number with an exponent; write it without")
        return locate_literal(self.number, domain)


class SparkText(str, TypedLiteral):
    """A string; beside dates, times and timestamps what Spark casts it to, in a session's time zone."""

    time_zone: datetime.tzinfo | None

    def __new__(cls, text: str, time_zone: datetime.tzinfo | None = None) -> SparkText:
        """Return the string, with a time zone."""
        made = super().__new__(cls, text)
        made.time_zone = time_zone
        return made

    def __reduce__(self) -> tuple[type[SparkText], tuple[str, datetime.tzinfo | None]]:
        return SparkText, (str(self), self.time_zone)

    def locate(self, domain: KeyDomain) -> LiteralPosition | None:
        """Return its position; LiteralError for types that Spark casts text to in ways of its own."""
        if domain.type.kind not in _CASTS:
            raise LiteralError("Spark casts text to its type; write a number, true or false")
        return _CASTS[domain.type.kind](self, domain)


def _text(text: SparkText, domain: KeyDomain) -> LiteralPosition | None:
    return locate_literal(str(text), domain)


def _uuid(text: SparkText, domain: KeyDomain) -> LiteralPosition | None:
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text):
        raise LiteralError("it is no UUID in lower case, as Spark reads them")
    return locate_literal(str(text), domain)


def _date(text: SparkText, domain: KeyDomain) -> LiteralPosition | None:
    return locate_literal(_parse_date(text), domain)


def _parse_date(text: str) -> datetime.date:
    found = _DATE.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        return datetime.date(*map(int, found.groups()))
    except ValueError:
        raise LiteralError("it is not a date such as 2024-01-31") from None


def _time(text: SparkText, domain: KeyDomain) -> LiteralPosition | None:
    if not _TIME.fullmatch(text):
        raise LiteralError("it is not a time such as 12:30:00")
    return locate_literal(text.strip(), domain)


def _timestamp(text: SparkText, domain: KeyDomain) -> LiteralPosition | None:
    """Locate the microsecond of a timestamp, as which Spark reads all that lies in it."""
    moment = _parse_timestamp(text, bool(domain.type.timezone))
    first = locate_literal(moment, domain)
    if first is None or domain.worth >= 1000:
        return first
    ticks = int(Fraction(1000) / domain.worth)
    return LiteralPosition(first.left, min(first.left + ticks, domain.high))


def _parse_timestamp(text: SparkText, is_instant: bool) -> datetime.datetime:
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise LiteralError("it is not a timestamp such as 2024-01-31 12:30:00")
    hour, minute, second = (int(part or 0) for part in found.groups()[1:4])
    try:
        clock = datetime.time(hour, minute, second, int((found[5] or "").ljust(6, "0")))
        zone = parse_time_zone(found[6]) if found[6] else text.time_zone
    except ValueError as error:
        raise LiteralError(f"it is not a timestamp such as 2024-01-31 12:30:00: {error}") from None
    local = datetime.datetime.combine(_parse_date(found[1]), clock)
    if not is_instant:
        if found[6]:
            raise LiteralError("it has a time zone, but the column has local times")
        return local
    if zone is None:
        raise LiteralError("it has no time zone; set the option 'timeZone', or append its offset, such as +02:00")
    return local.replace(tzinfo=zone)


_CASTS: dict[str, Callable[[SparkText, KeyDomain], LiteralPosition | None]] = {
    **dict.fromkeys(("utf8", "large_utf8", "utf8_view", "enum"), _text),
    "uuid": _uuid,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
}
