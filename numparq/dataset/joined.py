"""Small files that are in memory anyway, decoded as if they were one: what a job costs is shared by many of them.

Their bytes are put behind one another, and their row groups counted through; each is a row group of a few kilobytes, of
which a job takes a good many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ..column.buffer import ColumnBuffer
from ..column.chunks import ChunkTables, RowSlice
from ..column.nested import NestedPiece
from ..column.spanning import SpanningMaker
from ..errors import ParquetError
from ..frame import Layout
from ..io.source import BytesSource
from ..kernels.tables import C_END, C_NULL_COUNT, C_START, SLACK
from ..targets import retarget
from .parts import FilePart

__all__ = ["JoinedParts", "joined"]

# So many bytes of files are decoded together.
MOST_BYTES = 8 << 20


def joined(parts: Iterable[FilePart]) -> list[FilePart | JoinedParts]:
    """Put parts together that can be decoded as one; the others stay as they are.

    Parameters
    ----------
    parts : iterable of FilePart
        In any order; their rows are found.
    """
    made: list[FilePart | JoinedParts] = []
    alike: dict[object, _Group] = {}
    for part in parts:
        key = part.likeness()
        if key is None:
            made.append(part)
            continue
        size, group = part.file.source.size, alike.setdefault(key, _Group([]))
        if group.parts and group.num_bytes + size > MOST_BYTES:
            made.append(group.together())
            group.parts, group.num_bytes = [], 0
        group.parts.append(part)
        group.num_bytes += size
    return [*made, *(group.together() for group in alike.values())]


@dataclass
class _Group:
    """Parts of one likeness, and the bytes of their files."""

    parts: list[FilePart]
    num_bytes: int = 0

    def together(self) -> FilePart | JoinedParts:
        return JoinedParts(self.parts) if len(self.parts) > 1 else self.parts[0]


class _Tables:
    """The chunk tables of several files, whose bytes are behind one another; parameters as of `JoinedParts`."""

    def __init__(self, tables: Sequence[ChunkTables], starts: Sequence[int], owners: Sequence[tuple[int, int]]) -> None:
        self._tables = tables
        self._starts = starts
        self._owners = owners

    def of_row_group(self, common: np.ndarray, columns: np.ndarray, rows: RowSlice) -> np.ndarray:
        """Make the chunk table of some columns in one row group; see `ChunkTables`."""
        which, own = self._own(rows)
        table = self._tables[which].of_row_group(common, columns, own)
        table[:, [C_START, C_END]] += self._starts[which]
        return table

    def byte_array_size(self, position: int, rows: RowSlice) -> int:
        """Guess how many bytes values take; see `ChunkTables`."""
        which, own = self._own(rows)
        return self._tables[which].byte_array_size(position, own)

    def num_rows_of(self, row_group: int) -> int:
        """Give the rows of a row group."""
        which, group = self._owners[row_group]
        return self._tables[which].num_rows_of(group)

    def _own(self, rows: RowSlice) -> tuple[int, RowSlice]:
        which, group = self._owners[rows.row_group]
        return which, RowSlice(group, rows.start, rows.stop, rows.out)


class JoinedParts:
    """Parts of several files that have the same columns, and of which all rows are wanted.

    Parameters
    ----------
    parts : sequence of FilePart
        Those of one likeness.
    """

    def __init__(self, parts: Sequence[FilePart]) -> None:
        self.parts = parts
        # Which part each row group is of, and its ordinal there.
        self._owners = [(which, rows.row_group) for which, part in enumerate(parts) for rows in part.rows.slices]

    def decode(self, layout: Layout, firsts: Sequence[int]) -> list[dict[int, ColumnBuffer]]:
        """Decode the rows of all files.

        Parameters
        ----------
        layout : Layout
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
        context = first.rows.context_of(BytesSource(data))
        tables = _Tables([part.rows.tables for part in self.parts], starts, self._owners)
        memory = first.memory(layout)
        maker = SpanningMaker(context, tables, first.rows.leaves, memory)  # type: ignore[arg-type]
        made = [part.missing(layout, at) for part, at in zip(self.parts, firsts, strict=True)]
        wanted = first.wanted(layout)
        for found in made:
            found.update({place: ColumnBuffer() for place in wanted.values()})
        try:
            jobs = maker.jobs(self._slices(firsts), wanted)
            maker.run(jobs)
        except ParquetError as error:
            raise self._named(error) from None
        for job in jobs:
            for column, status in job.failed.items():
                memory.replace(column, retarget(memory.targets[column], status))
            which, row_group = self._owners[job.row_group]
            buffers = made[which]
            for piece in job.pieces:
                if isinstance(piece, NestedPiece):
                    piece.row_group = row_group
            for column, nulls in zip(job.columns, job.chunks[:, C_NULL_COUNT].tolist(), strict=True):
                buffers[wanted[column]].null_count += nulls
            buffers[wanted[job.columns[0]]].pieces.extend(job.pieces)
        return made

    def _slices(self, firsts: Sequence[int]) -> list[RowSlice]:
        """Give the rows, with row groups counted through, and where they go in the table."""
        moved = ((rows, at) for part, at in zip(self.parts, firsts, strict=True) for rows in part.rows.slices)
        return [RowSlice(number, 0, len(rows), at + rows.out) for number, (rows, at) in enumerate(moved)]

    def _named(self, error: ParquetError) -> ParquetError:
        """Say of which file an error is."""
        number = error.where.get("row_group")
        if isinstance(number, int):
            which, error.where["row_group"] = self._owners[number]
            error.where["file"] = self.parts[which].name
        return error
