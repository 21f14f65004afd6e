"""Statistics of column chunks and pages: built for the writer; the deprecated min and max for the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from numparq.kernels.thrift.encode import ABSENT

from .column_order import NO_ORDER, ColumnOrder, leaf_order
from .page_bounds import DEFAULT_TRUNCATE_LENGTH, PageBounds, truncate_max_value, truncate_min_value
from .schema import Leaf
from .thrift.templates import RecordStrings
from .writer_quirks import DEPRECATED_MIN_MAX, untrusted_statistics

# Fields of Statistics that are written, in the order of the words of `PageStatistics`.
STATISTICS_FIELDS = (
    "null_count",
    "max_value",
    "min_value",
    "is_max_value_exact",
    "is_min_value_exact",
    "nan_count",
)
NO_STATISTICS = (ABSENT, ABSENT, 0, ABSENT, 0, ABSENT, ABSENT, ABSENT)

# Kinds for which the deprecated min and max are used: these have no declared order and always compare as signed.
_COMPARED_AS_SIGNED = ("boolean", "signed", "float")


class ValueBounds(NamedTuple):
    """Bounds of a column chunk or a page: PLAIN, not truncated; `nan_count` is None unless the type is a float."""

    min_value: bytes | None
    max_value: bytes | None
    nan_count: int | None


class PageStatistics:
    """Statistics of the pages of consecutive column chunks, with truncated bounds, as words of Thrift records.

    Attributes
    ----------
    min_values, max_values : list of bytes or None
        Bounds of each page, truncated to `length` bytes; None if a page has none, or it cannot be truncated.
    """

    def __init__(self, bounds: PageBounds, null_counts: Sequence[int], length: int = DEFAULT_TRUNCATE_LENGTH) -> None:
        self.bounds = bounds
        self.null_counts = null_counts
        self.min_values, self._min_exact = _truncate_bounds(bounds.min_values, length, bounds.order, truncate_min_value)
        self.max_values, self._max_exact = _truncate_bounds(bounds.max_values, length, bounds.order, truncate_max_value)

    def words(self, first: int, last: int, strings: RecordStrings) -> tuple[int, ...]:
        """Return the words of `STATISTICS_FIELDS` of pages `first` to `last` (exclusive) together.

        The deprecated `min` and `max` are not written: the specification allows but does not require them.
        """
        low, high = _extreme_pages(self.bounds, first, last)
        min_value, max_value = self.min_values[low], self.max_values[high]
        nans = self.bounds.nan_counts
        return (
            self.null_counts[first] if last - first == 1 else sum(self.null_counts[first:last]),
            *strings.add(max_value),
            *strings.add(min_value),
            ABSENT if max_value is None else self._max_exact[high],
            ABSENT if min_value is None else self._min_exact[low],
            ABSENT if nans is None else sum(nans[first:last]),
        )


def _truncate_bounds(
    values: list[bytes | None],
    length: int,
    order: ColumnOrder,
    truncate: Callable[[bytes, int, ColumnOrder], tuple[bytes | None, bool]],
) -> tuple[list[bytes | None], list[bool]]:
    """Return truncated bounds, and whether each is exact."""
    if all(value is None or len(value) <= length for value in values):
        return values, [True] * len(values)
    found = [(None, False) if value is None else truncate(value, length, order) for value in values]
    return [value for value, _ in found], [exact for _, exact in found]


def _extreme_pages(pages: PageBounds, first: int, last: int) -> tuple[int, int]:
    """Return the pages with the least and the largest bound of those from `first` to `last` (exclusive).

    Under IEEE 754 total order, all-NaN pages count only if there are no others.
    """
    if last - first == 1:
        return first, first
    lows, highs, nans = pages.min_values, pages.max_values, pages.nan_counts
    wanted = [page for page in range(first, last) if lows[page] is not None]
    if nans is not None:
        wanted = [page for page in wanted if nans[page] < pages.num_values[page]] or wanted
    if len(wanted) < 2:
        return (*wanted, *wanted) if wanted else (first, first)  # type: ignore[return-value]
    key = pages.order.sort_key
    return min(wanted, key=lambda page: key(lows[page] or b"")), max(wanted, key=lambda page: key(highs[page] or b""))


def merge_page_bounds(pages: PageBounds) -> ValueBounds:
    """Return the bounds of a column chunk from those of its pages."""
    nan_count = None if pages.nan_counts is None else sum(pages.nan_counts)
    if not pages.num_values:
        return ValueBounds(None, None, nan_count)
    low, high = _extreme_pages(pages, 0, len(pages.num_values))
    return ValueBounds(pages.min_values[low], pages.max_values[high], nan_count)


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
