"""What one file gives to a frame of many: columns in the memory that all share, or, where they have to change, alone.

A column that is the same in all files is decoded straight into the frame's memory. One that some file has as another
type, or that is nested and lacks something in one, is made by each file for itself, and put together at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrow_schema import ArrowType
from ..column.buffer import BinaryPiece, ColumnBuffer, DictionaryPiece
from ..column.chunks import RowSlice
from ..column.scratch import ThreadScratch
from ..errors import ParquetError, located
from ..frame import Layout, allocate
from ..memory_budget import RowCosts
from ..opened import OpenedFile
from ..reading.choices import Choices
from ..reading.columns import ReadColumns
from ..reading.rows import FileRows
from ..schema import Leaf
from ..selection import with_leaves
from ..targets import Target
from ..threads import Crew
from .columns import TableColumns
from .resolution import Match

if TYPE_CHECKING:
    from ..column.rounds import Replaceable
    from ..filtering.condition import Condition

__all__ = ["FilePart", "NullsFound"]

_NOTHING = Target("null", "nulls", ArrowType("null"))


class NullsFound(Exception):
    """A column has nulls where the statistics say that there are none.

    Parameters
    ----------
    place : int
        Which leaf of the table.
    """

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class _Shared:
    """The frame's memory as one file sees it: of each of its leaves, where that is in the table; none behind those."""

    def __init__(self, layout: Layout, places: Sequence[int], targets: list[Target]) -> None:
        alone = [None] * (len(targets) - len(places))
        self.num_rows = layout.num_rows
        self.targets = targets
        self.blocks = layout.blocks
        self.values = [*(layout.values[at] for at in places), *alone]
        self.validity = [*(layout.validity[at] for at in places), *alone]
        self.block_of = [*(layout.block_of[at] for at in places), *alone]
        self.row_of = [*(layout.row_of[at] for at in places), *alone]
        self._places = places

    def replace(self, position: int, target: Target) -> None:
        """Refuse: what other files have decoded is in this memory too."""
        raise NullsFound(self._places[position])


