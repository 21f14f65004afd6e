"""Booleans, integers and floats to leaf values: NumPy arrays, nullable arrays and Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from numparq.column.leaf_values import JoinableRows, LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.kernels.kernel_groups import text_kernels
from numparq.kernels.objects.types import BOOL, FLOAT, INT
from numparq.kernels.status import BAD_VALUE, check_status

from .column_values import (
    ColumnValues,
    Convert,
    ObjectReader,
    can_read_all,
    flat_object_values,
    native_contiguous,
    present_chunks,
    sliced_values,
    validity_bytes,
)
from .object_layout import kernel_constants, object_layout

_INT32 = np.dtype(np.int32)

_MAX_EXACT_INTEGER = 1 << 53  # all integers up to here are exact in float64


def _boolean_leaf(values: np.ndarray) -> LeafValues:
    stored = np.ascontiguousarray(values).view(np.uint8)
    if len(stored) and stored.max() > 1:  # NumPy's True is any byte but 0, such as 255 in a mask viewed as bool
        stored = (stored != 0).view(np.uint8)
    return LeafValues(stored)


def _small_integer_leaf(values: np.ndarray) -> LeafValues:
    return LeafValues(values.astype(np.int32))


def _integer_leaf(values: np.ndarray) -> LeafValues:
    """Return integers of 32 or 64 bits as signed ones, a view where the byte order is native."""
    native = native_contiguous(values)
    return LeafValues(native.view(f"i{native.dtype.itemsize}"))


def float_bytes(values: np.ndarray) -> np.ndarray:
    """Return floats as leaf values: float16 as pairs of bytes (uint8), others as they are."""
    native = native_contiguous(values)
    return native.view(np.uint8) if native.dtype.itemsize == 2 else native


def _float_leaf(values: np.ndarray) -> LeafValues:
    """Return floats with NaN as null, like pyarrow's ``from_pandas``."""
    native = native_contiguous(values)
    return LeafValues(float_bytes(native), validity=validity_bytes(native == native))


def number_type(dtype: np.dtype) -> ArrowType:
    """Return the Arrow type of a NumPy dtype of booleans, integers or floats; SchemaError for long double."""
    if dtype.kind == "b":
        return ArrowType("bool")
    if dtype.kind in "iu":
        return ArrowType("int", 8 * dtype.itemsize, dtype.kind == "i")
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return ArrowType("float", 8 * dtype.itemsize)
    raise SchemaError(f"a column of dtype {dtype} cannot be written: Parquet has no such type")


@lru_cache(maxsize=64)
def number_converter(dtype: np.dtype) -> tuple[ArrowType, Convert]:
    """Return the Arrow type of a dtype, and a function from array to leaf values (no copy for 32 and 64 bits)."""
    arrow_type = number_type(dtype)
    if dtype.kind in "iu":
        return arrow_type, _small_integer_leaf if dtype.itemsize < _INT32.itemsize else _integer_leaf
    return arrow_type, _boolean_leaf if dtype.kind == "b" else _float_leaf


def numpy_number_values(values: np.ndarray) -> ColumnValues:
    """Return the values of a NumPy array of booleans, integers or floats."""
    arrow_type, convert = number_converter(values.dtype)
    return sliced_values(arrow_type, values, convert)


def masked_number_values(array: Any) -> ColumnValues:
    """Return the values of a nullable array (Int64, boolean, Float32, ...); a NaN that is not masked is a value."""
    values, mask = array._data, array._mask
    arrow_type, convert = masked_number_converter(values.dtype)
    joinable = JoinableRows(
        (convert, values.dtype),
        lambda start, stop: [(values[start:stop], mask[start:stop])],
        lambda parts: convert(*map(np.concatenate, zip(*parts, strict=True))),
    )
    return ColumnValues(arrow_type, lambda start, stop: [convert(values[start:stop], mask[start:stop])], (), joinable)


@lru_cache(maxsize=64)
def masked_number_converter(dtype: np.dtype) -> tuple[ArrowType, Callable[[np.ndarray, np.ndarray], LeafValues]]:
    """Return the Arrow type of a dtype, and a function from values and their mask (True at nulls) to leaf values."""
    arrow_type, convert = number_converter(dtype)

    def convert_masked(values: np.ndarray, mask: np.ndarray) -> LeafValues:
        leaf = LeafValues(float_bytes(values)) if dtype.kind == "f" else convert(values)
        leaf.validity = validity_bytes(~mask)
        return leaf

    return arrow_type, convert_masked


