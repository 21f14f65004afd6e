"""Byte strings compared with others, many at once, without an object for each.

Strings are read eight bytes at a time, as big-endian numbers with zeros behind their end. Of two strings the numbers
decide where they differ; where all are equal, the shorter string is a beginning of the other, or the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_WORD = 8


class ByteStrings(NamedTuple):
    """Byte strings in one stretch of bytes.

    Attributes
    ----------
    data : uint8 array
        At least 8 bytes.
    starts, sizes : int64 arrays
        Where each begins, and its bytes.
    """

    data: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    @classmethod
    def between(cls, offsets: np.ndarray, data: np.ndarray) -> ByteStrings:
        """Make them of offsets, as Arrow has them: one more than there are strings."""
        offsets = offsets.astype(np.int64, copy=False)
        return cls(_roomy(data), offsets[:-1], np.diff(offsets))

    @classmethod
    def of_width(cls, data: np.ndarray, width: int) -> ByteStrings:
        """Make them of bytes that are cut into pieces of one size."""
        count = len(data) // width
        return cls(_roomy(data), np.arange(count, dtype=np.int64) * width, np.full(count, width, np.int64))

    @classmethod
    def of(cls, values: Sequence[bytes]) -> ByteStrings:
        """Make them of objects."""
        sizes = np.array([len(value) for value in values], np.int64)
        data = np.frombuffer(b"".join(values), np.uint8)
        return cls(_roomy(data), np.cumsum(sizes) - sizes, sizes)

    def words(self, rows: np.ndarray, position: int) -> np.ndarray:
        """Give the eight bytes from a position on of some strings, as big-endian numbers."""
        left = np.clip(self.sizes[rows] - position, 0, _WORD)
        wanted = self.starts[rows] + position
        loaded = np.clip(wanted, 0, len(self.data) - _WORD)  # earlier where the data ends too soon
        windows = np.ndarray((len(self.data) - _WORD + 1,), ">u8", self.data, strides=(1,))
        found = windows[loaded].astype(np.uint64)
        found = _shifted_left(found, np.minimum(wanted - loaded, _WORD))
        return found & ~_shifted_right(np.full(len(rows), -1, np.int64).view(np.uint64), left)


def _roomy(data: np.ndarray) -> np.ndarray:
    """Give bytes of which a word can be read."""
    data = np.ascontiguousarray(data).view(np.uint8)
    return data if len(data) >= _WORD else np.concatenate([data, np.zeros(_WORD - len(data), np.uint8)])


def _shifted_left(words: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Shift by bytes; by eight of them nothing is left."""
    return np.where(count >= _WORD, np.uint64(0), words << (np.minimum(count, _WORD - 1) * 8).astype(np.uint64))


def _shifted_right(words: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.where(count >= _WORD, np.uint64(0), words >> (np.minimum(count, _WORD - 1) * 8).astype(np.uint64))


def at_least(strings: ByteStrings, others: ByteStrings, chosen: np.ndarray) -> np.ndarray:
    """Say of each string whether it is not less than another one, bytes compared unsigned.

    Parameters
    ----------
    strings : ByteStrings
        The ones.
    others : ByteStrings
        The others.
    chosen : int64 array
        Which of the others each is compared with.

    Returns
    -------
    bool array
    """
    found = strings.sizes >= others.sizes[chosen]  # where all words are equal
    rows = np.arange(len(chosen))
    position = 0
    while len(rows):
        first, second = strings.words(rows, position), others.words(chosen[rows], position)
        differ = first != second
        found[rows[differ]] = first[differ] > second[differ]
        position += _WORD
        goes_on = ~differ & (np.minimum(strings.sizes[rows], others.sizes[chosen[rows]]) > position)
        # Where one has ended, zero bytes of the other may be all that follows in this word: the sizes tell.
        rows = rows[goes_on]
    return found


def count_at_most(strings: ByteStrings, edges: Sequence[bytes]) -> np.ndarray:
    """Count for each string how many of some edges are not above it.

    Parameters
    ----------
    strings : ByteStrings
        Any.
    edges : sequence of bytes
        Ascending.

    Returns
    -------
    int64 array
    """
    others = ByteStrings.of(edges)
    low = np.zeros(len(strings.sizes), np.int64)
    high = np.full(len(strings.sizes), len(edges), np.int64)
    for _ in range(len(edges).bit_length()):
        middle = (low + high) // 2
        going = low < high
        above = at_least(strings, others, np.minimum(middle, len(edges) - 1))
        low = np.where(going & above, middle + 1, low)
        high = np.where(going & ~above, middle, high)
    return low
