"""Fetch, decode and cache the page indexes of column chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numparq.errors import ParquetError
from numparq.format import writer_quirks
from numparq.format.open_file import OpenFile
from numparq.format.page_index import ColumnIndex, OffsetIndex
from numparq.format.schema import Leaf
from numparq.io.coalesce import Coalescing, coalesce, split_fetched
from numparq.io.source import Source
from numparq.kernels.tables import SLACK
from numparq.plan.chunk_pages import ChunkPages
from numparq.util.bounded_cache import BoundedCache, fork_safe_lru_cache

from .index_locations import COLUMN_INDEX, OFFSET_INDEX, IndexLocations

__all__ = ["IndexBatch", "IndexKey", "LoadedIndexes", "PageIndexReader"]

_SHARED_BYTES = 16 << 10  # larger indexes are not cached: decoded, one may take ten times the memory
_MOST_SHARED = 128
_MOST_TOGETHER = 64  # batches, over all files
_MOST_KEPT = 4  # results derived from one batch
_FEW = 64  # larger batches are not cached
_DISTRUST = {COLUMN_INDEX: writer_quirks.COLUMN_INDEX, OFFSET_INDEX: writer_quirks.OFFSET_INDEX}

_latest = BoundedCache(_MOST_TOGETHER)

_READ: dict[str, Callable[[np.ndarray, int], Any]] = {COLUMN_INDEX: ColumnIndex.read, OFFSET_INDEX: OffsetIndex.read}


def index_pages(index: OffsetIndex, whole: ChunkPages) -> ChunkPages | None:
    """Return the pages of a chunk by its offset index; None if that does not describe all pages of this chunk.

    `whole` is the chunk as a single page.
    """
    key = whole.start, whole.end, whole.num_rows
    return index.cache.get_or_make(key, lambda: _build_pages(*key, index.locations))


def _build_pages(start: int, end: int, num_rows: int, locations: np.ndarray) -> ChunkPages | None:
    if not len(locations):
        return None
    try:
        found = ChunkPages(start, end, num_rows, locations)
    except ParquetError:
        return None
    return found if found.is_complete else None


class IndexKey(NamedTuple):
    """Key of an index: COLUMN_INDEX or OFFSET_INDEX, ordinals of row group and leaf."""

    kind: str
    row_group: int
    leaf: int


class PageIndexReader:
    """Reads the page indexes of a file, for the given leaves; cached in ``file.indexes``.

    Indexes of writers known to write wrong ones are ignored.
    """

    def __init__(self, file: OpenFile, leaves: Iterable[Leaf], places: IndexLocations) -> None:
        self._file = file
        self._places = places
        created_by = file.footer.created_by
        wrong = {leaf.index: writer_quirks.untrusted_statistics(created_by, leaf) for leaf in leaves}
        self._distrusted = {
            what: {leaf for leaf, bugs in wrong.items() if bug in bugs} for what, bug in _DISTRUST.items()
        }

    def chunks_with_index(self, what: str, chunks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the chunks (ordinals of row group and leaf) with a trusted index by the footer; nothing is fetched."""
        return [chunk for chunk, _, _ in self._places.locate(what, self._trusted(what, chunks))]

    def _trusted(self, what: str, chunks: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        wrong = self._distrusted[what]
        return [chunk for chunk in chunks if chunk[1] not in wrong] if wrong else chunks

    def load(self, wanted: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Fetch and decode the indexes that are not cached yet, all together.

        `wanted` maps COLUMN_INDEX or OFFSET_INDEX to chunks (ordinals of row group and leaf), each once.
        """
        known = self._file.index_cache
        missing = {what: [chunk for chunk in chunks if (what, *chunk) not in known] for what, chunks in wanted.items()}
        known.update(self.batch(missing).read(self._file.source).indexes)

    def batch(self, wanted: Mapping[str, Sequence[tuple[int, int]]]) -> IndexBatch:
        """Return the batch that reads these indexes; `wanted` as for `load`."""
        places, how, size = self._places, self._file.coalescing, self._file.source.size
        trusted = [IndexKey(what, *chunk) for what, chunks in wanted.items() for chunk in self._trusted(what, chunks)]
        if len(trusted) > _FEW:
            return IndexBatch(places, trusted, size, how)
        return places.cache.get_or_make((how, size, *trusted), lambda: IndexBatch(places, trusted, size, how))

    def column_index(self, row_group: int, leaf: int) -> ColumnIndex | None:
        """Return a loaded column index; None if there is none."""
        return self._file.index_cache.get(IndexKey(COLUMN_INDEX, row_group, leaf))

    def chunk_pages(self, whole: ChunkPages, row_group: int, leaf: int) -> ChunkPages | None:
        """Return the pages of a chunk by its loaded offset index; None if it has no valid one."""
        if whole.is_indexed:
            return whole
        index = self._file.index_cache.get((OFFSET_INDEX, row_group, leaf))
        return None if index is None else index_pages(index, whole)

    def is_one_page(self, whole: ChunkPages, row_group: int, leaf: int) -> bool:
        """Whether the loaded offset index has a single page that holds all of the chunk's data."""
        index = self._file.index_cache.get((OFFSET_INDEX, row_group, leaf))
        return index is not None and index.is_one_page(whole)


class LoadedIndexes(NamedTuple):
    """Indexes that were read together.

    Attributes
    ----------
    content : bytes
        Bytes they were decoded from; empty if these are many.
    indexes : dict
        By IndexKey; None for an invalid index.
    cache : BoundedCache
        Cache of what is derived from these indexes.
    """

    content: bytes
    indexes: dict[IndexKey, Any]
    cache: BoundedCache


class _LatestLoad:
    """Latest result of one `IndexBatch`."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: LoadedIndexes | None = None


class IndexBatch:
    """Indexes to be read together, with their coalesced byte ranges.

    Attributes
    ----------
    keys : list of IndexKey
        Indexes that exist.
    """

    def __init__(self, places: IndexLocations, wanted: Sequence[IndexKey], size: int, how: Coalescing) -> None:
        found = [
            (IndexKey(what, *chunk), start, length)
            for what in _READ
            for chunk, start, length in places.locate(what, [each[1:] for each in wanted if each.kind == what])
        ]
        ranges = np.array([place for _, *place in found], np.int64).reshape(-1, 2)
        # Indexes do not overlap: if they claim more bytes than the file has, the footer is wrong about all of them.
        if int(ranges[:, 1].sum()) > size:
            found, ranges = [], ranges[:0]
        self.keys = [each for each, _, _ in found]
        self._fetches = coalesce(ranges.cumsum(axis=1), how)
        self._blobs: list[tuple[int, int]] = [(start, stop) for start, stop in self._fetches.requests.tolist()]
        self._sizes = [stop - start for start, stop in self._blobs]
        self._is_small = sum(self._sizes) <= _SHARED_BYTES

    def read(self, source: Source) -> LoadedIndexes:
        """Read and decode the indexes; invalid ones are None. Equal bytes, unless many, are decoded once."""
        if not self.keys:
            return self._load(b"", [])
        blobs = source.read_ranges(self._blobs)
        if not self._is_small:
            return self._load(b"", blobs)
        content = b"".join([blob[:size].tobytes() for blob, size in zip(blobs, self._sizes, strict=True)])
        latest = _latest.get_or_make(self, _LatestLoad)
        found = latest.found
        if found is None or found.content != content:
            latest.found = found = self._load(content, blobs)
        return found

    def cached_in(self, known: Mapping[Any, Any]) -> LoadedIndexes | None:
        """Return the latest result if `known` still holds the same indexes, else None."""
        found = _latest.get_or_make(self, _LatestLoad).found
        same = found is not None and all(known.get(each) is index for each, index in found.indexes.items())
        return found if same else None

    def _load(self, content: bytes, blobs: Sequence[np.ndarray]) -> LoadedIndexes:
        return LoadedIndexes(content, self._decoded(blobs), BoundedCache(_MOST_KEPT))

    def _decoded(self, blobs: Sequence[np.ndarray]) -> dict[IndexKey, Any]:
        pieces = split_fetched(self._fetches, blobs)
        return {each: _decoded(each.kind, piece) for each, piece in zip(self.keys, pieces, strict=True)}


def _decoded(what: str, piece: np.ndarray) -> Any:
    """Decode an index (SLACK bytes after it); small ones are cached by content. None if it is invalid."""
    length = len(piece) - SLACK
    return _read(what, piece, length) if length > _SHARED_BYTES else _shared(what, piece[:length].tobytes())


@fork_safe_lru_cache(_MOST_SHARED)
def _shared(what: str, content: bytes) -> Any:
    return _read(what, np.frombuffer(content + bytes(SLACK), np.uint8), len(content))


def _read(what: str, data: np.ndarray, length: int) -> Any:
    try:
        return _READ[what](data, length)
    except ParquetError:
        return None
