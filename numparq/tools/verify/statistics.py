"""Check Statistics and SizeStatistics: bounds, counts and histograms against the values."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from numparq.format.column_order import ColumnOrder, leaf_order
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.statistics import ValueBounds
from numparq.format.writer_quirks import null_count_check
from numparq.util.pluralize import agree_noun, pluralize

from .deviations import Findings, Location

_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_SHOWN_BYTES = 24
CHUNK_STATISTICS = "the statistics"

_INT96 = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])


def format_value(value: bytes, order: ColumnOrder) -> str:
    """Format a PLAIN-encoded value for a message."""
    if order.kind == "float" and len(value) in _FLOATS:
        return repr(struct.unpack(_FLOATS[len(value)], value)[0])
    if order.kind in ("signed", "unsigned", "boolean", "decimal"):
        return f"{order.sort_key(value):,}"
    return f"{value[:_SHOWN_BYTES]!r}" + (f"... ({pluralize(len(value), 'byte')})" if len(value) > _SHOWN_BYTES else "")


@dataclass(frozen=True)
class BoundsChecker:
    """Compares bounds with the actual smallest and largest value.

    `min_check`, `max_check` and `bound_check` are names of checks; `subject` names where the bounds stand.
    """

    order: ColumnOrder
    findings: Findings
    min_check: str = "stats-min"
    max_check: str = "stats-max"
    bound_check: str = "stats-bound"
    subject: str = CHUNK_STATISTICS

    def check(self, low: bytes | None, high: bytes | None, actual: ValueBounds, location: Location) -> None:
        """Check a lower and an upper bound; either may be None."""
        for bound, name, is_low in ((low, "minimum", True), (high, "maximum", False)):
            if bound is None:
                continue
            if not self._is_value(bound):
                self.findings.add(
                    self.bound_check,
                    f"the {name} of {self.subject} has {len(bound)} {agree_noun(len(bound), 'byte')}, and is not a "
                    "value of the column",
                    location,
                )
                continue
            found = actual.min_value if is_low else actual.max_value
            self._check_bound(bound, found, name, is_low, location)

    def _is_value(self, bound: bytes) -> bool:
        return len(bound) == self.order.width if self.order.width else bool(bound) or self.order.kind == "bytes"

    def _check_bound(self, bound: bytes, found: bytes | None, name: str, is_low: bool, location: Location) -> None:
        if self.order.is_float and not self.order.total:
            number = struct.unpack(_FLOATS[len(bound)], bound)[0]
            if math.isnan(number):
                self.findings.add("stats-nan", f"the {name} of {self.subject} is NaN, which readers ignore", location)
                return
            if self.subject == CHUNK_STATISTICS and number == 0 and (math.copysign(1, number) < 0) != is_low:
                self.findings.add(
                    "stats-zero", f"the {name} of {self.subject} is {number} instead of {-number}", location
                )
        if found is None or not self.exceeds(bound, found, is_low):
            return
        side = "below" if is_low else "above"
        check = self.min_check if is_low else self.max_check
        values = format_value(bound, self.order), format_value(found, self.order)
        message = f"the {name} of {self.subject} is {values[0]}, but value {values[1]} is {side} it"
        hidden = f"a value is {side} the {name} of {self.subject}; those of encrypted columns are not shown"
        self.findings.add(check, message if self.findings.may_quote(location) else hidden, location)

    def exceeds(self, bound: bytes, found: bytes, is_low: bool) -> bool:
        """Whether a value is outside a bound; zeros are equal if floats compare as numbers."""
        one, other = self._key(bound), self._key(found)
        return bool(other < one if is_low else other > one)

    def _key(self, value: bytes) -> Any:
        if self.order.is_float and not self.order.total:
            return struct.unpack(_FLOATS[len(value)], value)[0]
        return self.order.sort_key(value)

    def are_equal(self, one: bytes, other: bytes) -> bool:
        """Whether two bounds are equal in the column's order."""
        return bool(self._key(one) == self._key(other))


def int96_bounds(values: np.ndarray, codes: np.ndarray | None) -> ValueBounds:
    """Return the earliest and latest INT96 timestamp, ordered by day, then time of day.

    `values` are 12 bytes each; `codes` None: all values occur.
    """
    moments = values.view(_INT96)
    if codes is not None:
        moments = moments[np.unique(codes)]
    if not len(moments):
        return ValueBounds(None, None, None)
    order = np.lexsort((moments["nanoseconds"], moments["day"]))
    return ValueBounds(moments[order[0]].tobytes(), moments[order[-1]].tobytes(), None)


