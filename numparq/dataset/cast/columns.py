"""Cast finished pandas columns of a file to the dtypes of the merged schema."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.projection import NestedProjection
from numparq.errors import SchemaError, error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.schema import Leaf
from numparq.to_pandas.columns import to_categorical
from numparq.types.common_type import describe_type
from numparq.types.dtype_backends import nullable_dtype
from numparq.types.parquet_type import infer_arrow_type

from .nested import cast_nested
from .values import cast_exact, cast_time_unit, decimal_from_int, rescale_decimal, values_and_mask

__all__ = ["cast_column", "null_column"]

_NULLS = {"f": np.nan, "c": complex(np.nan, np.nan), "M": np.datetime64("NaT"), "m": np.timedelta64("NaT"), "O": None}

_MASKED = pd.core.dtypes.dtypes.BaseMaskedDtype

_Rule = Callable[[Any, ArrowType, ArrowType, Any], Any]


def _numbers(array: Any, source: ArrowType, target: ArrowType, dtype: np.dtype) -> np.ndarray:
    """Cast to integers, floats or booleans, of which only floats hold nulls."""
    values, mask = _values(array, source, dtype)
    result = cast_exact(values, dtype)
    if mask is not None and mask.any():
        if dtype.kind != "f":
            raise SchemaError(f"the column has nulls, which dtype {dtype} cannot hold")
        result = np.where(mask, dtype.type(np.nan), result)
    return result


def _moments(array: Any, source: ArrowType, target: ArrowType, dtype: np.dtype) -> Any:
    """Cast to timestamps without a time zone, or to durations."""
    unit = np.datetime_data(dtype)[0]
    if isinstance(array, pd.arrays.DatetimeArray | pd.arrays.TimedeltaArray) and isinstance(array.dtype, np.dtype):
        array = array.to_numpy()
    if not isinstance(array, np.ndarray):
        return _unchanged(array, dtype)
    if array.dtype.kind == "O" and source.kind == "date":
        array = array.astype("M8[D]")
    if array.dtype.kind != dtype.kind:
        return _unchanged(array, dtype)
    return cast_time_unit(array, unit)


def _objects(array: Any, source: ArrowType, target: ArrowType, dtype: np.dtype) -> np.ndarray:
    """Cast to Python objects of the dataset's type."""
    if target.kind == "decimal":
        return _decimals(array, source, target, dtype)
    is_moment = array.dtype.kind in "mM"
    if is_moment and source.kind in ("date", "time"):
        raise SchemaError(
            f"a value exceeds the range of datetime.{source.kind}, which other files need for this column"
        )
    if source.kind != target.kind and not {source.kind, target.kind} <= {"binary", "fixed_size_binary"}:
        raise SchemaError(
            f"type {describe_type(source)} cannot be cast to Python objects of type {describe_type(target)}"
        )
    return _as_objects(array)


_NUMPY: dict[str, _Rule] = {
    **dict.fromkeys("iufb", _numbers),
    **dict.fromkeys("mM", _moments),
    "O": _objects,
    "c": lambda array, source, target, dtype: _unchanged(array, dtype),
}


def _masked(array: Any, source: ArrowType, target: ArrowType, dtype: Any) -> Any:
    values, mask = _values(array, source, dtype)
    result = cast_exact(values, dtype.numpy_dtype)
    if mask is None:
        mask = np.isnan(result) if result.dtype.kind == "f" else np.zeros(len(result), bool)
    return dtype.construct_array_type()(result, mask, copy=False)


def _strings(array: Any, source: ArrowType, target: ArrowType, dtype: pd.StringDtype) -> Any:
    if array.dtype == dtype:
        return array
    if source.kind != "utf8":
        return _unchanged(array, dtype)
    return dtype.construct_array_type()._from_sequence(_as_objects(array), dtype=dtype)


def _zoned(array: Any, source: ArrowType, target: ArrowType, dtype: pd.DatetimeTZDtype) -> Any:
    """Cast to timestamps in a time zone; instants stay the same."""
    moments = array.tz_convert(None).to_numpy() if isinstance(array, pd.arrays.DatetimeArray) and array.tz else array
    moments = _moments(moments, source, target, np.dtype(f"M8[{dtype.unit}]"))
    return pd.array(moments.view(np.int64), dtype=dtype, copy=False)


