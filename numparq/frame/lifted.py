"""A leaf of a nested column as a column of its own: what it would be if it were flat."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..column.buffer import BinaryPiece, ColumnBuffer
from ..column.nested_arrays import LeafArray
from ..column.scratch import allocate
from ..targets import Target
from .categories import joined
from .entries import decoded
from .finish import finish

__all__ = ["lifted"]

_LARGEST_EXACT = 1 << 53


def lifted(array: LeafArray, target: Target, nulls_elsewhere: int = 0) -> Any:
    """Make a column of the values of a leaf.

    Parameters
    ----------
    array : LeafArray
        The values, without a list around them.
    target : Target
        What the column would be decoded to if it were flat and had as many nulls.
    nulls_elsewhere : int
        Nulls that a full read has; the dtype is to be as if they were here.

    Returns
    -------
    numpy.ndarray or pandas.api.extensions.ExtensionArray
        One item a row, as `numparq.frame.finish.finish` makes them.
    """
    nulls = max(array.length - array.num_values, nulls_elsewhere)
    if target.storage == "null":
        return finish(target, ColumnBuffer(null_count=array.length), array.length)
    if not isinstance(array.values, np.ndarray):
        return finish(target, ColumnBuffer(null_count=nulls, pieces=[_spread_piece(array)]), array.length)
    values, target = _as_stored(array.values, target)
    if array.validity is not None:
        out = np.zeros(array.length, values.dtype)
        if target.fill:
            out[:] = np.frombuffer(target.fill, values.dtype)[0]
        out[array.validity.view(bool)] = values
        values = out
    validity = np.ones(array.length, np.uint8) if array.validity is None and nulls else array.validity
    return finish(target, ColumnBuffer(values, validity, nulls), array.length)


def _as_stored(values: np.ndarray, target: Target) -> tuple[np.ndarray, Target]:
    """Give values as the target would have them stored, and the target that they allow."""
    wanted = target.dtype
    if wanted is None or values.dtype == wanted:
        return values, target
    if values.dtype.kind in "iu" and wanted.kind == "f":
        exact = not len(values) or (values.max() <= _LARGEST_EXACT and values.min() >= -_LARGEST_EXACT)
        if exact or target.on_inexact is None:
            return values.astype(wanted), target
        return values, target.on_inexact
    return values.view(wanted) if values.dtype.itemsize == wanted.itemsize else values.astype(wanted), target


def _spread_piece(array: LeafArray) -> BinaryPiece:
    """Put byte strings in their places, with empty ones in between."""
    pieces = [decoded(piece) for piece in array.values]
    piece = pieces[0] if len(pieces) == 1 else _one_piece(pieces)
    if array.validity is None:
        return piece
    lengths = np.zeros(array.length, np.int64)
    lengths[array.validity.view(bool)] = np.diff(piece.offsets)
    offsets = allocate(array.length + 1, "i8")
    offsets[0] = piece.offsets[0]
    np.cumsum(lengths, out=offsets[1:])
    offsets[1:] += offsets[0]
    return BinaryPiece(offsets, piece.data, array.validity)


def _one_piece(pieces: list[BinaryPiece]) -> BinaryPiece:
    if not pieces:
        return joined([])
    data = np.concatenate([piece.data[piece.offsets[0] : piece.offsets[-1]] for piece in pieces])
    lengths = np.concatenate([np.diff(piece.offsets) for piece in pieces])
    return BinaryPiece(np.append(0, np.cumsum(lengths)), data)
