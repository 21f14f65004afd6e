"""Booleans, integers and floats to leaf values: NumPy arrays, nullable arrays and Python objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType

from .column_values import (
    ColumnValues,
    Convert,
    flat_object_values,
    flat_values,
    native_contiguous,
    present_chunks,
    row_slicer,
    validity_bytes,
)

_INT32 = np.dtype(np.int32)

_MAX_EXACT_INTEGER = 1 << 53  # integers up to here are floats without loss


def _boolean_leaf(values: np.ndarray) -> LeafValues:
    stored = np.ascontiguousarray(values).view(np.uint8)
    if len(stored) and stored.max() > 1:  # True to NumPy is any byte but 0, as in a mask of 255 seen as bool
        stored = (stored != 0).view(np.uint8)
    return LeafValues(stored)


def _small_integer_leaf(values: np.ndarray) -> LeafValues:
    return LeafValues(values.astype(np.int32))


def _integer_leaf(values: np.ndarray) -> LeafValues:
    """Give integers of 32 or 64 bits as signed ones: a view."""
    native = native_contiguous(values)
    return LeafValues(native.view(f"i{native.dtype.itemsize}"))


def float_bytes(values: np.ndarray) -> np.ndarray:
    """Give floats as a leaf's values: those of 16 bits as pairs of bytes."""
    native = native_contiguous(values)
    return native.view(np.uint8) if native.dtype.itemsize == 2 else native


def _float_leaf(values: np.ndarray) -> LeafValues:
    """Give floats, with NaN for a null, as pyarrow's ``from_pandas`` has it."""
    native = native_contiguous(values)
    return LeafValues(float_bytes(native), validity=validity_bytes(native == native))


def number_type(dtype: np.dtype) -> ArrowType:
    """Give the Arrow type of a NumPy dtype of booleans, integers or floats.

    Raises
    ------
    SchemaError
        When there is none (long double).
    """
    if dtype.kind == "b":
        return ArrowType("bool")
    if dtype.kind in "iu":
        return ArrowType("int", 8 * dtype.itemsize, dtype.kind == "i")
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return ArrowType("float", 8 * dtype.itemsize)
    raise SchemaError(f"a column of dtype {dtype} cannot be written: Parquet has no such type")


def number_converter(dtype: np.dtype) -> tuple[ArrowType, Convert]:
    """Say how an array of booleans, integers or floats becomes a leaf.

    Parameters
    ----------
    dtype : numpy.dtype
        Of the array.

    Returns
    -------
    arrow_type : ArrowType
        What the values are.
    convert : callable
        Makes the values of a leaf of an array; without a copy for 32 and 64 bits.

    Raises
    ------
    SchemaError
        When the format has no such numbers.
    """
    arrow_type = number_type(dtype)
    if dtype.kind in "iu":
        return arrow_type, _small_integer_leaf if dtype.itemsize < _INT32.itemsize else _integer_leaf
    return arrow_type, _boolean_leaf if dtype.kind == "b" else _float_leaf


def numpy_number_values(values: np.ndarray) -> ColumnValues:
    """Give the source of a NumPy array of booleans, integers or floats."""
    arrow_type, convert = number_converter(values.dtype)
    return flat_values(arrow_type, row_slicer(values), convert)


def masked_number_values(array: Any) -> ColumnValues:
    """Give the source of a nullable array (Int64, boolean, Float32 and their like).

    Parameters
    ----------
    array : pandas.arrays.IntegerArray, FloatingArray or BooleanArray
        In those, a NaN that is not masked is a value.
    """
    values, mask = array._data, array._mask
    arrow_type, convert = number_converter(values.dtype)
    is_float = values.dtype.kind == "f"

    def leaves(start: int, stop: int) -> list[LeafValues]:
        part = values[start:stop]
        leaf = LeafValues(float_bytes(part)) if is_float else convert(part)
        leaf.validity = validity_bytes(~mask[start:stop])
        return [leaf]

    return ColumnValues(arrow_type, leaves)


def boolean_objects(values: np.ndarray) -> ColumnValues:
    """Give the source of bool objects."""
    return flat_object_values(ArrowType("bool"), values, lambda part: part.astype(bool).view(np.uint8))


def _common_dtype(classes: Iterable[type], default: type) -> np.dtype:
    """Give the NumPy dtype that holds scalars, where they all are of NumPy; else the default, as for Python's own."""
    dtypes = [np.dtype(cls) for cls in classes if issubclass(cls, np.generic)]
    plain = any(issubclass(cls, (int, float)) and not issubclass(cls, np.generic) for cls in classes)
    if plain or not dtypes:
        return np.dtype(default)
    common = np.result_type(*dtypes)
    return common if (common.kind == "f") == (dtypes[0].kind == "f") else np.dtype(default)


def integer_objects(values: np.ndarray, classes: Iterable[type]) -> ColumnValues:
    """Give the source of int objects: of 64 bits, unsigned where they need that, or of NumPy's scalars' own size."""
    dtype = _common_dtype([cls for cls in classes if issubclass(cls, (int, np.integer))], np.int64)
    if dtype == np.int64 and not _all_within(values, np.int64):
        if not _all_within(values, np.uint64):
            raise SchemaError("an integer is beyond 64 bits, which is what Parquet's integers have at most")
        dtype = np.dtype(np.uint64)
    arrow_type, convert = number_converter(dtype)
    return flat_object_values(arrow_type, values, lambda part: convert(part.astype(dtype)).values)


def _all_within(values: np.ndarray, dtype: type) -> bool:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return all(low <= int(min(part)) and int(max(part)) <= high for part in present_chunks(values) if len(part))


def float_objects(values: np.ndarray, classes: Iterable[type]) -> ColumnValues:
    """Give the source of float objects: of 64 bits, or of NumPy's scalars' own size."""
    dtype = _common_dtype([cls for cls in classes if issubclass(cls, (float, np.floating))], np.float64)
    arrow_type, convert = number_converter(dtype)
    width = 2 if dtype.itemsize == 2 else 0
    return flat_object_values(arrow_type, values, lambda part: convert(part.astype(dtype)).values, width)


def mixed_number_objects(values: np.ndarray) -> ColumnValues:
    """Give the source of float and int objects: floats, if those hold the integers exactly."""

    def convert(part: np.ndarray) -> np.ndarray:
        found = part.astype(np.float64)
        for place in np.flatnonzero(np.abs(found) >= _MAX_EXACT_INTEGER).tolist():
            value = part[place]
            if isinstance(value, (int, np.integer)) and int(found[place]) != int(value):
                raise SchemaError(f"the integer {value} stands beside floats, and is none without loss")
        return found

    return flat_object_values(ArrowType("float", 64), values, convert)
