"""Match a comparison of two columns against the pruning statistics of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numparq.expr.bound import ComparisonPredicate
from numparq.expr.sort_keys import KeyDomain, float_value

from .key_intervals import KeyIntervals
from .statistics import PruningStatistics

__all__ = ["columns_may_match", "columns_must_match"]

_Interval = tuple[Any, Any]  # least value, and a value that none exceeds

# Whether two values within bounds may compare so, and whether all do.
_POSSIBLE: dict[str, Callable[[_Interval, _Interval], bool]] = {
    "==": lambda first, second: first[0] <= second[1] and second[0] <= first[1],
    "<": lambda first, second: first[0] < second[1],
    "<=": lambda first, second: first[0] <= second[1],
}
_CERTAIN: dict[str, Callable[[_Interval, _Interval], bool]] = {
    "==": lambda first, second: first[0] == first[1] == second[0] == second[1],
    "<": lambda first, second: first[1] < second[0],
    "<=": lambda first, second: first[1] <= second[0],
}


def columns_may_match(
    predicate: ComparisonPredicate, first: PruningStatistics, second: PruningStatistics
) -> np.ndarray:
    """Return a bool array, one item a container: whether a row may match."""
    sides = _sides(predicate, first, second)
    may: np.ndarray = sides[0].may_have_values & sides[1].may_have_values
    if predicate.negated:
        may &= ~(_has_no_nans(sides) & _compare(_CERTAIN[predicate.op], predicate, sides, may))
    else:
        may &= _compare(_POSSIBLE[predicate.op], predicate, sides, may)
    return may


def columns_must_match(
    predicate: ComparisonPredicate, first: PruningStatistics, second: PruningStatistics
) -> np.ndarray:
    """Return a bool array, one item a container: whether all rows must match."""
    sides = _sides(predicate, first, second)
    must: np.ndarray = sides[0].has_no_nulls & sides[1].has_no_nulls
    if predicate.negated:
        must &= ~_compare(_POSSIBLE[predicate.op], predicate, sides, must)
    else:
        must &= _has_no_nans(sides)
        must &= _compare(_CERTAIN[predicate.op], predicate, sides, must)
    must |= sides[0].is_empty | sides[1].is_empty
    return must


def _sides(
    predicate: ComparisonPredicate, first: PruningStatistics, second: PruningStatistics
) -> tuple[KeyIntervals, KeyIntervals]:
    if any(leaf.rebase is not None for leaf in predicate.leaves):  # bounds are those of other values
        first, second = (PruningStatistics.unknown(some.num_values) for some in (first, second))
    return (
        first.key_intervals(predicate.leaf, predicate.domain),
        second.key_intervals(predicate.other, predicate.other_domain),
    )


def _has_no_nans(sides: tuple[KeyIntervals, KeyIntervals]) -> np.ndarray:
    known = np.ones(len(sides[0]), np.bool_)
    for side in sides:
        known &= side.has_no_nans
    return known


def _compare(
    decide: Callable[[_Interval, _Interval], bool],
    predicate: ComparisonPredicate,
    sides: tuple[KeyIntervals, KeyIntervals],
    candidates: np.ndarray,
) -> np.ndarray:
    """Compare the bounds of both columns in the candidates; False for other containers."""
    first, second = sides
    decided = np.zeros(len(first), np.bool_)
    for container in np.flatnonzero(candidates).tolist():
        decided[container] = decide(
            _values(predicate.domain, first.interval(container)),
            _values(predicate.other_domain, second.interval(container)),
        )
    return decided


def _values(domain: KeyDomain, keys: tuple[Any, Any]) -> _Interval:
    """Return bounds of the values that are not NaN, as exact numbers or bytes, for first key and exclusive end."""
    low, end = keys
    if domain.kind == "bytes":
        return low, end
    last = end - 1
    if domain.is_float:
        if not domain.low <= low <= last < domain.high:
            low, last = domain.low, domain.high - 1
        return float_value(low, domain.width), float_value(last, domain.width)
    return low * domain.worth, last * domain.worth
