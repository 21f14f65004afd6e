"""Scan: read files into one frame. One file is a scan of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read.row_selection import SLICE_STOP
from numparq.column.scratch import UNLIMITED, ScratchShare, ThreadScratch
from numparq.errors import LimitError, ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.to_pandas.frame import BlockLayout, allocate_blocks
from numparq.to_pandas.numbers import unmasked
from numparq.types.output_type import OutputType
from numparq.typing import Columns
from numparq.util.arguments import check_row_count, thread_count
from numparq.util.pluralize import agree_noun, pluralize
from numparq.util.progress import ProgressBar
from numparq.util.worker_pool import WorkerPool

from .cast_checks import check_casts
from .file_reader import FileReader, virtual_columns
from .file_runs import keep_small_files, runner_of, select_first
from .memory import check_claimed_rows, check_filter_memory, check_rows_memory, decoded_bytes, scratch_share
from .null_counts import file_may_have_nulls, merge_may_be_null, merge_null_counts
from .options import ScanOptions, select_row_slices
from .projected_columns import ProjectedColumns, project_columns
from .scan_file import ScanFile
from .whole_row_groups import FEW_TASKS, decode_whole
from .wrong_indexes import doubts_indexes, read_at_most_twice, read_without_indexes

if TYPE_CHECKING:
    import pandas as pd

    from numparq.plan.read_plan import ReadPlan

    from .recovery.skip_damaged import SkipDamaged
    from .unread_files import UnreadFiles

_Unit = TypeVar("_Unit")

_MASKED = ("masked", "masked_floats")


class DecodedRows(NamedTuple):
    """Decoded rows of files; `arrays` are finished columns by the position of their first leaf."""

    num_rows: int
    layout: BlockLayout
    buffers: list[DecodedColumn]
    virtual: Sequence[tuple[str, Any]]
    arrays: dict[int, Any]


class Scan:
    """A read of one file or many.

    Parameters
    ----------
    projection : ProjectedColumns
        The columns.
    files : sequence of ScanFile
        The files, whose null counts decide the dtypes.
    options : ScanOptions
        Other options of the read.
    skip : SkipDamaged, optional
        Error policy; by default damage raises.
    selected : sequence of ScanFile, optional
        Files that may have matching rows; the others are not read.

    Attributes
    ----------
    opened, ignores_indexes
        As in `IndexedScan`.
    unread : sequence of UnreadFiles
        Further files, which are not even opened. Their null counts decide the dtypes as well.
    locate_pages : callable or None
        Locates the pages of partly selected row groups, whose page indexes are ignored.
    """

    opened: Sequence[FileReader] = ()
    unread: Sequence[UnreadFiles] = ()
    ignores_indexes = False
    locate_pages: Callable[[Sequence[ScanFile]], None] | None = None

    def __init__(
        self,
        projection: ProjectedColumns,
        files: Sequence[ScanFile],
        options: ScanOptions,
        skip: SkipDamaged | None = None,
        selected: Sequence[ScanFile] | None = None,
    ) -> None:
        self.projection = projection
        self.files = files
        self.selected = files if selected is None else selected
        self._options = options
        self._skip = skip
        self._threads = options.threads
        self._scratch_share = UNLIMITED
        if options.memory_limit is not None:
            self._scratch_share = scratch_share(options.memory_limit, thread_count(options.threads))
        self._unused_readers: dict[ScanFile, FileReader] = {}
        self._is_identity = len(files) == 1 and files[0].columns.is_identity
        self._must_finish = skip is not None or bool(projection.virtual) or projection.has_partitions

    @classmethod
    def of_file(
        cls,
        file: OpenFile,
        columns: Columns,
        options: ScanOptions,
        skip: SkipDamaged | None = None,
        is_stream: bool = False,
    ) -> Scan:
        """Return the scan of one file; the types of a stream follow from its whole footer."""
        projection = project_columns(file, columns, options)
        predicate, limit, slices = None, options.nrows, None
        if options.filters is not None or options.runtime_filters:
            from numparq.scan.predicate import ScanPredicate

            predicate, limit = ScanPredicate(file, options.filters, options.runtime_filters), None
        if options.row_groups is not None or options.row_range is not None or limit is not None:
            counts = file.footer.row_group_num_rows
            slices = select_row_slices(counts, options.row_groups, options.row_range, limit)
        scan_file = ScanFile(file, 0, slices, predicate, projection.identity)
        if is_stream:
            projection.may_be_null = file_may_have_nulls(file, projection.leaves)
        elif not np.add.reduce(file.footer.row_group_num_rows if slices is None else slices.table[:, SLICE_STOP]):
            return cls(projection, scan_file.without_rows() or [scan_file], options, skip)
        return cls(projection, [scan_file], options, skip)

    def add_unread(self, unread: Sequence[UnreadFiles]) -> None:
        """Add files that have no matching rows."""
        self.unread = unread
        self._is_identity = self._is_identity and not unread

    # --- reads --------------------------------------------------------------------------------------------------------

    def read(self) -> pd.DataFrame:
        """Read all rows into one frame, with the dtypes that one file of all these rows would have."""
        options, projection = self._options, self.projection
        is_filtered = options.filters is not None or bool(options.runtime_filters)
        limit = check_row_count(options.nrows, "nrows") if is_filtered and options.nrows is not None else None
        readers = self._readers(self.files, limit)
        try:
            if self._is_identity:
                null_counts = readers[0].chunk_tables.null_counts[: len(projection.leaves)]
            else:
                null_counts = merge_null_counts([*readers, *self.unread], len(projection.leaves))
            types = projection.output_types(null_counts)
            decoded_types = projection.fix_cast_types(types, self.may_be_null) if projection.cast_positions else types
            if self.selected is not self.files:
                selected = set(self.selected)
                readers = [reader for reader in readers if reader.files[0] in selected]
            readers, layout, buffers = self._decode(readers, limit, decoded_types)
            if is_filtered:
                projection.restore_null_counts(buffers, null_counts)
            if not self._must_finish:
                return projection.to_frame(layout, buffers)
            rows = self._finish(readers, layout, buffers, limit)
            self._remove_masks(rows, types)
            frame = self.to_frame(rows)
        except (ParquetError, MemoryError) as error:
            if not doubts_indexes(self):
                raise self._read_error(error, readers)  # noqa: B904  this error, or its cause
        else:
            if self._skip is not None and not is_filtered and options.explode is None:
                self._skip.relabel(frame, projection.metadata)
            return frame
        return read_without_indexes(self, self.read)

    def count(self) -> int:
        """Count the rows that `read` returns; decodes only filter columns."""
        return read_at_most_twice(self, self._count)

    def _count(self) -> int:
        readers = self._readers([one.without_columns() for one in self.selected])
        if any(reader.predicate is not None for reader in readers):
            if self._options.memory_limit is None:
                check_claimed_rows(readers, thread_count(self._threads))
            try:
                readers = self._decode(readers, None, [])[0]
            except (ParquetError, MemoryError) as error:
                raise self._read_error(error, readers)  # noqa: B904  this error, or its cause
        return sum(reader.num_rows for reader in readers)

    def plans(self, files: Sequence[ScanFile] | None = None) -> list[tuple[str, ReadPlan]]:
        """Plan each file: its name, and what is decoded, or filtered if there is a predicate."""
        return [
            (one.file.source.name, self.file_reader(one).plan()) for one in (self.selected if files is None else files)
        ]

    def read_unit(
        self, files: Sequence[ScanFile], limit: int | None, convert: Callable[[DecodedRows], _Unit]
    ) -> tuple[int, int, _Unit]:
        """Decode and convert rows as one unit of a stream; return their number, their bytes as decoded, and the result.

        Raises InvalidFileError for nulls that the statistics exclude, because other units have another dtype. Damage
        that the policy skips starts it again.
        """

        def attempt() -> tuple[int, int, _Unit]:
            if self.ignores_indexes and self.locate_pages is not None:
                self.locate_pages(files)
            with error_context(file=files[0].file.source.name if len(files) == 1 else None):
                readers = self._readers(files, limit)
                try:
                    decoded = self._decode(readers, limit, self.output_types)
                except MemoryError as error:
                    if isinstance(error, ParquetError):  # LimitError
                        raise
                    raise self._memory_error(readers) from error
                rows = self._finish(*decoded, limit, [int(may) or None for may in self.may_be_null])
                return rows.num_rows, decoded_bytes(rows.layout, rows.buffers), convert(rows)

        if self._skip is None:
            return read_at_most_twice(self, attempt)
        groups = {one.file.source.name: one.slices.row_groups for one in files}
        return self._skip.read_unit(attempt, groups)

    def to_frame(self, rows: DecodedRows) -> pd.DataFrame:
        """Build the frame of a unit."""
        return self.projection.to_frame(rows.layout, rows.buffers, rows.virtual, rows.arrays)

    def _remove_masks(self, rows: DecodedRows, types: Sequence[OutputType]) -> None:
        """Replace the schema-only dtypes of columns that were cast by those of one file with all their rows."""
        projection, layout = self.projection, rows.layout
        if self._options.dtype_backend != "numpy":
            return
        for first in projection.cast_columns():
            target = layout.targets[first]
            if (target.nested or target.array_kind == "masked") and types[first].array_kind not in _MASKED:
                rows.arrays[first] = unmasked(projection.to_array(first, layout, rows.buffers))

    # --- types --------------------------------------------------------------------------------------------------------

    @cached_property
    def output_types(self) -> list[OutputType]:
        """Schema-only type of each leaf, the same for all units of a stream."""
        return self.projection.schema_only_types(self.may_be_null)

    @cached_property
    def may_be_null(self) -> list[bool]:
        """Whether each leaf may be null in any unit."""
        if self.projection.may_be_null is not None:
            return self.projection.may_be_null
        readers = self._readers(self.files)
        self._unused_readers = {reader.files[0]: reader for reader in readers}
        return merge_may_be_null([*readers, *self.unread], len(self.projection.leaves))

    # --- readers ------------------------------------------------------------------------------------------------------

    def set_shares(self, threads: int, scratch_share: ScratchShare) -> None:
        """Limit the decoding threads, and the scratch buffers of each."""
        self._threads, self._scratch_share = threads, scratch_share

    @cached_property
    def _needs_all_dictionaries(self) -> bool:
        """Whether columns have categories, to which each file without matching rows adds its own."""
        options = self._options
        return (options.filters is not None or bool(options.runtime_filters)) and self.projection.has_categories

    def file_reader(self, scan_file: ScanFile) -> FileReader:
        """Return a reader of a file, to plan its rows or to estimate them."""
        (reader,) = self._readers([scan_file])
        return reader

    def _readers(self, files: Sequence[ScanFile], limit: int | None = None) -> list[FileReader]:
        """Return single-use readers of files, some of them joined."""
        skip, readers = self._skip, []
        runs: Sequence[Sequence[ScanFile]] = (files,)
        if len(files) != 1:
            runs = [[one] for one in files]
            if skip is None and limit is None and not self.ignores_indexes and not self._needs_all_dictionaries:
                from .joined_files import divide_into_runs

                runs = divide_into_runs(files)
        for run in runs:
            reader = self._unused_readers.pop(run[0], None)
            if reader is None or reader.files != run:
                reader = FileReader(run, None if skip is None else skip.file_policy(run[0].file))
            readers.append(reader)
        return readers

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _decode(
        self, readers: list[FileReader], limit: int | None, types: list[OutputType]
    ) -> tuple[list[FileReader], BlockLayout, list[DecodedColumn]]:
        """Select and decode rows; return the readers needed, the memory, and the projected leaves."""
        options, progress = self._options, None
        pool, scratch = WorkerPool(thread_count(self._threads)), ThreadScratch(self._scratch_share)
        opened: list[Any] = [pool, scratch]
        selects_rows = limit is not None
        if options.progress:
            progress = ProgressBar(True, "reading", "byte")
            opened.insert(0, progress)
        try:
            for reader in readers:
                own_types = types if reader.columns.is_identity else reader.own_types(types)
                selects_rows = selects_rows or reader.selects_rows
                reader.open(own_types, pool, options.verify_crc, scratch, progress)
                if reader.file.source.is_remote or progress is not None:
                    opened.append(reader)
            self.opened = readers
            if selects_rows:
                readers = self._select(readers, limit)
            if options.memory_limit is not None:
                check_rows_memory(readers, types, self.projection.virtual, options, thread_count(self._threads))
            count = num_tasks = 0
            for reader in readers:
                count += reader.selections.num_rows
                num_tasks += len(reader.selections.table) * len(types)
            may_decode_whole = selects_rows and num_tasks > FEW_TASKS and self._skip is None
            whole = decode_whole(readers, types, self.projection, options.memory_limit) if may_decode_whole else None
            if whole is not None:
                return readers, *whole
            layout = allocate_blocks(types, count, self.projection.index_leaves)
            if len(readers) == 1 and readers[0].columns.is_identity:
                return readers, layout, readers[0].decode(layout, range(len(types)))
            return readers, layout, self._decode_shared(readers, layout)
        finally:
            for resource in reversed(opened):
                resource.close()

    def _decode_shared(self, readers: Sequence[FileReader], layout: BlockLayout) -> list[DecodedColumn]:
        """Decode several files, or one whose columns are mapped, into the frame's memory."""
        from .shared_memory import SharedMemory

        return SharedMemory(layout, self.projection.leaves, readers, _starts(readers)).decode(runner_of(readers))

    def _select(self, readers: list[FileReader], limit: int | None) -> list[FileReader]:
        """Select the rows of all readers; with a limit, of as many as it takes."""
        if self._options.memory_limit is not None:
            check_filter_memory(readers, self._options, thread_count(self._threads))
        elif len(readers) != 1 or readers[0].joined is not None:
            keep_small_files(readers)
        if len(readers) == 1:
            readers[0].select(limit)
            return readers
        if limit is not None and self._skip is None:  # with a policy only intact rows count, which decoding finds
            return select_first(readers, limit)
        runner_of(readers)(readers, FileReader.select)
        return readers

    def _finish(
        self,
        readers: Sequence[FileReader],
        layout: BlockLayout,
        buffers: list[DecodedColumn],
        limit: int | None,
        null_counts: Sequence[int | None] = (),
    ) -> DecodedRows:
        """Drop lost rows, and build the columns that are not decoded into the frame's memory.

        `null_counts` are those of rows that a filter may have dropped, if any.
        """
        projection, kept = self.projection, None
        if null_counts:
            projection.restore_null_counts(buffers, null_counts)
        if self._skip is not None:
            starts = zip(readers, _starts(readers), strict=False)
            decoded = [(reader, first, reader.columns.own_leaves()) for reader, first in starts]
            layout, buffers, kept = self._skip.drop_lost(projection, layout, buffers, decoded, limit)
        if projection.cast_positions:
            check_casts(projection, readers, _starts(readers), layout, kept)
        arrays: dict[int, Any] = {}
        if projection.has_partitions:
            ordinals = [one.ordinal for reader in readers for one in reader.files]
            arrays = projection.partition_arrays(ordinals, [count for reader in readers for count in reader.counts])
        virtual = virtual_columns(projection.virtual, readers) if projection.virtual else ()
        return DecodedRows(layout.num_rows, layout, buffers, virtual, arrays)

    def _read_error(self, error: ParquetError | MemoryError, readers: Sequence[FileReader]) -> BaseException:
        """Return the error to raise, with its file."""
        if not isinstance(error, ParquetError):
            memory_error = self._memory_error(readers)
            memory_error.__cause__ = error
            return memory_error
        if self._is_identity:
            readers[0].locate(error)
        return error

    def _memory_error(self, readers: Sequence[FileReader]) -> LimitError:
        what = f"{pluralize(len(self.selected), 'file')} into one frame; use numparq.Dataset.iter_batches"
        if len(self.selected) == 1:
            rows, columns = sum(reader.num_rows for reader in readers), len(self.projection.names)
            what = f"{pluralize(rows, 'row')} of {columns} {agree_noun(columns, 'column')}"
        return LimitError(f"not enough memory to read {what}")


def _starts(readers: Sequence[FileReader]) -> list[int]:
    """Return the first row of each reader in the frame, and the number of all rows."""
    return [*accumulate([reader.num_rows for reader in readers], initial=0)]
