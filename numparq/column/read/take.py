"""Take values out of decoded arrays, by ranges or by indices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.scratch import allocate
from numparq.kernels.kernel_groups import selection_kernels
from numparq.kernels.tables import SLACK


class ValueSelection(Protocol):
    """Values to take from decoded arrays."""

    @property
    def count(self) -> int:
        """Number of values."""

    def take_items(self, source: np.ndarray, item: int, out: np.ndarray, position: int) -> None:
        """Copy items of `item` bytes of `source` to `out`, from byte `position` on; both uint8."""

    def count_bytes(self, offsets: np.ndarray) -> int:
        """Count the bytes of strings."""

    def take_strings(self, piece: BinaryArray, offsets: np.ndarray, out: np.ndarray) -> None:
        """Copy strings, without their validity, to `out`; their offsets go to `offsets`, one more than there are."""


@dataclass(frozen=True)
class ValueRanges:
    """Runs of values.

    Parameters
    ----------
    spans : int64 array, (runs, 2)
        First value, and number, of each run; C-contiguous.
    """

    spans: np.ndarray

    @classmethod
    def from_ranges(cls, ranges: np.ndarray) -> ValueRanges:
        """Return the values of ranges: int64 (ranges, 2), ends exclusive."""
        spans = np.empty(ranges.shape, np.int64)
        spans[:, 0] = ranges[:, 0]
        np.subtract(ranges[:, 1], ranges[:, 0], out=spans[:, 1])
        return cls(spans)

    @cached_property
    def count(self) -> int:
        """Number of values."""
        return int(self.spans[:, 1].sum())

    def take_items(self, source: np.ndarray, item: int, out: np.ndarray, position: int) -> None:
        """As of `ValueSelection`."""
        selection_kernels.take_fixed_ranges(source, item, self.spans.reshape(-1), len(self.spans), out, position)

    def count_bytes(self, offsets: np.ndarray) -> int:
        """As of `ValueSelection`."""
        return selection_kernels.count_bytes_of_ranges(offsets, self.spans.reshape(-1), len(self.spans))

    def take_strings(self, piece: BinaryArray, offsets: np.ndarray, out: np.ndarray) -> None:
        """As of `ValueSelection`."""
        flat = self.spans.reshape(-1)
        selection_kernels.take_binary_ranges(piece.offsets, piece.data, flat, len(self.spans), offsets, out)


@dataclass(frozen=True)
class ValueIndices:
    """Values one by one: faster than runs if these are short.

    Parameters
    ----------
    indices : int32 array
        Positions of the values; of strings, a negative one stands for an empty string.
    """

    indices: np.ndarray

    @classmethod
    def from_mask(cls, mask: np.ndarray) -> ValueIndices:
        """Return the values of a mask: uint8, 1 for a value to take, else 0."""
        indices = np.empty(len(mask) + 1, np.int32)
        return cls(indices[: selection_kernels.mask_to_indices(mask, len(mask), indices)])

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.indices)

    def take_items(self, source: np.ndarray, item: int, out: np.ndarray, position: int) -> None:
        """As of `ValueSelection`."""
        selection_kernels.take_fixed_indices(source, item, self.indices, len(self.indices), out, position)

    def count_bytes(self, offsets: np.ndarray) -> int:
        """As of `ValueSelection`."""
        return selection_kernels.count_bytes_of_indices(offsets, self.indices, len(self.indices))

    def take_strings(self, piece: BinaryArray, offsets: np.ndarray, out: np.ndarray) -> None:
        """As of `ValueSelection`."""
        selection_kernels.take_binary_indices(piece.offsets, piece.data, self.indices, len(self.indices), offsets, out)


def take_array(items: np.ndarray, selection: ValueSelection) -> np.ndarray:
    """Take items of an array of any dtype, in memory of their own."""
    count = selection.count
    if items.dtype == object:  # the values of a leaf that is always null
        return items[:count].copy()
    item = items.dtype.itemsize
    out = allocate(count * item + SLACK)
    selection.take_items(np.ascontiguousarray(items).view(np.uint8), item, out, 0)
    return out[: count * item].view(items.dtype)


def take_binary(piece: BinaryArray, selection: ValueSelection) -> BinaryArray:
    """Take strings, in memory of their own."""
    offsets = allocate(selection.count + 1, "i8")
    data = allocate(selection.count_bytes(piece.offsets) + SLACK)
    selection.take_strings(piece, offsets, data)
    return BinaryArray(offsets, data, None if piece.validity is None else take_array(piece.validity, selection))


def take_prefixed(data: np.ndarray, starts: np.ndarray, selection: ValueIndices) -> BinaryArray:
    """Take strings out of PLAIN pages, whose lengths lie before their starts."""
    starts = take_array(starts, selection)
    offsets = allocate(len(starts) + 1, "i8")
    out = allocate(selection_kernels.measure_prefixed_strings(data, starts, len(starts), offsets) + SLACK)
    selection_kernels.copy_prefixed_strings(data, starts, len(starts), offsets, out)
    return BinaryArray(offsets, out)


def dictionary_decode(piece: DictionaryArray) -> BinaryArray:
    """Return the strings of codes, in memory of their own."""
    strings = take_binary(BinaryArray(piece.dictionary.offsets, piece.dictionary.data), ValueIndices(piece.codes))
    nulls = piece.codes < 0
    return BinaryArray(strings.offsets, strings.data, (~nulls).view(np.uint8) if nulls.any() else None)
