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
    """Give moments or durations in another unit.

    Parameters
    ----------
    values : datetime64 or timedelta64
        Of days, or any unit from seconds to nanoseconds.
    unit : str
        ``s``, ``ms``, ``us`` or ``ns``.

    Raises
    ------
    SchemaError
        When one of them is beyond what the unit can count, or lies between two of it.
    """
    known = np.datetime_data(values.dtype)[0]
    if known == unit:
        return values
    made = _scaled(values.view(np.int64), known, unit)
    return made.view(np.dtype(f"{values.dtype.kind}8[{unit}]"))


def _scaled(numbers: np.ndarray, known: str, unit: str) -> np.ndarray:
    there = numbers != _NAT
    up, down = _ratio(known, unit)
    if down > 1:
        made, rest = np.divmod(numbers, down)
        if (rest[there] != 0).any():
            raise SchemaError(f"a value in {known} cannot be cast to {unit} without loss")
    else:
        present = numbers[there]
        most = np.iinfo(np.int64).max // up
        if len(present) and (int(present.max()) > most or int(present.min()) < -most):
            raise SchemaError(f"a value in {known} is beyond what 64 bits hold in {unit}")
        made = np.where(there, numbers, 0) * up
    made[~there] = _NAT
    return made


def cast_time_unit_of_int(number: int, known: str, unit: str) -> int:
    """Give one moment in a finer unit; errors as of `cast_time_unit`."""
    up, _ = _ratio(known, unit)
    made = number * up
    if not -(1 << 63) < made < 1 << 63:
        raise SchemaError(f"a value in {known} is beyond what 64 bits hold in {unit}")
    return made


def _ratio(known: Any, unit: str) -> tuple[int, int]:
    """Give what to multiply by, and what to divide by."""
    if known == "D":
        return _SECONDS_OF_DAY * _PER_SECOND[unit], 1
    first, second = _PER_SECOND[known], _PER_SECOND[unit]
    return max(second // first, 1), max(first // second, 1)


def values_and_mask(array: Any, is_integer: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Give numbers or booleans, and which of them are null.

    Parameters
    ----------
    array : numpy.ndarray or pandas.api.extensions.ExtensionArray
        Of any dtype that numparq gives such columns.
    is_integer : bool
        Whether the column is one of integers: a NaN is a null then.

    Returns
    -------
    values : numpy.ndarray
        Without a meaning at nulls.
    mask : numpy.ndarray or None
        bool; None where nulls, if there are any, are NaN.
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
    """Give numbers as another dtype.

    Raises
    ------
    SchemaError
        When one of them is none of that.
    """
    if values.dtype == dtype:
        return values
    with np.errstate(all="ignore"):
        made = values.astype(dtype)
        fits = _fits(values, made)
    if not fits:
        raise SchemaError(f"a value of dtype {values.dtype} cannot be cast to {dtype} without loss")
    return made


def _fits(values: np.ndarray, made: np.ndarray) -> bool:
    if not len(values):
        return True
    kinds = values.dtype.kind + made.dtype.kind
    if kinds in ("if", "uf"):
        most = 1 << _DIGITS[made.dtype.itemsize]
        return int(values.max()) <= most and int(values.min()) >= -most
    if kinds in ("iu", "ui", "ii", "uu"):
        limits = np.iinfo(made.dtype)
        return int(values.min()) >= limits.min and int(values.max()) <= limits.max
    if kinds in ("fi", "fu") and not (np.abs(values) < 2.0**63).all():
        return False
    return bool(((made.astype(values.dtype) == values) | (values != values)).all())


def rescale_decimal(value: decimal.Decimal, unit: decimal.Decimal) -> decimal.Decimal:
    """Give a Decimal with the digits behind the point that `unit` has; SchemaError where it has more."""
    try:
        return value.quantize(unit, context=_EXACT)
    except decimal.DecimalException:
        raise SchemaError(
            f"{value} has more than {-int(unit.as_tuple().exponent)} digits after the decimal point"
        ) from None


def decimal_from_int(value: int, unit: decimal.Decimal) -> decimal.Decimal:
    """Give an integer as a Decimal with the digits behind the point that `unit` has."""
    return decimal.Decimal(int(value)).quantize(unit, context=_EXACT)
