"""Pages of chunks without an offset index: found by a walk over their headers, once, and kept as if there were one.

Rows in the midst of a large chunk are decoded without those before them only where it is known which page they are in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..column.chunks import ChunkTables, RowSlice, columns_table
from ..column.pages import PageWalk
from ..column.scratch import Scratch
from ..errors import ParquetError, located
from ..kernels.tables import (
    C_FAULTS,
    C_START,
    DICTIONARY_PAGE,
    P_BODY,
    P_COMPRESSED,
    P_HEADER,
    P_ROW,
    P_TYPE,
    PREFIXES_GO_ON,
)
from ..opened import OpenedFile
from ..plan.pages import ChunkPages
from ..pruning.indexes import OFFSET_INDEX, Indexes, Wanted
from ..pruning.places import Places
from ..schema import Leaf
from ..targets import Target

__all__ = ["PageFinder"]


class PageFinder:
    """Finds the pages of chunks, by their offset indexes or their headers.

    Parameters
    ----------
    file : OpenedFile
        The file; what is found is kept in ``file.indexes``, where planning looks for it.
    leaves : sequence of Leaf
        The columns.
    targets : sequence of Target
        How each is decoded.
    """

    def __init__(self, file: OpenedFile, leaves: Sequence[Leaf], targets: Sequence[Target]) -> None:
        self._file = file
        self._leaves = leaves
        self._common = columns_table(leaves, targets)
        self._places = Places(file)
        self._indexes = Indexes(file, leaves, self._places)

    def whole(self, row_group: int) -> list[Leaf]:
        """Give the columns of which a row group's chunk can only be decoded as a whole.

        Headers of pages tell how many values they have, which are rows of flat columns only: of repeated ones, it
        takes an offset index to know where a row is.
        """
        repeated = [(row_group, leaf.index) for leaf in self._leaves if leaf.max_repetition_level]
        there = {leaf for _, leaf in self._indexes.there(OFFSET_INDEX, repeated)}
        return [leaf for leaf in self._leaves if leaf.max_repetition_level and leaf.index not in there]

    def find(self, row_group: int) -> list[ChunkPages]:
        """Find the pages of all chunks of a row group whose rows can be found.

        Parameters
        ----------
        row_group : int
            Its ordinal.

        Returns
        -------
        list of ChunkPages
            Of those chunks.

        Raises
        ------
        ParquetError
            For page headers that are damaged.
        """
        tables = ChunkTables(self._file.footer, self._leaves, [row_group], self._file.footer_start, self._file.files)
        starts, ends = (bounds[0].tolist() for bounds in tables.places([row_group]))
        num_rows = tables.num_rows_of(row_group)
        self._indexes.load({OFFSET_INDEX: [(row_group, leaf.index) for leaf in self._leaves]})
        found = []
        for place, leaf in enumerate(self._leaves):
            chunk = ChunkPages.whole(starts[place], ends[place], num_rows)
            pages = self._indexes.pages(chunk, row_group, leaf.index)
            if pages is None and not leaf.max_repetition_level and starts[place] < ends[place]:
                with located(row_group=row_group, column=leaf.name):
                    pages = self._walked(tables, place, chunk, row_group)
            if pages is not None:
                found.append(pages)
        return found

    def _walked(self, tables: ChunkTables, place: int, chunk: ChunkPages, row_group: int) -> ChunkPages | None:
        """Walk over the headers of a chunk's pages; None where pages cannot be read without those before them."""
        columns = np.array([place])
        table = tables.of_row_group(self._common[columns], columns, RowSlice(row_group, 0, chunk.num_rows, 0))
        if table[0, C_FAULTS] & PREFIXES_GO_ON:
            return None
        locations = _walk(PageWalk(self._file.source, table))
        end = int(locations[-1, :2].sum()) if len(locations) else chunk.start
        try:
            pages = ChunkPages(chunk.start, end, chunk.num_rows, locations)
        except ParquetError:  # pages without a row, or what else no index has: the chunk is read as ever
            return None
        if end != chunk.end:
            return None
        index = Wanted(OFFSET_INDEX, row_group, self._leaves[place].index)
        self._file.indexes[index] = pages.locations
        return pages


def _walk(walk: PageWalk) -> np.ndarray:
    """Give place, size and first row of each data page, int64 of shape (pages, 3)."""
    scratch = Scratch()
    start = int(walk.chunks[0, C_START])
    found = [np.empty((0, 3), np.int64)]
    for window in walk.windows(scratch):
        table = window.pages
        data = table[table[:, P_TYPE] != DICTIONARY_PAGE]
        begun = start - int(walk.chunks[0, C_START])
        headers = data[:, P_HEADER]
        sizes = data[:, P_BODY] + data[:, P_COMPRESSED] - headers
        found.append(np.stack([headers + begun, sizes, data[:, P_ROW]], axis=1))
    return np.concatenate(found)
