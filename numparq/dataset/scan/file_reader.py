"""One file of a dataset read: columns decoded into shared memory, or cast from its own."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.projection import projection_of
from numparq.column.read.row_selection import RowSlice
from numparq.column.scratch import ThreadScratch
from numparq.dataset.schema_merge.column_mapping import MappedColumn
from numparq.errors import ParquetError, error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.file_rows import FileRowReader
from numparq.scan.memory import MemoryEstimate
from numparq.scan.options import ScanOptions
from numparq.scan.projected_columns import ProjectedColumns
from numparq.to_pandas.frame import BlockLayout, allocate_blocks
from numparq.types.output_type import OutputType
from numparq.util.worker_pool import WorkerPool

from .projected_columns import DatasetColumns

if TYPE_CHECKING:
    from numparq.column.read.output import ReplaceableMemory
    from numparq.scan.predicate import ScanPredicate

__all__ = ["DatasetFileReader", "UnexpectedNulls"]

_NOTHING = OutputType("null", "nulls", ArrowType("null"))


class UnexpectedNulls(Exception):
    """A column has nulls where the statistics say that there are none.

    Parameters
    ----------
    leaf : int
        Which leaf of the table.
    """

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.leaf = place


class _SharedLayout:
    """The frame's memory as one file sees it: of each of its leaves, where that is in the table; none behind those."""

    def __init__(self, layout: BlockLayout, places: Sequence[int], targets: list[OutputType]) -> None:
        alone = [None] * (len(targets) - len(places))
        self.num_rows = layout.num_rows
        self.targets = targets
        self.blocks = layout.blocks
        self.values = [*(layout.values[at] for at in places), *alone]
        self.validity = [*(layout.validity[at] for at in places), *alone]
        self.block_of = [*(layout.block_of[at] for at in places), *alone]
        self.row_of = [*(layout.row_of[at] for at in places), *alone]
        self._places = places

    def reallocate(self, position: int, target: OutputType) -> None:
        """Refuse: what other files have decoded is in this memory too."""
        raise UnexpectedNulls(self._places[position])


