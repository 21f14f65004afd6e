"""`Dataset`: many Parquet files open as one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.format.schema import Schema
from numparq.io.source import Source
from numparq.plan.dataset_plan import DatasetPlan
from numparq.scan.options import ScanOptions
from numparq.typing import Columns, Filters, PathOrPaths, RowRange, RuntimeFilters, StorageOptions
from numparq.util.arguments import check_row_count

from .discover.snapshot import DatasetSnapshot
from .prune.pruners import FilePruner
from .scan.dataset_scan import DatasetScan, FileSelection
from .scan.query import DatasetQuery

if TYPE_CHECKING:
    import pandas as pd

    from numparq.io.coalesce import Coalescing
    from numparq.scan.stream.batches import Batches

__all__ = ["Dataset"]

_Result = TypeVar("_Result")


class Dataset:
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

    Raises
    ------
    FileNotFoundError
        If nothing exists at the path.
    InvalidFileError
        If a directory has no Parquet files, or the files are partitioned by different columns.
    ValueError, TypeError
        If `partitioning` is invalid, or gives the type of a column that is no partition column.

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

    def __init__(
        self,
        path: PathOrPaths,
        *,
        partitioning: Any = "hive",
        schema: Any = None,
        resolve: str = "name",
        categories: Collection[str] | None = None,
        storage_options: StorageOptions = None,
        filesystem: Any = None,
        coalescing: Coalescing | None = None,
        pruners: Sequence[FilePruner] = (),
        threads: int | None = None,
    ) -> None:
        self._path = path
        self._opening = (path, partitioning, categories, schema, resolve, storage_options, filesystem, coalescing)
        self._pruners = tuple(pruners)
        self._threads = threads
        self._contents = DatasetSnapshot(*self._opening)

    def refresh(self) -> None:
        """List the files again."""
        self.close()
        self._contents = DatasetSnapshot(*self._opening)

    @property
    def files(self) -> list[str]:
        """Names of the files, in row order."""
        return [file.name for file in self._contents.files]

    def single_source(self) -> Source | None:
        """Open the source of the file if the path names one file; return None for several."""
        return self._contents.single_source()

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return tuple(self._contents.partitions.keys)

    @property
    def schema(self) -> Schema:
        """Merged schema of all files, without partition columns; reads all footers."""
        return self._contents.schema_of(range(len(self._contents.files))).schema

    def read(
        self,
        columns: Columns = None,
        filters: Filters = None,
        *,
        runtime_filters: RuntimeFilters = (),
        dtype_backend: str = "numpy",
        row_range: RowRange = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Sequence[str] = (),
        geometries: str = "wkb",
        variants: str = "values",
        files: str = "references",
        verify_crc: bool = True,
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> pd.DataFrame:
        """Read columns and rows into one DataFrame.

        Parameters
        ----------
        columns, filters, runtime_filters, dtype_backend, row_range, nrows, categories, include
            As in `numparq.read_parquet`; rows count over all files.
        geometries, variants, files, verify_crc, memory_limit, threads
            As in `numparq.read_parquet`.

        Returns
        -------
        pandas.DataFrame
            Partition columns come last, unless `columns` orders them otherwise.
        """
        choices = ScanOptions(
            filters=filters,
            runtime_filters=runtime_filters,
            dtype_backend=dtype_backend,
            row_range=row_range,
            nrows=nrows,
            categories=categories,
            include=include,
            geometries=geometries,
            variants=variants,
            files=files,
            verify_crc=verify_crc,
            threads=self._threads if threads is None else threads,
            memory_limit=memory_limit,
        )

        def read() -> pd.DataFrame:
            query = self._query(columns, choices)
            return query.scan.read(query.file_selections, None if nrows is None else check_row_count(nrows, "nrows"))

        return self._retry_after_refresh(read)

    def iter_batches(
        self,
        columns: Columns = None,
        filters: Filters = None,
        *,
        batch_rows: int | None = None,
        batch_bytes: int | None = None,
        memory_limit: int | None = None,
        runtime_filters: RuntimeFilters = (),
        dtype_backend: str = "numpy",
        row_range: RowRange = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Sequence[str] = (),
        geometries: str = "wkb",
        variants: str = "values",
        files: str = "references",
        verify_crc: bool = True,
        threads: int | None = None,
    ) -> Batches:
        """Read columns and rows in batches, within bounded memory.

        Parameters
        ----------
        columns, filters, runtime_filters, dtype_backend, row_range, nrows, categories, include
            As in `read`.
        geometries, variants, files, verify_crc, threads
            As in `read`.
        batch_rows, batch_bytes, memory_limit
            As in `ParquetFile.iter_batches`. A batch may hold the rows of several small files.

        Returns
        -------
        Batches
            Iterator of DataFrames with the columns and dtypes of `read`. Instead of being iterated, it can serve as an
            Arrow stream for polars, duckdb or pyarrow. The dataset must stay open meanwhile.

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
        from numparq.scan.stream.units import BatchSize

        from .scan.units import DatasetUnitReader

        choices = ScanOptions(
            filters=filters,
            runtime_filters=runtime_filters,
            dtype_backend=dtype_backend,
            row_range=row_range,
            nrows=nrows,
            categories=categories,
            include=include,
            geometries=geometries,
            variants=variants,
            files=files,
            verify_crc=verify_crc,
            threads=self._threads if threads is None else threads,
        )
        sizes = BatchSize(memory_limit, batch_rows, batch_bytes)

        def begin(chosen: ScanOptions) -> tuple[DatasetScan, list[FileSelection]]:
            query = self._query(columns, chosen)
            return query.scan, query.file_selections

        return self._retry_after_refresh(lambda: Batches(DatasetUnitReader(begin, choices, sizes)))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return all rows as an Arrow stream (a PyCapsule), read on demand.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            As in `Batches.__arrow_c_stream__`.
        """
        return self.iter_batches(dtype_backend="pyarrow").__arrow_c_stream__(requested_schema)

    def count_rows(self, filters: Filters = None) -> int:
        """Return the number of rows.

        Parameters
        ----------
        filters : expression, or list of tuples, optional
            Count matching rows only. Without filters, nothing but footers is read.

        Returns
        -------
        int
            Number of rows.
        """

        def count() -> int:
            query = self._query([], ScanOptions(filters=filters, threads=self._threads))
            return query.scan.count(query.file_selections)

        return self._retry_after_refresh(count)

    def plan(self, columns: Columns = None, filters: Filters = None) -> DatasetPlan:
        """Plan a read: which files are pruned and why, and what is read of the others.

        Parameters
        ----------
        columns, filters
            As in `numparq.read_parquet`.

        Returns
        -------
        DatasetPlan
            `DatasetPlan.explain` prints it as text.
        """
        choices = ScanOptions(filters=filters, threads=self._threads)
        return self._retry_after_refresh(lambda: self._query(columns, choices).plan())

    def _query(self, columns: Columns, choices: ScanOptions) -> DatasetQuery:
        return DatasetQuery(self._contents, self._pruners, columns, choices)

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

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        keys = f", partitioned by {', '.join(self.partition_keys)}" if self.partition_keys else ""
        return f"<numparq.Dataset {self._path!r}: {len(self._contents.files)} files{keys}>"
