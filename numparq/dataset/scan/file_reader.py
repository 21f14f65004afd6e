"""One file of a dataset read: columns decoded into shared memory, or cast from its own."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.nested.levels import NestedLeaf, concat_leaves
from numparq.column.scratch import ThreadScratch
from numparq.errors import ParquetError, error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import page_quirks
from numparq.io.small_files import SmallFileSource
from numparq.plan.row_ranges import RowRanges
from numparq.scan.file_rows import FileRowReader
from numparq.scan.memory import MemoryEstimate, virtual_row_bytes
from numparq.scan.options import ScanOptions, all_row_slices
from numparq.scan.projected_columns import ProjectedColumns
from numparq.to_pandas.frame import allocate_blocks
from numparq.types.output_type import OutputType
from numparq.util.progress import ProgressBar
from numparq.util.worker_pool import WorkerPool

from .file_columns import FileColumns
from .file_selection import FileSelection
from .projected_columns import DatasetColumns
from .shared_memory import FileMemory, SharedMemory

if TYPE_CHECKING:
    from numparq.column.read.output import ReplaceableMemory
    from numparq.scan.recovery.file_policy import SkipDamagedFile

__all__ = ["DatasetFileReader"]

_NOTHING = OutputType("null", "nulls", ArrowType("null"))


class DatasetFileReader:
    """One file in a read of many; its methods are called in their order. By default damage raises.

    Attributes
    ----------
    rows : FileRowReader
        The rows that are wanted of it.
    """

    def __init__(
        self,
        wanted: FileSelection,
        columns: FileColumns,
        table: DatasetColumns,
        choices: ScanOptions,
        policy: SkipDamagedFile | None = None,
    ) -> None:
        self.file = file = wanted.file
        self.ordinal = wanted.ordinal
        self.name = file.source.name
        self.columns = columns
        self._table = table
        self._choices = choices
        self._decoded_as: dict[int, OutputType] = {}  # by place in the table
        self._alone = ProjectedColumns(file, columns.cast_projection, choices) if columns.cast else None
        self._opening: tuple[WorkerPool, bool, ThreadScratch, ProgressBar] | None = None
        self._is_open = False
        self._slices = wanted.slices
        self.rows = FileRowReader(file, columns.leaves, wanted.slices, wanted.predicate, policy)

    def set_output_types(self, targets: Sequence[OutputType]) -> None:
        """Be told how the table's leaves are decoded; `output_types` are then those of the file's own leaves."""
        self.output_types = [targets[place] for place in self.columns.places]
        if self._alone:
            with error_context(file=self.name):
                self.output_types += self._alone.schema_only_types(self.rows.may_be_null[len(self.columns.places) :])

    def open(
        self, targets: Sequence[OutputType], crew: WorkerPool, local: ThreadScratch, progress: ProgressBar
    ) -> None:
        """Prepare the read of leaves of the table as `targets`, on threads with shared buffers."""
        self.set_output_types(targets)
        self._opening = crew, self._choices.verify_crc, local, progress
        if progress.is_shown:
            self.opened_rows()

    def opened_rows(self) -> FileRowReader:
        """Return the rows, opened at the first call: of files decoded together, only the first needs it."""
        if self._opening is not None:
            self.rows.open(*self._opening)
            self._opening = None
            self._is_open = True
        return self.rows

    def close(self) -> None:
        """Close the rows, if they were opened."""
        if self._is_open:
            self.rows.close()

    def finish_progress(self) -> None:
        """Count the file as read."""
        if self._is_open:
            self.rows.finish_progress()

    def memory_estimate(self, virtual: Sequence[str]) -> MemoryEstimate:
        """Return the estimate of the file's rows with virtual columns, once the output types are set."""
        groups = self.rows.row_groups
        as_objects = self._choices.dtype_backend != "pyarrow"
        extra = virtual_row_bytes(virtual, self.name)
        return MemoryEstimate(self.file, self.rows.leaves, self.output_types, groups, as_objects, extra)

    def select(self, limit: int | None) -> None:
        """Find the rows, at most so many."""
        if limit is None and self.rows.predicate is None and self._slices is all_row_slices(self.file.footer):
            return
        with error_context(file=self.name):
            self.opened_rows().select(self.output_types, limit)

    def is_outdated(self, memory: SharedMemory) -> bool:
        """Whether a leaf of the table is not decoded yet, or as another output type than its present one."""
        return bool(self._outdated(self.columns.places, memory) or self._outdated(self.columns.missing_places, memory))

    def outdated_leaves(self, view: FileMemory) -> dict[int, int]:
        """Return the leaves not decoded as their types in a view: places in the table, by own position."""
        places = enumerate(self.columns.places)
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
        self.set_decoded(self.columns.places, view.targets)
        if self._alone is None:
            self.finish_progress()
        return {place: found[at] for at, place in wanted.items()} | self.fill_missing(memory, first)

    def view(self, memory: SharedMemory) -> FileMemory:
        """Return the table's memory for the file's own leaves."""
        return memory.view(self.columns.places, self.output_types[len(self.columns.places) :])

    def fill_missing(self, memory: SharedMemory, first: int) -> dict[int, DecodedColumn]:
        """Fill the outdated leaves of columns that the file lacks with nulls; parameters as of `decode`."""
        places = self._outdated(self.columns.missing_places, memory)
        if not places:
            return {}
        view = memory.view(places)
        self.set_decoded(places, view.targets)
        leaves, count = self._table.leaves, self.rows.num_rows
        return {place: _nulls(view, at, leaves[place], first, count) for at, place in enumerate(places)}

    def decode_cast_columns(self) -> None:
        """Decode the columns that the file casts on its own into memory of their own."""
        if self._alone is None:
            return
        first = len(self.columns.places)
        with error_context(file=self.name):
            layout = allocate_blocks([*[_NOTHING] * first, *self.output_types[first:]], self.rows.num_rows)
            buffers = self._decode(layout, range(first, len(layout.targets)))
            self._to_cast = layout, buffers
            self.finish_progress()

    def arrays_to_cast(self, kept: RowRanges | None = None) -> dict[int, Any]:
        """Return the columns that `decode_cast_columns` decoded, the rows `kept` of each, by position in the table."""
        if self._alone is None:
            return {}
        first = len(self.columns.places)
        with error_context(file=self.name):
            layout, buffers = self._to_cast
            if kept is not None:
                from numparq.scan.recovery.lost_rows import drop_lost_rows

                layout, buffers = drop_lost_rows(layout, buffers, self.rows.leaves, kept, range(first))
            arrays = self._alone.to_arrays(layout.targets[first:], buffers[first:], layout.num_rows)
            return dict(zip(self.columns.cast, arrays, strict=True))

    def _decode(self, memory: ReplaceableMemory, wanted: Collection[int], first: int = 0) -> list[DecodedColumn]:
        try:
            return self.opened_rows().decode(memory, wanted, first)
        except ParquetError as error:
            self.rows.chunk_tables.add_chunk_file(error)
            raise

    def joint_read_key(self) -> Hashable:
        """Return a key that two files share if they can be decoded as one; None if this one cannot with any other."""
        source = self.file.source
        if self._alone is not None or self.columns.is_rebased or source.is_remote:  # `FileRowReader.decode` rebases
            return None
        is_in_memory = isinstance(source, SmallFileSource) or source.view(0, source.size, 0) is not None
        if not is_in_memory or not self.rows.has_whole_row_groups:
            return None
        return self.columns, page_quirks(self.file.footer.created_by)


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
