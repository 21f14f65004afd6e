"""What readers skip by: the bounds and counts of pages and column chunks (Statistics in parquet.thrift).

`order_of` says how the values of a column compare, `page_bounds` finds the bounds of all pages of a chunk at once,
`chunk_statistics` makes of them what the footer has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .order import COLUMN_ORDERS, NO_ORDER, Order, order_of, orders_of
from .pages import PageBounds, page_bounds
from .truncation import DEFAULT_LENGTH, truncate_max, truncate_min

__all__ = ["COLUMN_ORDERS", "DEFAULT_LENGTH", "NO_ORDER", "Bounds", "Order", "PageBounds", "chunk_statistics", "merge",
           "order_of", "orders_of", "page_bounds", "page_statistics", "truncate_max", "truncate_min"]  # fmt: skip


class Bounds(NamedTuple):
    """The bounds of a column chunk, or of one page.

    Attributes
    ----------
    min_value, max_value : bytes or None
        PLAIN, and whole.
    nan_count : int or None
        Of float types only.
    """

    min_value: bytes | None
    max_value: bytes | None
    nan_count: int | None


def merge(pages: PageBounds) -> Bounds:
    """Give the bounds of a column chunk by those of its pages.

    Parameters
    ----------
    pages : PageBounds
        Those of all its pages.

    Returns
    -------
    Bounds
        Under IEEE 754's total order pages that are all NaN count only where there are no others.
    """
    lows, highs, nans = pages.min_values, pages.max_values, pages.nan_counts
    wanted = [page for page, low in enumerate(lows) if low is not None]
    if nans is not None:
        wanted = [page for page in wanted if nans[page] < pages.num_values[page]] or wanted
    if not wanted:
        return Bounds(None, None, None if nans is None else sum(nans))
    if len(wanted) == 1:
        return Bounds(lows[wanted[0]], highs[wanted[0]], None if nans is None else sum(nans))
    key = pages.order.key
    low = min((low for page in wanted if (low := lows[page]) is not None), key=key)
    high = max((high for page in wanted if (high := highs[page]) is not None), key=key)
    return Bounds(low, high, None if nans is None else sum(nans))


def chunk_statistics(
    pages: PageBounds, null_count: int, *, distinct_count: int | None = None, length: int = DEFAULT_LENGTH
) -> dict[str, Any]:
    """Make the Statistics of a column chunk.

    Parameters
    ----------
    pages : PageBounds
        The bounds of its pages.
    null_count : int
        Its nulls.
    distinct_count : int, optional
        How many different values it has, where that is known for certain.
    length : int
        Bytes above which bounds are cut, as in `truncate_min`.

    Returns
    -------
    dict
        By the field names of the IDL. The old `min` and `max` are not among them: the specification allows them for
        readers that are older than `min_value`, and does not ask for them.
    """
    found = _statistics(pages.order, merge(pages), null_count, length)
    if distinct_count is not None:
        found["distinct_count"] = distinct_count
    return found


def page_statistics(pages: PageBounds, page: int, null_count: int, *, length: int = DEFAULT_LENGTH) -> dict[str, Any]:
    """Make the Statistics of a page, for its header.

    Parameters
    ----------
    pages : PageBounds
        The bounds of all pages of the chunk.
    page : int
        Which.
    null_count : int
        Its nulls.
    length : int
        As in `chunk_statistics`.

    Returns
    -------
    dict
        By the field names of the IDL.
    """
    nan_count = None if pages.nan_counts is None else pages.nan_counts[page]
    bounds = Bounds(pages.min_values[page], pages.max_values[page], nan_count)
    return _statistics(pages.order, bounds, null_count, length)


def _statistics(order: Order, bounds: Bounds, null_count: int, length: int) -> dict[str, Any]:
    found: dict[str, Any] = {"null_count": null_count}
    for name, value, truncate in (("max", bounds.max_value, truncate_max), ("min", bounds.min_value, truncate_min)):
        bound, exact = (None, False) if value is None else truncate(value, length, order)
        if bound is not None:
            found[f"{name}_value"], found[f"is_{name}_value_exact"] = bound, exact
    if bounds.nan_count is not None:
        found["nan_count"] = bounds.nan_count
    return found
