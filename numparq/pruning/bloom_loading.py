"""Bloom filters are fetched: of each header and blocks asked for at once, of all no more than memory should hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..bloom_filter import BLOCK_BYTES, MAX_BYTES
from ..kernels import kernels
from ..kernels.tables import SLACK
from ..metadata.decode import new_stack
from ..metadata.layout import layout
from ..opened import OpenedFile
from ..remembered import remembered
from .bloom_blocks import FilterBlocks, FilterStore, Place
from .indexes import fetch

__all__ = ["load_blocks"]

_HEADER_BYTES = 64  # read where the length of the filter, and so that of its header, is not known
_FEW = 64  # requests that may be under way side by side
_AT_ONCE = 32 << 20  # bytes of filters that are fetched together, unless those of one row group are more
_UNTOLD = 1 << 20  # what a filter is taken to have where the footer does not tell: few writers make larger ones
_KEY = "Bloom filters"  # in `OpenedFile.indexes`

_Chunk = tuple[int, int]  # ordinals of row group and leaf
_Asked = tuple[int, int, np.ndarray]  # where the filter lies, its length or 0, and the hashes to look up


def load_blocks(file: OpenedFile, asked: Mapping[_Chunk, _Asked]) -> Iterator[dict[_Chunk, FilterBlocks]]:
    """Read what the hashes are looked up in.

    Parameters
    ----------
    file : OpenedFile
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
    store: FilterStore = file.indexes.setdefault(_KEY, FilterStore())
    sizes: dict[Place, int] = {asked[chunk][:2]: asked[chunk][1] for chunk in asked}
    if sum(sizes.values()) > file.source.size:
        return
    claimed: dict[Place, int] = {}
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


def _batches(asked: Mapping[_Chunk, _Asked], sizes: Mapping[Place, int]) -> Iterator[dict[_Chunk, _Asked]]:
    """Divide chunks, by row groups, so that the filters of each part have no more bytes than may be held at once."""
    by_group: dict[int, dict[_Chunk, _Asked]] = {}
    for chunk, what in asked.items():
        by_group.setdefault(chunk[0], {})[chunk] = what
    batch: dict[_Chunk, _Asked] = {}
    held: set[Place] = set()
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


def _hashes(asked: Mapping[_Chunk, _Asked], chunks: Iterable[_Chunk]) -> dict[Place, np.ndarray]:
    """Give for each filter what it is asked; chunks may have one in common."""
    found: dict[Place, dict[int, np.ndarray]] = {}
    for chunk in chunks:
        start, length, hashes = asked[chunk]
        found.setdefault((start, length), {})[id(hashes)] = hashes
    return {
        place: np.concatenate([*several.values()]) if len(several) > 1 else next(iter(several.values()))
        for place, several in found.items()
    }


def _guess(start: int, length: int) -> FilterBlocks | None:
    """Tell from the length of a filter where its bit set begins; None without it."""
    num_bytes = (length - 1) // BLOCK_BYTES * BLOCK_BYTES
    if num_bytes <= 0 or num_bytes > MAX_BYTES:
        return None
    return FilterBlocks(start + length - num_bytes, num_bytes // BLOCK_BYTES)


def _read_headers(
    file: OpenedFile, store: FilterStore, wanted: Mapping[Place, np.ndarray]
) -> dict[Place, FilterBlocks | None]:
    """Read headers, those of the lengths that the footer tells along with the blocks that are asked for."""
    known = store.known(wanted)
    guesses = {place: _guess(*place) for place in wanted if place not in known}
    known |= _read_guessed(file, wanted, guesses)
    wrong = {place: None for place, guess in guesses.items() if guess is not None and known[place] is None}
    return known | _read_guessed(file, wanted, wrong)


def _read_guessed(
    file: OpenedFile, wanted: Mapping[Place, np.ndarray], guesses: Mapping[Place, FilterBlocks | None]
) -> dict[Place, FilterBlocks | None]:
    """Read headers, and along with each the blocks that are asked for if it is what its length suggests."""
    places: list[tuple[int, int]] = []
    missing: dict[Place, list[tuple[int, int]]] = {}
    for place, guess in guesses.items():
        size = _HEADER_BYTES if guess is None else guess.start - place[0]
        places.append((place[0], min(size, file.footer_start - place[0])))
        missing[place] = [] if guess is None else guess.missing(wanted[place])
        places += [] if guess is None else _places(guess, missing[place])
    pieces = iter(_fetched(file, places))
    found: dict[Place, FilterBlocks | None] = {}
    for place, guess in guesses.items():
        header = found[place] = _header(next(pieces), place[0], file.footer_start)
        for part in missing[place]:
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
    end, size = _decoded(piece[: len(piece) - SLACK].tobytes())
    return FilterBlocks(start + end, size // BLOCK_BYTES) if 0 < size <= limit - start - end else None


@remembered(256)
def _decoded(content: bytes) -> tuple[int, int]:
    """Give the length of a header, and of the filter behind it; 0 where it is none that this version knows.

    Those of the filters of a table mostly have the same bytes.
    """
    wanted = layout("BloomFilterHeader")
    words, stack = np.empty(wanted.words, np.int64), new_stack(wanted.words, wanted.words)
    piece = np.frombuffer(content + bytes(SLACK), np.uint8)
    end = kernels.read_thrift(piece, 0, len(content), wanted.table, words, 0, stack)
    kinds = ("algorithm.BLOCK", "hash.XXHASH", "compression.UNCOMPRESSED")
    if end < 0 or any(int(words[wanted.slot(kind.split(".")[0])]) != wanted.bit(kind) for kind in kinds):
        return 0, 0
    size = int(words[wanted.slot("numBytes")])
    return (end, size) if 0 < size <= MAX_BYTES and size % BLOCK_BYTES == 0 else (0, 0)


def _read_blocks(
    file: OpenedFile, filters: Mapping[Place, FilterBlocks], wanted: Mapping[Place, np.ndarray]
) -> None:  # fmt: skip
    """Read the blocks that are missing."""
    todo = [(found, part) for place, found in filters.items() for part in found.missing(wanted[place])]
    pieces = _fetched(file, [lies for found, part in todo for lies in _places(found, [part])])
    for (found, part), piece in zip(todo, pieces, strict=True):
        found.take(*part, piece)
