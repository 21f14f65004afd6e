"""Run work in Spark tasks, one item a task; job description, cancellation, thread count, planned size."""

from __future__ import annotations

import os
import pickle
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from numparq.util.bounded_cache import fork_safe_lru_cache

from .worker_errors import raise_worker_errors

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.reader import SplitReader
    from numparq.dataset.splits.split import Split
    from numparq.dataset.splits.table import SplitTable

_LONG_BYTES = 8
_ROW_BYTES = 8  # that Spark adds to the default sizes of a row's columns
_MAX_BYTES = (1 << 63) - 1

_PROPERTY = "spark.job.description"


@contextmanager
def describe_jobs(spark: SparkSession, text: str) -> Iterator[None]:
    """Describe the Spark jobs that this thread starts in the body, and cancel them on Ctrl-C.

    Appends to an existing description; does nothing with Spark Connect.
    """
    context = _context(spark)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_PROPERTY)
    context.setLocalProperty(_PROPERTY, f"{before}: {text}" if before else text)
    tag = f"numparq-{secrets.token_hex(8)}"
    context.addJobTag(tag)
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            # Spark's own Ctrl-C handler cannot cancel jobs if it interrupts a call to Java.
            context.cancelJobsWithTag(tag)
        raise
    finally:
        context.removeJobTag(tag)
        context.setLocalProperty(_PROPERTY, before)  # type: ignore[arg-type]


def _context(spark: SparkSession) -> SparkContext | None:
    """Return the SparkContext of a session; None with Spark Connect."""
    try:
        return spark.sparkContext
    except AttributeError:
        return None


def task_slots(spark: SparkSession) -> int:
    """Return the number of tasks that run at a time; 1 if unknown (Spark Connect)."""
    try:
        return max(spark.sparkContext.defaultParallelism, 1)
    except AttributeError:  # Spark Connect
        return 1


def begin_task() -> None:
    """Set the default of numparq's threads to one if this is a task; Spark runs a task for each core.

    A ``NUMPARQ_THREADS`` that is set stays, as does a call's own argument.
    """
    if _is_task():
        os.environ.setdefault("NUMPARQ_THREADS", "1")


def task_threads() -> int | None:
    """Return the default number of threads: 1 in a task, otherwise None (all cores, or ``NUMPARQ_THREADS``)."""
    return 1 if _is_task() else None


def _is_task() -> bool:
    """Whether Spark runs a task in this process."""
    module = sys.modules.get("pyspark.taskcontext")
    return module is not None and module.TaskContext.get() is not None


class _ItemTask:
    """Function that Spark calls in a worker with item numbers, one a task.

    Items are pickled one by one: each task receives all of them, but unpickles only its own.
    """

    def __init__(self, function: Callable[[int, Any], Iterator[Any]], items: Iterable[Any]) -> None:
        from pyspark import cloudpickle

        self._do = function
        self._items: list[bytes] = [cloudpickle.dumps(item) for item in items]  # type: ignore[no-untyped-call]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        begin_task()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._do(number, pickle.loads(self._items[number]))


def map_tasks(
    spark: SparkSession,
    items: Sequence[Any],
    function: Callable[[int, Any], Iterator[Any]],
    schema: StructType | str,
    num_bytes: int = 0,
) -> DataFrame:
    """Return a lazy Spark DataFrame of ``function(number, item)`` for each item, one partition each.

    `function` yields record batches of `schema`; Spark may call it more than once. Items must be picklable. The
    DataFrame looks `num_bytes` large to Spark's planner.
    """
    return range_of_size(spark, len(items), num_bytes).mapInArrow(_ItemTask(function, items), schema)


def map_splits(
    spark: SparkSession, splits: Sequence[Split], function: Callable[[int, Split], Iterator[Any]], schema: StructType
) -> DataFrame:
    """Return what `map_tasks` does for splits, in the size of their rows."""
    return map_tasks(spark, splits, function, schema, estimate_bytes(spark, splits, schema))


