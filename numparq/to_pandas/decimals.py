"""DECIMAL columns as exact `decimal.Decimal` objects."""

from __future__ import annotations

import decimal
from itertools import pairwise, repeat

import numpy as np
import pandas as pd

from numparq.column.buffers import BinaryArray

from .objects import build_objects, null_mask, take_objects

_CONTEXT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_CHUNK_ROWS = 1 << 16  # rows at a time, to bound intermediate memory
_MIN_FACTORIZED_ROWS = 128  # factorizing fewer costs more than building each


def decimal_objects(values: np.ndarray, scale: int, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Return `decimal.Decimal` objects, None at nulls, of int32, int64 or big-endian two's complement items."""
    out = np.empty(len(values), object)
    for start in range(0, len(values), _CHUNK_ROWS):
        part = values[start : start + _CHUNK_ROWS]
        small = fixed_to_int64(part) if part.dtype.kind == "V" else part
        out[start : start + _CHUNK_ROWS] = _large(part, scale) if small is None else _scale(small, scale)
    mask = null_mask(validity, null_count)
    if mask is not None:
        out[mask] = None
    return out


def binary_decimal_objects(pieces: list[BinaryArray], scale: int) -> np.ndarray:
    """Return `decimal.Decimal` objects of big-endian two's complement values of variable length; no bytes mean 0."""
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
    return take_objects(build_objects(distinct, lambda part: _decimal_list(part.tolist(), scale)), codes)


def _decimal_list(unscaled: list[int], scale: int) -> list[decimal.Decimal]:
    exact = map(decimal.Decimal, unscaled)
    return list(map(_CONTEXT.scaleb, exact, repeat(decimal.Decimal(-scale)))) if scale else list(exact)


def _large(values: np.ndarray, scale: int) -> np.ndarray:
    """Return the Decimals of items with integers of more than eight bytes."""
    return build_objects(
        values, lambda part: _decimal_list([int.from_bytes(item, "big", signed=True) for item in part.tolist()], scale)
    )


def fixed_to_int64(values: np.ndarray) -> np.ndarray | None:
    """Return big-endian items (dtype V1 or wider) as int64; None if a value needs more than 8 bytes."""
    width = values.dtype.itemsize
    octets = values.view(np.uint8).reshape(len(values), width)
    if width > 8:
        sign = _sign_bytes(octets[:, width - 8])
        if (octets[:, : width - 8] != sign[:, None]).any():
            return None
        return np.ascontiguousarray(octets[:, width - 8 :]).view(">i8")[:, 0].astype(np.int64)
    wide = np.empty((len(values), 8), np.uint8)
    wide[:, 8 - width :] = octets
    wide[:, : 8 - width] = _sign_bytes(octets[:, 0])[:, None]
    return wide.view(">i8")[:, 0].astype(np.int64)


def _sign_bytes(leading: np.ndarray) -> np.ndarray:
    """Return 255 for bytes whose highest bit is set, else 0."""
    return (leading >> 7) * np.uint8(255)


def binary_to_integers(piece: BinaryArray) -> np.ndarray | list[int]:
    """Return values of variable length as int64; as a list of int if one needs more than 8 bytes.

    Nulls are 0, and so are values of no bytes, as other readers take them.
    """
    lengths = np.diff(piece.offsets)
    if lengths.max(initial=0) > 8:
        offsets = piece.offsets.tolist()
        data = piece.data[: offsets[-1]].tobytes()
        return [int.from_bytes(data[start:stop], "big", signed=True) for start, stop in pairwise(offsets)]
    return _short_integers(piece, lengths)


def _short_integers(piece: BinaryArray, lengths: np.ndarray) -> np.ndarray:
    """Return values of up to 8 bytes as int64, gathered byte by byte from the most significant one."""
    starts = piece.offsets[:-1]
    data = np.append(piece.data[: piece.offsets[-1]], np.uint8(0))
    leading = data[np.minimum(starts, len(data) - 1)]
    out = np.where(lengths > 0, -(leading >> 7).astype(np.int64), 0)
    for byte in range(int(lengths.max(initial=0))):
        inside = lengths > byte
        out = np.where(inside, (out << 8) | data[np.where(inside, starts + byte, 0)], out)
    return out
