"""One file of a dataset read: columns decoded into shared memory, or cast from its own."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.nested.levels import NestedLeaf, concat_leaves
from numparq.column.projection import projection_of
from numparq.column.read.row_selection import RowSlice
from numparq.column.scratch import ThreadScratch
from numparq.dataset.schema_merge.column_mapping import MappedColumn
from numparq.errors import ParquetError, error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.row_ranges import RowRanges
from numparq.scan.file_rows import FileRowReader
from numparq.scan.memory import MemoryEstimate, virtual_row_bytes
from numparq.scan.options import ScanOptions
from numparq.scan.projected_columns import ProjectedColumns
from numparq.to_pandas.frame import allocate_blocks
from numparq.types.output_type import OutputType
from numparq.util.progress import ProgressBar
from numparq.util.worker_pool import WorkerPool

from .projected_columns import DatasetColumns
from .shared_memory import FileMemory, SharedMemory

if TYPE_CHECKING:
    from numparq.column.read.output import ReplaceableMemory
    from numparq.scan.predicate import ScanPredicate
    from numparq.scan.recovery.file_policy import SkipDamagedFile

__all__ = ["DatasetFileReader"]

_Answer = TypeVar("_Answer")
_NOTHING = OutputType("null", "nulls", ArrowType("null"))


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
    policy : SkipDamagedFile, optional
        Error policy of the file; by default damage raises.

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
        policy: SkipDamagedFile | None = None,
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
        self._missing_places = [
            place for at in self._missing if at not in apart for place in _range(table.leaf_slices[at])
        ]
        self._decoded_as: dict[int, OutputType] = {}  # by place in the table
        self._num_leaves = [len(projection_of([there[at]]).leaves) for at in self._apart]
        alone = [there[at] for at in self._apart]
        self._alone = ProjectedColumns(file, projection_of(alone), choices) if alone else None
        leaves = projection_of([*(there[at] for at in shared), *alone]).leaves
        self.rows = FileRowReader(file, leaves, slices, condition, policy)

    @property
    def name(self) -> str:
        """The file's."""
        return self.file.source.name

    def may_be_null(self) -> dict[int, bool | int]:
        """Return whether each of the table's leaves, by place, may be null in this file's rows."""
        return self._table_answers(self.rows.may_be_null, True)

    def null_counts(self) -> dict[int, int | None]:
        """Return the null count of each of the table's leaves, by place; None if unknown."""
        return self._table_answers(self.rows.null_counts, None)

    def _table_answers(self, answers: Sequence[_Answer], of_nested: _Answer) -> dict[int, _Answer | int]:
        """Return answers about the file's leaves by place in the table; `of_nested` is that of nested columns cast."""
        found: dict[int, _Answer | int] = dict(zip(self._places, answers, strict=False))
        first = len(self._places)
        for at, count in zip(self._apart, self._num_leaves, strict=True):
            of_leaf = answers[first] if isinstance(self._table.selected[at], Leaf) else of_nested
            found.update(dict.fromkeys(_range(self._table.leaf_slices[at]), of_leaf))
            first += count
        for at in self._missing:
            found.update(dict.fromkeys(_range(self._table.leaf_slices[at]), self.rows.num_rows))
        return found

    def set_output_types(self, targets: Sequence[OutputType]) -> None:
        """Be told how the table's leaves are decoded; `output_types` are then those of the file's own leaves."""
        self.output_types = [targets[place] for place in self._places]
        if self._alone:
            with error_context(file=self.name):
                self.output_types += self._alone.schema_only_types(self.rows.may_be_null[len(self._places) :])

    def open(
        self, targets: Sequence[OutputType], crew: WorkerPool, local: ThreadScratch, progress: ProgressBar
    ) -> None:
        """Get ready.

        Parameters
        ----------
        output_types : sequence of OutputType
            Of the table's leaves.
        crew : WorkerPool
            The threads.
        local : ThreadScratch
            Their buffers.
        progress : ProgressBar
            Of the whole read.
        """
        self.set_output_types(targets)
        self.rows.open(crew, self._choices.verify_crc, local, progress)

    def memory_estimate(self, virtual: Sequence[str]) -> MemoryEstimate:
        """Return the estimate of the file's rows with virtual columns, once the output types are set."""
        groups = self.rows.row_groups
        as_objects = self._choices.dtype_backend != "pyarrow"
        extra = virtual_row_bytes(virtual, self.name)
        return MemoryEstimate(self.file, self.rows.leaves, self.output_types, groups, as_objects, extra)

    def select(self, limit: int | None) -> None:
        """Find the rows, at most so many."""
        with error_context(file=self.name):
            self.rows.select(self.output_types, limit)

    def is_outdated(self, memory: SharedMemory) -> bool:
        """Whether a leaf of the table is not decoded yet, or as another output type than its present one."""
        return bool(self._outdated(self._places, memory) or self._outdated(self._missing_places, memory))

    def outdated_leaves(self, view: FileMemory) -> dict[int, int]:
        """Return the leaves not decoded as their types in a view: places in the table, by own position."""
        places = enumerate(self._places)
        return {at: place for at, place in places if self._decoded_as.get(place) is not view.targets[at]}

    def _outdated(self, places: Sequence[int], memory: SharedMemory) -> list[int]:
        targets = memory.layout.targets
        return [place for place in places if self._decoded_as.get(place) is not targets[place]]

    def set_decoded(self, places: Sequence[int], types: Sequence[OutputType]) -> None:
        """Note as what leaves of the table were decoded."""
        self._decoded_as.update(zip(places, types, strict=False))

    def decode(self, memory: SharedMemory, first: int) -> dict[int, DecodedColumn]:
        """Decode all outdated leaves of the file's rows; its first row is row `first` of the table.

        Returns what the file adds to the table's leaves, by place.
        """
        with error_context(file=self.name):
            self.file.check_unchanged()
            view = self.view(memory)
            wanted = self.outdated_leaves(view)
            if not self.rows.num_rows:  # only the categories of its row group count
                wanted = {at: place for at, place in wanted.items() if view.targets[at].entry_type is not None}
            found = self._decode(view, wanted, first) if wanted else []
        for column in found:
            for piece in column.arrays:
                if isinstance(piece, NestedLeaf):
                    piece.file = self.name
        self.set_decoded(self._places, view.targets)
        if self._alone is None:
            self.rows.finish_progress()
        return {place: found[at] for at, place in wanted.items()} | self.fill_missing(memory, first)

    def view(self, memory: SharedMemory) -> FileMemory:
        """Return the table's memory for the file's own leaves."""
        return memory.view(self._places, self.output_types[len(self._places) :])

    def fill_missing(self, memory: SharedMemory, first: int) -> dict[int, DecodedColumn]:
        """Fill the outdated leaves of columns that the file lacks with nulls; parameters as of `decode`."""
        places = self._outdated(self._missing_places, memory)
        view = memory.view(places)
        self.set_decoded(places, view.targets)
        leaves, count = self._table.leaves, self.rows.num_rows
        return {place: _nulls(view, at, leaves[place], first, count) for at, place in enumerate(places)}

    def leaf_positions(self) -> dict[int, Sequence[int]]:
        """Return the positions of the file's leaves, by the table's leaf, or by the first one of a cast column."""
        found: dict[int, Sequence[int]] = {place: [at] for at, place in enumerate(self._places)}
        first = len(self._places)
        for at, count in zip(self._apart, self._num_leaves, strict=True):
            found[self._table.leaf_slices[at].start] = range(first, first + count)
            first += count
        return found

    def decode_cast_columns(self) -> None:
        """Decode the columns that the file casts on its own into memory of their own."""
        if self._alone is None:
            return
        first = len(self._places)
        with error_context(file=self.name):
            layout = allocate_blocks([*[_NOTHING] * first, *self.output_types[first:]], self.rows.num_rows)
            buffers = self._decode(layout, range(first, len(layout.targets)))
            self._to_cast = layout, buffers
            self.rows.finish_progress()

    def arrays_to_cast(self, kept: RowRanges | None = None) -> dict[int, Any]:
        """Return the columns that `decode_cast_columns` decoded, the rows `kept` of each, by position in the table."""
        if self._alone is None:
            return {}
        first = len(self._places)
        with error_context(file=self.name):
            layout, buffers = self._to_cast
            if kept is not None:
                from numparq.scan.recovery.lost_rows import drop_lost_rows

                layout, buffers = drop_lost_rows(layout, buffers, self.rows.leaves, kept, range(first))
            arrays = self._alone.to_arrays(layout.targets[first:], buffers[first:], layout.num_rows)
            return dict(zip(self._apart, arrays, strict=True))

    def _decode(self, memory: ReplaceableMemory, wanted: Collection[int], first: int = 0) -> list[DecodedColumn]:
        try:
            return self.rows.decode(memory, wanted, first)
        except ParquetError as error:
            self.rows.chunk_tables.add_chunk_file(error)
            raise

    def joint_read_key(self) -> Hashable:
        """Give what is the same of files that can be decoded as one; None where this one cannot be with any other."""
        source = self.file.source
        if self._alone is not None or source.is_remote or source.view(0, source.size, 0) is None:
            return None
        rows = self.rows.joint_read_key
        return None if rows is None else (tuple(self._places), rows)


def _range(place: slice) -> range:
    return range(place.start, place.stop)


def _nulls(memory: FileMemory, at: int, leaf: Leaf, first: int, count: int) -> DecodedColumn:
    """Fill rows of a leaf with nulls."""
    target, values, validity = memory.targets[at], memory.values[at], memory.validity[at]
    if values is None:
        return DecodedColumn(null_count=count, arrays=[_null_piece(leaf, target, count)])
    fill = np.frombuffer(target.fill, values.dtype)[0] if target.fill else np.zeros(1, values.dtype)[0]
    values[first : first + count] = fill
    if validity is not None:
        validity[first : first + count] = 0
    return DecodedColumn(null_count=count)


def _null_piece(leaf: Leaf, target: OutputType, count: int) -> BinaryArray | DictionaryArray | NestedLeaf:
    if target.nested:
        levels = np.zeros(count, np.uint8)
        repetition = levels if leaf.max_repetition_level else None
        return NestedLeaf(levels, repetition, count, concat_leaves([], leaf, target).values, -1)
    nothing = BinaryArray(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    if target.storage == "dictionary":
        return DictionaryArray(np.full(count, -1, np.int32), nothing)
    return BinaryArray(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8), np.zeros(count, np.uint8))
