"""`decimal.Decimal` objects to big-endian integers of the precision that the column needs."""

from __future__ import annotations

import decimal
from collections.abc import Iterable

import numpy as np

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.types.parquet_type import parquet_type

from .column_values import ColumnValues, drop_nulls, flat_object_values

_CHUNK_ROWS = 1 << 16
_EXACT_CONTEXT = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact]
)
_INT64_DIGITS = 18
_ARROW_DIGITS = 38  # of Arrow's 128-bit decimals


def big_endian(values: np.ndarray, length: int) -> np.ndarray:
    """Return the lowest `length` bytes of each little-endian integer, reversed (uint8, one value after the other)."""
    octets = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    return np.ascontiguousarray(octets[:, :length][:, ::-1]).reshape(-1)


def precision_and_scale(values: Iterable[decimal.Decimal]) -> tuple[int, int]:
    """Return the digits that Decimals need before and after the decimal point; SchemaError if one is infinite."""
    numbers = list(values)
    if not numbers:
        return 0, 0
    first = numbers[0]
    odd = [value for value in numbers if not value.same_quantum(first)]
    exponents = []
    for value in [first, *odd]:
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int):
            raise SchemaError(f"the Decimal {value} cannot be written: Parquet's decimals are finite")
        exponents.append(exponent)
    return max(max(map(decimal.Decimal.adjusted, numbers)) + 1, 0), max(-min(exponents), 0)


def decimal_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of `decimal.Decimal` objects, None and NaN as nulls, with the precision that they need.

    Raises SchemaError if one is infinite, or if they need more digits than can be written.
    """
    whole = scale = 0
    for start in range(0, len(values), _CHUNK_ROWS):
        found = precision_and_scale(drop_nulls(values[start : start + _CHUNK_ROWS])[0])
        whole, scale = max(whole, found[0]), max(scale, found[1])
    precision = max(whole + scale, 1)
    arrow_type = ArrowType("decimal", 128 if precision <= _ARROW_DIGITS else 256, precision=precision, scale=scale)
    return decimal_values(values, arrow_type)


def decimal_values(values: np.ndarray, arrow_type: ArrowType) -> ColumnValues:
    """Return the values of Decimals as fixed-length integers of a given precision and scale."""
    _, length, _ = parquet_type(arrow_type)

    def convert(part: np.ndarray) -> np.ndarray:
        return integer_bytes(unscaled_integers(part, arrow_type), length, arrow_type.precision)

    return flat_object_values(arrow_type, values, convert, length)


def unscaled_integers(values: np.ndarray, arrow_type: ArrowType) -> list[int]:
    """Return the unscaled integers of Decimals; SchemaError if one has more digits than the type."""
    scale, limit = arrow_type.scale, 10**arrow_type.precision
    shift = decimal.Decimal(scale)
    found = []
    for value in values.tolist():
        shifted = _EXACT_CONTEXT.scaleb(value, shift)
        number = int(shifted)
        if number != shifted or not -limit < number < limit:
            raise SchemaError(f"the Decimal {value} does not fit DECIMAL({arrow_type.precision}, {scale})")
        found.append(number)
    return found


def integer_bytes(integers: list[int], length: int, precision: int) -> np.ndarray:
    """Return integers as big-endian two's complement of `length` bytes each."""
    if precision <= _INT64_DIGITS:
        return big_endian(np.array(integers, np.int64), length)
    return np.frombuffer(b"".join([value.to_bytes(length, "big", signed=True) for value in integers]), np.uint8)
