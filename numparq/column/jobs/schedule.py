"""Schedule decode tasks: page sources, selections and sinks, chunks fetched together, threads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read import page_sources
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.dictionary import DictionaryCache
from numparq.column.read.output import FixedOutput, fixed_output
from numparq.column.read.page_sources import ScannedPages
from numparq.column.read.row_selection import SLICE_GROUP, SLICE_OUT, SLICE_START, SLICE_STOP, RowSlice, RowSlices
from numparq.errors import error_context
from numparq.format.schema import Leaf
from numparq.kernels.enums import BYTE_ARRAY
from numparq.kernels.tables import (
    C_END,
    C_ITEM_SIZE,
    C_NULL_COUNT,
    C_NUM_VALUES,
    C_OUT,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    C_START,
    C_TYPE,
    C_VALIDITY,
    PREFIX_CARRYOVER,
)
from numparq.types.output_type import OutputType, fallback_type

from .fixed_sink import FixedSink
from .task import DecodeTask, PageSink

if TYPE_CHECKING:
    from numparq.column.read.output import OutputMemory, ReplaceableMemory

    from .nested_sink import NestedSink

# Chunks are fetched together up to this many bytes, gaps included: dictionaries and null counts of several chunks last
# for one window only.
MAX_COALESCED_BYTES = page_sources.WINDOW_BYTES * 3 // 4
# Fewer bytes than that, of all that a second thread could take over, are done before it has begun.
SINGLE_THREAD_BYTES = 512 << 10
# Smaller tasks do not count: threads would wait for one another's Python steps longer than their kernels run. A row of
# 30 columns, a page of 160 KB each, takes 5.0 ms on two threads, 2.6 on one.
MIN_SHARED_TASK_BYTES = 128 << 10
# A task has the bytes of one in this many of a thread's share, or these bytes if there are so many. A larger chunk is a
# task by itself. A task of one chunk of more than the latter shares its pages out, once threads run out of tasks.
SHARES_PER_THREAD = 4
MIN_SHARE_BYTES = 256 << 10

TaskSizes = tuple[int, int]
"""Bytes of a task that is not of one larger chunk, at most, and of a chunk above which its task shares its pages."""


class TaskScheduler:
    """Builder of the tasks that decode columns.

    Parameters
    ----------
    context : ReadContext
        That of the read.
    tables : ChunkTables
        The chunks of the columns read.
    leaves : sequence of Leaf
        The columns read.
    memory : OutputMemory
        Where they are decoded to.

    Attributes
    ----------
    run_task : callable or None
        Runs a task, in place of calling it: the error policy.
    match_sink : PageSink or None
        Sink of the only column, of one chunk, all of whose rows are matched in place of being decoded.
    splits_arrays : bool
        Whether selected rows of strings or nested values may be decoded into several arrays, by several threads.
    """

    run_task: Callable[[DecodeTask], None] | None = None
    match_sink: PageSink | None = None
    splits_arrays = True

    def __init__(self, context: ReadContext, tables: ChunkTables, leaves: Sequence[Leaf], memory: OutputMemory) -> None:
        self.context = context
        self.tables = tables
        self.leaves = leaves
        self.memory = memory

    def build_tasks(self, slices: RowSlices, columns: Collection[int]) -> list[DecodeTask]:
        """Build the tasks for some columns (positions among those read) and all slices or selections.

        Raises
        ------
        ParquetError
            For a chunk that the footer describes wrongly, or that this version does not read.
        """
        types = self.memory.targets
        stored: list[int] = []
        for column in columns:
            if types[column].storage != "null" or types[column].nested:
                stored.append(column)
        if not stored or not len(slices.table):
            return []
        chunks = self.tables.chunk_table(stored, map(types.__getitem__, stored), slices)
        if slices.selections is None:
            return self.build_slice_tasks(stored, chunks, slices)
        # Absolute: a relative import in a function calls Python code each time. Most reads select all rows.
        from numparq.column.jobs.selection_tasks import build_selection_tasks

        return build_selection_tasks(self, stored, chunks, slices)

    def run(self, tasks: Sequence[DecodeTask]) -> None:
        """Run tasks, on all threads of the pool if that pays."""
        is_shared = False
        if len(tasks) > 1 and self.context.pool.threads > 1:
            sizes: list[int] = []
            for task in tasks:
                # Selected rows: on average a page is decompressed up to its middle.
                sizes.append(task.source.num_bytes >> (task.selection is not None))
            is_shared = pays_to_share(sizes)
            if is_shared:  # the largest first: else a thread may have one left when the others are done
                order = sorted(range(len(tasks)), key=sizes.__getitem__, reverse=True)
                tasks = [*map(tasks.__getitem__, order)]
        calls: Sequence[Callable[[], None]] = tasks
        if self.run_task is not None:
            calls = [partial(self.run_task, task) for task in tasks]
        if is_shared:
            self.context.pool.run(calls)
        else:
            for call in calls:
                call()

    def build_slice_tasks(self, columns: Sequence[int], chunks: np.ndarray, slices: RowSlices) -> list[DecodeTask]:
        """Build the tasks for all rows of slices, whose chunk table has every column of one slice after the other."""
        total = int(np.add.reduce(chunks[:, C_END] - chunks[:, C_START]))
        share = max(total // (SHARES_PER_THREAD * self.context.pool.threads), MIN_SHARE_BYTES)
        sizes: TaskSizes = share, MIN_SHARE_BYTES
        if np.bitwise_or.reduce(chunks[:, C_QUIRKS]) & PREFIX_CARRYOVER:  # pages only go one after the other
            sizes = max(share, total), total
        memory = self.memory
        fixed: list[int] = []
        variable: list[int] = []
        for at, column in enumerate(columns):
            has_memory = memory.block_of[column] is not None or memory.values[column] is not None
            (fixed if has_memory else variable).append(at)
        tasks = self._fixed_tasks(fixed, columns, chunks, slices, sizes) if fixed else []
        for at in variable:
            tasks.extend(self._variable_tasks(columns[at], chunks[at :: len(columns)], slices, sizes))
        return tasks

    def _fixed_tasks(
        self, positions: Sequence[int], columns: Sequence[int], chunks: np.ndarray, slices: RowSlices, sizes: TaskSizes
    ) -> list[DecodeTask]:
        """Build the tasks of columns of fixed storage (positions in `columns`), chunks in the order of the file."""
        context, memory, count = self.context, self.memory, len(slices.table)
        outputs: list[FixedOutput] = []
        of_block: dict[int, int] = {}  # columns of a block share an output
        owners, output_of, lanes = [], [], []
        for at in positions:
            column = columns[at]
            block = memory.block_of[column]
            number = len(outputs) if block is None else of_block.setdefault(block, len(outputs))
            if number == len(outputs):
                outputs.append(fixed_output(memory, column))
            owners.append(column)
            output_of.append(number)
            lanes.append(memory.row_of[column] or 0)
        if len(positions) < len(columns):
            chunks = chunks.reshape(count, len(columns), -1)[:, positions].reshape(-1, chunks.shape[1])
        order = chunks[:, C_START].argsort(kind="stable")
        chunks, of_column = chunks[order], order % len(positions)
        chunks[:, C_OUT] += (np.array(lanes) * memory.num_rows)[of_column]
        chunks[:, C_OUT] *= chunks[:, C_ITEM_SIZE]
        groups = slices.table[:, SLICE_GROUP][order // len(positions)].tolist()
        chunk_owners, chunk_outputs = np.array(owners)[of_column].tolist(), np.array(output_of)[of_column]
        tasks: list[DecodeTask] = []
        share, large = sizes
        most = min(share, context.local.share.window_bytes)
        for first, last in pairwise(coalesce_chunks(chunks, most, context.reader.max_gap)):
            run, run_groups = chunks[first:last], groups[first:last]
            source, sink = ScannedPages(context.reader, run, run_groups), FixedSink(outputs, chunk_outputs[first:last])
            is_large = last - first == 1 and bool(run[0, C_END] - run[0, C_START] > large)
            tasks.append(DecodeTask(context, run_groups, chunk_owners[first:last], source, sink, is_large))
        return tasks

    def _variable_tasks(self, column: int, chunks: np.ndarray, slices: RowSlices, sizes: TaskSizes) -> list[DecodeTask]:
        """Build the tasks of a column without memory before it is decoded."""
        context, target = self.context, self.memory.targets[column]
        share, large = sizes
        tasks: list[DecodeTask] = []
        if target.nested:
            for number in range(len(slices)):
                chunk, rows = chunks[number : number + 1].copy(), slices[number]
                nested_sink = self.nested_sink(column, chunk, rows, self.tables.num_rows(rows.row_group))
                source = ScannedPages(context.reader, chunk)
                tasks.append(DecodeTask(context, [rows.row_group], [column], source, nested_sink))
            return tasks
        for first, last in pairwise(self._string_runs(chunks, slices, share)):
            part = slices if last - first == len(slices.table) else slices[first:last]
            run = chunks[first:last].copy()
            run[:, C_OUT] = run[:, C_VALIDITY] = 0
            is_large = last - first == 1 and bool(run[0, C_END] - run[0, C_START] > large)
            counts = part.table[:, SLICE_STOP] - part.table[:, SLICE_START]
            size_hint = self.tables.estimate_string_bytes(column, part.row_groups, counts)
            sink, cache = self.match_sink, None
            if sink is None:
                sink = self.variable_sink(target, size_hint)
            else:
                cache = self.dictionary_cache(column, run[0], part.row_groups[0])
            source = ScannedPages(context.reader, run, part.row_groups)
            owners = [column] * len(run)
            tasks.append(DecodeTask(context, part.row_groups, owners, source, sink, is_large, None, cache))
        return tasks

    def dictionary_cache(self, column: int, chunk: np.ndarray, row_group: int) -> DictionaryCache | None:
        """Return the cache of a chunk's dictionary; None in limited memory, and for codes of fixed-size values."""
        context, target = self.context, self.memory.targets[column]
        if context.file is None or context.local.share.limit is not None:
            return None
        if target.storage == "dictionary" and chunk[C_TYPE] != BYTE_ARRAY:
            return None
        checks = target.utf8, context.verify_crc
        return DictionaryCache(context.file.entry, row_group, self.leaves[column].index, chunk, checks)

    def variable_sink(self, target: OutputType, size_hint: int) -> PageSink:
        """Return a sink of strings or codes."""
        from numparq.column.jobs.byte_array_sink import ByteArraySink

        bytes_sink: Callable[[], PageSink] = partial(ByteArraySink, target.utf8, size_hint)
        if target.storage == "binary":
            return bytes_sink()
        from numparq.column.jobs.codes_sink import CodesSink

        return CodesSink(target.utf8, bytes_sink)

    def nested_sink(self, column: int, chunk: np.ndarray, rows: RowSlice, num_rows: int) -> NestedSink:
        """Return the sink of a leaf of a nested column; every page of its chunk is decoded."""
        from numparq.column.jobs.nested_sink import NestedSink  # most files have nothing nested

        chunk[0, C_ROW_START], chunk[0, C_ROW_STOP] = 0, chunk[0, C_NUM_VALUES]
        return NestedSink(self.leaves[column], self.memory.targets[column], num_rows, rows)

    def _string_runs(self, chunks: np.ndarray, slices: RowSlices, share: int) -> list[int]:
        """Return the bounds of runs of chunks of strings whose rows follow one another, each fetched together."""
        most = min(share, self.context.local.share.window_bytes)
        edges = coalesce_chunks(chunks, most, self.context.reader.max_gap)
        if len(chunks) == 1:
            return edges
        goes_on = (chunks[:, C_QUIRKS] & PREFIX_CARRYOVER) != 0  # strings go on even over the bounds of chunks
        outs, counts = slices.table[:, SLICE_OUT], slices.table[:, SLICE_STOP] - slices.table[:, SLICE_START]
        is_new_run = (outs[1:] != outs[:-1] + counts[:-1]) | goes_on[1:] | goes_on[:-1]
        return sorted({*edges, *(is_new_run.nonzero()[0] + 1).tolist()})


