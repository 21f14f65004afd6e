"""Pages of chunks without an offset index: found by a walk over them, once, and kept as if there were one.

The headers of pages tell how many values they have, which are rows of flat columns only. Of repeated ones, the levels
have to be decoded to know where rows begin.

Rows in the midst of a large chunk are decoded without those before them only where it is known which page they are in.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from ..column.chunks import ChunkTables, RowSlice, columns_table
from ..column.context import Context
from ..column.pages import PageWalk
from ..column.scratch import Scratch
from ..column.writers import faults_of
from ..errors import ParquetError, located
from ..kernels.tables import (
    C_FAULTS,
    C_NUM_VALUES,
    C_ROW_START,
    C_ROW_STOP,
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
from ..pruning.offset_index import OffsetIndex
from ..pruning.places import Places
from ..schema import Leaf
from ..targets import Target
from ..threads import Crew

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
        self._targets = targets
        self._common = columns_table(leaves, targets)
        self._places = Places.of_file(file)
        self._indexes = Indexes(file, leaves, self._places)

    def find(self, row_group: int) -> list[Leaf]:
        """Find the pages of all chunks of a row group.

        Parameters
        ----------
        row_group : int
            Its ordinal.

        Returns
        -------
        list of Leaf
            The columns of whose chunks no row can be read alone: repeated ones, where a page begins in the midst of a
            row.

        Raises
        ------
        ParquetError
            For pages that are damaged.
        """
        tables = ChunkTables(self._file.footer, self._leaves, [row_group], self._file.footer_start, self._file.files)
        starts, ends = (bounds[0].tolist() for bounds in tables.places([row_group]))
        num_rows = tables.num_rows_of(row_group)
        self._indexes.load({OFFSET_INDEX: [(row_group, leaf.index) for leaf in self._leaves]})
        whole = []
        for place, leaf in enumerate(self._leaves):
            chunk = ChunkPages.whole(starts[place], ends[place], num_rows)
            if self._indexes.pages(chunk, row_group, leaf.index) is not None or starts[place] == ends[place]:
                continue
            with located(row_group=row_group, column=leaf.name):
                pages = self._walked(tables, place, chunk, row_group)
            if pages is None and leaf.max_repetition_level:
                whole.append(leaf)
        return whole

    def _walked(self, tables: ChunkTables, place: int, chunk: ChunkPages, row_group: int) -> ChunkPages | None:
        """Walk over the headers of a chunk's pages; None where pages cannot be read without those before them."""
        columns = np.array([place])
        table = tables.of_row_group(self._common[columns], columns, RowSlice(row_group, 0, chunk.num_rows, 0))
        if table[0, C_FAULTS] & PREFIXES_GO_ON:
            return None
        leaf = self._leaves[place]
        if leaf.max_repetition_level:
            locations = self._counted(leaf, self._targets[place], table, chunk.num_rows, row_group)
        else:
            locations = _walk(PageWalk(self._file.source, table))
        if locations is None:
            return None
        end = int(locations[-1, :2].sum()) if len(locations) else chunk.start
        try:
            pages = ChunkPages(chunk.start, end, chunk.num_rows, locations)
        except ParquetError:  # pages without a row, or what else no index has: the chunk is read as ever
            return None
        if end != chunk.end:
            return None
        index = Wanted(OFFSET_INDEX, row_group, leaf.index)
        self._file.indexes[index] = OffsetIndex(pages.locations)
        return pages

    def _counted(
        self, leaf: Leaf, target: Target, table: np.ndarray, num_rows: int, row_group: int
    ) -> np.ndarray | None:
        """Count the rows of each page of a repeated column, whose headers tell no more than its values."""
        from ..column.page_rows import PageRowsJob

        table[0, C_ROW_START], table[0, C_ROW_STOP] = 0, table[0, C_NUM_VALUES]
        bit_packed = faults_of(self._file.footer.created_by).bit_packed
        with (
            Crew(1) as crew,
            closing(Context(self._file.source, [leaf.name], crew, False, bit_packed=bit_packed)) as it,
        ):
            job = PageRowsJob(
                it, row_group, [0], table, False, leaf=leaf, target=target, rows=RowSlice(row_group, 0, num_rows, 0),
                num_rows=num_rows,
            )  # fmt: skip
            job()
        return job.locations


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
