"""Page indexes of column chunks: fetched together, decoded, checked, and kept with the file.

Indexes are an aid. One that is missing, damaged, untrusted or at odds with its chunk is None here, and the chunk is
read as a whole; that changes what is read, never the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ParquetError
from ..io.source import Source
from ..kernels.tables import SLACK
from ..opened import OpenedFile
from ..plan.byte_ranges import Coalescing, Fetches, coalesce
from ..plan.pages import ChunkPages
from ..remembered import Kept, remembered
from ..schema import Leaf
from ..statistics import distrust
from .column_index import ColumnIndex
from .offset_index import OffsetIndex
from .places import COLUMN_INDEX, OFFSET_INDEX, Places

__all__ = ["Found", "Indexes", "Together", "Wanted", "fetch"]

_SHARED_BYTES = 16 << 10  # of indexes that are kept; what is made of one may take ten times the memory
_MOST_SHARED = 128
_MOST_TOGETHER = 64  # of all files
_MOST_KEPT = 4  # things that follow from indexes which were read together
_FEW = 64  # indexes, of which it is kept where they lie
_DISTRUST = {COLUMN_INDEX: distrust.COLUMN_INDEX, OFFSET_INDEX: distrust.OFFSET_INDEX}


class Wanted(NamedTuple):
    """An index: COLUMN_INDEX or OFFSET_INDEX, of the chunk of a leaf in a row group (ordinals)."""

    what: str
    row_group: int
    leaf: int


class Indexes:
    """The page indexes of a file.

    Parameters
    ----------
    file : OpenedFile
        The file; what is read is kept in ``file.indexes``.
    leaves : iterable of Leaf
        The columns that may be asked for.
    places : Places
        Where they lie.
    """

    def __init__(self, file: OpenedFile, leaves: Iterable[Leaf], places: Places) -> None:
        self._file = file
        self._places = places
        created_by = file.footer.created_by
        wrong = {leaf.index: distrust.distrusted(created_by, leaf) for leaf in leaves}
        self._distrusted = {what: {leaf for leaf, bugs in wrong.items() if bug in bugs}
                            for what, bug in _DISTRUST.items()}  # fmt: skip

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

    def together(self, wanted: Mapping[str, Sequence[tuple[int, int]]]) -> Together:
        """Give what reads indexes together; parameters as of `load`."""
        places, how, size = self._places, self._file.coalescing, self._file.source.size
        trusted = [Wanted(what, *chunk) for what, chunks in wanted.items() for chunk in self._trusted(what, chunks)]
        if len(trusted) > _FEW:
            return Together(places, trusted, size, how)
        return places.kept.get((how, size, *trusted), lambda: Together(places, trusted, size, how))

    def column_index(self, row_group: int, leaf: int) -> ColumnIndex | None:
        """Give a column index that has been loaded."""
        return self._file.indexes.get(Wanted(COLUMN_INDEX, row_group, leaf))

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
        return None if index is None else index.pages(whole)

    def is_one_page(self, whole: ChunkPages, row_group: int, leaf: int) -> bool:
        """Tell whether the offset index, which has been loaded, has one page that is all of the chunk's data."""
        index = self._file.indexes.get((OFFSET_INDEX, row_group, leaf))
        return index is not None and index.is_one_page(whole)


class Found(NamedTuple):
    """Indexes that were read together.

    Attributes
    ----------
    content : bytes
        What they were made of; none where they are many.
    indexes : dict
        By `Wanted`; None for what is none.
    kept : Kept
        What follows from them, for as long as they are kept themselves.
    """

    content: bytes
    indexes: dict[Wanted, Any]
    kept: Kept


