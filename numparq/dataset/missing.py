"""Columns of nothing but nulls, of any dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError

__all__ = ["nulls"]

_NULLS = {"f": np.nan, "c": complex(np.nan, np.nan), "M": np.datetime64("NaT"), "m": np.timedelta64("NaT"), "O": None}


def nulls(dtype: Any, count: int) -> Any:
    """Make a column of nulls.

    Parameters
    ----------
    dtype : numpy.dtype or pandas.api.extensions.ExtensionDtype
        Its dtype; of a Categorical the categories are those of the dtype.
    count : int
        Its rows.

    Returns
    -------
    numpy.ndarray or pandas.api.extensions.ExtensionArray

    Raises
    ------
    SchemaError
        When there are rows, and the dtype has no null.
    """
    if isinstance(dtype, np.dtype):
        if _has_no_null(dtype):
            if count:
                raise SchemaError(f"the column is missing here, and {dtype} has no nulls")
            return np.empty(0, dtype)
        return np.full(count, _NULLS[dtype.kind], dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(_arrow_nulls(dtype.pyarrow_dtype, count))
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Categorical.from_codes(np.full(count, -1, np.int8), dtype=dtype)
    if isinstance(dtype, pd.IntervalDtype) and not _has_no_null(dtype.subtype):
        bounds = nulls(dtype.subtype, count)
        return pd.arrays.IntervalArray.from_arrays(bounds, bounds, closed=dtype.closed)
    nothing = dtype.construct_array_type()._from_sequence([], dtype=dtype)
    return nothing.take(np.full(count, -1, np.intp), allow_fill=True)


def _has_no_null(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind not in _NULLS


def _arrow_nulls(arrow_type: Any, count: int) -> Any:
    import pyarrow as pa

    if isinstance(arrow_type, pa.BaseExtensionType):
        storage = pa.nulls(count, arrow_type.storage_type)
        return pa.chunked_array([pa.ExtensionArray.from_storage(arrow_type, storage)])
    return pa.chunked_array([pa.nulls(count, arrow_type)], type=arrow_type)
