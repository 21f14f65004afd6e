"""Array of one decoded column: the table from output type to converter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.buffers import DecodedColumn
from numparq.format.key_values.pandas_dtypes import DtypeSpec
from numparq.types.output_type import OutputType

from . import numbers, objects, strings, temporal
from .decimals import binary_decimal_objects, decimal_objects
from .dictionary import build_categorical, categorical_of, restore_categorical
from .numbers import floats_if_nulls, integers_without_nulls, masked_array, masked_floats
from .objects import bytes_object_array, str_object_array
from .strings import string_array
from .temporal import period_array, zoned_timestamps

ToArray = Callable[[OutputType, DecodedColumn, int], Any]


def to_array(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return the NumPy or extension array of a decoded column, which takes over its memory where possible."""
    column = TO_ARRAY[target.array_kind](target, buffer, num_rows)
    if target.cast_to is not None:
        return restore(column, target.cast_to)
    return to_categorical(column) if target.categorical else column


def to_categorical(column: Any) -> pd.Categorical:
    """Return a column as a Categorical, its categories in order of appearance; integers must be masked arrays."""
    codes, distinct = pd.factorize(column)
    masked = isinstance(distinct, pd.api.extensions.ExtensionArray) and hasattr(distinct.dtype, "numpy_dtype")
    if distinct.dtype == np.float16:  # pandas has no float16 Index
        distinct = distinct.astype(np.float32)
    return categorical_of(codes, pd.Index(distinct.to_numpy() if masked else distinct), False)


def _block_row(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    return buffer.fixed_values


def _bytes_objects(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    if target.storage == "fixed":
        return strings.fixed_bytes_objects(buffer.fixed_values, buffer.validity, buffer.null_count)
    return strings.binary_objects(buffer.arrays, bytes_object_array, None)


def _decimal_objects(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    if target.storage == "fixed":
        return decimal_objects(buffer.fixed_values, target.type.scale, buffer.validity, buffer.null_count)
    return binary_decimal_objects(buffer.arrays, target.type.scale)


def _categorical(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    if target.entry_type is None:
        return build_categorical(target, buffer.arrays)
    return restore_categorical(target, buffer.arrays, to_array)


def _arrow_array(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    from .arrow import arrow_extension_array

    return arrow_extension_array(target, buffer, num_rows)


TO_ARRAY: dict[str, ToArray] = {
    "block": _block_row,
    "widened": integers_without_nulls,
    "narrow_floats": floats_if_nulls,
    "masked": masked_array,
    "masked_floats": masked_floats,
    "timestamp_tz": zoned_timestamps,
    "periods": period_array,
    "bool_objects": lambda target, buffer, rows: numbers.boolean_objects(
        buffer.fixed_values, buffer.validity, buffer.null_count
    ),
    "dates": lambda target, buffer, rows: temporal.date_objects(
        buffer.fixed_values, buffer.validity, buffer.null_count
    ),
    "times": lambda target, buffer, rows: temporal.time_objects(
        buffer.fixed_values, target.type.unit, buffer.validity, buffer.null_count
    ),
    "uuids": lambda target, buffer, rows: objects.uuid_objects(buffer.fixed_values, buffer.validity, buffer.null_count),
    "bytes": _bytes_objects,
    "decimals": _decimal_objects,
    "text": lambda target, buffer, rows: string_array(buffer.arrays, target.pandas_dtype),
    "text_objects": lambda target, buffer, rows: strings.binary_objects(buffer.arrays, str_object_array, None),
    "category": _categorical,
    "nulls": lambda target, buffer, rows: np.full(rows, None, object),
    "arrow": _arrow_array,
}


def restore(column: Any, original: DtypeSpec) -> Any:
    """Return a column with the dtype it was written with; the column as it is if a value would be lost."""
    try:
        return _restore(column, original)
    except (ValueError, TypeError, ArithmeticError):  # a value does not fit the dtype
        return column


def _restore(column: Any, wanted: DtypeSpec) -> Any:
    if wanted.categories is not None:
        return column if isinstance(column, pd.Categorical) else _to_categorical(column, wanted)
    dtype = wanted.dtype
    if isinstance(dtype, pd.SparseDtype):
        values = _to_numpy(column, dtype.subtype)
        return pd.arrays.SparseArray(values, dtype=dtype) if values.dtype == dtype.subtype else column
    if isinstance(dtype, pd.ArrowDtype):
        return _to_arrow_dictionary(column, dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        coarse = column.as_unit(dtype.unit)
        return coarse if (coarse.as_unit(column.unit).asi8 == column.asi8).all() else column
    return _to_numpy(column, dtype)


def _to_numpy(column: Any, dtype: np.dtype) -> Any:
    """Return a column as a NumPy dtype where that is exact."""
    if column.dtype == dtype:
        return column
    if dtype.kind == "O":
        return _to_objects(column)
    if dtype.kind == "M" and column.dtype.kind == "M":
        coarse = column.astype(dtype)
        exact = coarse.astype(column.dtype).view("i8") == column.view("i8")
        return coarse if exact.all() else column
    return column


def _to_objects(column: Any) -> np.ndarray:
    out = np.array(pd.Index(column).astype(object), object)
    out[np.asarray(pd.isna(column))] = None
    return out


def _to_categorical(column: Any, wanted: DtypeSpec) -> Any:
    """Return a Categorical of values, with values that are not categories yet; the column if its dtype lacks them."""
    assert wanted.categories is not None
    categories = pd.Index([] if wanted.values is None else list(wanted.values), dtype=_index_dtype(wanted.categories))
    present = np.asarray(~pd.isna(column))
    others = [value for value in pd.unique(column[present]).tolist() if value not in categories]
    categories = categories.append(pd.Index(others, dtype=categories.dtype)) if others else categories
    codes = np.full(len(column), -1, np.int64)
    codes[present] = categories.get_indexer(column[present])
    if (codes[present] < 0).any():
        return column
    return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(categories, wanted.ordered), validate=False)


def _index_dtype(wanted: DtypeSpec) -> Any:
    return object if wanted.dtype is None else wanted.dtype


def _to_arrow_dictionary(column: pd.Categorical, dtype: pd.ArrowDtype) -> Any:
    """Return a Categorical as a column of an Arrow dictionary type."""
    import pyarrow as pa

    wanted = dtype.pyarrow_dtype
    codes = pa.array(column.codes, wanted.index_type, mask=np.asarray(column.codes) < 0)
    values = pa.array(column.categories.array).cast(wanted.value_type)
    return pd.arrays.ArrowExtensionArray(pa.DictionaryArray.from_arrays(codes, values, ordered=wanted.ordered))
