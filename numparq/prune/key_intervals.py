"""Key intervals: what pruning statistics say of the sort keys of one leaf column in many containers."""

from __future__ import annotations

from typing import Any

import numpy as np

from numparq.expr.key_ranges import KeyRanges, prefix_end
from numparq.expr.sort_keys import KeyDomain
from numparq.format.page_index import UNKNOWN
from numparq.format.schema import Leaf

from .statistics import PruningStatistics

_DTYPES = {"signed": "<i{}", "unsigned": "<u{}", "boolean": "<u{}", "float": "<i{}"}
NUMERIC_KINDS = frozenset(_DTYPES)  # kinds of domains whose keys fit int64 or uint64
_MAX_INT96_NS = 290_000 * 31_556_952 * 10**9  # Spark's INT96 beyond 290,000 years are read as other values, unordered
_PREFIX_BYTES = 8


class KeyIntervals:
    """Bounds of the keys of one leaf column, and what is known of nulls and NaNs; one item a container.

    Attributes
    ----------
    lows, highs : numpy.ndarray or None
        int64 or uint64, first and last key (both included) of numeric kinds. All keys if bounds are missing, invalid
        or contradictory. In total order, NaNs have keys outside of the domain.
    is_empty : numpy.ndarray
        bool, containers without values and nulls.
    may_have_values, has_no_nulls : numpy.ndarray
        bool, containers that may have a non-null value, and those known to have no nulls.
    is_all_nan, has_no_nans : numpy.ndarray
        bool, containers known to have only NaNs, or none.
    """

    __slots__ = (
        "_bounds",
        "_data",
        "_domain",
        "_intervals",
        "_is_bounded",
        "_is_exact",
        "_order",
        "_prefixes",
        "has_no_nans",
        "has_no_nulls",
        "highs",
        "is_all_nan",
        "is_empty",
        "lows",
        "may_have_values",
    )

    def __init__(self, statistics: PruningStatistics, leaf: Leaf, domain: KeyDomain) -> None:
        self._data, self._bounds = statistics.data, (statistics.lows, statistics.highs)
        self._domain, self._order, self._is_exact = domain, statistics.order, statistics.is_exact
        self._intervals: dict[int, tuple[Any, Any]] = {}
        self._prefixes: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        nulls = statistics.num_nulls(leaf)
        self.is_empty = statistics.num_values == 0
        self.may_have_values: np.ndarray = ~statistics.is_all_null(leaf) & ~self.is_empty
        self.has_no_nulls = (nulls == 0) & ~statistics.all_null
        self.is_all_nan, self.has_no_nans = np.zeros(len(self), np.bool_), np.ones(len(self), np.bool_)
        if domain.is_float:
            num_non_null = np.where((nulls < 0) | (statistics.num_values < 0), UNKNOWN, statistics.num_values - nulls)
            self.is_all_nan = (statistics.nan_counts == num_non_null) & (num_non_null >= 0)
            self.has_no_nans = statistics.nan_counts == 0
        self.lows: np.ndarray | None = None
        self.highs: np.ndarray | None = None
        if domain.kind in NUMERIC_KINDS:
            self.lows, self.highs = self._numeric_bounds()

    def __len__(self) -> int:
        """Return the number of containers."""
        return len(self.is_empty)

    # --- tests against key ranges ------------------------------------------------------------------------------------

    def overlaps(self, ranges: KeyRanges) -> np.ndarray:
        """Return which containers may have a key in the ranges, by their bounds alone (bool)."""
        if not ranges:
            return np.zeros(len(self), np.bool_)
        if self.lows is None or self.highs is None:
            return self._overlap_each(ranges)
        overlap: np.ndarray
        if len(ranges) == 1:
            overlap = (self.highs >= ranges[0][0]) & (self.lows < ranges[0][1])
            return overlap
        firsts, lasts = ranges.edges(self.lows.dtype)
        before = firsts.searchsorted(self.highs, side="right")  # number of ranges that begin up to the container's end
        overlap = (before > 0) & (self.lows <= lasts[before - 1])
        return overlap

    def are_within(self, ranges: KeyRanges) -> np.ndarray:
        """Return which containers have all keys in the ranges, by their bounds alone (bool)."""
        if not ranges:
            return np.zeros(len(self), np.bool_)
        within: np.ndarray
        if self.lows is None or self.highs is None:
            within = np.zeros(len(self), np.bool_)
            for container in np.flatnonzero(self.has_no_nulls).tolist():
                within[container] = ranges.covers(*self.interval(container))
            return within
        if len(ranges) == 1:
            within = (self.lows >= ranges[0][0]) & (self.highs < ranges[0][1])
            return within
        firsts, lasts = ranges.edges(self.lows.dtype)
        position = firsts.searchsorted(self.lows, side="right") - 1
        within = (position >= 0) & (self.highs <= lasts[position])
        return within

    def interval(self, container: int) -> tuple[Any, Any]:
        """Return first key and exclusive end of the keys of a container; all keys if that is not known."""
        interval = self._intervals.get(container)
        if interval is None:
            if self.lows is None or self.highs is None:
                interval = self._other_interval(container)
            else:
                interval = int(self.lows[container]), int(self.highs[container]) + 1
            self._intervals[container] = interval
        return interval

    def bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return first and last key (both included) of each container, and which are known: both, and of values.

        Keys are int64, uint64 or objects; anything where they are not known.
        """
        if self.lows is not None and self.highs is not None:
            domain, known = self._domain, self._is_bounded.copy()
            known &= (self.lows >= domain.low) & (self.highs <= domain.high - 1)  # NaNs of the total order
            return self.lows, self.highs, known
        lows, highs = np.zeros(len(self), object), np.zeros(len(self), object)
        known = np.zeros(len(self), np.bool_)
        for container in range(len(self)):
            low, high = (self._keys(bounds[container]) for bounds in self._bounds)
            first, end = self.interval(container)
            if not (low and high and first == low[0]):
                continue
            last = high[0] if end == self._domain.successor(high[0]) else end  # the end of a prefix has no predecessor
            if type(last) is type(first):
                lows[container], highs[container], known[container] = first, last, True
        return lows, highs, known

    # --- numbers -----------------------------------------------------------------------------------------------------

    def _numeric_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        domain = self._domain
        (low, has_low), (high, has_high) = map(self._numeric_keys, self._bounds)
        is_good = ~(has_low & self._is_invalid(low)) & ~(has_high & self._is_invalid(high))
        if domain.is_float:  # order and writer may treat -0.0 and 0.0 as equal
            low, high = np.where(low == 0, -1, low), np.where(high == -1, 0, high)
        self._is_bounded = has_low & has_high
        is_good &= ~(self._is_bounded & (low > high))
        self._is_bounded &= is_good
        return np.where(has_low & is_good, low, domain.low), np.where(has_high & is_good, high, domain.high - 1)

    def _is_invalid(self, keys: np.ndarray) -> np.ndarray:
        """Return which bounds invalidate a container's bounds: invalid values, and NaNs unless the order is total."""
        if self._domain.is_float and self._order.total:
            return np.zeros(len(keys), np.bool_)
        invalid: np.ndarray = (keys < self._domain.low) | (keys > self._domain.high - 1)
        return invalid

    def _numeric_keys(self, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys of lower or upper bounds, and which of these exist."""
        domain, data, width = self._domain, self._data, self._domain.width
        exists = (bounds[:, 0] >= 0) & (bounds[:, 1] == width)
        if self._order.kind != domain.kind or len(data) < width:
            exists = np.zeros(len(self), np.bool_)
            plain = np.zeros((len(self), width), np.uint8)
        else:  # missing bounds read arbitrary bytes, which `exists` masks
            plain = data[np.where(exists, bounds[:, 0], 0)[:, None] + np.arange(width)]
        keys = plain.view(_DTYPES[domain.kind].format(width)).reshape(-1)
        if domain.is_float:
            keys = keys ^ ((keys >> (8 * width - 1)) & np.iinfo(keys.dtype).max)
        return (keys if keys.dtype == np.uint64 else keys.astype(np.int64)), exists

    # --- byte strings, decimals, INT96 -------------------------------------------------------------------------------

    def _other_interval(self, container: int) -> tuple[Any, Any]:
        domain = self._domain
        low, high = (self._keys(bounds[container]) for bounds in self._bounds)
        if low and high and low[0] > high[0]:
            return domain.low, domain.high
        if domain.kind == "int96" and any(abs(key) >= _MAX_INT96_NS for key in (*low, *high)):
            return domain.low, domain.high
        after = domain.successor(high[0]) if high else domain.high
        if domain.kind == "bytes" and high and low == high and not self._is_exact[container]:
            after = prefix_end(high[0])  # a writer may have truncated both, and not incremented the upper one
        return (low[0] if low else domain.low), after

    def _keys(self, bound: np.ndarray) -> tuple[Any, ...]:
        """Return the key of a bound, or nothing if it is missing or of another type."""
        domain = self._domain
        start, length = bound.tolist()
        if start < 0 or self._order.kind != domain.kind or domain.kind == "none":
            return ()
        if domain.width and length != domain.width:
            return ()
        return (domain.key(self._data[start : start + length].tobytes()),)

    def _overlap_each(self, ranges: KeyRanges) -> np.ndarray:
        """Return which containers may have a key in the ranges: by prefixes, and one by one where these do not tell."""
        apart, overlap = self.compare_prefixes(ranges)
        undecided = (self.may_have_values | self.has_no_nulls) & ~apart & ~overlap
        for container in np.flatnonzero(undecided).tolist():
            overlap[container] = ranges.overlaps(*self.interval(container))
        return overlap

    def compare_prefixes(self, ranges: KeyRanges) -> tuple[np.ndarray, np.ndarray]:
        """Return two bool arrays, by the first 8 bytes of the bounds: containers without a key in the ranges, and with.

        Neither is set if bounds are missing, may contradict each other, or if 8 bytes do not decide.
        """
        if self._domain.kind != "bytes" or self._order.kind != "bytes" or not ranges:
            none = np.zeros(len(self), np.bool_)
            return none, none.copy()
        if self._prefixes is None:
            self._prefixes = self._bound_prefixes()
        lows, highs, exists = self._prefixes
        starts, ends = ranges.edge_prefixes()
        before = starts.searchsorted(highs, side="right")
        reaches = (before > 0) & (lows <= ends[before - 1])
        # A range contains its first key: if that lies between the bounds, a value may match.
        begins = starts.searchsorted(lows, side="right") < starts.searchsorted(highs, side="left")
        return exists & ~reaches, exists & begins

    def _bound_prefixes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the prefixes of lower and upper bounds, and which containers these enclose for certain."""
        low, high = self._bounds
        exists = (low[:, 0] >= 0) & (high[:, 0] >= 0)
        if self._domain.width:
            exists &= (low[:, 1] == self._domain.width) & (high[:, 1] == self._domain.width)
        lows, highs = _prefixes(self._data, low, exists), _prefixes(self._data, high, exists)
        # Only bounds with different prefixes are in order and enclose all values for certain: an upper bound with the
        # lower one's prefix may have been truncated without being incremented.
        return lows, highs, exists & (lows < highs)


def _prefixes(data: np.ndarray, bounds: np.ndarray, exists: np.ndarray) -> np.ndarray:
    """Return the first 8 bytes of strings, zero-padded, as uint64 that order like them."""
    prefixes = np.zeros((len(bounds), _PREFIX_BYTES), np.uint8)
    columns = np.arange(_PREFIX_BYTES)
    taken = exists[:, None] & (columns < bounds[:, 1:])
    prefixes[taken] = data[(bounds[:, :1] + columns)[taken]]
    return prefixes.view(">u8").reshape(-1).astype(np.uint64)


def key_intervals(statistics: PruningStatistics, leaf: Leaf, domain: KeyDomain) -> KeyIntervals:
    """Return statistics in terms of sort keys; those of the last leaf and domain are cached."""
    for known_leaf, known_domain, intervals in statistics.last_intervals:
        if known_leaf is leaf and known_domain is domain:
            known: KeyIntervals = intervals
            return known
    latest = KeyIntervals(statistics, leaf, domain)
    statistics.last_intervals[:] = [(leaf, domain, latest)]
    return latest
