"""Retry failed decode tasks, column chunk by column chunk, then by runs of their pages."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from numparq.column.jobs.codes_sink import CodesSink
from numparq.column.jobs.fixed_sink import FixedSink
from numparq.column.jobs.nested_sink import NestedSink
from numparq.column.jobs.schedule import TaskScheduler
from numparq.column.jobs.task import DecodeTask
from numparq.column.read.context import ReadContext
from numparq.errors import ParquetError
from numparq.kernels.tables import C_END, C_NULL_COUNT, C_ROW_START, C_ROW_STOP, C_START
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_ranges import RowRanges

from .bisect import IntactPages, decode_intact_pages
from .footer_checks import PageHeaderCheck, TolerantChunkTables
from .losses import Losses, LostRows, catch_damage
from .lost_rows import LostPiece, PartialLeaf, slice_piece
from .page_walk import read_chunk_pages, walk_pages

if TYPE_CHECKING:
    from numparq.column.read.output import OutputMemory

__all__ = ["damage_scheduler"]


def damage_scheduler(
    context: ReadContext, tables: TolerantChunkTables, memory: OutputMemory, losses: Losses
) -> TaskScheduler:
    """Return a scheduler whose tasks skip damage, of which `losses` keeps account.

    `context` now checks page headers against the footer.
    """
    context.header_check = PageHeaderCheck(tables.footer, tables.leaves).check
    scheduler = TaskScheduler(context, tables, tables.leaves, memory)
    scheduler.run_task = partial(_run_task, tables, losses)
    return scheduler


def _run_task(tables: TolerantChunkTables, losses: Losses, task: DecodeTask) -> None:
    """Run a task; if it fails, its chunks one by one. What cannot be decoded is lost."""
    for row_group, column in zip(task.row_groups, task.columns, strict=True):
        losses.forget(row_group, column)
    chunks = task.source.chunks.copy()
    if catch_damage(task) is None:
        return
    task.source = replace(task.source, chunks=chunks)  # type: ignore[type-var]
    sink = task.sink
    sink.arrays, sink.failed = [], {}
    for position, (row_group, column) in enumerate(zip(task.row_groups, task.columns, strict=True)):
        single = task.single(position)
        error = tables.faults.get((row_group, column))
        if error is not None:
            lost = [LostRows(0, tables.num_rows(row_group), error)]
            num_nulls = _store(task, single, IntactPages(lost=lost), losses)
        elif (error := catch_damage(single)) is not None:
            single = task.single(position)
            num_nulls = _store(task, single, _decode_pages(tables, single, error), losses)
        else:
            sink.failed.update(single.sink.failed)
            sink.arrays.extend(single.sink.arrays)
            num_nulls = int(single.source.chunks[0, C_NULL_COUNT])
        chunks[position, C_NULL_COUNT] = num_nulls


def _decode_pages(tables: TolerantChunkTables, task: DecodeTask, error: ParquetError) -> IntactPages:
    """Walk over a chunk's pages, by its offset index if it has a sound one, and decode them."""
    (row_group,), (column,), reader = task.row_groups, task.columns, task.context.reader
    leaf, num_rows = tables.leaves[column], tables.num_rows(row_group)
    start, end = task.source.chunks[0, [C_START, C_END]].tolist()

    def locate() -> ChunkPages | None:
        record = tables.footer.chunks.chunk_record(row_group, leaf.index)
        return read_chunk_pages(reader, record, start, end, num_rows)

    located = catch_damage(locate)
    located = None if isinstance(located, ParquetError) else located
    walked = walk_pages(reader, task.source.chunks, num_rows, located, leaf.max_repetition_level > 0)
    decoded = decode_intact_pages(task, walked, num_rows)
    if decoded.failed is None and not decoded.lost:  # no page can be named, and yet the chunk is not whole
        return IntactPages(lost=[LostRows(0, num_rows, error)])
    return decoded


def _store(task: DecodeTask, single: DecodeTask, decoded: IntactPages, losses: Losses) -> int:
    """Add the decoded pages of one chunk to the arrays of a task; the rest is lost. Return the null count."""
    (row_group,), (column,) = single.row_groups, single.columns
    if decoded.failed is not None:
        task.sink.failed[column] = decoded.failed
        return 0
    first, stop = _row_range(single)
    lost = [LostRows(max(rows.first, first), min(rows.stop, stop), rows.reason) for rows in decoded.lost]
    losses.add(row_group, column, lost)
    task.sink.arrays.extend(_arrays_with_placeholders(single, decoded, first, stop))
    return sum(int(done.source.chunks[0, C_NULL_COUNT]) for _, _, done in decoded.tasks)


def _row_range(task: DecodeTask) -> tuple[int, int]:
    """Return the selected rows of a chunk, counted within its row group."""
    if isinstance(task.sink, NestedSink):
        return task.sink.rows.start, task.sink.rows.stop
    chunk = task.source.chunks[0]
    return int(chunk[C_ROW_START]), int(chunk[C_ROW_STOP])


def _arrays_with_placeholders(task: DecodeTask, decoded: IntactPages, first: int, stop: int) -> list[Any]:
    """Return the rows `first` to `stop` (exclusive) of a chunk: arrays of decoded rows, placeholders for lost ones."""
    sink = task.sink
    if isinstance(sink, NestedSink):
        parts = [(begin - first, end - first, done.sink.arrays[0]) for begin, end, done in decoded.tasks]
        partial_leaf = PartialLeaf(parts, stop - first, task.row_groups[0])
        rows = RowRanges.all(stop - first)
        return [partial_leaf if rows - partial_leaf.intact else partial_leaf.take(rows, sink.leaf, sink.target)]
    if isinstance(sink, FixedSink):
        return []
    arrays: list[Any] = []
    position = first
    for begin, end, done in decoded.tasks:
        begin, end = max(begin, first), min(end, stop)
        if begin >= end:
            continue
        if begin > position:
            arrays.append(LostPiece(begin - position))
        for array in done.sink.arrays:
            is_whole = isinstance(sink, CodesSink) and len(array) == stop - first
            arrays.append(slice_piece(array, begin - first, end - first) if is_whole else array)
        position = end
    if stop > position:
        arrays.append(LostPiece(stop - position))
    return arrays
