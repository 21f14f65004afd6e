"""Bounds of row groups or pages as arrays of keys that compare across files, where statistics are trusted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numparq.expr.sort_keys import key_domain
from numparq.format.schema import Leaf
from numparq.prune.key_intervals import key_intervals
from numparq.prune.statistics import PruningStatistics

from .value_kind import ValueKind, keys_to_floats


class KeyBounds(NamedTuple):
    """Bounds of containers as keys of `ValueKind.key_dtype`; one item each.

    Attributes
    ----------
    lows, highs : array of keys
        Lower and upper bound; no value but NaN lies beyond.
    known : bool array
        Whether both bounds are known; the others are anything.
    """

    lows: np.ndarray
    highs: np.ndarray
    known: np.ndarray

    def hull(self, selected: np.ndarray) -> tuple[Any, Any] | None:
        """Return the bounds of all containers in a bool mask; None if it is empty, or any of them is not known."""
        if not selected.any() or not self.known[selected].all():
            return None
        return self.lows[selected].min(), self.highs[selected].max()


def trusted_key_bounds(statistics: PruningStatistics, leaf: Leaf, kind: ValueKind) -> KeyBounds:
    """Return the bounds that reads trust, as arrays of their own.

    Unknown are bounds of the wrong length, NaNs, those that contradict each other, and equal ones that may have been
    truncated.
    """
    domain = key_domain(leaf)
    lows, highs, known = key_intervals(statistics, leaf, domain).bounds()
    if leaf.rebase is not None:  # reading moves values below
        known &= lows >= leaf.rebase.end
    if domain.is_float:
        return KeyBounds(keys_to_floats(domain, lows), keys_to_floats(domain, highs), known)
    zeros = np.zeros(len(lows), kind.key_dtype)
    lows, highs = (np.where(known, keys, zeros).astype(kind.key_dtype, copy=False) for keys in (lows, highs))
    return KeyBounds(lows, highs, known)
