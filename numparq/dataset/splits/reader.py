"""`SplitReader`: reads any split of a table, in any process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numparq.column.read.row_selection import RowSlice, RowSlices
from numparq.crypto.key import check_named
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.prune.dataset_filter import DatasetFilter
from numparq.dataset.scan.projected_columns import project_columns
from numparq.dataset.scan.schema_only import SchemaOnlyColumns, SchemaOnlyPartitions
from numparq.expr.filters import as_expression
from numparq.expr.runtime_filter import check_runtime_filters
from numparq.format.open_file import OpenFile
from numparq.scan.options import ScanOptions
from numparq.scan.scan import Scan
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
    from numparq.keys.part_keys import DatasetKeys
    from numparq.scan.recovery.losses import Lost


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
    keys: DatasetKeys | None = None

    def check_travels(self) -> None:
        """Raise TypeError if the specification has keys that no provider named, and so cannot be pickled."""
        check_named(None if self.keys is None else self.keys.keys, "a table")

    @classmethod
    def from_snapshot(
        cls, snapshot: DatasetSnapshot, schema: SerializedSchema, columns: list[Any] | None, options: ScanOptions
    ) -> SplitReadSpec:
        """Build the specification from a snapshot whose partition columns are `SchemaOnlyPartitions`."""
        partitions = snapshot.partitions
        assert isinstance(partitions, SchemaOnlyPartitions)
        options = replace(options, row_groups=None, row_range=None)  # splits hold their rows
        source = snapshot.listing.filesystem, snapshot.calendar, snapshot.keys
        return cls(schema, partitions.type_names(), columns, options, *source)


class SplitReader:
    """Reads any split of a table, in any process.

    It can be pickled, holds no splits, and opens only the files of the split that it reads.

    Parameters
    ----------
    spec : SplitReadSpec
        Specification of the read, made by `split_table`.
    """

    def __init__(self, spec: SplitReadSpec) -> None:
        self._spec = spec

    def __getstate__(self) -> SplitReadSpec:
        self._spec.check_travels()
        return self._spec

    def __setstate__(self, spec: SplitReadSpec) -> None:
        self._spec = spec

    def __repr__(self) -> str:
        return f"<SplitReader of {', '.join(map(repr, self.names))}>"

    @property
    def dataset_keys(self) -> DatasetKeys | None:
        """Keys of the files; None if none were given."""
        return self._spec.keys

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
        options = self._spec.options
        filters = (*check_runtime_filters(options.runtime_filters), *check_arrived(runtime_filters))
        reader = SplitReader(replace(self._spec, options=replace(options, runtime_filters=filters)))
        reader._filter.bind_runtime_filters(self.schema_file, filters)  # raises if a column is missing
        return reader

    @property
    def filesystem(self) -> Any:
        """File system of the files (fsspec or pyarrow); None for the local one."""
        return self._spec.filesystem

    @property
    def has_keys(self) -> bool:
        """Whether files are opened with keys."""
        return self._spec.keys is not None

    @property
    def partitions(self) -> list[str]:
        """Names of the partition columns, whether they are read or not."""
        return list(self._spec.partitions)

    # --- columns -----------------------------------------------------------------------------------------------------

    @property
    def schema_file(self) -> OpenFile:
        """Schema file: no rows, the schema and key-value metadata of the table, without partition columns."""
        return self._spec.serialized_schema.schema.schema_file

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

        projection = self._projection(_for_arrow(self._spec.options), self._keys)
        types = projection.schema_only_types(projection.may_be_null)
        return ArrowTableBuilder(self.schema_file, projection, types, projection.partition_arrays([], [])).schema

    @cached_property
    def _keys(self) -> DatasetPartitions:
        """Partition columns without files."""
        return self._partitions([])

    def _partitions(self, values: Sequence[tuple[str | None, ...]]) -> DatasetPartitions:
        return SchemaOnlyPartitions(list(self._spec.partitions), values, self._spec.partitions)

    @cached_property
    def _selected(self) -> tuple[Sequence[Leaf | NestedProjection], list[str]]:
        """Projected columns in files, and virtual columns."""
        schema = self._spec.serialized_schema.schema
        columns = project_columns(schema, self._keys, self._spec.columns, self._spec.options)
        return columns.selected, columns.virtual

    def _projection(self, options: ScanOptions, partitions: DatasetPartitions) -> SchemaOnlyColumns:
        return SchemaOnlyColumns(self.schema_file, self._selected[0], options, partitions)

    @cached_property
    def _filter(self) -> DatasetFilter:
        options = self._spec.options
        return DatasetFilter(options.filters, self._spec.serialized_schema.schema, self._keys, options.runtime_filters)

    @property
    def predicate(self) -> Expression:
        """Filter, bound to the columns of the table; true without one."""
        return self._filter.predicate

    @property
    def filters(self) -> Expression | None:
        """Filter, not bound to columns; None without one."""
        filters = self._spec.options.filters
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
        with self._scan(split, self._spec.options, lost) as scan:
            return scan.read_unit(scan.selected, None, scan.to_frame)[2]

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
        batch_rows
            As in `numparq.Dataset.iter_batches`.
        memory_limit : int, optional
            As in `numparq.Dataset.iter_batches`; by default about 256 MiB, however many columns there are.
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
        with self._units(split, self._spec.options, _sizes(memory_limit, batch_rows), lost) as units:
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
            As in `frames`.
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
        with self._units(split, _for_arrow(self._spec.options), _sizes(memory_limit, batch_rows), lost) as units:
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
        if self._spec.options.on_error == "skip":
            return sum(map(len, self.frames(split)))
        if split.num_rows is not None:
            return split.num_rows
        with self._scan(split, replace(self._spec.options, include=())) as scan:
            return scan.count()

    @contextmanager
    def _units(
        self, split: Split, options: ScanOptions, sizes: BatchSize, lost: list[Lost] | None
    ) -> Iterator[UnitReader]:
        with self._scan(split, options, lost) as scan:
            units = UnitReader(lambda _: scan, options, sizes)
            units.reads_ahead = False  # no read-ahead thread: the engine above schedules the work
            yield units

    @contextmanager
    def _scan(self, split: Split, options: ScanOptions, lost: list[Lost] | None = None) -> Iterator[Scan]:
        """Open the files of a split, and build their scan, which adds its losses to `lost`."""
        skip = None
        if options.on_error == "skip":
            from numparq.scan.recovery.skip_damaged import SkipDamagedRows

            skip = SkipDamagedRows(lost)
        spec = self._spec
        with open_split_files(split.parts, spec.filesystem, spec.calendar, spec.keys) as opened:
            partitions = self._partitions([part.file.values for part in split.parts])
            projection = self._projection(options, partitions)
            files = [self._select_file(at, *each) for at, each in enumerate(zip(split.parts, opened, strict=True))]
            files = [one for one in files if one.slices.num_rows and not one.matches_nothing]
            projection.map_files(self._spec.serialized_schema.schema, files)
            yield Scan(projection, files, options, skip)

    def _select_file(self, at: int, part: SplitPart, file: OpenFile) -> ScanFile:
        self._spec.serialized_schema.check_file(file)
        groups = part.groups
        if groups is None:
            groups = row_groups_in_range(file, part.byte_range or (0, None))
        predicate = self._filter.scan_predicate(file, part.file, self._spec.options.runtime_filters)
        return ScanFile(file, at, RowSlices.of(_slices(groups)), predicate)


def check_arrived(runtime_filters: RuntimeFilters) -> tuple[RuntimeFilter, ...]:
    """Return runtime filters as a tuple; raise ValueError if one has not arrived: it cannot reach other processes."""
    filters = tuple(check_runtime_filters(runtime_filters))
    for each in filters:
        if not each.has_arrived:
            raise ValueError(
                f"{each!r} must arrive before the table is divided into splits, which other processes read"
            )
    return filters


def _for_arrow(options: ScanOptions) -> ScanOptions:
    return replace(options, dtype_backend="pyarrow", variants="bytes")


def _sizes(memory_limit: int | None, batch_rows: int | None) -> BatchSize:
    """Return the size of units and batches; without a limit that of one, as several tasks may share a machine."""
    return BatchSize(memory_limit, batch_rows, leaf_bytes=0)


def _slices(groups: Sequence[RowGroupRange]) -> list[RowSlice]:
    """Return the row slices of row group ranges, decoded one after another."""
    slices, out = [], 0
    for group in groups:
        slices.append(RowSlice(group.row_group, group.start, group.stop, out))
        out += group.stop - group.start
    return slices


def _cut(table: Any, batch_rows: int | None) -> Iterator[Any]:
    """Slice a table into tables of at most ``batch_rows`` rows."""
    if batch_rows is None or table.num_rows <= batch_rows:
        yield table
        return
    for start in range(0, table.num_rows, batch_rows):
        # pyarrow slices a table without columns to any length, even past its end.
        yield table.slice(start, min(batch_rows, table.num_rows - start))