_EXTENSIONS: tuple[tuple[Any, _Rule], ...] = (
    (_MASKED, _masked),
    (pd.StringDtype, _strings),
    (pd.DatetimeTZDtype, _zoned),
)

_CATEGORIES: dict[str, Callable[[ArrowType], Any]] = {
    "int": lambda item: f"{'' if item.signed else 'u'}int{item.bit_width}",
    "float": lambda item: f"float{max(item.bit_width, 32)}",
    "utf8": lambda item: "str",
}


def null_column(dtype: Any, count: int) -> Any:
    """Return a column of nulls; SchemaError if there are rows and the dtype cannot hold nulls."""
    if isinstance(dtype, np.dtype):
        if _has_no_null(dtype):
            if count:
                raise SchemaError(f"the file lacks the column, and dtype {dtype} cannot hold nulls")
            return np.empty(0, dtype)
        return np.full(count, _NULLS[dtype.kind], dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(_arrow_nulls(dtype.pyarrow_dtype, count))
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Categorical.from_codes(np.full(count, -1, np.int8), dtype=dtype)
    if isinstance(dtype, pd.IntervalDtype) and not _has_no_null(dtype.subtype):
        bounds = null_column(dtype.subtype, count)
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


def cast_column(
    array: Any,
    from_column: Leaf | NestedProjection | None,
    to_column: Leaf | NestedProjection,
    dtype: Any,
    *,
    num_rows: int,
    file: str | None = None,
) -> Any:
    """Cast a finished column of a file to the dataset's dtype; a column that the file lacks (None) is null.

    `from_column` is the file's column (`MappedColumn.column`), `to_column` that of the schema file. `array` must not be
    used again. A Categorical keeps its own categories. SchemaError, with file and column, if a value does not fit.
    """
    with error_context(file=file, column=to_column.name):
        if from_column is None or array is None:
            return _nulls(to_column, dtype, num_rows)
        if isinstance(dtype, pd.ArrowDtype):
            from .arrow import cast_arrow

            return cast_arrow(array, dtype)
        source, target = _leaf_of(from_column), _leaf_of(to_column)
        if source is None or target is None:
            if isinstance(from_column, Leaf) or isinstance(to_column, Leaf) or not _are_objects(array.dtype, dtype):
                return _pairs(array, dtype)
            return cast_nested(array, from_column.type, to_column.type)
        return _flat(array, _type_of(source), _type_of(target), dtype)


def _leaf_of(column: Leaf | NestedProjection) -> Leaf | None:
    return column if isinstance(column, Leaf) else column.type.leaf


def _type_of(leaf: Leaf) -> ArrowType:
    return infer_arrow_type(leaf.physical, leaf.type_length, leaf.logical)


def _are_objects(*dtypes: Any) -> bool:
    return all(isinstance(dtype, np.dtype) and dtype.kind == "O" for dtype in dtypes)


def _unchanged(array: Any, dtype: Any) -> Any:
    if array.dtype != dtype:
        raise SchemaError(f"dtype {array.dtype} cannot be cast to {dtype}")
    return array


def _pairs(array: Any, dtype: Any) -> Any:
    """Cast intervals, or complex numbers, to bounds or parts of another dtype."""
    are_intervals = isinstance(dtype, pd.IntervalDtype) and isinstance(array, pd.arrays.IntervalArray)
    if array.dtype != dtype and are_intervals and array.closed == dtype.closed:
        result = array.astype(dtype)
        there = ~array.isna()
        if all((one == other)[there].all() for one, other in ((result.left, array.left), (result.right, array.right))):
            return result
    if isinstance(dtype, np.dtype) and dtype.kind == "c" == array.dtype.kind and np.can_cast(array.dtype, dtype):
        return array.astype(dtype)
    return _unchanged(array, dtype)


# --- flat columns ----------------------------------------------------------------------------------------------------


def _flat(array: Any, source: ArrowType, target: ArrowType, dtype: Any) -> Any:
    if source.kind == "null":
        return null_column(dtype, len(array))
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(array, target, dtype)
    array = _plain(array)
    if isinstance(dtype, np.dtype):
        return _NUMPY[dtype.kind](array, source, target, dtype)
    for kind, rule in _EXTENSIONS:
        if isinstance(dtype, kind):
            return rule(array, source, target, dtype)
    return _unchanged(array, dtype)


def _plain(array: Any) -> Any:
    """Return the values of a sparse, Arrow or Categorical column as a plain array."""
    if isinstance(array, pd.arrays.SparseArray):
        return _plain(array.to_dense())
    if isinstance(array, pd.arrays.ArrowExtensionArray):
        return _out_of_arrow(array)
    if not isinstance(array, pd.Categorical):
        return array
    categories, codes = array.categories.array, np.asarray(array.codes)
    if isinstance(array.categories.dtype, np.dtype):
        values = np.asarray(categories)
        if values.dtype.kind not in "iufb":
            out = values.take(codes, mode="clip") if len(values) else np.empty(len(codes), values.dtype)
            out[codes < 0] = None if values.dtype.kind == "O" else "NaT"
            return out
        categories = pd.array(values, dtype=nullable_dtype(values.dtype))
    return categories.take(codes, allow_fill=True)


def _out_of_arrow(array: Any) -> Any:
    kind = array.dtype.kind
    if kind in "iufb":
        return array.astype(nullable_dtype(array.dtype.numpy_dtype))
    result = array.__arrow_array__().to_pandas()
    return result.to_numpy() if isinstance(result.dtype, np.dtype) else result.array


def _values(array: Any, source: ArrowType, dtype: Any) -> tuple[np.ndarray, np.ndarray | None]:
    known = isinstance(array, np.ndarray) or isinstance(array.dtype, _MASKED)
    return values_and_mask(array if known else _unchanged(array, dtype), source.kind == "int")


def _as_objects(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        return array
    out = np.array(pd.Index(array).astype(object), object)
    out[np.asarray(pd.isna(out))] = None
    return out


def _decimals(array: Any, source: ArrowType, target: ArrowType, dtype: np.dtype) -> np.ndarray:
    unit = decimal.Decimal((0, (1,), -target.scale))
    out = np.full(len(array), None, object)
    if source.kind == "decimal":
        there = np.flatnonzero(array != None)  # noqa: E711  (item by item)
        same = source.scale == target.scale
        out[there] = array[there] if same else [rescale_decimal(value, unit) for value in array[there]]
        return out
    values, mask = _values(array, source, dtype)
    there = np.arange(len(values)) if mask is None else np.flatnonzero(~mask)
    out[there] = [decimal_from_int(value, unit) for value in values[there].tolist()]
    return out


# --- Categoricals and columns that are missing ----------------------------------------------------------------------


def _categories(array: Any, target: ArrowType, dtype: pd.CategoricalDtype) -> pd.Categorical:
    result = array if isinstance(array, pd.Categorical) else to_categorical(_plain(array))
    labels = result.categories
    index = _no_categories(target, dtype)
    if labels.dtype != index.dtype and (not len(labels) or labels.dtype.kind in "iuf"):
        labels = pd.Index(cast_exact(labels.to_numpy(), index.dtype)) if len(labels) else index
    known = pd.CategoricalDtype(labels, dtype.ordered)
    return pd.Categorical.from_codes(result.codes, dtype=known)


def _no_categories(target: ArrowType, dtype: pd.CategoricalDtype) -> pd.Index:
    """Return an Index without values, of the dtype that the categories of a column have."""
    known = dtype.categories
    if known is not None and known.dtype != object:
        return known[:0]
    name = _CATEGORIES.get(target.kind)
    return pd.Index([], dtype=object if name is None else name(target))


def _nulls(to_column: Leaf | NestedProjection, dtype: Any, count: int) -> Any:
    leaf = _leaf_of(to_column)
    if isinstance(dtype, pd.CategoricalDtype) and leaf is not None:
        dtype = pd.CategoricalDtype(_no_categories(_type_of(leaf), dtype), dtype.ordered)
    return null_column(dtype, count)
