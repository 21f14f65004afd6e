"""Sets of sort keys as sorted, half-open ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import total_ordering
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

_PREFIX_BYTES = 8
MIN_PREFIX, MAX_PREFIX = np.uint64(0), np.uint64(2**64 - 1)


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


class KeyRanges(Sequence[tuple[Any, Any]]):
    """Ascending ranges of sort keys, each from a first key to an exclusive end; those of numbers do not touch."""

    __slots__ = ()

    # --- sets --------------------------------------------------------------------------------------------------------

    def complement(self, low: Any, high: Any) -> KeyRanges:
        """Return the keys from `low` to `high` (exclusive) that are in no range; the ranges lie within."""
        edges = [low, *chain.from_iterable(self), high]
        return RangeTuple((start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop)

    def overlaps(self, low: Any, high: Any) -> bool:
        """Whether any key from `low` to `high` (exclusive) is in a range."""
        before = bisect_left(self, high, key=itemgetter(0))  # number of ranges that begin before `high`
        return before > 0 and low < self[before - 1][1]

    def covers(self, low: Any, high: Any) -> bool:
        """Whether all keys from `low` to `high` (exclusive) are in the ranges."""
        position = bisect_right(self, low, key=itemgetter(0)) - 1
        return position >= 0 and high <= self[position][1]

    # --- arrays ------------------------------------------------------------------------------------------------------

    def edges(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the last key of each range of numbers."""
        try:
            edges = np.array(self, dtype)
        except OverflowError:  # the last range ends behind the last key
            edges = np.array([*self[:-1], (self[-1][0], self[-1][1] - 1)], dtype)
            edges[:-1, 1] -= 1
        else:
            edges[:, 1] -= 1
        return edges[:, 0], edges[:, 1]

    def wrap(self, bits: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first keys of ranges of numbers modulo ``2**bits``, and the last keys less these (uint64).

        A last range that ends where the first begins, modulo that, is merged with it.
        """
        size = 1 << bits
        firsts = [low % size for low, _ in self]
        spans = [high - low - 1 for low, high in self]
        if len(self) > 1 and self[-1][1] - self[0][0] == size:
            spans[-1] += spans.pop(0) + 1
            del firsts[0]
        return np.array(firsts, np.uint64), np.array(spans, np.uint64)

    def single_keys(self) -> np.ndarray | None:
        """Return all keys of ranges of numbers; None unless arrays hold the ranges, and these hold few keys each."""
        return None

    def edge_prefixes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first eight bytes of the starts and of the ends of ranges of strings, ascending (uint64)."""
        starts = np.array([_prefix(low) for low, _ in self], np.uint64)
        return starts, np.array([MAX_PREFIX if high is TOP else _prefix(high) for _, high in self], np.uint64)


class RangeTuple(tuple[tuple[Any, Any], ...], KeyRanges):
    """Ranges of keys of any kind, disjoint and not touching, as a tuple."""

    __slots__ = ()


NO_KEYS = RangeTuple()


def _prefix(key: bytes) -> int:
    return int.from_bytes(key[:_PREFIX_BYTES].ljust(_PREFIX_BYTES, b"\0"), "big")


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
    return RangeTuple(merged)


def intersection(first: KeyRanges, second: KeyRanges) -> KeyRanges:
    """Return the keys that are in both sets."""
    ours, theirs = tuple(first), tuple(second)
    common = []
    a = b = 0
    while a < len(ours) and b < len(theirs):
        low, high = max(ours[a][0], theirs[b][0]), min(ours[a][1], theirs[b][1])
        if low < high:
            common.append((low, high))
        if ours[a][1] < theirs[b][1]:
            a += 1
        else:
            b += 1
    return RangeTuple(common)


def prefix_end(prefix: bytes) -> object:
    """Return the least bytes greater than all with this prefix; TOP if none are."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else TOP


def prefix_range(prefix: bytes) -> KeyRanges:
    """Return the range of all bytes with this prefix."""
    return RangeTuple(((prefix, prefix_end(prefix)),))
