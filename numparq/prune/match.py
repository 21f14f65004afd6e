"""Match a predicate against pruning statistics: which containers (row groups, pages) may match, which must."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numparq.expr.bound import (
    BloomPredicate,
    ComparisonPredicate,
    ContainsPredicate,
    NullPredicate,
    ValuePredicate,
    combine_results,
)
from numparq.expr.expression import Expression
from numparq.expr.sort_keys import KeyDomain, float_value
from numparq.format.page_index import UNKNOWN
from numparq.format.schema import Leaf

from .key_intervals import KeyIntervals, key_intervals
from .statistics import PruningStatistics

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
        key_intervals(first, predicate.leaf, predicate.domain),
        key_intervals(second, predicate.other, predicate.other_domain),
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


def containers_match(
    bound: Expression, statistics: Mapping[int, PruningStatistics], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of `containers_may_match` and `containers_must_match`."""
    if type(bound) is ValuePredicate and bound.leaf.index in statistics:  # by far the most frequent case
        keys = key_intervals(statistics[bound.leaf.index], bound.leaf, bound.domain)
        return _may_be_value(bound, keys), _must_be_value(bound, keys)
    return containers_may_match(bound, statistics, count), containers_must_match(bound, statistics, count)


def containers_may_match(bound: Expression, statistics: Mapping[int, PruningStatistics], count: int) -> np.ndarray:
    """Return a bool array of `count` containers: whether a row may match the bound expression.

    `statistics` maps ordinals of leaves to statistics; leaves without any may match.
    """
    return _combine(predicate_may_match, bound, statistics, count)


def containers_must_match(bound: Expression, statistics: Mapping[int, PruningStatistics], count: int) -> np.ndarray:
    """Return a bool array of `count` containers: whether all rows must match the bound expression."""
    return _combine(predicate_must_match, bound, statistics, count)


def _combine(
    match: Callable[..., np.ndarray],
    bound: Expression,
    statistics: Mapping[int, PruningStatistics],
    count: int,
) -> np.ndarray:
    def statistics_of(leaf: Leaf) -> PruningStatistics:
        known = statistics.get(leaf.index)
        return PruningStatistics.unknown(np.full(count, UNKNOWN, np.int64)) if known is None else known

    def answer(predicate: Any) -> np.ndarray:
        return match(predicate, *map(statistics_of, predicate.leaves))

    return combine_results(bound, answer, lambda value: np.full(count, value))


def predicate_may_match(predicate: Any, *statistics: PruningStatistics) -> np.ndarray:
    """Return a bool array, one item a container: whether a row may match the bound predicate.

    `statistics` are those of its leaves, in order.
    """
    if type(predicate) is ValuePredicate:
        return _may_be_value(predicate, key_intervals(statistics[0], predicate.leaf, predicate.domain))
    return _MAY[type(predicate)](predicate, *statistics)


def predicate_must_match(predicate: Any, *statistics: PruningStatistics) -> np.ndarray:
    """Return a bool array, one item a container: whether all rows must match the bound predicate."""
    if type(predicate) is ValuePredicate:
        return _must_be_value(predicate, key_intervals(statistics[0], predicate.leaf, predicate.domain))
    return _MUST[type(predicate)](predicate, *statistics)


# --- one predicate ----------------------------------------------------------------------------------------------------


def _may_be_value(predicate: ValuePredicate, keys: KeyIntervals) -> np.ndarray:
    if predicate.pattern is not None and predicate.negated:  # values outside of the ranges match, too
        return keys.may_have_values.copy()
    may: np.ndarray = keys.overlaps(predicate.ranges)
    if predicate.domain.kind == "float":
        may = np.where(keys.is_all_nan, predicate.matches_nan, may | (predicate.matches_nan & ~keys.has_no_nans))
    may &= keys.may_have_values
    return may


def _must_be_value(predicate: ValuePredicate, keys: KeyIntervals) -> np.ndarray:
    if predicate.pattern is None:
        must = keys.are_within(predicate.ranges)
    else:  # values in the ranges may match the pattern or not
        must = ~keys.overlaps(predicate.ranges) & predicate.negated
    if predicate.domain.kind == "float":
        must = np.where(keys.is_all_nan, predicate.matches_nan, must & (predicate.matches_nan | keys.has_no_nans))
    must &= keys.has_no_nulls
    must |= keys.is_empty
    return must


def _may_be_member(predicate: BloomPredicate, statistics: PruningStatistics) -> np.ndarray:
    keys = key_intervals(statistics, predicate.leaf, predicate.domain)
    return keys.may_have_values.copy()  # bounds refute no Bloom filter


def _may_be_null(predicate: NullPredicate, statistics: PruningStatistics) -> np.ndarray:
    leaf = predicate.leaf
    may: np.ndarray
    if predicate.negated:
        may = ~statistics.is_all_null(leaf) if predicate.is_leaf_level else np.ones(len(statistics), np.bool_)
    else:
        may = statistics.all_null | (statistics.null_counts != 0) | leaf.is_nested
    may &= statistics.num_values != 0
    return may


def _must_be_null(predicate: NullPredicate, statistics: PruningStatistics) -> np.ndarray:
    opposite = NullPredicate(predicate.leaf, predicate.definition_level, not predicate.negated)
    return ~_may_be_null(opposite, statistics)


def _may_contain(predicate: ContainsPredicate, statistics: PruningStatistics) -> np.ndarray:
    if not predicate.negated:
        return predicate_may_match(predicate.predicate, statistics)
    may: np.ndarray = statistics.num_values != 0
    return may


def _only_without_rows(predicate: ContainsPredicate | BloomPredicate, statistics: PruningStatistics) -> np.ndarray:
    must: np.ndarray = statistics.num_values == 0
    return must


_MAY: dict[type, Callable[..., np.ndarray]] = {
    ComparisonPredicate: columns_may_match,
    NullPredicate: _may_be_null,
    ContainsPredicate: _may_contain,
    BloomPredicate: _may_be_member,
}
_MUST: dict[type, Callable[..., np.ndarray]] = {
    ComparisonPredicate: columns_must_match,
    NullPredicate: _must_be_null,
    ContainsPredicate: _only_without_rows,
    BloomPredicate: _only_without_rows,
}
