"""A leaf of a nested column as the flat column it would be."""

from __future__ import annotations

from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, concat_binary
from numparq.column.nested.arrays import LeafArray
from numparq.column.scratch import allocate
from numparq.types.output_type import OutputType

from .columns import to_array
from .dictionary import dictionary_decode

_MAX_EXACT_INTEGER = 1 << 53


def leaf_to_array(array: LeafArray, target: OutputType, full_null_count: int = 0) -> Any:
    """Return the values of a leaf, without its lists, as the array of a flat column of the output type.

    `full_null_count` is the nulls of a full read, which decide the dtype even if these rows have fewer.
    """
    nulls = max(array.length - array.num_values, full_null_count)
    if target.storage == "null":
        return to_array(target, DecodedColumn(null_count=array.length), array.length)
    if not isinstance(array.values, np.ndarray):
        return to_array(target, DecodedColumn(null_count=nulls, arrays=[_with_null_slots(array)]), array.length)
    values, target = _cast_to_stored(array.values, target)
    if array.validity is not None:
        out = np.zeros(array.length, values.dtype)
        if target.fill:
            out[:] = np.frombuffer(target.fill, values.dtype)[0]
        out[array.validity.view(bool)] = values
        values = out
    validity = np.ones(array.length, np.uint8) if array.validity is None and nulls else array.validity
    return to_array(target, DecodedColumn(values, validity, nulls), array.length)


def _cast_to_stored(values: np.ndarray, target: OutputType) -> tuple[np.ndarray, OutputType]:
    """Return values as the output type stores them, and the output type, replaced if integers are inexact as floats."""
    wanted = target.dtype
    if wanted is None or values.dtype == wanted:
        return values, target
    if values.dtype.kind in "iu" and wanted.kind == "f":
        exact = not len(values) or (values.max() <= _MAX_EXACT_INTEGER and values.min() >= -_MAX_EXACT_INTEGER)
        if exact or target.on_inexact is None:
            return values.astype(wanted), target
        return values, target.on_inexact
    return values.view(wanted) if values.dtype.itemsize == wanted.itemsize else values.astype(wanted), target


def _with_null_slots(array: LeafArray) -> BinaryArray:
    """Return the leaf's byte strings with an empty one at each null."""
    return add_null_slots(concat_binary([dictionary_decode(piece) for piece in array.values]), array.validity)


def add_null_slots(piece: BinaryArray, validity: np.ndarray | None) -> BinaryArray:
    """Return byte strings, one for each 1 of `validity` (uint8), with an empty one at each 0."""
    if validity is None:
        return piece
    lengths = np.zeros(len(validity), np.int64)
    lengths[validity.view(bool)] = np.diff(piece.offsets)
    offsets = allocate(len(validity) + 1, "i8")
    offsets[0] = piece.offsets[0]
    np.cumsum(lengths, out=offsets[1:])
    offsets[1:] += offsets[0]
    return BinaryArray(offsets, piece.data, validity)
