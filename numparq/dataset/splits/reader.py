"""`SplitReader`: reads any split of a table, in any process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numparq.column.read.row_selection import RowSlice
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.prune.dataset_filter import DatasetFilter
from numparq.dataset.scan.projected_columns import project_columns
from numparq.dataset.scan.schema_only import SchemaOnlyColumns, SchemaOnlyPartitions, SchemaOnlyScan
from numparq.expr.filters import as_expression
from numparq.expr.runtime_filter import check_runtime_filters
from numparq.format.open_file import OpenFile
from numparq.scan.options import ScanOptions
from numparq.scan.scan_file import ScanFile
from numparq.scan.stream.batches import Batches
from numparq.scan.stream.unit_reader import UnitReader
from numparq.scan.stream.units import BatchSize
from numparq.typing import RuntimeFilters

from .open_files import open_split_files
from .serialized_schema import SerializedSchema
from .split import RowGroupRange, Split, SplitPart, row_groups_in_range

if TYPE_CHECKING:
    import pandas as pd

    from numparq.column.projection import NestedProjection
    from numparq.dataset.discover.snapshot import DatasetSnapshot
    from numparq.expr.expression import Expression
    from numparq.expr.runtime_filter import RuntimeFilter
    from numparq.format.key_values.spark import SparkCalendar
    from numparq.format.schema import Leaf, Schema
    from numparq.scan.recovery.losses import Lost

__all__ = ["SplitReadSpec", "SplitReader", "check_arrived"]


@dataclass(frozen=True)
class SplitReadSpec:
    """Specification of a split read, the same for all splits of a table; can be pickled.

    ``partitions`` maps partition columns to type names; ``columns`` is as in `numparq.read_parquet`.
    """

    serialized_schema: SerializedSchema
    partitions: dict[str, str]
    columns: list[Any] | None
    options: ScanOptions
    filesystem: Any = None
    calendar: SparkCalendar | None = None

    @classmethod
    def from_snapshot(
        cls, contents: DatasetSnapshot, carried: SerializedSchema, columns: list[Any] | None, choices: ScanOptions
    ) -> SplitReadSpec:
        """Build the specification from a snapshot whose partition columns are `SchemaOnlyPartitions`."""
        partitions = contents.partitions
        assert isinstance(partitions, SchemaOnlyPartitions)
        choices = replace(choices, row_groups=None, row_range=None)  # splits say which rows they have
        return cls(carried, partitions.type_names(), columns, choices, contents.listing.filesystem, contents.calendar)


class SplitReader:
    """Reads any split of a table, in any process.

    It can be pickled, holds no splits, and opens only the files of the split that it reads.

    Parameters
    ----------
    wish : SplitReadSpec
        Specification of the read, made by `split_table`.
    """

    def __init__(self, wish: SplitReadSpec) -> None:
        self._wish = wish

    def __getstate__(self) -> SplitReadSpec:
        return self._wish

    def __setstate__(self, wish: SplitReadSpec) -> None:
        self._wish = wish

    def __repr__(self) -> str:
        names = ", ".join(repr(name) for name in self.names)
        return f"<SplitReader of {names}>"

    def with_runtime_filters(self, runtime_filters: RuntimeFilters) -> SplitReader:
        """Return a reader that applies additional runtime filters.

        Parameters
        ----------
        runtime_filters : RuntimeFilter, or iterable of these
            Filters that have arrived.

        Returns
        -------
        SplitReader
            A new reader with the old filters and the additional ones.

        Raises
        ------
        SchemaError
            If the table lacks the column of a filter, or the column is not flat.
        ValueError
            If a filter has not arrived.
        """
        choices = self._wish.options
        together = (*check_runtime_filters(choices.runtime_filters), *check_arrived(runtime_filters))
        made = SplitReader(replace(self._wish, options=replace(choices, runtime_filters=together)))
        made._filter.bind_runtime_filters(self.schema_file, together)  # raises if a column is missing
        return made

    @property
    def filesystem(self) -> Any:
        """File system of the files (fsspec or pyarrow); None for the local one."""
        return self._wish.filesystem

    @property
    def partitions(self) -> list[str]:
        """Names of the partition columns, whether they are read or not."""
        return list(self._wish.partitions)

    # --- columns -----------------------------------------------------------------------------------------------------

    @property
    def schema_file(self) -> OpenFile:
        """Schema file: no rows, the schema and key-value metadata of the table, without partition columns."""
        return self._wish.serialized_schema.schema.schema_file

    @property
    def schema(self) -> Schema:
        """Merged schema of all files, whether columns are read or not; without partition columns."""
        return self.schema_file.schema

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns that are read, in order, virtual columns last."""
        names = [column.name for column in self._selected[0]]
        return [*names, *self._selected[1]]

    @cached_property
    def arrow_schema(self) -> Any:
        """Schema of all tables (pyarrow.Schema), by the schema of the files alone."""
        from numparq.scan.stream.arrow_tables import ArrowTableBuilder

        choices = _for_arrow(self._wish.options)
        read = SchemaOnlyScan(self._wish.serialized_schema.schema, self._table(choices, self._keys), [], choices)
        made = read.table.partition_arrays([], [])
        return ArrowTableBuilder(self.schema_file, read.table, read.output_types, made).schema

    @cached_property
    def _keys(self) -> DatasetPartitions:
        """Partition columns without files."""
        return self._partitions([])

    def _partitions(self, values: Sequence[tuple[str | None, ...]]) -> DatasetPartitions:
        return SchemaOnlyPartitions(list(self._wish.partitions), values, self._wish.partitions)

    @cached_property
    def _selected(self) -> tuple[Sequence[Leaf | NestedProjection], list[str]]:
        """Projected columns in files, and virtual columns."""
        found = project_columns(self.schema_file, self._keys, self._wish.columns, self._wish.options)
        return found.selected, found.virtual

    def _table(self, choices: ScanOptions, partitions: DatasetPartitions) -> SchemaOnlyColumns:
        return SchemaOnlyColumns(self.schema_file, self._selected[0], choices, partitions)

    @cached_property
    def _filter(self) -> DatasetFilter:
        choices = self._wish.options
        return DatasetFilter(choices.filters, self._wish.serialized_schema.schema, self._keys, choices.runtime_filters)

    @property
    def predicate(self) -> Expression:
        """Filter, bound to the columns of the table; true without one."""
        return self._filter.predicate

    @property
    def filters(self) -> Expression | None:
        """Filter, not bound to columns; None without one."""
        filters = self._wish.options.filters
        return None if filters is None else as_expression(filters)

    @property
    def filter_names(self) -> list[str]:
        """Names of the columns, not of partitions, that the filters read."""
        return self._filter.names

    # --- rows --------------------------------------------------------------------------------------------------------

    def frame(self, split: Split, *, lost: list[Lost] | None = None) -> pd.DataFrame:
        """Read a split into one DataFrame.

        Parameters
        ----------
        split : Split
            A split of this table.
        lost : list of Lost, optional
            With ``on_error="skip"``, a list to which the losses are added.

        Returns
        -------
        pandas.DataFrame
            Columns and dtypes are the same for all splits. The index numbers the rows from 0; no column is an index.

        Raises
        ------
        FileNotFoundError, InvalidFileError
            If a file is gone or has changed since the table was divided.
        """
        choices = self._wish.options
        with self._begun(split, choices, self._selected[0], lost) as (read, wanted):
            return read.read_unit(wanted, None, read.to_frame)[2]

    def frames(
        self,
        split: Split,
        batch_rows: int | None = None,
        *,
        memory_limit: int | None = None,
        lost: list[Lost] | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Read a split as consecutive DataFrames, within bounded memory.

        Parameters
        ----------
        split : Split
            A split of this table.
        batch_rows, memory_limit
            As in `numparq.Dataset.iter_batches`.
        lost : list of Lost, optional
            As in `frame`.

        Yields
        ------
        pandas.DataFrame
            A batch with the columns and dtypes of `frame`; there is at least one.

        Raises
        ------
        LimitError
            As in `numparq.Dataset.iter_batches`.
        FileNotFoundError, InvalidFileError
            As in `frame`.
        """
        with self._units(split, self._wish.options, BatchSize(memory_limit, batch_rows), lost) as units:
            yield from Batches(units)

    def tables(
        self,
        split: Split,
        batch_rows: int | None = None,
        *,
        memory_limit: int | None = None,
        lost: list[Lost] | None = None,
    ) -> Iterator[Any]:
        """Read a split as consecutive Arrow tables, within bounded memory.

        Parameters
        ----------
        split : Split
            A split of this table.
        batch_rows : int, optional
            Maximum number of rows of a table.
        memory_limit : int, optional
            As in `numparq.Dataset.iter_batches`.
        lost : list of Lost, optional
            As in `frame`.

        Yields
        ------
        pyarrow.Table
            A table of `arrow_schema`; there is at least one. A VARIANT is a struct of its metadata and value.

        Raises
        ------
        LimitError, FileNotFoundError, InvalidFileError
            As in `frames`.
        """
        with self._units(split, _for_arrow(self._wish.options), BatchSize(memory_limit, batch_rows), lost) as units:
            for table in units.tables():
                yield from _cut(table, batch_rows)
                del table

    def count(self, split: Split) -> int:
        """Return the number of rows of a split; reads nothing if the plan knows it, else only the filter columns.

        Parameters
        ----------
        split : Split
            A split of this table.

        Returns
        -------
        int
            Number of rows.
        """
        if self._wish.options.on_error == "skip":
            return sum(map(len, self.frames(split)))
        if split.num_rows is not None:
            return split.num_rows
        with self._begun(split, replace(self._wish.options, include=()), []) as (read, wanted):
            return read.count(wanted)

    @contextmanager
    def _units(
        self, split: Split, choices: ScanOptions, sizes: BatchSize, lost: list[Lost] | None
    ) -> Iterator[UnitReader]:
        with self._begun(split, choices, self._selected[0], lost) as begun:
            units = UnitReader(lambda _: begun, choices, sizes)
            units.reads_ahead = False  # no read-ahead thread: the engine above schedules the work
            yield units

    @contextmanager
    def _begun(
        self,
        split: Split,
        choices: ScanOptions,
        selected: Sequence[Leaf | NestedProjection],
        lost: list[Lost] | None = None,
    ) -> Iterator[tuple[SchemaOnlyScan, list[ScanFile]]]:
        """Open the files of a split, and prepare a scan of columns, which adds its losses to `lost`."""
        skip = None
        if choices.on_error == "skip":
            from numparq.scan.recovery.skip_damaged import SkipDamagedRows

            skip = SkipDamagedRows(lost)
        with open_split_files(split.parts, self._wish.filesystem, self._wish.calendar) as files:
            partitions = self._partitions([part.file.values for part in split.parts])
            table = SchemaOnlyColumns(self.schema_file, list(selected), choices, partitions)
            made = [self._select_file(at, *each) for at, each in enumerate(zip(split.parts, files, strict=True))]
            wanted = [one for one in made if one.slices and not one.matches_nothing]
            yield SchemaOnlyScan(self._wish.serialized_schema.schema, table, wanted, choices, skip), wanted

    def _select_file(self, at: int, part: SplitPart, file: OpenFile) -> ScanFile:
        self._wish.serialized_schema.check_file(file)
        groups = part.groups
        if groups is None:
            groups = row_groups_in_range(file, part.byte_range or (0, None))
        condition = self._filter.scan_predicate(file, part.file, self._wish.options.runtime_filters)
        return ScanFile(file, at, _slices(groups), condition)


def check_arrived(runtime_filters: RuntimeFilters) -> tuple[RuntimeFilter, ...]:
    """Return runtime filters as a tuple; raise ValueError if one has not arrived: it cannot reach other processes."""
    found = tuple(check_runtime_filters(runtime_filters))
    for each in found:
        if not each.has_arrived:
            raise ValueError(
                f"{each!r} must arrive before the table is divided into splits, which other processes read"
            )
    return found


def _for_arrow(choices: ScanOptions) -> ScanOptions:
    return replace(choices, dtype_backend="pyarrow", variants="bytes")


def _slices(groups: Sequence[RowGroupRange]) -> list[RowSlice]:
    """Return the row slices of row group ranges, decoded one after another."""
    made, out = [], 0
    for group in groups:
        made.append(RowSlice(group.row_group, group.start, group.stop, out))
        out += group.stop - group.start
    return made


def _cut(table: Any, batch_rows: int | None) -> Iterator[Any]:
    """Slice a table into tables of at most ``batch_rows`` rows."""
    if batch_rows is None or table.num_rows <= batch_rows:
        yield table
        return
    for start in range(0, table.num_rows, batch_rows):
        # pyarrow slices a table without columns to any length, even past its end.
        yield table.slice(start, min(batch_rows, table.num_rows - start))
