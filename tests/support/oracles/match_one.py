"""Slow, obvious reference: match a predicate against the statistics of one row group or page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from numparq.expr.bound import (
    BloomPredicate,
    ContainsPredicate,
    NullPredicate,
    ValuePredicate,
    combine_bools,
)
from numparq.expr.expression import Expression
from numparq.expr.key_ranges import prefix_end
from numparq.expr.sort_keys import KeyDomain
from numparq.format.page_index import UNKNOWN
from numparq.format.schema import Leaf
from numparq.format.statistics import is_nan
from numparq.prune.match import containers_may_match, containers_must_match
from numparq.prune.statistics import ContainerStatistics, PruningStatistics

_MOST_YEARS = 290_000  # INT96 moments beyond are read as what Spark meant by them, which is in no order
_NS_OF_YEAR = 31_556_952 * 10**9
_WORTHLESS = object()


_OneLeafPredicate = ValuePredicate | BloomPredicate | NullPredicate | ContainsPredicate


NO_STATISTICS = ContainerStatistics()


def may_match(bound: Expression, statistics: Mapping[int, ContainerStatistics]) -> bool:
    """Say whether any row of a run may satisfy a bound expression.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    statistics : mapping of int to ContainerStatistics
        What is known of the leaves in the same rows, by their ordinals; those left out are not known.
    """
    return combine_bools(bound, lambda test: _may(test, statistics.get(test.leaf.index, NO_STATISTICS)))


def must_match(bound: Expression, statistics: Mapping[int, ContainerStatistics]) -> bool:
    """Say whether all rows of a run are sure to satisfy a bound expression; parameters as in `may_match`."""
    return combine_bools(bound, lambda test: _must(test, statistics.get(test.leaf.index, NO_STATISTICS)))


def as_arrays(statistics: ContainerStatistics) -> PruningStatistics:
    """Return the statistics of one container as the package keeps them."""
    data, places = b"?", []
    for bound in (statistics.min_value, statistics.max_value):
        places.append((UNKNOWN, 0) if bound is None else (len(data), len(bound)))
        data += bound or b""
    counts = (statistics.num_values, statistics.null_count, statistics.nan_count)
    return PruningStatistics(
        np.frombuffer(data, np.uint8),
        *(np.array([place]) for place in places),
        *(np.array([UNKNOWN if count is None else count]) for count in counts),
        np.array([statistics.all_null]),
        np.array([statistics.is_exact]),
        statistics.order,
    )


def checked_may_match(bound: Expression, statistics: Mapping[int, ContainerStatistics]) -> bool:
    """Return `may_match`, once the package gives the same answer."""
    may = may_match(bound, statistics)
    arrays = {leaf: as_arrays(each) for leaf, each in statistics.items()}
    assert containers_may_match(bound, arrays, 1).tolist() == [may]
    return may


def checked_must_match(bound: Expression, statistics: Mapping[int, ContainerStatistics]) -> bool:
    """Return `must_match`, once the package gives the same answer."""
    must = must_match(bound, statistics)
    arrays = {leaf: as_arrays(each) for leaf, each in statistics.items()}
    assert containers_must_match(bound, arrays, 1).tolist() == [must]
    return must


class KeyStatistics(NamedTuple):
    """Facts in terms of a test's keys: values lie from `low` up to `high`, and there may be nulls or NaNs."""

    all_null: bool
    no_nulls: bool
    all_nan: bool
    no_nans: bool
    low: Any
    high: Any


def _may(predicate: _OneLeafPredicate, statistics: ContainerStatistics) -> bool:
    if statistics.num_values == 0:
        return False
    if isinstance(predicate, NullPredicate):
        return _may_be_null(predicate, statistics)
    if isinstance(predicate, ContainsPredicate):
        return predicate.negated or _may(predicate.predicate, statistics)
    if isinstance(predicate, BloomPredicate):  # bounds say nothing of a Bloom filter
        return not (statistics.all_null or _all_null(predicate.leaf, statistics))
    run = key_statistics(predicate.leaf, predicate.domain, statistics)
    if run.all_null:
        return False
    if run.all_nan:
        return predicate.matches_nan
    if predicate.matches_nan and not run.no_nans:
        return True
    if predicate.pattern is not None and predicate.negated:
        return True
    return predicate.ranges.overlaps(run.low, run.high)


