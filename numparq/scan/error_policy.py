"""Error policy of a scan: raise at the first damage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numparq.column.jobs.schedule import JobScheduler
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.row_selection import RowSlices
from numparq.format.footer.file_metadata import Footer
from numparq.format.schema import Leaf, leaf_ordinal

if TYPE_CHECKING:
    from numparq.column.read.output import ReplaceableMemory
    from numparq.io.multi_file_source import MultiFileSource


__all__ = ["RaiseOnDamage"]

_FEW = 64  # columns, whose tables are kept


class RaiseOnDamage:
    """Policy ``on_error="raise"``: the first damage ends the read; `SkipDamaged` goes on."""

    context = ReadContext
    select = None  # rows are found by `FileRowReader.filter_slices` alone

    @staticmethod
    def chunk_tables(
        footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: MultiFileSource | None
    ) -> ChunkTables:
        """Make the tables of the chunks: those of few columns once, as far as they follow from the footer."""
        if files is not None or len(leaves) > _FEW:
            return ChunkTables(footer, leaves, row_groups, end, files)
        key = ("tables", end, tuple(map(leaf_ordinal, leaves)), *row_groups)
        known: ChunkTables | None = footer.cache.get(key)
        return known or footer.cache.get_or_make(key, lambda: ChunkTables(footer, leaves, row_groups, end))

    @staticmethod
    def job_maker(
        context: ReadContext,
        chunk_tables: ChunkTables,
        leaves: Sequence[Leaf],
        memory: ReplaceableMemory,
        slices: RowSlices,
    ) -> JobScheduler:
        """Make what makes the jobs: that for rows here and there where some are so."""
        if slices.selections is None:
            return JobScheduler(context, chunk_tables, leaves, memory)
        from numparq.column.jobs.schedule_selection import SelectionScheduler

        return SelectionScheduler(context, chunk_tables, leaves, memory)
