"""Page indexes of column chunks: read, or made from page headers, and kept in the file's entry of the cache."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import filterfalse
from typing import Any, NamedTuple

import numpy as np

from numparq.crypto.aad import ModuleId, ModuleType
from numparq.errors import ParquetError
from numparq.format import writer_quirks
from numparq.format.footer.file_metadata import Footer
from numparq.format.module_reader import ModuleReader
from numparq.format.open_file import OpenFile
from numparq.format.page_index import PAGE_OFFSET, ColumnIndex, OffsetIndex
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels.tables import PREFIX_CARRYOVER, SLACK
from numparq.plan.chunk_pages import ChunkPages

from .page_headers import MIN_CHUNK_BYTES, walk_page_headers

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
        bounds = self._footer.data_bounds
        if bounds is None:
            words = _read_locations(self._footer, self._end, chunks)
        else:
            begin, end = bounds[[group for group, _ in chunks]].T[..., None]
            words = _read_locations(self._footer, end, chunks)
            words[..., 0] = np.where(words[..., 0] == _NOWHERE, _NOWHERE, words[..., 0] + begin)
        self._known.update(zip(chunks, words.reshape(len(chunks), -1).tolist(), strict=True))


def _read_locations(footer: Footer, end: int | np.ndarray, chunks: Sequence[_Chunk]) -> np.ndarray:
    """Return position and length of each kind, int64 of shape (chunks, kinds, 2); position -1 if missing.

    `end` is that of the file's data, or int64 (chunks, 1).
    """
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


_DISTRUST = {COLUMN_INDEX: writer_quirks.COLUMN_INDEX, OFFSET_INDEX: writer_quirks.OFFSET_INDEX}
_READ: dict[str, Callable[[np.ndarray, int], Any]] = {COLUMN_INDEX: ColumnIndex.read, OFFSET_INDEX: OffsetIndex.read}
_MODULE_TYPES = {COLUMN_INDEX: ModuleType.COLUMN_INDEX, OFFSET_INDEX: ModuleType.OFFSET_INDEX}
PAGES = "pages"  # kind of the key of a chunk's pages, which refer to its offset index
PAGE_STATISTICS = "page_statistics"  # kind of a key with filter leaves and row groups
_PAGE_HEADERS = "page_headers"  # kind of the key of a chunk whose page headers have been walked
_IGNORES_INDEXES = "ignores page indexes"  # key of whether the page indexes of the file are wrong
_FROM_INDEXES = frozenset((COLUMN_INDEX, OFFSET_INDEX, PAGES, PAGE_STATISTICS, _PAGE_HEADERS))
_ENTRY_BYTES = 1 << 8  # of an entry's key, place and object
_ARRAY_BYTES = 128  # of an array, besides its items


def located_pages(index: OffsetIndex, whole: ChunkPages) -> ChunkPages | None:
    """Return the pages of a chunk by its offset index; None if that does not describe all pages of this chunk.

    `whole` is the chunk as a single page.
    """
    if not len(index.locations):
        return None
    try:
        pages = ChunkPages(
            whole.start, whole.end, whole.num_rows, index.locations, needs_dictionary=index.needs_dictionary
        )
    except ParquetError:
        return None
    return pages if pages.is_complete else None


def ignore_page_indexes(file: OpenFile, are_wrong: bool) -> bool:
    """Set whether all reads of a file ignore its page indexes, and return whether they did.

    What follows from the indexes is forgotten. Page headers may be walked in their place.
    """
    entry = file.entry
    before = bool(entry.get(_IGNORES_INDEXES))
    entry.put({_IGNORES_INDEXES: are_wrong}, 0)
    for key in [*entry]:
        if isinstance(key, tuple) and key[0] in _FROM_INDEXES:
            entry.pop(key, None)
    return before


class IndexKey(NamedTuple):
    """Key of an index: COLUMN_INDEX or OFFSET_INDEX, ordinals of row group and leaf."""

    kind: str
    row_group: int
    leaf: int


class PageIndexReader:
    """Reads the page indexes of a file, for the given leaves; cached in ``file.entry``.

    Indexes of writers known to write wrong ones are ignored.
    """

    def __init__(self, file: OpenFile, leaves: Iterable[Leaf], places: IndexLocations) -> None:
        self._file = file
        self._places = places
        self._leaf_of = {leaf.index: leaf for leaf in leaves}
        self._bugs: dict[int, Collection[str]] = {}  # by leaf, of those asked for

    def chunks_with_index(self, what: str, chunks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the chunks (ordinals of row group and leaf) with a trusted index by the footer; nothing is fetched."""
        return [chunk for chunk, _, _ in self._places.locate(what, self._trusted(what, chunks))]

    def _trusted(self, what: str, chunks: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        trusted: list[tuple[int, int]] = []
        wrong = _DISTRUST[what]
        if self._file.entry.get(_IGNORES_INDEXES):
            return trusted
        for chunk in chunks:
            bugs = self._bugs.get(chunk[1])
            if bugs is None:
                bugs = writer_quirks.untrusted_statistics(self._file.footer.created_by, self._leaf_of[chunk[1]])
                self._bugs[chunk[1]] = bugs
            if wrong not in bugs:
                trusted.append(chunk)
        return trusted

    def load(self, wanted: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Fetch and decode the indexes that are not cached yet, all together; invalid ones become None.

        `wanted` maps COLUMN_INDEX or OFFSET_INDEX to chunks (ordinals of row group and leaf), each once.
        """
        entry = self._file.entry
        located: list[tuple[IndexKey, int, int]] = []
        for what, chunks in wanted.items():
            missing = [*filterfalse(entry.__contains__, [(what, *chunk) for chunk in chunks])]
            if missing:
                places = self._places.locate(what, self._trusted(what, [(group, leaf) for _, group, leaf in missing]))
                located += [(IndexKey(what, *chunk), start, length) for chunk, start, length in places]
        ranges = np.array([place for _, *place in located], np.int64).reshape(-1, 2)
        # Indexes do not overlap: if they claim more bytes than the file has, the footer is wrong about all of them.
        if not located or int(ranges[:, 1].sum()) > self._file.source.size:
            return
        reader = self._file.reader
        pieces = reader.read_modules(ranges)
        found = {key: _decoded(key, piece, reader) for (key, _, _), piece in zip(located, pieces, strict=True)}
        bounds = self._file.footer.data_bounds
        if bounds is not None:
            for key, index in found.items():
                if isinstance(index, OffsetIndex):
                    index.locations[:, PAGE_OFFSET] += bounds[key.row_group, 0]
        entry.put(found, sum(map(index_bytes, found.values())))

    def walk_headers(self, chunks: Iterable[tuple[int, int, ChunkPages]]) -> list[int]:
        """Build the indexes of chunks without an offset index from their page headers, once, if that may pay.

        `chunks` has ordinals of row group and leaf, and the chunk as a single page. Returns the row groups of chunks
        with such indexes. A remote file is not walked: each header would be a request.
        """
        if self._file.source.is_remote or self._file.multi_file_source is not None:
            return []
        entry, walked = self._file.entry, []
        for row_group, leaf, whole in chunks:
            keys = (OFFSET_INDEX, row_group, leaf), (COLUMN_INDEX, row_group, leaf), (_PAGE_HEADERS, row_group, leaf)
            if keys[0] not in entry and keys[2] not in entry:
                is_worth_it = self._is_worth_a_walk(self._leaf_of[leaf], whole)
                indexes: Sequence[Any] = ()
                if is_worth_it:
                    indexes = walk_page_headers(self._file.reader, whole, row_group, leaf) or ()
                num_bytes = _ENTRY_BYTES + sum(map(index_bytes, indexes))
                entry.put({**dict(zip(keys, indexes, strict=False)), keys[2]: bool(indexes)}, num_bytes)
            if entry.get(keys[2]):
                walked.append(row_group)
        return walked

    def _is_worth_a_walk(self, leaf: Leaf, whole: ChunkPages) -> bool:
        quirks = writer_quirks.page_quirks(self._file.footer.created_by)
        are_linked = quirks.string_flags & PREFIX_CARRYOVER and leaf.physical in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)
        return whole.end - whole.start >= MIN_CHUNK_BYTES and not leaf.max_repetition_level and not are_linked

    def origin(self, row_group: int, leaf: int) -> str:
        """Return what the loaded indexes of a chunk come from."""
        return "page headers" if self._file.entry.get((_PAGE_HEADERS, row_group, leaf)) else "column index"

    def column_index(self, row_group: int, leaf: int) -> ColumnIndex | None:
        """Return a loaded column index; None if there is none."""
        found: ColumnIndex | None = self._file.entry.get((COLUMN_INDEX, row_group, leaf))
        return found

    def chunk_pages(self, whole: ChunkPages, row_group: int, leaf: int) -> ChunkPages | None:
        """Return the pages of a chunk by its loaded offset index; None without one that describes all its pages.

        `whole` is the chunk as a single page.
        """
        if whole.is_indexed:
            return whole
        entry, key = self._file.entry, (PAGES, row_group, leaf)
        pages: ChunkPages | None = entry.get(key)
        if pages is None:
            index = entry.get((OFFSET_INDEX, row_group, leaf))
            pages = None if index is None else located_pages(index, whole)
            if pages is not None:
                entry.put({key: pages}, index_bytes(pages))
        return pages

    def is_one_page(self, whole: ChunkPages, row_group: int, leaf: int) -> bool:
        """Whether the loaded offset index has a single page that holds all of the chunk's data."""
        index = self._file.entry.get((OFFSET_INDEX, row_group, leaf))
        return index is not None and index.is_one_page(whole.start, whole.end)


def index_bytes(index: ColumnIndex | OffsetIndex | ChunkPages | None) -> int:
    """Return the memory of an index, or of the pages that follow from it, as an entry of the cache."""
    arrays: list[np.ndarray | None] = []
    if isinstance(index, OffsetIndex):
        arrays = [index.locations, index.needs_dictionary]
    elif isinstance(index, ChunkPages):
        arrays = [index.locations, index.row_stops, index.page_table, None, None]
    elif index is not None:
        bounds = [index.lows, index.highs, None, None]  # which are views, as is the page table
        arrays = [index.data, index.null_pages, *bounds, index.null_counts, index.nan_counts]
    return _ENTRY_BYTES + sum(_ARRAY_BYTES + (0 if array is None else array.nbytes) for array in arrays)


def _decoded(key: IndexKey, piece: np.ndarray, reader: ModuleReader) -> Any:
    """Decode an index (SLACK bytes after it); None if it is invalid, or does not authenticate."""
    try:
        if reader.keys is None:
            data = piece.copy()  # a view would keep all that was fetched with it
        else:
            data = reader.plaintext(piece, ModuleId(_MODULE_TYPES[key.kind], key.row_group, key.leaf))
        return _READ[key.kind](data, len(data) - SLACK)
    except ParquetError:
        return None
