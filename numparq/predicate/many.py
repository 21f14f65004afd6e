"""Many literals at once: those of `isin` that are plain numbers, without an exact fraction for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .domain import Domain
from .ranges import Ranges

_INTS = {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
_FLOATS = {float, np.float64}
_MOST = np.iinfo(np.int64).max


def ranges_of_many(values: Sequence[Any], domain: Domain) -> Ranges | None:
    """Give the ranges of the keys that some literals equal.

    Parameters
    ----------
    values : sequence
        Literals, without nulls.
    domain : Domain
        Of the column.

    Returns
    -------
    Ranges or None
        None where each literal has to be looked at: it is not an integer for a column of integers, nor a float of 64
        bits for one of such floats.
    """
    types = set(map(type, values))
    if domain.type.kind == "int" and types <= _INTS:
        within = [number for number in map(int, values) if domain.low <= number < domain.high]
        return _runs(np.array(within, np.uint64 if domain.kind == "unsigned" else np.int64))
    if domain.is_float and domain.width == 8 and types <= _FLOATS:
        floats = np.array(values, np.float64)
        floats = np.append(floats[~np.isnan(floats)], [0.0, -0.0] if (floats == 0).any() else [])
        bits = floats.view(np.int64)
        return _runs(bits ^ ((bits >> 63) & _MOST))
    return None


def _runs(keys: np.ndarray) -> Ranges:
    """Give the ranges of keys, in any order."""
    if not len(keys):
        return ()
    keys = np.sort(keys)
    breaks = np.flatnonzero(np.diff(keys.view(np.uint64)) > 1)
    firsts, lasts = keys[np.append(0, breaks + 1)].tolist(), keys[np.append(breaks, len(keys) - 1)].tolist()
    return tuple(zip(firsts, [last + 1 for last in lasts], strict=True))
