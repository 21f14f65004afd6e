"""Pages divided into row groups and column chunks, where that can be done in one way only.

What is known: the columns and their order; that a dictionary page begins a chunk; that all chunks of a row group have
the same number of rows; that pages decode as what their column is. Whatever is left open by that is not guessed: two
columns of the same type, without dictionaries, look the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..column.scratch import Scratch
from ..io.source import Source
from ..schema import Leaf
from ..verifying.walk import Walk
from .chunks import ChunkEnds, End, all_codecs

__all__ = ["Ambiguous", "FoundChunk", "FoundGroup", "GroupFinder"]

_MOST_SHOWN = 8


class Ambiguous(Exception):
    """Pages that can be divided up in several ways.

    Parameters
    ----------
    what : str
        What has to be told: ``"row_group_size"`` or ``"codec"``.
    message : str
        What is possible.
    """

    def __init__(self, what: str, message: str) -> None:
        super().__init__(what, message)
        self.what = what
        self.message = message


@dataclass(frozen=True)
class FoundChunk:
    """A column chunk: its pages, and the codec that they are in."""

    leaf: Leaf
    first: int
    end: End

    @property
    def codec(self) -> int:
        """What its pages are compressed with."""
        return self.end.codecs[0]


@dataclass(frozen=True)
class FoundGroup:
    """A row group that is whole."""

    num_rows: int
    chunks: list[FoundChunk]

    @property
    def behind(self) -> int:
        """The page behind it."""
        return self.chunks[-1].end.page


@dataclass
class GroupFinder:
    """Finds row groups.

    Parameters
    ----------
    source : Source
        The file.
    walk : Walk
        Its pages.
    leaves : list of Leaf
        The columns.
    guesses : dict of int to int
        The codec that each leaf probably has.
    codec : int or None
        The codec that all pages are in, where the user has said so.
    row_group_size : int or None
        Rows of each row group but a last one, where the user has said so.
    """

    source: Source
    walk: Walk
    leaves: list[Leaf]
    guesses: dict[int, int]
    codec: int | None = None
    row_group_size: int | None = None
    _deepest: int = 0
    _scratch: Scratch = field(default_factory=Scratch)
    _ends: dict[tuple[int, int], ChunkEnds] = field(default_factory=dict)

    def find(self, start: int) -> FoundGroup | None:
        """Find the row group that begins with a page.

        Parameters
        ----------
        start : int
            The page.

        Returns
        -------
        FoundGroup or None
            None where no whole one begins there.

        Raises
        ------
        Ambiguous
            When the pages allow for several.
        """
        self._ends.clear()
        self._deepest = 0
        if len(self.leaves) == 1:
            return self._of_one_column(start)
        complete: list[FoundGroup] = []
        is_open = False
        for first in self._first_ends(start):
            group, goes_on = self._with(start, first)
            is_open |= goes_on
            if group is None:
                continue
            if group.num_rows == self.row_group_size:
                return self._settled([group], False)
            complete.append(group)
            if len(complete) > _MOST_SHOWN:
                break
        return self._settled(complete, is_open or self._chunk(0, start).is_open)

    def _first_ends(self, start: int) -> list[End]:
        """List where the first chunk may end; the place first where the user says that it does."""
        ends = self._chunk(0, start).up_to(self.row_group_size)
        if self.row_group_size is None:
            return ends
        wanted = [end for end in ends if end.num_rows <= self.row_group_size]
        return sorted(wanted, key=lambda end: end.num_rows != self.row_group_size)

    def _of_one_column(self, start: int) -> FoundGroup | None:
        """Give all pages up to the next dictionary: of one column, wherever a row group ends, the rows are the same."""
        ends = self._chunk(0, start).up_to(None)
        wanted = [end for end in ends if end.num_rows == self.row_group_size] or ends[-1:]
        return self._settled([FoundGroup(wanted[0].num_rows, [FoundChunk(self.leaves[0], start, wanted[0])])], False
                             ) if wanted else None  # fmt: skip

    def _with(self, start: int, first: End) -> tuple[FoundGroup | None, bool]:
        """Give the row group whose first chunk ends somewhere, and whether the pages may break off within it."""
        chunks = [FoundChunk(self.leaves[0], start, first)]
        for leaf in self.leaves[1:]:
            page = chunks[-1].end.page
            if page >= len(self.walk.pages):
                return None, True
            ends = self._chunk(leaf.index, page)
            found = [end for end in ends.up_to(first.num_rows) if end.num_rows == first.num_rows]
            if not found:
                self._deepest = max(self._deepest, leaf.index)
                return None, ends.is_open
            chunks.append(FoundChunk(leaf, page, found[-1]))
        return FoundGroup(first.num_rows, chunks), False

    @property
    def stuck_at(self) -> str:
        """Where `find` gave None, the last column that it came to."""
        return self.leaves[self._deepest].name

    def _chunk(self, column: int, page: int) -> ChunkEnds:
        key = column, page
        if key not in self._ends:
            codecs = (self.codec,) if self.codec is not None else all_codecs(self.guesses.get(column))
            self._ends[key] = ChunkEnds(self.source, self.walk, self.leaves[column], page, codecs, self._scratch)
        return self._ends[key]

    def _settled(self, complete: list[FoundGroup], is_open: bool) -> FoundGroup | None:
        """Choose the one that there is."""
        if not complete:
            return None
        if len(complete) > 1 or is_open:
            sizes = ", ".join(f"{group.num_rows:,}" for group in complete[:_MOST_SHOWN])
            more = ", or of one that is cut off" if is_open else ""
            raise Ambiguous("row_group_size", f"the pages can be those of a row group of {sizes} rows{more}")
        for chunk in complete[0].chunks:
            if not chunk.end.is_certain:
                raise Ambiguous("codec", f"column {chunk.leaf.name!r} can be read with several codecs")
            self.guesses[chunk.leaf.index] = chunk.codec
        return complete[0]
