"""Decode some rows of a nested leaf from their pages only, where these are located and intact."""

from __future__ import annotations

from dataclasses import replace

from numparq.column.jobs.nested_sink import NestedSink
from numparq.column.jobs.task import DecodeTask
from numparq.column.read.page_sources import LocatedPages
from numparq.column.read.row_selection import RowSlice
from numparq.errors import ParquetError
from numparq.kernels.tables import C_END, C_QUIRKS, C_START, PREFIX_CARRYOVER
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_ranges import RowRanges
from numparq.prune.index_reader import OFFSET_INDEX, IndexLocations, PageIndexReader

from .footer_checks import TolerantChunkTables
from .losses import catch_damage


def decode_located_rows(tables: TolerantChunkTables, task: DecodeTask) -> bool:
    """Run a task of some rows of a chunk of a nested leaf on the pages that hold them; return whether it succeeded.

    Batches of a row group then decode each page about once. If the pages are not located, or damaged, or their levels
    contradict the locations, the task is as it was.
    """
    sink = task.sink
    if not isinstance(sink, NestedSink) or not 0 < len(sink.rows) < (sink.num_rows or 0):
        return False
    (column,) = task.columns
    chunks = task.source.chunks.copy()
    pages = catch_damage(_chunk_pages, tables, task)
    if pages is None or isinstance(pages, ParquetError) or chunks[0, C_QUIRKS] & PREFIX_CARRYOVER:
        return False
    rows = sink.rows
    selected = RowRanges([(rows.start, rows.stop)])
    decoded = pages.rows_in_pages(pages.pages_with_rows(selected))
    locations, is_flat = pages.page_table_of(selected), not tables.leaves[column].max_repetition_level
    narrow = NestedSink(
        sink.leaf,
        sink.target,
        decoded.count,
        RowSlice(rows.row_group, 0, decoded.count, rows.out),
        selected.positions_in(decoded).bounds,
        locations,
    )
    source = LocatedPages(task.context.reader, chunks, locations, is_flat)
    if catch_damage(replace(task, source=source, sink=narrow)) is not None:
        return False
    sink.arrays, sink.failed = narrow.arrays, narrow.failed
    return True


def _chunk_pages(tables: TolerantChunkTables, task: DecodeTask) -> ChunkPages | None:
    """Return the pages of a task's only chunk, by its offset index or as located before; None if they are not known."""
    (row_group,), (column,), file = task.row_groups, task.columns, task.context.file
    if file is None or (row_group, column) in tables.faults:
        return None
    leaf, (start, end) = tables.leaves[column], task.source.chunks[0, [C_START, C_END]].tolist()
    indexes = PageIndexReader(file, [leaf], IndexLocations.for_file(file))
    indexes.load({OFFSET_INDEX: [(row_group, leaf.index)]})
    whole = ChunkPages.unindexed(start, end, tables.num_rows(row_group))
    return indexes.chunk_pages(whole, row_group, leaf.index)
