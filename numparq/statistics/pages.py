"""The bounds of the values of each page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..kernels import statistics_kernels
from .order import Order

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_COMPARISONS = {("bytes", True): 0, ("bytes", False): 0, ("decimal", True): 1, ("decimal", False): 2}
_EMPTY4, _EMPTY8 = np.empty(0, np.int32), np.empty(0, np.int64)


@dataclass(slots=True)
class PageBounds:
    """The smallest and the largest value of each page of a column chunk.

    Parameters
    ----------
    order : Order
        How they compare.
    num_values : list of int
        Values of each page, without nulls.
    min_values, max_values : list of bytes or None
        PLAIN, without a length in front, and whole; None where a page has no bound: no values, no order, or only NaNs
        under the order of the type.
    nan_counts : list of int, or None
        Of float types: how many of the values are NaN.
    """

    order: Order
    num_values: list[int]
    min_values: list[bytes | None]
    max_values: list[bytes | None]
    nan_counts: list[int] | None = None


class _Keying(NamedTuple):
    """How values become keys, as in `kernels.bounds`."""

    fold: int = 0
    flip: int = 0
    lowest: int = _LEAST
    highest: int = _MOST


_KEYINGS = {
    ("boolean", 1): _Keying(),
    ("signed", 4): _Keying(),
    ("signed", 8): _Keying(),
    ("unsigned", 4): _Keying(flip=-(1 << 31)),
    ("unsigned", 8): _Keying(flip=-(1 << 63)),
    ("float", 2): _Keying((1 << 15) - 1, 0, -0x7C01, 0x7C00),
    ("float", 4): _Keying((1 << 31) - 1, 0, -0x7F800001, 0x7F800000),
    ("float", 8): _Keying((1 << 63) - 1, 0, -0x7FF0000000000001, 0x7FF0000000000000),
}


def page_bounds(
    order: Order,
    values: np.ndarray,
    bounds: np.ndarray,
    *,
    starts: np.ndarray | None = None,
    ends: np.ndarray | None = None,
    codes: np.ndarray | None = None,
) -> PageBounds:
    """Find the smallest and the largest value of each page of a column chunk.

    Parameters
    ----------
    order : Order
        How they compare.
    values : np.ndarray
        Without nulls, as in `LeafValues`; with `codes`, a dictionary.
    bounds : int64, (num_pages + 1,)
        Page p has the values (or codes) ``bounds[p]`` to ``bounds[p + 1]``.
    starts, ends : int64, optional
        Of BYTE_ARRAY: where each value lies.
    codes : int32, optional
        The dictionary entry of each value.

    Returns
    -------
    PageBounds
    """
    places = bounds.tolist()
    num_values = [stop - start for start, stop in pairwise(places)]
    if order.kind in ("none", "int96"):  # none are written of INT96
        nothing: list[bytes | None] = [None] * len(num_values)
        return PageBounds(order, num_values, nothing, list(nothing))
    if order.kind in ("bytes", "decimal"):
        return _binary(order, values, bounds, num_values, starts, ends, codes)
    return _numbers(order, values, bounds, num_values, codes)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(
    order: Order, values: np.ndarray, bounds: np.ndarray, num_values: list[int], codes: np.ndarray | None
) -> PageBounds:
    keying = _KEYINGS[order.kind, order.width]
    found = _keys(order, keying, values, bounds, codes)
    nan_counts = [nans for _, _, nans in found]
    if order.nan_free and any(nan_counts):
        return PageBounds(order, num_values, [None] * len(num_values), [None] * len(num_values), nan_counts)
    if order.total and any(count == nans > 0 for count, nans in zip(num_values, nan_counts, strict=True)):
        whole = _keys(order, keying._replace(lowest=_LEAST, highest=_MOST), values, bounds, codes)
        found = [
            every if count == page[2] else page for count, page, every in zip(num_values, found, whole, strict=True)
        ]
    elif order.is_float and not order.total:
        # A bound of zero stands for both zeros: their keys are -1 and 0.
        found = [(low or -1, 0 if high == -1 else high, nans) for low, high, nans in found]
    pages = PageBounds(order, num_values, [], [], nan_counts if order.is_float else None)
    for count, (low, high, nans) in zip(num_values, found, strict=True):
        pages.min_values.append(None if nans == count else _plain(order, keying, low))
        pages.max_values.append(None if nans == count else _plain(order, keying, high))
    return pages


def _keys(
    order: Order, keying: _Keying, values: np.ndarray, bounds: np.ndarray, codes: np.ndarray | None
) -> list[tuple[int, int, int]]:
    """Find the smallest key, the largest key and the number of NaNs of each page."""
    num_pages = len(bounds) - 1
    found = np.empty(3 * num_pages, np.int64)
    numbers = _integers(order, values)
    if codes is not None:
        keys = numbers.astype(np.int64)
        keys = keys ^ ((keys >> 63) & keying.fold) ^ keying.flip
        statistics_kernels.bounds_coded(codes, keys, bounds, num_pages, keying.lowest, keying.highest, found)
    elif numbers.itemsize == 8:
        statistics_kernels.bounds8(numbers, bounds, num_pages, *keying, found)
    else:
        statistics_kernels.bounds4(numbers, bounds, num_pages, *keying, found)
    items = found.tolist()
    return list(zip(items[::3], items[1::3], items[2::3], strict=True))


def _integers(order: Order, values: np.ndarray) -> np.ndarray:
    """See values as signed integers of 4 or 8 bytes; narrower ones are made wider."""
    if order.width in (4, 8):
        return values.view(f"i{order.width}")
    return values.view(np.int16 if order.width == 2 else np.uint8).astype(np.int32)


def _plain(order: Order, keying: _Keying, key: int) -> bytes:
    """Give the value that has a key: what makes keys also undoes it."""
    return (key ^ ((key >> 63) & keying.fold) ^ keying.flip).to_bytes(order.width, "little", signed=True)


# --- bytes ------------------------------------------------------------------------------------------------------------


def _binary(
    order: Order,
    values: np.ndarray,
    bounds: np.ndarray,
    num_values: list[int],
    starts: np.ndarray | None,
    ends: np.ndarray | None,
    codes: np.ndarray | None,
) -> PageBounds:
    starts, ends, width = (_EMPTY8 if starts is None else starts), (_EMPTY8 if ends is None else ends), order.width
    entries = 0 if codes is None else len(values) // width if width else len(starts)
    found = np.empty((len(num_values), 2), np.int64)
    how = _COMPARISONS[order.kind, width > 0]
    stamps = np.zeros(entries, np.int32)
    places = (values, len(values), starts, ends, width)
    coded = (_EMPTY4 if codes is None else codes, stamps, entries)
    statistics_kernels.bounds_binary(*places, how, *coded, bounds, len(num_values), found.reshape(-1))

    def value(item: int) -> bytes | None:
        if item < 0:
            return None
        place = slice(item * width, (item + 1) * width) if width else slice(starts[item], ends[item])
        return values[place].tobytes()

    low, high = ([value(item) for item in items] for items in found.T.tolist())
    return PageBounds(order, num_values, low, high)
