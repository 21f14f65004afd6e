"""Batches of small files, decoded as the row groups of one file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from numparq.column.buffers import DecodedColumn, DictionaryArray
from numparq.column.jobs.job import DecodeJob
from numparq.column.jobs.schedule import JobScheduler
from numparq.column.jobs.slice import DictionaryJob
from numparq.column.nested.levels import NestedLeaf
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.row_selection import SLICE_GROUP, RowSlices
from numparq.errors import ParquetError, error_context
from numparq.io.local_source import BytesSource
from numparq.io.small_files import SmallFileSource
from numparq.io.source import Source
from numparq.kernels.tables import C_END, C_NULL_COUNT, C_ROW_START, C_ROW_STOP, C_START, SLACK
from numparq.types.output_type import fallback_type

from .file_reader import DatasetFileReader
from .shared_memory import FileMemory, SharedMemory

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

    def __init__(self, tables: Sequence[ChunkTables], starts: Sequence[int], owners: np.ndarray) -> None:
        self._tables = tables
        self._starts = starts
        self._owners = owners

    def chunk_table(self, template: np.ndarray, columns: np.ndarray, slices: RowSlices) -> np.ndarray:
        """Build the chunk table of some columns for row slices; see `ChunkTables`."""
        made = []
        for which, own in self._by_file(slices):
            table = self._tables[which].chunk_table(template, columns, own)
            table[:, [C_START, C_END]] += self._starts[which]
            made.append(table)
        return np.concatenate(made)

    def estimate_string_bytes(self, position: int, slices: RowSlices) -> int:
        """Estimate the bytes of a BYTE_ARRAY column in row slices; see `ChunkTables`."""
        return sum(self._tables[which].estimate_string_bytes(position, own) for which, own in self._by_file(slices))

    def num_rows(self, row_group: int) -> int:
        """Return the number of rows of a row group that is read."""
        which, group = self._owners[row_group]
        count: int = self._tables[which].num_rows(int(group))
        return count

    def _by_file(self, slices: RowSlices) -> Iterator[tuple[int, RowSlices]]:
        """Yield the slices of each file, which follow each other, with the row groups of the file."""
        files, groups = self._owners[slices.table[:, SLICE_GROUP]].T
        edges = [0, *(np.flatnonzero(files[1:] != files[:-1]) + 1).tolist(), len(files)]
        for first, last in pairwise(edges):
            own = slices.table[first:last].copy()
            own[:, SLICE_GROUP] = groups[first:last]
            yield int(files[first]), RowSlices(own)


class FileBatchReader:
    """Parts of several files that have the same columns, and of which all rows are wanted.

    Parameters
    ----------
    parts : sequence of DatasetFileReader
        Those of one likeness.
    """

    def __init__(self, parts: Sequence[DatasetFileReader]) -> None:
        self.parts = parts
        # Which part each row group is of, and its ordinal there: int64 (row groups, 2).
        owners = [(which, group) for which, part in enumerate(parts) for group in part.rows.row_groups]
        self._owners = np.array(owners, np.int64).reshape(-1, 2)

    def is_outdated(self, memory: SharedMemory) -> bool:
        """Whether a leaf of the table is not decoded yet, or as another output type than its present one."""
        return any(part.is_outdated(memory) for part in self.parts)

    def decode(self, memory: SharedMemory, firsts: Sequence[int]) -> list[dict[int, DecodedColumn]]:
        """Decode all outdated leaves of all files; the first row of each is row `firsts` of the table.

        Returns for each file what it adds to the table's leaves, by place.
        """
        first = self.parts[0]
        made = [part.fill_missing(memory, at) for part, at in zip(self.parts, firsts, strict=True)]
        view = first.view(memory)
        wanted = first.outdated_leaves(view)
        if not wanted:
            return made
        for part in self.parts:
            part.set_decoded(view.places, view.targets)
        made[0].update({place: DecodedColumn() for place in wanted.values()})
        try:
            jobs = self._run(view, wanted, firsts)
        except ParquetError as error:
            raise self._named(error) from None
        for part in self.parts:
            part.finish_progress()
        failed: dict[int, int] = {}
        for job in jobs:
            failed.update(job.retries)
            self._add_output(job, wanted, made)
        for column, status in failed.items():
            with error_context(column=first.rows.leaves[column].name):
                view.reallocate(column, fallback_type(view.targets[column], status))
        return made

    def _add_output(self, job: DecodeJob, wanted: Mapping[int, int], made: Sequence[dict[int, DecodedColumn]]) -> None:
        """Add what a job has decoded to the columns of each file; the first file has the null counts of all."""
        for column, nulls in zip(job.columns, job.chunks[:, C_NULL_COUNT].tolist(), strict=True):
            if nulls:
                made[0][wanted[column]].null_count += nulls
        if not job.arrays:
            return
        row_group, place = int(self._owners[job.row_groups[0], 1]), wanted[job.columns[0]]
        for owner, array in self._split_by_file(job):
            if isinstance(array, NestedLeaf):
                array.row_group, array.file = row_group, self.parts[owner].name
            made[owner].setdefault(place, DecodedColumn()).arrays.append(array)

    def _split_by_file(self, job: DecodeJob) -> Iterator[tuple[int, Any]]:
        """Yield the arrays of a job, with their file: a file's first dictionary has the order of its categories."""
        files = self._owners[job.row_groups, 0]
        cuts = [0, *(np.flatnonzero(files[1:] != files[:-1]) + 1).tolist()]
        if len(cuts) == 1 or not isinstance(job, DictionaryJob):
            yield from ((int(files[0]), array) for array in job.arrays)
            return
        starts = [0, *(job.chunks[:, C_ROW_STOP] - job.chunks[:, C_ROW_START]).cumsum().tolist()]
        edges, first = [starts[cut] for cut in cuts], 0
        for array in job.arrays:
            last = first + len(array)
            inner = [edge for edge in edges if first < edge < last]
            for start, stop in pairwise([first, *inner, last]):
                part = DictionaryArray(array.codes[start - first : stop - first], array.dictionary) if inner else array
                yield int(files[cuts[bisect_right(edges, start) - 1]]), part
            first = last

    def _run(self, view: FileMemory, wanted: Collection[int], firsts: Sequence[int]) -> list[DecodeJob]:
        first = self.parts[0]
        data, starts = _bytes_of_files([part.file.source for part in self.parts])
        context = first.opened_rows().context_for(BytesSource(data))
        tables = _BatchChunkTables([part.rows.chunk_tables for part in self.parts], starts, self._owners)
        maker = JobScheduler(context, tables, first.rows.leaves, view)  # type: ignore[arg-type]
        jobs = maker.build_jobs(self._slices(firsts), wanted)
        maker.run(jobs)
        return jobs

    def _slices(self, firsts: Sequence[int]) -> RowSlices:
        """Return the rows, with row groups counted through, and where they go in the table."""
        rows = np.concatenate([part.rows.slice_table(at) for part, at in zip(self.parts, firsts, strict=True)])
        rows[:, SLICE_GROUP] = np.arange(len(rows))
        return RowSlices(rows)

    def _named(self, error: ParquetError) -> ParquetError:
        """Say of which file an error is."""
        number = error.where.get("row_group")
        if isinstance(number, int):
            which, error.where["row_group"] = self._owners[number].tolist()
            error.where["file"] = self.parts[which].name
        return error


def _bytes_of_files(sources: Sequence[Source]) -> tuple[np.ndarray, list[int]]:
    """Return a buffer that holds all files, followed by SLACK readable bytes, and where each begins."""
    buffer = sources[0].buffer if isinstance(sources[0], SmallFileSource) else None
    starts = [source.start for source in sources if isinstance(source, SmallFileSource) and source.buffer is buffer]
    if buffer is not None and len(starts) == len(sources):
        return buffer, starts
    views = [source.view(0, source.size, 0) for source in sources]
    data = np.concatenate([*(view for view in views if view is not None), np.zeros(SLACK, np.uint8)])
    return data, list(accumulate((source.size for source in sources), initial=0))
