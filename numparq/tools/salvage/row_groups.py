"""Find row groups in a sequence of pages, where only one division into column chunks fits."""

from __future__ import annotations

from dataclasses import dataclass, field

from numparq.column.scratch import Scratch
from numparq.format.schema import Leaf
from numparq.io.source import Source
from numparq.tools.verify.file_walk import PageSequence

from .chunk_ends import ChunkEnd, ChunkEndFinder, candidate_codecs

_MAX_LISTED = 8


class AmbiguousPagesError(Exception):
    """Pages that can be divided in several ways.

    Attributes
    ----------
    argument : str
        Argument of `salvage` that decides: ``"row_group_size"`` or ``"codec"``.
    message : str
        The possible divisions.
    """

    def __init__(self, what: str, message: str) -> None:
        super().__init__(what, message)
        self.argument = what
        self.message = message


@dataclass(frozen=True)
class SalvagedChunk:
    """Column chunk found by its pages; `first_page` is its first page."""

    leaf: Leaf
    first_page: int
    end: ChunkEnd

    @property
    def codec(self) -> int:
        """Compression codec, the most likely one."""
        return self.end.codecs[0]


@dataclass(frozen=True)
class SalvagedRowGroup:
    """Complete row group found by its pages, or its last chunks."""

    num_rows: int
    chunks: list[SalvagedChunk]

    @property
    def first_column(self) -> int:
        """Ordinal of the first leaf column; 0 if there is a chunk of each."""
        return self.chunks[0].leaf.index

    @property
    def first_page(self) -> int:
        """First page of the row group."""
        return self.chunks[0].first_page

    @property
    def end_page(self) -> int:
        """Page after the row group (exclusive end)."""
        return self.chunks[-1].end.end_page

    @property
    def is_intact(self) -> bool:
        """Whether all pages were decoded."""
        return all(chunk.end.is_intact for chunk in self.chunks)


