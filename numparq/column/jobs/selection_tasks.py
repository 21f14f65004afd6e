"""Decode tasks of row selections: predicate cache, pages by location or whole chunks, rows shared by threads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from numparq.column.read.chunk_selection import ChunkSelection
from numparq.column.read.dictionary import DictionaryCache, FixedDictionary
from numparq.column.read.output import fixed_output
from numparq.column.read.page_sources import InMemoryPages, LocatedPages, PageSource, ScannedPages
from numparq.column.read.row_selection import RowSelection, RowSlice, RowSlices
from numparq.kernels.tables import (
    C_ITEM_SIZE,
    C_OUT,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    C_VALIDITY,
    L_ROW,
    PAGE_FIELDS,
    PREFIX_CARRYOVER,
)
from numparq.plan.row_ranges import RowRanges

from .fixed_sink import FixedSink
from .predicate_cache import CachedFixed, CachedSink
from .task import DecodeTask, PageSink

if TYPE_CHECKING:
    from numparq.column.read.chunk_table import ChunkTables
    from numparq.column.read.context import ReadContext
    from numparq.column.read.output import OutputMemory
    from numparq.format.schema import Leaf
    from numparq.types.output_type import OutputType

    from .nested_sink import NestedSink

# Fewer tasks than so many for each thread are divided by rows, into parts of at least so many rows.
TASKS_PER_THREAD = 2
MIN_ROWS_PER_TASK = 64 << 10
_NO_BYTES = np.empty(0, np.uint8)
_NO_PAGES = np.empty((0, PAGE_FIELDS), np.int64)


class TaskBuilder(Protocol):
    """Members of `TaskScheduler` that tasks with a row selection use."""

    splits_arrays: bool
    context: ReadContext
    tables: ChunkTables
    leaves: Sequence[Leaf]
    memory: OutputMemory

    def build_tasks(self, slices: RowSlices, columns: Collection[int]) -> list[DecodeTask]:
        """Build the tasks for some columns and all slices."""

    def dictionary_cache(self, column: int, chunk: np.ndarray, row_group: int) -> DictionaryCache | None:
        """Return the cache of a dictionary; None if values are decoded otherwise."""

    def variable_sink(self, target: OutputType, size_hint: int) -> PageSink:
        """Return the sink of values of variable size."""

    def nested_sink(self, column: int, chunk: np.ndarray, rows: RowSlice, num_rows: int) -> NestedSink:
        """Return the sink of a nested column."""


def build_selection_tasks(
    scheduler: TaskBuilder, columns: Sequence[int], chunks: np.ndarray, slices: RowSlices
) -> list[DecodeTask]:
    """Build the tasks for columns of fixed or variable storage and the selections of `slices`.

    `chunks` is the chunk table for every column of one selection after the other.
    """
    assert slices.selections is not None
    threads = scheduler.context.pool.threads
    most_parts = -(-TASKS_PER_THREAD * threads // (len(slices.selections) * len(columns))) if threads > 1 else 1
    tasks: list[DecodeTask] = []
    whole: list[int] = []  # consecutive row groups of which all rows of `before` are decoded
    before: list[int] = []
    for number, rows in enumerate(slices.selections):
        selects_all, cached = rows.selects_all, rows.cached
        parts = min(most_parts, rows.num_rows // MIN_ROWS_PER_TASK)
        left: list[int] = []  # columns of which all rows are decoded
        own: list[DecodeTask] = []
        for at, column in enumerate(columns, number * len(columns)):
            chunk = chunks[at : at + 1].copy()
            task = _cached_task(scheduler, column, chunk, rows) if column in cached else None
            if task is not None:
                own.append(task)
            elif selects_all:
                left.append(column)
            elif parts > 1:
                own.extend(_split_tasks(scheduler, column, chunk, rows, parts))
            else:
                own.append(_selection_task(scheduler, column, chunk, rows))
        if whole and left != before:
            tasks.extend(scheduler.build_tasks(RowSlices(slices.table[whole]), before))
            whole = []
        tasks.extend(own)
        before = left
        if left:
            whole.append(number)
    if whole:
        tasks.extend(scheduler.build_tasks(RowSlices(slices.table[whole]), before))
    return tasks


def _split_tasks(
    scheduler: TaskBuilder, column: int, chunk: np.ndarray, rows: RowSelection, parts: int
) -> list[DecodeTask]:
    """Build up to `parts` tasks for rows of one row group: at most one a page, and one if pages have no locations.

    Otherwise several would scan the pages, or decompress the same one.
    """
    pages = rows.chunk_pages[column]
    is_divisible = rows.mask is None and pages.is_indexed
    if not scheduler.splits_arrays and scheduler.memory.values[column] is None:
        is_divisible = False
    parts = min(parts, len(pages.pages_with_rows(rows.row_ranges))) if is_divisible else 1
    if parts < 2:
        return [_selection_task(scheduler, column, chunk, rows)]
    tasks = []
    for part in rows.split(parts):
        table = chunk.copy()
        table[0, C_ROW_START], table[0, C_ROW_STOP] = part.row_ranges.starts[0], part.row_ranges.stop
        table[0, C_OUT] = table[0, C_VALIDITY] = part.out
        tasks.append(_selection_task(scheduler, column, table, part))
    return tasks


def _cached_task(scheduler: TaskBuilder, column: int, chunk: np.ndarray, rows: RowSelection) -> DecodeTask | None:
    """Build the task of a column whose values are cached; None if they are not of the storage of its output type."""
    memory, cached = scheduler.memory, rows.cached[column]
    target = memory.targets[column]
    is_fixed = isinstance(cached, CachedFixed)
    if is_fixed != (target.storage == "fixed"):
        return None
    if is_fixed:
        chunk[0, C_OUT] = (chunk[0, C_OUT] + (memory.row_of[column] or 0) * memory.num_rows) * chunk[0, C_ITEM_SIZE]
    sink = CachedSink(cached, target, fixed_output(memory, column) if is_fixed else None)
    source = InMemoryPages(_NO_BYTES, chunk, _NO_PAGES)
    return DecodeTask(scheduler.context, [rows.row_group], [column], source, sink)


def _selection_task(scheduler: TaskBuilder, column: int, chunk: np.ndarray, rows: RowSelection) -> DecodeTask:
    """Build the task for a column and rows of one row group; `chunk` becomes its chunk table."""
    context, memory = scheduler.context, scheduler.memory
    target, pages = memory.targets[column], rows.chunk_pages[column]
    is_located = pages.is_indexed and not chunk[0, C_QUIRKS] & PREFIX_CARRYOVER
    if target.nested:
        return _nested_task(scheduler, column, chunk, rows, is_located)
    cache: DictionaryCache | None = None
    source: PageSource
    if is_located:
        locations = pages.page_table_of(rows.row_ranges)
        if len(locations) and locations[0, L_ROW] < 0:
            cache = scheduler.dictionary_cache(column, chunk[0], rows.row_group)
            if cache is not None and cache.dictionary is not None:
                locations = locations[1:]
        source = LocatedPages(context.reader, chunk, locations)
    else:
        source = ScannedPages(context.reader, chunk, row_ranges=rows.row_ranges.bounds)
    sink: PageSink
    if memory.block_of[column] is not None or memory.values[column] is not None:
        chunk[0, C_OUT] = (chunk[0, C_OUT] + (memory.row_of[column] or 0) * memory.num_rows) * chunk[0, C_ITEM_SIZE]
        entries = (
            cache.dictionary.values if cache is not None and isinstance(cache.dictionary, FixedDictionary) else None
        )
        sink = FixedSink([fixed_output(memory, column)], entries=entries)
    else:
        chunk[0, C_OUT] = chunk[0, C_VALIDITY] = 0
        size_hint = scheduler.tables.estimate_string_bytes(column, [rows.row_group], rows.num_rows)
        sink = scheduler.variable_sink(target, size_hint)
    selection = ChunkSelection(rows.row_ranges, rows.mask)
    return DecodeTask(context, [rows.row_group], [column], source, sink, False, selection, cache)


def _nested_task(
    scheduler: TaskBuilder, column: int, chunk: np.ndarray, rows: RowSelection, is_located: bool
) -> DecodeTask:
    """Build the task for a leaf of a nested column: all rows of some pages are decoded, then selected rows taken."""
    context, pages, selected = scheduler.context, rows.chunk_pages[column], rows.selected_ranges
    decoded, locations = RowRanges.all(pages.num_rows), None
    source: PageSource = ScannedPages(context.reader, chunk)
    if is_located:
        decoded = pages.rows_in_pages(pages.pages_with_rows(selected))
        locations = pages.page_table_of(selected)
        source = LocatedPages(context.reader, chunk, locations, not scheduler.leaves[column].max_repetition_level)
    all_rows = RowSlice(rows.row_group, 0, decoded.count, rows.out)
    sink = scheduler.nested_sink(column, chunk, all_rows, decoded.count)
    sink.row_ranges, sink.locations = selected.positions_in(decoded).bounds, locations
    return DecodeTask(context, [rows.row_group], [column], source, sink)
