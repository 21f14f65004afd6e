"""Schedule decode jobs: chunks fetched together, output memory, threads, a second try as another output type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read import page_walk
from numparq.column.read.chunk_table import ChunkTables, chunk_template
from numparq.column.read.context import ReadContext
from numparq.column.read.output import FixedOutput, fixed_output
from numparq.column.read.row_selection import SLICE_GROUP, SLICE_OUT, SLICE_START, SLICE_STOP, RowSlice, RowSlices
from numparq.errors import error_context
from numparq.format.schema import Leaf
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
    C_VALIDITY,
    PREFIX_CARRYOVER,
)
from numparq.types.output_type import fallback_type

from .job import DecodeJob
from .slice import BinaryJob, DictionaryJob, FixedJob

if TYPE_CHECKING:
    from numparq.column.read.output import OutputMemory, ReplaceableMemory

__all__ = ["decode_columns"]

# Chunks are fetched together up to this many bytes, gaps included: dictionaries and null counts of several chunks last
# for one window only.
MAX_COALESCED_BYTES = page_walk.WINDOW_BYTES * 3 // 4
# Fewer bytes than that, of all that a second thread could take over, are done before it has begun.
SINGLE_THREAD_BYTES = 512 << 10
# A job has the bytes of one in this many of a thread's share, or these bytes if there are so many. A larger chunk is a
# job by itself, which shares its pages out.
SHARES_PER_THREAD = 4
MIN_SHARE_BYTES = 256 << 10


class JobScheduler:
    """Makes the jobs that decode columns.

    Parameters
    ----------
    context : ReadContext
        Of the read.
    tables : ChunkTables
        The chunks of the columns read.
    leaves : sequence of Leaf
        The columns read.
    memory : OutputMemory
        Where they are decoded to.
    """

    def __init__(self, context: ReadContext, tables: ChunkTables, leaves: Sequence[Leaf], memory: OutputMemory) -> None:
        self._context = context
        self._tables = tables
        self.leaves = leaves
        self._memory = memory
        self.string_job: Callable[..., DecodeJob] = BinaryJob  # of columns all of whose rows are decoded

    def build_jobs(self, slices: RowSlices, wanted: Collection[int]) -> list[DecodeJob]:
        """Make the jobs for some columns (positions among those read) and all slices.

        Raises
        ------
        ParquetError
            For a chunk that the footer describes wrongly, or that this version does not read.
        """
        columns, template = self._decodable(wanted)
        if not columns or not len(slices.table):
            return []
        chunks = self._tables.chunk_table(template, np.array(columns, np.intp), slices)
        sizes = chunks[:, C_END] - chunks[:, C_START]
        total = int(np.add.reduce(sizes))
        share = max(total // (SHARES_PER_THREAD * self._context.pool.threads), MIN_SHARE_BYTES)
        if np.bitwise_or.reduce(chunks[:, C_QUIRKS]) & PREFIX_CARRYOVER:  # pages only go one after the other
            share = max(share, total)
        memory = self._memory
        fixed: list[int] = []
        variable: list[int] = []
        for place, column in enumerate(columns):
            has_memory = memory.block_of[column] is not None or memory.values[column] is not None
            (fixed if has_memory else variable).append(place)
        made = self._fixed_jobs(fixed, columns, chunks, slices, share) if fixed else []
        for place in variable:
            made.extend(self._variable_jobs(columns[place], chunks[place :: len(columns)], slices, share))
        return made

    def _decodable(self, wanted: Collection[int]) -> tuple[list[int], np.ndarray]:
        """Return the columns that pages are read of, and the chunk table of what all their row groups share."""
        targets, found = self._memory.targets, []
        for column in wanted:
            if targets[column].storage != "null" or targets[column].nested:
                found.append(column)
        return found, chunk_template([*map(self.leaves.__getitem__, found)], [*map(targets.__getitem__, found)])

    def run(self, jobs: Sequence[DecodeJob]) -> None:
        """Do jobs, on all threads of the crew where that pays."""
        sizes = [job.num_bytes for job in jobs] if len(jobs) > 1 else []
        total = sum(sizes)
        if min(total // 2, total - max(sizes, default=0)) < SINGLE_THREAD_BYTES:
            for job in jobs:
                job()
        else:
            self._context.pool.run(self._run_order(jobs))

    def _run_order(self, jobs: Sequence[DecodeJob]) -> Sequence[DecodeJob]:
        """Give jobs in the order in which threads take them."""
        return jobs

    def _fixed_jobs(
        self, places: Sequence[int], columns: Sequence[int], chunks: np.ndarray, slices: RowSlices, share: int
    ) -> list[DecodeJob]:
        """Build the jobs of columns of fixed storage (places in `columns`), chunks in the order of the file."""
        memory, count = self._memory, len(slices.table)
        outputs: list[FixedOutput] = []
        of_block: dict[int, int] = {}  # columns of a block share an output
        owners, output_of, lanes = [], [], []
        for place in places:
            column = columns[place]
            block = memory.block_of[column]
            number = len(outputs) if block is None else of_block.setdefault(block, len(outputs))
            if number == len(outputs):
                outputs.append(fixed_output(memory, column))
            owners.append(column)
            output_of.append(number)
            lanes.append(memory.row_of[column] or 0)
        if len(places) < len(columns):
            chunks = chunks.reshape(count, len(columns), -1)[:, places].reshape(-1, chunks.shape[1])
        order = chunks[:, C_START].argsort(kind="stable")
        chunks, of_column = chunks[order], order % len(places)
        chunks[:, C_OUT] += (np.array(lanes) * memory.num_rows)[of_column]
        chunks[:, C_OUT] *= chunks[:, C_ITEM_SIZE]
        groups = slices.table[:, SLICE_GROUP][order // len(places)].tolist()
        chunk_owners, chunk_outputs = np.array(owners)[of_column].tolist(), np.array(output_of)[of_column]
        edges = coalesce_chunks(chunks, share, self._context.reader.max_gap)
        made: list[DecodeJob] = []
        for first, last in pairwise(edges):
            run = chunks[first:last]
            job = FixedJob(
                self._context,
                groups[first:last],
                chunk_owners[first:last],
                run,
                last - first == 1 and bool(run[0, C_END] - run[0, C_START] > share),
                outputs=outputs,
                output_of=chunk_outputs[first:last],
            )
            made.append(job)
        return made

    def _variable_jobs(self, column: int, chunks: np.ndarray, slices: RowSlices, share: int) -> list[DecodeJob]:
        """Build the jobs of a column whose values have no place before they are decoded."""
        target = self._memory.targets[column]
        if target.nested:
            return [
                self._nested(column, chunks[number : number + 1].copy(), slices[number])
                for number in range(len(slices))
            ]
        made: list[DecodeJob] = []
        make = self.string_job if target.storage == "binary" else partial(DictionaryJob, string_job=self.string_job)
        for first, last in pairwise(self._string_runs(chunks, slices, share)):
            part = slices if last - first == len(slices.table) else slices[first:last]
            run = chunks[first:last].copy()
            run[:, C_OUT] = run[:, C_VALIDITY] = 0
            hint = self._tables.estimate_string_bytes(column, part)
            is_large = last - first == 1 and bool(run[0, C_END] - run[0, C_START] > share)
            place: tuple[Any, ...] = self._context, part.row_groups, [column] * len(run), run, is_large
            made.append(make(*place, utf8=target.utf8, size_hint=hint))
        return made

    def _string_runs(self, chunks: np.ndarray, slices: RowSlices, share: int) -> list[int]:
        """Return the bounds of runs of chunks of strings whose rows follow one another, each fetched together."""
        edges = coalesce_chunks(chunks, share, self._context.reader.max_gap)
        if len(chunks) == 1:
            return edges
        goes_on = (chunks[:, C_QUIRKS] & PREFIX_CARRYOVER) != 0  # strings go on even over the bounds of chunks
        outs, counts = slices.table[:, SLICE_OUT], slices.table[:, SLICE_STOP] - slices.table[:, SLICE_START]
        is_apart = (outs[1:] != outs[:-1] + counts[:-1]) | goes_on[1:] | goes_on[:-1]
        return sorted({*edges, *(is_apart.nonzero()[0] + 1).tolist()})

    def _nested(self, column: int, chunks: np.ndarray, rows: RowSlice) -> DecodeJob:
        from .nested import NestedJob  # most files have nothing nested

        chunks[0, C_ROW_START], chunks[0, C_ROW_STOP] = 0, chunks[0, C_NUM_VALUES]  # every page, whatever the rows
        return NestedJob(
            self._context,
            [rows.row_group],
            [column],
            chunks,
            False,
            leaf=self.leaves[column],
            target=self._memory.targets[column],
            rows=rows,
            num_rows=self._tables.num_rows(rows.row_group),
        )


def coalesce_chunks(chunks: np.ndarray, share: int, max_gap: int) -> list[int]:
    """Return the bounds of runs of chunks that are decoded together; a large chunk is a run by itself.

    Parameters
    ----------
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table.
    share : int
        The bytes of a run at most.
    max_gap : int
        The bytes between two chunks, at most, that are fetched along; they count.
    """
    if len(chunks) == 1:
        return [0, 1]
    sizes = chunks[:, C_END] - chunks[:, C_START]
    gaps = chunks[1:, C_START] - chunks[:-1, C_END]
    limit = max(min(share, MAX_COALESCED_BYTES, page_walk.WINDOW_BYTES * 3 // 4), 1)
    costs = sizes.copy()
    costs[1:] += gaps * ((gaps > 0) & (gaps <= max_gap))
    bucket = costs.cumsum() // limit
    large = sizes > limit
    cuts = ((bucket[1:] != bucket[:-1]) | large[1:] | large[:-1]).nonzero()[0] + 1
    return [0, *cuts.tolist(), len(chunks)]


def decode_columns(
    scheduler: JobScheduler,
    memory: ReplaceableMemory,
    row_batches: Callable[[], Iterable[Any]],
    columns: Collection[int],
) -> dict[int, DecodedColumn]:
    """Decode columns into memory.

    Parameters
    ----------
    scheduler : JobScheduler
        Makes the jobs.
    memory : ReplaceableMemory
        Where the maker has them decode to.
    row_batches : callable
        Gives the rows that are decoded together, as `JobScheduler.jobs` takes them; as often as it is called.
    columns : collection of int
        The columns, by their positions among those read.

    Returns
    -------
    dict of int to ColumnBuffer
        By position.
    """
    done: dict[int, DecodedColumn] = {}
    wanted: Collection[int] = columns
    while wanted:
        made: dict[int, DecodedColumn] = {}
        for column in wanted:
            made[column] = DecodedColumn(memory.values[column], memory.validity[column])
        failed: dict[int, int] = {}
        null_counts = np.zeros(len(memory.targets), np.int64)
        for rows in row_batches():
            jobs = scheduler.build_jobs(rows, wanted)
            scheduler.run(jobs)
            for job in jobs:
                failed.update(job.retries)
                np.add.at(null_counts, job.columns, job.chunks[:, C_NULL_COUNT])
                if job.arrays:
                    made[job.columns[0]].arrays.extend(job.arrays)
        for column, buffer in made.items():
            buffer.null_count = int(null_counts[column])
        for column, status in failed.items():
            with error_context(column=scheduler.leaves[column].name):
                memory.reallocate(column, fallback_type(memory.targets[column], status))
            del made[column]
        done |= made
        wanted = failed
    return done
