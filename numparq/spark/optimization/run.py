"""Run a planned optimize: sample, checksum, write, verify, commit."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from numparq.dataset.commit.record import new_job_id
from numparq.dataset.splits.reader import SplitReader
from numparq.dataset.splits.table import SplitTable, split_table
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage, TaskWriter
from numparq.errors import InvalidFileError
from numparq.spark.tasks import begin_task, describe_jobs, map_tasks, run_each
from numparq.spark.worker_errors import raise_worker_errors
from numparq.tools.optimize.checksum import Checksum, checksum_pieces
from numparq.tools.optimize.hilbert import HilbertClustering, quantiles, sample_rows
from numparq.tools.optimize.keys import RewriteKeys
from numparq.tools.optimize.report import FileTotals, OptimizeReport
from numparq.tools.optimize.rewrite_plan import RewritePiece, bin_pieces, split_by_folder
from numparq.tools.optimize.tune import TrialWrite, TunedOptions, trial_write, tune_options
from numparq.util.pluralize import pluralize

from .plan import TASK_BYTES, OptimizePlan, absolute_path, group_bins_by_task, group_by_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .sort_rows import RowPacker

_MESSAGE = pa.schema([("message", pa.binary())])

_MAX_SAMPLES = 8
_SAMPLE_ROWS = 200_000  # sample for quantiles


class StepTimer:
    """Timer of the steps of a run; `seconds` has the steps that are over."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step; on a terminal, report when it is over."""
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began
        if sys.stderr.isatty():
            print(f"numparq optimize: {name}: {self.seconds[name]:.1f} s", file=sys.stderr)

    def run_each(self, items: Sequence[Any], do: Callable[[Any], Any], text: str) -> list[Any]:
        """Call `do` with each item in a Spark task of its own; `text` describes the job."""
        return run_each(self.spark, items, do, describe_step(text))


def describe_step(text: str) -> str:
    """Return the description of a Spark job."""
    return f"numparq optimize: {text}"


