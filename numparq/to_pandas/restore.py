"""Restore the dtype that a column was written with: object, Sparse, seconds, Categorical."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from numparq.format.key_values.pandas_dtypes import DtypeSpec


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
