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
from numparq.format.page_index import UNKNOWN
from numparq.format.schema import Leaf

from .key_intervals import KeyIntervals
from .match_columns import columns_may_match, columns_must_match
from .statistics import PruningStatistics

__all__ = [
    "containers_match",
    "containers_may_match",
    "containers_must_match",
    "predicate_may_match",
    "predicate_must_match",
]


def containers_match(
    bound: Expression, statistics: Mapping[int, PruningStatistics], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of `containers_may_match` and `containers_must_match`."""
    if type(bound) is ValuePredicate and bound.leaf.index in statistics:  # by far the most frequent case
        keys = statistics[bound.leaf.index].key_intervals(bound.leaf, bound.domain)
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
        return _may_be_value(predicate, statistics[0].key_intervals(predicate.leaf, predicate.domain))
    return _MAY[type(predicate)](predicate, *statistics)


def predicate_must_match(predicate: Any, *statistics: PruningStatistics) -> np.ndarray:
    """Return a bool array, one item a container: whether all rows must match the bound predicate."""
    if type(predicate) is ValuePredicate:
        return _must_be_value(predicate, statistics[0].key_intervals(predicate.leaf, predicate.domain))
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
    keys = statistics.key_intervals(predicate.leaf, predicate.domain)
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
