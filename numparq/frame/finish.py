"""From decoded buffers to the arrays of a frame: one finisher for each thing that a column can become."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ..column.buffer import ColumnBuffer
from ..kernels.objects import make_bytes_array, make_str_array
from ..targets import Target
from . import objects
from .categories import categorical, restored_categorical
from .decimals import binary_decimals, decimals
from .restore import restore
from .strings import text_array

Finisher = Callable[[Target, ColumnBuffer, int], Any]


def finish(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    """Make the column of a frame.

    Parameters
    ----------
    target : Target
        How the column was decoded.
    buffer : ColumnBuffer
        What it was decoded to. Its memory becomes the column's where that is possible, and is not to be used again.
    num_rows : int
        Rows of the column.

    Returns
    -------
    numpy.ndarray or pandas.api.extensions.ExtensionArray
        One item a row.
    """
    column = FINISHERS[target.finish](target, buffer, num_rows)
    if target.wanted is not None:
        return restore(column, target.wanted)
    return categorized(column) if target.categorical else column


def categorized(column: Any) -> pd.Categorical:
    """Make a Categorical of a column, its categories in the order of their first values; integers are to be masked."""
    codes, distinct = pd.factorize(column)
    masked = isinstance(distinct, pd.api.extensions.ExtensionArray) and hasattr(distinct.dtype, "numpy_dtype")
    if distinct.dtype == np.float16:  # which pandas has no Index of
        distinct = distinct.astype(np.float32)
    return pd.Categorical.from_codes(codes, pd.Index(distinct.to_numpy() if masked else distinct))


def _block(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    return buffer.fixed


def _widened(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    """Go back to integers where there was no null after all; in place, where an integer is as wide as a float64."""
    values = buffer.fixed
    assert target.narrow is not None
    if buffer.null_count:
        return values
    if target.narrow.itemsize != values.dtype.itemsize:
        return values.astype(target.narrow)
    integers = values.view(target.narrow)
    for start in range(0, num_rows, _CHUNK):
        integers[start : start + _CHUNK] = values[start : start + _CHUNK].astype(target.narrow)
    return integers


_CHUNK = 1 << 15


def _narrow_floats(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    """Make float64s with NaN of integers of 8 or 16 bits, if there are nulls."""
    values, mask = buffer.fixed, objects.null_mask(buffer.validity, buffer.null_count)
    if mask is None:
        return values
    floats = values.astype(np.float64)
    floats[mask] = np.nan
    return floats


def _masked(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    mask = objects.null_mask(buffer.validity, buffer.null_count)
    if mask is None:
        mask = np.zeros(num_rows, bool)
    return _masked_array(target, buffer.fixed, mask)


def _masked_floats(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    return _masked_array(target, buffer.fixed, np.isnan(buffer.fixed))


def _masked_array(target: Target, values: Any, mask: np.ndarray) -> Any:
    """Make a nullable array; if its dtype is not that of the values, convert it where no value is lost."""
    dtype = target.pandas_dtype
    if values.dtype == dtype.numpy_dtype:
        return dtype.construct_array_type()(values, mask, copy=False)
    array = pd.array(values, dtype=_NULLABLE_NAMES[values.dtype.name], copy=False)
    array[mask] = pd.NA
    try:
        converted = array.astype(dtype)
        is_same = values.dtype.kind == dtype.numpy_dtype.kind or bool((converted.astype(array.dtype) == array).all())
    except (ValueError, TypeError):
        return array
    return converted if is_same else array


_NULLABLE_NAMES = {
    name.lower(): name
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
} | {"float16": "Float32"}


def _timestamp_tz(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    """Attach the time zone; convert to the wanted unit, unless a value does not fit it."""
    values = buffer.fixed
    if target.unit:
        with contextlib.suppress(pd.errors.OutOfBoundsDatetime):
            values = pd.DatetimeIndex(values, copy=False).as_unit(target.unit).to_numpy()
    unit = np.datetime_data(values.dtype)[0]
    zone = target.pandas_dtype.tz if target.pandas_dtype is not None else target.type.timezone
    try:
        dtype = pd.DatetimeTZDtype(unit, zone)
    except Exception:  # zoneinfo and pandas raise several kinds for a name they do not know
        warnings.warn(f"the time zone {zone!r} is not known here; the column is in UTC", stacklevel=2)
        dtype = pd.DatetimeTZDtype(unit, "UTC")
    return pd.array(values.view("i8"), dtype=dtype, copy=False)


def _periods(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    return pd.arrays.PeriodArray(buffer.fixed, dtype=target.pandas_dtype, copy=False)


def _bytes(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    if target.storage == "fixed":
        return objects.fixed_bytes(buffer.fixed, buffer.validity, buffer.null_count)
    return objects.binary_objects(buffer.pieces, make_bytes_array, None)


def _decimals(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    if target.storage == "fixed":
        return decimals(buffer.fixed, target.type.scale, buffer.validity, buffer.null_count)
    return binary_decimals(buffer.pieces, target.type.scale)


def _category(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    if target.entries is None:
        return categorical(target, buffer.pieces)
    return restored_categorical(target, buffer.pieces, finish)


def _arrow(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    from ..arrow import arrow_column

    return arrow_column(target, buffer, num_rows)


FINISHERS: dict[str, Finisher] = {
    "block": _block,
    "widened": _widened,
    "narrow_floats": _narrow_floats,
    "masked": _masked,
    "masked_floats": _masked_floats,
    "timestamp_tz": _timestamp_tz,
    "periods": _periods,
    "bool_objects": lambda target, buffer, rows: objects.booleans(buffer.fixed, buffer.validity, buffer.null_count),
    "dates": lambda target, buffer, rows: objects.dates(buffer.fixed, buffer.validity, buffer.null_count),
    "times": lambda target, buffer, rows: objects.times(
        buffer.fixed, target.type.unit, buffer.validity, buffer.null_count
    ),
    "uuids": lambda target, buffer, rows: objects.uuids(buffer.fixed, buffer.validity, buffer.null_count),
    "bytes": _bytes,
    "decimals": _decimals,
    "text": lambda target, buffer, rows: text_array(buffer.pieces, target.pandas_dtype),
    "text_objects": lambda target, buffer, rows: objects.binary_objects(buffer.pieces, make_str_array, None),
    "category": _category,
    "nulls": lambda target, buffer, rows: np.full(rows, None, object),
    "arrow": _arrow,
}
