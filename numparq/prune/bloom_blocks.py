"""Fetch headers and single blocks of Bloom filters, and cache them with the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from numparq.crypto.aad import ModuleId, ModuleType
from numparq.errors import DecryptionError
from numparq.format.bloom_filter import BLOCK_BYTES, MAX_BYTES, BloomFilter, decode_header
from numparq.format.module_reader import ModuleReader
from numparq.format.open_file import OpenFile
from numparq.kernels.tables import SLACK
from numparq.util.fork_safe_lock import fork_safe_lock

FilterLocation = tuple[int, int]  # position, and length or 0 if unknown

_HALF = np.uint64(32)
# From _MANY blocks on, read the whole filter unless it has more than _FOR_ITSELF blocks for each one needed: a read of
# a local file costs as much as 16 KiB more in another read.
_MANY, _FOR_ITSELF = 16, (16 << 10) // BLOCK_BYTES
_AN_ARRAY = 128  # bytes of memory that an array takes besides its block
_MOST_KEPT = 16 << 20  # bytes of blocks cached with a file

_HEADER_BYTES = 64  # bytes read for a header of unknown length
_FEW = 64  # requests that are sent in parallel, exactly; more are coalesced
_AT_ONCE = 32 << 20  # bytes of filters fetched together; a row group's filters are never split
_UNTOLD = 1 << 20  # bytes assumed of a filter without a length in the footer: few writers make larger ones
_LONGEST = MAX_BYTES + 1024  # bytes of an encrypted filter with its header
_KEY = "Bloom filters"  # in `OpenFile.indexes`

_Chunk = tuple[int, int]  # ordinals of row group and leaf
_Asked = tuple[int, int, np.ndarray]  # position, length or 0, and the hashes to probe


@dataclass(slots=True)
class BloomFilterBlocks:
    """The blocks read so far of a column chunk's Bloom filter.

    Attributes
    ----------
    start : int
        Position of the bitset in the file.
    blocks : dict of int to numpy.ndarray
        Single blocks by index, uint8.
    bloom_filter : BloomFilter or None
        The whole filter, if it has been read.
    """

    start: int
    num_blocks: int
    blocks: dict[int, np.ndarray] = field(default_factory=dict)
    bloom_filter: BloomFilter | None = None

    def same_location(self, other: BloomFilterBlocks) -> bool:
        """Whether both bitsets are at the same position and of the same size."""
        return (self.start, self.num_blocks) == (other.start, other.num_blocks)

    def missing_blocks(self, hashes: np.ndarray) -> list[tuple[int, int]]:
        """Return the blocks (first, count) that must be read before hashes (uint64) can be probed."""
        if self.bloom_filter is not None:
            return []
        if len(hashes) == 1:
            block = self._block_of_one(hashes)
            return [] if block in self.blocks else [(block, 1)]
        wanted = [block for block in np.unique(self._block_of(hashes)).tolist() if block not in self.blocks]
        if len(wanted) >= _MANY and len(wanted) * _FOR_ITSELF >= self.num_blocks:
            return [(0, self.num_blocks)]
        return [(block, 1) for block in wanted]

    def add(self, first: int, count: int, data: np.ndarray) -> None:
        """Add blocks that were read: `count` from `first`."""
        data = data[: count * BLOCK_BYTES].copy()
        if count == self.num_blocks:
            self.bloom_filter, self.blocks = BloomFilter(data), {}
        else:
            self.blocks[first] = data

    @property
    def num_bytes(self) -> int:
        """Approximate bytes in memory."""
        return self.num_blocks * BLOCK_BYTES if self.bloom_filter else len(self.blocks) * (BLOCK_BYTES + _AN_ARRAY)

    def copy(self) -> BloomFilterBlocks:
        """Return a copy to which blocks can be added."""
        return BloomFilterBlocks(self.start, self.num_blocks, dict(self.blocks), self.bloom_filter)

    def without_blocks(self) -> BloomFilterBlocks:
        """Return the filter's location, without blocks."""
        return BloomFilterBlocks(self.start, self.num_blocks)

    def might_contain(self, hashes: np.ndarray) -> np.ndarray:
        """Return whether each hash (uint64) may have been inserted; their blocks must have been read."""
        if self.bloom_filter is not None:
            found: np.ndarray = self.bloom_filter.might_contain(hashes)
            return found
        if len(hashes) == 1:
            found = BloomFilter(self.blocks[self._block_of_one(hashes)]).might_contain(hashes)
            return found
        found = np.zeros(len(hashes), np.bool_)
        block_of = self._block_of(hashes)
        for block in np.unique(block_of).tolist():
            places = np.flatnonzero(block_of == block)
            found[places] = BloomFilter(self.blocks[block]).might_contain(hashes[places])
        return found

    def _block_of_one(self, hashes: np.ndarray) -> int:
        """Return the block of a single hash, in plain ints: a look-up may probe many filters."""
        return (int(hashes[0]) >> 32) * self.num_blocks >> 32

    def _block_of(self, hashes: np.ndarray) -> np.ndarray:
        return ((hashes >> _HALF) * np.uint64(self.num_blocks) >> _HALF).astype(np.int64)


