"""Which module takes a column apart: from its pandas dtype to a `Source`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..leaves import LeafValues
from .coded import categorical
from .moments import numpy_moments, periods, zoned_moments
from .numbers import masked_numbers, numpy_numbers
from .pairs import complex_numbers, intervals
from .source import Source
from .strings import string_array


class Nested(Exception):
    """The values have an inner structure: they are not for this module."""


def source_of(array: Any) -> Source:
    """Give the source of a column.

    Parameters
    ----------
    array : numpy.ndarray or pandas.api.extensions.ExtensionArray
        The values.

    Returns
    -------
    Source

    Raises
    ------
    Nested
        When they are lists, dicts and the like, or of a nested Arrow type.
    SchemaError
        When the format, or numparq, has no place for them.
    """
    if isinstance(array, pd.arrays.NumpyExtensionArray) and not isinstance(array.dtype, pd.StringDtype):
        array = array.to_numpy()
    if isinstance(array.dtype, np.dtype):
        values = np.asarray(array)
        take = _NUMPY.get(values.dtype.kind)
        if take is None:
            raise SchemaError(f"a column of dtype {values.dtype} cannot be written: Parquet has no such type")
        return take(values)
    for dtype_class, take in _EXTENSIONS:
        if isinstance(array.dtype, dtype_class):
            return take(array)
    return _foreign(array)


def _objects(values: np.ndarray) -> Source:
    from .objects import object_source

    return object_source(values, source_of)


def _sparse(array: Any) -> Source:
    """Give the source of a SparseArray: made dense range by range."""
    dtype = array.dtype.subtype
    if dtype.kind == "O":
        return source_of(np.asarray(array))
    source = source_of(np.empty(0, dtype))
    rows, values, fill = array.sp_index.to_int_index().indices, array.sp_values, array.fill_value

    def leaves(start: int, stop: int) -> list[LeafValues]:
        first, last = np.searchsorted(rows, np.array((start, stop), rows.dtype))  # of another dtype, all are converted
        dense = np.full(stop - start, fill, dtype)
        dense[rows[first:last] - start] = values[first:last]
        return source_of(dense).leaves(0, stop - start)

    return Source(source.type, leaves, source.children)


def _arrow(array: Any) -> Source:
    from .arrow_columns import arrow_source, is_nested

    data = array.__arrow_array__()
    if is_nested(data.type):
        raise Nested
    return arrow_source(data)


def _foreign(array: Any) -> Source:
    """Give the source of an extension array that pandas does not bring along."""
    if hasattr(array, "__arrow_array__"):
        from .arrow_columns import arrow_source, is_nested

        data = array.__arrow_array__()
        if is_nested(data.type):
            raise Nested
        return arrow_source(data)
    return _objects(np.asarray(array, object))


_NUMPY: dict[str, Callable[[np.ndarray], Source]] = {
    **dict.fromkeys("biuf", numpy_numbers),
    "c": complex_numbers,
    **dict.fromkeys("mM", numpy_moments),
    "O": _objects,
}
_EXTENSIONS: tuple[tuple[Any, Callable[[Any], Source]], ...] = (
    (pd.StringDtype, string_array),
    (pd.CategoricalDtype, lambda array: categorical(array, source_of)),
    (pd.DatetimeTZDtype, zoned_moments),
    (pd.core.dtypes.dtypes.BaseMaskedDtype, masked_numbers),
    (pd.PeriodDtype, periods),
    (pd.IntervalDtype, lambda array: intervals(array, source_of)),
    (pd.SparseDtype, _sparse),
    (pd.ArrowDtype, _arrow),
)
