"""Read many files in units: rows decoded at once within a memory limit, cut into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.errors import UnsupportedError
from numparq.scan.memory import MemoryEstimate, release_free_memory, virtual_row_bytes
from numparq.scan.options import ScanOptions
from numparq.scan.stream.batches import RangeLabels, drop_range_index
from numparq.scan.stream.page_locations import PageLocator
from numparq.scan.stream.units import BatchSize, FileUnitPlan, MemoryShares, add_filter_columns
from numparq.util.arguments import check_row_count

from .dataset_scan import DatasetScan, DecodedRows
from .file_selection import FileSelection

if TYPE_CHECKING:
    import pandas as pd

    from numparq.scan.stream.arrow_tables import ArrowTableBuilder

__all__ = ["DatasetUnitReader"]

# Of columns that are made of what is not in files: of partitions, and of what a file lacks.
_MADE_BYTES = 16

_Unit = TypeVar("_Unit")

Begin = Callable[[ScanOptions], tuple[DatasetScan, list[FileSelection]]]


class DatasetUnitReader:
    """The rows of many files in units.

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
    batch_rows, has_exact_batches, is_ahead
        As of `MemoryShares`.
    labels : RangeLabels
        Of rows without an index.
    """

    def __init__(self, begin: Begin, choices: ScanOptions, sizes: BatchSize) -> None:
        self._begin = begin
        self._choices = choices
        self._sizes = sizes
        self._read, self._files = begin(replace(choices, memory_limit=None))
        has_condition = choices.filters is not None or bool(choices.runtime_filters)
        self._limit = check_row_count(choices.nrows, "nrows") if has_condition and choices.nrows is not None else None
        rows = None if has_condition else sum(len(part) for wanted in self._files for part in wanted.slices)
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
            for wanted in files:
                wanted.file.check_unchanged()
            num_rows, num_bytes, unit = self._read.read_unit(files, left, convert)
            if estimate and num_rows == sum(len(part) for wanted in files for part in wanted.slices):
                self._inflation = max(1.0, num_bytes / estimate)
            if num_rows:
                nothing = False
                yield unit
            if left is not None:
                left -= num_rows
                if left <= 0:
                    break
            del unit
        if nothing:
            yield convert(self._read.decode([]))

    def _plan_units(self) -> Iterator[tuple[list[FileSelection], float]]:
        """Give the files, and parts of them, that make a unit, and what their rows are estimated to take."""
        unit: list[FileSelection] = []
        size = estimate = 0.0
        for wanted, (leaves, targets, costs) in zip(self._files, self._known, strict=True):
            pages = PageLocator(wanted.file, leaves, targets, self._choices.verify_crc)
            division = FileUnitPlan(pages, wanted.slices, costs, self._shares)
            division.set_inflation(self._inflation)
            for slices in division.units():
                more = division.estimate_bytes(slices)
                if unit and size + more > self._shares.unit_bytes:
                    yield unit, estimate
                    unit, size, estimate = [], 0.0, 0.0
                    division.set_inflation(self._inflation)
                is_whole = list(slices) == list(wanted.slices)
                unit.append(
                    wanted if is_whole else FileSelection(wanted.file, wanted.ordinal, slices, wanted.predicate)
                )
                size += more
                estimate += costs.slice_bytes(slices)
        if unit:
            yield unit, estimate

    def frames(self) -> Iterator[pd.DataFrame]:
        """Give the rows of each unit as a frame, its RangeIndex from 0 where it has no other; at least one frame."""
        yield from self._units(self._read.to_frame)

    # --- Arrow -------------------------------------------------------------------------------------------------------

    def to_arrow(self) -> DatasetUnitReader:
        """Return a reader of the same rows as Arrow tables."""
        if self._choices.explode is not None:
            raise UnsupportedError("explode is not supported for Arrow streams yet; iterate over the DataFrames")
        return DatasetUnitReader(self._begin, replace(self._choices, dtype_backend="pyarrow"), self._sizes)

    @cached_property
    def _arrow(self) -> ArrowTableBuilder:
        from numparq.scan.stream.arrow_tables import ArrowTableBuilder

        table = self._read.table
        return ArrowTableBuilder(table.schema_file, table, self._read.output_types, table.partition_arrays([], []))

    @property
    def schema(self) -> Any:
        """The schema of the tables (pyarrow.Schema)."""
        return self._arrow.schema

    def tables(self) -> Iterator[Any]:
        """Give the rows of each unit as a pyarrow.Table."""
        builder = self._arrow
        yield from self._units(
            lambda rows: builder.to_table(
                rows.layout.targets, rows.buffers, rows.num_rows, rows.virtual, rows.made_columns
            )
        )
