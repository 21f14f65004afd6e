"""Finished columns of numbers, booleans and Decimals as those of a wider type; each value is the same number."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError

__all__ = ["decimal_of", "exactly", "masked_values", "rescaled"]

_DIGITS = {2: 11, 4: 24, 8: 53}  # bytes of a float, and the binary digits of the integers that it holds all of
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact])


def masked_values(array: Any, is_integer: bool) -> tuple[np.ndarray, np.ndarray | None]:
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
    return exactly(np.where(mask, 0, array), np.dtype(np.int64)), mask


def exactly(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
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
        raise SchemaError(f"a value of {values.dtype} does not fit {dtype}")
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


def rescaled(value: decimal.Decimal, unit: decimal.Decimal) -> decimal.Decimal:
    """Give a Decimal with the digits behind the point that `unit` has; SchemaError where it has more."""
    try:
        return value.quantize(unit, context=_EXACT)
    except decimal.DecimalException:
        raise SchemaError(f"{value} has more digits behind the point than the {-int(unit.as_tuple().exponent)} there "
                          "are to be") from None  # fmt: skip


def decimal_of(value: int, unit: decimal.Decimal) -> decimal.Decimal:
    """Give an integer as a Decimal with the digits behind the point that `unit` has."""
    return decimal.Decimal(int(value)).quantize(unit, context=_EXACT)
