"""Locations of column indexes, offset indexes and Bloom filters, by the footer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import filterfalse

import numpy as np

from numparq.errors import ParquetError
from numparq.format.footer.file_metadata import Footer
from numparq.format.open_file import OpenFile
from numparq.format.thrift.layout import ThriftLayout, thrift_layout

__all__ = ["BLOOM_FILTER", "COLUMN_INDEX", "OFFSET_INDEX", "IndexLocations"]

COLUMN_INDEX, OFFSET_INDEX, BLOOM_FILTER = "column_index", "offset_index", "bloom_filter"
_NOWHERE = -1
_MAGIC_BYTES = 4
_STEMS = {COLUMN_INDEX: "column_index", OFFSET_INDEX: "offset_index", BLOOM_FILTER: "meta_data.bloom_filter"}
_KINDS = tuple(_STEMS)
# Size limits: a million pages have an index of this size, and a decoded one takes ten times the memory.
_LONGEST = np.array([64 << 20, 64 << 20, 129 << 20])
# Older writers leave out the length of a Bloom filter, which then is 0 here.
_UNTOLD, _SHORTEST = np.array([-1, -1, 0]), np.array([1, 1, 0])

_Chunk = tuple[int, int]  # ordinals of row group and leaf


@lru_cache(maxsize=1)
def _location_layout() -> tuple[ThriftLayout, list[int]]:
    """Return the layout of a column chunk, and the slots of position and length of each kind."""
    names = [f"{stem}_{which}" for stem in _STEMS.values() for which in ("offset", "length")]
    wanted = thrift_layout("ColumnChunk", *names)
    return wanted, [wanted.slot(name) for name in names]


class IndexLocations:
    """Locations of page indexes and Bloom filters, by the footer; each chunk is looked up once, all kinds together."""

    def __init__(self, file: OpenFile) -> None:
        self._footer, self._end = file.footer, file.footer_start
        self._known: dict[_Chunk, list[int]] = {}  # position and length, kind by kind

    @classmethod
    def for_file(cls, file: OpenFile) -> IndexLocations:
        """Return the locations of a file, shared by all files with the same footer."""
        cache, key = file.footer.cache, ("index locations", file.footer_start)
        known: IndexLocations | None = cache.get(key)
        return known or cache.get_or_make(key, lambda: cls(file))

    def locate(
        self, what: str, chunks: Sequence[_Chunk], besides: Iterable[_Chunk] = ()
    ) -> list[tuple[_Chunk, int, int]]:
        """Return chunk, position and length of indexes of a kind; the length of a Bloom filter is 0 if unknown.

        Chunks are ordinals of row group and leaf. Indexes of external column chunks, or outside of the file's data, are
        left out. If any chunk has not been looked up yet, those `besides` are looked up with it.
        """
        missing = [*filterfalse(self._known.__contains__, chunks)]
        if missing:
            self._read([*dict.fromkeys([*missing, *filterfalse(self._known.__contains__, besides)])])
        slot, located = 2 * _KINDS.index(what), []
        for chunk in chunks:
            words = self._known[chunk]
            if words[slot] != _NOWHERE:
                located.append((chunk, words[slot], words[slot + 1]))
        return located

    def _read(self, chunks: Sequence[_Chunk]) -> None:
        words = _read_locations(self._footer, self._end, chunks)
        self._known.update(zip(chunks, words.reshape(len(chunks), -1).tolist(), strict=True))


def _read_locations(footer: Footer, end: int, chunks: Sequence[_Chunk]) -> np.ndarray:
    """Return position and length of each kind, int64 of shape (chunks, kinds, 2); position -1 if missing."""
    wanted, slots = _location_layout()
    groups, leaves = zip(*chunks, strict=True)
    try:
        words = footer.chunks.read_words(wanted, groups, leaves)
    except ParquetError:
        return np.full((len(chunks), len(_KINDS), 2), _NOWHERE, np.int64)
    found = words[:, slots].reshape(-1, len(_KINDS), 2)
    start, length = found[..., 0], found[..., 1]
    np.maximum(length, _UNTOLD, out=length)
    room = end - start  # overflows only if `start` is negative, which is rejected
    inside = (start >= _MAGIC_BYTES) & (length >= _SHORTEST) & (length <= _LONGEST) & (room > 0) & (length <= room)
    inside &= (words[:, 0] & wanted.bit("file_path") == 0)[:, None]
    found[~inside] = _NOWHERE
    return found
