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

_SHARED_BYTES = 16 << 10  # of indexes that are kept; what is made of one may take ten times the memory
_MOST_SHARED = 128
_MOST_TOGETHER = 64  # of all files
_MOST_KEPT = 4  # things that follow from indexes which were read together
_FEW = 64  # indexes, of which it is kept where they lie
_DISTRUST = {COLUMN_INDEX: writer_quirks.COLUMN_INDEX, OFFSET_INDEX: writer_quirks.OFFSET_INDEX}

_latest = BoundedCache(_MOST_TOGETHER)

_READ: dict[str, Callable[[np.ndarray, int], Any]] = {COLUMN_INDEX: ColumnIndex.read, OFFSET_INDEX: OffsetIndex.read}


def index_pages(index: OffsetIndex, whole: ChunkPages) -> ChunkPages | None:
    """Give the pages of a chunk, of which this is said to be the index.

    Parameters
    ----------
    whole : ChunkPages
        The chunk, as a single page.

    Returns
    -------
    ChunkPages or None
        None where it cannot be the index of all pages of such a chunk.
    """
    key = whole.start, whole.end, whole.num_rows
    return index.cache.get(key, lambda: _build_pages(*key, index.locations))


def _build_pages(start: int, end: int, num_rows: int, locations: np.ndarray) -> ChunkPages | None:
    if not len(locations):
        return None
    try:
        found = ChunkPages(start, end, num_rows, locations)
    except ParquetError:
        return None
    return found if found.is_complete else None


class IndexKey(NamedTuple):
    """An index: COLUMN_INDEX or OFFSET_INDEX, of the chunk of a leaf in a row group (ordinals)."""

    what: str
    row_group: int
    leaf: int