@dataclass
class RowGroupFinder:
    """Finds row groups in the pages of a file without a footer.

    Attributes
    ----------
    codec_guesses : dict of int to int
        Likely codec of each leaf column; updated with each row group found.
    codec : int or None
        Codec of all pages, if the user named it.
    row_group_size : int or None
        Rows of each row group but the last, if the user named it.
    limit : int
        Page (exclusive) where the pages end that are known to follow each other.
    """

    source: Source
    walk: PageSequence
    leaves: list[Leaf]
    codec_guesses: dict[int, int]
    codec: int | None = None
    row_group_size: int | None = None
    limit: int = 0
    _deepest: int = 0
    _scratch: Scratch = field(default_factory=Scratch)
    _ends: dict[tuple[int, int, bool], ChunkEndFinder] = field(default_factory=dict)

    def start(self, limit: int) -> None:
        """Begin with pages that end at `limit`."""
        self.limit = limit
        self._ends.clear()
        self._deepest = 0

    def find(self, start: int) -> SalvagedRowGroup | None:
        """Return the row group that begins with page `start`; None if no complete one does.

        Raise AmbiguousPagesError if several divisions of the pages fit.
        """
        self.start(self.walk.next_gap(start))
        return self._find_single_column(start) if len(self.leaves) == 1 else self._choose(*self.divisions(start))

    def divisions(self, start: int, column: int = 0) -> tuple[list[SalvagedRowGroup], bool]:
        """Divide the pages from `start` on into one chunk of each column from `column` on, all with the same rows.

        Returns the possible divisions, and whether there may be one that is cut off.
        """
        if start >= self.limit:
            return [], True
        complete: list[SalvagedRowGroup] = []
        is_open = False
        for first in self._first_ends(column, start):
            group, goes_on = self._complete_row_group(column, start, first)
            is_open |= goes_on
            if group is None:
                continue
            if group.num_rows == self.row_group_size:
                return [group], False
            complete.append(group)
            if len(complete) > _MAX_LISTED:
                return complete, True
        return complete, is_open or self.chunk_end_finder(column, start).is_open

    def _first_ends(self, column: int, start: int) -> list[ChunkEnd]:
        """Return the possible ends of the first chunk; the end at the user's row group size comes first."""
        ends = self.chunk_end_finder(column, start).find(self.row_group_size)
        if self.row_group_size is None:
            return ends
        wanted = [end for end in ends if end.num_rows <= self.row_group_size]
        return sorted(wanted, key=lambda end: end.num_rows != self.row_group_size)

    def _find_single_column(self, start: int) -> SalvagedRowGroup | None:
        """Return all pages up to the next dictionary page, or damage, as one row group.

        With one column the rows are the same wherever row groups end.
        """
        self.limit = min((page for page in self.walk.damaged if page >= start), default=self.limit)
        ends = self.chunk_end_finder(0, start).find(None)
        wanted = [end for end in ends if end.num_rows == self.row_group_size] or ends[-1:]
        return (
            self._choose(
                [SalvagedRowGroup(wanted[0].num_rows, [SalvagedChunk(self.leaves[0], start, wanted[0])])], False
            )
            if wanted
            else None
        )

    def _complete_row_group(self, column: int, start: int, first: ChunkEnd) -> tuple[SalvagedRowGroup | None, bool]:
        """Return the division whose first chunk ends at `first` (or None), and whether the pages may end within it."""
        chunks = [SalvagedChunk(self.leaves[column], start, first)]
        for leaf in self.leaves[column + 1 :]:
            page = chunks[-1].end.end_page
            if page >= self.limit:
                return None, True
            ends = self.chunk_end_finder(leaf.index, page)
            found = [end for end in ends.find(first.num_rows) if end.num_rows == first.num_rows]
            if not found:
                self._deepest = max(self._deepest, leaf.index)
                return None, ends.is_open
            chunks.append(SalvagedChunk(leaf, page, found[-1]))
        return SalvagedRowGroup(first.num_rows, chunks), False

    @property
    def failed_column(self) -> str:
        """Name of the last column that was tried when `find` returned None."""
        return self.leaves[self._deepest].name

    @property
    def farthest_page(self) -> int:
        """First page that no chunk tried so far has."""
        return max((ends.start + ends.num_decoded for ends in self._ends.values()), default=0)

    @property
    def num_decoded(self) -> int:
        """Number of pages decoded since `start`, those of several chunks counted each time."""
        return sum(ends.num_decoded + 1 for ends in self._ends.values())

    def chunk_end_finder(self, column: int, page: int, is_tail: bool = False) -> ChunkEndFinder:
        """Return the finder of the ends of a chunk of a column that begins with a page, or before it."""
        key = column, page, is_tail
        if key not in self._ends:
            codecs = (self.codec,) if self.codec is not None else candidate_codecs(self.codec_guesses.get(column))
            self._ends[key] = ChunkEndFinder(
                self.source, self.walk, self.leaves[column], page, codecs, self._scratch, self.limit, is_tail
            )
        return self._ends[key]

    def _choose(self, complete: list[SalvagedRowGroup], is_open: bool) -> SalvagedRowGroup | None:
        """Return the only complete row group, None if there is none; raise AmbiguousPagesError if several fit."""
        if not complete:
            return None
        if len(complete) > 1 or is_open:
            sizes = ", ".join(f"{group.num_rows:,}" for group in complete[:_MAX_LISTED])
            more = ", or one that is cut off" if is_open else ""
            raise AmbiguousPagesError("row_group_size", f"the pages may form a row group of {sizes} rows{more}")
        self.check_codecs(complete[0])
        return complete[0]

    def check_codecs(self, group: SalvagedRowGroup) -> None:
        """Raise AmbiguousPagesError if several codecs decompress an intact chunk to different values."""
        for chunk in group.chunks:
            if not chunk.end.is_certain and chunk.end.is_intact:
                raise AmbiguousPagesError("codec", f"several codecs can decompress column {chunk.leaf.name!r}")
            if chunk.end.is_intact:
                self.codec_guesses[chunk.leaf.index] = chunk.codec
