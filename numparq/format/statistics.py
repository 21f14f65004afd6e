"""Statistics of column chunks and pages: built for the writer; the deprecated min and max for the reader."""

from __future__ import annotations

from typing import Any, NamedTuple

from .column_order import NO_ORDER, ColumnOrder, leaf_order
from .page_bounds import DEFAULT_TRUNCATE_LENGTH, PageBounds, truncate_max_value, truncate_min_value
from .schema import Leaf
from .writer_quirks import DEPRECATED_MIN_MAX, untrusted_statistics

__all__ = ["ValueBounds", "build_chunk_statistics", "build_page_statistics", "merge_page_bounds"]

# Kinds for which the deprecated min and max are used: these have no declared order and always compare as signed.
_COMPARED_AS_SIGNED = ("boolean", "signed", "float")


class ValueBounds(NamedTuple):
    """Bounds of a column chunk or a page: PLAIN, not truncated; `nan_count` is None unless the type is a float."""

    min_value: bytes | None
    max_value: bytes | None
    nan_count: int | None


def merge_page_bounds(pages: PageBounds) -> ValueBounds:
    """Return the bounds of a column chunk from those of its pages.

    Under IEEE 754 total order, all-NaN pages count only if there are no others.
    """
    lows, highs, nans = pages.min_values, pages.max_values, pages.nan_counts
    wanted = [page for page, low in enumerate(lows) if low is not None]
    if nans is not None:
        wanted = [page for page in wanted if nans[page] < pages.num_values[page]] or wanted
    if not wanted:
        return ValueBounds(None, None, None if nans is None else sum(nans))
    if len(wanted) == 1:
        return ValueBounds(lows[wanted[0]], highs[wanted[0]], None if nans is None else sum(nans))
    key = pages.order.sort_key
    low = min((low for page in wanted if (low := lows[page]) is not None), key=key)
    high = max((high for page in wanted if (high := highs[page]) is not None), key=key)
    return ValueBounds(low, high, None if nans is None else sum(nans))


def build_chunk_statistics(
    pages: PageBounds, null_count: int, *, distinct_count: int | None = None, length: int = DEFAULT_TRUNCATE_LENGTH
) -> dict[str, Any]:
    """Build the Statistics of a column chunk, with bounds truncated to `length` bytes.

    The deprecated `min` and `max` are not written: the specification allows but does not require them.
    """
    found = _statistics(pages.order, merge_page_bounds(pages), null_count, length)
    if distinct_count is not None:
        found["distinct_count"] = distinct_count
    return found


def build_page_statistics(
    pages: PageBounds, page: int, null_count: int, *, length: int = DEFAULT_TRUNCATE_LENGTH
) -> dict[str, Any]:
    """Build the Statistics of a page header, with bounds truncated to `length` bytes."""
    nan_count = None if pages.nan_counts is None else pages.nan_counts[page]
    bounds = ValueBounds(pages.min_values[page], pages.max_values[page], nan_count)
    return _statistics(pages.order, bounds, null_count, length)


def _statistics(order: ColumnOrder, bounds: ValueBounds, null_count: int, length: int) -> dict[str, Any]:
    found: dict[str, Any] = {"null_count": null_count}
    for name, value, truncate in (
        ("max", bounds.max_value, truncate_max_value),
        ("min", bounds.min_value, truncate_min_value),
    ):
        bound, exact = (None, False) if value is None else truncate(value, length, order)
        if bound is not None:
            found[f"{name}_value"], found[f"is_{name}_value_exact"] = bound, exact
    if bounds.nan_count is not None:
        found["nan_count"] = bounds.nan_count
    return found


def deprecated_order(leaf: Leaf, order: ColumnOrder, created_by: str | None) -> ColumnOrder:
    """Return the order of the deprecated min and max: the type's if it is signed and trusted, else `NO_ORDER`.

    Also `NO_ORDER` under IEEE 754 total order, so that a column's bounds have one order in all row groups.
    """
    found = leaf_order(leaf)
    is_sound = found.kind in _COMPARED_AS_SIGNED and DEPRECATED_MIN_MAX not in untrusted_statistics(created_by, leaf)
    return found if is_sound and not order.total else NO_ORDER


def is_nan(value: bytes) -> bool:
    """Whether a PLAIN float of 2, 4 or 8 bytes is NaN."""
    exponent, fraction = {2: (5, 10), 4: (8, 23), 8: (11, 52)}[len(value)]
    bits = int.from_bytes(value, "little") & (1 << exponent + fraction) - 1
    return bits > ((1 << exponent) - 1) << fraction
