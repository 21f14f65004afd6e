"""Columns of numbers: NumPy's booleans, integers and floats, and pandas' nullable ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..leaves import LeafValues
from .source import Convert, Source, contiguous, flat, slices, validity_of

_INT32 = np.dtype(np.int32)


def _booleans(values: np.ndarray) -> LeafValues:
    stored = np.ascontiguousarray(values).view(np.uint8)
    if len(stored) and stored.max() > 1:  # True to NumPy is any byte but 0, as in a mask of 255 seen as bool
        stored = (stored != 0).view(np.uint8)
    return LeafValues(stored)


def _narrow(values: np.ndarray) -> LeafValues:
    return LeafValues(values.astype(np.int32))


def _words(values: np.ndarray) -> LeafValues:
    """Give integers of 32 or 64 bits as signed ones: a view."""
    native = contiguous(values)
    return LeafValues(native.view(f"i{native.dtype.itemsize}"))


def stored_floats(values: np.ndarray) -> np.ndarray:
    """Give floats as a leaf's values: those of 16 bits as pairs of bytes."""
    native = contiguous(values)
    return native.view(np.uint8) if native.dtype.itemsize == 2 else native


def _floats(values: np.ndarray) -> LeafValues:
    """Give floats, with NaN for a null, as pyarrow's ``from_pandas`` has it."""
    native = contiguous(values)
    return LeafValues(stored_floats(native), validity=validity_of(native == native))


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
        return arrow_type, _narrow if dtype.itemsize < _INT32.itemsize else _words
    return arrow_type, _booleans if dtype.kind == "b" else _floats


def numpy_numbers(values: np.ndarray) -> Source:
    """Give the source of a NumPy array of booleans, integers or floats."""
    arrow_type, convert = number_converter(values.dtype)
    return flat(arrow_type, slices(values), convert)


def masked_numbers(array: Any) -> Source:
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
        leaf = LeafValues(stored_floats(part)) if is_float else convert(part)
        leaf.validity = validity_of(~mask[start:stop])
        return [leaf]

    return Source(arrow_type, leaves)
