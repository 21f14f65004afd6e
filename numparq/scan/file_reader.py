"""One file of a read, or joined files: columns decoded into shared memory, or cast from its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.nested.levels import NestedLeaf, concat_leaves
from numparq.column.scratch import ThreadScratch
from numparq.errors import ParquetError
from numparq.format.arrow_type import ArrowType
from numparq.format.schema import Leaf
from numparq.plan.row_ranges import RowRanges
from numparq.to_pandas.frame import allocate_blocks
from numparq.types.output_type import OutputType
from numparq.util.progress import ProgressBar
from numparq.util.worker_pool import WorkerPool

from .file_columns import FileColumns
from .file_rows import FileRowReader
from .joined_files import JoinedFile, JoinedFilePolicy
from .memory import MemoryEstimate, virtual_row_bytes
from .options import ScanOptions, all_row_slices
from .projected_columns import ProjectedColumns
from .scan_file import ScanFile
from .shared_memory import FileMemory, SharedMemory

if TYPE_CHECKING:
    from numparq.column.read.output import ReplaceableMemory

    from .recovery.file_policy import SkipDamagedFile

__all__ = ["FileReader"]

_NOTHING = OutputType("null", "nulls", ArrowType("null"))


class FileReader:
    """One file of a read, or joined files; its methods are called in their order.

    Attributes
    ----------
    selections : sequence of ScanFile
        The files. By default damage raises.
    rows : FileRowReader
        The rows that are wanted of them.
    """

    def __init__(
        self,
        selections: Sequence[ScanFile],
        columns: FileColumns,
        table: ProjectedColumns,
        choices: ScanOptions,
        policy: SkipDamagedFile | None = None,
    ) -> None:
        self.selections = selections
        self.file = selections[0].file
        self.joined: JoinedFile | None = None
        if len(selections) > 1:
            with self._located():
                self.file = self.joined = JoinedFile([wanted.file for wanted in selections], columns.leaves)
        self.columns = columns
        self._table = table
        self._choices = choices
        self._decoded_as: dict[int, OutputType] = {}  # by place in the table
        self._alone = ProjectedColumns(self.file, columns.cast_projection, choices) if columns.cast else None
        self._has_all_rows = selections[0].has_all_rows
        slices = selections[0].slices if self.joined is None else all_row_slices(self.joined.footer)
        policies = policy if self.joined is None else JoinedFilePolicy()
        with self._located():
            self.rows = FileRowReader(self.file, columns.leaves, slices, selections[0].predicate, policies)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Add to errors the file that they are of."""
        try:
            yield
        except ParquetError as error:
            if self.joined is not None:
                self.joined.locate(error)
            else:
                error.where.setdefault("file", self.file.source.name)
            raise

    @property
    def counts(self) -> list[int]:
        """Number of rows of each file."""
        return [self.rows.num_rows] if self.joined is None else np.diff(self.joined.first_rows).tolist()

    def set_output_types(self, targets: Sequence[OutputType]) -> None:
        """Be told how the table's leaves are decoded; `output_types` are then those of the file's own leaves."""
        self.output_types = [targets[place] for place in self.columns.places]
        if self._alone:
            with self._located():
                self.output_types += self._alone.schema_only_types(self.rows.may_be_null[len(self.columns.places) :])

    def open(
        self, targets: Sequence[OutputType], crew: WorkerPool, local: ThreadScratch, progress: ProgressBar
    ) -> None:
        """Prepare the read of leaves of the table as `targets`, on threads with shared buffers."""
        self.set_output_types(targets)
        self.rows.open(crew, self._choices.verify_crc, local, progress)

    def memory_estimate(self, virtual: Sequence[str]) -> MemoryEstimate:
        """Return the estimate of the file's rows with virtual columns, once the output types are set."""
        groups = self.rows.row_groups
        as_objects = self._choices.dtype_backend != "pyarrow"
        extra = max(virtual_row_bytes(virtual, wanted.file.source.name) for wanted in self.selections)
        return MemoryEstimate(self.file, self.rows.leaves, self.output_types, groups, as_objects, extra)

    def select(self, limit: int | None) -> None:
        """Find the rows, at most so many."""
        if limit is None and self._has_all_rows:
            return
        with self._located():
            self.rows.select(self.output_types, limit)

    def is_outdated(self, memory: SharedMemory) -> bool:
        """Whether a leaf of the table is not decoded yet, or as another output type than its present one."""
        return bool(self._outdated(self.columns.places, memory) or self._outdated(self.columns.missing_places, memory))

    def _outdated_leaves(self, view: FileMemory) -> dict[int, int]:
        """Return the leaves not decoded as their types in a view: places in the table, by own position."""
        places = enumerate(self.columns.places)
        return {at: place for at, place in places if self._decoded_as.get(place) is not view.targets[at]}

    def _outdated(self, places: Sequence[int], memory: SharedMemory) -> list[int]:
        targets = memory.layout.targets
        return [place for place in places if self._decoded_as.get(place) is not targets[place]]

    def _set_decoded(self, places: Sequence[int], types: Sequence[OutputType]) -> None:
        """Note as what leaves of the table were decoded."""
        self._decoded_as.update(zip(places, types, strict=False))

    def decode(self, memory: SharedMemory, first: int) -> dict[int, DecodedColumn]:
        """Decode all outdated leaves of the file's rows; its first row is row `first` of the table.

        Returns what the file adds to the table's leaves, by place.
        """
        with self._located():
            self.file.check_unchanged()
            view = memory.view(self.columns.places, self.output_types[len(self.columns.places) :])
            wanted = self._outdated_leaves(view)
            if not self.rows.num_rows:  # only the categories of its row group count
                wanted = {at: place for at, place in wanted.items() if view.targets[at].entry_type is not None}
            found = self._decode(view, wanted, first) if wanted else []
        for column in found:
            for piece in column.arrays:
                if isinstance(piece, NestedLeaf) and self.joined is not None:
                    self.joined.locate_piece(piece)
                elif isinstance(piece, NestedLeaf):
                    piece.file = self.file.source.name
        self._set_decoded(self.columns.places, view.targets)
        if self._alone is None:
            self.rows.finish_progress()
        return {place: found[at] for at, place in wanted.items()} | self._fill_missing(memory, first)

    def _fill_missing(self, memory: SharedMemory, first: int) -> dict[int, DecodedColumn]:
        """Fill the outdated leaves of columns that the file lacks with nulls; parameters as of `decode`."""
        places = self._outdated(self.columns.missing_places, memory)
        if not places:
            return {}
        view = memory.view(places)
        self._set_decoded(places, view.targets)
        leaves, count = self._table.leaves, self.rows.num_rows
        return {place: _nulls(view, at, leaves[place], first, count) for at, place in enumerate(places)}

    def decode_cast_columns(self) -> None:
        """Decode the columns that the file casts on its own into memory of their own."""
        if self._alone is None:
            return
        first = len(self.columns.places)
        with self._located():
            layout = allocate_blocks([*[_NOTHING] * first, *self.output_types[first:]], self.rows.num_rows)
            buffers = self._decode(layout, range(first, len(layout.targets)))
            self._to_cast = layout, buffers
            self.rows.finish_progress()

    def arrays_to_cast(self, kept: RowRanges | None = None) -> dict[int, Any]:
        """Return the columns that `decode_cast_columns` decoded, the rows `kept` of each, by position in the table."""
        if self._alone is None:
            return {}
        first = len(self.columns.places)
        with self._located():
            layout, buffers = self._to_cast
            if kept is not None:
                from numparq.scan.recovery.lost_rows import drop_lost_rows

                layout, buffers = drop_lost_rows(layout, buffers, self.rows.leaves, kept, range(first))
            arrays = self._alone.to_arrays(layout.targets[first:], buffers[first:], layout.num_rows)
            return dict(zip(self.columns.cast, arrays, strict=True))

    def _decode(self, memory: ReplaceableMemory, wanted: Collection[int], first: int = 0) -> list[DecodedColumn]:
        try:
            return self.rows.decode(memory, wanted, first)
        except ParquetError as error:
            self.rows.chunk_tables.add_chunk_file(error)
            raise

    def virtual_column(self, name: str) -> np.ndarray:
        """Return the virtual column "row_group" or "row_number" as int64, one value a row, counted in each file."""
        values = self.rows.virtual_column(name)
        if self.joined is not None:
            firsts = self.joined.first_groups if name == "row_group" else self.joined.first_rows
            values -= np.repeat(firsts[:-1], self.counts)
        return values


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