class FilePart:
    """One file in a read of many; its methods are called in their order.

    Parameters
    ----------
    file : OpenedFile
        The file.
    ordinal : int
        Which of the files it is, as the partitions count them.
    table : TableColumns
        The columns of the read.
    matches : dict of int to Match
        What the file has of the table's stored columns, by their positions.
    apart : collection of int
        The table's columns that each file makes for itself.
    slices : sequence of RowSlice
        The rows chosen by position, counted from 0.
    condition : Condition or None
        What they have to satisfy.
    choices : Choices
        What else is asked for.

    Attributes
    ----------
    rows : FileRows
        The rows that are wanted of it.
    """

    def __init__(
        self, file: OpenedFile, ordinal: int, table: TableColumns, matches: dict[int, Match], apart: Collection[int],
        slices: Sequence[RowSlice], condition: Condition | None, choices: Choices,
    ) -> None:  # fmt: skip
        self.file = file
        self.ordinal = ordinal
        self._table = table
        self._choices = choices
        there = {at: match.column for at, match in matches.items() if match.column is not None}
        shared = [at for at in there if at not in apart]
        self._places = [place for at in shared for place in _range(table.places[at])]
        self._apart = [at for at in there if at in apart]
        self._missing = [at for at in matches if at not in there]
        self._num_leaves = [len(with_leaves([there[at]]).leaves) for at in self._apart]
        alone = [there[at] for at in self._apart]
        self._alone = ReadColumns(file, with_leaves(alone), choices) if alone else None
        self.rows = FileRows(file, with_leaves([*(there[at] for at in shared), *alone]).leaves, slices, condition)

    @property
    def name(self) -> str:
        """The file's."""
        return self.file.source.name

    def may_be_null(self) -> dict[int, bool]:
        """Say of the table's leaves, by their places, whether they may be null in this file's rows."""
        answers = self.rows.may_be_null
        found = dict(zip(self._places, answers, strict=False))
        first = len(self._places)
        for at, count in zip(self._apart, self._num_leaves, strict=True):
            is_flat = isinstance(self._table.selected[at], Leaf)
            found.update(dict.fromkeys(_range(self._table.places[at]), answers[first] or not is_flat))
            first += count
        for at in self._missing:
            found.update(dict.fromkeys(_range(self._table.places[at]), self.rows.count > 0))
        return found

    def settle(self, targets: Sequence[Target]) -> None:
        """Be told how the table's leaves are decoded; `targets` are then those of the file's own leaves."""
        self.targets = [targets[place] for place in self._places]
        if self._alone:
            with located(file=self.name):
                self.targets += self._alone.settled_targets(self.rows.may_be_null[len(self._places) :])

    def begin(self, targets: Sequence[Target], crew: Crew, local: ThreadScratch) -> None:
        """Get ready.

        Parameters
        ----------
        targets : sequence of Target
            Of the table's leaves.
        crew : Crew
            The threads.
        local : ThreadScratch
            Their buffers.
        """
        self.settle(targets)
        self.rows.begin(crew, self._choices.verify_crc, local)

    def costs(self) -> RowCosts:
        """Give what the file's rows take, once the targets are settled."""
        groups = [rows.row_group for rows in self.rows.slices]
        as_objects = self._choices.dtype_backend != "pyarrow"
        return RowCosts(self.file, self.rows.leaves, self.targets, groups, as_objects)

    def find(self, limit: int | None) -> None:
        """Find the rows, at most so many."""
        with located(file=self.name):
            self.rows.find(self.targets, limit)

    def decode(self, layout: Layout, first: int) -> tuple[dict[int, ColumnBuffer], dict[int, Any]]:
        """Decode the file's rows.

        Parameters
        ----------
        layout : Layout
            The table's memory.
        first : int
            The row of the table that the file's first one becomes.

        Returns
        -------
        buffers : dict of int to ColumnBuffer
            What this file adds to the table's leaves, by their places.
        alone : dict of int to array
            The columns that it makes for itself, by their positions.
        """
        with located(file=self.name):
            self.file.check_unchanged()
            try:
                buffers = self._shared(layout, first)
                alone = self._made_alone()
            except ParquetError as error:
                self.rows.tables.name_file(error)
                raise
        return buffers | self.missing(layout, first), alone

    def missing(self, layout: Layout, first: int) -> dict[int, ColumnBuffer]:
        """Have the rows of flat columns that the file lacks be null; parameters as of `decode`."""
        places = [self._table.places[at].start for at in self._missing if isinstance(self._table.selected[at], Leaf)]
        return {place: _nulls(layout, place, first, self.rows.count) for place in places}

    def memory(self, layout: Layout) -> Replaceable:
        """Give the table's memory for the file's own leaves."""
        return _Shared(layout, self._places, self.targets)

    def wanted(self, layout: Layout) -> dict[int, int]:
        """Give the leaves that are decoded into the table's memory: their places in the table, by their own.

        Without rows, those that have their categories from a dictionary.
        """
        return {
            at: place
            for at, place in enumerate(self._places)
            if layout.num_rows or self.targets[at].entries is not None
        }

    def likeness(self) -> Hashable:
        """Give what is the same of files that can be decoded as one; None where this one cannot be with any other."""
        source = self.file.source
        if self._alone is not None or source.is_remote or source.view(0, source.size, 0) is None:
            return None
        rows = self.rows.likeness
        return None if rows is None else (tuple(self._places), rows)

    def _shared(self, layout: Layout, first: int) -> dict[int, ColumnBuffer]:
        wanted = self.wanted(layout)
        if not self.rows.count:  # of a row group of which no row is wanted, only categories are
            wanted = {at: place for at, place in wanted.items() if self.targets[at].entries is not None}
        if not wanted:
            return {}
        found = self.rows.decode(self.memory(layout), wanted, first)
        return {place: found[at] for at, place in wanted.items()}

    def _made_alone(self) -> dict[int, Any]:
        if self._alone is None:
            return {}
        first = len(self._places)
        targets = self.targets[first:]
        layout = allocate([*[_NOTHING] * first, *targets], self.rows.count)
        buffers = self.rows.decode(layout, range(first, len(layout.targets)))[first:]
        return dict(zip(self._apart, self._alone.finished(targets, buffers, self.rows.count), strict=True))


def _range(place: slice) -> range:
    return range(place.start, place.stop)


def _nulls(layout: Layout, place: int, first: int, count: int) -> ColumnBuffer:
    """Have rows of a flat column be null."""
    target, values, validity = layout.targets[place], layout.values[place], layout.validity[place]
    if values is None:
        return ColumnBuffer(null_count=count, pieces=[_null_piece(target, count)])
    fill = np.frombuffer(target.fill, values.dtype)[0] if target.fill else np.zeros(1, values.dtype)[0]
    values[first : first + count] = fill
    if validity is not None:
        validity[first : first + count] = 0
    return ColumnBuffer(null_count=count)


def _null_piece(target: Target, count: int) -> BinaryPiece | DictionaryPiece:
    nothing = BinaryPiece(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    if target.storage == "dictionary":
        return DictionaryPiece(np.full(count, -1, np.int32), nothing)
    return BinaryPiece(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8), np.zeros(count, np.uint8))
