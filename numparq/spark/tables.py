"""The tables of our jobs: what a call says of one, divided into splits on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..dataset.splits import SplitTable
    from ..schema import Schema

__all__ = ["table_of"]

# What a job may say of its table: an argument of `split_table`.
_OPTIONS = (
    "runtime_filters", "split_bytes", "min_splits", "plan_files", "partitioning", "resolve", "storage_options",
    "filesystem", "include", "pruners", "verify_crc",
)  # fmt: skip
_OPENING = ("partitioning", "resolve", "storage_options", "filesystem")  # of these, those of `Dataset`


def table_of(
    spark: SparkSession, path: Any, columns: Sequence[str | tuple[str, ...]] | None, filters: Any, **options: Any
) -> SplitTable:
    """Divide a table into splits whose frames are pandas' own.

    Parameters
    ----------
    spark : SparkSession
        Whose tasks are to read it.
    path, columns, filters
        As of `numparq.spark.map_pandas`.
    **options
        As there. A None is as good as nothing.

    Returns
    -------
    SplitTable

    Raises
    ------
    TypeError
        For an option that there is not.
    """
    from ..dataset.splits import split_table

    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise TypeError(f"{unknown[0]!r} is no option of a table; there are: {', '.join(_OPTIONS)}")
    given = {name: value for name, value in options.items() if value is not None or name == "partitioning"}
    given.setdefault("min_splits", _tasks_at_a_time(spark))
    opening = {name: given[name] for name in _OPENING if name in given}
    if "runtime_filters" in given:
        from .request import key_columns
        from .runtime import runtime_filters

        given["runtime_filters"] = runtime_filters(
            spark, given["runtime_filters"],
            lambda names: key_columns(names, lambda alone: split_table(path, alone, **opening)),
        )  # fmt: skip
    if isinstance(filters, str):
        from ..predicate.text import parse_for

        filters = parse_for(filters, lambda: _schema(path, opening))
    return split_table(path, columns, filters, threads=1, **given)


def _tasks_at_a_time(spark: SparkSession) -> int:
    """Say how many tasks run at a time: that many splits are work for all cores."""
    try:
        return max(spark.sparkContext.defaultParallelism, 1)
    except AttributeError:  # Spark Connect
        return 1


def _schema(path: Any, opening: dict[str, Any]) -> Schema:
    """Look at the columns that are in files, before the table is divided."""
    from ..dataset.dataset import Dataset

    with Dataset(path, **opening) as dataset:
        return dataset.schema
