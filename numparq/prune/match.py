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
from numparq.expr.key_ranges import TOP, KeyRanges
from numparq.format.page_index import UNKNOWN
from numparq.format.schema import Leaf

from .match_columns import columns_may_match, columns_must_match
from .match_one import may_match, must_match
from .statistics import NUMERIC_KINDS, PruningStatistics

__all__ = [
    "compare_prefixes",
    "containers_may_match",
    "containers_must_match",
    "predicate_may_match",
    "predicate_must_match",
]

_SIZE = 8
_MOST = np.uint64(2**64 - 1)


def _may_be_null(predicate: NullPredicate, statistics: PruningStatistics) -> np.ndarray:
    leaf = predicate.leaf
    found: np.ndarray
    if predicate.negated:
        found = ~statistics.is_all_null(leaf) if predicate.is_leaf_level else np.ones(len(statistics), np.bool_)
    else:
        found = statistics.all_null | (statistics.null_counts != 0) | leaf.is_nested
    found &= statistics.num_values != 0
    return found


def _may_in_list(predicate: ContainsPredicate, statistics: PruningStatistics) -> np.ndarray:
    if not predicate.negated:
        return predicate_may_match(predicate.predicate, statistics)
    found: np.ndarray = statistics.num_values != 0
    return found


def _may_be_value(predicate: ValuePredicate, statistics: PruningStatistics) -> np.ndarray:
    domain = predicate.domain
    if domain.kind not in NUMERIC_KINDS:
        return _may_be_bytes(predicate, statistics)
    found: np.ndarray = _overlap(predicate.ranges, *statistics.key_bounds(domain))
    if domain.kind == "float":
        present = statistics.num_non_null(predicate.leaf)
        if predicate.matches_nan:
            found |= statistics.nan_counts != 0
        found = np.where((statistics.nan_counts == present) & (present >= 0), predicate.matches_nan, found)
    found &= statistics.may_have_values(predicate.leaf)
    return found


def _may_be_member(predicate: BloomPredicate, statistics: PruningStatistics) -> np.ndarray:
    return statistics.may_have_values(predicate.leaf)  # bounds cannot refute a Bloom filter


_MAY: dict[type, Callable[..., np.ndarray]] = {
    ComparisonPredicate: columns_may_match,
    NullPredicate: _may_be_null,
    ContainsPredicate: _may_in_list,
    ValuePredicate: _may_be_value,
    BloomPredicate: _may_be_member,
}


def _must_be_null(predicate: NullPredicate, statistics: PruningStatistics) -> np.ndarray:
    opposite = NullPredicate(predicate.leaf, predicate.definition_level, not predicate.negated)
    return ~_may_be_null(opposite, statistics)


def _never(predicate: ContainsPredicate | BloomPredicate, statistics: PruningStatistics) -> np.ndarray:
    found: np.ndarray = statistics.num_values == 0
    return found


def _must_be_value(predicate: ValuePredicate, statistics: PruningStatistics) -> np.ndarray:
    no_nulls, domain = statistics.has_no_nulls(predicate.leaf), predicate.domain
    if domain.kind not in NUMERIC_KINDS:
        return _match_each(predicate, statistics, no_nulls | (statistics.num_values == 0), must_match)
    found = _cover(predicate.ranges, *statistics.key_bounds(domain))
    if domain.kind == "float":
        present = statistics.num_non_null(predicate.leaf)
        all_nan = (statistics.nan_counts == present) & (present >= 0)
        found = np.where(all_nan, predicate.matches_nan, found & (predicate.matches_nan | (statistics.nan_counts == 0)))
    sure: np.ndarray = (found & no_nulls) | (statistics.num_values == 0)
    return sure


_MUST: dict[type, Callable[..., np.ndarray]] = {
    ComparisonPredicate: columns_must_match,
    NullPredicate: _must_be_null,
    ContainsPredicate: _never,
    ValuePredicate: _must_be_value,
    BloomPredicate: _never,
}


def compare_prefixes(predicate: ValuePredicate, statistics: PruningStatistics) -> tuple[np.ndarray, np.ndarray]:
    """Return two bool arrays, by the first 8 bytes of the bounds: containers that cannot match, and that may match.

    Neither is set if bounds are missing, may contradict each other, or if 8 bytes do not decide.
    """
    none = np.zeros(len(statistics), np.bool_)
    if (
        predicate.domain.kind != "bytes"
        or statistics.order.kind != "bytes"
        or not len(statistics)
        or not predicate.ranges
    ):
        return none, none
    there = (statistics.lows[:, 0] >= 0) & (statistics.highs[:, 0] >= 0)
    if predicate.domain.width:
        there &= (statistics.lows[:, 1] == predicate.domain.width) & (statistics.highs[:, 1] == predicate.domain.width)
    lows, highs = (
        _prefixes(statistics.data, statistics.lows, there),
        _prefixes(statistics.data, statistics.highs, there),
    )
    # Only bounds with different prefixes are surely in order and enclose all values: an upper bound with the lower
    # one's prefix may have been truncated without being incremented.
    there &= lows < highs
    starts = np.array([_number(low) for low, _ in predicate.ranges], np.uint64)
    ends = np.array([_MOST if high is TOP else _number(high) for _, high in predicate.ranges], np.uint64)
    before = np.searchsorted(starts, highs, side="right")
    reaches = (before > 0) & (lows <= ends[before - 1])
    # A range contains its first key: if that lies between the bounds, a value may match.
    begins = np.searchsorted(starts, lows, side="right") < np.searchsorted(starts, highs, side="left")
    return there & ~reaches, there & begins


