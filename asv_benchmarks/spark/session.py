"""The timed Spark session: local, with the given number of threads and warm executors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def session(threads: int) -> Iterator[Any]:
    """Start Spark as `numparq.spark.configure` has it, and stop it in the end.

    Parameters
    ----------
    threads : int
        Tasks that run at once.

    Yields
    ------
    pyspark.sql.SparkSession
    """
    import numparq

    spark = numparq.spark.configure(_builder(threads)).getOrCreate()
    numparq.spark.register(spark)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def plain_session(threads: int) -> Iterator[Any]:
    """Start Spark with its own settings; as `session` otherwise."""
    spark = _builder(threads).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _builder(threads: int) -> SparkSession.Builder:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{threads}]").appName("numparq's benchmarks")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder
