"""From columns and row slices to jobs: which chunks are fetched together, and which memory each is decoded to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..kernels.tables import (
    C_END,
    C_FAULTS,
    C_ITEM_SIZE,
    C_MASK,
    C_NUM_VALUES,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    C_START,
    PREFIXES_GO_ON,
)
from ..schema import Leaf
from ..targets import Target
from . import pages as walking
from .binary_job import BinaryJob
from .chunks import ChunkTables, RowSlice, columns_table
from .context import Context
from .dictionary_job import DictionaryJob
from .fixed import NO_MASK, FixedOutput
from .fixed_job import FixedJob
from .job import Job
from .scratch import allocate
from .side_by_side import SideBySideJob

# Chunks are fetched together up to this many bytes. Two times as many are still walked as a single window, and have to
# be: dictionaries and null counts of several chunks last for one window only.
GROUP_BYTES = walking.WINDOW_BYTES * 3 // 4
# Fewer bytes than that, of all that a second thread could take over, are done before it has begun.
ALONE_BYTES = 128 << 10
# A job of a single chunk shares its pages out when its bytes are more than one in this many of a thread's share.
SHARES = 4
SMALLEST_SHARE = 64 << 10


class Memory(Protocol):
    """The memory that a frame's columns are decoded to; `numparq.frame.Layout` is one."""

    num_rows: int
    targets: list[Target]
    values: list[np.ndarray | None]
    validity: list[np.ndarray | None]
    blocks: list[np.ndarray]
    block_of: list[int | None]
    row_of: list[int | None]


def item_of(memory: Memory, column: int, row: int) -> int:
    """Give which item of its block, or of its own array, a row of a column is."""
    return (memory.row_of[column] or 0) * memory.num_rows + row


def output_of(memory: Memory, column: int) -> FixedOutput:
    """Give the memory that a column of fixed storage is in: its block, or an array of its own."""
    block, values, validity = memory.block_of[column], memory.values[column], memory.validity[column]
    if block is not None:
        return FixedOutput(memory.blocks[block].reshape(-1).view(np.uint8), NO_MASK)
    assert values is not None
    return FixedOutput(values.view(np.uint8), NO_MASK if validity is None else validity)


@dataclass(frozen=True)
class _Group:
    """Columns of fixed storage that share an output: their places in the chunk tables, and their rows in it."""

    places: np.ndarray
    lanes: np.ndarray
    output: FixedOutput


