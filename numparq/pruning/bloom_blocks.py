"""Single blocks of Bloom filters: found by hash, fetched together with the header of each filter (BloomFilter.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
_HALF = np.uint64(32)
# From so many blocks on, all are read if a block asked for has no more than so many of them for itself: a read of a
# local file takes as long as one of 16 KiB more.
_MANY, _FOR_ITSELF = 16, (16 << 10) // BLOCK_BYTES
_FEW = 64  # requests that may be under way side by side
_MOST_KEPT = 4 << 20  # bytes of a filter that stay with the file
_KEY = "Bloom filter"  # in `OpenedFile.indexes`, with the ordinals of row group and leaf

_Chunk = tuple[int, int]  # ordinals of row group and leaf
_Asked = tuple[int, int, np.ndarray]  # where the filter lies, its length or 0, and the hashes to look up


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
        wanted = [block for block in np.unique(self._block_of(hashes)).tolist() if block not in self.blocks]
        if len(wanted) >= _MANY and len(wanted) * _FOR_ITSELF >= self.num_blocks:
            return [(0, self.num_blocks)]
        return [(block, 1) for block in wanted]

    def take(self, first: int, count: int, data: np.ndarray) -> None:
        """Be given what was missing."""
        data = data[: count * BLOCK_BYTES].copy()
        if count == self.num_blocks:
            self.whole = BloomFilter(data)
        else:
            self.blocks[first] = data

    def kept(self) -> FilterBlocks:
        """Give what of it is kept with the file."""
        size = (self.num_blocks if self.whole else len(self.blocks)) * BLOCK_BYTES
        return self if size <= _MOST_KEPT else FilterBlocks(self.start, self.num_blocks)

    def might_contain(self, hashes: np.ndarray) -> np.ndarray:
        """Say of hashes (uint64) whether they may have been inserted; their blocks have been read."""
        if self.whole is not None:
            return self.whole.might_contain(hashes)
        found = np.zeros(len(hashes), np.bool_)
        block_of = self._block_of(hashes)
        for block in np.unique(block_of).tolist():
            places = np.flatnonzero(block_of == block)
            found[places] = BloomFilter(self.blocks[block]).might_contain(hashes[places])
        return found

    def _block_of(self, hashes: np.ndarray) -> np.ndarray:
        return ((hashes >> _HALF) * np.uint64(self.num_blocks) >> _HALF).astype(np.int64)


def load_blocks(file: OpenedFile, asked: Mapping[_Chunk, _Asked]) -> dict[_Chunk, FilterBlocks]:
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
    known |= _read_headers(file, asked, guesses)
    wrong = {chunk: None for chunk, guess in guesses.items() if guess is not None and known[chunk] is None}
    known |= _read_headers(file, asked, wrong)
    good = {chunk: found for chunk, found in known.items() if found is not None}
    _read_blocks(file, good, asked)
    file.indexes.update({(_KEY, *chunk): None if found is None else found.kept() for chunk, found in known.items()})
    return good


def _guess(start: int, length: int) -> FilterBlocks | None:
    """Tell from the length of a filter where its bit set begins; None without it."""
    num_bytes = (length - 1) // BLOCK_BYTES * BLOCK_BYTES
    if num_bytes <= 0 or num_bytes > MAX_BYTES:
        return None
    return FilterBlocks(start + length - num_bytes, num_bytes // BLOCK_BYTES)


def _read_headers(
    file: OpenedFile, asked: Mapping[_Chunk, _Asked], guesses: Mapping[_Chunk, FilterBlocks | None]
) -> dict[_Chunk, FilterBlocks | None]:
    """Read headers, and along with each the blocks that are asked for if it is what its length suggests."""
    places: list[tuple[int, int]] = []
    missing: dict[_Chunk, list[tuple[int, int]]] = {}
    for chunk, guess in guesses.items():
        start, _, hashes = asked[chunk]
        size = _HEADER_BYTES if guess is None else guess.start - start
        places.append((start, min(size, file.footer_start - start)))
        missing[chunk] = [] if guess is None else guess.missing(hashes)
        places += [] if guess is None else _places(guess, missing[chunk])
    pieces = iter(_fetched(file, places))
    found: dict[_Chunk, FilterBlocks | None] = {}
    for chunk, guess in guesses.items():
        header = found[chunk] = _header(next(pieces), asked[chunk][0], file.footer_start)
        for part in missing[chunk]:
            piece = next(pieces)
            if header is not None and guess is not None and header.lies_as(guess):
                header.take(*part, piece)
    return found


def _fetched(file: OpenedFile, places: list[tuple[int, int]]) -> list[np.ndarray]:
    """Read byte ranges: a few side by side, without the bytes between them; many as the file has it."""
    how = replace(file.coalescing, gap=0) if len(places) <= _FEW else file.coalescing
    return fetch(file, np.array(places, np.int64), how) if places else []


def _places(blocks: FilterBlocks, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give positions in the file, and bytes, of some blocks."""
    return [(blocks.start + BLOCK_BYTES * first, BLOCK_BYTES * count) for first, count in parts]


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


def _read_blocks(file: OpenedFile, filters: Mapping[_Chunk, FilterBlocks], asked: Mapping[_Chunk, _Asked]) -> None:
    """Read the blocks that are missing."""
    todo = [(found, part) for chunk, found in filters.items() for part in found.missing(asked[chunk][2])]
    places = [place for found, part in todo for place in _places(found, [part])]
    pieces = _fetched(file, places)
    for (found, part), piece in zip(todo, pieces, strict=True):
        found.take(*part, piece)
