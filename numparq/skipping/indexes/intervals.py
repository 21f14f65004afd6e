"""Cells that are lists of intervals: which of them may hold a value that matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from numparq.expr.bound import ValuePredicate
from numparq.expr.sort_keys import KeyDomain
from numparq.format.column_order import leaf_order
from numparq.format.schema import Leaf
from numparq.prune.match import predicate_may_match
from numparq.prune.statistics import PruningStatistics


class Intervals:
    """Intervals of values, each with both ends, in lists.

    Parameters
    ----------
    leaf : Leaf
        Flat leaf to bind predicates to.
    data : uint8 array
        PLAIN ends.
    lows, highs : int64 array, (intervals, 2)
        Position and length of each end.
    are_nan : bool array
        Intervals of NaNs alone.
    offsets : int array
        First interval of each list, and the end of the last one.
    """

    def __init__(
        self,
        leaf: Leaf,
        data: np.ndarray,
        bounds: tuple[np.ndarray, np.ndarray],
        are_nan: np.ndarray,
        offsets: np.ndarray,
    ) -> None:
        count = len(are_nan)
        nothing = np.zeros(count, np.int64)
        self.leaf = leaf
        self._offsets = offsets
        self._statistics = PruningStatistics(
            data,
            *bounds,
            np.ones(count, np.int64),
            nothing,
            are_nan.astype(np.int64),
            np.zeros(count, np.bool_),
            np.ones(count, np.bool_),
            leaf_order(replace(leaf, path=("value",))),
        )

    def may_match(self, predicates: Sequence[ValuePredicate], domain: KeyDomain) -> np.ndarray:
        """Return which lists have, for each predicate, an interval that may hold a matching value."""
        may = np.ones(len(self._offsets) - 1, np.bool_)
        for predicate in predicates:
            matches = np.concatenate([[0], np.cumsum(predicate_may_match(predicate, self._statistics))])
            may &= np.diff(matches[self._offsets]) > 0
        return may
