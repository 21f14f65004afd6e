"""Column chunks of a row group as one page each, built on first use: a filter needs few of many columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import sub
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .chunk_pages import ChunkPages, check_chunks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class WholeChunks(Sequence[ChunkPages]):
    """Column chunks without offset indexes, dictionary pages included; equal to a tuple of `ChunkPages.unindexed`.

    Attributes
    ----------
    num_rows : int
        Rows of the row group.
    """

    __slots__ = ("_ends", "_pages", "_starts", "num_rows")

    def __init__(self, starts: Sequence[int], ends: Sequence[int], num_rows: int) -> None:
        self._starts, self._ends, self.num_rows = starts, ends, num_rows
        self._pages: dict[int, ChunkPages] = {}

    @classmethod
    def of_row_groups(cls, starts: ArrayLike, ends: ArrayLike, num_rows: ArrayLike) -> list[WholeChunks]:
        """Return the chunks of row groups; `starts`, `ends`: (row groups, columns), `num_rows`: (row groups,)."""
        starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
        check_chunks(starts, ends)
        return [*map(cls, starts.tolist(), ends.tolist(), np.asarray(num_rows, np.int64).tolist())]

    @property
    def num_bytes(self) -> int:
        """Size of all chunks in bytes."""
        return sum(self._ends) - sum(self._starts)

    @property
    def largest(self) -> int:
        """Size of the largest chunk in bytes."""
        return max(map(sub, self._ends, self._starts), default=0)

    @overload
    def __getitem__(self, position: int) -> ChunkPages: ...
    @overload
    def __getitem__(self, position: slice) -> WholeChunks: ...
    def __getitem__(self, position: int | slice) -> ChunkPages | WholeChunks:
        if isinstance(position, slice):
            return WholeChunks(self._starts[position], self._ends[position], self.num_rows)
        pages = self._pages.get(position)
        if pages is None:
            pages = ChunkPages.unindexed(self._starts[position], self._ends[position], self.num_rows)
            self._pages[position] = pages
        return pages

    def __iter__(self) -> Iterator[ChunkPages]:
        return map(self.__getitem__, range(len(self._starts)))

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, WholeChunks)) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return WholeChunks, (self._starts, self._ends, self.num_rows)