def _prefixes(data: np.ndarray, places: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return the first 8 bytes of strings, zero-padded, as uint64 that order like them."""
    found = np.zeros((len(places), _SIZE), np.uint8)
    columns = np.arange(_SIZE)
    taken = there[:, None] & (columns < places[:, 1:])
    found[taken] = data[(places[:, :1] + columns)[taken]]
    return found.view(">u8").reshape(-1).astype(np.uint64)


def _number(key: bytes) -> int:
    return int.from_bytes(key[:_SIZE].ljust(_SIZE, b"\0"), "big")


def containers_may_match(bound: Expression, statistics: Mapping[int, PruningStatistics], count: int) -> np.ndarray:
    """Return a bool array of `count` containers: whether a row may match the bound expression.

    `statistics` maps ordinals of leaves to statistics; leaves without any may match.
    """
    if type(bound) is ValuePredicate and bound.leaf.index in statistics:  # by far the most frequent case
        return _may_be_value(bound, statistics[bound.leaf.index])
    return _of_all(predicate_may_match, bound, statistics, count)


def containers_must_match(bound: Expression, statistics: Mapping[int, PruningStatistics], count: int) -> np.ndarray:
    """Return a bool array of `count` containers: whether all rows must match the bound expression."""
    if type(bound) is ValuePredicate and bound.leaf.index in statistics:
        return _must_be_value(bound, statistics[bound.leaf.index])
    return _of_all(predicate_must_match, bound, statistics, count)


def _of_all(
    mask: Callable[..., np.ndarray],
    bound: Expression,
    statistics: Mapping[int, PruningStatistics],
    count: int,
) -> np.ndarray:
    def known(leaf: Leaf) -> PruningStatistics:
        found = statistics.get(leaf.index)
        return PruningStatistics.unknown(np.full(count, UNKNOWN, np.int64)) if found is None else found

    def answer(test: Any) -> np.ndarray:
        return mask(test, *map(known, test.leaves))

    return combine_results(bound, answer, lambda value: np.full(count, value))


def predicate_may_match(predicate: Any, *statistics: PruningStatistics) -> np.ndarray:
    """Return a bool array, one item a container: whether a row may match the bound predicate.

    `statistics` are those of its leaves, in order.
    """
    return _MAY[type(predicate)](predicate, *statistics)


def _may_be_bytes(predicate: ValuePredicate, statistics: PruningStatistics) -> np.ndarray:
    if predicate.pattern is not None and predicate.negated:  # values outside of the ranges match, too
        return statistics.may_have_values(predicate.leaf)
    apart, meeting = compare_prefixes(predicate, statistics)
    meeting &= statistics.may_have_values(predicate.leaf)
    found: np.ndarray = meeting | _match_each(predicate, statistics, ~apart & ~meeting, may_match)
    return found


def _match_each(
    predicate: Any, statistics: PruningStatistics, places: np.ndarray, question: Callable[..., bool]
) -> np.ndarray:
    """Match the chosen containers one by one; False for the others."""
    found = np.zeros(len(statistics), np.bool_)
    index = predicate.leaf.index
    for run in np.flatnonzero(places).tolist():
        found[run] = question(predicate, {index: statistics.container(run)})
    return found


def predicate_must_match(predicate: Any, *statistics: PruningStatistics) -> np.ndarray:
    """Return a bool array, one item a container: whether all rows must match the bound predicate."""
    return _MUST[type(predicate)](predicate, *statistics)


# --- numeric key ranges -----------------------------------------------------------------------------------------------


def _edges(ranges: KeyRanges, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last key of each range."""
    return np.array([low for low, _ in ranges], dtype), np.array([high - 1 for _, high in ranges], dtype)


def _overlap(ranges: KeyRanges, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Return which intervals (both ends included) have a key in the ranges."""
    if not ranges:
        return np.zeros(len(lows), np.bool_)
    found: np.ndarray
    if len(ranges) == 1:
        found = (highs >= ranges[0][0]) & (lows < ranges[0][1])
        return found
    starts, ends = _edges(ranges, lows.dtype)
    before = starts.searchsorted(highs, side="right")  # number of ranges that begin up to the interval's end
    found = (before > 0) & (lows <= ends[before - 1])
    return found


def _cover(ranges: KeyRanges, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Return which intervals (both ends included) lie within the ranges."""
    if not ranges:
        return np.zeros(len(lows), np.bool_)
    found: np.ndarray
    if len(ranges) == 1:
        found = (lows >= ranges[0][0]) & (highs < ranges[0][1])
        return found
    starts, ends = _edges(ranges, lows.dtype)
    place = starts.searchsorted(lows, side="right") - 1
    found = (place >= 0) & (highs <= ends[place])
    return found
