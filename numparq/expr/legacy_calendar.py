"""Key ranges of columns in Spark's legacy calendar: those of the stored values that are read as the wanted ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numparq.format.legacy_calendar import Rebase
from numparq.format.schema import Leaf

from .key_ranges import KeyRanges, intersection, union
from .sort_keys import KeyDomain

__all__ = ["stored_ranges"]


def stored_ranges(ranges: KeyRanges, leaf: Leaf, domain: KeyDomain) -> KeyRanges:
    """Return the ranges of stored keys whose values, once read, lie in `ranges`; mostly `ranges` themselves."""
    rebase = leaf.rebase
    if rebase is None or rebase.is_refused:
        return ranges
    found = union(*(_stored_range(low, high, rebase, domain) for low, high in ranges))
    return intersection(found, domain.all_keys)


def _stored_range(low: float, high: float, rebase: Rebase, domain: KeyDomain) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of one range: between its ends, only values near an end are moved across it."""
    farthest = rebase.farthest
    first, end = domain.low, domain.high
    if low > domain.low:
        first = low + farthest
        yield from _near(low, low, high, rebase)
    if high < domain.high:
        end = high - farthest
        yield from _near(high, low, high, rebase)
    yield first, end


def _near(edge: float, low: float, high: float, rebase: Rebase) -> Iterator[tuple[Any, Any]]:
    """Yield the stored keys that may be moved across `edge`, of those that are read as keys from `low` to `high`."""
    for first, end, shift in rebase.segments(edge - rebase.farthest, edge + rebase.farthest):
        yield max(first, low - shift), min(end, high - shift)
