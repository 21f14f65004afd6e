"""Unwrap casts and legacy calendars: rewrite a predicate for the narrower type, or the days, that a file stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from numparq.format.legacy_calendar import Rebase
from numparq.format.schema import Leaf

from .bound import ValuePredicate
from .expression import LiteralError
from .key_ranges import KeyRanges, intersection, union
from .literals import exact_number, locate_literal
from .sort_keys import KeyDomain, float_value


def unwrap_cast(predicate: ValuePredicate, leaf: Leaf, domain: KeyDomain) -> ValuePredicate:
    """Rewrite a predicate on a widened type for a column of the narrower type: same result for every value.

    Raises LiteralError if values of one type cannot be values of the other.
    """
    if predicate.domain == domain:
        return replace(predicate, leaf=leaf, ranges=stored_ranges(predicate.ranges, leaf, domain))
    if predicate.domain.kind == "bytes" and domain.kind == "bytes":
        return replace(predicate, leaf=leaf, domain=domain)  # byte strings are their own keys
    nan = predicate.matches_nan and domain.is_float
    ranges = stored_ranges(_ranges(predicate.ranges, predicate.domain, domain), leaf, domain)
    return replace(predicate, leaf=leaf, domain=domain, ranges=ranges, matches_nan=nan)


def _ranges(ranges: KeyRanges, wide: KeyDomain, narrow: KeyDomain) -> KeyRanges:
    """Return the ranges of narrow keys whose values lie in ranges of wide keys."""
    inside = _edge(wide, narrow)

    def edge(key: Any) -> Any:
        return narrow.low if key <= wide.low else narrow.high if key >= wide.high else inside(key)

    return union((edge(low), edge(high)) for low, high in ranges)


def _edge(wide: KeyDomain, narrow: KeyDomain) -> Callable[[Any], Any]:
    """Return a function from a wide key to the first narrow key whose value is not less."""
    if wide.is_float and (narrow.is_float or narrow.type.kind in ("int", "bool", "decimal")):
        # A Fraction is exact beside decimals, where a float means the decimal that it prints as.
        return lambda key: _cut_at(exact_number(float_value(key, wide.width)), narrow)
    if narrow.is_float and wide.type.kind in ("int", "bool", "decimal"):
        return lambda key: _cut_at(key * wide.worth, narrow)
    if wide.quantity != narrow.quantity or wide.is_float or narrow.is_float or not wide.quantity:
        raise _other(wide, narrow)
    over, under = (wide.worth / narrow.worth).as_integer_ratio()
    return lambda key: min(max(-(-key * over // under), narrow.low), narrow.high)


def _cut_at(value: Any, narrow: KeyDomain) -> Any:
    position = locate_literal(value, narrow)
    return narrow.high if position is None else position.left


def _other(wide: KeyDomain, narrow: KeyDomain) -> LiteralError:
    return LiteralError(f"values of type {narrow.type.kind} are not comparable with type {wide.type.kind}")


def stored_ranges(ranges: KeyRanges, leaf: Leaf, domain: KeyDomain) -> KeyRanges:
    """Return the ranges of stored keys whose values, once read, lie in `ranges`; mostly `ranges` themselves."""
    rebase = leaf.rebase
    if rebase is None or rebase.is_refused:
        return ranges
    stored = union(*(_stored_range(low, high, rebase, domain) for low, high in ranges))
    return intersection(stored, domain.all_keys)


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
