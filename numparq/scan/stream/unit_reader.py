"""Read files in units: rows decoded at once within a memory limit, cut into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.column.projection import POSITION_COLUMN, check_include
from numparq.column.read.row_selection import RowSlice, RowSlices
from numparq.errors import error_context
from numparq.format.open_file import OpenFile
from numparq.scan.file_columns import FileColumns
from numparq.scan.file_rows import leaves_may_be_null
from numparq.scan.memory import MemoryEstimate, release_free_memory, virtual_row_bytes
from numparq.scan.options import ScanOptions, select_row_slices
from numparq.scan.projected_columns import project_columns
from numparq.scan.scan import DecodedRows, Scan
from numparq.scan.scan_file import ScanFile
from numparq.typing import Columns
from numparq.util.arguments import check_row_count

from .batches import RangeLabels, drop_range_index
from .page_locations import PageLocator
from .units import MIN_UNIT_ROWS, BatchSize, MemoryShares, UnitPlan, add_filter_columns

if TYPE_CHECKING:
    import pandas as pd

    from numparq.scan.recovery.skip_damaged import SkipDamaged

    from .arrow_tables import ArrowTableBuilder, ExplodedTableBuilder

__all__ = ["StreamedFile", "UnitReader"]

# Of columns that are made of what is not in files: of partitions, and of what a file lacks.
_MADE_BYTES = 16

_Unit = TypeVar("_Unit")

Begin = Callable[[ScanOptions], tuple[Scan, Sequence[ScanFile]]]


class StreamedFile(Scan):
    """Scan of one file in parts, all of the types that follow from its schema and from the footer as a whole."""

    def __init__(self, file: OpenFile, columns: Columns, options: ScanOptions, skip: SkipDamaged | None = None) -> None:
        table = project_columns(file, columns, options)
        condition = None
        if options.filters is not None or options.runtime_filters:
            from numparq.scan.predicate import ScanPredicate

            condition = ScanPredicate(file, options.filters, options.runtime_filters)
        limit = None if condition is not None else options.nrows
        slices = select_row_slices(file.footer.row_group_num_rows, options.row_groups, options.row_range, limit)
        self.files = [ScanFile(file, 0, slices, condition)]
        super().__init__(table, self.files, {0: FileColumns(table, dict(enumerate(table.selected)))}, options, skip)
        if file.is_written_by_numparq and file.num_row_groups:
            self.empty_files = [ScanFile(file, 0, RowSlices.single(0, 0, 0))]

    @cached_property
    def may_be_null(self) -> list[bool]:
        """Whether each leaf may be null in any row group."""
        return leaves_may_be_null(self.files[0].file, self.table.leaves)


class UnitReader:
    """The rows of files in units, all of the same types.

    Parameters
    ----------
    begin : callable
        Chooses files and columns, for choices; gives the read, and the files with the rows that are chosen by position.
    choices : ScanOptions
        What else is asked for; ``nrows`` counts rows that satisfy the filters.
    sizes : BatchSize
        How large units are.

    Attributes
    ----------
    batch_rows : int
        Rows of a batch, at most.
    has_exact_batches : bool
        Whether each batch has exactly `batch_rows` rows, rather than at most so many.
    reads_ahead : bool
        Whether a unit may be read while the previous one is in use.
    labels : RangeLabels
        For rows without an index.
    """

    def __init__(self, begin: Begin, choices: ScanOptions, sizes: BatchSize) -> None:
        self._begin = begin
        self._choices = choices
        self._sizes = sizes
        self._read, self._files = begin(replace(choices, memory_limit=None))
        has_condition = choices.filters is not None or bool(choices.runtime_filters)
        self._limit = check_row_count(choices.nrows, "nrows") if has_condition and choices.nrows is not None else None
        is_open = has_condition or choices.explode is not None
        rows = None if is_open else sum(len(part) for wanted in self._files for part in wanted.slices)
        self.labels = RangeLabels.from_metadata(self._read.table.metadata, rows)
        drop_range_index(self._read.table)
        self._inflation: float | None = None  # how many times larger than estimated the rows of the last unit were
        self._set_shares()

    def _set_shares(self) -> None:
        """Divide the memory."""
        as_objects = self._choices.dtype_backend != "pyarrow"
        self._known = []
        for wanted in self._files:
            part = self._read.file_reader(wanted)
            leaves, targets = add_filter_columns(part.rows.leaves, part.output_types, wanted.predicate)
            groups = [rows.row_group for rows in wanted.slices]
            made = len(self._read.table.leaves) - len(part.rows.leaves)
            extra = max(made, 0) * _MADE_BYTES + virtual_row_bytes(self._read.table.virtual, wanted.file.source.name)
            costs = MemoryEstimate(wanted.file, leaves, targets, groups, as_objects, extra)
            self._known.append((leaves, targets, costs))
        everything = sum(
            costs.slice_bytes(wanted.slices) for wanted, (_, _, costs) in zip(self._files, self._known, strict=True)
        )
        threads = self._choices.threads
        self._shares = shares = MemoryShares([costs for _, _, costs in self._known], everything, self._sizes, threads)
        self.batch_rows, self.has_exact_batches, self.reads_ahead = (
            shares.batch_rows,
            shares.has_exact_batches,
            shares.reads_ahead,
        )
        self._read.set_shares(shares.threads, shares.scratch_limit)

    def _units(self, convert: Callable[[DecodedRows], _Unit]) -> Iterator[_Unit]:
        """Decode and convert one unit after the other; at least one, though it may be without rows."""
        left, nothing = self._limit, True
        for files, estimate in self._plan_units():
            release_free_memory()
            num_rows, num_bytes, unit = self._read.read_unit(files, left, convert)
            planned = sum(len(part) for wanted in files for part in wanted.slices)
            if estimate and num_rows >= MIN_UNIT_ROWS:
                self._inflation = max(1.0, num_bytes / (estimate * num_rows / planned))
            if num_rows:
                nothing = False
                yield unit
            if left is not None:
                left -= num_rows
                if left <= 0:
                    break
            del unit
        if nothing:
            yield self._read.read_unit(self._read.empty_files, None, convert)[2]

    def _plan_units(self) -> Iterator[tuple[list[ScanFile], float]]:
        """Give the files, and parts of them, that make a unit, and what their rows are estimated to take."""
        unit: list[ScanFile] = []
        size = estimate = 0.0
        for wanted, (leaves, targets, costs) in zip(self._files, self._known, strict=True):
            pages = PageLocator(wanted.file, leaves, targets, self._choices.verify_crc)
            plan = UnitPlan(wanted.slices, costs, self._shares, pages.unsplittable_columns)
            plan.inflation = self._inflation or plan.inflation
            left = sum(map(len, wanted.slices))
            for slices in _with_file(plan.units(), wanted.file):
                more = plan.estimate_bytes(slices)
                if unit and size + more > self._shares.unit_bytes:
                    yield unit, estimate
                    unit, size, estimate = [], 0.0, 0.0
                    plan.inflation = self._inflation or plan.inflation
                is_whole = list(slices) == list(wanted.slices)
                unit.append(wanted if is_whole else ScanFile(wanted.file, wanted.ordinal, slices, wanted.predicate))
                size += more
                estimate += costs.slice_bytes(slices)
                left -= sum(map(len, slices))
                if left:  # the next rows are planned by what these have taken
                    yield unit, estimate
                    unit, size, estimate = [], 0.0, 0.0
                    plan.inflation = self._inflation or plan.inflation
        if unit:
            yield unit, estimate

    def frames(self) -> Iterator[pd.DataFrame]:
        """Give the rows of each unit as a frame, its RangeIndex from 0 where it has no other; at least one frame."""
        yield from self._units(self._read.to_frame)

    # --- Arrow -------------------------------------------------------------------------------------------------------

    def to_arrow(self) -> UnitReader:
        """Return a reader of the same rows as Arrow tables."""
        return UnitReader(self._begin, replace(self._choices, dtype_backend="pyarrow"), self._sizes)

    @cached_property
    def _exploded(self) -> ExplodedTableBuilder:
        from .arrow_tables import ExplodedTableBuilder

        metadata = self._read.table.metadata
        nothing = self._read.read_unit(self._read.empty_files, None, self._read.to_frame)[2]
        virtual = check_include(self._choices.include, (POSITION_COLUMN,))
        return ExplodedTableBuilder(nothing, virtual, metadata.index_fields if metadata else ())

    @cached_property
    def _arrow(self) -> ArrowTableBuilder:
        from .arrow_tables import ArrowTableBuilder

        table = self._read.table
        made = self._read.partition_arrays([], [])
        with error_context(file=self._files[0].file.source.name if len(self._files) == 1 else None):
            return ArrowTableBuilder(table.schema_file, table, self._read.output_types, made)

    @property
    def schema(self) -> Any:
        """The schema of the tables (pyarrow.Schema)."""
        return self._arrow.schema if self._choices.explode is None else self._exploded.schema

    def tables(self) -> Iterator[Any]:
        """Give the rows of each unit as a pyarrow.Table."""
        if self._choices.explode is not None:
            exploded = self._exploded
            yield from self._units(lambda rows: exploded.to_table(self._read.to_frame(rows)))
            return
        builder = self._arrow
        yield from self._units(
            lambda rows: builder.to_table(
                rows.layout.targets, rows.buffers, rows.num_rows, rows.virtual, rows.made_columns
            )
        )


def _with_file(units: Iterator[list[RowSlice]], file: OpenFile) -> Iterator[list[RowSlice]]:
    """Yield the units of a file, unless it has changed, with its name in errors."""
    while True:
        with error_context(file=file.source.name):
            file.check_unchanged()
            unit = next(units, None)
        if unit is None:
            return
        yield unit
