"""Pruning statistics: bounds and counts of many containers (row groups or pages) as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numparq.errors import ParquetError
from numparq.expr.sort_keys import KeyDomain
from numparq.format.column_order import NO_ORDER, ColumnOrder, declared_orders, may_have_nans
from numparq.format.footer.file_metadata import Footer
from numparq.format.page_index import UNKNOWN
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.statistics import deprecated_order
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.format.writer_quirks import MIN_MAX, NULL_COUNT, untrusted_statistics

if TYPE_CHECKING:
    from numparq.format.page_index import ColumnIndex

_STATISTICS = "meta_data.statistics"


class ContainerStatistics(NamedTuple):
    """Statistics of one leaf in one container.

    Attributes
    ----------
    num_values : int or None
        Number of values, nulls included.
    min_value, max_value : bytes or None
        PLAIN bounds in the order `order`; not always actual values.
    null_count, nan_count : int or None
        None if not known.
    is_exact : bool
        Whether both bounds are declared to be actual values.
    all_null : bool
        Whether the container is known to hold only nulls (a null page).
    order : ColumnOrder
        Order of the bounds; `NO_ORDER` if they mean nothing.
    """

    num_values: int | None = None
    min_value: bytes | None = None
    max_value: bytes | None = None
    null_count: int | None = None
    nan_count: int | None = None
    is_exact: bool = False
    all_null: bool = False
    order: ColumnOrder = NO_ORDER


@dataclass(frozen=True, slots=True, eq=False)
class PruningStatistics:
    """Statistics of one leaf in many containers (row groups or pages); each array has one item a container.

    Attributes
    ----------
    data : numpy.ndarray
        uint8, the buffer that holds the bounds.
    lows, highs : numpy.ndarray
        int64, (containers, 2): position in `data` and length of the PLAIN bound; position UNKNOWN if missing.
    num_values, null_counts, nan_counts : numpy.ndarray
        int64, UNKNOWN if not known.
    all_null : numpy.ndarray
        bool, whether a container is known to hold only nulls.
    is_exact : numpy.ndarray
        bool, whether both bounds are declared to be actual values.
    order : ColumnOrder
        Order of the bounds.
    """

    data: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    num_values: np.ndarray
    null_counts: np.ndarray
    nan_counts: np.ndarray
    all_null: np.ndarray
    is_exact: np.ndarray
    order: ColumnOrder
    # The last result of `key_intervals`, after the leaf and domain that it is of.
    last_intervals: list[tuple[Leaf, KeyDomain, Any]] = field(default_factory=list, init=False, repr=False)

    def __len__(self) -> int:
        """Return the number of containers."""
        return len(self.num_values)

    @classmethod
    def unknown(cls, num_values: np.ndarray) -> PruningStatistics:
        """Build statistics of containers of which only `num_values` is known."""
        absent, no = np.full((len(num_values), 2), UNKNOWN, np.int64), np.zeros(len(num_values), np.bool_)
        return cls(np.empty(0, np.uint8), absent, absent, num_values, absent[:, 0], absent[:, 0], no, no, NO_ORDER)

    def take(self, chosen: np.ndarray) -> PruningStatistics:
        """Return the containers at these indices (int64)."""
        return PruningStatistics(
            self.data,
            self.lows.take(chosen, axis=0),
            self.highs.take(chosen, axis=0),
            self.num_values.take(chosen),
            self.null_counts.take(chosen),
            self.nan_counts.take(chosen),
            self.all_null.take(chosen),
            self.is_exact.take(chosen),
            self.order,
        )

    def container(self, index: int) -> ContainerStatistics:
        """Return the statistics of one container."""
        low, high = (self._bound(bounds[index]) for bounds in (self.lows, self.highs))
        known = (self.num_values, self.null_counts, self.nan_counts)
        num_values, nulls, nans = (None if counts[index] < 0 else int(counts[index]) for counts in known)
        is_exact, all_null = bool(self.is_exact[index]), bool(self.all_null[index])
        return ContainerStatistics(num_values, low, high, nulls, nans, is_exact, all_null, self.order)

    def _bound(self, bound: np.ndarray) -> bytes | None:
        start, length = bound.tolist()
        return None if start < 0 else self.data[start : start + length].tobytes()

    def num_nulls(self, leaf: Leaf) -> np.ndarray:
        """Return the nulls of each container; UNKNOWN if the counts do not tell, as for nested leaves."""
        if leaf.is_nested:
            return np.full(len(self), UNKNOWN, np.int64)
        return self.null_counts if leaf.max_definition_level else np.zeros(len(self), np.int64)

    def is_all_null(self, leaf: Leaf) -> np.ndarray:
        """Return which containers are known to hold only nulls."""
        if leaf.is_nested:
            return self.all_null
        known: np.ndarray = self.all_null | ((self.null_counts >= 0) & (self.null_counts == self.num_values))
        return known


def valid_counts(counts: Any, most: np.ndarray) -> np.ndarray:
    """Return counts with impossible ones (negative, or more than `most` values) replaced by UNKNOWN.

    `most` is int64, one item a container; UNKNOWN sets no limit.
    """
    counts = np.asarray(counts, np.int64)
    return np.where((counts < 0) | ((most >= 0) & (counts > most)), UNKNOWN, counts)


@lru_cache(maxsize=1)
def _statistics_layout() -> ThriftLayout:
    return thrift_layout("ColumnChunk", "meta_data.num_values", _STATISTICS)


def row_group_statistics(footer: Footer, leaf: Leaf, row_groups: Sequence[int]) -> PruningStatistics:
    """Return the trusted statistics of a column by row group, from the footer alone; cached with the footer."""
    cache, key = footer.cache, ("statistics", leaf.index, *row_groups)
    known: tuple[Leaf, PruningStatistics] | None = cache.get(key)
    if known is not None and (known[0] is leaf or known[0] == leaf):
        return known[1]
    statistics = _read_statistics(footer, leaf, row_groups)
    return statistics if known is not None else cache.get_or_make(key, lambda: (leaf, statistics))[1]


def _read_statistics(footer: Footer, leaf: Leaf, row_groups: Sequence[int]) -> PruningStatistics:
    layout, wrong = _statistics_layout(), untrusted_statistics(footer.created_by, leaf)
    try:
        words = footer.chunks.read_words(layout, row_groups, [leaf.index] * len(row_groups))
    except ParquetError:
        return PruningStatistics.unknown(np.full(len(row_groups), UNKNOWN, np.int64))

    def number(path: str) -> np.ndarray:
        return words[:, layout.slot(path)]

    def bounds(name: str, old: str) -> np.ndarray:
        slot = layout.slot(f"{_STATISTICS}.{name}")
        newer = np.full((len(words), 2), UNKNOWN) if MIN_MAX in wrong else words[:, slot : slot + 2]
        if not is_old.any():
            return newer
        slot = layout.slot(f"{_STATISTICS}.{old}")
        older = words[:, slot : slot + 2] if old_order.kind != "none" else UNKNOWN
        return np.where(is_old[:, None], older, newer)

    num_values, unknown = number("meta_data.num_values"), np.full(len(words), UNKNOWN)
    order = column_order(footer, leaf)
    old_order = deprecated_order(leaf, order, footer.created_by)  # equal to `order` if both are defined
    is_old = (number(f"{_STATISTICS}.min_value") < 0) & (number(f"{_STATISTICS}.max_value") < 0)
    is_old |= order.kind == "none"
    low, high = (number(f"{_STATISTICS}.is_{which}_value_exact") for which in ("min", "max"))
    is_exact = (low == 1) & (high == 1) if leaf.physical == BYTE_ARRAY else (low != 0) & (high != 0)
    return PruningStatistics(
        footer.chunks.data,
        bounds("min_value", "min"),
        bounds("max_value", "max"),
        num_values,
        unknown if NULL_COUNT in wrong else valid_counts(number(f"{_STATISTICS}.null_count"), num_values),
        valid_counts(number(f"{_STATISTICS}.nan_count"), num_values) if may_have_nans(leaf) else unknown,
        np.zeros(len(words), np.bool_),
        is_exact,
        old_order if order.kind == "none" else order,
    )


def column_order(footer: Footer, leaf: Leaf) -> ColumnOrder:
    """Return the column order that a footer declares; NO_ORDER if only deprecated bounds can be trusted."""
    return footer.cache.get_or_make(("order", leaf), lambda: _order_in(footer, leaf))


def _order_in(footer: Footer, leaf: Leaf) -> ColumnOrder:
    names = footer.column_orders
    return declared_orders([leaf], None if names is None else [names[leaf.index]])[0]


def page_statistics(
    index: ColumnIndex, num_rows: np.ndarray, leaf: Leaf, order: ColumnOrder, created_by: str | None
) -> PruningStatistics:
    """Return the trusted statistics of a column index, one container a page.

    `num_rows` is int64, the rows of each page by the offset index.
    """
    wrong = untrusted_statistics(created_by, leaf)
    unknown = np.full(len(num_rows), UNKNOWN, np.int64)
    # In nested columns, rows of a page by the offset index are not its number of values.
    num_values = unknown if leaf.is_nested else num_rows
    nulls = unknown if NULL_COUNT in wrong else valid_counts(index.null_counts, num_values)
    # A null page with fewer nulls than rows contradicts itself: it may hold anything.
    has_values = index.null_pages & (nulls >= 0) & (nulls < num_values)
    useless = (index.null_pages | (MIN_MAX in wrong))[:, None]
    return PruningStatistics(
        index.data,
        np.where(useless, UNKNOWN, index.lows),
        np.where(useless, UNKNOWN, index.highs),
        num_values,
        nulls,
        valid_counts(index.nan_counts, num_values) if may_have_nans(leaf) else unknown,
        index.null_pages & ~has_values,
        np.full(len(num_rows), leaf.physical != BYTE_ARRAY),  # fixed-size bounds are never truncated
        order,
    )
