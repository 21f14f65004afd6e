"""How values of an Arrow type are stored: physical type, length and logical type, as pyarrow's writer chooses them."""

from __future__ import annotations

from collections.abc import Callable

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..metadata.logical_type import LogicalType
from ..schema import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64

Stored = tuple[int, int, LogicalType | None]  # physical type, length of FIXED_LEN_BYTE_ARRAY, logical type

MAX_PRECISION = 76  # of Arrow's widest decimals; the format knows no limit, other readers do
_UNITS = {"s": "MILLIS", "ms": "MILLIS", "us": "MICROS", "ns": "NANOS"}  # the format has no seconds
_STRING = LogicalType("STRING")


def decimal_length(precision: int) -> int:
    """Give the fewest bytes that hold every integer of `precision` digits, in two's complement."""
    return ((10**precision - 1).bit_length() + 8) // 8


def _int(arrow_type: ArrowType) -> Stored:
    physical = INT64 if arrow_type.bit_width == 64 else INT32
    if arrow_type.signed and arrow_type.bit_width >= 32:
        return physical, 0, None
    return physical, 0, LogicalType("INTEGER", bit_width=arrow_type.bit_width, signed=arrow_type.signed)


_FLOATS: dict[int, Stored] = {
    16: (FIXED_LEN_BYTE_ARRAY, 2, LogicalType("FLOAT16")),
    32: (FLOAT, 0, None),
    64: (DOUBLE, 0, None),
}


def _decimal(arrow_type: ArrowType) -> Stored:
    if not 0 < arrow_type.precision <= MAX_PRECISION:
        raise SchemaError(f"decimals of {arrow_type.precision} digits cannot be written: 1 to {MAX_PRECISION} can")
    if not 0 <= arrow_type.scale <= arrow_type.precision:
        raise SchemaError(f"a decimal's scale is from 0 to its precision, not {arrow_type.scale}")
    logical = LogicalType("DECIMAL", precision=arrow_type.precision, scale=arrow_type.scale)
    return FIXED_LEN_BYTE_ARRAY, decimal_length(arrow_type.precision), logical


def _time(arrow_type: ArrowType) -> Stored:
    unit = _UNITS[arrow_type.unit]
    return INT32 if unit == "MILLIS" else INT64, 0, LogicalType("TIME", unit=unit, utc=False)


def _timestamp(arrow_type: ArrowType) -> Stored:
    return INT64, 0, LogicalType("TIMESTAMP", unit=_UNITS[arrow_type.unit], utc=bool(arrow_type.timezone))


def _text(arrow_type: ArrowType) -> Stored:
    return BYTE_ARRAY, 0, LogicalType("JSON") if arrow_type.extension == "arrow.json" else _STRING


def _binary(arrow_type: ArrowType) -> Stored:
    return BYTE_ARRAY, 0, None


def _fixed_size_binary(arrow_type: ArrowType) -> Stored:
    logical = LogicalType("UUID") if arrow_type.extension == "arrow.uuid" else None
    return FIXED_LEN_BYTE_ARRAY, arrow_type.byte_width, logical


_RULES: dict[str, Callable[[ArrowType], Stored]] = {
    "null": lambda arrow_type: (INT32, 0, LogicalType("UNKNOWN")),
    "bool": lambda arrow_type: (BOOLEAN, 0, None),
    "int": _int,
    "float": lambda arrow_type: _FLOATS[arrow_type.bit_width],
    "decimal": _decimal,
    "date": lambda arrow_type: (INT32, 0, LogicalType("DATE")),
    "time": _time,
    "timestamp": _timestamp,
    "duration": lambda arrow_type: (INT64, 0, None),
    "utf8": _text,
    "large_utf8": _text,
    "utf8_view": _text,
    "binary": _binary,
    "large_binary": _binary,
    "binary_view": _binary,
    "fixed_size_binary": _fixed_size_binary,
    "uuid": lambda arrow_type: (FIXED_LEN_BYTE_ARRAY, 16, LogicalType("UUID")),
}


def stored_as(arrow_type: ArrowType) -> Stored:
    """Say how values of an Arrow type are stored.

    Parameters
    ----------
    arrow_type : ArrowType
        A type without children; of a dictionary type, that of its values.

    Returns
    -------
    physical : int
        The physical type.
    type_length : int
        Bytes of a value, of FIXED_LEN_BYTE_ARRAY; else 0.
    logical : LogicalType or None
        The logical type.

    Raises
    ------
    SchemaError
        When the format has no such type.
    """
    rule = _RULES.get(arrow_type.kind)
    if rule is None:
        raise SchemaError(f"values of Arrow's type {arrow_type.kind} cannot be written")
    return rule(arrow_type)
