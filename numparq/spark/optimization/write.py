"""Write the new files in tasks: in their order, or sorted by Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from numparq.dataset.splits.reader import SplitReader
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage, TaskWriter
from numparq.spark.tasks import begin_task, describe_jobs, map_tasks
from numparq.spark.worker_errors import raise_worker_errors
from numparq.tools.optimize.rewrite_plan import RewritePiece

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .sort_rows import RowPacker

__all__ = ["FolderWriter", "sort_and_write", "write_in_order"]

_MESSAGE = pa.schema([("message", pa.binary())])


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
