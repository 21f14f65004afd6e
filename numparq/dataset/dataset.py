"""`Dataset`: many Parquet files open as one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.errors import InvalidFileError
from numparq.file.pyarrow_arguments import READ_ADVICE
from numparq.format.schema import Schema
from numparq.io.opened_path import OpenedPath
from numparq.io.source import Source
from numparq.plan.dataset_plan import DatasetPlan
from numparq.scan.options import ScanOptions
from numparq.scan.table import ReadableTable
from numparq.typing import ColumnName, Columns, Filters, PathOrPaths, RowRange, RuntimeFilters, StorageOptions
from numparq.util.arguments import check_list, explain_unknown_arguments, thread_count
from numparq.util.reopenable import Reopenable

from .discover.snapshot import DatasetSnapshot
from .prune.pruners import FilePruner
from .scan.query import DatasetQuery

if TYPE_CHECKING:
    import pandas as pd

    from numparq.io.coalesce import Coalescing
    from numparq.scan.recovery.skip_damaged import SkipDamaged
    from numparq.scan.stream.batches import Batches

__all__ = ["Dataset"]

_Result = TypeVar("_Result")


class Dataset(ReadableTable, Reopenable):
    """Many Parquet files, open as one table.

    Parameters
    ----------
    path : str, os.PathLike, or list of these
        A directory, a glob, a file, or a list of these; URLs too.
    partitioning : {"hive"}, None, list or dict, default "hive"
        How directory names give partition columns: by ``key=value``, not at all (None), or by position (a list of
        names). A dict gives the types of ``key=value`` columns, a list of (name, type) pairs those of positional ones.
    schema : Schema, pyarrow.Schema, sequence or dict, optional
        Columns of the table; by default the columns of all files.
    resolve : {"name", "position", "field_id"}, default "name"
        How columns of a file are mapped to columns of the table.
    categories : collection of str, optional
        Partition columns with a given type to return as Categorical.
    table_format : {"auto", "parquet"}
        As in `numparq.read_parquet`.
    storage_options, filesystem, coalescing
        As in `numparq.read_parquet`.
    pruners : sequence of FilePruner
        Additional file pruners, called once for each read.
    threads : int, optional
        Default number of threads of each read, as in `numparq.read_parquet`.

    Attributes
    ----------
    files : list of str
        Names of the files, in row order.
    partition_keys : tuple of str
        Names of the partition columns.
    schema : Schema
        Merged schema of all files, without partition columns; reads all footers.
    num_rows : int
        Number of rows; reads all footers.

    Raises
    ------
    FileNotFoundError
        If nothing exists at the path.
    InvalidFileError
        If a directory has no Parquet files, or the files are partitioned by different columns.
    UnsupportedError
        If the path belongs to a table of Delta Lake, Hudi or Iceberg.
    ValueError, TypeError
        If `partitioning` is invalid, or gives the type of a column that is no partition column.

    Notes
    -----
    It can be pickled and copied. The pickle holds the path and the options, and the copy lists the files at first use;
    files that have changed since are an InvalidFileError.

    Examples
    --------
    >>> import pandas, tempfile, numparq
    >>> frame = pandas.DataFrame({"year": [2023, 2023, 2024], "sold": [5, 7, 9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numparq.to_parquet(frame, folder, partition_cols=["year"])
    ...     with numparq.Dataset(folder) as sales:
    ...         print(len(sales.files), sales.count_rows())
    ...         print(sales.read(filters=[("year", "=", 2024)]))
    2 3
       sold  year
    0     9  2024
    """

    @explain_unknown_arguments(READ_ADVICE)
    def __init__(
        self,
        path: PathOrPaths,
        *,
        partitioning: Any = "hive",
        schema: Any = None,
        resolve: str = "name",
        categories: Collection[str] | None = None,
        table_format: str = "auto",
        storage_options: StorageOptions = None,
        filesystem: Any = None,
        coalescing: Coalescing | None = None,
        pruners: Sequence[FilePruner] = (),
        threads: int | None = None,
    ) -> None:
        if categories is not None:
            check_list(categories, "categories")
        if threads is not None:
            thread_count(threads)
        self._opened_path = OpenedPath(path, storage_options, filesystem)
        self._options: dict[str, Any] = {
            "partitioning": partitioning,
            "schema": schema,
            "resolve": resolve,
            "categories": categories,
            "coalescing": coalescing,
            "table_format": table_format,
        }
        self._pruners = tuple(check_list(pruners, "pruners", "FilePruner"))
        self._threads = threads
        self._contents = self._list_files()

    def _list_files(self) -> DatasetSnapshot:
        return DatasetSnapshot(self._opened_path, **self._options)

    def refresh(self) -> None:
        """List the files again."""
        self.close()
        self._contents = self._list_files()

    @property
    def files(self) -> list[str]:
        """Names of the files, in row order."""
        return [file.name for file in self._contents.files]

    def single_source(self) -> Source | None:
        """Open the source of the only file; return None for several files, and with partition columns."""
        return self._retry_after_refresh(lambda: self._contents.single_source())

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return tuple(self._contents.partitions.keys)

    @property
    def schema(self) -> Schema:
        """Merged schema of all files, without partition columns; reads all footers."""
        return self._contents.schema_of(range(len(self._contents.files))).schema

    @property
    def num_rows(self) -> int:
        """Number of rows; reads all footers."""
        return self.count_rows()

    @explain_unknown_arguments(READ_ADVICE)
    def read(
        self,
        columns: Columns = None,
        filters: Filters = None,
        *,
        runtime_filters: RuntimeFilters = (),
        explode: ColumnName | None = None,
        dtype_backend: str = "numpy",
        row_groups: Sequence[int] | None = None,
        row_range: RowRange = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Sequence[str] = (),
        dates: str = "objects",
        geometries: str = "wkb",
        variants: str = "values",
        files: str = "references",
        verify_crc: bool = True,
        on_error: str = "raise",
        memory_limit: int | None = None,
        threads: int | None = None,
        progress: bool = False,
    ) -> pd.DataFrame:
        """Read columns and rows into one DataFrame.

        Parameters
        ----------
        columns, filters, runtime_filters, explode, dtype_backend, row_groups, row_range, nrows, categories, include
            As in `numparq.read_parquet`; rows and row groups count over all files.
        dates, geometries, variants, files, verify_crc, on_error, memory_limit, threads, progress
            As in `numparq.read_parquet`.

        Returns
        -------
        pandas.DataFrame
            Partition columns come last, unless `columns` orders them otherwise. Dtypes are those of a single file with
            all these rows.
        """
        return self._read(columns, ScanOptions.from_arguments(locals()))

    def _read(self, columns: Columns, options: ScanOptions) -> pd.DataFrame:
        """Read with checked options."""
        options = options if options.threads is not None else replace(options, threads=self._threads)
        if options.on_error == "skip":
            return self._retry_after_refresh(lambda: self._read_intact(columns, options))
        return self._retry_after_refresh(lambda: self._query(columns, options).scan.read())

    def _read_intact(self, columns: Columns, options: ScanOptions) -> pd.DataFrame:
        from numparq.scan.recovery.skip_damaged import SkipDamaged

        skip = SkipDamaged()

        def attempt(left: Columns) -> pd.DataFrame:
            return self._query(left, options, skip).scan.read()

        return skip.read_with_retries(
            attempt, columns, lambda: list(dict.fromkeys([*self.schema.columns, *self.partition_keys]))
        )

    @explain_unknown_arguments(READ_ADVICE)
    def iter_batches(
        self,
        columns: Columns = None,
        filters: Filters = None,
        *,
        batch_rows: int | None = None,
        batch_bytes: int | None = None,
        memory_limit: int | None = None,
        runtime_filters: RuntimeFilters = (),
        explode: ColumnName | None = None,
        dtype_backend: str = "numpy",
        row_groups: Sequence[int] | None = None,
        row_range: RowRange = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Sequence[str] = (),
        dates: str = "objects",
        geometries: str = "wkb",
        variants: str = "values",
        files: str = "references",
        verify_crc: bool = True,
        on_error: str = "raise",
        threads: int | None = None,
    ) -> Batches:
        """Read columns and rows in batches, within bounded memory.

        Parameters
        ----------
        columns, filters, runtime_filters, explode, dtype_backend, row_groups, row_range, nrows, categories, include
            As in `read`.
        dates, geometries, variants, files, verify_crc, threads
            As in `read`.
        batch_rows, batch_bytes, memory_limit, on_error
            As in `ParquetFile.iter_batches`. A batch may hold the rows of several small files.

        Returns
        -------
        Batches
            Iterator of DataFrames with the columns of `read`, and the dtypes of `ParquetFile.iter_batches`. Instead of
            being iterated, it can serve as an Arrow stream for polars, duckdb or pyarrow. The dataset must stay open
            meanwhile.

        Raises
        ------
        LimitError
            As in `ParquetFile.iter_batches`.

        Examples
        --------
        >>> import pandas, tempfile, numparq
        >>> frame = pandas.DataFrame({"year": [2023, 2023, 2024], "sold": [5, 7, 9]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numparq.to_parquet(frame, folder, partition_cols=["year"])
        ...     with numparq.Dataset(folder) as sales:
        ...         for batch in sales.iter_batches(batch_rows=2):
        ...             print(batch["sold"].tolist())
        [5, 7]
        [9]
        """
        from numparq.scan.stream.batches import Batches
        from numparq.scan.stream.unit_reader import UnitReader
        from numparq.scan.stream.units import BatchSize

        options = ScanOptions.from_arguments({**locals(), "threads": self._threads if threads is None else threads})
        sizes = BatchSize(memory_limit, batch_rows, batch_bytes)
        skip = None
        if on_error == "skip":
            from numparq.scan.recovery.skip_damaged import SkipDamagedRows

            skip = SkipDamagedRows()

        def start() -> Batches:
            units = UnitReader(lambda chosen: self._query(columns, chosen, skip).scan, options, sizes)
            return Batches(units, None if skip is None else skip.lost)

        return self._retry_after_refresh(start)

    def count_rows(self, filters: Filters = None) -> int:
        """Return the number of rows.

        Parameters
        ----------
        filters : expression, str, or list of tuples, optional
            Count matching rows only. Without filters, nothing but footers is read.

        Returns
        -------
        int
            Number of rows.
        """
        options = ScanOptions(filters=filters, threads=self._threads)
        return self._retry_after_refresh(lambda: self._query([], options).scan.count())

    def plan(
        self,
        columns: Columns = None,
        filters: Filters = None,
        *,
        row_groups: Sequence[int] | None = None,
        row_range: RowRange = None,
        nrows: int | None = None,
    ) -> DatasetPlan:
        """Plan a read: which files are pruned and why, and what is read of the others.

        Parameters
        ----------
        columns, filters, row_groups, row_range, nrows
            As in `read`.

        Returns
        -------
        DatasetPlan
            `DatasetPlan.explain` prints it as text.
        """
        options = ScanOptions(
            filters=filters, row_groups=row_groups, row_range=row_range, nrows=nrows, threads=self._threads
        )
        return self._retry_after_refresh(lambda: self._query(columns, options).plan())

    def _query(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None = None) -> DatasetQuery:
        return DatasetQuery(self._contents, self._pruners, columns, options, skip)

    def _retry_after_refresh(self, do: Callable[[], _Result]) -> _Result:
        """Call a function; if a file is gone, as when it was replaced, list the files again and call it once more."""
        try:
            return do()
        except FileNotFoundError:
            self.refresh()
            return do()

    def close(self) -> None:
        """Close all files."""
        self._contents.close()

    def __repr__(self) -> str:
        keys = f", partitioned by {', '.join(self.partition_keys)}" if self.partition_keys else ""
        return f"<numparq.Dataset {self._opened_path.path!r}: {len(self._contents.files)} files{keys}>"

    def _reopener(self) -> _DatasetReopener:
        options = {**self._options, "pruners": self._pruners, "threads": self._threads}
        return _DatasetReopener(self._opened_path, options, self._contents.identity())


@dataclass(frozen=True)
class _DatasetReopener:
    """Opens a dataset again, if its files have not changed."""

    path: OpenedPath
    options: dict[str, Any]
    identity: bytes

    def __call__(self) -> Dataset:
        at = self.path.from_here()
        dataset = Dataset(at.path, storage_options=at.storage_options, filesystem=at.filesystem, **self.options)
        if dataset._contents.identity() != self.identity:
            raise InvalidFileError(
                "the files of the dataset have changed since it was pickled: open it again", file=str(at.path)
            )
        return dataset
