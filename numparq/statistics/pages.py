"""The bounds of the values of each page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    num_values = np.diff(bounds).tolist()
    if order.kind == "none":
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
    if not order.is_float:
        low, high = _plain(order, keying, found[:, 0]), _plain(order, keying, found[:, 1])
        empty = [not count for count in num_values]
        return PageBounds(order, num_values, _without(low, empty), _without(high, empty))
    nan_counts = found[:, 2].tolist()
    empty = [nans == count for nans, count in zip(nan_counts, num_values, strict=True)]
    if order.total:
        if any(empty):
            whole = _keys(order, keying._replace(lowest=_LEAST, highest=_MOST), values, bounds, codes)
            found[empty] = whole[empty]
        empty = [not count for count in num_values]
    else:
        # A bound of zero stands for both zeros: their keys are -1 and 0.
        found[found[:, 0] == 0, 0] = -1
        found[found[:, 1] == -1, 1] = 0
    low, high = _plain(order, keying, found[:, 0]), _plain(order, keying, found[:, 1])
    return PageBounds(order, num_values, _without(low, empty), _without(high, empty), nan_counts)


def _keys(
    order: Order, keying: _Keying, values: np.ndarray, bounds: np.ndarray, codes: np.ndarray | None
) -> np.ndarray:
    """Find the smallest key, the largest key and the number of NaNs of each page."""
    num_pages = len(bounds) - 1
    found = np.empty((num_pages, 3), np.int64)
    if codes is not None:
        keys = _keyed(_integers(order, values).astype(np.int64), keying)
        statistics_kernels.bounds_coded(
            codes, keys, bounds, num_pages, keying.lowest, keying.highest, found.reshape(-1)
        )
        return found
    numbers = _integers(order, values)
    find = statistics_kernels.bounds8 if numbers.itemsize == 8 else statistics_kernels.bounds4
    find(numbers, bounds, num_pages, *keying, found.reshape(-1))
    return found


def _integers(order: Order, values: np.ndarray) -> np.ndarray:
    """See values as signed integers of 4 or 8 bytes; narrower ones are made wider."""
    if order.width in (4, 8):
        return values.view(f"i{order.width}")
    return values.view(np.int16 if order.width == 2 else np.uint8).astype(np.int32)


def _keyed(numbers: np.ndarray, keying: _Keying) -> np.ndarray:
    """Turn int64 values into keys, or keys into values: it is the same operation."""
    return numbers ^ ((numbers >> 63) & keying.fold) ^ keying.flip


def _plain(order: Order, keying: _Keying, keys: np.ndarray) -> list[bytes]:
    """Give values as bytes by their keys."""
    width = order.width
    data = _keyed(keys, keying).astype(f"<i{width}").tobytes()
    return [data[place : place + width] for place in range(0, len(data), width)]


def _without(values: list[bytes], empty: Sequence[bool]) -> list[bytes | None]:
    return [None if absent else value for value, absent in zip(values, empty, strict=True)]


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
