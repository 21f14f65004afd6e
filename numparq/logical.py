"""What the values of a leaf column mean: (physical type, logical type, what the writer had in Arrow) to an `ArrowType`.

A logical type that does not fit its physical type, or that this version does not know, leaves the physical type
standing. The rules are those of the format's ``LogicalTypes.md``; what the Arrow schema may add to them is what
pyarrow lets it add.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .arrow_schema import ArrowType
from .errors import InvalidFileError
from .kernels.tables import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96

_UNITS = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}
_TIME_UNITS_OF = {INT32: ("MILLIS",), INT64: ("MICROS", "NANOS")}
_INT_WIDTHS_OF = {INT32: (8, 16, 32), INT64: (64,)}
_MAX_INT_PRECISION = {INT32: 9, INT64: 18}
_DECIMAL_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}  # what Arrow's decimals of so many bits hold
_LOG10_2 = math.log10(2)

_PHYSICAL: dict[int, ArrowType] = {
    BOOLEAN: ArrowType("bool"),
    INT32: ArrowType("int", 32),
    INT64: ArrowType("int", 64),
    INT96: ArrowType("timestamp", unit="ns"),
    FLOAT: ArrowType("float", 32),
    DOUBLE: ArrowType("float", 64),
    BYTE_ARRAY: ArrowType("binary"),
}


def _integer(physical: int, length: int, logical: Any) -> ArrowType | None:
    if logical.bit_width not in _INT_WIDTHS_OF[physical]:
        return None
    return ArrowType("int", logical.bit_width, bool(logical.signed))


def _time(physical: int, length: int, logical: Any) -> ArrowType | None:
    if logical.unit not in _TIME_UNITS_OF[physical]:
        return None
    return ArrowType("time", unit=_UNITS[logical.unit])


def _timestamp(physical: int, length: int, logical: Any) -> ArrowType | None:
    if logical.unit not in _UNITS:
        return None
    return ArrowType("timestamp", unit=_UNITS[logical.unit], timezone="UTC" if logical.utc else "")


def _decimal(physical: int, length: int, logical: Any) -> ArrowType:
    """Check the limits of section DECIMAL: precision by physical type, scale by precision."""
    precision, scale = logical.precision or 0, logical.scale or 0
    if precision <= 0 or not 0 <= scale <= precision:
        raise InvalidFileError(
            f"DECIMAL({precision}, {scale}) is no decimal type: the precision must be above 0, and "
            "the scale from 0 to the precision"
        )
    limit = _MAX_INT_PRECISION.get(physical, precision)
    if physical == FIXED_LEN_BYTE_ARRAY:
        limit = math.floor((8 * length - 1) * _LOG10_2)
    if precision > limit:
        raise InvalidFileError(
            f"DECIMAL({precision}, {scale}) does not fit its physical type, which holds at most {limit} digits"
        )
    return ArrowType("decimal", 128 if precision <= 38 else 256, precision=precision, scale=scale)


def _float16(physical: int, length: int, logical: Any) -> ArrowType | None:
    return ArrowType("float", 16) if length == 2 else None


def _uuid(physical: int, length: int, logical: Any) -> ArrowType | None:
    return ArrowType("uuid", byte_width=16) if length == 16 else None


def _constant(arrow_type: ArrowType) -> Callable[[int, int, Any], ArrowType]:
    return lambda physical, length, logical: arrow_type


# ENUM, BSON, INTERVAL, VARIANT, GEOMETRY and GEOGRAPHY are not listed: they stay what they are physically.
_LOGICAL: dict[tuple[int, str], Callable[[int, int, Any], ArrowType | None]] = {
    (INT32, "INTEGER"): _integer,
    (INT64, "INTEGER"): _integer,
    (INT32, "DECIMAL"): _decimal,
    (INT64, "DECIMAL"): _decimal,
    (BYTE_ARRAY, "DECIMAL"): _decimal,
    (FIXED_LEN_BYTE_ARRAY, "DECIMAL"): _decimal,
    (INT32, "DATE"): _constant(ArrowType("date", unit="D")),
    (INT32, "TIME"): _time,
    (INT64, "TIME"): _time,
    (INT64, "TIMESTAMP"): _timestamp,
    (FIXED_LEN_BYTE_ARRAY, "FLOAT16"): _float16,
    (FIXED_LEN_BYTE_ARRAY, "UUID"): _uuid,
    (BYTE_ARRAY, "STRING"): _constant(ArrowType("utf8")),
    (BYTE_ARRAY, "JSON"): _constant(ArrowType("utf8", extension="arrow.json")),
}


def resolve(physical: int, type_length: int | None, logical: Any, origin: ArrowType | None = None) -> ArrowType:
    """Decide what the values of a leaf column mean.

    Parameters
    ----------
    physical : int
        The physical type (0 BOOLEAN to 7 FIXED_LEN_BYTE_ARRAY).
    type_length : int or None
        Bytes of a value, for FIXED_LEN_BYTE_ARRAY.
    logical : numparq.schema.LogicalType or None
        The logical type (a ConvertedType counts as the logical type it stands for).
    origin : ArrowType or None
        The type by the file's ``ARROW:schema``.

    Returns
    -------
    ArrowType

    Raises
    ------
    InvalidFileError
        When a DECIMAL breaks its limits, or a FIXED_LEN_BYTE_ARRAY has no length.
    """
    length = type_length or 0
    if physical == FIXED_LEN_BYTE_ARRAY and length <= 0:
        raise InvalidFileError("a FIXED_LEN_BYTE_ARRAY column must say how long its values are")
    if logical is not None and logical.kind == "UNKNOWN":
        return ArrowType("null")
    rule = _LOGICAL.get((physical, logical.kind)) if logical is not None else None
    inferred = rule(physical, length, logical) if rule else None
    if inferred is None:
        inferred = _PHYSICAL.get(physical) or ArrowType("fixed_size_binary", byte_width=length)
    return _restore(inferred, origin) if origin is not None else inferred


_VARIANTS = {"utf8": ("large_utf8", "utf8_view"), "binary": ("large_binary", "binary_view")}


def _restore(inferred: ArrowType, origin: ArrowType) -> ArrowType:
    """Add what only the Arrow schema knows, where the two do not contradict each other."""
    restored = _restore_storage(inferred, origin)
    if origin.extension is None or restored.extension is not None or restored.kind == "uuid":
        return restored
    if origin.extension == "arrow.uuid":
        return ArrowType("uuid", byte_width=16) if restored.byte_width == 16 else restored
    plain = replace(origin, extension=None, extension_metadata=None)
    return origin if restored == plain else restored


def _restore_storage(inferred: ArrowType, origin: ArrowType) -> ArrowType:
    if origin.dictionary is not None:
        # Arrow reads dictionaries of strings and bytes directly; of other values it forgets that they were ones.
        direct = inferred.kind in ("utf8", "binary") and inferred.extension is None
        return replace(inferred, dictionary=origin.dictionary) if direct else inferred
    if origin.kind == "timestamp" and inferred.timezone == "UTC" and origin.timezone:
        return replace(inferred, timezone=origin.timezone)
    if origin.kind == "duration" and inferred.kind == "int" and inferred.bit_width == 64 and inferred.signed:
        return ArrowType("duration", unit=origin.unit)
    if origin.kind in _VARIANTS.get(inferred.kind, ()):
        return replace(inferred, kind=origin.kind)
    same_decimal = (inferred.kind, inferred.precision, inferred.scale) == ("decimal", origin.precision, origin.scale)
    if origin.kind == "decimal" and same_decimal and origin.precision <= _DECIMAL_DIGITS.get(origin.bit_width, 0):
        return replace(inferred, bit_width=origin.bit_width)
    return inferred
