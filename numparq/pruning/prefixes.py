"""Eight bytes of each bound, as numbers: they tell most runs of strings from a range, and nobody looks at the rest."""

from __future__ import annotations

import numpy as np

from ..predicate.bound import ValueTest
from ..predicate.ranges import TOP
from .runs import Runs

__all__ = ["told"]

_SIZE = 8
_MOST = np.uint64(2**64 - 1)


def told(test: ValueTest, runs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """Tell of which runs the first bytes of both bounds show whether a value may be in the ranges of a test.

    Parameters
    ----------
    test : ValueTest
        Of any domain; others than bytes have no such prefixes.
    runs : Runs
        Of its leaf.

    Returns
    -------
    apart, meeting : bool array, (runs,)
        Of which it is clear that none can, and that one can. Neither, where bounds are missing, may contradict each
        other, or have the same first bytes as the other bound or as a range.
    """
    none = np.zeros(len(runs), np.bool_)
    if test.domain.kind != "bytes" or runs.order.kind != "bytes" or not len(runs) or not test.ranges:
        return none, none
    there = (runs.lows[:, 0] >= 0) & (runs.highs[:, 0] >= 0)
    if test.domain.width:
        there &= (runs.lows[:, 1] == test.domain.width) & (runs.highs[:, 1] == test.domain.width)
    lows, highs = _prefixes(runs.data, runs.lows, there), _prefixes(runs.data, runs.highs, there)
    # Only of bounds that differ here it is sure that they are in order, and that no value is above the upper one: one
    # that equals the lower one may have been cut without being made larger.
    there &= lows < highs
    starts = np.array([_number(low) for low, _ in test.ranges], np.uint64)
    ends = np.array([_MOST if high is TOP else _number(high) for _, high in test.ranges], np.uint64)
    before = np.searchsorted(starts, highs, side="right")
    reaches = (before > 0) & (lows <= ends[before - 1])
    # Every range has its first key: where that lies between the bounds, a value may be in the range.
    begins = np.searchsorted(starts, lows, side="right") < np.searchsorted(starts, highs, side="left")
    return there & ~reaches, there & begins


def _prefixes(data: np.ndarray, places: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Give the first eight bytes of strings, filled up with zeros, as numbers that compare as they do."""
    found = np.zeros((len(places), _SIZE), np.uint8)
    columns = np.arange(_SIZE)
    taken = there[:, None] & (columns < places[:, 1:])
    found[taken] = data[(places[:, :1] + columns)[taken]]
    return found.view(">u8").reshape(-1).astype(np.uint64)


def _number(key: bytes) -> int:
    return int.from_bytes(key[:_SIZE].ljust(_SIZE, b"\0"), "big")
