"""Optimize a dataset on Spark: `optimize` rewrites small or badly sorted files and verifies them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numparq.dataset.listing.table_formats import check_plain_folder
from numparq.dataset.write.store_refresh import RefreshableStore, check_refreshable, refresh_store
from numparq.io.filesystem import resolve_paths
from numparq.tools.optimize.keys import RewriteKeys
from numparq.tools.optimize.layout import TargetLayout
from numparq.tools.optimize.report import FileTotals, OptimizeReport
from numparq.tools.optimize.rewrite_plan import plan_rewrite
from numparq.util.arguments import check_positive_int

from .plan import OptimizePlan
from .run import OptimizeRun, StepTimer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from numparq.typing import Filters, PathLike, StorageOptions


def check_output_folder(path: PathLike, out: PathLike, place: dict[str, Any]) -> None:
    """Raise ValueError if `out` lies inside the dataset, whose readers would get all rows twice."""
    old, new = (resolve_paths([each], **place) for each in (path, out))
    if old.filesystem is not new.filesystem:
        return
    base, inner = (
        (os.path.realpath(one.paths[0]) if one.filesystem is None else one.paths[0]).rstrip("/") + "/"
        for one in (old, new)
    )
    if inner.startswith(base):
        raise ValueError(f"out={os.fsdecode(out)!r} is inside the dataset, which would then hold its rows twice")


def optimize(
    spark: SparkSession,
    path: PathLike,
    *,
    sort_by: Sequence[str] | str | None = None,
    cluster_by: Sequence[str] | str | None = None,
    target_file_bytes: int = 128 << 20,
    out: PathLike | None = None,
    where: Filters = None,
    bloom_filters: Sequence[str] | str | None = None,
    dry_run: bool = False,
    force: bool = False,
    keep_replaced: float = 0,
    skipping: RefreshableStore | None = None,
    table_format: str = "auto",
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    decryption: str | None = None,
    encryption: str | None = None,
    plaintext_output: bool = False,
    **options: Any,
) -> OptimizeReport:
    """Rewrite the files of a dataset so that queries read as little as possible.

    Rows are sorted or clustered across all files of a directory, by Spark's range partitioning. New files have similar
    sizes, page indexes and Bloom filters. Without keys, small files are merged, and rows keep their order.
    Partition directories stay, as do columns and types, also those unknown to Spark. If columns differ between files,
    new files have the merged schema of `numparq.Dataset`.

    Written rows are read again and compared with the original ones, by count and a checksum of all values. Then one
    commit replaces the old files. Files added meanwhile stay. A failure before the commit leaves the dataset unchanged.

    Parameters
    ----------
    spark : SparkSession
        Session that does the work; its executors need access to the dataset, and numparq.
    path : str or os.PathLike
        Directory of the dataset.
    sort_by : str or sequence of str, optional
        Columns to sort by: nulls first, NaN last. Partition columns are ignored.
    cluster_by : str or sequence of str, optional
        Columns to cluster by on a Hilbert curve, so that rows similar in all of them are close together: for queries
        that filter by any of them.
    target_file_bytes : int
        Approximate size of a file.
    out : str or os.PathLike, optional
        Empty or new directory for the new files; the dataset then stays as it is.
    where : expression, str, or list of tuples, optional
        Predicate on partition columns: the partitions to rewrite.
    bloom_filters : str or sequence of str, optional
        Columns that get Bloom filters, `[]` for none. Default: integer, string and binary columns with very many
        distinct values that rows are not sorted by.
    dry_run : bool
        Whether to only report what would be done; reads nothing but footers.
    force : bool
        Whether to rewrite directories that already have this layout.
    keep_replaced : float
        As in `numparq.to_parquet`.
    skipping : numparq.skipping.Store, optional
        Data-skipping store of the dataset, which is refreshed after the commit; if that fails, it warns.
    table_format, storage_options, filesystem
        As in `numparq.read_parquet`.
    decryption, encryption : str, optional
        Names of the providers of the keys of encrypted files and of the new ones, ``"package.module:attribute"``; keys
        do not travel. Directories whose files are not encrypted as the new ones are rewritten as well. Spark encrypts
        rows that it sorts only with ``spark.io.encryption.enabled``.
    plaintext_output : bool
        Whether new files of encrypted ones are plain. One of it and `encryption` is needed for encrypted files.
    **options
        Writer options, as in `numparq.ParquetWriter`: ``compression``, ``row_group_bytes``, ... By default, pages have
        at most 5,000 rows, row groups of files with Bloom filters 131,072, and columns the encodings that make a
        sample smallest.

    Returns
    -------
    OptimizeReport
        Printable.

    Raises
    ------
    SchemaError
        If a column does not exist or cannot be sorted by.
    InvalidFileError
        If a file is damaged, or changes meanwhile; if the written rows differ from those that were read.
    FileExistsError
        If `out` has files.
    UnsupportedError
        If the directory belongs to a table of another system (``docs/table-formats.md``).
    DecryptionError
        If a file is encrypted with keys that were not given.
    ValueError
        If arguments conflict, or nothing says whether the new files of encrypted ones are to be encrypted.

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
        raise ValueError("sort_by and cluster_by cannot be combined; use one of them")
    if check_refreshable(skipping) is not None and out is not None:
        raise ValueError("skipping refreshes the store of a dataset that is rewritten; it cannot be combined with out")
    place = {"storage_options": storage_options, "filesystem": filesystem, "table_format": table_format}
    _check_folders(path, out, **place)
    keys = RewriteKeys.from_names(decryption, encryption, plaintext_output)
    steps = StepTimer(spark)
    with steps.step("footers"):
        rewriting = plan_rewrite(path, wanted, where=where, force=force or out is not None, rewrite_keys=keys, **place)
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
        len(rewriting.unchanged),
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
    done = OptimizeRun(steps, plan, path, out, {**place, "keep_replaced": keep_replaced}, keys).execute(report)
    if skipping is not None:
        with steps.step("store"):
            refresh_store(skipping, path)
    return done


def _check_folders(path: PathLike, out: PathLike | None, table_format: str, **place: Any) -> None:
    """Raise ValueError for an output folder inside the dataset, UnsupportedError for another system's table."""
    if out is not None:
        check_output_folder(path, out, place)
    else:
        check_plain_folder(resolve_paths([path], **place), table_format)


def _as_names(names: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)
