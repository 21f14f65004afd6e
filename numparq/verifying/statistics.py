"""Statistics and SizeStatistics held against the data (parquet.thrift)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..schema import BYTE_ARRAY, Leaf
from ..statistics import Bounds, order_of
from .bounds import BoundCheck
from .deviations import Findings, Place

__all__ = ["Truth", "check_size_statistics", "check_statistics"]


@dataclass(frozen=True)
class Truth:
    """What there really is, in a chunk or a page.

    Parameters
    ----------
    bounds : Bounds
        The smallest and the largest value, and the number of NaNs.
    null_count, num_entries : int
        Nulls, and nulls and values together.
    distinct_count : int or None
        Different values, where they have been counted.
    """

    bounds: Bounds
    null_count: int
    num_entries: int
    distinct_count: int | None = None


def check_statistics(stats: dict[str, Any], truth: Truth, check: BoundCheck, leaf: Leaf, place: Place) -> None:
    """Hold a Statistics struct against the data.

    Parameters
    ----------
    stats : dict
        The struct.
    truth : Truth
        What there is.
    check : BoundCheck
        Knows the order of the values.
    leaf : Leaf
        The column.
    place : Place
        Of the chunk or page.
    """
    findings, what = check.findings, check.what
    counts = (("null_count", "stats-null-count", "nulls", truth.null_count),
              ("nan_count", "stats-nan-count", "NaNs", truth.bounds.nan_count),
              ("distinct_count", "stats-distinct-count", "different values", truth.distinct_count))  # fmt: skip
    for name, which, things, actual in counts:
        said = stats.get(name)
        if said is not None and said < 0:
            findings.add("stats-unknown", f"{what} say {said} {things}, which stands for an unknown number", place)
        elif said is not None and actual is not None and said != actual:
            findings.add(which, f"{what} say {said:,} {things}, and there are {actual:,}", place)
    low, high = stats.get("min_value"), stats.get("max_value")
    if check.order.kind == "none":  # or one that is not known: of those bounds there is nothing to say
        if order_of(leaf).kind == "none" and (low is not None or high is not None):
            findings.add("stats-order", f"{what} have bounds, and the values of the column have no order", place)
        return
    check.check(low, high, truth.bounds, place)
    _check_exact(stats, truth.bounds, check, place)
    _check_legacy(stats, truth.bounds, check, place)


def _check_exact(stats: dict[str, Any], actual: Bounds, check: BoundCheck, place: Place) -> None:
    for side, found in (("min", actual.min_value), ("max", actual.max_value)):
        bound = stats.get(f"{side}_value")
        if not stats.get(f"is_{side}_value_exact") or bound is None or found is None:
            continue
        if check.order.width and len(bound) != check.order.width:
            continue  # which has been said already
        is_low = side == "min"
        if not check.same(bound, found) and not check.exceeds(bound, found, is_low):
            check.findings.add("stats-exact", f"{check.what} call {side}_value exact, and no value is it", place)


def _check_legacy(stats: dict[str, Any], actual: Bounds, check: BoundCheck, place: Place) -> None:
    """Check the old bounds of types that compare in the same way in the old order: signed."""
    if check.order.kind not in ("signed", "float", "boolean") or check.order.total:
        return
    for side, found in (("min", actual.min_value), ("max", actual.max_value)):
        bound = stats.get(side)
        if bound is None or found is None or len(bound) != check.order.width:
            continue
        if check.exceeds(bound, found, side == "min"):
            check.findings.add("stats-legacy", f"the old {side} of {check.what} does not bound all values", place)


def check_size_statistics(
    sizes: dict[str, Any], leaf: Leaf, definition: list[int], repetition: list[int], byte_array_bytes: int | None,
    findings: Findings, place: Place,
) -> None:  # fmt: skip
    """Hold the SizeStatistics of a chunk against the data."""
    said = sizes.get("unencoded_byte_array_data_bytes")
    if said is not None:
        actual = byte_array_bytes if leaf.physical == BYTE_ARRAY else None
        if said != actual:
            there = "the column has no BYTE_ARRAY values" if actual is None else f"they have {actual:,}"
            findings.add("stats-size", f"the size statistics say {said:,} bytes of values, and {there}", place)
    for name, counts in (("definition", definition), ("repetition", repetition)):
        histogram = sizes.get(f"{name}_level_histogram")
        if histogram and histogram != counts:
            findings.add("stats-histogram", f"the histogram of {name} levels is {_short(histogram)}, and the levels "
                                            f"are {_short(counts)}", place)  # fmt: skip


def _short(counts: list[int]) -> str:
    return str(counts) if len(counts) <= 8 else f"{counts[:8]} and {len(counts) - 8} more"