def pays_to_share(sizes: Sequence[int]) -> bool:
    """Whether a second thread saves time, given the bytes that the kernels of each task go through."""
    large = [size for size in sizes if size >= MIN_SHARED_TASK_BYTES]
    total = sum(large)
    return min(total // 2, total - max(large, default=0)) >= SINGLE_THREAD_BYTES


def coalesce_chunks(chunks: np.ndarray, share: int, max_gap: int) -> list[int]:
    """Return the bounds of runs of chunks that are decoded together; a large chunk is a run by itself.

    Parameters
    ----------
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table.
    share : int
        Maximum bytes of a run.
    max_gap : int
        Maximum bytes between two chunks that are fetched with them; they count.
    """
    if len(chunks) == 1:
        return [0, 1]
    sizes = chunks[:, C_END] - chunks[:, C_START]
    gaps = chunks[1:, C_START] - chunks[:-1, C_END]
    limit = max(min(share, MAX_COALESCED_BYTES, page_sources.WINDOW_BYTES * 3 // 4), 1)
    costs = sizes.copy()
    costs[1:] += gaps * ((gaps > 0) & (gaps <= max_gap))
    bucket = costs.cumsum() // limit
    large = sizes > limit
    cuts = ((bucket[1:] != bucket[:-1]) | large[1:] | large[:-1]).nonzero()[0] + 1
    return [0, *cuts.tolist(), len(chunks)]


def decode_columns(
    scheduler: TaskScheduler,
    memory: ReplaceableMemory,
    row_batches: Callable[[], Iterable[RowSlices]],
    columns: Collection[int],
) -> dict[int, DecodedColumn]:
    """Decode columns (positions among those read) into memory; again, as another output type, where values need it.

    `row_batches` returns the rows that are decoded together, whenever it is called.
    """
    decoded: dict[int, DecodedColumn] = {}
    left: Collection[int] = columns
    while left:
        attempt: dict[int, DecodedColumn] = {}
        for column in left:
            attempt[column] = DecodedColumn(memory.values[column], memory.validity[column])
        failed: dict[int, int] = {}
        null_counts = np.zeros(len(memory.targets), np.int64)
        for rows in row_batches():
            tasks = scheduler.build_tasks(rows, left)
            scheduler.run(tasks)
            for task in tasks:
                failed.update(task.sink.failed)
                np.add.at(null_counts, task.columns, task.source.chunks[:, C_NULL_COUNT])
                if task.sink.arrays:
                    attempt[task.columns[0]].arrays.extend(task.sink.arrays)
        for column, buffer in attempt.items():
            buffer.null_count = int(null_counts[column])
        for column, status in failed.items():
            with error_context(column=scheduler.leaves[column].name):
                memory.reallocate(column, fallback_type(memory.targets[column], status))
            del attempt[column]
        decoded |= attempt
        left = failed
    return decoded