class _PickledResult:
    """Function that yields the result of another as one row: item number and pickled result."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._do = function

    def __call__(self, number: int, item: Any) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import cloudpickle

        schema = pa.schema([("item", pa.int64()), ("result", pa.binary())])
        result = cloudpickle.dumps(self._do(item))  # type: ignore[no-untyped-call]
        yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([result])], schema=schema)


def run_each(spark: SparkSession, items: Sequence[Any], function: Callable[[Any], Any], description: str) -> list[Any]:
    """Call `function` with each item in a task of its own; return the results in order.

    Items and results must be picklable, and all results fit the driver. Raises the ParquetError of a task as itself.
    """
    if not items:
        return []
    with describe_jobs(spark, description), raise_worker_errors():
        rows = map_tasks(spark, items, _PickledResult(function), _pickled_schema()).collect()
    return [pickle.loads(row["result"]) for row in sorted(rows, key=lambda row: row["item"])]


def _pickled_schema() -> StructType:
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    return StructType([StructField("item", LongType()), StructField("result", BinaryType())])


class SplitTask:
    """Task that calls ``function(reader, split)``."""

    def __init__(self, reader: SplitReader, function: Callable[[SplitReader, Split], Any]) -> None:
        self.reader = reader
        self._do = function

    def __call__(self, split: Split) -> Any:  # noqa: D102
        return self._do(self.reader, split)


def run_splits(
    spark: SparkSession, table: SplitTable, function: Callable[[SplitReader, Split], Any], description: str
) -> list[Any]:
    """Call ``function(reader, split)`` for each split of a table in a task of its own, as `run_each` does."""
    return run_each(spark, table.splits, SplitTask(table.reader, function), description)


def estimate_bytes(spark: SparkSession, splits: Sequence[Split], schema: StructType) -> int:
    """Return an upper estimate of the bytes of a DataFrame with at most the rows of some splits.

    It is the stored bytes or, where more, those rows at the default sizes of Spark's types; splits with unread footers
    count by their stored bytes alone.
    """
    ranges = [each for split in splits for part in split.parts for each in part.groups or ()]
    rows = sum(each.stop - each.start for each in ranges)
    return max(rows * (_ROW_BYTES + _default_bytes(spark, schema)), sum(split.num_bytes for split in splits))


def range_of_size(spark: SparkSession, count: int, num_bytes: int) -> DataFrame:
    """Return the numbers below `count`, one a partition, that look `num_bytes` large to Spark's planner.

    They look 8 bytes each if Spark has other internals (Spark Connect).
    """
    try:
        return _range_of_size(spark, count, num_bytes)
    except Exception:  # other Spark versions and Spark Connect have other internals
        return spark.range(0, count, 1, max(count, 1))


def _range_of_size(spark: SparkSession, count: int, num_bytes: int) -> DataFrame:
    """Combine the rows of one range and the statistics of another, as checkpoints of a DataFrame are made."""
    from pyspark.sql import DataFrame

    session, jvm = spark._jsparkSession, cast("JVMView", spark._jvm)
    with_statistics, frame_of = _jvm_methods(jvm._gateway_client)
    sized = session.range(min(num_bytes, _MAX_BYTES) // _LONG_BYTES + 1).toDF()
    return DataFrame(frame_of(session, with_statistics(_numbers(spark, count), sized, False, False)), spark)


@fork_safe_lru_cache(16)
def _numbers(spark: SparkSession, count: int) -> object:
    """Return an RDD of the numbers below `count`; planning one takes several milliseconds."""
    return spark._jsparkSession.range(0, count, 1, max(count, 1)).queryExecution().toRdd()


@fork_safe_lru_cache(2)
def _jvm_methods(client: object) -> tuple[Callable[..., object], Callable[..., JavaObject]]:
    """Return JVM methods, looked up once: rows with the statistics of a DataFrame, a plan as a DataFrame."""
    from py4j.java_gateway import JavaClass

    relation = getattr(JavaClass("org.apache.spark.sql.execution.LogicalRDD$", client), "MODULE$")
    return relation.fromDataset, JavaClass("org.apache.spark.sql.classic.Dataset", client).ofRows


def _default_bytes(spark: SparkSession, schema: StructType) -> int:
    """Return the sum of the columns' default sizes; 0 if Spark has other internals."""
    try:
        return int(spark._jsparkSession.parseDataType(schema.json()).defaultSize())
    except Exception:
        return 0
