"""What is known of a run of values (a page, a column chunk), and what that says of a test.

`may_match` is False only if no row can satisfy; `must_match` is True only if all rows do. Whatever is not known, not
trusted or not understood answers True to the one and False to the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..schema import BYTE_ARRAY, Leaf
from ..statistics.order import NO_ORDER, Order
from ..statistics.reading import is_nan, known
from .bound import ElementTest, Leafy, MemberTest, NullTest, ValueTest, decide
from .domain import Domain
from .expression import Expression
from .pattern import after_prefix
from .ranges import covers, overlaps

_MOST_YEARS = 290_000  # INT96 moments beyond are read as what Spark meant by them, which is in no order
_NS_OF_YEAR = 31_556_952 * 10**9
_WORTHLESS = object()


class Facts(NamedTuple):
    """What is known of the values of one leaf in a run of rows.

    Attributes
    ----------
    num_values : int or None
        How many there are, nulls among them.
    min_value, max_value : bytes or None
        Bounds, PLAIN, in the order `order`; not always values that occur.
    null_count, nan_count : int or None
        How many; None where that is not known, which is not 0.
    is_exact : bool
        Whether both bounds are said to be values that occur.
    all_null : bool
        Whether the run is known to have nothing but nulls (a null page).
    order : Order
        How the bounds compare; `NO_ORDER` where they mean nothing.
    """

    num_values: int | None = None
    min_value: bytes | None = None
    max_value: bytes | None = None
    null_count: int | None = None
    nan_count: int | None = None
    is_exact: bool = False
    all_null: bool = False
    order: Order = NO_ORDER


NOTHING = Facts()


def facts_of(statistics: Any, num_values: int, leaf: Leaf, order: Order, created_by: str | None) -> Facts:
    """Take from Statistics what can be trusted.

    Parameters
    ----------
    statistics, num_values, leaf, order, created_by
        As in `numparq.statistics.reading.known`.

    Returns
    -------
    Facts
    """
    found = known(statistics, num_values, leaf, order, created_by)
    flags = [getattr(statistics, f"is_{which}_value_exact", None) for which in ("min", "max")]
    # What is of one size is never cut.
    is_exact = all(flags) or (leaf.physical != BYTE_ARRAY and False not in flags)
    return Facts(num_values, *found[:4], is_exact, order=found.order)


def may_match(bound: Expression, facts: Mapping[int, Facts]) -> bool:
    """Say whether any row of a run may satisfy a bound expression.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    facts : mapping of int to Facts
        What is known of the leaves in the same rows, by their ordinals; those left out are not known.
    """
    return decide(bound, lambda test: _may(test, facts.get(test.leaf.index, NOTHING)))


def must_match(bound: Expression, facts: Mapping[int, Facts]) -> bool:
    """Say whether all rows of a run are sure to satisfy a bound expression; parameters as in `may_match`."""
    return decide(bound, lambda test: _must(test, facts.get(test.leaf.index, NOTHING)))


class _Run(NamedTuple):
    """Facts in terms of a test's keys: values lie from `low` up to `high`, and there may be nulls or NaNs."""

    all_null: bool
    no_nulls: bool
    all_nan: bool
    no_nans: bool
    low: Any
    high: Any


def _may(test: Leafy, facts: Facts) -> bool:
    if facts.num_values == 0:
        return False
    if isinstance(test, NullTest):
        return _may_be_null(test, facts)
    if isinstance(test, ElementTest):
        return test.negated or _may(test.test, facts)
    if isinstance(test, MemberTest):  # bounds say nothing of a Bloom filter
        return not (facts.all_null or _all_null(test.leaf, facts))
    run = _run(test, facts)
    if run.all_null:
        return False
    if run.all_nan:
        return test.nan
    if test.nan and not run.no_nans:
        return True
    if test.pattern is not None and test.negated:
        return True
    return overlaps(test.ranges, run.low, run.high)


def _must(test: Leafy, facts: Facts) -> bool:
    if facts.num_values == 0:
        return True
    if isinstance(test, (ElementTest, MemberTest)):
        return False
    if isinstance(test, NullTest):
        return not _may_be_null(NullTest(test.leaf, test.level, not test.negated), facts)
    run = _run(test, facts)
    if not run.no_nulls:
        return False
    if run.all_nan or not (test.nan or run.no_nans):
        return run.all_nan and test.nan
    if test.pattern is None:
        return covers(test.ranges, run.low, run.high)
    return test.negated and not overlaps(test.ranges, run.low, run.high)


def _may_be_null(test: NullTest, facts: Facts) -> bool:
    """Say whether a row may satisfy a question for nulls: a null of a leaf may be one of what is around it."""
    leaf = test.leaf
    if test.negated:
        return not (test.is_of_leaf and (facts.all_null or _all_null(leaf, facts)))
    return leaf.is_nested or facts.all_null or facts.null_count != 0


def _all_null(leaf: Leaf, facts: Facts) -> bool:
    return not leaf.is_nested and facts.null_count is not None and facts.null_count == facts.num_values


def _run(test: ValueTest, facts: Facts) -> _Run:
    leaf, domain = test.leaf, test.domain
    nulls = None if leaf.is_nested else 0 if leaf.max_definition_level == 0 else facts.null_count
    values = None if facts.num_values is None or nulls is None else facts.num_values - nulls
    return _Run(
        facts.all_null or _all_null(leaf, facts),
        nulls == 0 and not facts.all_null,
        domain.is_float and values is not None and facts.nan_count == values,
        not domain.is_float or facts.nan_count == 0,
        *_interval(domain, facts),
    )


def _interval(domain: Domain, facts: Facts) -> tuple[Any, Any]:
    """Give the keys that the values lie between, the second one not included; all keys where that is not known."""
    low, high = _key(domain, facts, facts.min_value), _key(domain, facts, facts.max_value)
    if low is _WORTHLESS or high is _WORTHLESS:
        return domain.low, domain.high
    if domain.is_float:
        # Neither order nor writer need have told the zeros apart.
        low, high = (-1 if low == 0 else low), (0 if high == -1 else high)
    if low is not None and high is not None and low > high:
        return domain.low, domain.high
    after = domain.high if high is None else domain.after(high)
    if domain.kind == "bytes" and low is not None and low == high and not facts.is_exact:
        after = after_prefix(high)  # cut by who forgot to make the larger one larger
    return (domain.low if low is None else low), after


def _key(domain: Domain, facts: Facts, bound: bytes | None) -> Any:
    """Give the key of a bound, None where there is none, and `_WORTHLESS` where it makes both so."""
    if bound is None or facts.order.kind != domain.kind or domain.kind == "none":
        return None
    if domain.width and len(bound) != domain.width:
        return None
    if domain.is_float and is_nan(bound):
        # Under the total order only values that are all NaN have such bounds: they lie beside all keys.
        return domain.key(bound) if facts.order.total else _WORTHLESS
    key = domain.key(bound)
    if domain.kind == "int96":
        return key if abs(key) < _MOST_YEARS * _NS_OF_YEAR else _WORTHLESS
    return key if domain.kind in ("bytes", "decimal") or domain.low <= key < domain.high else _WORTHLESS
