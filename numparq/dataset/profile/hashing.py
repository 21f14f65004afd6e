"""Hashes of values by which they are counted: equal values of one kind have one hash, in whatever size they are stored.

XXH64, as Bloom filters have it, of integers widened to 64 bits, of floats as float64, of bytes as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernels import statistics_kernels
from ...schema import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, Leaf
from .kinds import Kind

__all__ = ["hash_keys", "hash_stored"]

_WIDE = 32  # bytes that decimals are hashed in that do not fit 8


def hash_stored(
    leaf: Leaf, kind: Kind, values: np.ndarray, starts: np.ndarray | None = None, ends: np.ndarray | None = None
) -> np.ndarray:
    """Hash values as they are stored.

    Parameters
    ----------
    leaf : Leaf
        Their column.
    kind : Kind
        What they are.
    values : numpy.ndarray
        Without nulls and NaNs: as `Values` has them; of INT96 ``M8``; of BYTE_ARRAY the bytes.
    starts, ends : int64 array, optional
        Of BYTE_ARRAY: where each value lies.

    Returns
    -------
    uint64 array
        An item a value.
    """
    if values.dtype.kind == "M":
        return _hash_moments(values)
    if kind.name.startswith("decimal"):
        return _hash_decimals(leaf, values, starts, ends)
    if leaf.physical == BYTE_ARRAY:
        assert starts is not None and ends is not None
        hashes = np.empty(len(starts), np.uint64)
        statistics_kernels.hash_binary(values, np.ascontiguousarray(starts), np.ascontiguousarray(ends), len(starts),
                                       hashes)  # fmt: skip
        return hashes
    if kind.keys == "float64":
        floats = values.view("<f2") if leaf.physical == FIXED_LEN_BYTE_ARRAY else values
        return _hash_words(floats.astype(np.float64) + 0.0)  # which makes one zero of both
    if leaf.physical == FIXED_LEN_BYTE_ARRAY:
        return _hash_fixed(values, leaf.type_length or 0)
    is_unsigned = leaf.physical == INT32 and leaf.logical is not None and leaf.logical.signed is False
    return _hash_words((values.view(np.uint32) if is_unsigned else values).astype(np.int64))


def hash_keys(kind: Kind, keys: Sequence[Any]) -> np.ndarray:
    """Hash values by their keys, to the same as `hash_stored` does.

    Parameters
    ----------
    kind : Kind
        What they are.
    keys : sequence of key
        Few of them.
    """
    if kind.keys == "float64":
        return _hash_words(np.array(keys, np.float64) + 0.0)
    if kind.keys != "object":
        return _hash_words(np.array(keys, kind.keys))
    if kind.name.startswith("decimal"):
        return _hash_integers(list(keys))
    data = np.frombuffer(b"".join(keys) + bytes(8), np.uint8)
    ends = np.cumsum([len(key) for key in keys], dtype=np.int64)
    starts = ends - np.array([len(key) for key in keys], np.int64)
    hashes = np.empty(len(keys), np.uint64)
    statistics_kernels.hash_binary(data, starts, ends, len(keys), hashes)
    return hashes


def _hash_words(values: np.ndarray) -> np.ndarray:
    return _hash_fixed(values, 8)


def _hash_fixed(values: np.ndarray, width: int) -> np.ndarray:
    data = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    hashes = np.empty(len(data) // width if width else len(values), np.uint64)
    statistics_kernels.hash_fixed(data, width, len(hashes), hashes)
    return hashes


def _hash_moments(values: np.ndarray) -> np.ndarray:
    """Hash timestamps in nanoseconds or microseconds: as microseconds, and the nanoseconds that are left."""
    numbers = values.view(np.int64)
    pairs = np.zeros((len(values), 2), np.int64)
    if np.datetime_data(values.dtype)[0] == "ns":
        pairs[:, 0], pairs[:, 1] = numbers // 1000, numbers % 1000
    else:
        pairs[:, 0] = numbers
    return _hash_fixed(pairs, 16)


def _hash_decimals(
    leaf: Leaf, values: np.ndarray, starts: np.ndarray | None, ends: np.ndarray | None
) -> np.ndarray:  # fmt: skip
    if leaf.physical == BYTE_ARRAY:
        assert starts is not None and ends is not None
        data = values.tobytes()
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        return _hash_integers([int.from_bytes(data[start:end], "big", signed=True) for start, end in places])
    if leaf.physical != FIXED_LEN_BYTE_ARRAY:
        return _hash_words(values.astype(np.int64))
    width = leaf.type_length or 0
    rows = np.ascontiguousarray(values).view(np.uint8).reshape(-1, width)
    if width > _WIDE:
        data = rows.tobytes()
        return _hash_integers([int.from_bytes(data[at : at + width], "big", signed=True)
                               for at in range(0, len(data), width)])  # fmt: skip
    wide = np.empty((len(rows), _WIDE), np.uint8)
    sign = np.where(rows[:, 0] >= 128, 255, 0).astype(np.uint8)
    wide[:, : _WIDE - width] = sign[:, None]
    wide[:, _WIDE - width :] = rows
    hashes = _hash_fixed(wide, _WIDE)
    last = np.ascontiguousarray(wide[:, -8:]).view(">i8").reshape(-1).astype(np.int64)
    fits = (wide[:, : _WIDE - 8] == np.where(last < 0, 255, 0)[:, None]).all(axis=1)
    hashes[fits] = _hash_words(last[fits])
    return hashes


def _hash_integers(numbers: list[int]) -> np.ndarray:
    hashes = np.empty(len(numbers), np.uint64)
    small = np.array([-(1 << 63) <= number < 1 << 63 for number in numbers], np.bool_)
    hashes[small] = _hash_words(np.array([number for number in numbers if -(1 << 63) <= number < 1 << 63], np.int64))
    for place in np.flatnonzero(~small).tolist():
        number = numbers[place]
        plain = number.to_bytes(max(_WIDE, (number.bit_length() + 8) // 8), "big", signed=True)
        hashes[place] = _hash_fixed(np.frombuffer(plain, np.uint8), len(plain))[0]
    return hashes
