"""DECIMAL columns as exact `decimal.Decimal` objects."""

from __future__ import annotations

import decimal
from itertools import repeat

import numpy as np
import pandas as pd

from numparq.column.buffers import BinaryArray

from .objects import null_mask, take_objects
from .unscaled_decimals import binary_to_integers, fixed_to_int64

_CONTEXT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_CHUNK_ROWS = 1 << 18  # rows at a time, to bound intermediate memory
_MIN_FACTORIZED_ROWS = 128  # factorizing fewer costs more than building each


def decimal_objects(values: np.ndarray, scale: int, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Return `decimal.Decimal` objects, None at nulls, of int32, int64 or big-endian two's complement items."""
    out = np.empty(len(values), object)
    for start in range(0, len(values), _CHUNK_ROWS):
        part = values[start : start + _CHUNK_ROWS]
        small = fixed_to_int64(part) if part.dtype.kind == "V" else part
        out[start : start + _CHUNK_ROWS] = _scale(_to_integers(part) if small is None else small, scale)
    mask = null_mask(validity, null_count)
    if mask is not None:
        out[mask] = None
    return out


def binary_decimal_objects(pieces: list[BinaryArray], scale: int) -> np.ndarray:
    """Return `decimal.Decimal` objects of big-endian two's complement values of variable length.

    Raises InvalidFileError for an empty value.
    """
    out = np.empty(sum(map(len, pieces)), object)
    row = 0
    for piece in pieces:
        part = out[row : row + len(piece)]
        part[:] = _scale(binary_to_integers(piece), scale)
        if piece.validity is not None:
            part[np.logical_not(piece.validity.view(bool))] = None
        row += len(piece)
    return out


def _scale(unscaled: np.ndarray | list[int], scale: int) -> np.ndarray | list[decimal.Decimal]:
    """Return the Decimals of unscaled integers, each distinct one built once: factorizing costs a fifth of building."""
    if not isinstance(unscaled, np.ndarray):
        return _decimal_list(unscaled, scale)
    if len(unscaled) < _MIN_FACTORIZED_ROWS:
        return _decimal_list(unscaled.tolist(), scale)
    codes, distinct = pd.factorize(unscaled)
    table = np.empty(len(distinct), object)
    table[:] = _decimal_list(distinct.tolist(), scale)
    return take_objects(table, codes)


def _decimal_list(unscaled: list[int], scale: int) -> list[decimal.Decimal]:
    exact = map(decimal.Decimal, unscaled)
    return list(map(_CONTEXT.scaleb, exact, repeat(decimal.Decimal(-scale)))) if scale else list(exact)


def _to_integers(values: np.ndarray) -> list[int]:
    return [int.from_bytes(item, "big", signed=True) for item in values.tolist()]