class BloomFilterCache:
    """Bounded cache of a file's Bloom filter blocks; only headers are kept of the largest filters."""

    def __init__(self) -> None:
        self._found: dict[FilterLocation, BloomFilterBlocks | None] = {}
        self._sizes: dict[FilterLocation, int] = {}  # of filters with blocks
        self._lock = fork_safe_lock()

    @property
    def num_bytes(self) -> int:
        """Approximate bytes in memory of all blocks."""
        return sum(self._sizes.values())

    def get(self, places: Iterable[FilterLocation]) -> dict[FilterLocation, BloomFilterBlocks | None]:
        """Return copies of the cached filters at these locations; None for one that cannot be used."""
        with self._lock:
            there = {place: self._found[place] for place in places if place in self._found}
            return {place: None if found is None else found.copy() for place, found in there.items()}

    def put(self, known: Mapping[FilterLocation, BloomFilterBlocks | None]) -> None:
        """Put copies of filters into the cache, and evict the blocks of the largest ones beyond the limit."""
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
                self._found[place] = blocks.without_blocks()


def fetch_blocks(file: OpenFile, asked: Mapping[_Chunk, _Asked]) -> Iterator[dict[_Chunk, BloomFilterBlocks]]:
    """Yield the blocks that the hashes need, some row groups at a time, without damaged and unknown filters.

    One round trip for 32 MiB of filters of known length. Ends once filters claim more bytes than the file has.
    """
    store: BloomFilterCache = file.bloom_filters.setdefault(_KEY, BloomFilterCache())
    sizes: dict[FilterLocation, int] = {asked[chunk][:2]: asked[chunk][1] for chunk in asked}
    if sum(sizes.values()) > file.source.size:
        return
    claimed: dict[FilterLocation, int] = {}
    for batch in _batches(asked, {place: size or _UNTOLD for place, size in sizes.items()}):
        wanted = _hashes(asked, batch)
        known = _read_headers(file, store, wanted, {asked[chunk][:2]: chunk for chunk in batch})
        claimed |= {place: found.num_blocks * BLOCK_BYTES for place, found in known.items() if found is not None}
        if sum(claimed.values()) > file.source.size:
            return
        for part in _batches(batch, claimed):  # headers may have larger sizes than the footer
            places = {asked[chunk][:2] for chunk in part}
            good = {place: found for place in places if (found := known[place]) is not None}
            _read_blocks(file, good, wanted)
            yield {chunk: good[asked[chunk][:2]] for chunk in part if asked[chunk][:2] in good}
            store.put({place: known[place] for place in places})
            known |= {place: found.without_blocks() for place, found in good.items()}  # release the blocks


def _batches(asked: Mapping[_Chunk, _Asked], sizes: Mapping[FilterLocation, int]) -> Iterator[dict[_Chunk, _Asked]]:
    """Split chunks by row group, so that the filters of a batch fit the memory limit."""
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
    """Return the hashes to probe of each filter, which chunks may share."""
    found: dict[FilterLocation, dict[int, np.ndarray]] = {}
    for chunk in chunks:
        start, length, hashes = asked[chunk]
        found.setdefault((start, length), {})[id(hashes)] = hashes
    return {
        place: np.concatenate([*several.values()]) if len(several) > 1 else next(iter(several.values()))
        for place, several in found.items()
    }


