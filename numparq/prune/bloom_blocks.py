"""Fetch headers and single blocks of Bloom filters; cache them with the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from numparq.format.bloom_filter import BLOCK_BYTES, MAX_BYTES, BloomFilter, decode_header
from numparq.format.open_file import OpenFile
from numparq.io.coalesce import fetch_ranges
from numparq.kernels.tables import SLACK

__all__ = ["BloomFilterBlocks", "BloomFilterCache", "FilterLocation", "fetch_blocks"]

FilterLocation = tuple[int, int]  # where a filter lies, and its length or 0

_HALF = np.uint64(32)
# From so many blocks on, all are read if a block asked for has no more than so many of them for itself: a read of a
# local file takes as long as one of 16 KiB more.
_MANY, _FOR_ITSELF = 16, (16 << 10) // BLOCK_BYTES
_AN_ARRAY = 128  # bytes of memory besides those of a block
_MOST_KEPT = 16 << 20  # bytes of all filters that stay with a file

_HEADER_BYTES = 64  # read where the length of the filter, and so that of its header, is not known
_FEW = 64  # requests that may be under way side by side
_AT_ONCE = 32 << 20  # bytes of filters that are fetched together, unless those of one row group are more
_UNTOLD = 1 << 20  # what a filter is taken to have where the footer does not tell: few writers make larger ones
_KEY = "Bloom filters"  # in `OpenedFile.indexes`

_Chunk = tuple[int, int]  # ordinals of row group and leaf
_Asked = tuple[int, int, np.ndarray]  # where the filter lies, its length or 0, and the hashes to look up


@dataclass(slots=True)
class BloomFilterBlocks:
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

    def same_location(self, other: BloomFilterBlocks) -> bool:
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

    def copy(self) -> BloomFilterBlocks:
        """Give another one that may take more blocks."""
        return BloomFilterBlocks(self.start, self.num_blocks, dict(self.blocks), self.whole)

    def empty(self) -> BloomFilterBlocks:
        """Give where it lies, without its blocks."""
        return BloomFilterBlocks(self.start, self.num_blocks)

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


class BloomFilterCache:
    """What has been read of the Bloom filters of a file, as far as that is little: of the largest only the headers."""

    def __init__(self) -> None:
        self._found: dict[FilterLocation, BloomFilterBlocks | None] = {}
        self._sizes: dict[FilterLocation, int] = {}  # of those that have any blocks
        self._lock = Lock()

    @property
    def num_bytes(self) -> int:
        """How many bytes of memory all blocks take, roughly."""
        return sum(self._sizes.values())

    def known(self, places: Iterable[FilterLocation]) -> dict[FilterLocation, BloomFilterBlocks | None]:
        """Give what is known of filters, those left out of which nothing is; None of one that cannot help."""
        with self._lock:
            there = {place: self._found[place] for place in places if place in self._found}
            return {place: None if found is None else found.copy() for place, found in there.items()}

    def keep(self, known: Mapping[FilterLocation, BloomFilterBlocks | None]) -> None:
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


def fetch_blocks(file: OpenFile, asked: Mapping[_Chunk, _Asked]) -> Iterator[dict[_Chunk, BloomFilterBlocks]]:
    """Read what the hashes are looked up in.

    Parameters
    ----------
    file : OpenFile
        The file; what is read is kept in ``file.indexes``, as far as that is little.
    asked : mapping of (int, int) to (int, int, uint64 array)
        By the ordinals of row group and leaf: where the filter lies, its length or 0, and the hashes.

    Yields
    ------
    dict of (int, int) to FilterBlocks
        Those of some row groups, all of each; without filters that are damaged, or of a kind that this version does
        not know. Nothing more once the filters, which do not lie over each other, claim more bytes than the file has.

    Notes
    -----
    One round trip for 32 MiB of filters, where the footer tells the lengths: they tell the size of the bit set, which
    is a multiple of 32, since headers have less than 32 bytes. A second one where a header says otherwise.
    """
    store: BloomFilterCache = file.indexes.setdefault(_KEY, BloomFilterCache())
    sizes: dict[FilterLocation, int] = {asked[chunk][:2]: asked[chunk][1] for chunk in asked}
    if sum(sizes.values()) > file.source.size:
        return
    claimed: dict[FilterLocation, int] = {}
    for batch in _batches(asked, {place: size or _UNTOLD for place, size in sizes.items()}):
        wanted = _hashes(asked, batch)
        known = _read_headers(file, store, wanted)
        claimed |= {place: found.num_blocks * BLOCK_BYTES for place, found in known.items() if found is not None}
        if sum(claimed.values()) > file.source.size:
            return
        for part in _batches(batch, claimed):  # the headers may tell of more than the footer did
            places = {asked[chunk][:2] for chunk in part}
            good = {place: found for place in places if (found := known[place]) is not None}
            _read_blocks(file, good, wanted)
            yield {chunk: good[asked[chunk][:2]] for chunk in part if asked[chunk][:2] in good}
            store.keep({place: known[place] for place in places})
            known |= {place: found.empty() for place, found in good.items()}  # let go of their blocks


def _batches(asked: Mapping[_Chunk, _Asked], sizes: Mapping[FilterLocation, int]) -> Iterator[dict[_Chunk, _Asked]]:
    """Divide chunks, by row groups, so that the filters of each part have no more bytes than may be held at once."""
    by_group: dict[int, dict[_Chunk, _Asked]] = {}
    for chunk, what in asked.items():
        by_group.setdefault(chunk[0], {})[chunk] = what
    batch: dict[_Chunk, _Asked] = {}
    held: set[FilterLocation] = set()
    size = 0
    for several in by_group.values():
        more = {what[:2] for what in several.values()} - held
        num_bytes = sum(sizes.get(place, 0) for place in more)
        if batch and size + num_bytes > _AT_ONCE:
            yield batch
            batch, held, size = {}, set(), 0
            more = {what[:2] for what in several.values()}
            num_bytes = sum(sizes.get(place, 0) for place in more)
        batch |= several
        held |= more
        size += num_bytes
    if batch:
        yield batch


def _hashes(asked: Mapping[_Chunk, _Asked], chunks: Iterable[_Chunk]) -> dict[FilterLocation, np.ndarray]:
    """Give for each filter what it is asked; chunks may have one in common."""
    found: dict[FilterLocation, dict[int, np.ndarray]] = {}
    for chunk in chunks:
        start, length, hashes = asked[chunk]
        found.setdefault((start, length), {})[id(hashes)] = hashes
    return {
        place: np.concatenate([*several.values()]) if len(several) > 1 else next(iter(several.values()))
        for place, several in found.items()
    }


def _guess(start: int, length: int) -> BloomFilterBlocks | None:
    """Tell from the length of a filter where its bit set begins; None without it."""
    num_bytes = (length - 1) // BLOCK_BYTES * BLOCK_BYTES
    if num_bytes <= 0 or num_bytes > MAX_BYTES:
        return None
    return BloomFilterBlocks(start + length - num_bytes, num_bytes // BLOCK_BYTES)


def _read_headers(
    file: OpenFile, store: BloomFilterCache, wanted: Mapping[FilterLocation, np.ndarray]
) -> dict[FilterLocation, BloomFilterBlocks | None]:
    """Read headers, those of the lengths that the footer tells along with the blocks that are asked for."""
    known = store.known(wanted)
    guesses = {place: _guess(*place) for place in wanted if place not in known}
    known |= _read_guessed(file, wanted, guesses)
    wrong = {place: None for place, guess in guesses.items() if guess is not None and known[place] is None}
    return known | _read_guessed(file, wanted, wrong)


def _read_guessed(
    file: OpenFile,
    wanted: Mapping[FilterLocation, np.ndarray],
    guesses: Mapping[FilterLocation, BloomFilterBlocks | None],
) -> dict[FilterLocation, BloomFilterBlocks | None]:
    """Read headers, and along with each the blocks that are asked for if it is what its length suggests."""
    places: list[tuple[int, int]] = []
    missing: dict[FilterLocation, list[tuple[int, int]]] = {}
    for place, guess in guesses.items():
        size = _HEADER_BYTES if guess is None else guess.start - place[0]
        places.append((place[0], min(size, file.footer_start - place[0])))
        missing[place] = [] if guess is None else guess.missing(wanted[place])
        places += [] if guess is None else _places(guess, missing[place])
    pieces = iter(_fetched(file, places))
    found: dict[FilterLocation, BloomFilterBlocks | None] = {}
    for place, guess in guesses.items():
        header = found[place] = _header(next(pieces), place[0], file.footer_start)
        for part in missing[place]:
            piece = next(pieces)
            if header is not None and guess is not None and header.same_location(guess):
                header.take(*part, piece)
    return found


def _fetched(file: OpenFile, places: list[tuple[int, int]]) -> list[np.ndarray]:
    """Read byte ranges: a few side by side, without the bytes between them; many as the file has it."""
    how = replace(file.coalescing, gap=0) if len(places) <= _FEW else file.coalescing
    return fetch_ranges(file.source, np.array(places, np.int64), how or file.coalescing) if places else []


def _places(blocks: BloomFilterBlocks, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give positions in the file, and bytes, of some blocks."""
    return [(blocks.start + BLOCK_BYTES * first, BLOCK_BYTES * count) for first, count in parts]


def _header(piece: np.ndarray, start: int, limit: int) -> BloomFilterBlocks | None:
    """Decode a header; None where it is damaged, or of a filter of another kind."""
    end, size = decode_header(piece[: len(piece) - SLACK].tobytes())
    return BloomFilterBlocks(start + end, size // BLOCK_BYTES) if 0 < size <= limit - start - end else None


def _read_blocks(
    file: OpenFile, filters: Mapping[FilterLocation, BloomFilterBlocks], wanted: Mapping[FilterLocation, np.ndarray]
) -> None:
    """Read the blocks that are missing."""
    todo = [(found, part) for place, found in filters.items() for part in found.missing(wanted[place])]
    pieces = _fetched(file, [lies for found, part in todo for lies in _places(found, [part])])
    for (found, part), piece in zip(todo, pieces, strict=True):
        found.take(*part, piece)
