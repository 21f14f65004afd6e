"""Parquet types (physical type, length, logical type) to Arrow types, with the Arrow schema as hint, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from numparq.errors import InvalidFileError, SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.time_zones import is_zone_name
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64
from numparq.kernels.enums import INT96
from numparq.util.pluralize import pluralize

_ARROW_UNITS = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}
_TIME_UNITS_OF = {INT32: ("MILLIS",), INT64: ("MICROS", "NANOS")}
_INT_WIDTHS_OF = {INT32: (8, 16, 32), INT64: (64,)}
_MAX_INT_PRECISION = {INT32: 9, INT64: 18}
_DECIMAL_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}  # bits of an Arrow decimal -> digits
_LOG10_2 = math.log10(2)

_PHYSICAL_TYPES: dict[int, ArrowType] = {
    BOOLEAN: ArrowType("bool"),
    INT32: ArrowType("int", 32),
    INT64: ArrowType("int", 64),
    INT96: ArrowType("timestamp", unit="ns"),
    FLOAT: ArrowType("float", 32),
    DOUBLE: ArrowType("float", 64),
    BYTE_ARRAY: ArrowType("binary"),
}


def _infer_integer(physical: int, length: int, logical: LogicalType) -> ArrowType | None:
    if logical.bit_width is None or logical.bit_width not in _INT_WIDTHS_OF[physical]:
        return None
    return ArrowType("int", logical.bit_width, bool(logical.signed))


def _infer_decimal(physical: int, length: int, logical: LogicalType) -> ArrowType:
    """Check precision and scale by section DECIMAL of LogicalTypes.md, and return the decimal type."""
    precision, scale = logical.precision or 0, logical.scale or 0
    if precision <= 0 or not 0 <= scale <= precision:
        raise InvalidFileError(
            f"DECIMAL({precision}, {scale}) is not a valid decimal type: the precision must be "
            "above 0, and the scale from 0 to the precision"
        )
    limit = _MAX_INT_PRECISION.get(physical, precision)
    if physical == FIXED_LEN_BYTE_ARRAY:
        limit = math.floor((8 * length - 1) * _LOG10_2)
    if precision > limit:
        raise InvalidFileError(
            f"DECIMAL({precision}, {scale}) does not fit its physical type, which holds at most "
            f"{pluralize(limit, 'digit')}"
        )
    return ArrowType("decimal", 128 if precision <= 38 else 256, precision=precision, scale=scale)


def _constant(arrow_type: ArrowType) -> Callable[[int, int, LogicalType], ArrowType]:
    return lambda physical, length, logical: arrow_type


def _infer_time(physical: int, length: int, logical: LogicalType) -> ArrowType | None:
    if logical.unit is None or logical.unit not in _TIME_UNITS_OF[physical]:
        return None
    return ArrowType("time", unit=_ARROW_UNITS[logical.unit])


def _infer_timestamp(physical: int, length: int, logical: LogicalType) -> ArrowType | None:
    if logical.unit is None or logical.unit not in _ARROW_UNITS:
        return None
    return ArrowType("timestamp", unit=_ARROW_UNITS[logical.unit], timezone="UTC" if logical.utc else "")


def _infer_float16(physical: int, length: int, logical: LogicalType) -> ArrowType | None:
    return ArrowType("float", 16) if length == 2 else None


def _infer_uuid(physical: int, length: int, logical: LogicalType) -> ArrowType | None:
    return ArrowType("uuid", byte_width=16) if length == 16 else None


# ENUM, BSON, INTERVAL, VARIANT, GEOMETRY and GEOGRAPHY are missing: they keep the type of their physical type.
_LOGICAL_TYPES: dict[tuple[int, str], Callable[[int, int, LogicalType], ArrowType | None]] = {
    (INT32, "INTEGER"): _infer_integer,
    (INT64, "INTEGER"): _infer_integer,
    (INT32, "DECIMAL"): _infer_decimal,
    (INT64, "DECIMAL"): _infer_decimal,
    (BYTE_ARRAY, "DECIMAL"): _infer_decimal,
    (FIXED_LEN_BYTE_ARRAY, "DECIMAL"): _infer_decimal,
    (INT32, "DATE"): _constant(ArrowType("date", unit="D")),
    (INT32, "TIME"): _infer_time,
    (INT64, "TIME"): _infer_time,
    (INT64, "TIMESTAMP"): _infer_timestamp,
    (INT96, "TIMESTAMP"): _infer_timestamp,  # by `SparkCalendar`, never in files
    (FIXED_LEN_BYTE_ARRAY, "FLOAT16"): _infer_float16,
    (FIXED_LEN_BYTE_ARRAY, "UUID"): _infer_uuid,
    (BYTE_ARRAY, "STRING"): _constant(ArrowType("utf8")),
    (BYTE_ARRAY, "JSON"): _constant(ArrowType("utf8", extension="arrow.json")),
}

_LARGE_OR_VIEW_KINDS = {"utf8": ("large_utf8", "utf8_view"), "binary": ("large_binary", "binary_view")}

ParquetType = tuple[int, int, LogicalType | None]  # physical type, FIXED_LEN_BYTE_ARRAY length, logical type

MAX_PRECISION = 76  # of Arrow's widest decimals; the format has no limit, but other readers do
_STORED_UNITS = {"s": "MILLIS", "ms": "MILLIS", "us": "MICROS", "ns": "NANOS"}  # Parquet has no seconds
_STRING = LogicalType("STRING")

_FLOATS: dict[int, ParquetType] = {
    16: (FIXED_LEN_BYTE_ARRAY, 2, LogicalType("FLOAT16")),
    32: (FLOAT, 0, None),
    64: (DOUBLE, 0, None),
}


def _store_int(arrow_type: ArrowType) -> ParquetType:
    physical = INT64 if arrow_type.bit_width == 64 else INT32
    if arrow_type.signed and arrow_type.bit_width >= 32:
        return physical, 0, None
    return physical, 0, LogicalType("INTEGER", bit_width=arrow_type.bit_width, signed=arrow_type.signed)


def _store_decimal(arrow_type: ArrowType) -> ParquetType:
    if not 0 < arrow_type.precision <= MAX_PRECISION:
        raise SchemaError(
            f"decimals of {pluralize(arrow_type.precision, 'digit')} cannot be written; the precision must "
            f"be 1 to {MAX_PRECISION}"
        )
    if not 0 <= arrow_type.scale <= arrow_type.precision:
        raise SchemaError(
            f"the scale of a decimal must be from 0 to its precision {arrow_type.precision}, not {arrow_type.scale}"
        )
    logical = LogicalType("DECIMAL", precision=arrow_type.precision, scale=arrow_type.scale)
    return FIXED_LEN_BYTE_ARRAY, decimal_byte_width(arrow_type.precision), logical


def _store_time(arrow_type: ArrowType) -> ParquetType:
    unit = _STORED_UNITS[arrow_type.unit]
    return INT32 if unit == "MILLIS" else INT64, 0, LogicalType("TIME", unit=unit, utc=False)


def _store_timestamp(arrow_type: ArrowType) -> ParquetType:
    return INT64, 0, LogicalType("TIMESTAMP", unit=_STORED_UNITS[arrow_type.unit], utc=bool(arrow_type.timezone))


def _store_text(arrow_type: ArrowType) -> ParquetType:
    return BYTE_ARRAY, 0, LogicalType("JSON") if arrow_type.extension == "arrow.json" else _STRING


def _store_binary(arrow_type: ArrowType) -> ParquetType:
    return BYTE_ARRAY, 0, None


def _store_fixed_size_binary(arrow_type: ArrowType) -> ParquetType:
    logical = LogicalType("UUID") if arrow_type.extension == "arrow.uuid" else None
    return FIXED_LEN_BYTE_ARRAY, arrow_type.byte_width, logical


_STORAGE: dict[str, Callable[[ArrowType], ParquetType]] = {
    "null": lambda arrow_type: (INT32, 0, LogicalType("UNKNOWN")),
    "bool": lambda arrow_type: (BOOLEAN, 0, None),
    "int": _store_int,
    "float": lambda arrow_type: _FLOATS[arrow_type.bit_width],
    "decimal": _store_decimal,
    "date": lambda arrow_type: (INT32, 0, LogicalType("DATE")),
    "time": _store_time,
    "timestamp": _store_timestamp,
    "duration": lambda arrow_type: (INT64, 0, None),
    "utf8": _store_text,
    "large_utf8": _store_text,
    "utf8_view": _store_text,
    "binary": _store_binary,
    "large_binary": _store_binary,
    "binary_view": _store_binary,
    "fixed_size_binary": _store_fixed_size_binary,
    "uuid": lambda arrow_type: (FIXED_LEN_BYTE_ARRAY, 16, LogicalType("UUID")),
}


def infer_arrow_type(
    physical: int, type_length: int | None, logical: LogicalType | None, hint: ArrowType | None = None
) -> ArrowType:
    """Return the Arrow type of a leaf column's values; `hint` is its type by ``ARROW:schema``.

    InvalidFileError if a DECIMAL exceeds its limits or a FIXED_LEN_BYTE_ARRAY has no length.
    """
    length = type_length or 0
    if physical == FIXED_LEN_BYTE_ARRAY and length <= 0:
        raise InvalidFileError(f"a FIXED_LEN_BYTE_ARRAY column must have a type_length of at least 1, not {length}")
    if logical is not None and logical.kind == "UNKNOWN":
        return ArrowType("null")
    rule = _LOGICAL_TYPES.get((physical, logical.kind)) if logical is not None else None
    inferred = rule(physical, length, logical) if rule and logical is not None else None
    if inferred is None:
        inferred = _PHYSICAL_TYPES.get(physical) or ArrowType("fixed_size_binary", byte_width=length)
    return _apply_hint(inferred, hint) if hint is not None else inferred


def _apply_hint(arrow_type: ArrowType, hint: ArrowType) -> ArrowType:
    """Add what only the Arrow schema knows, unless it contradicts the Parquet type."""
    restored = _apply_storage_hint(arrow_type, hint)
    if hint.extension is None or restored.extension is not None or restored.kind == "uuid":
        return restored
    if hint.extension == "arrow.uuid":
        return ArrowType("uuid", byte_width=16) if restored.byte_width == 16 else restored
    plain = replace(hint, extension=None, extension_metadata=None)
    return hint if restored == plain else restored


def _apply_storage_hint(arrow_type: ArrowType, hint: ArrowType) -> ArrowType:
    if hint.dictionary is not None:
        # As Arrow does: dictionaries of strings and bytes are restored, those of other values are not.
        direct = arrow_type.kind in ("utf8", "binary") and arrow_type.extension is None
        return replace(arrow_type, dictionary=hint.dictionary) if direct else arrow_type
    if hint.kind == "timestamp" and arrow_type.timezone == "UTC" and is_zone_name(hint.timezone):
        return replace(arrow_type, timezone=hint.timezone)
    if hint.kind == "duration" and arrow_type.kind == "int" and arrow_type.bit_width == 64 and arrow_type.signed:
        return ArrowType("duration", unit=hint.unit)
    if hint.kind in _LARGE_OR_VIEW_KINDS.get(arrow_type.kind, ()):
        return replace(arrow_type, kind=hint.kind)
    same_decimal = (arrow_type.kind, arrow_type.precision, arrow_type.scale) == ("decimal", hint.precision, hint.scale)
    if hint.kind == "decimal" and same_decimal and hint.precision <= _DECIMAL_DIGITS.get(hint.bit_width, 0):
        return replace(arrow_type, bit_width=hint.bit_width)
    return arrow_type


def decimal_byte_width(precision: int) -> int:
    """Return the fewest bytes that hold every integer of `precision` digits in two's complement."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def parquet_type(arrow_type: ArrowType) -> ParquetType:
    """Return physical type, length (0 unless FIXED_LEN_BYTE_ARRAY) and logical type that store an Arrow type.

    SchemaError if Parquet has no such type. A dictionary type is stored as its values; children are not allowed.
    """
    rule = _STORAGE.get(arrow_type.kind)
    if rule is None:
        raise SchemaError(f"values of Arrow type {arrow_type.kind} cannot be written")
    return rule(arrow_type)
