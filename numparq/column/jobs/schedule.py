"""Schedule decode jobs: chunks fetched together, output memory, threads, a second try as another output type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
SINGLE_THREAD_BYTES = 256 << 10
# A job has the bytes of one in this many of a thread's share, or these bytes if there are so many. A larger chunk is a
# job by itself, which shares its pages out.
SHARES_PER_THREAD = 4
MIN_SHARE_BYTES = 256 << 10


@dataclass(frozen=True)
class _FixedColumns:
    """Columns of fixed storage: their places among those decoded, and their outputs and lanes in these."""

    places: list[int]
    outputs: list[FixedOutput]
    output_of: list[int]
    lanes: list[int]


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

    def build_jobs(self, slices: RowSlices, wanted: Collection[int]) -> list[DecodeJob]:
        """Make the jobs for some columns (positions among those read) and all slices.

        Raises
        ------
        ParquetError
            For a chunk that the footer describes wrongly, or that this version does not read.
        """
        columns = np.array(self._decodable(wanted), np.intp)
        if not len(columns) or not len(slices.table):
            return []
        chunks = self._tables.chunk_table(self._template(columns.tolist()), columns, slices)
        total = int((chunks[:, C_END] - chunks[:, C_START]).sum())
        share = max(total // (SHARES_PER_THREAD * self._context.pool.threads), MIN_SHARE_BYTES)
        if np.bitwise_or.reduce(chunks[:, C_QUIRKS]) & PREFIX_CARRYOVER:  # pages only go one after the other
            share = max(share, total)
        fixed = self._fixed_columns(columns.tolist())
        made = list(self._fixed_jobs(fixed, columns, chunks, slices, share)) if fixed.places else []
        for place in sorted({*range(len(columns))}.difference(fixed.places)):
            made.extend(self._variable_jobs(int(columns[place]), chunks[place :: len(columns)], slices, share))
        return made

    def _decodable(self, wanted: Collection[int]) -> list[int]:
        """Return the columns that pages are read of."""
        targets, found = self._memory.targets, []
        for column in wanted:
            if targets[column].storage != "null" or targets[column].nested:
                found.append(column)
        return found

    def _template(self, columns: Sequence[int]) -> np.ndarray:
        """Make the chunk table of what is the same of some columns in every row group."""
        targets = self._memory.targets
        return chunk_template([*map(self.leaves.__getitem__, columns)], [*map(targets.__getitem__, columns)])

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

    def _fixed_columns(self, columns: Sequence[int]) -> _FixedColumns:
        """Find the columns of fixed storage; those of a block share an output."""
        memory, found = self._memory, _FixedColumns([], [], [], [])
        blocks: dict[int, int] = {}
        for place, column in enumerate(columns):
            block = memory.block_of[column]
            if block is None and memory.values[column] is None:
                continue
            number = len(found.outputs) if block is None else blocks.setdefault(block, len(found.outputs))
            if number == len(found.outputs):
                found.outputs.append(fixed_output(memory, column))
            found.places.append(place)
            found.output_of.append(number)
            found.lanes.append(memory.row_of[column] or 0)
        return found

    def _fixed_jobs(
        self, fixed: _FixedColumns, columns: np.ndarray, chunks: np.ndarray, slices: RowSlices, share: int
    ) -> Iterator[DecodeJob]:
        """Build the jobs of columns of fixed storage, chunks of any row groups in the order of the file."""
        count = len(slices)
        if len(fixed.places) < len(columns):
            chunks = chunks.reshape(count, len(columns), -1)[:, fixed.places].reshape(-1, chunks.shape[1])
        owners = np.tile(columns[fixed.places], count)
        output_of = np.tile(np.array(fixed.output_of), count)
        chunks[:, C_OUT] += np.tile(np.array(fixed.lanes) * self._memory.num_rows, count)
        chunks[:, C_OUT] *= chunks[:, C_ITEM_SIZE]
        groups = slices.table[:, SLICE_GROUP].repeat(len(fixed.places))
        order = chunks[:, C_START].argsort(kind="stable")
        chunks, owners, output_of, groups = chunks[order], owners[order], output_of[order], groups[order]
        for first, last in coalesce_chunks(chunks, share, self._context.max_gap):
            yield FixedJob(
                self._context,
                groups[first:last].tolist(),
                owners[first:last].tolist(),
                chunks[first:last],
                is_large(chunks[first:last], share),
                outputs=fixed.outputs,
                output_of=output_of[first:last],
            )

    def _variable_jobs(self, column: int, chunks: np.ndarray, slices: RowSlices, share: int) -> Iterator[DecodeJob]:
        """Build the jobs of a column whose values have no place before they are decoded."""
        target = self._memory.targets[column]
        if target.nested:
            for number in range(len(slices)):
                yield self._nested(column, chunks[number : number + 1].copy(), slices[number])
            return
        make = BinaryJob if target.storage == "binary" else DictionaryJob
        for first, last in self._string_runs(chunks, slices, share):
            part = slices[first:last]
            run = chunks[first:last].copy()
            run[:, C_OUT] = run[:, C_VALIDITY] = 0
            hint = self._tables.estimate_string_bytes(column, part)
            place: tuple[Any, ...] = self._context, part.row_groups, [column] * len(run), run, is_large(run, share)
            yield make(*place, utf8=target.utf8, size_hint=hint)

    def _string_runs(self, chunks: np.ndarray, slices: RowSlices, share: int) -> Iterator[tuple[int, int]]:
        """Divide chunks of strings into runs of rows that follow one another, each fetched together."""
        if len(chunks) == 1:
            return iter([(0, 1)])
        edges = [0]
        goes_on = (chunks[:, C_QUIRKS] & PREFIX_CARRYOVER) != 0  # strings go on even over the bounds of chunks
        outs, counts = slices.table[:, SLICE_OUT], slices.table[:, SLICE_STOP] - slices.table[:, SLICE_START]
        is_apart = (outs[1:] != outs[:-1] + counts[:-1]) | goes_on[1:] | goes_on[:-1]
        for first, last in coalesce_chunks(chunks, share, self._context.max_gap):
            edges.extend((np.flatnonzero(is_apart[first : last - 1]) + first + 1).tolist())
            edges.append(last)
        return pairwise(edges)

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


def is_large(chunks: np.ndarray, share: int) -> bool:
    """Whether chunks are a single one, whose pages are shared out."""
    return len(chunks) == 1 and bool(chunks[0, C_END] - chunks[0, C_START] > share)


def coalesce_chunks(chunks: np.ndarray, share: int, max_gap: int) -> Iterator[tuple[int, int]]:
    """Divide chunks, in their order, into runs that are decoded together; a large one is a run by itself.

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
        return pairwise([0, 1])
    sizes = chunks[:, C_END] - chunks[:, C_START]
    gaps = chunks[1:, C_START] - chunks[:-1, C_END]
    limit = max(min(share, MAX_COALESCED_BYTES, page_walk.WINDOW_BYTES * 3 // 4), 1)
    costs = sizes.copy()
    costs[1:] += np.where((gaps > 0) & (gaps <= max_gap), gaps, 0)
    bucket = costs.cumsum() // limit
    large = sizes > limit
    cuts = np.flatnonzero((bucket[1:] != bucket[:-1]) | large[1:] | large[:-1]) + 1
    return pairwise([0, *cuts.tolist(), len(chunks)])


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
