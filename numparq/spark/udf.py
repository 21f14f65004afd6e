"""Decode Parquet files named by, or stored in, a column inside a user's `pandas_udf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numparq.keys.provider import check_provider_name

from .tasks import begin_task, task_threads

if TYPE_CHECKING:
    import pandas as pd

    from numparq.typing import Columns, Filters


def decode_paths(
    paths: pd.Series,
    columns: Columns = None,
    filters: Filters = None,
    *,
    schema: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Read the Parquet files that a column names.

    Parameters
    ----------
    paths : pandas.Series of str
        Paths or URLs of files; nulls are skipped.
    columns, filters
        As in `numparq.read_parquet`.
    schema : Schema, pyarrow.Schema, sequence or dict, optional
        Columns of all files, as in `numparq.Dataset`. Default: those of the files in this Series; if the schemas of
        files differ between Spark's batches, pass one to get the same columns everywhere.
    **options
        As in `numparq.Dataset` and `numparq.read_parquet`: resolve, storage_options, filesystem, dtype_backend, dates,
        include, verify_crc, runtime_filters, decryption (the name of a provider); threads, one by default in a task.

    Returns
    -------
    pandas.DataFrame
        Rows of all files. The index repeats the label of `paths` for each row of that file. Dtypes are schema-only
        types: integers and booleans are nullable unless the column is REQUIRED.

    Raises
    ------
    ParquetError
        If a file is damaged; the message names it.
    FileNotFoundError
        If a file does not exist.
    TypeError
        If a cell is not a path.

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
    columns: Columns = None,
    filters: Filters = None,
    *,
    schema: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Read the Parquet files whose bytes are in a column.

    Parameters
    ----------
    contents : pandas.Series of bytes
        Bytes of a file each; nulls are skipped.
    columns, filters, schema, **options
        As in `decode_paths`.

    Returns
    -------
    pandas.DataFrame
        As from `decode_paths`. Errors name a file by its position among the non-null cells: ``<cell 3>``.

    Examples
    --------
    >>> @pandas_udf("bigint")  # doctest: +SKIP
    ... def count(contents: pd.Series) -> pd.Series:
    ...     rows = numparq.spark.decode_bytes(contents, columns=[])
    ...     return rows.groupby(level=0).size().reindex(contents.index, fill_value=0)
    """
    return _decode(contents, _check_bytes, columns, filters, schema, options)


def _decode(
    cells: pd.Series,
    check: Callable[[Any], Any],
    columns: Columns,
    filters: Filters,
    schema: Any,
    options: dict[str, Any],
) -> pd.DataFrame:
    import pandas as pd

    from numparq.dataset.small_files import read_small_files

    if options.get("decryption") is not None:
        check_provider_name(options["decryption"], "decryption")
    begin_task()
    options.setdefault("threads", task_threads())
    there = cells[cells.notna()]
    if not len(there) and schema is None:  # column types are unknown
        return pd.DataFrame(index=there.index, columns=None if columns is None else list(columns), dtype=object)
    frame, which = read_small_files([check(cell) for cell in there], columns, filters, schema=schema, **options)
    frame.index = there.index.take(which)
    return frame


def _check_path(cell: Any) -> Any:
    import os

    if not isinstance(cell, str | os.PathLike):
        raise TypeError(f"a column of paths must hold str or PathLike values, not {type(cell).__name__}")
    return cell


def _check_bytes(cell: Any) -> Any:
    if not isinstance(cell, bytes | bytearray | memoryview):
        raise TypeError(f"a column of Parquet files must hold bytes, not {type(cell).__name__}")
    return cell
