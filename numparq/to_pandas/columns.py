"""Array of one decoded column: the table from output type to converter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.buffers import DecodedColumn
from numparq.types.output_type import OutputType

from . import numbers, objects, strings, temporal
from .decimals import binary_decimal_objects, decimal_objects
from .dictionary import build_categorical, restore_categorical
from .numbers import floats_if_nulls, integers_without_nulls, masked_array, masked_floats
from .objects import bytes_object_array, str_object_array
from .restore import restore
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
    return pd.Categorical.from_codes(codes, pd.Index(distinct.to_numpy() if masked else distinct))


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
