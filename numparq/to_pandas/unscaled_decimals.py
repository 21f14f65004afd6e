"""Unscaled values of DECIMAL columns stored as bytes, as int64 where they fit."""

from __future__ import annotations

import itertools

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.errors import InvalidFileError


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
    """Return values of variable length as int64, 0 at nulls; as a list of int if one needs more than 8 bytes.

    Raises InvalidFileError for an empty value.
    """
    lengths = np.diff(piece.offsets)
    present = lengths if piece.validity is None else lengths[piece.validity.view(bool)]
    if len(present) and present.min() == 0:
        raise InvalidFileError("a DECIMAL value has no bytes")
    if len(present) and present.max() > 8:
        offsets = piece.offsets.tolist()
        data = piece.data[: offsets[-1]].tobytes()
        return [int.from_bytes(data[start:stop], "big", signed=True) for start, stop in itertools.pairwise(offsets)]
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
