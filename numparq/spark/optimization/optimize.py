"""Optimize a dataset on Spark: `optimize` rewrites small or badly sorted files and verifies them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numparq.io.filesystem import resolve_paths
from numparq.tools.optimize.layout import TargetLayout
from numparq.tools.optimize.report import FileTotals, OptimizeReport
from numparq.tools.optimize.rewrite_plan import plan_rewrite
from numparq.util.arguments import check_positive_int

from .plan import OptimizePlan
from .run import OptimizeRun, StepTimer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_output_folder", "optimize"]


def check_output_folder(path: Any, out: Any, place: dict[str, Any]) -> None:
    """Refuse a directory in the dataset itself, whose readers would have all rows twice."""
    old, new = (resolve_paths([each], **place) for each in (path, out))
    if old.filesystem is not new.filesystem:
        return
    base, inner = (
        (os.path.realpath(one.paths[0]) if one.filesystem is None else one.paths[0]).rstrip("/") + "/"
        for one in (old, new)
    )
    if inner.startswith(base):
        raise ValueError(f"out is in the dataset itself, whose rows would be there twice: {os.fsdecode(out)!r}")


def optimize(
    spark: SparkSession,
    path: Any,
    *,
    sort_by: Sequence[str] | str | None = None,
    cluster_by: Sequence[str] | str | None = None,
    target_file_bytes: int = 128 << 20,
    out: Any = None,
    where: Any = None,
    bloom_filters: Sequence[str] | str | None = None,
    dry_run: bool = False,
    force: bool = False,
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    **options: Any,
) -> OptimizeReport:
    """Rewrite the files of a dataset so that queries read as little as possible.

    Rows are sorted or clustered over all files of a directory, by Spark's range partitioning, and written into files of
    about one size with page indexes and Bloom filters; without keys, small files are put together, and rows keep
    their order. Directories of partitions stay as they are. Columns and types stay, too, those included that Spark has
    no type for; where files have different columns, new ones have those of all, as `numparq.Dataset` unites them.

    The rows that were written are read again and compared with those that were there, by their number and a checksum
    of all values, before one commit replaces the files that were read. Files that came meanwhile stay. Whatever fails
    before that leaves the dataset as it was.

    Parameters
    ----------
    spark : SparkSession
        Where the work is done; its executors have to see the dataset, and have numparq installed.
    path : str or os.PathLike
        The dataset: a directory.
    sort_by : str or sequence of str, optional
        Columns that rows are to be in the order of: nulls first, NaN last. Partition columns are left out of it.
    cluster_by : str or sequence of str, optional
        Columns of which rows are to be brought together that are alike in all of them (on a Hilbert curve): for queries
        that filter by the one or the other.
    target_file_bytes : int
        What a file is to have, about.
    out : str or os.PathLike, optional
        Where new files go instead: an empty directory, or none yet. The dataset stays as it is then.
    where : expression, list of tuples, or str, optional
        Which partitions; it may ask of partition columns only.
    bloom_filters : str or sequence of str, optional
        Columns that get Bloom filters, `[]` for none. By default those that profit: integers, texts and bytes with
        very many different values, by which rows are not sorted.
    dry_run : bool
        Only say what would be done; nothing is read but footers.
    force : bool
        Whether directories are rewritten, too, that are laid out like that already.
    storage_options, filesystem
        As in `numparq.read_parquet`.
    **options
        Of the files, as in `numparq.ParquetWriter`: ``compression``, ``row_group_bytes``, ... Unless these say else,
        pages have 5,000 rows at most, row groups of files with Bloom filters 131,072, and columns the encodings that
        make a sample of them smallest.

    Returns
    -------
    OptimizeReport
        Printable.

    Raises
    ------
    SchemaError
        When there is no such column, or it cannot be sorted by.
    InvalidFileError
        When a file is damaged, or was changed meanwhile; when the rows written are not those that were read.
    FileExistsError
        When `out` has files.
    ValueError
        When arguments do not go together.

    Examples
    --------
    >>> numparq.spark.optimize(spark, "events", sort_by=["user", "time"])  # doctest: +SKIP
    """
    wanted = TargetLayout(
        _as_names(sort_by) or (),
        _as_names(cluster_by) or (),
        check_positive_int(target_file_bytes, "target_file_bytes"),
        _as_names(bloom_filters),
        tuple(sorted((name, repr(value)) for name, value in options.items())),
    )
    if wanted.sort_by and wanted.cluster_by:
        raise ValueError("rows are sorted by columns or clustered by columns, not both")
    place = {"storage_options": storage_options, "filesystem": filesystem}
    if out is not None:
        check_output_folder(path, out, place)
    steps = StepTimer(spark)
    with steps.step("footers"):
        rewriting = plan_rewrite(path, wanted, where=where, force=force or out is not None, **place)
    files = rewriting.files
    before = FileTotals(
        len(files),
        sum(file.num_row_groups for file in files),
        sum(file.num_rows for file in files),
        sum(file.num_bytes for file in files),
    )
    report = OptimizeReport(
        os.fsdecode(path),
        None if out is None else os.fsdecode(out),
        "nothing to do",
        before,
        FileTotals(),
        len(rewriting.folders),
        len(rewriting.fine),
        wanted.sort_by,
        wanted.cluster_by,
        wanted.bloom_filters or (),
        None,
        steps.seconds,
    )
    if not rewriting.folders:
        return report
    with steps.step("plan"):
        plan = OptimizePlan(rewriting, wanted, options, storage_options)
    if dry_run:
        return replace(report, status="dry run", after=plan.expected)
    return OptimizeRun(steps, plan, path, out, place).done(report)


def _as_names(names: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)
