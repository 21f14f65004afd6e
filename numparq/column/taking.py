"""Runs of values taken out of more, one behind the other, into memory of their own."""

from __future__ import annotations

import numpy as np

from ..kernels import selecting_kernels
from ..kernels.tables import SLACK
from .buffer import BinaryPiece, DictionaryPiece
from .scratch import allocate

__all__ = ["entries_of", "items_of", "spans_of", "strings_of", "take_items"]


def spans_of(ranges: np.ndarray) -> np.ndarray:
    """Give ranges (first, and the one behind the last) as runs (first, and number), int64 of shape (runs, 2)."""
    return np.stack([ranges[:, 0], ranges[:, 1] - ranges[:, 0]], axis=1)


def take_items(source: np.ndarray, item: int, spans: np.ndarray, out: np.ndarray, position: int) -> None:
    """Copy runs of items of `item` bytes to a place in memory that there is already.

    Parameters
    ----------
    source, out : uint8 array
        The items, and where they go, from byte `position` on.
    item : int
        Bytes of an item.
    spans : int64 array, (runs, 2)
        First item, and number, of each run.
    """
    selecting_kernels.take_items(source, item, spans.reshape(-1), len(spans), out, position)


def items_of(items: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Take runs of the items of an array of any dtype."""
    count = int(spans[:, 1].sum())
    if items.dtype == object:  # the values of a leaf that is always null
        return items[:count].copy()
    out = allocate(count * items.dtype.itemsize + SLACK)
    take_items(np.ascontiguousarray(items).view(np.uint8), items.dtype.itemsize, spans, out, 0)
    return out[: count * items.dtype.itemsize].view(items.dtype)


def strings_of(piece: BinaryPiece, spans: np.ndarray) -> BinaryPiece:
    """Take runs of strings.

    Parameters
    ----------
    piece : BinaryPiece
        The strings.
    spans : int64 array, (runs, 2)
        First string, and number, of each run.

    Returns
    -------
    BinaryPiece
        In memory of its own.
    """
    flat = spans.reshape(-1)
    offsets = allocate(int(spans[:, 1].sum()) + 1, "i8")
    data = allocate(selecting_kernels.count_string_bytes(piece.offsets, flat, len(spans)) + SLACK)
    selecting_kernels.take_strings(piece.offsets, piece.data, flat, len(spans), offsets, data)
    return BinaryPiece(offsets, data, None if piece.validity is None else items_of(piece.validity, spans))


def entries_of(piece: DictionaryPiece) -> BinaryPiece:
    """Give the strings that codes stand for, in memory of their own."""
    codes, entries = piece.codes, piece.dictionary
    if not len(entries):
        return BinaryPiece(
            np.zeros(len(codes) + 1, np.int64), np.zeros(SLACK, np.uint8), np.zeros(len(codes), np.uint8)
        )
    spans = np.ones((len(codes), 2), np.int64)
    spans[:, 0] = codes
    nulls = codes < 0
    if not nulls.any():
        return strings_of(entries, spans)
    spans[nulls] = 0
    found = strings_of(BinaryPiece(entries.offsets, entries.data), spans[~nulls])
    sizes = np.zeros(len(codes), np.int64)
    sizes[~nulls] = np.diff(found.offsets)
    return BinaryPiece(np.concatenate([[0], np.cumsum(sizes)]), found.data, (~nulls).view(np.uint8))
