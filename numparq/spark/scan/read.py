"""Read Parquet files into a Spark DataFrame: `read`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numparq.spark.tasks import task_slots

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.discover.expected_parts import PartNames
    from numparq.expr.runtime_filter import RuntimeFilter
    from numparq.typing import ColumnName, Columns, Filters, PathLike, StorageOptions

    from .join_keys import JoinKeyColumn
    from .plan import SparkScan
    from .request import ReadRequest


def read(
    spark: SparkSession,
    path: PathLike | Sequence[PathLike],
    columns: Columns = None,
    filters: Filters = None,
    *,
    runtime_filters: Mapping[ColumnName, Any] | Iterable[RuntimeFilter] | RuntimeFilter | None = None,
    schema: StructType | str | None = None,
    split_bytes: int | None = None,
    min_splits: int | None = None,
    plan_files: int | None = None,
    rows_per_batch: int | None = None,
    driver_bytes: int | None = None,
    partitioning: Any = "hive",
    resolve: str = "name",
    include: Sequence[str] = (),
    table_format: str = "auto",
    base_path: PathLike | None = None,
    path_glob_filter: str | None = None,
    modified_after: datetime | str | None = None,
    modified_before: datetime | str | None = None,
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    verify_crc: bool = True,
    nanoseconds: str = "exact",
    decryption: str | None = None,
    expected_parts: PartNames | None = None,
) -> DataFrame:
    """Read Parquet files into a Spark DataFrame.

    Files are listed, and their footers and indexes read, once, on the driver: the DataFrame always has the rows of
    these files. Tasks decode them, a split each.

    Parameters
    ----------
    spark : SparkSession
        Session that runs the tasks; workers need numparq, and the files under the same path.
    path, columns, partitioning, resolve, include, table_format, storage_options, filesystem, verify_crc
        As in `numparq.read_parquet`. An empty list of columns gives rows to count, almost without reading.
    filters : expression, str, or list of tuples, optional
        As in `numparq.read_parquet`, but text means what it means in Spark's SQL. Filters that Spark applies later, as
        in ``df.filter``, do not reach the files.
    runtime_filters : mapping, RuntimeFilter, or iterable of these, optional
        Keys of the small side of a join: ``{"key": small}``, or ``{"key": (small, "its_column")}``, with a Spark
        DataFrame, which is evaluated immediately. Rows without a matching key are pruned where possible: use it only
        for joins that drop them too.
    schema : StructType or str, optional
        Columns and types to read, instead of `columns`: in any order, of any wider type. Columns missing in all files
        are null.
    split_bytes : int, optional
        Approximate maximum of stored bytes, of the projected columns, that a task reads; default 64 MiB.
    min_splits : int, optional
        Minimum number of tasks, if rows can be divided so; default: as many as run at a time.
    plan_files : int, optional
        Number of files above which tasks read the footers.
    rows_per_batch : int, optional
        Maximum rows of a batch passed to Spark.
    driver_bytes : int, optional
        With filters: if at most so many stored bytes remain after pruning, the driver reads them at once, without a
        job; default 8 MiB, 0 for never. Results above 4 MiB in memory are left to tasks.
    base_path : str or path, optional
        Directory below which directory names are partitions, where `path` is a part of a dataset.
    path_glob_filter : str, optional
        Glob pattern of file names; other files are not read.
    modified_after, modified_before : datetime or str, optional
        Exclusive bounds of the files' modification times, in the session's time zone unless they have one.
    nanoseconds : {"exact", "floor"}
        Treatment of timestamps between two microseconds, which Spark cannot store: raise, or round down.
    decryption : str, optional
        Name ``"package.module:attribute"`` of what provides the keys of encrypted files on the driver and in tasks
        (``docs/encryption.md``); keys themselves are refused.
    expected_parts : collection of str, or dict of str to (str or None), optional
        As in `numparq.Dataset`.

    Returns
    -------
    pyspark.sql.DataFrame
        All columns are nullable. Types are those that ``spark.read.parquet`` infers, with the exceptions listed at
        `numparq.spark.schema.from_parquet.spark_schema`.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.
    ParquetError, FileNotFoundError
        As `numparq.Dataset.read` does. Errors in a task are raised by Spark, with file, row group, column and page in
        the message.

    Examples
    --------
    >>> fares = numparq.spark.read(spark, "fares", ["zone", "fare"], "fare > 100")  # doctest: +SKIP
    >>> fares.groupBy("zone").count().show()  # doctest: +SKIP
    """
    from numparq.column.projection import check_names

    from .file_filter import build_file_filter
    from .plan import SparkScan
    from .request import ReadRequest

    wanted = None if schema is None else _parse_schema(schema)
    names = None if columns is None else check_names(columns)
    settings = _session_settings(spark)
    request = ReadRequest(
        path,
        names,
        filters,
        split_bytes=split_bytes,
        min_splits=task_slots(spark) if min_splits is None else min_splits,
        plan_files=plan_files,
        rows_per_batch=rows_per_batch,
        partitioning=partitioning,
        resolve=resolve,
        include=tuple(include),
        table_format=table_format,
        file_filter=build_file_filter(
            base_path, path_glob_filter, modified_after, modified_before, settings["dialect"].time_zone
        ),
        storage_options=storage_options,
        filesystem=filesystem,
        verify_crc=verify_crc,
        nanoseconds=nanoseconds,
        decryption=decryption,
        expected_parts=expected_parts,
        **settings,
    )
    request = _with_runtime_filters(spark, request, runtime_filters, wanted)
    table = SparkScan.plan(request, wanted)
    return _to_frame(spark, table, driver_bytes if filters is not None or request.runtime_filters else 0)


def _session_settings(spark: SparkSession) -> dict[str, Any]:
    """Return the arguments of a request that are settings of the session."""
    from numparq.spark.filters.dialect import session_dialect
    from numparq.spark.schema.partitions import infers_partition_types

    from .calendar import session_calendar

    return {
        "dialect": session_dialect(spark),
        "calendar": session_calendar(spark),
        "infers_partitions": infers_partition_types(spark),
    }


def _with_runtime_filters(
    spark: SparkSession, request: ReadRequest, runtime_filters: Any, schema: StructType | None
) -> ReadRequest:
    """Return a request with the keys of joins as filters."""
    from .plan import column_splitter, join_key_columns
    from .runtime_filters import build_runtime_filters

    def find_columns(names: list[Any]) -> dict[Any, JoinKeyColumn]:
        return join_key_columns(names, column_splitter(request, schema), schema)

    return request.with_filters(build_runtime_filters(spark, runtime_filters, find_columns))


def _to_frame(spark: SparkSession, table: SparkScan, driver_bytes: int | None) -> DataFrame:
    """Return a planned scan as a DataFrame, of rows read here if they are few."""
    from . import local_frame
    from .split_frame import create_split_frame

    local = local_frame.read_locally(spark, table, driver_bytes)
    return create_split_frame(spark, table) if local is None else local


def _parse_schema(schema: StructType | str) -> StructType:
    """Return a schema, or the text of one, as a StructType."""
    from pyspark.sql.types import StructType

    made = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(made, StructType):
        raise TypeError(f"schema must be a StructType or a DDL string such as 'id bigint', not {type(schema).__name__}")
    return made