class OptimizeRun:
    """Run of `optimize`; `place` has more options of its `SharedJob.begin`."""

    def __init__(
        self, steps: StepTimer, plan: OptimizePlan, path: Any, out: Any, place: dict[str, Any], keys: RewriteKeys
    ) -> None:
        self._steps, self._plan, self._path, self._out, self._place = steps, plan, path, out, place
        self._keys, self._staged_keys = keys, keys.staged()

    def execute(self, report: OptimizeReport) -> OptimizeReport:
        """Execute the plan; return the report, completed."""
        choices = self._tune()
        plan, bloom = self._plan, choices.bloom_filters
        mode = {"mode": "error"} if self._out is not None else {"mode": "replace", "gone": plan.rewrite_plan.paths}
        options = {
            "row_group_bytes": choices.row_group_bytes,
            **plan.writer_options(bloom, choices.encodings, new_job_id()),
            "encryption": self._keys.encryption,
            "decryption": self._keys.decryption,
        }
        job = SharedJob.begin(self._path if self._out is None else self._out, **mode, **self._place, **options)
        try:
            checksum = self._checksum(plan.table, plan.pieces, "checksum before")
            messages = self._write(job, choices)
            after = self._verify(checksum, job, messages)
            with self._steps.step("commit"):
                job.commit(messages)
        except BaseException:
            job.abort()
            raise
        return replace(report, status="done", after=after, bloom_filters=bloom, checksum=checksum)

    def _tune(self) -> TunedOptions:
        """Choose the options that depend on the data, by trial writes of a sample."""
        plan = self._plan
        step = max(len(plan.pieces) // _MAX_SAMPLES, 1)
        some = plan.pieces[step // 2 :: step]
        with self._steps.step("sample"):
            trial = partial(trial_write, plan.table.reader, plan.writer_options(()), plan.sort_by)
            pilots: list[TrialWrite] = self._steps.run_each(some, trial, f"write {len(some)} samples")
        return tune_options(plan.target, pilots, plan.output_schema.leaf_columns, plan.sort_by)

    def _checksum(self, table: SplitTable, pieces: Sequence[RewritePiece], name: str) -> Checksum:
        with self._steps.step(name):
            text = f"{name}, {pluralize(self._plan.num_rows, 'row')}"
            return sum(
                self._steps.run_each(group_by_task(pieces), partial(checksum_pieces, table.reader), text), Checksum()
            )

    def _write(self, job: SharedJob, choices: TunedOptions) -> list[TaskMessage]:
        plan = self._plan
        reader, num_files = plan.table.reader, len(plan.rewrite_plan.files)
        file_bytes = plan.target.file_bytes * 5 // 4  # a slightly larger range still becomes one file
        if not (plan.sort_by or plan.cluster_by):
            bins = bin_pieces(plan.pieces, max(int(plan.target.file_bytes / choices.shrinkage), 1))
            with self._steps.step("writing"):
                tasks = list(enumerate(group_bins_by_task(bins, TASK_BYTES)))
                write = partial(write_in_order, job, reader, file_bytes)
                return self._steps.run_each(tasks, write, f"writing {pluralize(len(bins), 'file')} of {num_files:,}")
        packing = plan.row_packer(self._clustering() if plan.cluster_by else None)
        ranges = plan.num_files(sum(piece.split.num_bytes for piece in plan.pieces) * choices.shrinkage)
        with self._steps.step("sorting and writing"):
            text = describe_step(f"sorting and writing {pluralize(num_files, 'file')} as {ranges:,}")
            pieces = group_by_task(plan.pieces)
            return sort_and_write(self._steps.spark, job, reader, packing, pieces, ranges, file_bytes, text)

    def _clustering(self) -> HilbertClustering:
        """Return a clustering by the quantiles of a sample."""
        columns = list(self._plan.cluster_by)
        with self._steps.step("quantiles"):
            table = self._plan.rewrite_plan.split(columns, TASK_BYTES, self._place["storage_options"])
            pieces = [RewritePiece("", split) for split in table.splits]
            look = partial(sample_rows, table.reader, max(_SAMPLE_ROWS // max(len(pieces), 1), 1))
            found = self._steps.run_each(pieces, look, f"quantiles of {', '.join(columns)}")
        bounds = []
        for name in columns:
            chunks = [chunk for one in found for chunk in one.column(name).chunks]
            bounds.append(quantiles(_concat_chunks(chunks, table.arrow_schema.field(name).type), len(columns)))
        return HilbertClustering(bounds)

    def _verify(self, before: Checksum, job: SharedJob, messages: Sequence[TaskMessage]) -> FileTotals:
        """Read the written files, compare their checksum with the original, and return their totals."""
        files = [file for message in messages for file in message.files]
        paths = job.staged(messages)
        table = split_table(
            paths,
            partitioning=None,
            split_bytes=TASK_BYTES,
            **{name: self._place[name] for name in ("storage_options", "filesystem")},
            table_format="parquet",
            decryption=self._staged_keys,
        )
        names = {absolute_path(path): file.folder for path, file in zip(paths, files, strict=True)}
        by_name = {os.path.basename(path): folder for path, folder in names.items()}
        pieces = split_by_folder(table, lambda path: by_name[os.path.basename(path)])
        after = self._checksum(table, pieces, "checksum after")
        if after != before or before.rows != self._plan.num_rows:
            raise InvalidFileError(
                f"the rows written differ from the rows read: checksum {after} instead of {before}; the footers "
                f"count {pluralize(self._plan.num_rows, 'row')}. Nothing was changed",
                file=os.fsdecode(self._path),
            )
        groups = {
            (part.file.path, group.row_group)
            for piece in pieces
            for part in piece.split.parts
            for group in part.groups or ()
        }
        return FileTotals(len(files), len(groups), after.rows, sum(file.num_bytes for file in files))


def _concat_chunks(chunks: list[Any], arrow_type: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array(chunks, type=arrow_type)


class FolderWriter:
    """Writer of one folder after another, which closes a file at `file_bytes`.

    `file_bytes` exceeds the target size, so that the rest does not end in a small file.
    """

    def __init__(self, writer: TaskWriter, file_bytes: int) -> None:
        self._writer, self._file_bytes = writer, file_bytes
        self._folder: str | None = None

    def write(self, table: pa.Table, folder: str) -> None:
        """Write rows of a folder."""
        if folder != self._folder and self._folder is not None:
            self._writer.roll()
        self._folder = folder
        self._writer.write(table, folder=folder)
        if self._writer.num_bytes >= self._file_bytes:
            self._writer.roll()


def write_in_order(
    job: SharedJob, reader: SplitReader, file_bytes: int, task: tuple[int, Sequence[Sequence[RewritePiece]]]
) -> TaskMessage:
    """Write rows in their order, a file for each bin; `task` is its number and some bins of pieces."""
    begin_task()
    number, bins = task
    with job.task(f"{number:07}") as writer:
        rolled = FolderWriter(writer, file_bytes)
        for pieces in bins:
            for piece, table in _tables(reader, pieces):
                rolled.write(table, piece.folder)
            writer.roll()
    assert writer.message is not None
    return writer.message


def _tables(reader: SplitReader, pieces: Sequence[RewritePiece]) -> Iterator[tuple[RewritePiece, pa.Table]]:
    for piece in pieces:
        for table in reader.tables(piece.split):
            yield piece, table


class _PackTask:
    """Task function of the first stage: reads and packs rows."""

    def __init__(self, reader: SplitReader, packer: RowPacker) -> None:
        self._reader, self._packing = reader, packer

    def __call__(self, number: int, pieces: Sequence[RewritePiece]) -> Iterator[pa.RecordBatch]:
        for piece in pieces:
            for table in self._reader.tables(piece.split):
                yield from self._packing.pack(table, piece.folder)


class _WriteTask:
    """Task function of the second stage: writes a range of rows, under the number of its partition."""

    def __init__(self, job: SharedJob, packer: RowPacker, file_bytes: int) -> None:
        self._job, self._packing, self._file_bytes = job, packer, file_bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        begin_task()
        context = TaskContext.get()
        assert context is not None
        with self._job.task(f"{context.partitionId():07}") as writer:
            rolled = FolderWriter(writer, self._file_bytes)
            for batch in batches:
                for folder, table in self._packing.unpack(batch):
                    rolled.write(table, folder)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(writer.message)], pa.binary())], schema=_MESSAGE)


def sort_and_write(
    spark: SparkSession,
    job: SharedJob,
    reader: SplitReader,
    packer: RowPacker,
    tasks: Sequence[Sequence[RewritePiece]],
    num_partitions: int,
    file_bytes: int,
    description: str,
) -> list[TaskMessage]:
    """Range-partition and sort rows with Spark, and write each range in a task; return a message for each range."""
    from pyspark.sql.pandas.types import from_arrow_schema

    with describe_jobs(spark, description), raise_worker_errors():
        rows = map_tasks(spark, tasks, _PackTask(reader, packer), from_arrow_schema(packer.schema))
        ranges = rows.repartitionByRange(num_partitions, *packer.sort_columns).sortWithinPartitions(
            *packer.sort_columns
        )
        found = ranges.mapInArrow(_WriteTask(job, packer, file_bytes), "message binary").collect()
    return [pickle.loads(row["message"]) for row in found]
