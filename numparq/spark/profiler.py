"""Profile a dataset in Spark tasks: `profile`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numparq.keys.provider import check_provider_name
from numparq.tools.profile.job import ProfileJob
from numparq.tools.profile.partial_profile import PartialProfile
from numparq.tools.profile.profile import Profile
from numparq.util.pluralize import pluralize

from .tasks import run_each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from numparq.typing import Columns, Filters, PathLike, StorageOptions

_TASKS_PER_SLOT = 4  # a short wait for the last task, without sending many sketches
_MOST_TASKS = 1000


def profile(
    spark: SparkSession,
    path: PathLike | Sequence[PathLike],
    columns: Columns = None,
    *,
    data: bool | str = "auto",
    where: Filters = None,
    partitioning: Any = "hive",
    table_format: str = "auto",
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    strict: bool = False,
    verify_crc: bool = True,
    tasks: int | None = None,
    decryption: str | None = None,
) -> Profile:
    """Profile a dataset: what it contains, how it is stored, and how well its files can be skipped.

    Each task reads the footers and page indexes of some files, and their data if needed. It returns a summary: counts,
    the bounds of each row group, and an 8 KiB sketch of distinct values a column.

    Parameters
    ----------
    spark : SparkSession
        Session that runs the tasks.
    path : str, os.PathLike, or list of these
        Directory, glob, file, or a list of these; URLs too. Executors must reach it by the same name.
    columns : sequence of str or tuple, optional
        Columns to profile, with everything inside them: a top-level column, a dotted path, or a path as a tuple.
    data : {"auto", True, False}
        What to read besides footers and page indexes. ``"auto"``: dictionaries, and the data of column chunks that
        these do not settle; True: all data; False: none.
    where : expression, str, or list of tuples, optional
        Predicate on partition columns, such as ``"year = 2024"``.
    partitioning, table_format, storage_options, filesystem
        As in `numparq.Dataset`.
    strict : bool
        Whether a damaged file is an error; otherwise it is counted, reported and left out.
    verify_crc : bool
        Whether to verify page checksums of data that is read.
    tasks : int, optional
        Number of tasks; default: four for each that Spark runs at a time.
    decryption : str, optional
        Name of the provider of the keys of encrypted files, ``"package.module:attribute"``; keys do not travel.

    Returns
    -------
    Profile
        Printable, also in a notebook; `Profile.to_pandas` has a row for each column.

    Raises
    ------
    FileNotFoundError
        If the path matches nothing.
    SchemaError
        If no file has a column of `columns`.
    ValueError
        If `where` uses other than partition columns, or `data` or `tasks` is invalid.
    ParquetError
        With `strict`, if a file is damaged; the class is that of a local read.

    Examples
    --------
    >>> found = numparq.spark.profile(spark, "s3://bucket/sales")  # doctest: +SKIP
    >>> found["customer"].distinct, found["ts"].lookup.row_groups  # doctest: +SKIP
    (48210, 0.0125)
    """
    if tasks is not None and tasks < 1:
        raise ValueError(f"tasks must be at least 1, not {tasks}")
    job = ProfileJob.from_path(
        path,
        columns,
        data=data,
        where=where,
        partitioning=partitioning,
        table_format=table_format,
        storage_options=storage_options,
        filesystem=filesystem,
        strict=strict,
        verify_crc=verify_crc,
        decryption=None if decryption is None else check_provider_name(decryption, "decryption"),
    )
    works = job.split(_task_count(spark) if tasks is None else tasks)
    return job.profile(run_each(spark, works, _run_task, f"numparq profile: {pluralize(job.num_files, 'file')}"))


def _run_task(work: ProfileJob) -> PartialProfile:
    return work.run()


def _task_count(spark: SparkSession) -> int:
    """Return the default number of tasks."""
    try:
        slots = spark.sparkContext.defaultParallelism
    except AttributeError:  # Spark Connect
        slots = int(spark.conf.get("spark.default.parallelism", "8") or 8)
    return min(_TASKS_PER_SLOT * slots, _MOST_TASKS)
