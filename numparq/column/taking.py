"""Values taken out of more, one behind the other, into memory of their own: by runs of them, or one by one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..kernels import selecting_kernels
from ..kernels.tables import SLACK
from .buffer import BinaryPiece, DictionaryPiece
from .scratch import allocate

__all__ = ["Places", "Runs", "Taking", "entries_of", "items_of", "strings_of"]


class Taking(Protocol):
    """Which values are taken.

    Attributes
    ----------
    count : int
        How many.
    """

    @property
    def count(self) -> int:
        """How many values are taken."""

    def one_by_one(self) -> np.ndarray:
        """Give the places of all values, int32."""

    def take_items(self, source: np.ndarray, item: int, out: np.ndarray, position: int) -> None:
        """Copy items of `item` bytes of `source` to `out`, from byte `position` on; both uint8."""

    def count_bytes(self, offsets: np.ndarray) -> int:
        """Count the bytes of strings."""

    def take_strings(self, piece: BinaryPiece, offsets: np.ndarray, out: np.ndarray) -> None:
        """Copy strings, without their validity, to `out`; their offsets go to `offsets`, one more than there are."""


@dataclass(frozen=True)
class Runs:
    """Runs of values.

    Parameters
    ----------
    spans : int64 array, (runs, 2)
        First value, and number, of each run; C-contiguous.
    """

    spans: np.ndarray

    @classmethod
    def between(cls, ranges: np.ndarray) -> Runs:
        """Make them of ranges: int64 of shape (n, 2), the first value of each and the one behind the last."""
        spans = np.empty(ranges.shape, np.int64)
        spans[:, 0] = ranges[:, 0]
        np.subtract(ranges[:, 1], ranges[:, 0], out=spans[:, 1])
        return cls(spans)

    @cached_property
    def count(self) -> int:
        """How many values are taken."""
        return int(self.spans[:, 1].sum())

    def one_by_one(self) -> np.ndarray:
        """As of `Taking`."""
        starts, lengths = self.spans[:, 0], self.spans[:, 1]
        ends = np.cumsum(lengths)
        return (np.arange(self.count) + np.repeat(starts - ends + lengths, lengths)).astype(np.int32)

    def take_items(self, source: np.ndarray, item: int, out: np.ndarray, position: int) -> None:
        """As of `Taking`."""
        selecting_kernels.take_items(source, item, self.spans.reshape(-1), len(self.spans), out, position)

    def count_bytes(self, offsets: np.ndarray) -> int:
        """As of `Taking`."""
        return selecting_kernels.count_string_bytes(offsets, self.spans.reshape(-1), len(self.spans))

    def take_strings(self, piece: BinaryPiece, offsets: np.ndarray, out: np.ndarray) -> None:
        """As of `Taking`."""
        flat = self.spans.reshape(-1)
        selecting_kernels.take_strings(piece.offsets, piece.data, flat, len(self.spans), offsets, out)


@dataclass(frozen=True)
class Places:
    """Values one by one: quicker than runs where these are short.

    Parameters
    ----------
    places : int32 array
        Which values; of strings, a negative one stands for an empty string.
    """

    places: np.ndarray

    @classmethod
    def where(cls, mask: np.ndarray) -> Places:
        """Make them of a mask: uint8, 1 where a value is taken and 0 elsewhere."""
        found = np.empty(len(mask) + 1, np.int32)
        return cls(found[: selecting_kernels.mask_to_places(mask, len(mask), found)])

    @property
    def count(self) -> int:
        """How many values are taken."""
        return len(self.places)

    def one_by_one(self) -> np.ndarray:
        """As of `Taking`."""
        return self.places

    def take_items(self, source: np.ndarray, item: int, out: np.ndarray, position: int) -> None:
        """As of `Taking`."""
        selecting_kernels.take_items_at(source, item, self.places, len(self.places), out, position)

    def count_bytes(self, offsets: np.ndarray) -> int:
        """As of `Taking`."""
        return selecting_kernels.count_string_bytes_at(offsets, self.places, len(self.places))

    def take_strings(self, piece: BinaryPiece, offsets: np.ndarray, out: np.ndarray) -> None:
        """As of `Taking`."""
        selecting_kernels.take_strings_at(piece.offsets, piece.data, self.places, len(self.places), offsets, out)


def items_of(items: np.ndarray, taking: Taking) -> np.ndarray:
    """Take items of an array of any dtype, in memory of their own."""
    count = taking.count
    if items.dtype == object:  # the values of a leaf that is always null
        return items[:count].copy()
    item = items.dtype.itemsize
    out = allocate(count * item + SLACK)
    taking.take_items(np.ascontiguousarray(items).view(np.uint8), item, out, 0)
    return out[: count * item].view(items.dtype)


def strings_of(piece: BinaryPiece, taking: Taking) -> BinaryPiece:
    """Take strings, in memory of their own."""
    offsets = allocate(taking.count + 1, "i8")
    data = allocate(taking.count_bytes(piece.offsets) + SLACK)
    taking.take_strings(piece, offsets, data)
    return BinaryPiece(offsets, data, None if piece.validity is None else items_of(piece.validity, taking))


def entries_of(piece: DictionaryPiece) -> BinaryPiece:
    """Give the strings that codes stand for, in memory of their own."""
    found = strings_of(BinaryPiece(piece.dictionary.offsets, piece.dictionary.data), Places(piece.codes))
    nulls = piece.codes < 0
    return BinaryPiece(found.offsets, found.data, (~nulls).view(np.uint8) if nulls.any() else None)
