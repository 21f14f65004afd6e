"""Inline read: a short run of rows decoded by fused reads on the calling thread, without jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read.chunk_table import ChunkTables, chunk_template
from numparq.column.read.context import ReadContext
from numparq.column.read.fused_read import FusedRead
from numparq.column.read.output import ReplaceableMemory, fixed_output, output_item
from numparq.column.read.page_walk import count_page_bytes
from numparq.column.read.row_selection import RowSelection, RowSlice, selected_page_locations
from numparq.errors import error_context
from numparq.format.schema import Leaf
from numparq.kernels.tables import C_ITEM_SIZE, C_NULL_COUNT, C_OUT, LOCATION_FIELDS
from numparq.types.output_type import fallback_type

from .predicate_cache import CachedFixed
from .schedule_selection import SelectionScheduler
from .selection import SelectionJob

__all__ = ["InlineRead"]

# Of more rows or bytes than that some are better left to another thread.
MAX_INLINE_ROWS = 64 << 10
MAX_INLINE_BYTES = 256 << 10

_NO_PAGES = np.empty((0, LOCATION_FIELDS), np.int64)


class InlineRead:
    """Decodes few rows.

    Parameters
    ----------
    context : ReadContext
        Of the read, whose source is no remote one.
    tables : ChunkTables
        The chunks of the columns read.
    leaves : sequence of Leaf
        The columns read.
    memory : ReplaceableMemory
        Where they are decoded to.
    rows : RowSelection
        The rows.
    """

    def __init__(
        self,
        context: ReadContext,
        tables: ChunkTables,
        leaves: Sequence[Leaf],
        memory: ReplaceableMemory,
        rows: RowSelection,
    ) -> None:
        self._context = context
        self._tables = tables
        self._leaves = leaves
        self._memory = memory
        self._rows = rows

    def decode(self, columns: Collection[int]) -> dict[int, DecodedColumn]:
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
        if len(rows.row_ranges) != 1 or rows.mask is not None or len(rows) > MAX_INLINE_ROWS or rows.selects_all:
            return {}
        pages = {column: found for column in columns if (found := self._pages(column)) is not None}
        if not pages or sum(map(count_page_bytes, pages.values())) > MAX_INLINE_BYTES:
            return {}
        common = chunk_template([self._leaves[column] for column in pages], [targets[column] for column in pages])
        hull = RowSlice(rows.row_group, int(rows.row_ranges.starts[0]), rows.row_ranges.stop, rows.out)
        table = self._tables.row_group_table(common, np.array([*pages], np.intp), hull)
        done = {}
        for place, (column, found) in enumerate(pages.items()):
            with error_context(row_group=rows.row_group, column=self._context.column_names[column]):
                buffer = self._decoded(column, table[place : place + 1], found)
            if buffer is not None:
                done[column] = buffer
        return done

    def _pages(self, column: int) -> np.ndarray | None:
        """Give the pages to fetch of a column, none if its values are known; None where it takes a job."""
        rows, target = self._rows, self._memory.targets[column]
        kept, chunk = rows.cached.get(column), rows.chunk_pages[column]
        if target.nested or target.storage not in ("fixed", "binary"):
            return None
        if kept is not None:
            return _NO_PAGES if isinstance(kept, CachedFixed) and target.storage == "fixed" else None
        if not chunk.is_indexed:
            return None
        found = selected_page_locations(chunk, rows.row_ranges)
        return found if target.storage == "fixed" or FusedRead.can_read_strings(found, len(rows)) else None

    def _decoded(self, column: int, chunk: np.ndarray, pages: np.ndarray) -> DecodedColumn | None:
        """Decode a column; None where that takes a job after all."""
        memory, rows, row = self._memory, self._rows, chunk[0]
        kept, target = rows.cached.get(column), memory.targets[column]
        if target.storage == "fixed":
            row[C_OUT] = output_item(memory, column, rows.out) * row[C_ITEM_SIZE]
        buffer = DecodedColumn(memory.values[column], memory.validity[column])
        if isinstance(kept, CachedFixed):
            return buffer if kept.copy_to(row, fixed_output(memory, column)) else None
        run = FusedRead.prepare(self._context, row, pages, rows.row_ranges.bounds)
        if run is None:
            return None
        if target.storage == "fixed":
            nulls = run.read_fixed(fixed_output(memory, column))
        else:
            piece = run.read_strings(target.utf8)
            buffer.arrays, nulls = [piece], None if piece is None else piece.null_count
        buffer.null_count = nulls or 0
        return self._by_steps(column, chunk, run) if nulls is None else buffer

    def _by_steps(self, column: int, chunk: np.ndarray, run: FusedRead) -> DecodedColumn | None:
        """Decode a column by its job's steps, of what has been fetched; None where it has to become something else."""
        memory = self._memory
        job = SelectionScheduler(self._context, self._tables, self._leaves, memory).build_selection_job(
            column, chunk, self._rows
        )
        assert isinstance(job, SelectionJob)
        job.decode_fetched(run)
        if job.retries:
            memory.reallocate(column, fallback_type(memory.targets[column], job.retries[column]))
            return None
        nulls = int(job.chunks[0, C_NULL_COUNT])
        return DecodedColumn(memory.values[column], memory.validity[column], nulls, job.arrays)
