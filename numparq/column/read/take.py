"""Take values out of decoded arrays, by ranges or by indices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.scratch import allocate
from numparq.kernels import selection_kernels
from numparq.kernels.tables import SLACK

__all__ = ["ValueIndices", "ValueRanges", "ValueSelection", "dictionary_decode", "take_array", "take_binary"]


class ValueSelection(Protocol):
    """Which values are taken.

    Attributes
    ----------
    count : int
        How many.
    """

    @property
    def count(self) -> int:
        """How many values are taken."""

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
        """Make them of ranges: int64 of shape (n, 2), the first value of each and the one behind the last."""
        spans = np.empty(ranges.shape, np.int64)
        spans[:, 0] = ranges[:, 0]
        np.subtract(ranges[:, 1], ranges[:, 0], out=spans[:, 1])
        return cls(spans)

    @cached_property
    def count(self) -> int:
        """How many values are taken."""
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
    """Values one by one: quicker than runs where these are short.

    Parameters
    ----------
    indices : int32 array
        Which values; of strings, a negative one stands for an empty string.
    """

    indices: np.ndarray

    @classmethod
    def from_mask(cls, mask: np.ndarray) -> ValueIndices:
        """Make them of a mask: uint8, 1 where a value is taken and 0 elsewhere."""
        found = np.empty(len(mask) + 1, np.int32)
        return cls(found[: selection_kernels.mask_to_indices(mask, len(mask), found)])

    @property
    def count(self) -> int:
        """How many values are taken."""
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


def dictionary_decode(piece: DictionaryArray) -> BinaryArray:
    """Give the strings that codes stand for, in memory of their own."""
    found = take_binary(BinaryArray(piece.dictionary.offsets, piece.dictionary.data), ValueIndices(piece.codes))
    nulls = piece.codes < 0
    return BinaryArray(found.offsets, found.data, (~nulls).view(np.uint8) if nulls.any() else None)
