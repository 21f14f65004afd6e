"""Spark types whose values Spark compares as numparq does: no lossy cast, no collation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_DIGITS = {"ByteType": 3, "ShortType": 5, "IntegerType": 10, "LongType": 20}
_MAX_PRECISION = 38
# Types that cast to each other without loss. Not instants: their date and time depend on the session's time zone.
_FAMILIES = (
    {"FloatType", "DoubleType"},
    {"DateType", "TimestampNTZType"},
    {"TimestampType"},
    {"BooleanType"},
    {"StringType", "VarcharType"},
    {"BinaryType"},
    {"TimeType"},
)


def compares_exactly(first: DataType, second: DataType) -> bool:
    """Whether Spark finds values of two types equal only if they are the same.

    False for a decimal and a double: many decimals are one double. False if Spark does not compare the types.
    """
    one, other = _digits(first), _digits(second)
    if one is not None and other is not None:
        # Spark rounds a common type of more digits.
        return max(one[0], other[0]) + max(one[1], other[1]) <= _MAX_PRECISION
    names = {type(first).__name__, type(second).__name__}
    return any(names <= family for family in _FAMILIES)


def _digits(of: Any) -> tuple[int, int] | None:
    """Return the digits of an exact number before and after the point; None for other types."""
    name = type(of).__name__
    if name == "DecimalType":
        return of.precision - of.scale, of.scale
    return (_DIGITS[name], 0) if name in _DIGITS else None


def is_collated(of: DataType) -> bool:
    """Whether strings of a type are compared by anything but their bytes."""
    return getattr(of, "collation", None) not in ("UTF8_BINARY", None)