def scalar_reader(dtype: np.dtype) -> ObjectReader | None:
    """Return the reader of bool, int or float objects for a bool, int64 or float64 dtype, else None."""
    return _READERS.get(dtype) if object_layout() is not None else None


def _read_scalars(values: np.ndarray, kind: int) -> LeafValues | None:
    objects, count = np.ascontiguousarray(values), len(values)
    words, validity = np.empty(count, np.int64), np.empty(count, np.uint8)
    present = text_kernels.read_scalars(objects, count, kernel_constants(), kind, words, validity)
    if present == BAD_VALUE:
        return None
    stored = words.view(np.float64) if kind == FLOAT else words.astype(np.uint8) if kind == BOOL else words
    return LeafValues(stored, validity=None if check_status(present) == count else validity)


_READERS: dict[np.dtype, ObjectReader] = {
    np.dtype(dtype): partial(_read_scalars, kind=kind)
    for dtype, kind in ((bool, BOOL), (np.int64, INT), (np.float64, FLOAT))
}


def boolean_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of bool objects."""
    return flat_object_values(
        ArrowType("bool"),
        values,
        lambda part: part.astype(bool).view(np.uint8),
        read=scalar_reader(np.dtype(bool)),
    )


def _common_dtype(classes: Iterable[type], default: type) -> np.dtype:
    """Return the common dtype if all classes are NumPy scalars, else `default`."""
    dtypes = [np.dtype(cls) for cls in classes if issubclass(cls, np.generic)]
    plain = any(issubclass(cls, (int, float)) and not issubclass(cls, np.generic) for cls in classes)
    if plain or not dtypes:
        return np.dtype(default)
    common = np.result_type(*dtypes)
    return common if (common.kind == "f") == (dtypes[0].kind == "f") else np.dtype(default)


def integer_objects(values: np.ndarray, classes: Iterable[type]) -> ColumnValues:
    """Return the values of int objects: int64, uint64 if needed, or the common dtype of NumPy scalars."""
    dtype = _common_dtype([cls for cls in classes if issubclass(cls, (int, np.integer))], np.int64)
    read = scalar_reader(dtype)
    if read is not None and not can_read_all(values, read):
        read = None
    if read is None and dtype == np.int64 and not _all_within(values, np.int64):
        if not _all_within(values, np.uint64):
            low, high = (end(map(end, filter(len, present_chunks(values)))) for end in (min, max))
            raise SchemaError(f"integers from {low} to {high} do not fit 64 bits, the limit of Parquet; use Decimals")
        dtype = np.dtype(np.uint64)
    arrow_type, convert = number_converter(dtype)
    return flat_object_values(arrow_type, values, lambda part: convert(part.astype(dtype)).values, read=read)


def _all_within(values: np.ndarray, dtype: type) -> bool:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return all(low <= int(min(part)) and int(max(part)) <= high for part in present_chunks(values) if len(part))


def float_objects(values: np.ndarray, classes: Iterable[type]) -> ColumnValues:
    """Return the values of float objects: float64, or the common dtype of NumPy scalars."""
    dtype = _common_dtype([cls for cls in classes if issubclass(cls, (float, np.floating))], np.float64)
    arrow_type, convert = number_converter(dtype)
    width = 2 if dtype.itemsize == 2 else 0
    return flat_object_values(
        arrow_type, values, lambda part: convert(part.astype(dtype)).values, width, scalar_reader(dtype)
    )


def mixed_number_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of float and int objects as float64; SchemaError for an integer that float64 cannot hold."""

    def convert(part: np.ndarray) -> np.ndarray:
        found = part.astype(np.float64)
        for place in np.flatnonzero(np.abs(found) >= _MAX_EXACT_INTEGER).tolist():
            value = part[place]
            if isinstance(value, (int, np.integer)) and int(found[place]) != int(value):
                raise SchemaError(f"integer {value} cannot be stored as float64 without loss; use Decimal objects")
        return found

    return flat_object_values(ArrowType("float", 64), values, convert)
