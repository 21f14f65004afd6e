"""`split_table` and `SplitTable`: a table's splits and the reader that they share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numparq.column.projection import check_names
from numparq.dataset.discover.expected_parts import PartNames
from numparq.dataset.discover.snapshot import DatasetSnapshot
from numparq.dataset.listing.file_filter import ALL_FILES, FileFilter
from numparq.dataset.prune.pruners import FilePruner
from numparq.dataset.scan.schema_only import SchemaOnlyPartitions
from numparq.expr.filters import as_expression
from numparq.io.opened_path import OpenedPath
from numparq.keys.provider import as_key_source
from numparq.scan.options import ScanOptions
from numparq.typing import Columns, Filters, PathOrPaths, RowRange, RuntimeFilters, StorageOptions
from numparq.util.arguments import check_positive_int, check_row_count
from numparq.util.pluralize import agree_noun, pluralize

from .plan import SplitQuery, plan_byte_splits, plan_row_splits
from .reader import SplitReader, SplitReadSpec, check_arrived
from .serialized_schema import SerializedSchema, UnseenFiles
from .split import Split

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource
    from numparq.format.key_values.spark import SparkCalendar

SPLIT_BYTES = 64 << 20
MAX_PLANNED_FILES = 4096


class SplitTable(SplitReader):
    """A table divided into splits, made by `split_table`, and the reader of them.

    It can be pickled; its `reader` is smaller, as it holds no splits.

    Parameters
    ----------
    spec : SplitReadSpec
        Specification of the read.
    splits : list of Split
        Splits in row order; each selected row is in exactly one.

    Attributes
    ----------
    splits
        The parameter.
    """

    def __init__(self, spec: SplitReadSpec, splits: list[Split]) -> None:
        super().__init__(spec)
        self.splits = splits

    def __getstate__(self) -> Any:
        self._spec.check_travels()
        return self._spec, self.splits

    def __setstate__(self, state: Any) -> None:
        self._spec, self.splits = state

    def __len__(self) -> int:
        return len(self.splits)

    def __repr__(self) -> str:
        count, num_bytes = len(self.splits), sum(split.num_bytes for split in self.splits)
        return f"<SplitTable: {count} {agree_noun(count, 'split')}, {pluralize(num_bytes, 'byte')}>"

    @cached_property
    def reader(self) -> SplitReader:
        """Reader of all splits."""
        return SplitReader(self._spec)

    def with_runtime_filters(self, runtime_filters: RuntimeFilters) -> SplitTable:
        """Return a table whose reader applies additional runtime filters; see `SplitReader.with_runtime_filters`."""
        splits = [split._replace(num_rows=None) for split in self.splits]
        return SplitTable(super().with_runtime_filters(runtime_filters)._spec, splits)


def split_table(
    path: PathOrPaths,
    columns: Columns = None,
    filters: Filters = None,
    *,
    runtime_filters: RuntimeFilters = (),
    split_bytes: int = SPLIT_BYTES,
    min_splits: int = 1,
    plan_files: int | None = MAX_PLANNED_FILES,
    partitioning: Any = "hive",
    schema: Any = None,
    resolve: str = "name",
    table_format: str = "auto",
    file_filter: FileFilter = ALL_FILES,
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    pruners: Sequence[FilePruner] = (),
    include: Sequence[str] = (),
    dtype_backend: str = "numpy",
    dates: str = "objects",
    variants: str = "values",
    row_groups: Sequence[int] | None = None,
    row_range: RowRange = None,
    verify_crc: bool = True,
    on_error: str = "raise",
    threads: int | None = 1,
    calendar: SparkCalendar | None = None,
    decryption: KeySource | str | None = None,
    expected_parts: PartNames | None = None,
) -> SplitTable:
    """Divide a table into splits, to be read by separate processes.

    Parameters
    ----------
    path, schema, resolve, table_format, storage_options, filesystem, pruners
        As in `numparq.Dataset`.
    file_filter : FileFilter
        Files by name and modification time (`numparq.dataset.listing.file_filter.FileFilter`).
    columns, filters, include, dtype_backend, dates, variants, verify_crc
        As in `numparq.read_parquet`. Rows come back exactly filtered.
    row_groups, row_range
        As in `numparq.Dataset.read`, the row groups in ascending order. They need the footers of all files.
    on_error : {"raise", "skip"}
        ``"skip"`` drops rows that are damaged in any column, when a split is read; `SplitReader.frames` can list them.
        A damaged footer raises.
    runtime_filters : RuntimeFilter, or iterable of these
        As in `numparq.read_parquet`; each must have arrived. They prune files here, and row groups, pages and rows
        when a split is read.
    split_bytes : int, default 64 MiB
        Maximum size of a split, approximately, in stored bytes of the columns read.
    min_splits : int, default 1
        Minimum number of splits, if rows can be divided so.
    plan_files : int or None, default 4096
        Maximum number of files whose footers are read here. With more files after pruning by partitions, splits are
        files or byte ranges, and footers are read with the splits. The schema is then `schema`, or that of a sample
        of the files with all columns nullable; a file that does not fit the latter raises SchemaError when it is read.
    partitioning : {"hive"}, None, list, dict, or callable, default "hive"
        As in `numparq.Dataset`. A callable gets the listing of all files
        (`numparq.dataset.discover.files.DatasetListing`) and returns the types of Hive partition columns as a dict.
    threads : int, default 1
        Number of threads that read a split; None as in `numparq.read_parquet`.
    calendar : SparkCalendar, optional
        Calendar of files that do not say, and whether INT96 are instants; by default as in `numparq.read_parquet`.
    decryption : Decryption or str, optional
        As in `numparq.Dataset`: with the name of a provider, the table and its reader can be pickled; other processes
        resolve the name.
    expected_parts : collection of str, or dict of str to (str or None), optional
        As in `numparq.Dataset`.

    Returns
    -------
    SplitTable
        Its splits hold the rows of `numparq.Dataset.read` in the same order. Dtypes depend on the schema of the files
        alone: integers and booleans are nullable unless the column is REQUIRED, and INT96 is in microseconds. No column
        is a Categorical or an index. Partition columns are Int32 or str, or nullable columns of the type in
        `partitioning`.

    Raises
    ------
    SchemaError, FileNotFoundError, InvalidFileError
        As in `numparq.Dataset.read`.
    ValueError
        If `row_groups` are not in ascending order, or rows are selected by position from more files than `plan_files`.

    Notes
    -----
    There is no ``explode``: the rows of a list are one unit of work with the row that holds it. Explode the frames.
    """
    choices = ScanOptions(
        filters=None if filters is None else as_expression(filters),
        runtime_filters=check_arrived(runtime_filters),
        dtype_backend=dtype_backend,
        dates=dates,
        include=tuple(include),
        variants=variants,
        row_groups=row_groups,
        row_range=row_range,
        verify_crc=verify_crc,
        on_error=on_error,
        threads=threads,
    )
    _check_sizes(split_bytes, min_splits, plan_files)
    columns = None if columns is None else check_names(columns)
    keys = as_key_source(decryption)

    def divided() -> SplitTable:
        place = OpenedPath(path, storage_options, filesystem)
        contents = _contents(place, partitioning, schema, resolve, table_format, file_filter, keys, expected_parts)
        contents.calendar = calendar
        with closing(contents):
            query = SplitQuery(contents, pruners, columns, choices, plan_files)
            unknown = UnseenFiles(schema is not None, contents.partitions.keys) if query.is_sampled else None
            plan = plan_byte_splits if query.is_sampled else plan_row_splits
            carried = SerializedSchema(query.schema, resolve, unknown)
            spec = SplitReadSpec.from_snapshot(contents, carried, columns, choices)
            return SplitTable(spec, plan(contents, query, split_bytes, min_splits))

    try:
        return divided()
    except FileNotFoundError:  # a file was replaced since the listing
        return divided()


def _check_sizes(split_bytes: int, min_splits: int, plan_files: int | None) -> None:
    check_positive_int(split_bytes, "split_bytes")
    check_positive_int(min_splits, "min_splits")
    if plan_files is not None:
        check_row_count(plan_files, "plan_files")


def _contents(
    path: OpenedPath,
    partitioning: Any,
    schema: Any,
    resolve: str,
    table_format: str,
    file_filter: FileFilter,
    keys: KeySource | None,
    expected_parts: PartNames | None,
) -> DatasetSnapshot:
    """List the files, and set the types of partition columns, none of them a Categorical."""
    given = "hive" if callable(partitioning) else partitioning
    options = resolve, None, table_format, file_filter, keys, expected_parts
    contents = DatasetSnapshot(path, given, None, schema, *options)
    types = partitioning(contents.listing) if callable(partitioning) else given
    contents.partitions = SchemaOnlyPartitions.from_listing(contents.listing, types)
    return contents
