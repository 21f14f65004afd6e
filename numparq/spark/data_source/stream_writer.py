"""Data source stream writer: one commit a batch, which a repeated batch finds done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from numparq.dataset.commit.stream_batch import StreamBatch
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.spark.worker_errors import sentence_first

from .writer import left_to_session, parse_job_arguments, write_batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_CHECKPOINT = "checkpointlocation"
# Properties by which Spark tells tasks the id of their query, which its checkpoint keeps, and their batch.
_QUERY_ID, _BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class StreamCommitMessage(WriterCommitMessage):
    """Commit message of a task: the files that it wrote, and the id of the query, which commits do not know."""

    message: TaskMessage
    query: str


class NumparqStreamWriter(DataSourceStreamArrowWriter):
    """Writer of a stream's batches; each batch is a write of its own, begun by its tasks.

    Spark makes a new writer for the commit, so that all of them derive the same write from query and batch.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        given = {name: text for name, text in options.items() if name.lower() != _CHECKPOINT}
        self._path, self._arguments = parse_job_arguments(given, schema)
        for option, argument in (("ifExists", "if_exists"), ("partitionOverwriteMode", "overwritten")):
            if argument in self._arguments:
                raise ValueError(f"the option {option!r} is for df.write; a stream appends, or replaces all rows")
        self._marks_success = self._arguments.pop("marks_success", False)
        self._mode = "overwrite" if overwrite else "append"
        self._by_session = left_to_session(self._arguments)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamCommitMessage:
        """Write the record batches of a task; each attempt writes its own files."""
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        with sentence_first():
            message = write_batches(self._begin(query, int(batch)), iterator, self._by_session)
            return StreamCommitMessage(message, query)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Commit the files of these tasks, unless the folder has the batch already."""
        done = [message for message in messages if message is not None]
        if done:
            with sentence_first():
                job = self._begin(done[0].query, batchId)
                if job.commit(message.message for message in done) and self._marks_success:
                    job.mark_success()

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Remove what the tasks of a batch wrote; without messages, the next commit of the query does."""
        done = [message for message in messages if message is not None]
        if done:
            self._begin(done[0].query, batchId).abort()

    def _begin(self, query: str, batch: int) -> SharedJob:
        return SharedJob.begin(self._path, mode=self._mode, batch=StreamBatch(query, batch), **self._arguments)
