"""Bounds of row groups or pages as arrays of keys, where statistics are trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numparq.expr.sort_keys import KeyDomain
from numparq.format.schema import Leaf
from numparq.prune.key_intervals import NUMERIC_KINDS
from numparq.prune.statistics import PruningStatistics

from .value_kind import ValueKind, keys_to_floats

_DTYPES = {"signed": "<i{}", "unsigned": "<u{}", "boolean": "<u{}", "float": "<i{}"}


@dataclass(frozen=True)
class KeyBounds:
    """The bounds of runs; each array has an item a run.

    Parameters
    ----------
    lows, highs : array of keys
        Keys of the dtype `ValueKind.key_dtype`.
    known : bool array
        Of which runs both are there and sound; what the others have means nothing.
    """

    lows: np.ndarray
    highs: np.ndarray
    known: np.ndarray

    @classmethod
    def unknown(cls, kind: ValueKind, count: int) -> KeyBounds:
        """Make those of runs of which nothing is known."""
        nothing = np.zeros(count, kind.key_dtype)
        return cls(nothing, nothing.copy(), np.zeros(count, np.bool_))


def trusted_key_bounds(statistics: PruningStatistics, leaf: Leaf, kind: ValueKind, domain: KeyDomain) -> KeyBounds:
    """Take the bounds of runs that can be believed.

    Parameters
    ----------
    statistics : PruningStatistics
        Of a leaf; what its writer is known to get wrong is not in it.
    leaf : Leaf
        The leaf.
    kind : ValueKind
        What its values are.
    domain : KeyDomain
        How they are keyed.

    Returns
    -------
    KeyBounds
        Without bounds of the wrong length, that are no value of the type, NaN, or contradict each other.
    """
    if statistics.order.kind != domain.kind:
        return KeyBounds.unknown(kind, len(statistics))
    bounds = _numeric_bounds if domain.kind in NUMERIC_KINDS else _object_bounds
    found = bounds(statistics, kind, domain)
    if leaf.rebase is not None:  # reading moves values below
        found.known[found.lows < leaf.rebase.end] = False
    return found


def _numeric_bounds(statistics: PruningStatistics, kind: ValueKind, domain: KeyDomain) -> KeyBounds:
    low, has_low = _bound_keys(statistics, domain, statistics.lows)
    high, has_high = _bound_keys(statistics, domain, statistics.highs)
    known = has_low & has_high
    if domain.is_float:
        low, high = np.where(low == 0, -1, low), np.where(high == -1, 0, high)  # writers need not tell zeros apart
    least, most = domain.low, domain.high - 1
    known &= (low >= least) & (low <= most) & (high >= least) & (high <= most) & (low <= high)
    low, high = np.where(known, low, 0), np.where(known, high, 0)
    if not domain.is_float:
        dtype = object if kind.key_dtype == "object" else kind.key_dtype
        return KeyBounds(low.astype(dtype), high.astype(dtype), known)
    return KeyBounds(keys_to_floats(domain, low), keys_to_floats(domain, high), known)


def _bound_keys(statistics: PruningStatistics, domain: KeyDomain, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the keys of bounds, and which of them there are."""
    width = domain.width
    there = (places[:, 0] >= 0) & (places[:, 1] == width)
    if len(statistics.data) < width:
        return np.zeros(len(statistics), np.int64), np.zeros(len(statistics), np.bool_)
    plain = statistics.data[np.where(there, places[:, 0], 0)[:, None] + np.arange(width)]
    keys = plain.view(_DTYPES[domain.kind].format(width)).reshape(-1)
    if domain.is_float:
        keys = keys ^ ((keys >> (8 * width - 1)) & np.iinfo(keys.dtype).max)
    return (keys if keys.dtype == np.uint64 else keys.astype(np.int64)), there


def _object_bounds(statistics: PruningStatistics, kind: ValueKind, domain: KeyDomain) -> KeyBounds:
    found = KeyBounds.unknown(kind, len(statistics))
    for place in range(len(statistics)):
        facts = statistics.container(place)
        low, high = facts.min_value, facts.max_value
        if low is None or high is None or (domain.width and not len(low) == len(high) == domain.width):
            continue
        low_key, high_key = domain.key(low), domain.key(high)
        if low_key <= high_key:
            found.lows[place], found.highs[place], found.known[place] = low_key, high_key, True
    return found
