"""Everyday methods of what is read as a table: one file or a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numparq.typing import Columns, Filters

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd
    import pyarrow as pa

__all__ = ["ReadableTable"]


class ReadableTable:
    """Base of `ParquetFile` and `Dataset`: what `read` and `iter_batches` make possible."""

    if TYPE_CHECKING:
        read: Any
        iter_batches: Any
        close: Any

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
        frame: pd.DataFrame = self.read(columns, nrows=n)
        return frame

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
        import pyarrow as pa

        with self.iter_batches(columns, filters, dtype_backend="pyarrow") as batches:
            return pa.table(batches)

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
