"""Batches of small files, decoded as the row groups of one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.jobs.multi_group import MultiGroupScheduler
from numparq.column.nested.levels import NestedLeaf
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.row_selection import RowSlice
from numparq.errors import ParquetError
from numparq.io.local_source import BytesSource
from numparq.kernels.tables import C_END, C_NULL_COUNT, C_START, SLACK
from numparq.to_pandas.frame import BlockLayout
from numparq.types.output_type import fallback_type

from .file_reader import DatasetFileReader

__all__ = ["FileBatchReader", "batch_small_files"]

# So many bytes of files are decoded together.
MAX_BATCH_BYTES = 8 << 20


def batch_small_files(parts: Iterable[DatasetFileReader]) -> list[DatasetFileReader | FileBatchReader]:
    """Put parts together that can be decoded as one; the others stay as they are.

    Parameters
    ----------
    parts : iterable of DatasetFileReader
        In any order; their rows are found.
    """
    made: list[DatasetFileReader | FileBatchReader] = []
    alike: dict[object, _SmallFileGroup] = {}
    for part in parts:
        key = part.joint_read_key()
        if key is None:
            made.append(part)
            continue
        size, group = part.file.source.size, alike.setdefault(key, _SmallFileGroup([]))
        if group.parts and group.num_bytes + size > MAX_BATCH_BYTES:
            made.append(group.together())
            group.parts, group.num_bytes = [], 0
        group.parts.append(part)
        group.num_bytes += size
    return [*made, *(group.together() for group in alike.values())]


@dataclass
class _SmallFileGroup:
    """Parts of one likeness, and the bytes of their files."""

    parts: list[DatasetFileReader]
    num_bytes: int = 0

    def together(self) -> DatasetFileReader | FileBatchReader:
        return FileBatchReader(self.parts) if len(self.parts) > 1 else self.parts[0]


class _BatchChunkTables:
    """The chunk tables of several files, whose bytes are behind one another; parameters as of `FileBatchReader`."""

    def __init__(self, tables: Sequence[ChunkTables], starts: Sequence[int], owners: Sequence[tuple[int, int]]) -> None:
        self._tables = tables
        self._starts = starts
        self._owners = owners

    def row_group_table(self, common: np.ndarray, columns: np.ndarray, rows: RowSlice) -> np.ndarray:
        """Make the chunk table of some columns in one row group; see `ChunkTables`."""
        which, own = self._own(rows)
        table = self._tables[which].row_group_table(common, columns, own)
        table[:, [C_START, C_END]] += self._starts[which]
        return table

    def estimate_string_bytes(self, position: int, rows: RowSlice) -> int:
        """Guess how many bytes values take; see `ChunkTables`."""
        which, own = self._own(rows)
        return self._tables[which].estimate_string_bytes(position, own)

    def num_rows(self, row_group: int) -> int:
        """Give the rows of a row group."""
        which, group = self._owners[row_group]
        return self._tables[which].num_rows(group)

    def _own(self, rows: RowSlice) -> tuple[int, RowSlice]:
        which, group = self._owners[rows.row_group]
        return which, RowSlice(group, rows.start, rows.stop, rows.out)


class FileBatchReader:
    """Parts of several files that have the same columns, and of which all rows are wanted.

    Parameters
    ----------
    parts : sequence of DatasetFileReader
        Those of one likeness.
    """

    def __init__(self, parts: Sequence[DatasetFileReader]) -> None:
        self.parts = parts
        # Which part each row group is of, and its ordinal there.
        self._owners = [(which, rows.row_group) for which, part in enumerate(parts) for rows in part.rows.selections]

    def decode(self, layout: BlockLayout, firsts: Sequence[int]) -> list[dict[int, DecodedColumn]]:
        """Decode the rows of all files.

        Parameters
        ----------
        layout : BlockLayout
            The table's memory.
        firsts : sequence of int
            For each file, the row of the table that its first one becomes.

        Returns
        -------
        list of dict of int to ColumnBuffer
            For each file what it adds to the table's leaves, by their places.
        """
        first = self.parts[0]
        views = [part.file.source.view(0, part.file.source.size, 0) for part in self.parts]
        data = np.concatenate([*(view for view in views if view is not None), np.zeros(SLACK, np.uint8)])
        starts = list(accumulate((part.file.source.size for part in self.parts), initial=0))
        context = first.rows.context_for(BytesSource(data))
        tables = _BatchChunkTables([part.rows.chunk_tables for part in self.parts], starts, self._owners)
        memory = first.shared_memory(layout)
        maker = MultiGroupScheduler(context, tables, first.rows.leaves, memory)  # type: ignore[arg-type]
        made = [part.fill_missing(layout, at) for part, at in zip(self.parts, firsts, strict=True)]
        wanted = first.shared_leaves(layout)
        for found in made:
            found.update({place: DecodedColumn() for place in wanted.values()})
        try:
            jobs = maker.build_jobs(self._slices(firsts), wanted)
            maker.run(jobs)
        except ParquetError as error:
            raise self._named(error) from None
        for job in jobs:
            for column, status in job.retries.items():
                memory.reallocate(column, fallback_type(memory.targets[column], status))
            which, row_group = self._owners[job.row_group]
            buffers = made[which]
            for piece in job.arrays:
                if isinstance(piece, NestedLeaf):
                    piece.row_group = row_group
            for column, nulls in zip(job.columns, job.chunks[:, C_NULL_COUNT].tolist(), strict=True):
                buffers[wanted[column]].null_count += nulls
            buffers[wanted[job.columns[0]]].arrays.extend(job.arrays)
        return made

    def _slices(self, firsts: Sequence[int]) -> list[RowSlice]:
        """Give the rows, with row groups counted through, and where they go in the table."""
        moved = ((rows, at) for part, at in zip(self.parts, firsts, strict=True) for rows in part.rows.selections)
        return [RowSlice(number, 0, len(rows), at + rows.out) for number, (rows, at) in enumerate(moved)]

    def _named(self, error: ParquetError) -> ParquetError:
        """Say of which file an error is."""
        number = error.where.get("row_group")
        if isinstance(number, int):
            which, error.where["row_group"] = self._owners[number]
            error.where["file"] = self.parts[which].name
        return error
