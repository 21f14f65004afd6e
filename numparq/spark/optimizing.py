"""`optimize`: many small or badly laid out files into few good ones, verified before they take the place of the old.

Footers are read on the driver; everything else is jobs of Spark: a look at a sample, the checksum of the rows that are
there, sorting and writing, the checksum of the rows that were written. Then one commit replaces the files.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ..arguments import checked_size
from ..dataset.checksum import Checksum
from ..dataset.clustering import Clustering, quantiles
from ..dataset.layout import LAYOUT_KEY, WantedLayout
from ..dataset.rewriting import NewFiles, Piece, Rewriting, binned, pieces_of, survey
from ..dataset.splits import SplitTable, split_table
from ..dataset.writing import SharedJob
from ..dataset.writing.paths import job_id
from ..dataset.writing.task_writer import TaskMessage
from ..errors import InvalidFileError, SchemaError
from ..selection import missing
from ..writer import ParquetWriter
from .optimize_choices import ROWS_PER_PAGE, ROWS_WITH_BLOOM_FILTERS, Choices, chosen
from .optimize_keys import files_of_old_calendars, united_keys
from .optimize_moments import check_calendar, has_moments
from .optimize_pieces import TASK_BYTES, absolute, check_out, known_as, tasks_of, together
from .optimize_report import LaidOut, OptimizeReport
from .optimize_sorting import Packing, sort_and_write
from .optimize_tasks import Pilot, checksum_of, compacted, pilot_of, sampled
from .tasks import run_each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["optimize"]

_MOST_PILOTS = 8
_SAMPLE_ROWS = 200_000  # of which the quantiles of columns are taken


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
    wanted = WantedLayout(
        _listed(sort_by) or (), _listed(cluster_by) or (), checked_size(target_file_bytes, "target_file_bytes"),
        _listed(bloom_filters),
        tuple(sorted((name, repr(value)) for name, value in options.items())),
    )  # fmt: skip
    if wanted.sort_by and wanted.cluster_by:
        raise ValueError("rows are sorted by columns or clustered by columns, not both")
    place = {"storage_options": storage_options, "filesystem": filesystem}
    if out is not None:
        check_out(path, out, place)
    run = _Run(spark, path, out, wanted, options, place)
    with run.step("footers"):
        run.rewriting = survey(path, wanted, where=where, force=force or out is not None, **place)
    if not run.rewriting.folders:
        return run.report("nothing to do")
    with run.step("plan"):
        run.plan()
    if dry_run:
        return run.report("dry run")
    return run.done()


class _Run:
    """One run of `optimize`."""

    rewriting: Rewriting

    def __init__(
        self, spark: SparkSession, path: Any, out: Any, wanted: WantedLayout, options: dict[str, Any],
        place: dict[str, Any],
    ) -> None:  # fmt: skip
        self._spark, self._path, self._out, self._wanted, self._options = spark, path, out, wanted, options
        self._place = place
        self._seconds: dict[str, float] = {}
        self._after = LaidOut()
        self._bloom: tuple[str, ...] = wanted.bloom_filters or ()
        self._checksum: Checksum | None = None

    # --- the plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> None:
        """Divide the rows, and check what is asked for, before anything is done."""
        split_bytes = min(TASK_BYTES, max(self._wanted.file_bytes // 8, 1 << 16))
        self._table = self.rewriting.table(None, split_bytes, self._place["storage_options"])
        folders = {known_as(file.file.path, self.rewriting): folder.name
                   for folder in self.rewriting.folders for file in folder.files}  # fmt: skip
        self._pieces = pieces_of(self._table, folders.__getitem__)
        self._new = NewFiles.like(self._table.prototype)
        self._keys_of_all = united_keys(self.rewriting.files, list(self._new.schema.columns))
        self._sort_by = self._keys("sort_by", self._wanted.sort_by)
        self._cluster_by = self._keys("cluster_by", self._wanted.cluster_by)
        self._packing()  # which refuses columns that cannot be sorted by
        with ParquetWriter(None, threads=1, **self._writer_options(self._bloom)) as trial:
            trial.write(_no_rows(self._table), index=False)  # which refuses options
        self._after = LaidOut(max(self._num_files(self._num_bytes), len(self.rewriting.folders)), 0, self._num_rows, 0)

    def _keys(self, what: str, names: Sequence[str]) -> tuple[str, ...]:
        """Check columns to sort by; in a directory, all rows have the same value of a partition column."""
        names = [name for name in names if name not in self.rewriting.keys]
        for name in names:
            if name not in self._new.schema.columns:
                raise missing(name, list(self._new.flat), f"{what}: the dataset")
            if name not in self._new.flat:
                raise SchemaError(f"{what}: rows cannot be sorted by nested values", column=name)
        return tuple(names)

    def _packing(self, clustering: Clustering | None = None) -> Packing:
        folders = [folder.name for folder in self.rewriting.folders]
        return Packing(self._table.arrow_schema, folders, self._sort_by, clustering, self._cluster_by)

    @property
    def _num_rows(self) -> int:
        return sum(folder.num_rows for folder in self.rewriting.folders)

    @property
    def _num_bytes(self) -> int:
        return sum(folder.num_bytes for folder in self.rewriting.folders)

    def _num_files(self, num_bytes: float) -> int:
        return max(-(-int(num_bytes) // self._wanted.file_bytes), 1)

    def _writer_options(
        self, bloom: Sequence[str], encodings: dict[str, str] | None = None, job: str | None = None
    ) -> dict[str, Any]:
        """Give what a writer of new files is told."""
        options: dict[str, Any] = {
            "schema": self._new.schema,
            "store_schema": False,
            "max_rows_per_page": ROWS_PER_PAGE,
            "column_order": "nan_free",  # Spark skips rows of NaN by bounds that leave them out
        }
        options |= self._options
        given = options.pop("key_value_metadata", None) or {}
        notes = {} if job is None else {LAYOUT_KEY: self._wanted.note(job)}
        options["key_value_metadata"] = {**self._keys_of_all, **self._new.keys, **given, **notes}
        if self._sort_by:
            options["sorting_columns"] = [(name, False, True) for name in self._sort_by]
        if bloom:
            options.setdefault("bloom_filter_options", dict.fromkeys(bloom, True))
            options.setdefault("row_group_size", ROWS_WITH_BLOOM_FILTERS)
        if encodings:
            options.setdefault("column_encoding", encodings)
        return options

    # --- the work -----------------------------------------------------------------------------------------------------

    def done(self) -> OptimizeReport:
        """Do it."""
        self._check_calendars()
        choices = self._chosen()
        self._bloom = choices.bloom_filters
        mode = {"mode": "error"} if self._out is not None else {"mode": "replace", "gone": self.rewriting.paths}
        options = {"row_group_bytes": choices.row_group_bytes,
                   **self._writer_options(self._bloom, choices.encodings, job_id())}  # fmt: skip
        job = SharedJob.begin(self._path if self._out is None else self._out, **mode, **self._place, **options)
        try:
            before = self._checksum_of(self._table, self._pieces, "checksum before")
            messages = self._written(job, choices)
            self._verify(before, job, messages)
            with self.step("commit"):
                job.commit(messages)
        except BaseException:
            job.abort()
            raise
        return self.report("done")

    def _check_calendars(self) -> None:
        """Refuse files whose days would be others beside those of the rest: Spark reads both by what a footer says."""
        old = files_of_old_calendars(self.rewriting.files)
        if old and any(map(has_moments, self._table.schema)):
            with self.step("calendars"):
                check = partial(check_calendar, self._table.reader.filesystem)
                run_each(self._spark, [known_as(facts.file.path, self.rewriting) for facts in old], check,
                         _described(f"days of {len(old):,} files of an old calendar"))  # fmt: skip

    def _chosen(self) -> Choices:
        """Look at some rows, and decide what the data decide."""
        step = max(len(self._pieces) // _MOST_PILOTS, 1)
        some = self._pieces[step // 2 :: step]
        with self.step("sample"):
            trial = partial(pilot_of, self._table.reader, self._writer_options(()), self._sort_by)
            pilots: list[Pilot] = run_each(self._spark, some, trial, _described(f"a look at {len(some)} samples"))
        return chosen(self._wanted, pilots, self._new.flat, self._sort_by)

    def _checksum_of(self, table: SplitTable, pieces: Sequence[Piece], name: str) -> Checksum:
        with self.step(name):
            tasks = tasks_of(pieces)
            text = _described(f"{name}, {self._num_rows:,} rows")
            return sum(run_each(self._spark, tasks, partial(checksum_of, table.reader), text), Checksum())

    def _written(self, job: SharedJob, choices: Choices) -> list[TaskMessage]:
        file_bytes = self._wanted.file_bytes * 5 // 4  # of a range that is somewhat too large, one file is made
        if not (self._sort_by or self._cluster_by):
            bins = binned(self._pieces, max(int(self._wanted.file_bytes / choices.shrinkage), 1))
            with self.step("writing"):
                write = partial(compacted, job, self._table.reader, file_bytes)
                tasks = list(enumerate(together(bins, TASK_BYTES)))
                text = _described(f"writing {len(bins):,} files of {len(self.rewriting.files):,}")
                return run_each(self._spark, tasks, write, text)
        packing = self._packing(self._clustering() if self._cluster_by else None)
        ranges = self._num_files(sum(piece.split.num_bytes for piece in self._pieces) * choices.shrinkage)
        with self.step("sorting and writing"):
            text = _described(f"sorting and writing {len(self.rewriting.files):,} files as {ranges:,}")
            return sort_and_write(self._spark, job, self._table.reader, packing, tasks_of(self._pieces), ranges,
                                  file_bytes, text)  # fmt: skip

    def _clustering(self) -> Clustering:
        columns = list(self._cluster_by)
        with self.step("quantiles"):
            table = self.rewriting.table(columns, TASK_BYTES, self._place["storage_options"])
            pieces = [Piece("", split) for split in table.splits]
            look = partial(sampled, table.reader, max(_SAMPLE_ROWS // max(len(pieces), 1), 1))
            found = run_each(self._spark, pieces, look, _described(f"quantiles of {', '.join(columns)}"))
        bounds = []
        for name in columns:
            chunks = [chunk for one in found for chunk in one.column(name).chunks]
            bounds.append(quantiles(_joined(chunks, table.arrow_schema.field(name).type), len(columns)))
        return Clustering(bounds)

    def _verify(self, before: Checksum, job: SharedJob, messages: Sequence[TaskMessage]) -> None:
        """Read what was written, and hold it against what was there."""
        files = [file for message in messages for file in message.files]
        paths = job.staged(messages)
        table = split_table(paths, partitioning=None, split_bytes=TASK_BYTES, **self._place)
        names = {absolute(path): file.folder for path, file in zip(paths, files, strict=True)}
        by_name = {os.path.basename(path): folder for path, folder in names.items()}
        pieces = pieces_of(table, lambda path: by_name[os.path.basename(path)])
        after = self._checksum_of(table, pieces, "checksum after")
        if after != before or before.rows != self._num_rows:
            raise InvalidFileError(
                f"the rows that were written are not those that were read: checksum {after} instead of {before}; "
                f"footers tell of {self._num_rows:,} rows. Nothing was changed", file=os.fsdecode(self._path),
            )  # fmt: skip
        groups = {(part.file.path, group.row_group)
                  for piece in pieces for part in piece.split.parts for group in part.groups or ()}  # fmt: skip
        size = sum(file.num_bytes for file in files)
        self._checksum, self._after = after, LaidOut(len(files), len(groups), after.rows, size)

    # --- what is said -------------------------------------------------------------------------------------------------

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Take the time of a step, and say on a terminal when it is over."""
        began = time.monotonic()
        yield
        self._seconds[name] = time.monotonic() - began
        if sys.stderr.isatty():
            print(f"numparq optimize: {name}: {self._seconds[name]:.1f} s", file=sys.stderr)

    def report(self, status: str) -> OptimizeReport:
        """Say what was done."""
        files = self.rewriting.files
        before = LaidOut(len(files), sum(file.num_row_groups for file in files), sum(file.num_rows for file in files),
                         sum(file.num_bytes for file in files))  # fmt: skip
        return OptimizeReport(
            os.fsdecode(self._path), None if self._out is None else os.fsdecode(self._out), status, before,
            self._after, len(self.rewriting.folders), len(self.rewriting.fine), self._wanted.sort_by,
            self._wanted.cluster_by, self._bloom, self._checksum, self._seconds,
        )  # fmt: skip


# --- arguments --------------------------------------------------------------------------------------------------------


def _listed(names: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)


def _described(text: str) -> str:
    return f"numparq optimize: {text}"


def _no_rows(table: SplitTable) -> Any:
    from ..dataset.writing.gathering import as_frame

    return as_frame(table.arrow_schema.empty_table())


def _joined(chunks: list[Any], arrow_type: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array(chunks, type=arrow_type)
