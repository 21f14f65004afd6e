"""Decode one file unit by unit, into DataFrames or Arrow tables of one schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read.row_selection import RowSlice
from numparq.column.scratch import ThreadScratch
from numparq.errors import LimitError, ParquetError, UnsupportedError, error_context
from numparq.format.open_file import OpenFile
from numparq.scan.file_rows import FileRowReader, leaves_may_be_null
from numparq.scan.memory import MemoryEstimate, decoded_bytes, release_free_memory, virtual_row_bytes
from numparq.scan.options import ScanOptions, select_row_slices
from numparq.scan.projected_columns import ProjectedColumns, project_columns
from numparq.to_pandas.frame import BlockLayout, allocate_blocks
from numparq.to_pandas.strings import default_string_array
from numparq.typing import Columns
from numparq.util.arguments import check_row_count
from numparq.util.worker_pool import WorkerPool

from .batches import RangeLabels, drop_range_index
from .page_locations import PageLocator
from .units import BatchSize, FileUnitPlan, MemoryShares, add_filter_columns

if TYPE_CHECKING:
    import pandas as pd

    from numparq.scan.predicate import ScanPredicate
    from numparq.scan.recovery.skip_damaged import SkipDamaged

    from .arrow_tables import ArrowTableBuilder

__all__ = ["FileUnitReader"]

_Unit = TypeVar("_Unit")


class FileUnitReader:
    """The rows of a file in units.

    Parameters
    ----------
    file : OpenFile
        The file.
    columns : sequence of str or tuple, or None
        As in `numparq.read_parquet`.
    options : ScanOptions
        What else is asked for; ``nrows`` counts rows that satisfy the filters.
    sizes : BatchSize
        How large units are.
    skip : SkipDamaged, optional
        Error policy; by default damage raises.

    Attributes
    ----------
    batch_rows, has_exact_batches, is_ahead
        As of `MemoryShares`.
    labels : RangeLabels
        Of rows without an index.
    """

    def __init__(
        self,
        file: OpenFile,
        columns: Columns,
        options: ScanOptions,
        sizes: BatchSize,
        skip: SkipDamaged | None = None,
    ) -> None:
        self._skip = skip
        self._file = file
        self._asked = columns
        self._choices = options
        self._sizes = sizes
        self._columns = self._project_columns()
        self._condition = self._bind_predicate()
        limit = None if self._condition else options.nrows
        self._slices = select_row_slices(file.footer.row_group_num_rows, options.row_groups, options.row_range, limit)
        self._may_be_null = leaves_may_be_null(file, self._columns.leaves)
        self._targets = self._columns.schema_only_types(self._may_be_null)
        is_open = self._condition is not None or options.explode is not None
        self.labels = RangeLabels.from_metadata(file.pandas_metadata, None if is_open else self._slices.num_rows)
        self._division, shares = self._plan_units()
        self._threads, self._scratch_limit = shares.threads, shares.scratch_limit
        self.batch_rows, self.has_exact_batches, self.reads_ahead = (
            shares.batch_rows,
            shares.has_exact_batches,
            shares.reads_ahead,
        )

    def _project_columns(self) -> ProjectedColumns:
        return drop_range_index(project_columns(self._file, self._asked, self._choices))

    def _bind_predicate(self) -> ScanPredicate | None:
        choices = self._choices
        if choices.filters is None and not choices.runtime_filters:
            return None
        from numparq.scan.predicate import ScanPredicate

        return ScanPredicate(self._file, choices.filters, choices.runtime_filters)

    def _plan_units(self) -> tuple[FileUnitPlan, MemoryShares]:
        leaves, targets = add_filter_columns(self._columns.leaves, self._targets, self._condition)
        groups = [rows.row_group for rows in self._slices]
        as_objects = self._choices.dtype_backend != "pyarrow"
        virtual = virtual_row_bytes(self._columns.virtual, self._file.source.name)
        costs = MemoryEstimate(self._file, leaves, targets, groups, as_objects, virtual)
        shares = MemoryShares([costs], costs.slice_bytes(self._slices), self._sizes, self._choices.threads)
        pages = PageLocator(self._file, leaves, targets, self._choices.verify_crc)
        return FileUnitPlan(pages, self._slices, costs, shares), shares

    # --- frames ------------------------------------------------------------------------------------------------------

    def frames(self) -> Iterator[pd.DataFrame]:
        """Give the rows of each unit as a frame, its RangeIndex from 0 where it has no other; at least one frame."""
        yield from self._units(self._to_frame)

    def _to_frame(self, rows: FileRowReader, layout: BlockLayout, buffers: list[DecodedColumn]) -> pd.DataFrame:
        columns = self._columns
        if self._choices.explode is not None:  # which is taken apart for each frame anew
            columns = self._project_columns()
            columns.schema_only_types(self._may_be_null)
        return columns.to_frame(layout, buffers, [(name, self._virtual(rows, name)) for name in columns.virtual])

    # --- Arrow -------------------------------------------------------------------------------------------------------

    def to_arrow(self) -> FileUnitReader:
        """Give the same rows as Arrow tables."""
        if self._choices.explode is not None:
            raise UnsupportedError("explode is not supported for Arrow streams yet; iterate over the DataFrames")
        options = replace(self._choices, dtype_backend="pyarrow")
        return FileUnitReader(self._file, self._asked, options, self._sizes, self._skip)

    @cached_property
    def _arrow(self) -> ArrowTableBuilder:
        from .arrow_tables import ArrowTableBuilder

        with error_context(file=self._file.source.name):
            return ArrowTableBuilder(self._file, self._columns, self._targets)

    @property
    def schema(self) -> Any:
        """The schema of the tables (pyarrow.Schema)."""
        return self._arrow.schema

    def tables(self) -> Iterator[Any]:
        """Give the rows of each unit as a pyarrow.Table."""
        yield from self._units(self._to_table)

    def _to_table(self, rows: FileRowReader, layout: BlockLayout, buffers: list[DecodedColumn]) -> Any:
        virtual = {
            name: self._file.source.name if name == "file" else rows.virtual_column(name)
            for name in self._columns.virtual
        }
        return self._arrow.to_table(layout.targets, buffers, rows.num_rows, virtual)

    # --- what both are made of ---------------------------------------------------------------------------------------

    def _virtual(self, rows: FileRowReader, name: str) -> Any:
        if name == "file":
            return default_string_array([self._file.source.name]).take(np.zeros(rows.num_rows, np.intp))
        return rows.virtual_column(name)

    def _units(self, convert: Callable[..., _Unit]) -> Iterator[_Unit]:
        """Decode and convert one unit after the other."""
        left = None if self._choices.nrows is None else check_row_count(self._choices.nrows, "nrows")
        nothing = True
        with error_context(file=self._file.source.name):
            for slices in self._division.units(self._file.check_unchanged):
                rows, num_bytes, unit = self._read_unit(slices, left, convert)
                self._division.observe(rows.selections.parts, num_bytes)
                if rows.num_rows or nothing:
                    nothing = False
                    yield unit
                del unit
                if self._condition and left is not None:
                    left -= rows.num_rows
                    if left <= 0:
                        return
            if nothing:
                yield self._read_unit(self._no_rows(), left, convert)[2]

    def _read_unit(
        self, slices: Sequence[RowSlice], limit: int | None, convert: Callable[..., _Unit]
    ) -> tuple[FileRowReader, int, _Unit]:
        """Decode and convert rows; return them, their bytes as decoded, and the result."""

        def attempt() -> tuple[FileRowReader, int, _Unit]:
            with error_context(file=self._file.source.name):
                rows, layout, buffers = self._decode(slices, limit)
                return rows, decoded_bytes(layout, buffers), convert(rows, layout, buffers)

        if self._skip is None:
            return attempt()
        return self._skip.read_unit(attempt, {self._file.source.name: [rows.row_group for rows in slices]})

    def _no_rows(self) -> list[RowSlice]:
        """Give what is decoded where there is no row: of our own files the categories, which a row group has."""
        has_dictionaries = self._file.is_written_by_numparq and self._file.num_row_groups
        return [RowSlice(0, 0, 0, 0)] if has_dictionaries else []

    def _decode(
        self, slices: Sequence[RowSlice], limit: int | None
    ) -> tuple[FileRowReader, BlockLayout, list[DecodedColumn]]:
        release_free_memory()
        columns = self._columns
        policy = None if self._skip is None else self._skip.file_policy(self._file)
        rows = FileRowReader(self._file, columns.leaves, slices, self._condition, policy)
        with self._named(rows), WorkerPool(self._threads) as crew:
            rows.open(crew, self._choices.verify_crc, ThreadScratch(self._scratch_limit))
            with closing(rows):
                rows.select(self._targets, limit)
                layout = allocate_blocks(self._targets, rows.num_rows, columns.index_leaves)
                wanted = range(len(self._targets))
                buffers = rows.decode(layout, [at for at in wanted if rows.num_rows or self._targets[at].entry_type])
        if self._skip is not None:
            layout, buffers, _ = self._skip.drop_lost(columns, layout, buffers, [(rows, 0, None)], limit)
        return rows, layout, buffers

    @contextmanager
    def _named(self, rows: FileRowReader) -> Iterator[None]:
        """Say in errors where they came up."""
        try:
            yield
        except ParquetError as error:
            rows.chunk_tables.add_chunk_file(error)
            raise
        except MemoryError as error:
            what = f"{rows.num_rows:,} rows of {len(self._columns.names)} columns"
            raise LimitError(f"not enough memory to read {what}") from error
