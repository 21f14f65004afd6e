"""Byte strings compared with others, many at once, without an object for each.

Strings are read eight bytes at a time, as big-endian numbers with zeros behind their end. Of two strings the numbers
decide where they differ; where all are equal, the shorter string is a beginning of the other, or the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_WORD = 8
# The first so many bytes of a word.
_HEADS = np.array([(1 << 64) - (1 << 8 * (_WORD - kept)) for kept in range(_WORD + 1)], np.uint64)


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
        last = len(self.data) - _WORD
        windows = np.ndarray((last + 1,), ">u8", self.data, strides=(1,))
        found = windows[np.clip(wanted, 0, last)].astype(np.uint64)
        late = np.flatnonzero(wanted > last)  # where the data ends too soon, what was read began earlier
        if len(late):
            found[late] = _shifted_left(found[late], np.minimum(wanted[late] - last, _WORD))
        return found & _HEADS[left]


def _roomy(data: np.ndarray) -> np.ndarray:
    """Give bytes of which a word can be read."""
    data = np.ascontiguousarray(data).view(np.uint8)
    return data if len(data) >= _WORD else np.concatenate([data, np.zeros(_WORD - len(data), np.uint8)])


def _shifted_left(words: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Shift by bytes; by eight of them nothing is left."""
    return np.where(count >= _WORD, np.uint64(0), words << (np.minimum(count, _WORD - 1) * 8).astype(np.uint64))


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


def equal_to(strings: ByteStrings, value: bytes) -> np.ndarray:
    """Say of strings whether they are a certain one; quicker than by `count_at_most`.

    Parameters
    ----------
    strings : ByteStrings
        Any.
    value : bytes
        The one.

    Returns
    -------
    bool array
    """
    found = strings.sizes == len(value)
    rows = np.flatnonzero(found)
    other = ByteStrings.of([value])
    for position in range(0, len(value), _WORD):
        same = strings.words(rows, position) == other.words(np.zeros(1, np.int64), position)
        rows = rows[same]
    found[:] = False
    found[rows] = True
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
