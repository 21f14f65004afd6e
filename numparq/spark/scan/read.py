"""Read Parquet files into a Spark DataFrame: `read`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numparq.spark.tasks import task_slots

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.split import Split
    from numparq.expr.runtime_filter import RuntimeFilter
    from numparq.typing import ColumnName, Columns, Filters, PathLike, StorageOptions

    from .reader import BatchReader

__all__ = ["read"]


def read(
    spark: SparkSession,
    path: PathLike | Sequence[PathLike],
    columns: Columns = None,
    filters: Filters | str = None,
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
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    verify_crc: bool = True,
    nanoseconds: str = "exact",
) -> DataFrame:
    """Read Parquet files into a Spark DataFrame.

    Files are listed, and their footers and indexes read, once, on the driver: the DataFrame always has the rows of
    these files. Tasks decode them, a split each.

    Parameters
    ----------
    spark : SparkSession
        Session that runs the tasks; workers need numparq, and the files under the same path.
    path, columns, partitioning, resolve, include, storage_options, filesystem, verify_crc
        As in `numparq.read_parquet`. An empty list of columns gives rows to count, almost without reading.
    filters : expression, list of tuples, or str, optional
        As in `numparq.read_parquet`, or text: ``"fare > 10 and zone in ('A', 'B')"``. Filters that Spark applies
        later, as in ``df.filter``, do not reach the files.
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
    nanoseconds : {"exact", "floor"}
        Treatment of timestamps between two microseconds, which Spark cannot store: raise, or round down.

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
    from numparq.spark.schema.partitions import infers_partition_types
    from numparq.spark.tasks import map_tasks

    from . import local_frame
    from .plan import SparkScan, column_splitter, join_key_columns
    from .request import ReadRequest
    from .runtime_filters import build_runtime_filters as made_filters

    wanted = None if schema is None else _parse_schema(schema)
    request = ReadRequest(
        path,
        None if columns is None else check_names(columns),
        filters,
        split_bytes=split_bytes,
        min_splits=task_slots(spark) if min_splits is None else min_splits,
        plan_files=plan_files,
        rows_per_batch=rows_per_batch,
        partitioning=partitioning,
        resolve=resolve,
        include=tuple(include),
        storage_options=storage_options,
        filesystem=filesystem,
        verify_crc=verify_crc,
        nanoseconds=nanoseconds,
        case_sensitive=spark.conf.get("spark.sql.caseSensitive", "false") == "true",
        infers_partitions=infers_partition_types(spark),
    )
    more = made_filters(
        spark, runtime_filters, lambda names: join_key_columns(names, column_splitter(request, wanted), wanted)
    )
    request = request.with_filters(more)
    table = SparkScan.plan(request, wanted)
    if filters is not None or request.runtime_filters:
        limit = local_frame.MAX_STORED_BYTES if driver_bytes is None else driver_bytes
        local = local_frame.read_locally(spark, table, limit)
        if local is not None:
            return local
    return map_tasks(spark, table.splits, _ReadSplit(table.batch_reader), table.batch_reader.schema)


class _ReadSplit:
    """Task function that reads a split."""

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, number: int, split: Split) -> Iterator[pa.RecordBatch]:
        return self._reader.read(split)


def _parse_schema(schema: StructType | str) -> StructType:
    """Return a schema, or the text of one, as a StructType."""
    from pyspark.sql.types import StructType

    made = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(made, StructType):
        raise TypeError(f"schema must be a StructType or a DDL string such as 'id bigint', not {type(schema).__name__}")
    return made