def _must(predicate: _OneLeafPredicate, statistics: ContainerStatistics) -> bool:
    if statistics.num_values == 0:
        return True
    if isinstance(predicate, (ContainsPredicate, BloomPredicate)):
        return False
    if isinstance(predicate, NullPredicate):
        return not _may_be_null(
            NullPredicate(predicate.leaf, predicate.definition_level, not predicate.negated), statistics
        )
    run = key_statistics(predicate.leaf, predicate.domain, statistics)
    if not run.no_nulls:
        return False
    if run.all_nan or not (predicate.matches_nan or run.no_nans):
        return run.all_nan and predicate.matches_nan
    if predicate.pattern is None:
        return predicate.ranges.covers(run.low, run.high)
    return predicate.negated and not predicate.ranges.overlaps(run.low, run.high)


def _may_be_null(predicate: NullPredicate, statistics: ContainerStatistics) -> bool:
    """Say whether a row may satisfy a question for nulls: a null of a leaf may be one of what is around it."""
    leaf = predicate.leaf
    if predicate.negated:
        return not (predicate.is_leaf_level and (statistics.all_null or _all_null(leaf, statistics)))
    return leaf.is_nested or statistics.all_null or statistics.null_count != 0


def _all_null(leaf: Leaf, statistics: ContainerStatistics) -> bool:
    return not leaf.is_nested and statistics.null_count is not None and statistics.null_count == statistics.num_values


def key_statistics(leaf: Leaf, domain: KeyDomain, statistics: ContainerStatistics) -> KeyStatistics:
    """Return statistics in terms of sort keys."""
    nulls = None if leaf.is_nested else 0 if leaf.max_definition_level == 0 else statistics.null_count
    values = None if statistics.num_values is None or nulls is None else statistics.num_values - nulls
    return KeyStatistics(
        statistics.all_null or _all_null(leaf, statistics),
        nulls == 0 and not statistics.all_null,
        domain.is_float and values is not None and statistics.nan_count == values,
        not domain.is_float or statistics.nan_count == 0,
        *_interval(domain, statistics),
    )


def _interval(domain: KeyDomain, statistics: ContainerStatistics) -> tuple[Any, Any]:
    """Give the keys that the values lie between, the second one not included; all keys where that is not known."""
    low, high = _key(domain, statistics, statistics.min_value), _key(domain, statistics, statistics.max_value)
    if low is _WORTHLESS or high is _WORTHLESS:
        return domain.low, domain.high
    if domain.is_float:
        # Neither order nor writer need have told the zeros apart.
        low, high = (-1 if low == 0 else low), (0 if high == -1 else high)
    if low is not None and high is not None and low > high:
        return domain.low, domain.high
    after = domain.high if high is None else domain.successor(high)
    if domain.kind == "bytes" and low is not None and low == high and not statistics.is_exact:
        after = prefix_end(high)  # cut by who forgot to make the larger one larger
    return (domain.low if low is None else low), after


def _key(domain: KeyDomain, statistics: ContainerStatistics, bound: bytes | None) -> Any:
    """Give the key of a bound, None where there is none, and `_WORTHLESS` where it makes both so."""
    if bound is None or statistics.order.kind != domain.kind or domain.kind == "none":
        return None
    if domain.width and len(bound) != domain.width:
        return None
    if domain.is_float and is_nan(bound):
        # Under the total order only values that are all NaN have such bounds: they lie beside all keys.
        return domain.key(bound) if statistics.order.total else _WORTHLESS
    key = domain.key(bound)
    if domain.kind == "int96":
        return key if abs(key) < _MOST_YEARS * _NS_OF_YEAR else _WORTHLESS
    return key if domain.kind in ("bytes", "decimal") or domain.low <= key < domain.high else _WORTHLESS
