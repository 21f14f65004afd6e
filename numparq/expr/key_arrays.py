"""Key ranges of long literal lists, held as arrays: no Python object a literal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np

from numparq.kernels.kernel_groups import predicate_kernels

from .key_ranges import MAX_PREFIX, MIN_PREFIX, KeyRanges

_WORD = 8
_KEYS_A_RANGE = 4


class _KeyArrays(KeyRanges):
    """Key ranges that equal a tuple of the same ranges."""

    __slots__ = ()

    def _pair(self, position: int) -> tuple[Any, Any]:
        raise NotImplementedError

    @overload
    def __getitem__(self, at: int) -> tuple[Any, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[tuple[Any, Any], ...]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return tuple(self._pair(position) for position in range(*at.indices(len(self))))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self._pair(at % len(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, _KeyArrays)):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((len(self), *self[:1]))


class NumberRanges(_KeyArrays):
    """Disjoint ranges of numeric keys, no two of which touch.

    Attributes
    ----------
    firsts, lasts : numpy.ndarray
        int64, or uint64 for keys of unsigned columns: first and last key of each range, ascending.
    """

    __slots__ = ("firsts", "lasts")

    def __init__(self, firsts: np.ndarray, lasts: np.ndarray) -> None:
        self.firsts, self.lasts = firsts, lasts

    @classmethod
    def from_keys(cls, keys: np.ndarray) -> NumberRanges:
        """Build the ranges of unsorted keys (int64 or uint64), which are sorted in place."""
        keys.sort()
        unsigned = keys.view(np.uint64)
        edges = np.ones(len(keys) + 1, np.bool_)  # which keys begin a range, and end one if shifted
        np.greater(unsigned[1:] - unsigned[:-1], 1, out=edges[1:-1])
        return cls(keys[edges[:-1]], keys[edges[1:]])

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self.firsts)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self.firsts.tolist(), (last + 1 for last in self.lasts.tolist()), strict=True)

    def _pair(self, position: int) -> tuple[Any, Any]:
        return int(self.firsts[position]), int(self.lasts[position]) + 1

    def complement(self, low: int, high: int) -> KeyRanges:
        """Return the keys from `low` to `high` (exclusive) that are in no range; the ranges lie within."""
        limits, one = np.iinfo(self.firsts.dtype), self.firsts.dtype.type(1)
        if low < limits.min or high - 1 > limits.max:
            return KeyGaps(self, low, high)
        firsts, lasts = np.empty((2, len(self) + 1), self.firsts.dtype)
        firsts[0], lasts[-1] = low, high - 1
        firsts[1:], lasts[:-1] = self.lasts + one, self.firsts - one  # those at the limits wrap around, and are dropped
        keep = np.ones(len(firsts), np.bool_)
        if len(self):
            keep[0], keep[-1] = self.firsts[0] > low, self.lasts[-1] < high - 1
        return NumberRanges(firsts[keep], lasts[keep])

    def edges(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the last key of each range."""
        return self.firsts.astype(dtype, copy=False), self.lasts.astype(dtype, copy=False)

    def wrap(self, bits: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranges modulo ``2**bits``, as those in a tuple are."""
        firsts, spans = self.firsts.view(np.uint64), (self.lasts - self.firsts).view(np.uint64)
        if len(self) > 1 and int(self.lasts[-1]) + 1 - int(self.firsts[0]) == 1 << bits:
            spans[-1] += spans[0] + np.uint64(1)
            firsts, spans = firsts[1:], spans[1:]
        return firsts & np.uint64((1 << bits) - 1), spans

    def single_keys(self) -> np.ndarray | None:
        """Return all keys in the ranges; None if these are many more than ranges."""
        spans = (self.lasts - self.firsts).view(np.uint64)
        if not spans.any():
            return self.firsts
        if spans.sum(dtype=np.float64) > _KEYS_A_RANGE * len(self):
            return None
        sizes = spans.astype(np.int64) + 1
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        keys: np.ndarray = np.repeat(self.firsts, sizes) + within.astype(self.firsts.dtype)
        return keys


class StringPoints(_KeyArrays):
    """Single byte strings as key ranges, each up to the string with a zero byte appended; some may repeat.

    Attributes
    ----------
    data : numpy.ndarray
        uint8, the strings, in any order.
    offsets : numpy.ndarray
        int64, one more than strings: where each begins and ends in `data`.
    """

    def __init__(self, data: np.ndarray, offsets: np.ndarray) -> None:
        self.data, self.offsets = data, offsets

    @classmethod
    def from_strings(cls, values: Sequence[bytes]) -> StringPoints:
        """Build from byte strings."""
        return cls(np.frombuffer(b"".join(values), np.uint8), byte_offsets(values))

    def __len__(self) -> int:
        """Return the number of strings."""
        return len(self.offsets) - 1

    def _pair(self, position: int) -> tuple[Any, Any]:
        string = self._string(self._order[position])
        return string, string + b"\0"

    def _string(self, position: int) -> bytes:
        return self.data[self.offsets[position] : self.offsets[position + 1]].tobytes()

    def complement(self, low: bytes, high: object) -> KeyRanges:
        """Return the strings from `low` to `high` (exclusive) but these."""
        return KeyGaps(self, low, high)

    def covers(self, low: bytes, high: object) -> bool:
        """Whether all keys from `low` to `high` (exclusive) are in the ranges; strings are ordered only for one key."""
        return high == low + b"\0" and super().covers(low, high)

    def edge_prefixes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first eight bytes of the strings, ascending, each once, for the starts and for the ends."""
        return self.prefixes, self.prefixes

    def words(self, skipped: int = 0) -> np.ndarray:
        """Return the eight bytes of each string after `skipped` ones, zero-padded, as uint64 that order like them."""
        out = np.empty(len(self), np.uint64)
        predicate_kernels.string_words(self.data, len(self.data), self.offsets, skipped, len(self), out)
        return out

    @cached_property
    def prefixes(self) -> np.ndarray:
        """Distinct first eight bytes, zero-padded, ascending (uint64)."""
        return np.unique(self.words())

    @cached_property
    def _order(self) -> np.ndarray:
        """Positions of the strings, ascending."""
        words = self.words(self._shared_bytes())
        order = np.argsort(words)
        ties = np.flatnonzero(np.diff(words[order]) == 0)
        for group in np.split(ties, np.flatnonzero(np.diff(ties) > 1) + 1) if len(ties) else ():
            rows = slice(int(group[0]), int(group[-1]) + 2)
            order[rows] = sorted(order[rows].tolist(), key=self._string)
        return order

    def _shared_bytes(self) -> int:
        """Return a length up to which all strings are equal: that of their common prefix, if zeros do not hide it."""
        shared, shortest = 0, int(np.diff(self.offsets).min()) if len(self) else 0
        while shared + _WORD <= shortest:
            words = self.words(shared)
            different = int(words.min()) ^ int(words.max())
            if different:
                return shared + (64 - different.bit_length()) // 8
            shared += _WORD
        return shared


class KeyGaps(_KeyArrays):
    """The keys that arrays do not hold, out of more than these could hold: all strings, or integers beyond 64 bits.

    Attributes
    ----------
    excluded : NumberRanges or StringPoints
        The keys that are left out.
    low, high : object
        First and end (exclusive) of all keys.
    """

    def __init__(self, excluded: NumberRanges | StringPoints, low: Any, high: Any) -> None:
        self.excluded, self.low, self.high = excluded, low, high

    @cached_property
    def _ranges(self) -> KeyRanges:
        return KeyRanges.complement(self.excluded, self.low, self.high)

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self._ranges)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return iter(self._ranges)

    def _pair(self, position: int) -> tuple[Any, Any]:
        pair: tuple[Any, Any] = self._ranges[position]
        return pair

    def __eq__(self, other: object) -> bool:
        if other == ((self.low, self.high),):
            return not self.excluded
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash((KeyGaps, self.excluded))

    def complement(self, low: Any, high: Any) -> KeyRanges:
        """Return the keys from `low` to `high` (exclusive) that are in no range."""
        return self.excluded if (low, high) == (self.low, self.high) else super().complement(low, high)

    def overlaps(self, low: Any, high: Any) -> bool:
        """Whether any key from `low` to `high` (exclusive) is in a range; true for any two strings."""
        return not self.excluded.covers(low, high)

    def covers(self, low: Any, high: Any) -> bool:
        """Whether all keys from `low` to `high` (exclusive) are in the ranges."""
        return not self.excluded.overlaps(low, high)

    def edge_prefixes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first eight bytes of the starts and of the ends of ranges of strings, ascending (uint64)."""
        edges = np.concatenate([[MIN_PREFIX], self.excluded.edge_prefixes()[0], [MAX_PREFIX]])
        return edges[:-1], edges[1:]


def byte_offsets(values: Sequence[Any]) -> np.ndarray:
    """Return where each of some strings begins in their concatenation, and the end of the last one (int64)."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return offsets
