"""Scan of one file into a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read.row_selection import RowSlices
from numparq.column.scratch import ThreadScratch
from numparq.errors import LimitError, ParquetError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.to_pandas.frame import BlockLayout, allocate_blocks
from numparq.to_pandas.strings import default_string_array
from numparq.types.choose import choose_output_type
from numparq.types.output_type import OutputType
from numparq.typing import Columns
from numparq.util.arguments import check_row_count, thread_count
from numparq.util.progress import ProgressBar
from numparq.util.worker_pool import WorkerPool

from .file_rows import FileRowReader
from .memory import scratch_limit
from .options import ScanOptions, all_row_slices, select_row_slices
from .projected_columns import project_columns

if TYPE_CHECKING:
    import pandas as pd

    from numparq.plan.read_plan import ReadPlan

    from .predicate import ScanPredicate
    from .recovery.skip_damaged import SkipDamaged

__all__ = ["FileScan"]


class FileScan:
    """One read of a file.

    Parameters
    ----------
    file : OpenFile
        The file.
    columns : sequence of str or tuple, or None
        The columns wanted, as in `numparq.read_parquet`.
    options : ScanOptions
        What else is asked for.

    Raises
    ------
    SchemaError
        When the file has no such column.
    """

    def __init__(self, file: OpenFile, columns: Columns, options: ScanOptions) -> None:
        self._file = file
        self._choices = options
        self._columns = project_columns(file, columns, options)
        self._condition: ScanPredicate | None = None
        if options.filters is not None or options.runtime_filters:
            from numparq.scan.predicate import ScanPredicate

            self._condition = ScanPredicate(file, options.filters, options.runtime_filters)
        limit = options.nrows if self._condition is None else None
        if options.row_groups is None and options.row_range is None and limit is None:
            self._slices = all_row_slices(file.footer)
        else:
            counts = file.footer.row_group_num_rows
            self._slices = select_row_slices(counts, options.row_groups, options.row_range, limit)
        if not len(self._slices.table) and file.is_written_by_numparq and file.num_row_groups:
            self._slices = RowSlices.single(0, 0, 0)  # for the categories, which the first row group has

    def plan(self) -> ReadPlan:
        """Plan what is decoded, or, of rows that have to satisfy a condition, what is left to look through."""
        slices = [rows for rows in self._slices if len(rows)]
        return FileRowReader(self._file, self._columns.leaves, slices, self._condition).plan()

    def count(self) -> int:
        """Return the number of rows that satisfy the predicate; decodes only filter columns."""
        rows = FileRowReader(self._file, [], self._slices, self._condition)
        if self._condition is None:
            return rows.num_rows
        with WorkerPool(thread_count(self._choices.threads)) as pool:
            rows.open(pool, self._choices.verify_crc)
            try:
                rows.select([])
                return rows.num_rows
            finally:
                rows.close()

    def to_frame(self, skip: SkipDamaged | None = None) -> pd.DataFrame:
        """Read; with `skip`, go on where the file is damaged."""
        self._file.check_unchanged()
        columns, choices = self._columns, self._choices
        policy = None if skip is None else skip.file_policy(self._file)
        rows = FileRowReader(self._file, columns.leaves, self._slices, self._condition, policy)
        null_counts = rows.chunk_tables.null_counts[: len(columns.leaves)]
        targets = columns.output_types(null_counts)
        try:
            pool = WorkerPool(thread_count(choices.threads))
            try:
                layout, buffers = self._decode(rows, targets, pool)
            finally:
                pool.close()
            if self._condition is not None:
                self._file.check_unchanged()  # page tables of an earlier read may have chosen the rows
                columns.restore_null_counts(buffers, null_counts)
            if skip is not None:
                layout, buffers, _ = skip.drop_lost(columns, layout, buffers, [(rows, 0, None)], choices.nrows)
            frame = columns.to_frame(layout, buffers, self._virtual(rows) if columns.virtual else ())
            if skip is not None and self._condition is None and choices.explode is None:
                skip.relabel(frame, columns.metadata)
            return frame
        except ParquetError as error:
            rows.chunk_tables.add_chunk_file(error)
            raise
        except MemoryError as error:
            what = f"{rows.num_rows:,} rows of {len(columns.names)} columns"
            raise LimitError(f"not enough memory to read {what}") from error

    def _decode(
        self, rows: FileRowReader, targets: list[OutputType], pool: WorkerPool
    ) -> tuple[BlockLayout, list[DecodedColumn]]:
        """Select the rows and decode them."""
        choices, memory_limit = self._choices, self._choices.memory_limit
        limit = None if choices.nrows is None else check_row_count(choices.nrows, "nrows")
        progress = ProgressBar(True, "reading", "bytes") if choices.progress else None
        scratch = ThreadScratch(None if memory_limit is None else scratch_limit(memory_limit, pool.threads))
        rows.open(pool, choices.verify_crc, scratch, progress)
        try:
            if memory_limit is not None:
                self._check_memory_to_find(rows, memory_limit)
            rows.select(targets, limit)
            if memory_limit is not None:
                self._check_memory(self._columns.leaves, targets, rows.selections.parts, memory_limit)
            count = rows.selections.num_rows
            layout = allocate_blocks(targets, count, self._columns.index_leaves)
            return layout, rows.decode(layout, range(len(targets)) if count else _categorical_columns(targets))
        finally:
            rows.close()
            if progress is not None:
                progress.close()

    def _check_memory_to_find(self, rows: FileRowReader, limit: int) -> None:
        """Refuse a filter whose columns take more memory than is allowed: each thread looks through a row group."""
        if self._condition is not None:
            largest = sorted(rows.selections.parts, key=len)[-thread_count(self._choices.threads) :]
            asked = self._condition.leaves
            self._check_memory(asked, [choose_output_type(leaf, null_count=1) for leaf in asked], largest, limit)

    def _check_memory(
        self, leaves: Sequence[Leaf], output_types: Sequence[OutputType], slices: Sequence[Any], limit: int
    ) -> None:
        """Refuse rows that take more memory than is allowed."""
        if not slices:
            return
        from .memory import MemoryEstimate, check_memory_limit, virtual_row_bytes

        groups = [part.row_group for part in slices]
        virtual = virtual_row_bytes(self._columns.virtual, self._file.source.name)
        as_objects = self._choices.dtype_backend != "pyarrow"
        costs = MemoryEstimate(self._file, leaves, output_types, groups, as_objects, virtual)
        check_memory_limit([(costs, slices)], thread_count(self._choices.threads), limit)

    def _virtual(self, rows: FileRowReader) -> list[tuple[str, Any]]:
        """Make the virtual columns asked for."""
        return [
            (name, default_string_array([self._file.source.name]).take(np.zeros(rows.num_rows, np.intp)))
            if name == "file"
            else (name, rows.virtual_column(name))
            for name in self._columns.virtual
        ]


def _categorical_columns(targets: Sequence[OutputType]) -> list[int]:
    """Return the columns that have their categories from a dictionary, which are decoded even without rows."""
    return [at for at, target in enumerate(targets) if target.entry_type is not None]
