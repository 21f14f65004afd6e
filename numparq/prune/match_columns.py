"""Match a comparison of two columns against the pruning statistics of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numparq.expr.bound import ComparisonPredicate
from numparq.expr.sort_keys import KeyDomain, float_value

from .match_one import ContainerStatistics, KeyStatistics, key_statistics
from .statistics import PruningStatistics

__all__ = ["columns_may_match", "columns_must_match"]

_Bounds = tuple[Any, Any]  # least value, and a value that none exceeds

# Whether two values within bounds may compare so, and whether all do.
_POSSIBLE: dict[str, Callable[[_Bounds, _Bounds], bool]] = {
    "==": lambda first, second: first[0] <= second[1] and second[0] <= first[1],
    "<": lambda first, second: first[0] < second[1],
    "<=": lambda first, second: first[0] <= second[1],
}
_CERTAIN: dict[str, Callable[[_Bounds, _Bounds], bool]] = {
    "==": lambda first, second: first[0] == first[1] == second[0] == second[1],
    "<": lambda first, second: first[1] < second[0],
    "<=": lambda first, second: first[1] <= second[0],
}


def columns_may_match(
    predicate: ComparisonPredicate, first: PruningStatistics, second: PruningStatistics
) -> np.ndarray:
    """Return a bool array, one item a container: whether a row may match."""
    return _for_each(_may, predicate, first, second)


def columns_must_match(
    predicate: ComparisonPredicate, first: PruningStatistics, second: PruningStatistics
) -> np.ndarray:
    """Return a bool array, one item a container: whether all rows must match."""
    return _for_each(_must, predicate, first, second)


def _for_each(
    decide: Callable[..., bool], predicate: ComparisonPredicate, first: PruningStatistics, second: PruningStatistics
) -> np.ndarray:
    if any(leaf.rebase is not None for leaf in predicate.leaves):  # bounds are those of other values
        first, second = (PruningStatistics.unknown(some.num_values) for some in (first, second))
    return np.array([decide(predicate, first.container(i), second.container(i)) for i in range(len(first))], np.bool_)


def _may(predicate: ComparisonPredicate, first: ContainerStatistics, second: ContainerStatistics) -> bool:
    if first.num_values == 0 or second.num_values == 0:
        return False
    one, other = _sides(predicate, first, second)
    if one.all_null or other.all_null:
        return False
    bounds = _bounds(predicate.domain, one), _bounds(predicate.other_domain, other)
    if predicate.negated:
        return not (one.no_nans and other.no_nans and _CERTAIN[predicate.op](*bounds))
    return _POSSIBLE[predicate.op](*bounds)


def _must(predicate: ComparisonPredicate, first: ContainerStatistics, second: ContainerStatistics) -> bool:
    if first.num_values == 0 or second.num_values == 0:
        return True
    one, other = _sides(predicate, first, second)
    if not (one.no_nulls and other.no_nulls):
        return False
    bounds = _bounds(predicate.domain, one), _bounds(predicate.other_domain, other)
    if predicate.negated:
        return not _POSSIBLE[predicate.op](*bounds)
    return one.no_nans and other.no_nans and _CERTAIN[predicate.op](*bounds)


def _sides(
    predicate: ComparisonPredicate, first: ContainerStatistics, second: ContainerStatistics
) -> tuple[KeyStatistics, KeyStatistics]:
    return (
        key_statistics(predicate.leaf, predicate.domain, first),
        key_statistics(predicate.other, predicate.other_domain, second),
    )


def _bounds(domain: KeyDomain, statistics: KeyStatistics) -> _Bounds:
    """Return bounds of the values that are not NaN, as exact numbers or bytes."""
    low, end = statistics.low, statistics.high
    if domain.kind == "bytes":
        return low, end
    last = end - 1
    if domain.is_float:
        keys = (low, last) if domain.low <= low <= last < domain.high else (domain.low, domain.high - 1)
        return float_value(keys[0], domain.width), float_value(keys[1], domain.width)
    return low * domain.worth, last * domain.worth
