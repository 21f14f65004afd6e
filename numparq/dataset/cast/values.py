"""Cast numbers, decimals, timestamps and durations exactly, or raise."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pandas as pd

from numparq.errors import SchemaError

__all__ = [
    "cast_exact",
    "cast_time_unit",
    "cast_time_unit_of_int",
    "decimal_from_int",
    "rescale_decimal",
    "values_and_mask",
]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_OF_DAY = 86_400
_NAT = np.iinfo(np.int64).min

_DIGITS = {2: 11, 4: 24, 8: 53}  # bytes of a float, and the binary digits of the integers that it holds all of
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact])


def cast_time_unit(values: np.ndarray, unit: str) -> np.ndarray:
    """Cast datetime64 or timedelta64 (days, or seconds to nanoseconds) to another unit.

    Raises SchemaError for a value out of range, or between two values of the unit.
    """
    from_unit = np.datetime_data(values.dtype)[0]
    if from_unit == unit:
        return values
    result = _scaled(values.view(np.int64), from_unit, unit)
    return result.view(np.dtype(f"{values.dtype.kind}8[{unit}]"))


def _scaled(numbers: np.ndarray, from_unit: str, unit: str) -> np.ndarray:
    present_mask = numbers != _NAT
    up, down = _ratio(from_unit, unit)
    if down > 1:
        result, rest = np.divmod(numbers, down)
        if (rest[present_mask] != 0).any():
            raise SchemaError(f"a value in {from_unit} cannot be cast to {unit} without loss")
    else:
        present = numbers[present_mask]
        most = np.iinfo(np.int64).max // up
        if len(present) and (int(present.max()) > most or int(present.min()) < -most):
            raise SchemaError(f"a value in {from_unit} is beyond what 64 bits hold in {unit}")
        result = np.where(present_mask, numbers, 0) * up
    result[~present_mask] = _NAT
    return result


def cast_time_unit_of_int(number: int, from_unit: str, unit: str) -> int:
    """Cast one timestamp to a finer unit; SchemaError if it is out of range."""
    up, _ = _ratio(from_unit, unit)
    result = number * up
    if not -(1 << 63) < result < 1 << 63:
        raise SchemaError(f"a value in {from_unit} is beyond what 64 bits hold in {unit}")
    return result


def _ratio(from_unit: Any, unit: str) -> tuple[int, int]:
    """Return the factor to multiply by, and the one to divide by."""
    if from_unit == "D":
        return _SECONDS_OF_DAY * _PER_SECOND[unit], 1
    first, second = _PER_SECOND[from_unit], _PER_SECOND[unit]
    return max(second // first, 1), max(first // second, 1)


def values_and_mask(array: Any, is_integer: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Return numbers or booleans, and the mask of nulls; no mask (None) if NaN stands for nulls.

    `is_integer`: the column has integers, so that a NaN is a null.
    """
    if not isinstance(array, np.ndarray):
        mask = np.asarray(array.isna())
        return array.to_numpy(dtype=array.dtype.numpy_dtype, na_value=array.dtype.numpy_dtype.type(0)), mask
    if array.dtype.kind == "O":
        mask = np.asarray(pd.isna(array))
        return np.array(np.where(mask, False, array).tolist()), mask
    if array.dtype.kind != "f" or not is_integer:
        return array, None
    mask = np.isnan(array)
    return cast_exact(np.where(mask, 0, array), np.dtype(np.int64)), mask


def cast_exact(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cast numbers to another dtype; SchemaError if one of them changes."""
    if values.dtype == dtype:
        return values
    with np.errstate(all="ignore"):
        result = values.astype(dtype)
        fits = _fits(values, result)
    if not fits:
        raise SchemaError(f"a value of dtype {values.dtype} cannot be cast to {dtype} without loss")
    return result


def _fits(values: np.ndarray, result: np.ndarray) -> bool:
    if not len(values):
        return True
    kinds = values.dtype.kind + result.dtype.kind
    if kinds in ("if", "uf"):
        most = 1 << _DIGITS[result.dtype.itemsize]
        return int(values.max()) <= most and int(values.min()) >= -most
    if kinds in ("iu", "ui", "ii", "uu"):
        limits = np.iinfo(result.dtype)
        return int(values.min()) >= limits.min and int(values.max()) <= limits.max
    if kinds in ("fi", "fu") and not (np.abs(values) < 2.0**63).all():
        return False
    return bool(((result.astype(values.dtype) == values) | (values != values)).all())


def rescale_decimal(value: decimal.Decimal, unit: decimal.Decimal) -> decimal.Decimal:
    """Return a Decimal with the fraction digits of `unit`; SchemaError if it has more."""
    try:
        return value.quantize(unit, context=_EXACT)
    except decimal.DecimalException:
        raise SchemaError(
            f"{value} has more than {-int(unit.as_tuple().exponent)} digits after the decimal point"
        ) from None


def decimal_from_int(value: int, unit: decimal.Decimal) -> decimal.Decimal:
    """Return an integer as a Decimal with the fraction digits of `unit`."""
    return decimal.Decimal(int(value)).quantize(unit, context=_EXACT)
