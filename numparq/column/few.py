"""A run of few rows in located pages, decoded column by column where it stands: jobs would take longer to make."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..errors import located
from ..kernels.located_pages import LOCATED_FIELDS
from ..kernels.tables import C_ITEM_SIZE, C_NULL_COUNT, C_OUT
from ..schema import Leaf
from ..targets import retarget
from .at_once import AtOnce
from .buffer import ColumnBuffer
from .chunks import ChunkTables, RowSlice, columns_table
from .context import Context
from .jobs import item_of, output_of
from .kept import KeptFixed
from .located import bytes_of
from .rounds import Replaceable
from .selected import Selected
from .selecting import SelectingMaker
from .wanted import WantedRows, located_pages

__all__ = ["FewRows"]

# Of more rows or bytes than that some are better left to another thread.
MOST_ROWS = 64 << 10
MOST_BYTES = 256 << 10

_NO_PAGES = np.empty((0, LOCATED_FIELDS), np.int64)


class FewRows:
    """Decodes few rows.

    Parameters
    ----------
    context : Context
        Of the read, whose source is no remote one.
    tables : ChunkTables
        The chunks of the columns read.
    leaves : sequence of Leaf
        The columns read.
    memory : Replaceable
        Where they are decoded to.
    rows : WantedRows
        The rows.
    """

    def __init__(
        self, context: Context, tables: ChunkTables, leaves: Sequence[Leaf], memory: Replaceable, rows: WantedRows
    ) -> None:  # fmt: skip
        self._context = context
        self._tables = tables
        self._leaves = leaves
        self._memory = memory
        self._rows = rows

    def decode(self, columns: Collection[int]) -> dict[int, ColumnBuffer]:
        """Decode those columns in which nothing is in the way of that.

        Parameters
        ----------
        columns : collection of int
            By their positions among those read.

        Returns
        -------
        dict of int to ColumnBuffer
            By position. Of those that are missing the memory holds nothing: they take jobs.
        """
        rows, targets = self._rows, self._memory.targets
        if len(rows.rows) != 1 or rows.mask is not None or len(rows) > MOST_ROWS or rows.is_whole:
            return {}
        pages = {column: found for column in columns if (found := self._pages(column)) is not None}
        if not pages or sum(map(bytes_of, pages.values())) > MOST_BYTES:
            return {}
        common = columns_table([self._leaves[column] for column in pages], [targets[column] for column in pages])
        hull = RowSlice(rows.row_group, int(rows.rows.starts[0]), rows.rows.stop, rows.out)
        table = self._tables.of_row_group(common, np.array([*pages], np.intp), hull)
        done = {}
        for place, (column, found) in enumerate(pages.items()):
            with located(row_group=rows.row_group, column=self._context.names[column]):
                buffer = self._decoded(column, table[place : place + 1], found)
            if buffer is not None:
                done[column] = buffer
        return done

    def _pages(self, column: int) -> np.ndarray | None:
        """Give the pages to fetch of a column, none if its values are known; None where it takes a job."""
        rows, target = self._rows, self._memory.targets[column]
        kept, chunk = rows.kept.get(column), rows.chunks[column]
        if target.nested or target.storage not in ("fixed", "binary"):
            return None
        if kept is not None:
            return _NO_PAGES if isinstance(kept, KeptFixed) and target.storage == "fixed" else None
        if not chunk.is_indexed:
            return None
        found = located_pages(chunk, rows.rows)
        return found if target.storage == "fixed" or AtOnce.takes_strings(found, len(rows)) else None

    def _decoded(self, column: int, chunk: np.ndarray, pages: np.ndarray) -> ColumnBuffer | None:
        """Decode a column; None where that takes a job after all."""
        memory, rows, row = self._memory, self._rows, chunk[0]
        kept, target = rows.kept.get(column), memory.targets[column]
        if target.storage == "fixed":
            row[C_OUT] = item_of(memory, column, rows.out) * row[C_ITEM_SIZE]
        buffer = ColumnBuffer(memory.values[column], memory.validity[column])
        if isinstance(kept, KeptFixed):
            return buffer if kept.stored(row, output_of(memory, column)) else None
        run = AtOnce.of(self._context, row, pages, rows.rows.bounds)
        if run is None:
            return None
        if target.storage == "fixed":
            nulls = run.fixed(output_of(memory, column))
        else:
            piece = run.strings(target.utf8)
            buffer.pieces, nulls = [piece], None if piece is None else piece.null_count
        buffer.null_count = nulls or 0
        return self._by_steps(column, chunk, run) if nulls is None else buffer

    def _by_steps(self, column: int, chunk: np.ndarray, run: AtOnce) -> ColumnBuffer | None:
        """Decode a column by its job's steps, of what has been fetched; None where it has to become something else."""
        memory = self._memory
        job = SelectingMaker(self._context, self._tables, self._leaves, memory).selected(column, chunk, self._rows)
        assert isinstance(job, Selected)
        job.go_on(run)
        if job.failed:
            memory.replace(column, retarget(memory.targets[column], job.failed[column]))
            return None
        nulls = int(job.chunks[0, C_NULL_COUNT])
        return ColumnBuffer(memory.values[column], memory.validity[column], nulls, job.pieces)
