"""Spark types whose values Spark compares as numparq does: no lossy cast, no collation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["compares_exactly", "is_collated"]

_DIGITS = {"ByteType": 3, "ShortType": 5, "IntegerType": 10, "LongType": 20}
_MAX_PRECISION = 38
# Types whose values are cast to one another without a loss. An instant is none of them: it is a matter of the
# session's time zone which date or time it is.
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
    """Say whether values of two types are equal to Spark just if they are the same.

    Parameters
    ----------
    first, second : pyspark.sql.types.DataType
        The types. Where one is a decimal and the other a double, both become doubles, and many decimals are one double.

    Returns
    -------
    bool
        False, too, where Spark does not compare them at all.
    """
    one, other = _digits(first), _digits(second)
    if one is not None and other is not None:
        # Of what both become Spark has no more digits, and rounds.
        return max(one[0], other[0]) + max(one[1], other[1]) <= _MAX_PRECISION
    names = {type(first).__name__, type(second).__name__}
    return any(names <= family for family in _FAMILIES)


def _digits(of: Any) -> tuple[int, int] | None:
    """Give the digits of an exact number in front of the point, and behind it."""
    name = type(of).__name__
    if name == "DecimalType":
        return of.precision - of.scale, of.scale
    return (_DIGITS[name], 0) if name in _DIGITS else None


def is_collated(of: DataType) -> bool:
    """Whether strings of a type are equal by something else than their bytes."""
    return getattr(of, "collation", None) not in ("UTF8_BINARY", None)