@dataclass(frozen=True)
class ActualStatistics:
    """Actual statistics of a chunk or page; `distinct_count` is None unless counted."""

    bounds: ValueBounds
    null_count: int
    distinct_count: int | None = None


def check_statistics(
    stats: dict[str, Any], truth: ActualStatistics, check: BoundsChecker, leaf: Leaf, location: Location
) -> None:
    """Compare a Statistics struct with the data."""
    findings, what = check.findings, check.subject
    counts = (
        ("null_count", "stats-null-count", "null", truth.null_count),
        ("nan_count", "stats-nan-count", "NaN", truth.bounds.nan_count),
        ("distinct_count", "stats-distinct-count", "distinct value", truth.distinct_count),
    )
    for name, which, noun, actual in counts:
        said = stats.get(name)
        if said is not None and said < 0:
            findings.add(
                "stats-unknown",
                f"{what} declare {said} {agree_noun(said, noun)}; an unknown count should be absent",
                location,
            )
        elif said is not None and actual is not None and said != actual:
            if name == "null_count":
                which = null_count_check(which, leaf.max_repetition_level > 0, said, actual)
            findings.add(which, f"{what} declare {pluralize(said, noun)}, but the data have {actual:,}", location)
    low, high = stats.get("min_value"), stats.get("max_value")
    if check.order.kind == "none":  # no order, or an unknown one: bounds cannot be checked
        if leaf_order(leaf).kind == "none" and (low is not None or high is not None):
            findings.add("stats-order", f"{what} have bounds, but values of the column have no order", location)
        return
    check.check(low, high, truth.bounds, location)
    _check_exact_flags(stats, truth.bounds, check, location)
    _check_deprecated_bounds(stats, truth.bounds, check, location)


def _check_exact_flags(stats: dict[str, Any], actual: ValueBounds, check: BoundsChecker, location: Location) -> None:
    for side, found in (("min", actual.min_value), ("max", actual.max_value)):
        bound = stats.get(f"{side}_value")
        if not stats.get(f"is_{side}_value_exact") or bound is None or found is None:
            continue
        if check.order.width and len(bound) != check.order.width:
            continue  # reported as stats-bound
        is_low = side == "min"
        if not check.are_equal(bound, found) and not check.exceeds(bound, found, is_low):
            check.findings.add(
                "stats-exact", f"is_{side}_value_exact is true, but no value equals {side}_value", location
            )


def _check_deprecated_bounds(
    stats: dict[str, Any], actual: ValueBounds, check: BoundsChecker, location: Location
) -> None:
    """Check the deprecated min and max of types whose order is the old, signed one."""
    if check.order.kind not in ("signed", "float", "boolean") or check.order.total:
        return
    for side, found in (("min", actual.min_value), ("max", actual.max_value)):
        bound = stats.get(side)
        if bound is None or found is None or len(bound) != check.order.width:
            continue
        if check.exceeds(bound, found, side == "min"):
            check.findings.add(
                "stats-legacy", f"the deprecated {side} of {check.subject} does not bound all values", location
            )


def check_size_statistics(
    sizes: dict[str, Any],
    leaf: Leaf,
    definition: list[int],
    repetition: list[int],
    byte_array_bytes: int | None,
    findings: Findings,
    location: Location,
) -> None:
    """Compare the SizeStatistics of a chunk with the data."""
    said = sizes.get("unencoded_byte_array_data_bytes")
    if said is not None:
        actual = byte_array_bytes if leaf.physical == BYTE_ARRAY else None
        if said != actual:
            there = "the column is not BYTE_ARRAY" if actual is None else f"the values have {pluralize(actual, 'byte')}"
            findings.add("stats-size", f"unencoded_byte_array_data_bytes is {said:,}, but {there}", location)
    for name, counts in (("definition", definition), ("repetition", repetition)):
        histogram = sizes.get(f"{name}_level_histogram")
        if histogram and histogram != counts:
            findings.add(
                "stats-histogram",
                f"{name}_level_histogram is {_short(histogram)}, but the levels count {_short(counts)}",
                location,
            )


def _short(counts: list[int]) -> str:
    return str(counts) if len(counts) <= 8 else f"{counts[:8]} and {len(counts) - 8} more"
