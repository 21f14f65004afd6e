"""Reads of a table, which is one file or a dataset."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.errors import short_traceback
from numparq.scan.options import ScanOptions
from numparq.typing import (
    AnyDtypeBackend,
    ColumnName,
    Columns,
    Dates,
    Files,
    Filters,
    Geometries,
    Include,
    OnError,
    RowRange,
    RuntimeFilters,
    Variants,
)
from numparq.util.arguments import explain_unknown_arguments
from numparq.util.optional import import_pyarrow

from .argument_advice import BATCHES_ADVICE, READ_ADVICE

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd
    import pyarrow as pa

    from numparq.scan.recovery.skip_damaged import SkipDamaged
    from numparq.scan.scan import Scan
    from numparq.scan.stream.batches import Batches

_Result = TypeVar("_Result")


class ReadableTable:
    """Base of `ParquetFile` and `Dataset`."""

    _threads: int | None = None

    if TYPE_CHECKING:
        close: Any

    @short_traceback
    @explain_unknown_arguments(READ_ADVICE)
    def read(
        self,
        columns: Columns = None,
        filters: Filters = None,
        *,
        runtime_filters: RuntimeFilters = (),
        explode: ColumnName | None = None,
        dtype_backend: AnyDtypeBackend = "numpy",
        row_groups: Sequence[int] | None = None,
        row_range: RowRange = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Include = (),
        dates: Dates = "objects",
        geometries: Geometries = "wkb",
        variants: Variants = "values",
        files: Files = "references",
        verify_crc: bool = True,
        on_error: OnError = "raise",
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
            Dtypes are those of a single file with all these rows. A dataset's partition columns come last, unless
            `columns` orders them otherwise.
        """
        options = ScanOptions(
            filters=filters,
            runtime_filters=runtime_filters,
            explode=explode,
            dtype_backend=dtype_backend,
            row_groups=row_groups,
            row_range=row_range,
            nrows=nrows,
            categories=categories,
            include=include,
            dates=dates,
            geometries=geometries,
            variants=variants,
            files=files,
            verify_crc=verify_crc,
            on_error=on_error,
            threads=threads,
            memory_limit=memory_limit,
            progress=progress,
        )
        return self._read(columns, options)

    def _read_intact(self, columns: Columns, options: ScanOptions) -> pd.DataFrame:
        """Read rows without damage."""
        from numparq.scan.recovery.skip_damaged import SkipDamaged

        skip = SkipDamaged()
        return skip.read_with_retries(lambda left: self._read(left, options, skip), columns, self._column_names)

    @short_traceback
    @explain_unknown_arguments(BATCHES_ADVICE)
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
        dtype_backend: AnyDtypeBackend = "numpy",
        row_groups: Sequence[int] | None = None,
        row_range: RowRange = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Include = (),
        dates: Dates = "objects",
        geometries: Geometries = "wkb",
        variants: Variants = "values",
        files: Files = "references",
        verify_crc: bool = True,
        on_error: OnError = "raise",
        threads: int | None = None,
    ) -> Batches:
        """Read columns and rows batch by batch, in bounded memory.

        Parameters
        ----------
        columns, filters, runtime_filters, explode, dtype_backend, row_groups, row_range, nrows, categories, include
            As in `read`.
        dates, geometries, variants, files, verify_crc, threads
            As in `read`.
        on_error : {"raise", "skip"}
            ``"skip"`` drops rows that are damaged in any column; `Batches.lost` lists them.
        batch_rows : int, optional
            Rows of a batch, which may be those of several small files. The last batch has fewer, as may a batch before
            the categories of a column change. Default: 65,536, or fewer if memory requires it.
        batch_bytes : int, optional
            Approximate bytes of memory of a batch, instead of `batch_rows`.
        memory_limit : int, optional
            Bytes of memory for decoded rows, rows read ahead, and decoding. Batches that the caller holds are not
            counted. By default about 256 MiB, and more for many columns: up to 4 MiB of each leaf column, and 2 GiB of
            all, are decoded at once.

        Returns
        -------
        Batches
            Iterator of DataFrames or, if not iterated, an Arrow stream for polars, duckdb or pyarrow. It has at least
            one batch, possibly empty. The file or dataset must stay open meanwhile.

        Raises
        ------
        LimitError
            If a batch, or rows that can only be read together, exceed `memory_limit`.

        Notes
        -----
        All batches have the same dtypes. These follow from the schema and from the footer's null counts, not from the
        values: integers and booleans that may be null are nullable (``Int64``, ``boolean``), and INT96 timestamps have
        microseconds. Otherwise dtypes and row labels are those of `read`: ``pandas.concat`` of the batches equals one
        read. Only categories are those of the batch's own rows.

        Examples
        --------
        >>> import pandas, numparq
        >>> data = numparq.to_parquet(pandas.DataFrame({"a": range(100), "b": "x"}))
        >>> with numparq.ParquetFile(data) as file:
        ...     sum(batch["a"].sum() for batch in file.iter_batches(["a"], batch_rows=30))
        np.int64(4950)
        """
        from numparq.scan.stream.batches import Batches
        from numparq.scan.stream.unit_reader import UnitReader
        from numparq.scan.stream.units import BatchSize

        options = ScanOptions(
            filters=filters,
            runtime_filters=runtime_filters,
            explode=explode,
            dtype_backend=dtype_backend,
            row_groups=row_groups,
            row_range=row_range,
            nrows=nrows,
            categories=categories,
            include=include,
            dates=dates,
            geometries=geometries,
            variants=variants,
            files=files,
            verify_crc=verify_crc,
            on_error=on_error,
            threads=self._threads if threads is None else threads,
            memory_limit=memory_limit,
        )
        sizes = BatchSize(memory_limit, batch_rows, batch_bytes)
        skip = None
        if on_error == "skip":
            from numparq.scan.recovery.skip_damaged import SkipDamagedRows

            skip = SkipDamagedRows()

        def start() -> Batches:
            units = UnitReader(lambda chosen: self._scan(columns, chosen, skip, is_stream=True), options, sizes)
            return Batches(units, None if skip is None else skip.lost)

        return self._attempt(start)

    @short_traceback
    def count_rows(self, filters: Filters = None, *, memory_limit: int | None = None) -> int:
        """Return the number of rows.

        Parameters
        ----------
        filters : expression, str, or list of tuples, optional
            Count matching rows only. Without filters, nothing but footers is read.
        memory_limit : int, optional
            As in `numparq.read_parquet`. Without one, only row groups are refused that claim far more rows than their
            bytes may hold.

        Returns
        -------
        int
            Number of rows.

        Raises
        ------
        LimitError
            If the filter would take more memory.

        Examples
        --------
        >>> import pandas, numparq
        >>> data = numparq.to_parquet(pandas.DataFrame({"a": range(100)}))
        >>> numparq.ParquetFile(data).count_rows(numparq.col("a") < 30)
        30
        """
        options = ScanOptions(filters=filters, threads=self._threads, memory_limit=memory_limit)
        return self._attempt(lambda: self._scan([], options, None, is_stream=False).count())

    def head(self, n: int = 5, columns: Columns = None) -> pd.DataFrame:
        """Read the first rows into a DataFrame.

        Parameters
        ----------
        n : int
            Maximum number of rows.
        columns
            As in `numparq.read_parquet`.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import pandas, numparq
        >>> data = numparq.to_parquet(pandas.DataFrame({"a": range(100)}))
        >>> numparq.ParquetFile(data).head(2)
           a
        0  0
        1  1
        """
        return self.read(columns, nrows=n)

    @short_traceback
    def to_arrow(self, columns: Columns = None, filters: Filters = None) -> pa.Table:
        """Read columns and rows into an Arrow table.

        Parameters
        ----------
        columns, filters
            As in `numparq.read_parquet`.

        Returns
        -------
        pyarrow.Table
            The types follow from the schema, not from the values. Index columns are columns.

        Raises
        ------
        ImportError
            If pyarrow is not installed.

        Examples
        --------
        >>> import pandas, numparq
        >>> data = numparq.to_parquet(pandas.DataFrame({"a": [1, 2, 3]}))
        >>> numparq.ParquetFile(data).to_arrow(filters=numparq.col("a") > 1).num_rows
        2
        """
        from numparq.scan.stream.batches import read_table

        import_pyarrow("to_arrow needs")
        options = ScanOptions(filters=filters, dtype_backend="pyarrow", threads=self._threads)
        return self._attempt(lambda: read_table(self._scan(columns, options, None, is_stream=True), options))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return all rows as an Arrow stream (a PyCapsule), read on demand.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            As in `Batches.__arrow_c_stream__`.
        """
        return self.iter_batches(dtype_backend="pyarrow").__arrow_c_stream__(requested_schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- what a file and a dataset do each in their way ---------------------------------------------------------------

    def _read(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None = None) -> pd.DataFrame:
        """Read with checked options; with `skip`, one attempt of several."""
        raise NotImplementedError

    def _scan(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None, is_stream: bool) -> Scan:
        """Plan a read."""
        raise NotImplementedError

    def _attempt(self, do: Callable[[], _Result]) -> _Result:
        """Call a function that plans or reads."""
        raise NotImplementedError

    def _column_names(self) -> Sequence[str]:
        """Return the names of all columns."""
        raise NotImplementedError


# Arguments of reads that do not open a table.
READ_OPTIONS = tuple(name for name in signature(ReadableTable.iter_batches).parameters if name != "self")
