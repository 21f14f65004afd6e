"""Integers, floats and booleans beside nulls: float64 with NaN, masked arrays, or objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from numparq.column.buffers import DecodedColumn
from numparq.types.output_type import OutputType

from . import objects
from .objects import null_mask, take_objects

_BOOLEAN_OBJECTS = np.array([False, True, None], object)

_CHUNK_ROWS = 1 << 15
_LARGEST_EXACT = 1 << 53  # float64 holds all integers up to here

NULLABLE_NAMES = {
    name.lower(): name
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
} | {"float16": "Float32"}


def boolean_objects(values: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Return True, False and None objects of a bool array; the array itself if there are no nulls."""
    mask = null_mask(validity, null_count)
    if mask is None:
        return values
    codes = values.view(np.uint8)
    codes[mask] = 2
    return take_objects(_BOOLEAN_OBJECTS, codes)


def integers_without_nulls(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return float64s as integers again if there were no nulls; in place where the widths are equal."""
    values = buffer.fixed_values
    assert target.narrow_dtype is not None
    if buffer.null_count:
        return values
    if target.narrow_dtype.itemsize != values.dtype.itemsize:
        return values.astype(target.narrow_dtype)
    integers = values.view(target.narrow_dtype)
    for start in range(0, num_rows, _CHUNK_ROWS):
        integers[start : start + _CHUNK_ROWS] = values[start : start + _CHUNK_ROWS].astype(target.narrow_dtype)
    return integers


def floats_if_nulls(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return integers of 8 or 16 bits as float64s with NaN if there are nulls."""
    values, mask = buffer.fixed_values, objects.null_mask(buffer.validity, buffer.null_count)
    if mask is None:
        return values
    floats = values.astype(np.float64)
    floats[mask] = np.nan
    return floats


def masked_array(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return a masked array of numbers."""
    mask = objects.null_mask(buffer.validity, buffer.null_count)
    if mask is None:
        mask = np.zeros(num_rows, bool)
    return _build_masked(target, buffer.fixed_values, mask)


def masked_floats(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return a masked array of floats, NaN as null."""
    return _build_masked(target, buffer.fixed_values, np.isnan(buffer.fixed_values))


def unmasked(array: ExtensionArray) -> np.ndarray | ExtensionArray:
    """Return nullable integers or booleans as NumPy's, with nulls as float64 or objects; unchanged beyond 2**53."""
    if not isinstance(array.dtype, pd.core.dtypes.dtypes.BaseMaskedDtype) or array.dtype.kind not in "iub":
        return array
    dtype, mask = array.dtype.numpy_dtype, array.isna()
    if not mask.any():
        return array.to_numpy(dtype)
    if dtype.kind == "b":
        return array.to_numpy(object, na_value=None)
    integers = array.to_numpy(dtype, na_value=0)
    if integers.max() > _LARGEST_EXACT or integers.min() < -_LARGEST_EXACT:
        return array
    floats = integers.astype(np.float64)
    floats[mask] = np.nan
    return floats


def _build_masked(target: OutputType, values: Any, mask: np.ndarray) -> Any:
    """Return a masked array, cast to the output type's pandas dtype if no value is lost."""
    dtype = target.pandas_dtype
    if values.dtype == dtype.numpy_dtype:
        return dtype.construct_array_type()(values, mask, copy=False)
    array = pd.array(values, dtype=NULLABLE_NAMES[values.dtype.name], copy=False)
    array[mask] = pd.NA
    try:
        converted = array.astype(dtype)
        is_same = values.dtype.kind == dtype.numpy_dtype.kind or bool((converted.astype(array.dtype) == array).all())
    except (ValueError, TypeError):
        return array
    return converted if is_same else array