class _Latest:
    """What was read by one `Together` the last time."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: Found | None = None


_latest = Kept(_MOST_TOGETHER)


class Together:
    """Indexes that are read together, and where they lie.

    Parameters
    ----------
    places : Places
        Where they lie.
    wanted : sequence of Wanted
        Which; those that there are not are passed over.
    size : int
        Bytes of the file.
    how : Coalescing
        Which are read together.

    Attributes
    ----------
    wanted : list of Wanted
        Which there are.
    """

    def __init__(self, places: Places, wanted: Sequence[Wanted], size: int, how: Coalescing) -> None:
        found = [
            (Wanted(what, *chunk), start, length)
            for what in _READ
            for chunk, start, length in places.of(what, [each[1:] for each in wanted if each.what == what])
        ]
        ranges = np.array([place for _, *place in found], np.int64).reshape(-1, 2)
        # Indexes do not lie over each other: a file that claims more of them than it has bytes has none.
        if int(ranges[:, 1].sum()) > size:
            found, ranges = [], ranges[:0]
        self.wanted = [each for each, _, _ in found]
        self._fetches = coalesce(ranges.cumsum(axis=1), how)
        self._blobs: list[tuple[int, int]] = [(start, stop) for start, stop in self._fetches.blobs.tolist()]
        self._sizes = [stop - start for start, stop in self._blobs]
        self._is_small = sum(self._sizes) <= _SHARED_BYTES

    def read(self, source: Source) -> Found:
        """Read and decode them; those that are none are None. Of equal bytes, unless they are many, it is done once."""
        if not self.wanted:
            return self._found(b"", [])
        blobs = source.read_ranges(self._blobs)
        if not self._is_small:
            return self._found(b"", blobs)
        content = b"".join([blob[:size].tobytes() for blob, size in zip(blobs, self._sizes, strict=True)])
        latest = _latest.get(self, _Latest)
        found = latest.found
        if found is None or found.content != content:
            latest.found = found = self._found(content, blobs)
        return found

    def found_in(self, known: Mapping[Any, Any]) -> Found | None:
        """Give what was read the last time, if that is what is known of them; else None."""
        found = _latest.get(self, _Latest).found
        same = found is not None and all(known.get(each) is index for each, index in found.indexes.items())
        return found if same else None

    def _found(self, content: bytes, blobs: Sequence[np.ndarray]) -> Found:
        return Found(content, self._decoded(blobs), Kept(_MOST_KEPT))

    def _decoded(self, blobs: Sequence[np.ndarray]) -> dict[Wanted, Any]:
        pieces = pieces_of(self._fetches, blobs)
        return {each: _decoded(each.what, piece) for each, piece in zip(self.wanted, pieces, strict=True)}


_READ: dict[str, Callable[[np.ndarray, int], Any]] = {COLUMN_INDEX: ColumnIndex.read, OFFSET_INDEX: OffsetIndex.read}


def _decoded(what: str, piece: np.ndarray) -> Any:
    """Decode an index, or give what was made of one with the same bytes, unless these are many; None where it is none.

    `piece` has SLACK behind it.
    """
    length = len(piece) - SLACK
    return _read(what, piece, length) if length > _SHARED_BYTES else _shared(what, piece[:length].tobytes())


@remembered(_MOST_SHARED)
def _shared(what: str, content: bytes) -> Any:
    return _read(what, np.frombuffer(content + bytes(SLACK), np.uint8), len(content))


def _read(what: str, data: np.ndarray, length: int) -> Any:
    try:
        return _READ[what](data, length)
    except ParquetError:
        return None


def fetch(file: OpenedFile, places: np.ndarray, how: Coalescing | None = None) -> list[np.ndarray]:
    """Read byte ranges, those that lie near each other together.

    Parameters
    ----------
    file : OpenedFile
        The file.
    places : int64 array, (ranges, 2)
        Position and length of each; none is empty, all are within the file.
    how : Coalescing, optional
        Which are read together; by default as the file has it.

    Returns
    -------
    list of uint8 array
        The bytes of each, and SLACK readable ones behind.
    """
    fetches = coalesce(places.cumsum(axis=1), how or file.coalescing)
    return pieces_of(fetches, file.source.read_ranges(fetches.blobs.tolist()))


def pieces_of(fetches: Fetches, blobs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Give the bytes of each range that was wanted, and SLACK readable ones behind; `blobs` have these, too."""
    places = zip(fetches.blob_of.tolist(), fetches.position.tolist(), fetches.size.tolist(), strict=True)
    return [blobs[blob][position : position + size + SLACK] for blob, position, size in places]
