"""Literals of filter text, cast to the type of a column as Spark casts them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from numparq.expr.expression import LiteralError
from numparq.expr.literals import LiteralPosition, TypedLiteral, locate_literal
from numparq.expr.sort_keys import KeyDomain
from numparq.spark.time_zone import parse_time_zone

__all__ = ["SparkNumber", "SparkText"]

_EXACT_DOUBLES = 1 << 53  # beyond that, several integers are one double
_DATE = re.compile(r"\s*(\d{4})-(\d\d?)-(\d\d?)\s*")
_MOMENT = re.compile(
    r"\s*(\d{4}-\d\d?-\d\d?)(?:[ T](\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d{1,6}))?)?\s*([A-Za-z+-].*?)?)?\s*"
)
_TIME = re.compile(r"\s*\d\d:\d\d(:\d\d(\.\d{1,6})?)?\s*")


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
