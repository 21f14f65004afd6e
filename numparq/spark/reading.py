"""`read`: a table as a DataFrame of Spark, planned here and read by Spark's tasks; and `register`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ..dataset.splits import Split
    from .reader import BatchReader

__all__ = ["read", "register"]


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
        Types are those that ``spark.read.parquet`` finds (`numparq.spark.types.spark_schema` has the exceptions); all
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
    from ..selection import names_of
    from . import few_rows
    from .partition_types import infers
    from .reader import SparkTable
    from .request import ReadRequest, alone, key_columns
    from .runtime import runtime_filters as made_filters
    from .tasks import in_tasks

    wanted = None if schema is None else _parsed(schema)
    request = ReadRequest(
        path, None if columns is None else names_of(columns), filters, split_bytes=split_bytes,
        min_splits=_at_a_time(spark) if min_splits is None else min_splits, plan_files=plan_files,
        rows_per_batch=rows_per_batch, partitioning=partitioning, resolve=resolve, include=tuple(include),
        storage_options=storage_options, filesystem=filesystem, verify_crc=verify_crc, nanoseconds=nanoseconds,
        case_sensitive=spark.conf.get("spark.sql.caseSensitive", "false") == "true", infers_partitions=infers(spark),
    )  # fmt: skip
    more = made_filters(spark, runtime_filters, lambda names: key_columns(names, alone(request, wanted), wanted))
    request = request.with_filters(more)
    table = SparkTable.of(request, wanted)
    if filters is not None or request.runtime_filters:
        found = few_rows.few_rows(spark, table, few_rows.MOST_BYTES if driver_bytes is None else driver_bytes)
        if found is not None:
            return found
    return in_tasks(spark, table.splits, _Batches(table.batches), table.batches.schema)


class _Batches:
    """Gives the batches of a split, in a task."""

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, number: int, split: Split) -> Iterator[pa.RecordBatch]:
        return self._reader.batches(split)


def _parsed(schema: StructType | str) -> StructType:
    """Give a schema, or the text of one, as such."""
    from pyspark.sql.types import StructType

    made = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(made, StructType):
        raise TypeError(f"a schema is a StructType or text such as 'id bigint', not {type(schema).__name__}")
    return made


def _at_a_time(spark: SparkSession) -> int:
    """Say how many tasks run at a time."""
    try:
        return max(spark.sparkContext.defaultParallelism, 1)
    except AttributeError:  # Spark Connect
        return 1


def register(spark: SparkSession, *, pushdown: bool = False) -> None:
    """Make ``spark.read.format("numparq")`` and ``df.write.format("numparq")`` known to a session.

    Where the module ``pyspark_numparq`` is installed, Spark finds them by itself; registering them again does no harm.
    A thread that did not start the session and writes registers them, too: Spark looks for what to write to in the
    session of the thread, which is this one then.

    Parameters
    ----------
    spark : SparkSession
        The session.
    pushdown : bool
        Whether reading is to know the option ``pushdown``, with which filters of queries leave out row groups, pages
        and rows. It needs Spark's setting ``spark.sql.python.filterPushdown.enabled``, and a Spark that keeps the
        filters of queries apart: a few small jobs find out.

    Raises
    ------
    UnsupportedError
        When `pushdown` is asked for, and queries of one DataFrame get filters of one another, as in Spark 4.3.0.
    """
    from .source import NumparqDataSource

    spark.createDataFrame([], "id int")  # by which Spark takes the session for that of this thread
    if pushdown:
        from ..errors import UnsupportedError
        from .pushdown import PushdownDataSource, leaks

        if leaks(spark):
            raise UnsupportedError(
                f"Spark {spark.version} applies the filters of one query to others of the same DataFrame, whose rows "
                "would be missing: give filters to numparq.spark.read, or as the option 'filter'"
            )
        spark.dataSource.register(PushdownDataSource)
        return
    try:
        spark.dataSource.register(NumparqDataSource)
    except Exception as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