class JobMaker:
    """Makes the jobs that decode columns.

    Parameters
    ----------
    context : Context
        Of the read.
    tables : ChunkTables
        The chunks of the columns read.
    leaves : sequence of Leaf
        The columns read.
    memory : Memory
        Where they are decoded to.
    """

    def __init__(self, context: Context, tables: ChunkTables, leaves: Sequence[Leaf], memory: Memory) -> None:
        self._context = context
        self._tables = tables
        self._leaves = leaves
        self._memory = memory

    def jobs(self, slices: Sequence[RowSlice], wanted: Collection[int]) -> list[Job]:
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
        common = self._common(columns.tolist())
        groups, others = self._groups(columns)
        tables = [self._tables.of_row_group(common, columns, rows) for rows in slices]
        total = sum(int((table[:, C_END] - table[:, C_START]).sum()) for table in tables)
        share = max(total // (SHARES * self._context.crew.threads), SMALLEST_SHARE)
        # Of such files pages only go one after the other.
        if any(np.count_nonzero(table[:, C_FAULTS] & PREFIXES_GO_ON) for table in tables):
            share = max(share, total)
        made: list[Job] = []
        for rows, table in zip(slices, tables, strict=True):
            for bundle in _bundles(groups, table):
                made.extend(self._fixed(bundle, columns, table, rows, share))
            made.extend(self._variable(int(columns[place]), table[place : place + 1], rows, share) for place in others)
        return made

    def _common(self, columns: Sequence[int]) -> np.ndarray:
        """Make the chunk table of what is the same of some columns in every row group."""
        targets = self._memory.targets
        return columns_table([self._leaves[column] for column in columns], [targets[column] for column in columns])

    def run(self, jobs: Sequence[Job]) -> None:
        """Do jobs, on all threads of the crew where that pays."""
        sizes = [job.num_bytes for job in jobs] if len(jobs) > 1 else []
        total = sum(sizes)
        if min(total // 2, total - max(sizes, default=0)) < ALONE_BYTES:
            for job in jobs:
                job()
        else:
            self._context.crew.run(self._in_turn(jobs))

    def _in_turn(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Give jobs in the order in which threads take them."""
        return jobs

    def _groups(self, columns: np.ndarray) -> tuple[list[_Group], list[int]]:
        """Divide columns into groups of fixed storage, by output, and the places of all others."""
        memory = self._memory
        blocks: dict[int, list[int]] = {}
        groups: list[_Group] = []
        others: list[int] = []
        for place, column in enumerate(columns.tolist()):
            values, block = memory.values[column], memory.block_of[column]
            if block is not None:
                blocks.setdefault(block, []).append(place)
            elif values is None:
                others.append(place)
            else:
                groups.append(_Group(np.array([place]), np.zeros(1, np.int64), output_of(memory, column)))
        for places in blocks.values():
            lanes = np.array([memory.row_of[columns[place]] for place in places], np.int64)
            groups.append(_Group(np.array(places), lanes, output_of(memory, int(columns[places[0]]))))
        return groups, others

    def _fixed(
        self, bundle: Sequence[_Group], columns: np.ndarray, table: np.ndarray, rows: RowSlice, share: int
    ) -> Iterator[FixedJob]:
        places = np.concatenate([group.places for group in bundle])
        lanes = np.concatenate([group.lanes for group in bundle])
        chunks = table[places]
        chunks[:, C_OUT] = (lanes * self._memory.num_rows + rows.out) * chunks[:, C_ITEM_SIZE]
        order = chunks[:, C_START].argsort(kind="stable")
        chunks, owners = chunks[order], columns[places[order]].tolist()
        several = bundle if len(bundle) > 1 else []
        outputs = {int(columns[place]): group.output for group in several for place in group.places.tolist()}
        for first, last in runs_of(chunks, share, self._context.gap):
            run = np.ascontiguousarray(chunks[first:last])
            shared = last - first == 1 and bool(run[0, C_END] - run[0, C_START] > share)
            place: tuple[Any, ...] = self._context, rows.row_group, owners[first:last], run, shared
            output = outputs.get(owners[first], bundle[0].output)
            if not outputs or last - first == 1:
                yield FixedJob(*place, output=output)
            else:
                yield SideBySideJob(*place, output=output, outputs=outputs)

    def _variable(self, column: int, table: np.ndarray, rows: RowSlice, share: int) -> Job:
        target = self._memory.targets[column]
        if target.nested:
            return self._nested(column, target, table, rows)
        size = int(table[0, C_END] - table[0, C_START])
        shared = size > share
        hint = self._tables.byte_array_size(column, rows)
        chunks = table.copy()
        chunks[0, C_OUT] = chunks[0, C_MASK] = 0
        if target.storage == "binary":
            return BinaryJob(self._context, rows.row_group, [column], chunks, shared, utf8=target.utf8,
                             size_hint=hint)  # fmt: skip
        codes = allocate(len(rows), "i4")
        return DictionaryJob(self._context, rows.row_group, [column], chunks, shared, codes=codes, utf8=target.utf8,
                             size_hint=hint, output=FixedOutput(codes.view(np.uint8), NO_MASK))  # fmt: skip

    def _nested(self, column: int, target: Target, table: np.ndarray, rows: RowSlice) -> Job:
        from .nested import NestedJob  # most files have nothing nested

        chunks = table.copy()
        chunks[0, C_ROW_START], chunks[0, C_ROW_STOP] = 0, chunks[0, C_NUM_VALUES]  # every page, whatever the rows
        num_rows = self._tables.num_rows_of(rows.row_group)
        return NestedJob(self._context, rows.row_group, [column], chunks, False, leaf=self._leaves[column],
                         target=target, rows=rows, num_rows=num_rows)  # fmt: skip


def _bundles(groups: list[_Group], table: np.ndarray) -> Iterator[Sequence[_Group]]:
    """Divide groups into those whose chunks are walked over together: all, where these are small."""
    sizes = table[:, C_END] - table[:, C_START]
    if len(groups) > 1 and int(sizes.sum()) <= SMALLEST_SHARE:
        return iter([groups])
    return iter([[group] for group in groups])


def runs_of(chunks: np.ndarray, share: int, gap: int) -> Iterator[tuple[int, int]]:
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
    limit = max(min(share, GROUP_BYTES, walking.WINDOW_BYTES * 3 // 4), 1)
    gaps = starts[1:] - ends[:-1]
    bucket = (ends - starts[0]) // limit
    large = ends - starts > limit
    cuts = np.flatnonzero((gaps < 0) | (gaps > gap) | (bucket[1:] != bucket[:-1]) | large[1:] | large[:-1]) + 1
    edges = [0, *cuts.tolist(), len(chunks)]
    return pairwise(edges)
