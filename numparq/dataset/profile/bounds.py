"""The bounds of many runs of values at once (column chunks, pages) as keys, where they can be believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...predicate.domain import Domain
from ...pruning.runs import Runs, has_numbers
from ...schema import Leaf
from .kinds import Kind, numbers

__all__ = ["KeyBounds", "bounds_of"]

_DTYPES = {"signed": "<i{}", "unsigned": "<u{}", "boolean": "<u{}", "float": "<i{}"}


@dataclass(frozen=True)
class KeyBounds:
    """The bounds of runs; each array has an item a run.

    Parameters
    ----------
    lows, highs : array of keys
        As `Kind.keys` says.
    known : bool array
        Of which runs both are there and sound; what the others have means nothing.
    """

    lows: np.ndarray
    highs: np.ndarray
    known: np.ndarray

    @classmethod
    def none(cls, kind: Kind, count: int) -> KeyBounds:
        """Make those of runs of which nothing is known."""
        nothing = np.zeros(count, kind.keys)
        return cls(nothing, nothing.copy(), np.zeros(count, np.bool_))


def bounds_of(runs: Runs, leaf: Leaf, kind: Kind, domain: Domain) -> KeyBounds:
    """Take the bounds of runs that can be believed.

    Parameters
    ----------
    runs : Runs
        Of a leaf; what its writer is known to get wrong is not in it.
    leaf : Leaf
        The leaf.
    kind : Kind
        What its values are.
    domain : Domain
        How they are keyed.

    Returns
    -------
    KeyBounds
        Without bounds of the wrong length, that are no value of the type, NaN, or contradict each other.
    """
    if runs.order.kind != domain.kind:
        return KeyBounds.none(kind, len(runs))
    if has_numbers(domain):
        return _numeric(runs, kind, domain)
    return _objects(runs, kind, domain)


def _numeric(runs: Runs, kind: Kind, domain: Domain) -> KeyBounds:
    low, has_low = _keys(runs, domain, runs.lows)
    high, has_high = _keys(runs, domain, runs.highs)
    known = has_low & has_high
    if domain.is_float:
        low, high = np.where(low == 0, -1, low), np.where(high == -1, 0, high)  # writers need not tell zeros apart
    least, most = domain.low, domain.high - 1
    known &= (low >= least) & (low <= most) & (high >= least) & (high <= most) & (low <= high)
    low, high = np.where(known, low, 0), np.where(known, high, 0)
    if not domain.is_float:
        dtype = object if kind.keys == "object" else kind.keys
        return KeyBounds(low.astype(dtype), high.astype(dtype), known)
    return KeyBounds(numbers(domain, low), numbers(domain, high), known)


def _keys(runs: Runs, domain: Domain, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the keys of bounds, and which of them there are."""
    width = domain.width
    there = (places[:, 0] >= 0) & (places[:, 1] == width)
    if len(runs.data) < width:
        return np.zeros(len(runs), np.int64), np.zeros(len(runs), np.bool_)
    plain = runs.data[np.where(there, places[:, 0], 0)[:, None] + np.arange(width)]
    keys = plain.view(_DTYPES[domain.kind].format(width)).reshape(-1)
    if domain.is_float:
        keys = keys ^ ((keys >> (8 * width - 1)) & np.iinfo(keys.dtype).max)
    return (keys if keys.dtype == np.uint64 else keys.astype(np.int64)), there


def _objects(runs: Runs, kind: Kind, domain: Domain) -> KeyBounds:
    found = KeyBounds.none(kind, len(runs))
    for place in range(len(runs)):
        facts = runs.facts(place)
        low, high = facts.min_value, facts.max_value
        if low is None or high is None or (domain.width and not len(low) == len(high) == domain.width):
            continue
        low_key, high_key = domain.key(low), domain.key(high)
        if low_key <= high_key:
            found.lows[place], found.highs[place], found.known[place] = low_key, high_key, True
    return found
