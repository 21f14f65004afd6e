"""Matcher of fixed-width sort keys: one range, a few, a table, a hash set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numparq.expr.key_ranges import KeyRanges
from numparq.kernels import predicate_kernels

from .vectors import ColumnVector, RowMask

_FEW = 4
_TABLE_SPAN = 1 << 18  # a table of this size stays in the CPU cache
_SLOTS_A_KEY = 4
_KEYS_A_RANGE = 4


class IntMatcher:
    """Matcher of sort keys of `bits` bits (at most 64) in ascending int ranges, taken modulo that width.

    With `fold`, values are float bits, which are folded to keys.
    """

    __slots__ = ("_arguments", "_name")

    def __init__(self, ranges: KeyRanges, bits: int, fold: bool = False) -> None:
        if len(ranges) == 1:
            low, high = ranges[0]
            first, span = low & (1 << bits) - 1, high - low - 1
            self._name, arguments = "match_range", (first - (first >> 63 << 64), span - (span >> 63 << 64))
        else:
            self._name, arguments = _choose_kernel(*_around(ranges, bits), bits)
        mask = -1 if bits == 64 else (1 << bits) - 1
        self._arguments = ((1 << bits - 1) - 1 if fold else 0, mask, *arguments)

    def match(self, column: ColumnVector, mask: RowMask) -> None:
        """Combine into the mask which values of a column, of at most 8 bytes each, are in the ranges."""
        values, runs = column.values, column.runs
        item = values.itemsize if column.stored is None else column.stored.itemsize
        if runs is None:
            if item < 4:
                values, item = values.view(f"=i{item}").astype(np.int32), 4
            elif not values.flags.c_contiguous:
                values = np.ascontiguousarray(values)
            values, runs = values.view(np.uint8), np.array([0, len(mask.out)])
        run = getattr(predicate_kernels, self._name)
        run(values, runs, len(runs) // 2, item, *self._arguments, *mask.kernel_arguments)


def _signed(number: int) -> int:
    """Return the int64 with the bits of a uint64."""
    return number - (1 << 64) if number >> 63 else number


def _around(ranges: KeyRanges, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ranges as first keys and spans, modulo ``2**bits``.

    A last range that ends where the first begins, modulo that, is merged with it.
    """
    size = 1 << bits
    firsts = [low % size for low, _ in ranges]
    spans = [high - low - 1 for low, high in ranges]
    if len(ranges) > 1 and ranges[-1][1] - ranges[0][0] == size:  # the last range continues in the first, modulo `size`
        spans[-1] += spans.pop(0) + 1
        del firsts[0]
    return np.array(firsts, np.uint64), np.array(spans, np.uint64)


def _choose_kernel(firsts: np.ndarray, spans: np.ndarray, bits: int) -> tuple[str, tuple[Any, ...]]:
    """Choose the kernel for the ranges, and build its arguments."""
    if not len(firsts):
        return "match_table", (0, 0, np.zeros(1, np.uint8))
    if len(firsts) == 1:
        return "match_range", (_signed(int(firsts[0])), _signed(int(spans[0])))
    if len(firsts) <= _FEW:
        ranges = np.empty((_FEW, 2), np.uint64)
        ranges[:, 0], ranges[:, 1] = firsts[-1], spans[-1]
        ranges[: len(firsts), 0], ranges[: len(firsts), 1] = firsts, spans
        return "match_four_ranges", (ranges.reshape(-1),)
    return _many((firsts - firsts[0]) & np.uint64((1 << bits) - 1), spans, int(firsts[0]), bits)


def _many(firsts: np.ndarray, spans: np.ndarray, base: int, bits: int) -> tuple[str, tuple[Any, ...]]:
    """Choose table, hash set or binary search for many ranges, whose keys count from `base`, the first key."""
    most = int(firsts[-1]) + int(spans[-1])
    if most < _TABLE_SPAN:
        return "match_table", (_signed(base), most, _table(firsts.astype(np.int64), spans.astype(np.int64), most))
    if spans.max() < _KEYS_A_RANGE:
        return "match_keys", _hashed((_single(firsts, spans) + np.uint64(base)) & np.uint64((1 << bits) - 1))
    steps = (len(firsts) - 1).bit_length()
    more = (0, (1 << steps) - len(firsts))
    return "match_ranges", (_signed(base), np.pad(firsts, more, "edge"), np.pad(spans, more, "edge"), steps)


def _table(firsts: np.ndarray, spans: np.ndarray, most: int) -> np.ndarray:
    """Return for each key from the first to the last whether it is in a range."""
    changes = np.zeros(most + 2, np.int8)
    changes[firsts] = 1
    changes[firsts + spans + 1] -= 1
    return np.cumsum(changes, dtype=np.int8).view(np.uint8)


def _single(firsts: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Return all keys of short ranges."""
    return np.concatenate([firsts[spans >= offset] + offset for offset in np.arange(_KEYS_A_RANGE, dtype=np.uint64)])


def _hashed(keys: np.ndarray) -> tuple[Any, ...]:
    bits = math.ceil(math.log2(_SLOTS_A_KEY * len(keys)))
    table = np.full(1 << bits, keys[0], np.uint64)
    predicate_kernels.fill_key_table(keys, len(keys), table, 64 - bits)
    return table, 64 - bits, _signed(int(keys[0]))
