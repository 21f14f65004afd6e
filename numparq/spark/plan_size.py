"""Size of a DataFrame that tasks compute, for Spark's planner: it broadcasts what looks small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from numparq.util.bounded_cache import fork_safe_lru_cache

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.split import Split

__all__ = ["estimate_bytes", "range_of_size"]

_LONG_BYTES = 8
_ROW_BYTES = 8  # that Spark adds to the default sizes of a row's columns
_MAX_BYTES = (1 << 63) - 1


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
