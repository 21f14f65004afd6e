"""Values of one column: the table from pandas dtype to converter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError

from .column_values import ColumnValues, NestedValuesError
from .dictionary import categorical_values
from .numbers import masked_number_values, numpy_number_values
from .strings import string_array_values
from .struct_dtypes import complex_values, interval_values
from .temporal import numpy_temporal_values, period_values, zoned_timestamp_values


def array_values(array: Any) -> ColumnValues:
    """Return the values of a NumPy or pandas array.

    Raises NestedValuesError for nested values, SchemaError for dtypes that Parquet or numparq cannot store.
    """
    if isinstance(array, pd.arrays.NumpyExtensionArray) and not isinstance(array.dtype, pd.StringDtype):
        array = array.to_numpy()
    if isinstance(array.dtype, np.dtype):
        values = np.asarray(array)
        take = _BY_NUMPY_KIND.get(values.dtype.kind)
        if take is None:
            raise SchemaError(f"a column of dtype {values.dtype} cannot be written: Parquet has no such type")
        return take(values)
    for dtype_class, take in _BY_EXTENSION_DTYPE:
        if isinstance(array.dtype, dtype_class):
            return take(array)
    return _extension_values(array)


def _object_values(values: np.ndarray) -> ColumnValues:
    from .objects import object_values

    return object_values(values, array_values)


def _sparse_values(array: Any) -> ColumnValues:
    """Return the values of a SparseArray, made dense when their rows are read."""
    dtype = array.dtype.subtype
    if dtype.kind == "O":
        return array_values(np.asarray(array))
    source = array_values(np.empty(0, dtype))
    rows, values, fill = array.sp_index.to_int_index().indices, array.sp_values, array.fill_value

    def leaves(start: int, stop: int) -> list[LeafValues]:
        first, last = np.searchsorted(rows, np.array((start, stop), rows.dtype))  # a mixed dtype would convert all rows
        dense = np.full(stop - start, fill, dtype)
        dense[rows[first:last] - start] = values[first:last]
        return array_values(dense).read_leaves(0, stop - start)

    return ColumnValues(source.type, leaves, source.children)


def _arrow_values(array: Any) -> ColumnValues:
    from numparq.types.pyarrow import is_nested_type

    from .arrow import arrow_values

    data = array.__arrow_array__()
    if is_nested_type(data.type):
        raise NestedValuesError
    return arrow_values(data)


def _extension_values(array: Any) -> ColumnValues:
    """Return the values of a third-party extension array: by Arrow where it can be converted, else as objects."""
    if hasattr(array, "__arrow_array__"):
        from numparq.types.pyarrow import is_nested_type

        from .arrow import arrow_values

        data = array.__arrow_array__()
        if is_nested_type(data.type):
            raise NestedValuesError
        return arrow_values(data)
    return _object_values(np.asarray(array, object))


_BY_NUMPY_KIND: dict[str, Callable[[np.ndarray], ColumnValues]] = {
    **dict.fromkeys("biuf", numpy_number_values),
    "c": complex_values,
    **dict.fromkeys("mM", numpy_temporal_values),
    "O": _object_values,
}
_BY_EXTENSION_DTYPE: tuple[tuple[Any, Callable[[Any], ColumnValues]], ...] = (
    (pd.StringDtype, string_array_values),
    (pd.CategoricalDtype, lambda array: categorical_values(array, array_values)),
    (pd.DatetimeTZDtype, zoned_timestamp_values),
    (pd.core.dtypes.dtypes.BaseMaskedDtype, masked_number_values),
    (pd.PeriodDtype, period_values),
    (pd.IntervalDtype, lambda array: interval_values(array, array_values)),
    (pd.SparseDtype, _sparse_values),
    (pd.ArrowDtype, _arrow_values),
)
