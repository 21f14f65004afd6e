"""Run work in Spark tasks, one item a task; job description, cancellation, thread count."""

from __future__ import annotations

import os
import pickle
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .worker_errors import raise_worker_errors

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.reader import SplitReader
    from numparq.dataset.splits.split import Split
    from numparq.dataset.splits.table import SplitTable

__all__ = ["SplitTask", "begin_task", "map_tasks", "run_each", "run_splits", "task_threads"]

_PROPERTY = "spark.job.description"


@contextmanager
def describe_jobs(spark: SparkSession, text: str) -> Iterator[None]:
    """Describe the jobs that this thread starts meanwhile; where Ctrl-C ends the waiting for them, end them as well.

    Spark's own handling of Ctrl-C means to do that, and cannot where it interrupts a call to the Java side.

    Parameters
    ----------
    spark : SparkSession
        Whose jobs; of one that is connected to a server (Spark Connect), which has no such thing, none is described.
    text : str
        What they do: ``"numparq optimize: sorting 2,000 files"``. A description that is there already stays in front.

    Examples
    --------
    >>> with described(spark, "numparq profile: 40 footers"):  # doctest: +SKIP
    ...     spark.range(10).count()
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
            context.cancelJobsWithTag(tag)
        raise
    finally:
        context.removeJobTag(tag)
        context.setLocalProperty(_PROPERTY, before)  # type: ignore[arg-type]


def _context(spark: SparkSession) -> SparkContext | None:
    """Give the SparkContext of a session; None where there is none on this side."""
    try:
        return spark.sparkContext
    except AttributeError:
        return None


def task_slots(spark: SparkSession) -> int:
    """Say how many tasks run at a time."""
    try:
        return max(spark.sparkContext.defaultParallelism, 1)
    except AttributeError:  # Spark Connect
        return 1


def begin_task() -> None:
    """Have numparq take one thread from now on, where this is a task: Spark runs as many tasks as there are cores.

    A ``NUMPARQ_THREADS`` that is set stays; so does whatever a call says itself.
    """
    if _is_task():
        os.environ.setdefault("NUMPARQ_THREADS", "1")


def task_threads() -> int | None:
    """Say how many threads a read or write is to have that nobody gave a number for.

    Returns
    -------
    int or None
        1 in a task; elsewhere None, which is every core, or what ``NUMPARQ_THREADS`` says.
    """
    return 1 if _is_task() else None


def _is_task() -> bool:
    """Whether Spark runs a task in this process; where pyspark was never imported, it does not."""
    module = sys.modules.get("pyspark.taskcontext")
    return module is not None and module.TaskContext.get() is not None


class _ItemTask:
    """What Spark calls in a worker, with the numbers of the things to be done: one in a task.

    Each thing is pickled by itself: a task is sent all of them, and makes an object of one.
    """

    def __init__(self, function: Callable[[int, Any], Iterator[Any]], items: Iterable[Any]) -> None:
        from pyspark import cloudpickle

        self._do = function
        self._items = [cloudpickle.dumps(item) for item in items]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        begin_task()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._do(number, pickle.loads(self._items[number]))


def map_tasks(
    spark: SparkSession, items: Sequence[Any], function: Callable[[int, Any], Iterator[Any]], schema: StructType
) -> DataFrame:
    """Give what is made of each of a list of things, in a task of its own, as a DataFrame of Spark.

    Parameters
    ----------
    spark : SparkSession
        Where.
    items : sequence
        The things; each can be pickled.
    function : callable
        ``do(number, item)`` gives record batches of just this schema, whenever and however often it is called.
    schema : pyspark.sql.types.StructType
        Of what `do` gives.

    Returns
    -------
    pyspark.sql.DataFrame
        With as many partitions as there are things; nothing has run yet.
    """
    if not items:
        return spark.createDataFrame([], schema)
    return spark.range(0, len(items), 1, len(items)).mapInArrow(_ItemTask(function, items), schema)


class _PickledResult:
    """Gives the result of a function as one row: a number, and the pickled result."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._do = function

    def __call__(self, number: int, item: Any) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import cloudpickle

        schema = pa.schema([("item", pa.int64()), ("result", pa.binary())])
        result = cloudpickle.dumps(self._do(item))
        yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([result])], schema=schema)


def run_each(spark: SparkSession, items: Sequence[Any], function: Callable[[Any], Any], description: str) -> list[Any]:
    """Do something with each of a list of things, each in a task of its own, and wait for the results.

    Parameters
    ----------
    spark : SparkSession
        Where.
    items : sequence
        The things; each can be pickled.
    function : callable
        ``do(item)`` gives something that can be pickled, and is small: all results are on the driver at once.
    description : str
        What Spark's console and pages say that runs.

    Returns
    -------
    list
        A result for each thing, in their order.

    Raises
    ------
    ParquetError
        What numparq raised in a task; other errors are Spark's.
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
    """Does something with a split, out of what reads the splits of its table.

    Parameters
    ----------
    reader : SplitReader
        Of the table.
    function : callable
        ``do(reader, split)``.
    """

    def __init__(self, reader: SplitReader, function: Callable[[SplitReader, Split], Any]) -> None:
        self.reader = reader
        self._do = function

    def __call__(self, split: Split) -> Any:  # noqa: D102
        return self._do(self.reader, split)


def run_splits(
    spark: SparkSession, table: SplitTable, function: Callable[[SplitReader, Split], Any], description: str
) -> list[Any]:
    """Do something with each split of a table, as `run_each`.

    Parameters
    ----------
    spark, description
        As of `run_each`.
    table : SplitTable
        The table, as `numparq.dataset.splits.table.split_table` gives it.
    function : callable
        ``do(reader, split)`` gives something that can be pickled; ``reader.frame(split)`` or ``reader.tables(split)``
        have the rows.

    Returns
    -------
    list
        A result for each split, in their order.
    """
    return run_each(spark, table.splits, SplitTask(table.reader, function), description)