class DatasetFileReader:
    """One file in a read of many; its methods are called in their order.

    Parameters
    ----------
    file : OpenFile
        The file.
    ordinal : int
        Which of the files it is, as the partitions count them.
    table : DatasetColumns
        The columns of the read.
    matches : dict of int to MappedColumn
        What the file has of the table's stored columns, by their positions.
    apart : collection of int
        The table's columns that each file makes for itself.
    slices : sequence of RowSlice
        The rows chosen by position, counted from 0.
    condition : ScanPredicate or None
        What they have to satisfy.
    choices : ScanOptions
        What else is asked for.

    Attributes
    ----------
    rows : FileRowReader
        The rows that are wanted of it.
    """

    def __init__(
        self,
        file: OpenFile,
        ordinal: int,
        table: DatasetColumns,
        matches: dict[int, MappedColumn],
        apart: Collection[int],
        slices: Sequence[RowSlice],
        condition: ScanPredicate | None,
        choices: ScanOptions,
    ) -> None:
        self.file = file
        self.ordinal = ordinal
        self._table = table
        self._choices = choices
        there = {at: match.column for at, match in matches.items() if match.column is not None}
        shared = [at for at in there if at not in apart]
        self._places = [place for at in shared for place in _range(table.leaf_slices[at])]
        self._apart = [at for at in there if at in apart]
        self._missing = [at for at in matches if at not in there]
        self._num_leaves = [len(projection_of([there[at]]).leaves) for at in self._apart]
        alone = [there[at] for at in self._apart]
        self._alone = ProjectedColumns(file, projection_of(alone), choices) if alone else None
        self.rows = FileRowReader(
            file, projection_of([*(there[at] for at in shared), *alone]).leaves, slices, condition
        )

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
            found.update(dict.fromkeys(_range(self._table.leaf_slices[at]), answers[first] or not is_flat))
            first += count
        for at in self._missing:
            found.update(dict.fromkeys(_range(self._table.leaf_slices[at]), self.rows.num_rows > 0))
        return found

    def set_output_types(self, targets: Sequence[OutputType]) -> None:
        """Be told how the table's leaves are decoded; `output_types` are then those of the file's own leaves."""
        self.output_types = [targets[place] for place in self._places]
        if self._alone:
            with error_context(file=self.name):
                self.output_types += self._alone.schema_only_types(self.rows.may_be_null[len(self._places) :])

    def open(self, targets: Sequence[OutputType], crew: WorkerPool, local: ThreadScratch) -> None:
        """Get ready.

        Parameters
        ----------
        output_types : sequence of OutputType
            Of the table's leaves.
        crew : WorkerPool
            The threads.
        local : ThreadScratch
            Their buffers.
        """
        self.set_output_types(targets)
        self.rows.open(crew, self._choices.verify_crc, local)

    def memory_estimate(self) -> MemoryEstimate:
        """Give what the file's rows take, once the targets are settled."""
        groups = [rows.row_group for rows in self.rows.selections]
        as_objects = self._choices.dtype_backend != "pyarrow"
        return MemoryEstimate(self.file, self.rows.leaves, self.output_types, groups, as_objects)

    def select(self, limit: int | None) -> None:
        """Find the rows, at most so many."""
        with error_context(file=self.name):
            self.rows.select(self.output_types, limit)

    def decode(self, layout: BlockLayout, first: int) -> tuple[dict[int, DecodedColumn], dict[int, Any]]:
        """Decode the file's rows.

        Parameters
        ----------
        layout : BlockLayout
            The table's memory.
        first : int
            The row of the table that the file's first one becomes.

        Returns
        -------
        buffers : dict of int to DecodedColumn
            What this file adds to the table's leaves, by their places.
        alone : dict of int to array
            The columns that it makes for itself, by their positions.
        """
        with error_context(file=self.name):
            self.file.check_unchanged()
            try:
                buffers = self._shared(layout, first)
                alone = self._made_alone()
            except ParquetError as error:
                self.rows.chunk_tables.add_chunk_file(error)
                raise
        return buffers | self.fill_missing(layout, first), alone

    def fill_missing(self, layout: BlockLayout, first: int) -> dict[int, DecodedColumn]:
        """Have the rows of flat columns that the file lacks be null; parameters as of `decode`."""
        places = [
            self._table.leaf_slices[at].start for at in self._missing if isinstance(self._table.selected[at], Leaf)
        ]
        return {place: _nulls(layout, place, first, self.rows.num_rows) for place in places}

    def shared_memory(self, layout: BlockLayout) -> ReplaceableMemory:
        """Give the table's memory for the file's own leaves."""
        return _SharedLayout(layout, self._places, self.output_types)

    def shared_leaves(self, layout: BlockLayout) -> dict[int, int]:
        """Give the leaves that are decoded into the table's memory: their places in the table, by their own.

        Without rows, those that have their categories from a dictionary.
        """
        return {
            at: place
            for at, place in enumerate(self._places)
            if layout.num_rows or self.output_types[at].entry_type is not None
        }

    def joint_read_key(self) -> Hashable:
        """Give what is the same of files that can be decoded as one; None where this one cannot be with any other."""
        source = self.file.source
        if self._alone is not None or source.is_remote or source.view(0, source.size, 0) is None:
            return None
        rows = self.rows.joint_read_key
        return None if rows is None else (tuple(self._places), rows)

    def _shared(self, layout: BlockLayout, first: int) -> dict[int, DecodedColumn]:
        wanted = self.shared_leaves(layout)
        if not self.rows.num_rows:  # of a row group of which no row is wanted, only categories are
            wanted = {at: place for at, place in wanted.items() if self.output_types[at].entry_type is not None}
        if not wanted:
            return {}
        found = self.rows.decode(self.shared_memory(layout), wanted, first)
        return {place: found[at] for at, place in wanted.items()}

    def _made_alone(self) -> dict[int, Any]:
        if self._alone is None:
            return {}
        first = len(self._places)
        targets = self.output_types[first:]
        layout = allocate_blocks([*[_NOTHING] * first, *targets], self.rows.num_rows)
        buffers = self.rows.decode(layout, range(first, len(layout.targets)))[first:]
        return dict(zip(self._apart, self._alone.to_arrays(targets, buffers, self.rows.num_rows), strict=True))


def _range(place: slice) -> range:
    return range(place.start, place.stop)


def _nulls(layout: BlockLayout, place: int, first: int, count: int) -> DecodedColumn:
    """Have rows of a flat column be null."""
    target, values, validity = layout.targets[place], layout.values[place], layout.validity[place]
    if values is None:
        return DecodedColumn(null_count=count, arrays=[_null_piece(target, count)])
    fill = np.frombuffer(target.fill, values.dtype)[0] if target.fill else np.zeros(1, values.dtype)[0]
    values[first : first + count] = fill
    if validity is not None:
        validity[first : first + count] = 0
    return DecodedColumn(null_count=count)


def _null_piece(target: OutputType, count: int) -> BinaryArray | DictionaryArray:
    nothing = BinaryArray(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    if target.storage == "dictionary":
        return DictionaryArray(np.full(count, -1, np.int32), nothing)
    return BinaryArray(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8), np.zeros(count, np.uint8))
