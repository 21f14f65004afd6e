"""Slow, obvious references for planning and statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from numparq.expr.bound import BoundPredicate, combine_bools
from numparq.expr.expression import Expression
from numparq.format.bloom_filter import BloomFilter
from numparq.format.column_order import NO_ORDER, ColumnOrder, may_have_nans
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.statistics import deprecated_order, is_nan
from numparq.format.writer_quirks import MIN_MAX, NULL_COUNT, untrusted_statistics
from numparq.prune.bloom_filters import bloom_hashes
from numparq.prune.statistics import ContainerStatistics


class TrustedStatistics(NamedTuple):
    """What is known for certain of the values of a column chunk, or of a page.

    Attributes
    ----------
    min_value, max_value : bytes or None
        Bounds, PLAIN; not always values that occur. No bounds of NaNs, unless the order is IEEE 754's total one.
    null_count, nan_count : int or None
        How many.
    order : ColumnOrder
        How the bounds compare; `NO_ORDER` where there can be none.
    """

    min_value: bytes | None = None
    max_value: bytes | None = None
    null_count: int | None = None
    nan_count: int | None = None
    order: ColumnOrder = NO_ORDER


def trusted_statistics(
    statistics: Any, num_values: int, leaf: Leaf, order: ColumnOrder, created_by: str | None
) -> TrustedStatistics:
    """Take from Statistics what is certain.

    Parameters
    ----------
    statistics : Record or None
        Those of a column chunk, or of a page (parquet.thrift, Statistics).
    num_values : int
        Values of the chunk or page, nulls among them.
    leaf : Leaf
        The column.
    order : ColumnOrder
        Its order, out of `declared_orders`.
    created_by : str or None
        What the footer says of the writer.

    Returns
    -------
    TrustedStatistics
        Without what is not there, what is damaged, and what the writer is known to get wrong. The deprecated bounds
        stand in for the others where these are not there, or mean nothing since their order is not declared.
    """
    if statistics is None:
        return TrustedStatistics()
    wrong = untrusted_statistics(created_by, leaf)
    low, high, trusted = statistics.min_value, statistics.max_value, MIN_MAX not in wrong
    if order.kind == "none" or (low is None and high is None):
        order = deprecated_order(leaf, order, created_by)
        low, high, trusted = statistics.min, statistics.max, order.kind != "none"
    low, high = _bounds(low, high, order) if trusted else (None, None)
    null_count = None if NULL_COUNT in wrong else _count(statistics.null_count, num_values)
    nan_count = _count(statistics.nan_count, num_values) if may_have_nans(leaf) else None
    return TrustedStatistics(low, high, null_count, nan_count, order)


def _count(number: int | None, most: int) -> int | None:
    return number if number is not None and 0 <= number <= most else None


def _bounds(low: bytes | None, high: bytes | None, order: ColumnOrder) -> tuple[bytes | None, bytes | None]:
    """Drop bounds that contradict each other, and NaN bounds under type-defined order."""
    low, high = _valid_bound(low, order), _valid_bound(high, order)
    if order.is_float and not order.total:
        if (low is not None and is_nan(low)) or (high is not None and is_nan(high)):
            return None, None
        low, high = _widen_zeros(low, high)
    if low is not None and high is not None and order.sort_key(low) > order.sort_key(high):
        return None, None
    return low, high


def _valid_bound(bound: bytes | None, order: ColumnOrder) -> bytes | None:
    return None if bound is None or (order.width and len(bound) != order.width) else bytes(bound)


def _widen_zeros(low: bytes | None, high: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Widen zero bounds to both signs, which type-defined order does not distinguish."""
    if low is not None and not any(low):
        low = low[:-1] + b"\x80"
    if high is not None and not any(high[:-1]) and high[-1] == 0x80:
        high = bytes(len(high))
    return low, high


def facts_of(
    statistics: Any, num_values: int, leaf: Leaf, order: ColumnOrder, created_by: str | None
) -> ContainerStatistics:
    """Take from Statistics what can be trusted.

    Parameters
    ----------
    statistics, num_values, leaf, order, created_by
        As in `support.oracles.pruning.trusted_statistics`.

    Returns
    -------
    ContainerStatistics
    """
    found = trusted_statistics(statistics, num_values, leaf, order, created_by)
    flags = [getattr(statistics, f"is_{which}_value_exact", None) for which in ("min", "max")]
    # What is of one size is never cut.
    is_exact = all(flags) or (leaf.physical != BYTE_ARRAY and False not in flags)
    return ContainerStatistics(num_values, *found[:4], is_exact, order=found.order)


def may_contain(bound: Expression, filters: Mapping[int, Any]) -> bool:
    """Say whether any row of a row group may satisfy a bound expression, by its Bloom filters.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    filters : mapping of int to BloomFilter, or to callable
        By the ordinals of leaves; a callable takes hashes and says of each whether it may be in the filter.

    Returns
    -------
    bool
        False only if none can.
    """

    def answer(test: BoundPredicate) -> bool:
        asked = filters.get(test.leaf.index)
        probes = None if asked is None else bloom_hashes(test)
        if asked is None or probes is None:
            return True
        return bool(np.any(asked.might_contain(probes) if isinstance(asked, BloomFilter) else asked(probes)))

    return combine_bools(bound, answer)
