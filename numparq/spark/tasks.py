"""Work that Spark does in tasks: one for each of a list of things, whose results come back in their order."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .descriptions import described
from .failures import failures_told
from .session import begin_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ..dataset.splits import Split, SplitReader, SplitTable

__all__ = ["SplitTask", "in_tasks", "run_each", "run_splits"]


class _Task:
    """What Spark calls in a worker, with the numbers of the things to be done: one in a task.

    Each thing is pickled by itself: a task is sent all of them, and makes an object of one.
    """

    def __init__(self, do: Callable[[int, Any], Iterator[Any]], items: Iterable[Any]) -> None:
        from pyspark import cloudpickle

        self._do = do
        self._items = [cloudpickle.dumps(item) for item in items]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        begin_task()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._do(number, pickle.loads(self._items[number]))


def in_tasks(
    spark: SparkSession, items: Sequence[Any], do: Callable[[int, Any], Iterator[Any]], schema: StructType
) -> DataFrame:
    """Give what is made of each of a list of things, in a task of its own, as a DataFrame of Spark.

    Parameters
    ----------
    spark : SparkSession
        Where.
    items : sequence
        The things; each can be pickled.
    do : callable
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
    return spark.range(0, len(items), 1, len(items)).mapInArrow(_Task(do, items), schema)


class _Pickled:
    """Gives the result of a function as one row: a number, and the pickled result."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self._do = do

    def __call__(self, number: int, item: Any) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import cloudpickle

        schema = pa.schema([("item", pa.int64()), ("result", pa.binary())])
        result = cloudpickle.dumps(self._do(item))
        yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([result])], schema=schema)


def run_each(spark: SparkSession, items: Sequence[Any], do: Callable[[Any], Any], description: str) -> list[Any]:
    """Do something with each of a list of things, each in a task of its own, and wait for the results.

    Parameters
    ----------
    spark : SparkSession
        Where.
    items : sequence
        The things; each can be pickled.
    do : callable
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
    with described(spark, description), failures_told():
        rows = in_tasks(spark, items, _Pickled(do), _pickled_schema()).collect()
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
    do : callable
        ``do(reader, split)``.
    """

    def __init__(self, reader: SplitReader, do: Callable[[SplitReader, Split], Any]) -> None:
        self.reader = reader
        self._do = do

    def __call__(self, split: Split) -> Any:  # noqa: D102
        return self._do(self.reader, split)


def run_splits(
    spark: SparkSession, table: SplitTable, do: Callable[[SplitReader, Split], Any], description: str
) -> list[Any]:
    """Do something with each split of a table, as `run_each`.

    Parameters
    ----------
    spark, description
        As of `run_each`.
    table : SplitTable
        The table, as `numparq.dataset.splits.split_table` gives it.
    do : callable
        ``do(reader, split)`` gives something that can be pickled; ``reader.frame(split)`` or ``reader.tables(split)``
        have the rows.

    Returns
    -------
    list
        A result for each split, in their order.
    """
    return run_each(spark, table.splits, SplitTask(table.reader, do), description)
