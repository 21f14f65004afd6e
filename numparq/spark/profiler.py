"""Profile a dataset in Spark tasks: `profile`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numparq.tools.profile.job import ProfileJob
from numparq.tools.profile.partial_profile import PartialProfile
from numparq.tools.profile.profile import Profile

from .tasks import run_each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from numparq.tools.profile.job import ProfileTask

__all__ = ["profile"]

_TASKS_PER_SLOT = 4  # so that nobody waits long for the last one, and not many sketches travel
_MOST_TASKS = 1000


def profile(
    spark: SparkSession,
    path: Any,
    columns: Sequence[str | tuple[str, ...]] | None = None,
    *,
    data: bool | str = "auto",
    where: Any = None,
    partitioning: Any = "hive",
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    strict: bool = False,
    verify_crc: bool = True,
    tasks: int | None = None,
) -> Profile:
    """Find out what is in a dataset, how it is stored, and how well files could be skipped.

    Each task reads the footers and page indexes of some files, and their data where that is needed; what travels is a
    summary of them: counts, the bounds of each row group, and 8 KiB a column to count different values by.

    Parameters
    ----------
    spark : SparkSession
        Where.
    path : str, os.PathLike, or list of these
        A directory, a glob, a file, or a list of such; URLs too. Executors have to reach it by the same name.
    columns : sequence of str or tuple, optional
        Only these, and what is in them: a top-level column, a dotted path, or a path as a tuple.
    data : {"auto", True, False}
        What is read besides footers and page indexes: with ``"auto"``, dictionaries, and the data of those column
        chunks of which something is still open then; with True the data of all; with False nothing.
    where : expression, list of tuples, or str, optional
        Which partitions, such as ``"year = 2024"``.
    partitioning, storage_options, filesystem
        As in `numparq.Dataset`.
    strict : bool
        Whether a damaged file is an error; else it is counted and told of, and the others make the profile.
    verify_crc : bool
        Whether pages with a CRC are held against it, where data is read.
    tasks : int, optional
        Among how many the files are divided; by default four for each that Spark runs at a time.

    Returns
    -------
    Profile
        To be printed, or shown in a notebook; `Profile.to_pandas` has a row for each column.

    Raises
    ------
    FileNotFoundError
        When there is nothing at the path.
    SchemaError
        When no file has a column of `columns`.
    ValueError
        When `where` asks anything but partition columns, or `data` or `tasks` are none that there are.
    ParquetError
        With `strict`, when a file is damaged: of the class that reading it here would raise.

    Examples
    --------
    >>> found = numparq.spark.profile(spark, "s3://bucket/sales")  # doctest: +SKIP
    >>> found["customer"].distinct, found["ts"].lookup.row_groups  # doctest: +SKIP
    (48210, 0.0125)
    """
    if tasks is not None and tasks < 1:
        raise ValueError(f"there is at least one task, not {tasks}")
    job = ProfileJob.of(
        path,
        columns,
        data=data,
        where=where,
        partitioning=partitioning,
        storage_options=storage_options,
        filesystem=filesystem,
        strict=strict,
        verify_crc=verify_crc,
    )
    works = job.divided(_task_count(spark) if tasks is None else tasks)
    return job.profile(run_each(spark, works, _run_task, f"numparq profile: {job.num_files:,} files"))


def _run_task(work: ProfileTask) -> PartialProfile:
    return work.part()


def _task_count(spark: SparkSession) -> int:
    """Say among how many tasks files are divided."""
    try:
        slots = spark.sparkContext.defaultParallelism
    except AttributeError:  # a session that is connected to a server
        slots = int(spark.conf.get("spark.default.parallelism", "8") or 8)
    return min(_TASKS_PER_SLOT * slots, _MOST_TASKS)