def _guess(start: int, length: int) -> BloomFilterBlocks | None:
    """Return where the bitset should be by the filter's length; None for an impossible or unknown length (0).

    Exact for a header below 32 bytes: the bitset's size is a multiple of 32.
    """
    num_bytes = (length - 1) // BLOCK_BYTES * BLOCK_BYTES
    if num_bytes <= 0 or num_bytes > MAX_BYTES:
        return None
    return BloomFilterBlocks(start + length - num_bytes, num_bytes // BLOCK_BYTES)


def _read_headers(
    file: OpenFile,
    store: BloomFilterCache,
    wanted: Mapping[FilterLocation, np.ndarray],
    chunks: Mapping[FilterLocation, _Chunk],
) -> dict[FilterLocation, BloomFilterBlocks | None]:
    """Return the filters, their headers read together with the blocks needed if the footer has the lengths."""
    known = store.get(wanted)
    if file.reader.keys is not None:
        known |= _read_sealed(file, {where: chunks[where] for where in wanted if where not in known})
    guesses = {place: _guess(*place) for place in wanted if place not in known}
    known |= _read_guessed(file, wanted, guesses)
    wrong = {place: None for place, guess in guesses.items() if guess is not None and known[place] is None}
    return known | _read_guessed(file, wanted, wrong)


def _read_sealed(
    file: OpenFile, chunks: Mapping[FilterLocation, _Chunk]
) -> dict[FilterLocation, BloomFilterBlocks | None]:
    """Read the filters of encrypted chunks, whole: a header's module and a bitset's; None for one that cannot be used.

    Single blocks cannot be decrypted.
    """
    assert file.reader.keys is not None
    sealed = {location: chunk for location, chunk in chunks.items() if file.reader.keys.is_sealed(*chunk)}
    filters: dict[FilterLocation, BloomFilterBlocks | None] = dict.fromkeys(sealed)
    whole = _sealed_lengths(file, [*sealed])
    pieces = _fetched(file, [(location[0], length) for location, length in whole.items()])
    for location, piece in zip(whole, pieces, strict=True):
        try:
            filters[location] = _open_filter(file.reader, piece, location[0], sealed[location])
        except DecryptionError:
            filters[location] = None
    return filters


def _sealed_lengths(file: OpenFile, locations: Sequence[FilterLocation]) -> dict[FilterLocation, int]:
    """Return the stored bytes of encrypted filters, both modules: by the footer, else by the modules' own lengths.

    Filters that would end behind the file's data, or are larger than any, are left out. parquet-java before 1.14 wrote
    no lengths.
    """
    unknown = [location for location in locations if not location[1]]
    ends = {location: location[0] for location in unknown}
    for _ in ("header", "bitset"):
        reading = [location for location in unknown if ends[location] + 4 <= file.data_end(location[0])]
        for location, piece in zip(reading, _fetched(file, [(ends[one], 4) for one in reading]), strict=True):
            ends[location] += int.from_bytes(piece[:4].tobytes(), "little") + 4
        unknown = reading
    lengths = {location: location[1] or ends[location] - location[0] for location in locations}
    return {
        location: length
        for location, length in lengths.items()
        if (location[1] or location in unknown) and length <= min(file.data_end(location[0]) - location[0], _LONGEST)
    }


def _open_filter(reader: ModuleReader, piece: np.ndarray, start: int, chunk: _Chunk) -> BloomFilterBlocks | None:
    """Decrypt a filter (SLACK bytes after it); None if its header describes an unknown kind of filter."""
    length = int.from_bytes(piece[:4].tobytes(), "little") + 4
    if length > len(piece) - SLACK:
        return None
    header = reader.plaintext(piece[: length + SLACK], ModuleId(ModuleType.BLOOM_HEADER, *chunk))
    _, size = decode_header(header[: len(header) - SLACK].tobytes())
    bits = reader.plaintext(piece[length:], ModuleId(ModuleType.BLOOM_BITSET, *chunk))
    if not 0 < size == len(bits) - SLACK:
        return None
    blocks = BloomFilterBlocks(start + length, size // BLOCK_BYTES)
    blocks.add(0, blocks.num_blocks, bits)
    return blocks


def _read_guessed(
    file: OpenFile,
    wanted: Mapping[FilterLocation, np.ndarray],
    guesses: Mapping[FilterLocation, BloomFilterBlocks | None],
) -> dict[FilterLocation, BloomFilterBlocks | None]:
    """Read headers, and in the same round trip the blocks needed if a guess of the bitset's position is right."""
    places: list[tuple[int, int]] = []
    missing: dict[FilterLocation, list[tuple[int, int]]] = {}
    for place, guess in guesses.items():
        size = _HEADER_BYTES if guess is None else guess.start - place[0]
        places.append((place[0], min(size, file.data_end(place[0]) - place[0])))
        missing[place] = [] if guess is None else guess.missing_blocks(wanted[place])
        places += [] if guess is None else _block_ranges(guess, missing[place])
    pieces = iter(_fetched(file, places))
    found: dict[FilterLocation, BloomFilterBlocks | None] = {}
    for place, guess in guesses.items():
        header = found[place] = _header(next(pieces), place[0], file.data_end(place[0]))
        for part in missing[place]:
            piece = next(pieces)
            if header is not None and guess is not None and header.same_location(guess):
                header.add(*part, piece)
    return found


def _fetched(file: OpenFile, places: list[tuple[int, int]]) -> list[np.ndarray]:
    """Fetch byte ranges: a few in parallel and exactly, many by the file's coalescing."""
    how = replace(file.coalescing, gap=0) if len(places) <= _FEW else None
    return file.reader.read_modules(np.array(places, np.int64), how) if places else []


def _block_ranges(blocks: BloomFilterBlocks, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return position and length in bytes of blocks."""
    return [(blocks.start + BLOCK_BYTES * first, BLOCK_BYTES * count) for first, count in parts]


def _header(piece: np.ndarray, start: int, limit: int) -> BloomFilterBlocks | None:
    """Decode a header; None if it is damaged or describes an unknown kind of filter."""
    end, size = decode_header(piece[: len(piece) - SLACK].tobytes())
    return BloomFilterBlocks(start + end, size // BLOCK_BYTES) if 0 < size <= limit - start - end else None


def _read_blocks(
    file: OpenFile, filters: Mapping[FilterLocation, BloomFilterBlocks], wanted: Mapping[FilterLocation, np.ndarray]
) -> None:
    """Fetch the missing blocks."""
    todo = [(found, part) for place, found in filters.items() for part in found.missing_blocks(wanted[place])]
    pieces = _fetched(file, [lies for found, part in todo for lies in _block_ranges(found, [part])])
    for (found, part), piece in zip(todo, pieces, strict=True):
        found.add(*part, piece)
