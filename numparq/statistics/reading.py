"""What a reader may take from the statistics of a file: bounds in the order that it declares, and sound counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..schema import Leaf
from .distrust import DEPRECATED_MIN_MAX, MIN_MAX, NULL_COUNT, distrusted
from .order import INT96_ORDER, NO_ORDER, TOTAL_ORDER, TYPE_ORDER, Order, order_of

# Members of the union ColumnOrder -> names of orders, and the kinds of columns that may have them; None: all.
_DECLARED: dict[str, tuple[str, str | None]] = {
    "TYPE_ORDER": (TYPE_ORDER, None),
    "IEEE_754_TOTAL_ORDER": (TOTAL_ORDER, "float"),
    "INT96_TIMESTAMP_ORDER": (INT96_ORDER, "int96"),
}
# Of these the deprecated min and max are taken, of which no order is ever declared: they always compare as signed.
_COMPARED_AS_SIGNED = ("boolean", "signed", "float")


class Known(NamedTuple):
    """What is known for certain of the values of a column chunk, or of a page.

    Attributes
    ----------
    min_value, max_value : bytes or None
        Bounds, PLAIN; not always values that occur. No bounds of NaNs, unless the order is IEEE 754's total one.
    null_count, nan_count : int or None
        How many.
    order : Order
        How the bounds compare; `NO_ORDER` where there can be none.
    """

    min_value: bytes | None = None
    max_value: bytes | None = None
    null_count: int | None = None
    nan_count: int | None = None
    order: Order = NO_ORDER


def declared_orders(leaves: Sequence[Leaf], column_orders: Sequence[str | None] | None) -> list[Order]:
    """Give the order of each leaf, for who reads: as the file declares it.

    Parameters
    ----------
    leaves : sequence of Leaf
        All of the file's.
    column_orders : sequence of str, or None
        FileMetaData.column_orders: which member of the union each is. None where there are none.

    Returns
    -------
    list of Order
        That of min_value and max_value, and of the bounds of column indexes. `NO_ORDER` where these mean nothing: of
        all leaves where the file has no orders, or not as many as leaves; of one whose order this version does not
        know, or that the type cannot have; and of an INT96 column unless it is in its timestamps' order.
    """
    if column_orders is None or len(column_orders) != len(leaves):
        return [NO_ORDER] * len(leaves)
    return [_declared(leaf, name) for leaf, name in zip(leaves, column_orders, strict=True)]


@lru_cache(maxsize=1024)
def _declared(leaf: Leaf, name: str | None) -> Order:
    column_order, kind = _DECLARED.get(name or "", ("", None))
    if not column_order:
        return NO_ORDER
    order = order_of(leaf, column_order)
    return order if kind in (None, order.kind) else NO_ORDER


def deprecated_order(leaf: Leaf, order: Order, created_by: str | None) -> Order:
    """Give the order of the deprecated min and max, whatever the file declares: the one of the type, if it is signed.

    Parameters
    ----------
    leaf, order, created_by
        As of `known`.

    Returns
    -------
    Order
        `NO_ORDER` where they mean nothing. So that the bounds of a column have one order in all row groups, that is
        also so where IEEE 754's total order is declared: nobody who knows it writes only the deprecated ones.
    """
    found = order_of(leaf)
    is_sound = found.kind in _COMPARED_AS_SIGNED and DEPRECATED_MIN_MAX not in distrusted(created_by, leaf)
    return found if is_sound and not order.total else NO_ORDER


def known(statistics: Any, num_values: int, leaf: Leaf, order: Order, created_by: str | None) -> Known:
    """Take from Statistics what is certain.

    Parameters
    ----------
    statistics : Record or None
        Those of a column chunk, or of a page (parquet.thrift, Statistics).
    num_values : int
        Values of the chunk or page, nulls among them.
    leaf : Leaf
        The column.
    order : Order
        Its order, out of `declared_orders`.
    created_by : str or None
        What the footer says of the writer.

    Returns
    -------
    Known
        Without what is not there, what is damaged, and what the writer is known to get wrong. The deprecated bounds
        stand in for the others where these are not there, or mean nothing since their order is not declared.
    """
    if statistics is None:
        return Known()
    wrong = distrusted(created_by, leaf)
    low, high, trusted = statistics.min_value, statistics.max_value, MIN_MAX not in wrong
    if order.kind == "none" or (low is None and high is None):
        order = deprecated_order(leaf, order, created_by)
        low, high, trusted = statistics.min, statistics.max, order.kind != "none"
    low, high = _bounds(low, high, order) if trusted else (None, None)
    null_count = None if NULL_COUNT in wrong else _count(statistics.null_count, num_values)
    nan_count = _count(statistics.nan_count, num_values) if may_have_nans(leaf) else None
    return Known(low, high, null_count, nan_count, order)


def may_have_nans(leaf: Leaf) -> bool:
    """Whether values of a column may be NaN. How many are, is a number that needs no order."""
    return order_of(leaf).is_float


def _count(number: int | None, most: int) -> int | None:
    return number if number is not None and 0 <= number <= most else None


def _bounds(low: bytes | None, high: bytes | None, order: Order) -> tuple[bytes | None, bytes | None]:
    """Check bounds; two that contradict each other, and under the order of floats a NaN, are as good as none."""
    low, high = _sound(low, order), _sound(high, order)
    if order.is_float and not order.total:
        if (low is not None and is_nan(low)) or (high is not None and is_nan(high)):
            return None, None
        low, high = _with_both_zeros(low, high)
    if low is not None and high is not None and order.key(low) > order.key(high):
        return None, None
    return low, high


def _sound(bound: bytes | None, order: Order) -> bytes | None:
    return None if bound is None or (order.width and len(bound) != order.width) else bytes(bound)


def is_nan(value: bytes) -> bool:
    """Tell whether a PLAIN float of 2, 4 or 8 bytes is a NaN."""
    exponent, fraction = {2: (5, 10), 4: (8, 23), 8: (11, 52)}[len(value)]
    bits = int.from_bytes(value, "little") & (1 << exponent + fraction) - 1
    return bits > ((1 << exponent) - 1) << fraction


def _with_both_zeros(low: bytes | None, high: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Make a bound of zero stand for both zeros: the order of the type does not tell which of them it is."""
    if low is not None and not any(low):
        low = low[:-1] + b"\x80"
    if high is not None and not any(high[:-1]) and high[-1] == 0x80:
        high = bytes(len(high))
    return low, high
