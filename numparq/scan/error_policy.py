"""Error policy of a scan: raise at the first damage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numparq.column.jobs.schedule import TaskScheduler
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.format.footer.file_metadata import Footer
from numparq.format.schema import Leaf, leaf_ordinal

if TYPE_CHECKING:
    from numparq.column.read.output import ReplaceableMemory
    from numparq.io.multi_file_source import MultiFileSource


MAX_CACHED_COLUMNS = 64


class RaiseOnDamage:
    """Policy ``on_error="raise"``: the first damage ends the read; `SkipDamaged` goes on."""

    select = None  # `FileRowReader.filter_slices` selects the rows

    @staticmethod
    def chunk_tables(
        footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: MultiFileSource | None
    ) -> ChunkTables:
        """Build the chunk tables; those of few columns are cached with the footer."""
        if files is not None or len(leaves) > MAX_CACHED_COLUMNS:
            return ChunkTables(footer, leaves, row_groups, end, files)
        key = ("tables", end, tuple(map(leaf_ordinal, leaves)), *row_groups)
        known: ChunkTables | None = footer.cache.get(key)
        return known or footer.cache.get_or_make(key, lambda: ChunkTables(footer, leaves, row_groups, end))

    @staticmethod
    def scheduler(
        context: ReadContext, chunk_tables: ChunkTables, leaves: Sequence[Leaf], memory: ReplaceableMemory
    ) -> TaskScheduler:
        """Return the scheduler of the tasks."""
        return TaskScheduler(context, chunk_tables, leaves, memory)