class PageIndexReader:
    """The page indexes of a file.

    Parameters
    ----------
    file : OpenFile
        The file; what is read is kept in ``file.indexes``.
    leaves : iterable of Leaf
        The columns that may be asked for.
    places : IndexLocations
        Where they lie.
    """

    def __init__(self, file: OpenFile, leaves: Iterable[Leaf], places: IndexLocations) -> None:
        self._file = file
        self._places = places
        created_by = file.footer.created_by
        wrong = {leaf.index: writer_quirks.untrusted_statistics(created_by, leaf) for leaf in leaves}
        self._distrusted = {
            what: {leaf for leaf, bugs in wrong.items() if bug in bugs} for what, bug in _DISTRUST.items()
        }

    def there(self, what: str, chunks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Give the chunks that have an index, as far as the footer says, which is trusted; nothing is fetched.

        Parameters
        ----------
        what : str
            COLUMN_INDEX or OFFSET_INDEX.
        chunks : sequence of (int, int)
            Ordinals of row group and leaf.
        """
        return [chunk for chunk, _, _ in self._places.of(what, self._trusted(what, chunks))]

    def _trusted(self, what: str, chunks: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        wrong = self._distrusted[what]
        return [chunk for chunk in chunks if chunk[1] not in wrong] if wrong else chunks

    def load(self, wanted: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Fetch and decode indexes that have not been, all of them together.

        Parameters
        ----------
        wanted : mapping of str to sequence of (int, int)
            By COLUMN_INDEX or OFFSET_INDEX the chunks, as ordinals of row group and leaf, each once; those that have
            none are passed over.
        """
        known = self._file.indexes
        missing = {what: [chunk for chunk in chunks if (what, *chunk) not in known] for what, chunks in wanted.items()}
        known.update(self.together(missing).read(self._file.source).indexes)

    def together(self, wanted: Mapping[str, Sequence[tuple[int, int]]]) -> IndexBatch:
        """Give what reads indexes together; parameters as of `load`."""
        places, how, size = self._places, self._file.coalescing, self._file.source.size
        trusted = [IndexKey(what, *chunk) for what, chunks in wanted.items() for chunk in self._trusted(what, chunks)]
        if len(trusted) > _FEW:
            return IndexBatch(places, trusted, size, how)
        return places.kept.get((how, size, *trusted), lambda: IndexBatch(places, trusted, size, how))

    def column_index(self, row_group: int, leaf: int) -> ColumnIndex | None:
        """Give a column index that has been loaded."""
        return self._file.indexes.get(IndexKey(COLUMN_INDEX, row_group, leaf))

    def pages(self, whole: ChunkPages, row_group: int, leaf: int) -> ChunkPages | None:
        """Give the pages of a chunk by its offset index, which has been loaded.

        Parameters
        ----------
        whole : ChunkPages
            The chunk, as a single page or as it was found before.
        row_group, leaf : int
            Ordinals.

        Returns
        -------
        ChunkPages or None
            None where the offset index cannot help.
        """
        if whole.is_indexed:
            return whole
        index = self._file.indexes.get((OFFSET_INDEX, row_group, leaf))
        return None if index is None else index_pages(index, whole)

    def is_one_page(self, whole: ChunkPages, row_group: int, leaf: int) -> bool:
        """Tell whether the offset index, which has been loaded, has one page that is all of the chunk's data."""
        index = self._file.indexes.get((OFFSET_INDEX, row_group, leaf))
        return index is not None and index.is_one_page(whole)


class LoadedIndexes(NamedTuple):
    """Indexes that were read together.

    Attributes
    ----------
    content : bytes
        What they were made of; none where they are many.
    indexes : dict
        By `IndexKey`; None for what is none.
    kept : BoundedCache
        What follows from them, for as long as they are kept themselves.
    """

    content: bytes
    indexes: dict[IndexKey, Any]
    kept: BoundedCache


class _LatestLoad:
    """What was read by one `IndexBatch` the last time."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: LoadedIndexes | None = None


class IndexBatch:
    """Indexes that are read together, and where they lie.

    Parameters
    ----------
    places : IndexLocations
        Where they lie.
    wanted : sequence of IndexKey
        Which; those that there are not are passed over.
    size : int
        Bytes of the file.
    how : Coalescing
        Which are read together.

    Attributes
    ----------
    wanted : list of IndexKey
        Which there are.
    """

    def __init__(self, places: IndexLocations, wanted: Sequence[IndexKey], size: int, how: Coalescing) -> None:
        found = [
            (IndexKey(what, *chunk), start, length)
            for what in _READ
            for chunk, start, length in places.of(what, [each[1:] for each in wanted if each.what == what])
        ]
        ranges = np.array([place for _, *place in found], np.int64).reshape(-1, 2)
        # Indexes do not lie over each other: a file that claims more of them than it has bytes has none.
        if int(ranges[:, 1].sum()) > size:
            found, ranges = [], ranges[:0]
        self.wanted = [each for each, _, _ in found]
        self._fetches = coalesce(ranges.cumsum(axis=1), how)
        self._blobs: list[tuple[int, int]] = [(start, stop) for start, stop in self._fetches.requests.tolist()]
        self._sizes = [stop - start for start, stop in self._blobs]
        self._is_small = sum(self._sizes) <= _SHARED_BYTES

    def read(self, source: Source) -> LoadedIndexes:
        """Read and decode them; those that are none are None. Of equal bytes, unless they are many, it is done once."""
        if not self.wanted:
            return self._found(b"", [])
        blobs = source.read_ranges(self._blobs)
        if not self._is_small:
            return self._found(b"", blobs)
        content = b"".join([blob[:size].tobytes() for blob, size in zip(blobs, self._sizes, strict=True)])
        latest = _latest.get(self, _LatestLoad)
        found = latest.found
        if found is None or found.content != content:
            latest.found = found = self._found(content, blobs)
        return found

    def cached_in(self, known: Mapping[Any, Any]) -> LoadedIndexes | None:
        """Give what was read the last time, if that is what is known of them; else None."""
        found = _latest.get(self, _LatestLoad).found
        same = found is not None and all(known.get(each) is index for each, index in found.indexes.items())
        return found if same else None

    def _found(self, content: bytes, blobs: Sequence[np.ndarray]) -> LoadedIndexes:
        return LoadedIndexes(content, self._decoded(blobs), BoundedCache(_MOST_KEPT))

    def _decoded(self, blobs: Sequence[np.ndarray]) -> dict[IndexKey, Any]:
        pieces = split_fetched(self._fetches, blobs)
        return {each: _decoded(each.what, piece) for each, piece in zip(self.wanted, pieces, strict=True)}


def _decoded(what: str, piece: np.ndarray) -> Any:
    """Decode an index, or give what was made of one with the same bytes, unless these are many; None where it is none.

    `piece` has SLACK behind it.
    """
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
