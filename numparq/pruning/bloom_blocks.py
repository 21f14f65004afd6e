"""Single blocks of Bloom filters: found by hash, fetched together with the header of each filter (BloomFilter.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..bloom_filter import BLOCK_BYTES, MAX_BYTES, BloomFilter
from ..kernels import kernels
from ..kernels.tables import SLACK
from ..metadata.decode import new_stack
from ..metadata.layout import layout
from ..opened import OpenedFile
from .indexes import fetch

__all__ = ["FilterBlocks", "load_blocks"]

_HEADER_BYTES = 64  # read where the length of the filter, and so that of its header, is not known
_MOST_KEPT = 1 << 15  # blocks of a filter
_WHOLE_FROM = 4  # where every fourth block is asked for, all are read
_KEY = "Bloom filter"  # in `OpenedFile.indexes`, with the ordinals of row group and leaf
_HALF = np.uint64(32)


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
    """

    start: int
    num_blocks: int
    blocks: dict[int, np.ndarray] = field(default_factory=dict)

    def lies_as(self, other: FilterBlocks) -> bool:
        """Tell whether the bit sets lie in the same place."""
        return (self.start, self.num_blocks) == (other.start, other.num_blocks)

    def needed(self, hashes: np.ndarray) -> np.ndarray:
        """Give the blocks that some hashes (uint64) are looked up in; each once, growing."""
        return np.unique(self._block_of(hashes))

    def _block_of(self, hashes: np.ndarray) -> np.ndarray:
        return ((hashes >> _HALF) * np.uint64(self.num_blocks) >> _HALF).astype(np.int64)

    def missing(self, hashes: np.ndarray) -> list[int]:
        """Give the blocks that have to be read before hashes can be looked up; all of them where many do."""
        wanted = self.needed(hashes)
        if _WHOLE_FROM * len(wanted) >= self.num_blocks and self.num_blocks <= _MOST_KEPT:
            wanted = np.arange(self.num_blocks)
        return [block for block in wanted.tolist() if block not in self.blocks]

    def might_contain(self, hashes: np.ndarray) -> np.ndarray:
        """Say of hashes (uint64) whether they may have been inserted; their blocks have been read."""
        found = np.zeros(len(hashes), np.bool_)
        block_of = self._block_of(hashes)
        for block in np.unique(block_of).tolist():
            places = np.flatnonzero(block_of == block)
            found[places] = BloomFilter(self.blocks[block]).might_contain(hashes[places])
        return found


def load_blocks(
    file: OpenedFile, asked: Mapping[tuple[int, int], tuple[int, int, np.ndarray]]
) -> dict[tuple[int, int], FilterBlocks]:
    """Read what the hashes are looked up in.

    Parameters
    ----------
    file : OpenedFile
        The file; what is read is kept in ``file.indexes``.
    asked : mapping of (int, int) to (int, int, uint64 array)
        By the ordinals of row group and leaf: where the filter lies, its length or 0, and the hashes.

    Returns
    -------
    dict of (int, int) to FilterBlocks
        Without filters that are damaged, or of a kind that this version does not know.

    Notes
    -----
    One round trip, where the footer tells the lengths: they tell the size of the bit set, which is a multiple of 32,
    since headers have less than 32 bytes. A second one where a header says otherwise.
    """
    known = {chunk: file.indexes.get((_KEY, *chunk)) for chunk in asked}
    guesses = {chunk: _guess(*asked[chunk][:2]) for chunk in asked if (_KEY, *chunk) not in file.indexes}
    _read_headers(file, asked, guesses, known)
    wrong = {chunk: None for chunk, guess in guesses.items() if guess is not None and known[chunk] is None}
    _read_headers(file, asked, wrong, known)
    _read_blocks(file, {chunk: found for chunk, found in known.items() if found is not None}, asked)
    for chunk, found in known.items():
        if found is not None and len(found.blocks) > _MOST_KEPT:
            found = FilterBlocks(found.start, found.num_blocks)
        file.indexes[_KEY, *chunk] = found
    return {chunk: found for chunk, found in known.items() if found is not None}


def _guess(start: int, length: int) -> FilterBlocks | None:
    """Tell from the length of a filter where its bit set begins; None without it."""
    num_bytes = (length - 1) // BLOCK_BYTES * BLOCK_BYTES
    if num_bytes <= 0 or num_bytes > MAX_BYTES:
        return None
    return FilterBlocks(start + length - num_bytes, num_bytes // BLOCK_BYTES)


def _read_headers(
    file: OpenedFile,
    asked: Mapping[tuple[int, int], tuple[int, int, np.ndarray]],
    guesses: Mapping[tuple[int, int], FilterBlocks | None],
    known: dict[tuple[int, int], FilterBlocks | None],
) -> None:
    """Read headers, and along with each the blocks that are asked for if it is what its length suggests."""
    places: list[tuple[int, int]] = []
    todo: list[tuple[tuple[int, int], list[int]]] = []
    for chunk, guess in guesses.items():
        start, _, hashes = asked[chunk]
        size = _HEADER_BYTES if guess is None else guess.start - start
        places.append((start, min(size, file.footer_start - start)))
        blocks = [] if guess is None else guess.missing(hashes)
        places += [(guess.start + BLOCK_BYTES * block, BLOCK_BYTES) for block in blocks if guess is not None]
        todo.append((chunk, blocks))
    pieces = iter(fetch(file, np.array(places, np.int64)) if places else [])
    for chunk, blocks in todo:
        found = _header(next(pieces), asked[chunk][0], file.footer_start)
        read = {block: next(pieces)[:BLOCK_BYTES].copy() for block in blocks}
        guess = guesses[chunk]
        if found is not None and guess is not None and found.lies_as(guess):
            found.blocks.update(read)
        known[chunk] = found


def _header(piece: np.ndarray, start: int, limit: int) -> FilterBlocks | None:
    """Decode a header; None where it is damaged, or of a filter of another kind."""
    wanted = layout("BloomFilterHeader")
    words, stack = np.empty(wanted.words, np.int64), new_stack(wanted.words, wanted.words)
    end = kernels.read_thrift(piece, 0, len(piece) - SLACK, wanted.table, words, 0, stack)
    if end < 0:
        return None
    kinds = ("algorithm.BLOCK", "hash.XXHASH", "compression.UNCOMPRESSED")
    if any(int(words[wanted.slot(kind.split(".")[0])]) != wanted.bit(kind) for kind in kinds):
        return None
    size = int(words[wanted.slot("numBytes")])
    if not 0 < size <= MAX_BYTES or size % BLOCK_BYTES or size > limit - start - end:
        return None
    return FilterBlocks(start + end, size // BLOCK_BYTES)


def _read_blocks(
    file: OpenedFile,
    filters: Mapping[tuple[int, int], FilterBlocks],
    asked: Mapping[tuple[int, int], tuple[int, int, np.ndarray]],
) -> None:
    """Read the blocks that are missing."""
    todo = [(found, block) for chunk, found in filters.items() for block in found.missing(asked[chunk][2])]
    places = [(found.start + BLOCK_BYTES * block, BLOCK_BYTES) for found, block in todo]
    pieces = fetch(file, np.array(places, np.int64)) if places else []
    for (found, block), piece in zip(todo, pieces, strict=True):
        found.blocks[block] = piece[:BLOCK_BYTES].copy()
