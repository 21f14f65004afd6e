"""Decode Parquet files named by, or stored in, a column inside a user's `pandas_udf`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .tasks import begin_task, task_threads

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["decode_bytes", "decode_paths"]


def decode_paths(
    paths: pd.Series,
    columns: Sequence[str | tuple[str, ...]] | None = None,
    filters: Any = None,
    *,
    schema: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Read the Parquet files that a column names.

    Parameters
    ----------
    paths : pandas.Series of str
        Paths or URLs of files. A null is no file.
    columns, filters
        As in `numparq.read_parquet`: only these columns, and the rows that satisfy this.
    schema : Schema, pyarrow.Schema, sequence or dict, optional
        The columns of all files, as of `numparq.Dataset`. By default those of the files in this very Series: where
        Spark's batches hold files of differing schemas, only a schema gives all of them the same columns.
    **options
        As in `numparq.Dataset` and `numparq.read_parquet`: resolve, storage_options, filesystem, dtype_backend,
        include, verify_crc, runtime_filters; threads, by default one in a task.

    Returns
    -------
    pandas.DataFrame
        The rows of all files. The index says of each from which cell it is: it has the labels of `paths`, as often as a
        file has rows. Dtypes are by the schema alone: integers and booleans are nullable ones unless the column is
        REQUIRED.

    Raises
    ------
    ParquetError
        When a file is damaged, with its name.
    FileNotFoundError
        When there is none.
    TypeError
        For cells that are no paths.

    Examples
    --------
    A value for each file:

    >>> @pandas_udf("double")  # doctest: +SKIP
    ... def mean_fare(paths: pd.Series) -> pd.Series:
    ...     fares = numparq.spark.decode_paths(paths, columns=["fare"])["fare"]
    ...     return fares.groupby(level=0).mean().reindex(paths.index)

    All rows of all files:

    >>> def rows(frames):  # doctest: +SKIP
    ...     for frame in frames:
    ...         yield numparq.spark.decode_paths(frame["path"], columns=["zone", "fare"])
    >>> paths.mapInPandas(rows, "zone string, fare double")  # doctest: +SKIP
    """
    return _decode(paths, _check_path, columns, filters, schema, options)


def decode_bytes(
    contents: pd.Series,
    columns: Sequence[str | tuple[str, ...]] | None = None,
    filters: Any = None,
    *,
    schema: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Read the Parquet files whose bytes are in a column.

    Parameters
    ----------
    contents : pandas.Series of bytes
        A file each. A null is no file.
    columns, filters, schema, **options
        As of `decode_paths`.

    Returns
    -------
    pandas.DataFrame
        As `decode_paths` gives it. In messages of errors, a file is called by its place among those that are not
        null: ``<cell 3>``.

    Examples
    --------
    >>> @pandas_udf("bigint")  # doctest: +SKIP
    ... def count(contents: pd.Series) -> pd.Series:
    ...     rows = numparq.spark.decode_bytes(contents, columns=[])
    ...     return rows.groupby(level=0).size().reindex(contents.index, fill_value=0)
    """
    return _decode(contents, _check_bytes, columns, filters, schema, options)


def _decode(
    cells: pd.Series, check: Callable[[Any], Any], columns: Any, filters: Any, schema: Any, options: dict[str, Any]
) -> pd.DataFrame:
    import pandas as pd

    from numparq.dataset.small_files import read_small_files

    begin_task()
    options.setdefault("threads", task_threads())
    there = cells[cells.notna()]
    if not len(there) and schema is None:  # nothing says which types the columns have
        return pd.DataFrame(index=there.index, columns=None if columns is None else list(columns), dtype=object)
    frame, which = read_small_files([check(cell) for cell in there], columns, filters, schema=schema, **options)
    frame.index = there.index.take(which)
    return frame


def _check_path(cell: Any) -> Any:
    import os

    if not isinstance(cell, str | os.PathLike):
        raise TypeError(f"a column of paths has a {type(cell).__name__}")
    return cell


def _check_bytes(cell: Any) -> Any:
    if not isinstance(cell, bytes | bytearray | memoryview):
        raise TypeError(f"a column of Parquet files has a {type(cell).__name__}")
    return cell
