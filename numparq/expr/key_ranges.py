"""Sets of sort keys as sorted, half-open ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import total_ordering
from itertools import chain
from operator import itemgetter
from typing import Any

from .key_arrays import NumberRanges, StringPoints

KeyRanges = tuple[tuple[Any, Any], ...] | NumberRanges | StringPoints


@total_ordering
class _Top:
    """Greater than everything but itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Top)

    def __lt__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return hash(_Top)

    def __repr__(self) -> str:
        return "TOP"


TOP = _Top()


def union(*sets: Iterable[tuple[Any, Any]]) -> KeyRanges:
    """Return the union of key sets; each may be a list of ranges in any order."""
    merged: list[tuple[Any, Any]] = []
    for low, high in sorted(chain(*sets), key=itemgetter(0)):
        if not low < high:
            continue
        if merged and low <= merged[-1][1]:
            if merged[-1][1] < high:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: KeyRanges, low: Any, high: Any) -> KeyRanges:
    """Return the keys from `low` to `high` (exclusive) that are not in `ranges`, which lie within."""
    if isinstance(ranges, NumberRanges) and (rest := ranges.complement(low, high)) is not None:
        return rest
    edges = [low, *chain.from_iterable(ranges), high]
    return tuple((start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop)


def intersection(first: KeyRanges, second: KeyRanges) -> KeyRanges:
    """Return the keys that are in both sets."""
    first, second = tuple(first), tuple(second)
    common = []
    a = b = 0
    while a < len(first) and b < len(second):
        low, high = max(first[a][0], second[b][0]), min(first[a][1], second[b][1])
        if low < high:
            common.append((low, high))
        if first[a][1] < second[b][1]:
            a += 1
        else:
            b += 1
    return tuple(common)


def overlaps(ranges: KeyRanges, low: Any, high: Any) -> bool:
    """Whether any key from `low` to `high` (exclusive) is in the set."""
    before = bisect_left(ranges, high, key=itemgetter(0))  # number of ranges that begin before `high`
    return before > 0 and low < ranges[before - 1][1]


def covers(ranges: KeyRanges, low: Any, high: Any) -> bool:
    """Whether all keys from `low` to `high` (exclusive) are in the set."""
    if isinstance(ranges, StringPoints) and high != low + b"\0":
        return False  # no two strings, without ordering them
    position = bisect_right(ranges, low, key=itemgetter(0)) - 1
    return position >= 0 and high <= ranges[position][1]


def prefix_end(prefix: bytes) -> object:
    """Return the least bytes greater than all with this prefix; TOP if none are."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else TOP


def prefix_range(prefix: bytes) -> KeyRanges:
    """Return the range of all bytes with this prefix."""
    return ((prefix, prefix_end(prefix)),)
