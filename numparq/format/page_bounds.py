"""Bounds of each page of a column chunk: computed, and truncated for statistics and the column index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from numparq.kernels.kernel_groups import statistics_kernels

from .column_order import ColumnOrder

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_COMPARISONS = {("bytes", True): 0, ("bytes", False): 0, ("decimal", True): 1, ("decimal", False): 2}
_EMPTY4, _EMPTY8 = np.empty(0, np.int32), np.empty(0, np.int64)


class _KeyTransform(NamedTuple):
    """Transform of values to int64 keys that compare signed: the arguments of the min/max kernels."""

    fold: int = 0
    flip: int = 0
    lowest: int = _LEAST
    highest: int = _MOST


_KEY_TRANSFORMS = {
    ("boolean", 1): _KeyTransform(),
    ("signed", 4): _KeyTransform(),
    ("signed", 8): _KeyTransform(),
    ("unsigned", 4): _KeyTransform(flip=-(1 << 31)),
    ("unsigned", 8): _KeyTransform(flip=-(1 << 63)),
    ("float", 2): _KeyTransform((1 << 15) - 1, 0, -0x7C01, 0x7C00),
    ("float", 4): _KeyTransform((1 << 31) - 1, 0, -0x7F800001, 0x7F800000),
    ("float", 8): _KeyTransform((1 << 63) - 1, 0, -0x7FF0000000000001, 0x7FF0000000000000),
}

DEFAULT_TRUNCATE_LENGTH = 64
MAX_WHOLE_LENGTH = 1024  # longer bounds that cannot be truncated are dropped
_SURROGATES, _AFTER_SURROGATES, _LAST_CODE_POINT = 0xD800, 0xE000, 0x10FFFF


@dataclass(slots=True)
class PageBounds:
    """Minimum and maximum of each page of a column chunk.

    Attributes
    ----------
    num_values : list of int
        Values of each page without nulls.
    min_values, max_values : list of bytes or None
        PLAIN without length prefix, not truncated. None for a page without values, without column order, or with only
        NaNs under the type's order.
    nan_counts : list of int, or None
        NaNs of each page, for float types.
    """

    order: ColumnOrder
    num_values: list[int]
    min_values: list[bytes | None]
    max_values: list[bytes | None]
    nan_counts: list[int] | None = None


def compute_page_bounds(
    order: ColumnOrder,
    values: np.ndarray,
    bounds: np.ndarray,
    *,
    starts: np.ndarray | None = None,
    ends: np.ndarray | None = None,
    codes: np.ndarray | None = None,
) -> PageBounds:
    """Return minimum and maximum of each page, given the column chunk's values (or codes) without nulls.

    Page p has the items bounds[p] to bounds[p + 1] (exclusive). With `codes` (int32), `values` is a dictionary.
    """
    places = bounds.tolist()
    num_values = [stop - start for start, stop in pairwise(places)]
    if order.kind in ("none", "int96"):  # INT96 bounds are never written
        nothing: list[bytes | None] = [None] * len(num_values)
        return PageBounds(order, num_values, nothing, list(nothing))
    if order.kind in ("bytes", "decimal"):
        return _binary(order, values, bounds, num_values, starts, ends, codes)
    return _numbers(order, values, bounds, num_values, codes)


def drop_bounds_of_nan_chunks(bounds: PageBounds, chunks: Sequence[int]) -> None:
    """Drop the bounds of column chunks with NaNs (`ColumnOrder.nan_free`); `chunks`: ends in pages, after 0."""
    for first, last in pairwise(chunks):
        if any((bounds.nan_counts or ())[first:last]):
            bounds.min_values[first:last] = bounds.max_values[first:last] = [None] * (last - first)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(
    order: ColumnOrder, values: np.ndarray, bounds: np.ndarray, num_values: list[int], codes: np.ndarray | None
) -> PageBounds:
    keying = _KEY_TRANSFORMS[order.kind, order.width]
    found = _keys(order, keying, values, bounds, codes)
    nan_counts = [nans for _, _, nans in found]
    if order.total and any(count == nans > 0 for count, nans in zip(num_values, nan_counts, strict=True)):
        whole = _keys(order, keying._replace(lowest=_LEAST, highest=_MOST), values, bounds, codes)
        found = [
            every if count == page[2] else page for count, page, every in zip(num_values, found, whole, strict=True)
        ]
    elif order.is_float and not order.total:
        # A zero bound must cover both zeros: the keys of -0.0 and 0.0 are -1 and 0.
        found = [(low or -1, 0 if high == -1 else high, nans) for low, high, nans in found]
    pages = PageBounds(order, num_values, [], [], nan_counts if order.is_float else None)
    for count, (low, high, nans) in zip(num_values, found, strict=True):
        pages.min_values.append(None if nans == count else _plain(order, keying, low))
        pages.max_values.append(None if nans == count else _plain(order, keying, high))
    return pages


def _keys(
    order: ColumnOrder, transform: _KeyTransform, values: np.ndarray, bounds: np.ndarray, codes: np.ndarray | None
) -> list[tuple[int, int, int]]:
    """Return smallest key, largest key and NaN count of each page."""
    num_pages = len(bounds) - 1
    found = np.empty(3 * num_pages, np.int64)
    numbers = _integers(order, values)
    if codes is not None:
        keys = numbers.astype(np.int64)
        keys = keys ^ ((keys >> 63) & transform.fold) ^ transform.flip
        statistics_kernels.min_max_codes(codes, keys, bounds, num_pages, transform.lowest, transform.highest, found)
    elif numbers.itemsize == 8:
        statistics_kernels.min_max8(numbers, bounds, num_pages, *transform, found)
    else:
        statistics_kernels.min_max4(numbers, bounds, num_pages, *transform, found)
    items = found.tolist()
    return list(zip(items[::3], items[1::3], items[2::3], strict=True))


def _integers(order: ColumnOrder, values: np.ndarray) -> np.ndarray:
    """View values as signed integers of 4 or 8 bytes; narrower ones are widened."""
    if order.width in (4, 8):
        return values.view(f"i{order.width}")
    return values.view(np.int16 if order.width == 2 else np.uint8).astype(np.int32)


def _plain(order: ColumnOrder, transform: _KeyTransform, key: int) -> bytes:
    """Return the PLAIN value of a key; the transform is its own inverse."""
    return (key ^ ((key >> 63) & transform.fold) ^ transform.flip).to_bytes(order.width, "little", signed=True)


# --- bytes ------------------------------------------------------------------------------------------------------------


def _binary(
    order: ColumnOrder,
    values: np.ndarray,
    bounds: np.ndarray,
    num_values: list[int],
    starts: np.ndarray | None,
    ends: np.ndarray | None,
    codes: np.ndarray | None,
) -> PageBounds:
    if starts is None and order.width == 0:  # FIXED_LEN_BYTE_ARRAY(0)
        empty = [b"" if count else None for count in num_values]
        return PageBounds(order, num_values, empty, empty)
    starts, ends, width = (_EMPTY8 if starts is None else starts), (_EMPTY8 if ends is None else ends), order.width
    entries = 0 if codes is None else len(values) // width if width else len(starts)
    found = np.empty((len(num_values), 2), np.int64)
    how = _COMPARISONS[order.kind, width > 0]
    stamps = np.zeros(entries, np.int32)
    places = (values, len(values), starts, ends, width)
    coded = (_EMPTY4 if codes is None else codes, stamps, entries)
    statistics_kernels.min_max_binary(*places, how, *coded, bounds, len(num_values), found.reshape(-1))

    def value(item: int) -> bytes | None:
        if item < 0:
            return None
        place = slice(item * width, (item + 1) * width) if width else slice(starts[item], ends[item])
        return values[place].tobytes()

    low, high = ([value(item) for item in items] for items in found.T.tolist())
    return PageBounds(order, num_values, low, high)


def truncate_min_value(value: bytes, length: int, order: ColumnOrder) -> tuple[bytes | None, bool]:
    """Truncate a minimum (PLAIN, no length prefix) to `length` bytes; return it and whether it is exact.

    Text is cut between code points. Values that must stay whole are dropped (None) above 1024 bytes or `length`.
    """
    return _truncated(value, length, order, {"bytes": _head, "text": _text_head})


def truncate_max_value(value: bytes, length: int, order: ColumnOrder) -> tuple[bytes | None, bool]:
    """Truncate a maximum as `truncate_min_value` does, and increment the rest; return it and whether it is exact.

    The bound is None if nothing of that length is larger; its last code point may take one byte more.
    """
    return _truncated(value, length, order, {"bytes": _after_bytes, "text": _after_text})


def _truncated(
    value: bytes, length: int, order: ColumnOrder, cuts: dict[str, Callable[[bytes, int], bytes | None]]
) -> tuple[bytes | None, bool]:
    if length < 1:
        raise ValueError(f"bounds need at least one byte, not {length}")
    if order.truncation == "whole":
        length = max(length, MAX_WHOLE_LENGTH)
    if len(value) <= length:
        return value, True
    return (cuts[order.truncation](value, length) if order.truncation in cuts else None), False


def _head(value: bytes, length: int) -> bytes:
    return value[:length]


def _text_head(value: bytes, length: int) -> bytes | None:
    """Return the whole code points among the first bytes; None if they are not UTF-8."""
    while length and value[length] & 0xC0 == 0x80:  # the next byte continues a code point
        length -= 1
    try:
        value[:length].decode()
    except UnicodeDecodeError:
        return None
    return value[:length]


def _after_bytes(value: bytes, length: int) -> bytes | None:
    head = value[:length].rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


def _after_text(value: bytes, length: int) -> bytes | None:
    head = (_text_head(value, length) or b"").decode().rstrip(chr(_LAST_CODE_POINT))
    if not head:
        return None
    following = ord(head[-1]) + 1
    if following == _SURROGATES:
        following = _AFTER_SURROGATES
    return (head[:-1] + chr(following)).encode()
