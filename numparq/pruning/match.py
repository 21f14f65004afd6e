"""`may_match` and `must_match` of many runs at once: the same answers, without an object for each run.

Tests on numbers are answered for all runs by a few array operations. Those on bytes first compare eight bytes of each
bound that way; what that leaves open, and every other kind of test, is asked run by run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from ..predicate.bound import ElementTest, MemberTest, NullTest, ValueTest
from ..predicate.expression import And, Constant, Expression, Or
from ..predicate.may_match import may_match, must_match
from ..predicate.ranges import Ranges
from .prefixes import told
from .runs import UNKNOWN, Runs, has_numbers

__all__ = ["fold", "may_mask", "must_mask", "runs_that_may", "runs_that_must"]


def fold(bound: Expression, answer: Callable[[Any], Any], constant: Callable[[bool], Any]) -> Any:
    """Join what the tests of a bound expression answer: by ``&`` in an AND, by ``|`` in an OR.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    answer : callable
        Gives the answer of a test: a mask, or row ranges.
    constant : callable
        Gives that of a Constant, by its value.
    """
    if isinstance(bound, Constant):
        return constant(bound.value)
    if isinstance(bound, And):
        return reduce(lambda a, b: a & b, (fold(part, answer, constant) for part in bound.parts))
    if isinstance(bound, Or):
        return reduce(lambda a, b: a | b, (fold(part, answer, constant) for part in bound.parts))
    return answer(bound)


def runs_that_may(bound: Expression, runs: Mapping[int, Runs], count: int) -> np.ndarray:
    """Tell which runs may have a row that satisfies a bound expression.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    runs : mapping of int to Runs
        What is known of the leaves, by their ordinals; of those left out nothing is.
    count : int
        How many runs there are.

    Returns
    -------
    bool array, (count,)
    """
    return _of_all(may_mask, bound, runs, count)


def runs_that_must(bound: Expression, runs: Mapping[int, Runs], count: int) -> np.ndarray:
    """Tell which runs are sure to have only rows that satisfy a bound expression; as `runs_that_may`."""
    return _of_all(must_mask, bound, runs, count)


def _of_all(mask: Callable[[Any, Runs], np.ndarray], bound: Expression, runs: Mapping[int, Runs], count: int) -> Any:
    def answer(test: Any) -> np.ndarray:
        known = runs.get(test.leaf.index)
        return mask(test, Runs.unknown(np.full(count, UNKNOWN, np.int64)) if known is None else known)

    return fold(bound, answer, lambda value: np.full(count, value))


# --- may --------------------------------------------------------------------------------------------------------------


def may_mask(test: Any, runs: Runs) -> np.ndarray:
    """Tell which runs may have a row that satisfies a test.

    Parameters
    ----------
    test : ValueTest, NullTest, ElementTest or another one
        Bound.
    runs : Runs
        Of its leaf.

    Returns
    -------
    bool array, (runs,)
    """
    return _MAY.get(type(test), _may_one_by_one)(test, runs)


def _may_be_null(test: NullTest, runs: Runs) -> np.ndarray:
    leaf = test.leaf
    if test.negated:
        found = ~runs.only_nulls(leaf) if test.is_of_leaf else np.ones(len(runs), np.bool_)
    else:
        found = runs.all_null | (runs.null_counts != 0) | leaf.is_nested
    return found & (runs.num_values != 0)


def _may_in_list(test: ElementTest, runs: Runs) -> np.ndarray:
    return runs.num_values != 0 if test.negated else may_mask(test.test, runs)


def _may_be_value(test: ValueTest, runs: Runs) -> np.ndarray:
    if not has_numbers(test.domain):
        return _may_be_bytes(test, runs)
    found = _overlap(test.ranges, *runs.intervals(test.domain))
    if test.domain.is_float:
        present = runs.num_present(test.leaf)
        if test.nan:
            found |= runs.nan_counts != 0
        found = np.where((runs.nan_counts == present) & (present >= 0), test.nan, found)
    return found & runs.may_have_values(test.leaf)


def _may_be_bytes(test: ValueTest, runs: Runs) -> np.ndarray:
    if test.pattern is not None and test.negated:  # what satisfies it may be outside of the ranges, too
        return runs.may_have_values(test.leaf)
    apart, meeting = told(test, runs)
    meeting &= runs.may_have_values(test.leaf)
    return meeting | _asked(test, runs, ~apart & ~meeting, may_match)


def _may_be_member(test: MemberTest, runs: Runs) -> np.ndarray:
    return runs.may_have_values(test.leaf)  # bounds say nothing of a Bloom filter


def _may_one_by_one(test: Any, runs: Runs) -> np.ndarray:
    return _asked(test, runs, np.ones(len(runs), np.bool_), may_match)


def _asked(test: Any, runs: Runs, places: np.ndarray, question: Callable[..., bool]) -> np.ndarray:
    """Ask of some runs, one by one; False of the others."""
    found = np.zeros(len(runs), np.bool_)
    index = test.leaf.index
    for run in np.flatnonzero(places).tolist():
        found[run] = question(test, {index: runs.facts(run)})
    return found


_MAY: dict[type, Callable[[Any, Runs], np.ndarray]] = {
    NullTest: _may_be_null, ElementTest: _may_in_list, ValueTest: _may_be_value,
    MemberTest: _may_be_member,
}  # fmt: skip

# --- must -------------------------------------------------------------------------------------------------------------


def must_mask(test: Any, runs: Runs) -> np.ndarray:
    """Tell which runs are sure to have only rows that satisfy a test; parameters as in `may_mask`."""
    return _MUST.get(type(test), _must_one_by_one)(test, runs)


def _must_be_null(test: NullTest, runs: Runs) -> np.ndarray:
    opposite = NullTest(test.leaf, test.level, not test.negated)
    return ~_may_be_null(opposite, runs)


def _must_be_value(test: ValueTest, runs: Runs) -> np.ndarray:
    no_nulls = runs.have_no_nulls(test.leaf)
    if not has_numbers(test.domain):
        return _asked(test, runs, no_nulls | (runs.num_values == 0), must_match)
    found = _cover(test.ranges, *runs.intervals(test.domain))
    if test.domain.is_float:
        present = runs.num_present(test.leaf)
        all_nan = (runs.nan_counts == present) & (present >= 0)
        found = np.where(all_nan, test.nan, found & (test.nan | (runs.nan_counts == 0)))
    return (found & no_nulls) | (runs.num_values == 0)


def _never(test: ElementTest | MemberTest, runs: Runs) -> np.ndarray:
    return runs.num_values == 0


def _must_one_by_one(test: Any, runs: Runs) -> np.ndarray:
    return _asked(test, runs, np.ones(len(runs), np.bool_), must_match)


_MUST: dict[type, Callable[[Any, Runs], np.ndarray]] = {
    NullTest: _must_be_null, ElementTest: _never, ValueTest: _must_be_value, MemberTest: _never,
}  # fmt: skip

# --- ranges of numbers ------------------------------------------------------------------------------------------------


def _edges(ranges: Ranges, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Give the first and the last key of each range."""
    return np.array([low for low, _ in ranges], dtype), np.array([high - 1 for _, high in ranges], dtype)


def _overlap(ranges: Ranges, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Tell which intervals, both ends included, have a key in a set."""
    if not ranges:
        return np.zeros(len(lows), np.bool_)
    if len(ranges) == 1:
        return (highs >= ranges[0][0]) & (lows < ranges[0][1])
    starts, ends = _edges(ranges, lows.dtype)
    before = starts.searchsorted(highs, side="right")  # ranges that begin at the interval's end, or before it
    return (before > 0) & (lows <= ends[before - 1])


def _cover(ranges: Ranges, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Tell which intervals, both ends included, have all their keys in a set."""
    if not ranges:
        return np.zeros(len(lows), np.bool_)
    if len(ranges) == 1:
        return (lows >= ranges[0][0]) & (highs < ranges[0][1])
    starts, ends = _edges(ranges, lows.dtype)
    place = starts.searchsorted(lows, side="right") - 1
    return (place >= 0) & (highs <= ends[place])
