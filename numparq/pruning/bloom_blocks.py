"""Single blocks of Bloom filters, found by hash (BloomFilter.md), and those of them that stay with a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from ..bloom_filter import BLOCK_BYTES, BloomFilter

__all__ = ["FilterBlocks", "FilterStore", "Place"]

Place = tuple[int, int]  # where a filter lies, and its length or 0

_HALF = np.uint64(32)
# From so many blocks on, all are read if a block asked for has no more than so many of them for itself: a read of a
# local file takes as long as one of 16 KiB more.
_MANY, _FOR_ITSELF = 16, (16 << 10) // BLOCK_BYTES
_AN_ARRAY = 128  # bytes of memory besides those of a block
_MOST_KEPT = 16 << 20  # bytes of all filters that stay with a file


@dataclass(slots=True)
class FilterBlocks:
    """What is known of the Bloom filter of a column chunk.

    Parameters
    ----------
    start : int
        Where in the file its bit set begins.
    num_blocks : int
        How many blocks it has.
    blocks : dict of int to uint8 array
        Those that have been read.
    whole : BloomFilter or None
        All of them, if they have been.
    """

    start: int
    num_blocks: int
    blocks: dict[int, np.ndarray] = field(default_factory=dict)
    whole: BloomFilter | None = None

    def lies_as(self, other: FilterBlocks) -> bool:
        """Tell whether the bit sets lie in the same place."""
        return (self.start, self.num_blocks) == (other.start, other.num_blocks)

    def missing(self, hashes: np.ndarray) -> list[tuple[int, int]]:
        """Give what has to be read before hashes (uint64) can be looked up: first block, and number of blocks."""
        if self.whole is not None:
            return []
        if len(hashes) == 1:
            block = self._block_of_one(hashes)
            return [] if block in self.blocks else [(block, 1)]
        wanted = [block for block in np.unique(self._block_of(hashes)).tolist() if block not in self.blocks]
        if len(wanted) >= _MANY and len(wanted) * _FOR_ITSELF >= self.num_blocks:
            return [(0, self.num_blocks)]
        return [(block, 1) for block in wanted]

    def take(self, first: int, count: int, data: np.ndarray) -> None:
        """Be given what was missing."""
        data = data[: count * BLOCK_BYTES].copy()
        if count == self.num_blocks:
            self.whole, self.blocks = BloomFilter(data), {}
        else:
            self.blocks[first] = data

    @property
    def num_bytes(self) -> int:
        """How many bytes of memory it takes, roughly."""
        return self.num_blocks * BLOCK_BYTES if self.whole else len(self.blocks) * (BLOCK_BYTES + _AN_ARRAY)

    def copy(self) -> FilterBlocks:
        """Give another one that may take more blocks."""
        return FilterBlocks(self.start, self.num_blocks, dict(self.blocks), self.whole)

    def empty(self) -> FilterBlocks:
        """Give where it lies, without its blocks."""
        return FilterBlocks(self.start, self.num_blocks)

    def might_contain(self, hashes: np.ndarray) -> np.ndarray:
        """Say of hashes (uint64) whether they may have been inserted; their blocks have been read."""
        if self.whole is not None:
            return self.whole.might_contain(hashes)
        if len(hashes) == 1:
            return BloomFilter(self.blocks[self._block_of_one(hashes)]).might_contain(hashes)
        found = np.zeros(len(hashes), np.bool_)
        block_of = self._block_of(hashes)
        for block in np.unique(block_of).tolist():
            places = np.flatnonzero(block_of == block)
            found[places] = BloomFilter(self.blocks[block]).might_contain(hashes[places])
        return found

    def _block_of_one(self, hashes: np.ndarray) -> int:
        """Do what `_block_of` does for the one hash of a look-up, of which there may be many filters to ask."""
        return (int(hashes[0]) >> 32) * self.num_blocks >> 32

    def _block_of(self, hashes: np.ndarray) -> np.ndarray:
        return ((hashes >> _HALF) * np.uint64(self.num_blocks) >> _HALF).astype(np.int64)


class FilterStore:
    """What has been read of the Bloom filters of a file, as far as that is little: of the largest only the headers."""

    def __init__(self) -> None:
        self._found: dict[Place, FilterBlocks | None] = {}
        self._sizes: dict[Place, int] = {}  # of those that have any blocks
        self._lock = Lock()

    @property
    def num_bytes(self) -> int:
        """How many bytes of memory all blocks take, roughly."""
        return sum(self._sizes.values())

    def known(self, places: Iterable[Place]) -> dict[Place, FilterBlocks | None]:
        """Give what is known of filters, those left out of which nothing is; None of one that cannot help."""
        with self._lock:
            there = {place: self._found[place] for place in places if place in self._found}
            return {place: None if found is None else found.copy() for place, found in there.items()}

    def keep(self, known: Mapping[Place, FilterBlocks | None]) -> None:
        """Be given what is known of some filters."""
        with self._lock:
            for place, found in known.items():
                self._found[place] = None if found is None else found.copy()
                self._sizes[place] = 0 if found is None else found.num_bytes
            total = self.num_bytes
            if total <= _MOST_KEPT:
                return
            for place in sorted(self._sizes, key=self._sizes.__getitem__, reverse=True):
                blocks = self._found[place]
                if total <= _MOST_KEPT or blocks is None:
                    return
                total -= self._sizes.pop(place)
                self._found[place] = blocks.empty()
