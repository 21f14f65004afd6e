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
from numparq.column.read.output import NO_MASK, FixedOutput, fixed_output
from numparq.column.read.row_selection import RowSlice
from numparq.column.scratch import allocate
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
from numparq.types.output_type import OutputType, fallback_type

from .job import DecodeJob
from .slice import BinaryJob, DictionaryJob, FixedJob, MultiOutputJob

if TYPE_CHECKING:
    from numparq.column.read.output import OutputMemory, ReplaceableMemory

__all__ = ["decode_columns"]

# Chunks are fetched together up to this many bytes. Two times as many are still walked as a single window, and have to
# be: dictionaries and null counts of several chunks last for one window only.
MAX_COALESCED_BYTES = page_walk.WINDOW_BYTES * 3 // 4
# Fewer bytes than that, of all that a second thread could take over, are done before it has begun.
SINGLE_THREAD_BYTES = 128 << 10
# A job of a single chunk shares its pages out when its bytes are more than one in this many of a thread's share.
SHARES_PER_THREAD = 4
MIN_SHARE_BYTES = 64 << 10


@dataclass(frozen=True)
class _OutputGroup:
    """Columns of fixed storage that share an output: their places in the chunk tables, and their rows in it."""

    places: np.ndarray
    lanes: np.ndarray
    output: FixedOutput


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
        self._leaves = leaves
        self._memory = memory

    def build_jobs(self, slices: Sequence[RowSlice], wanted: Collection[int]) -> list[DecodeJob]:
        """Make the jobs for some columns (positions among those read) and all slices.

        Raises
        ------
        ParquetError
            For a chunk that the footer describes wrongly, or that this version does not read.
        """
        targets = self._memory.targets
        columns = np.array(
            [column for column in wanted if targets[column].storage != "null" or targets[column].nested], np.intp
        )
        if not len(columns):
            return []
        common = self._template(columns.tolist())
        groups, others = self._groups(columns)
        tables = [self._tables.row_group_table(common, columns, rows) for rows in slices]
        total = sum(int((table[:, C_END] - table[:, C_START]).sum()) for table in tables)
        share = max(total // (SHARES_PER_THREAD * self._context.pool.threads), MIN_SHARE_BYTES)
        # Of such files pages only go one after the other.
        if any(np.count_nonzero(table[:, C_QUIRKS] & PREFIX_CARRYOVER) for table in tables):
            share = max(share, total)
        made: list[DecodeJob] = []
        for rows, table in zip(slices, tables, strict=True):
            for bundle in _bundle_groups(groups, table):
                made.extend(self._fixed(bundle, columns, table, rows, share))
            made.extend(self._variable(int(columns[place]), table[place : place + 1], rows, share) for place in others)
        return made

    def _template(self, columns: Sequence[int]) -> np.ndarray:
        """Make the chunk table of what is the same of some columns in every row group."""
        targets = self._memory.targets
        return chunk_template([self._leaves[column] for column in columns], [targets[column] for column in columns])

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

    def _groups(self, columns: np.ndarray) -> tuple[list[_OutputGroup], list[int]]:
        """Divide columns into groups of fixed storage, by output, and the places of all others."""
        memory = self._memory
        blocks: dict[int, list[int]] = {}
        groups: list[_OutputGroup] = []
        others: list[int] = []
        for place, column in enumerate(columns.tolist()):
            values, block = memory.values[column], memory.block_of[column]
            if block is not None:
                blocks.setdefault(block, []).append(place)
            elif values is None:
                others.append(place)
            else:
                groups.append(_OutputGroup(np.array([place]), np.zeros(1, np.int64), fixed_output(memory, column)))
        for places in blocks.values():
            lanes = np.array([memory.row_of[columns[place]] for place in places], np.int64)
            groups.append(_OutputGroup(np.array(places), lanes, fixed_output(memory, int(columns[places[0]]))))
        return groups, others

    def _fixed(
        self, bundle: Sequence[_OutputGroup], columns: np.ndarray, table: np.ndarray, rows: RowSlice, share: int
    ) -> Iterator[FixedJob]:
        places = np.concatenate([group.places for group in bundle])
        lanes = np.concatenate([group.lanes for group in bundle])
        chunks = table[places]
        chunks[:, C_OUT] = (lanes * self._memory.num_rows + rows.out) * chunks[:, C_ITEM_SIZE]
        order = chunks[:, C_START].argsort(kind="stable")
        chunks, owners = chunks[order], columns[places[order]].tolist()
        several = bundle if len(bundle) > 1 else []
        outputs = {int(columns[place]): group.output for group in several for place in group.places.tolist()}
        for first, last in coalesce_chunks(chunks, share, self._context.max_gap):
            run = np.ascontiguousarray(chunks[first:last])
            shared = last - first == 1 and bool(run[0, C_END] - run[0, C_START] > share)
            place: tuple[Any, ...] = self._context, rows.row_group, owners[first:last], run, shared
            output = outputs.get(owners[first], bundle[0].output)
            if not outputs or last - first == 1:
                yield FixedJob(*place, output=output)
            else:
                yield MultiOutputJob(*place, output=output, outputs=outputs)

    def _variable(self, column: int, table: np.ndarray, rows: RowSlice, share: int) -> DecodeJob:
        target = self._memory.targets[column]
        if target.nested:
            return self._nested(column, target, table, rows)
        size = int(table[0, C_END] - table[0, C_START])
        shared = size > share
        hint = self._tables.estimate_string_bytes(column, rows)
        chunks = table.copy()
        chunks[0, C_OUT] = chunks[0, C_VALIDITY] = 0
        if target.storage == "binary":
            return BinaryJob(self._context, rows.row_group, [column], chunks, shared, utf8=target.utf8, size_hint=hint)
        codes = allocate(len(rows), "i4")
        return DictionaryJob(
            self._context,
            rows.row_group,
            [column],
            chunks,
            shared,
            codes=codes,
            utf8=target.utf8,
            size_hint=hint,
            output=FixedOutput(codes.view(np.uint8), NO_MASK),
        )

    def _nested(self, column: int, target: OutputType, table: np.ndarray, rows: RowSlice) -> DecodeJob:
        from .nested import NestedJob  # most files have nothing nested

        chunks = table.copy()
        chunks[0, C_ROW_START], chunks[0, C_ROW_STOP] = 0, chunks[0, C_NUM_VALUES]  # every page, whatever the rows
        num_rows = self._tables.num_rows(rows.row_group)
        return NestedJob(
            self._context,
            rows.row_group,
            [column],
            chunks,
            False,
            leaf=self._leaves[column],
            target=target,
            rows=rows,
            num_rows=num_rows,
        )


def _bundle_groups(groups: list[_OutputGroup], table: np.ndarray) -> Iterator[Sequence[_OutputGroup]]:
    """Divide groups into those whose chunks are walked over together: all, where these are small."""
    sizes = table[:, C_END] - table[:, C_START]
    if len(groups) > 1 and int(sizes.sum()) <= MIN_SHARE_BYTES:
        return iter([groups])
    return iter([[group] for group in groups])


def coalesce_chunks(chunks: np.ndarray, share: int, gap: int) -> Iterator[tuple[int, int]]:
    """Divide chunks, in the order of the file, into runs that are fetched together; a large one is a run by itself.

    Parameters
    ----------
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table.
    share, gap : int
        The bytes of a run, and those between two chunks of it, at most.
    """
    if len(chunks) == 1:
        return pairwise([0, 1])
    starts, ends = chunks[:, C_START], chunks[:, C_END]
    limit = max(min(share, MAX_COALESCED_BYTES, page_walk.WINDOW_BYTES * 3 // 4), 1)
    gaps = starts[1:] - ends[:-1]
    bucket = (ends - starts[0]) // limit
    large = ends - starts > limit
    cuts = np.flatnonzero((gaps < 0) | (gaps > gap) | (bucket[1:] != bucket[:-1]) | large[1:] | large[:-1]) + 1
    edges = [0, *cuts.tolist(), len(chunks)]
    return pairwise(edges)


def decode_columns(
    scheduler: JobScheduler,
    memory: ReplaceableMemory,
    row_batches: Callable[[], Iterable[Sequence[Any]]],
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
        made = {column: DecodedColumn(memory.values[column], memory.validity[column]) for column in wanted}
        failed: dict[int, int] = {}
        for rows in row_batches():
            jobs = scheduler.build_jobs(rows, wanted)
            scheduler.run(jobs)
            for job in jobs:
                failed.update(job.retries)
                for column, nulls in zip(job.columns, job.chunks[:, C_NULL_COUNT].tolist(), strict=True):
                    made[column].null_count += nulls
                made[job.columns[0]].arrays.extend(job.arrays)
        for column, status in failed.items():
            memory.reallocate(column, fallback_type(memory.targets[column], status))
            del made[column]
        done |= made
        wanted = failed
    return done
