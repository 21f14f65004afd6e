"""Literals: the exact position of a Python value among the sort keys of a column."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from numparq.format.arrow_type import ArrowType
from numparq.format.column_order import ColumnOrder

from .expression import LiteralError
from .sort_keys import KeyDomain, float_value
from .temporal import date_number, duration_number, time_number, timestamp_number

Number = int | Fraction | float  # float only if infinite or NaN

_FORMATS = {2: "<e", 4: "<f", 8: "<d"}
_MOST_DIGITS = 5000  # larger numbers compare alike with the values of any column


def exact_number(value: Any, arrow_type: ArrowType | None = None) -> Number:
    """Return the exact value of a numeric literal; LiteralError if it is not a number."""
    if isinstance(value, (bool, np.bool_, int, np.integer)) and not isinstance(value, np.timedelta64):
        return int(value)
    if isinstance(value, (float, np.floating)):
        # math.isfinite rounds numpy.longdouble to double, which may overflow.
        return Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Decimal):
        return _decimal(value)
    raise LiteralError("it is not a number")


def _unscaled(value: Any, arrow_type: ArrowType) -> Number:
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except ArithmeticError:
            raise LiteralError("it is not a decimal number") from None
    elif isinstance(value, (float, np.floating)):
        value = printed_decimal(value)
    number = exact_number(value)
    return number if isinstance(number, float) else number * 10**arrow_type.scale


def printed_decimal(value: float | np.floating) -> Decimal:
    """Return the decimal that a float prints as, in the fewest digits of its own precision: 1.1, also for float32."""
    plain = isinstance(value, float)  # numpy.float64 is one
    return Decimal(float.__repr__(value) if plain else np.format_float_scientific(value, unique=True))


def _uuid(value: Any, arrow_type: ArrowType) -> bytes:
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, str):
        try:
            return UUID(value).bytes
        except ValueError:
            raise LiteralError("it is not a UUID") from None
    return _binary(value, arrow_type)


def _text_or_binary(value: Any, arrow_type: ArrowType) -> bytes:
    return (_text if isinstance(value, str) else _binary)(value, arrow_type)


def _text(value: Any, arrow_type: ArrowType) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise LiteralError("it cannot be encoded as UTF-8") from None
    raise LiteralError("it is not a string")


def _binary(value: Any, arrow_type: ArrowType) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise LiteralError("it is not bytes")


_READERS: dict[str, Callable[[Any, ArrowType], Any]] = {
    "bool": exact_number,
    "int": exact_number,
    "float": exact_number,
    "decimal": _unscaled,
    "date": date_number,
    "time": time_number,
    "timestamp": timestamp_number,
    "duration": duration_number,
    "uuid": _uuid,
    "enum": _text_or_binary,
    **dict.fromkeys(("utf8", "large_utf8", "utf8_view"), _text),
    **dict.fromkeys(("binary", "large_binary", "binary_view", "fixed_size_binary"), _binary),
}


class NumberText(Decimal):
    """A number with a decimal point, as filter text has it: the exact decimal, but a plain float beside floats."""

    __slots__ = ()
    __repr__ = Decimal.__str__


class TypedLiteral:
    """A literal whose value depends on the type of the column that it is compared with."""

    __slots__ = ()

    def locate(self, domain: KeyDomain) -> LiteralPosition | None:
        """Return its position, as `locate_literal`."""
        raise NotImplementedError


class LiteralPosition(NamedTuple):
    """Position of a literal among the sort keys of a column, as `numpy.searchsorted` defines left and right.

    Attributes
    ----------
    left : object
        First key whose value is not less than the literal.
    right : object
        First key whose value is greater.
    """

    left: Any
    right: Any


def locate_literal(value: Any, domain: KeyDomain) -> LiteralPosition | None:
    """Return the position of a literal (not a null) among a column's sort keys; None for NaN.

    Raises LiteralError if it cannot be compared with the column's values.
    """
    if isinstance(value, TypedLiteral):
        return value.locate(domain)
    if type(value) is int and domain.type.kind == "int":  # by far the most frequent case
        low, high = domain.low, domain.high
        return LiteralPosition(min(max(value, low), high), min(max(value + 1, low), high))
    reader = _READERS.get(domain.type.kind)
    if reader is None:
        raise LiteralError(f"columns of type {domain.type.kind} cannot be compared")
    meaning = reader(value, domain.type)
    if isinstance(meaning, bytes):
        return LiteralPosition(meaning, meaning + b"\0")
    if meaning != meaning:
        return None
    if domain.kind == "float":
        return _among_floats(_weak(value, meaning, domain.width), domain)
    if isinstance(meaning, float):  # infinite
        end = domain.high if meaning > 0 else domain.low
        return LiteralPosition(end, end)
    low, high = domain.low, domain.high
    return LiteralPosition(min(max(math.ceil(meaning), low), high), min(max(math.floor(meaning) + 1, low), high))


# --- floats -----------------------------------------------------------------------------------------------------------


def _weak(value: Any, number: Number, width: int) -> Number:
    """Round a plain number to the column's precision, as NumPy and pandas do; typed numbers stay exact."""
    if type(value) not in (int, float, bool, NumberText):
        return number
    try:
        return _exact(struct.unpack(_FORMATS[width], struct.pack(_FORMATS[width], float(value)))[0])
    except OverflowError:
        return number


def _among_floats(number: Number, domain: KeyDomain) -> LiteralPosition:
    if number == 0:
        return LiteralPosition(-1, 1)
    order, code = ColumnOrder("float", domain.width), _FORMATS[domain.width]
    try:
        packed = struct.pack(code, float(number))
    except OverflowError:
        packed = struct.pack(code, math.inf if number > 0 else -math.inf)
    key = order.sort_key(packed)

    # Rounding may have given a neighbour's key.
    width = domain.width
    while key > domain.low and float_value(key - 1, width) >= number:
        key -= 1
    while key < domain.high and float_value(key, width) < number:
        key += 1
    return LiteralPosition(key, key + (key < domain.high and float_value(key, width) == number))


def _exact(value: float) -> Number:
    return Fraction(value) if math.isfinite(value) else value


def _decimal(value: Decimal) -> Number:
    if not value.is_finite():
        return math.nan if value.is_nan() else math.copysign(math.inf, value)
    size = value.adjusted()
    if value and abs(size) > _MOST_DIGITS:  # exact Fractions of that size are slow, and not needed
        return Fraction(10) ** (_MOST_DIGITS if size > 0 else -_MOST_DIGITS) * (-1 if value < 0 else 1)
    return Fraction(value)


def literal_bytes(value: Any, domain: KeyDomain) -> bytes:
    """Return the bytes of a prefix or LIKE pattern; LiteralError if the column does not hold such strings or bytes."""
    reader = _READERS.get(domain.type.kind)
    if reader not in (_text, _binary, _text_or_binary):
        raise LiteralError("only strings and bytes can match a prefix or a pattern")
    return reader(value, domain.type)
