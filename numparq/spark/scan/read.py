"""Read Parquet files into a Spark DataFrame: `read`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from numparq.spark.tasks import task_slots

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.split import Split

    from .reader import BatchReader

__all__ = ["read"]


def read(
    spark: SparkSession,
    path: Any,
    columns: Sequence[str | tuple[str, ...]] | None = None,
    filters: Any = None,
    *,
    runtime_filters: Any = None,
    schema: StructType | str | None = None,
    split_bytes: int | None = None,
    min_splits: int | None = None,
    plan_files: int | None = None,
    rows_per_batch: int | None = None,
    driver_bytes: int | None = None,
    partitioning: Any = "hive",
    resolve: str = "name",
    include: Sequence[str] = (),
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    verify_crc: bool = True,
    nanoseconds: str = "exact",
) -> DataFrame:
    """Read Parquet files into a DataFrame of Spark.

    The files are listed, and their footers and indexes read, here and once: whatever is done with the DataFrame, and
    however often, it has the rows of those files. Its tasks decode them, a split each.

    Parameters
    ----------
    spark : SparkSession
        Where the tasks run; the workers need numparq, and the files under the same path.
    path, columns, partitioning, resolve, include, storage_options, filesystem, verify_crc
        As in `numparq.read_parquet`. No column at all gives rows to be counted, of which next to nothing is read.
    filters : expression, list of tuples, or str, optional
        As in `numparq.read_parquet`, or text: ``"fare > 10 and zone in ('A', 'B')"``. What Spark filters later, after
        ``df.filter``, does not reach the files.
    runtime_filters : mapping, RuntimeFilter, or iterable of these, optional
        What the small side of a join says of this one's key: ``{"key": small}``, or ``{"key": (small, "its_column")}``,
        with a DataFrame of Spark, which is evaluated here and now. Rows without a partner in it are left out of what is
        read, where that can be told: only for joins that leave them out, too.
    schema : StructType or str, optional
        The columns to read, and their types, instead of `columns`: in any order, of any wider type; a column that is in
        no file is null.
    split_bytes : int, optional
        Stored bytes of the columns asked for that a task reads at most, about; by default 64 MiB.
    min_splits : int, optional
        So many tasks at least, if the rows can be divided so; by default as many as run at a time.
    plan_files : int, optional
        Above so many files, their footers are read by the tasks.
    rows_per_batch : int, optional
        Rows that are handed to Spark at once, at most.
    driver_bytes : int, optional
        Where there are filters, and so few stored bytes are left by footers and indexes, the rows are read here and at
        once, without a job; 8 MiB by default, 0 for never. Tasks read whatever comes to more than 4 MiB in memory.
    nanoseconds : {"exact", "floor"}
        What a timestamp between two microseconds, which Spark cannot have, is: an error, or the earlier one.

    Returns
    -------
    pyspark.sql.DataFrame
        Types are those that ``spark.read.parquet`` finds (`numparq.spark.schema.from_parquet.spark_schema` has the
        exceptions); all
        columns are nullable.

    Raises
    ------
    ValueError, TypeError
        When an argument is none.
    ParquetError, FileNotFoundError
        As `numparq.Dataset.read` does. What happens in a task is raised by Spark, with file, row group, column and page
        in its message.

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
    table = SparkScan.of(request, wanted)
    if filters is not None or request.runtime_filters:
        found = local_frame.read_locally(
            spark, table, local_frame.MAX_STORED_BYTES if driver_bytes is None else driver_bytes
        )
        if found is not None:
            return found
    return map_tasks(spark, table.splits, _ReadSplit(table.batches), table.batches.schema)


class _ReadSplit:
    """Gives the batches of a split, in a task."""

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, number: int, split: Split) -> Iterator[pa.RecordBatch]:
        return self._reader.batches(split)


def _parse_schema(schema: StructType | str) -> StructType:
    """Give a schema, or the text of one, as such."""
    from pyspark.sql.types import StructType

    made = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(made, StructType):
        raise TypeError(f"a schema is a StructType or text such as 'id bigint', not {type(schema).__name__}")
    return made
