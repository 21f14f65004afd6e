"""Data source writer: tasks stage files, one commit on the driver publishes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage

from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.errors import SchemaError, error_context
from numparq.spark.schema.row_metadata import spark_key_values
from numparq.spark.schema.to_parquet import schema_nodes
from numparq.spark.tasks import begin_task
from numparq.spark.worker_errors import sentence_first

from .write_options import parse_codec, parse_row_limit, parse_write_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import TaskContext
    from pyspark.sql.types import DataType, StructType

# Spark versions without DataSourceArrowWriter pass rows to `write` one by one.
_TAKES_BATCHES = hasattr(datasource, "DataSourceArrowWriter")
_WriterBase: Any = getattr(datasource, "DataSourceArrowWriter", DataSourceWriter)
_BATCH_ROWS = 10_000
# Commit mode by option value.
_APPEND = {"append": "append", "error": "error"}
_OVERWRITE = {"static": "overwrite", "dynamic": "delete_matching"}
# Spark sends the session's settings to tasks only.
_OVERWRITE_SETTING = "spark.sql.sources.partitionOverwriteMode"
# Arguments of a task that the session sets if no option does: setting, parser, and the arguments that come first.
_BY_SESSION: dict[str, tuple[str, Callable[[str], Any], set[str]]] = {
    "compression": ("spark.sql.parquet.compression.codec", parse_codec, {"compression", "compression_level"}),
    "max_rows_per_file": ("spark.sql.files.maxRecordsPerFile", parse_row_limit, {"max_rows_per_file"}),
}


def make_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceWriter:
    """Begin a write of a DataFrame; with `overwrite`, all files are replaced, or those of the partitions written.

    Raises ValueError, SchemaError, UnsupportedError for types, and FileExistsError with ``ifExists=error``.
    """
    path, arguments = parse_job_arguments(options, schema)
    by_session = overwrite and "overwritten" not in arguments
    marks_success = arguments.pop("marks_success", True)
    # Spark plans, writes and commits in different processes, none of which lives throughout.
    job = SharedJob.begin(path, mode=_commit_mode(arguments, overwrite), outlives=True, **arguments)
    return NumparqWriter(job, schema, by_session, marks_success, left_to_session(arguments))


def left_to_session(arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments of tasks that the options of a write leave to the session."""
    return [name for name, (_, _, first) in _BY_SESSION.items() if not first & arguments.keys()]


def _arguments_of_session(names: Iterable[str], context: TaskContext | None) -> dict[str, Any]:
    """Return arguments as set in the session that a task belongs to."""
    settings = {name: context.getLocalProperty(_BY_SESSION[name][0]) for name in names} if context is not None else {}
    return {name: _BY_SESSION[name][1](text) for name, text in settings.items() if text is not None}


def parse_job_arguments(options: Mapping[str, str], schema: StructType) -> tuple[str, dict[str, Any]]:
    """Parse the options of a write of rows of `schema`; return the folder and the arguments of `SharedJob.begin`.

    The arguments include options of the commit, under the names that `parse_write_options` gives them.
    """
    if not schema.fields:
        raise SchemaError("a DataFrame without columns cannot be written; add a column")
    _check_names(schema)
    path, arguments = parse_write_options(options, list(_column_paths(schema)))
    # Spark sorts NaN above all numbers, yet skips by bounds that exclude NaN, as those of both other orders do.
    arguments.setdefault("column_order", "nan_free")
    partitions = [_find_partition_column(schema, name) for name in arguments.pop("partition_cols", ())]
    metadata = spark_key_values(_drop_fields(schema, partitions)) | arguments.pop("key_value_metadata", {})
    return path, arguments | {
        "partition_cols": partitions,
        "schema": schema_nodes(schema),
        "key_value_metadata": metadata,
        "same_name": str.lower,
    }


def _check_names(schema: DataType) -> None:
    """Check that names differ in more than case, as Spark's own writer does."""
    known: set[str] = set()
    for field in getattr(schema, "fields", ()):
        with error_context(column=field.name):
            if field.name.lower() in known:
                raise SchemaError("two columns have this name, regardless of case; rename one")
            known.add(field.name.lower())
            _check_names(field.dataType)
    for part in ("elementType", "keyType", "valueType"):
        if hasattr(schema, part):
            _check_names(getattr(schema, part))


def _commit_mode(arguments: dict[str, Any], overwrite: bool) -> str:
    """Return the commit mode; remove the options that decide it from the arguments."""
    overwritten, if_exists = arguments.pop("overwritten", None), arguments.pop("if_exists", None)
    if overwrite:
        if if_exists is not None:
            raise ValueError("the option 'ifExists' needs mode('append'); mode('overwrite') always replaces files")
        return _OVERWRITE[overwritten or "static"]
    return _APPEND[if_exists or "append"]


def _find_partition_column(schema: StructType, wanted: str) -> str:
    """Return a column's name, found regardless of case as Spark does."""
    found = [name for name in schema.names if name == wanted] or [
        name for name in schema.names if name.lower() == wanted.lower()
    ]
    if len(found) != 1:
        known = ", ".join(schema.names)
        raise SchemaError(
            f"the partition column does not exist in the DataFrame; its columns are: {known}", column=wanted
        )
    return found[0]


def _drop_fields(schema: StructType, names: Sequence[str]) -> StructType:
    return type(schema)([field for field in schema.fields if field.name not in names])


def _column_paths(schema: DataType, start: str = "") -> Iterator[str]:
    """Yield the dotted names of columns and of fields of structs."""
    for field in getattr(schema, "fields", ()):
        yield start + field.name
        yield from _column_paths(field.dataType, f"{start}{field.name}.")


def write_batches(job: SharedJob, batches: Iterator[pa.RecordBatch], by_session: Iterable[str]) -> TaskMessage:
    """Write the record batches of this Spark task; return the message for the commit.

    The arguments `by_session` are as set in the session of the task.
    """
    from pyspark import TaskContext

    begin_task()
    context = TaskContext.get()
    number = context.partitionId() if context is not None else 0
    with sentence_first(), job.task(f"{number:05}", **_arguments_of_session(by_session, context)) as writer:
        for batch in batches:
            writer.write(batch)
    assert writer.message is not None
    return writer.message


@dataclass
class TaskCommitMessage(WriterCommitMessage):
    """Commit message of a task: the files that it wrote, and the session's overwrite mode."""

    message: TaskMessage
    overwritten: str = "static"


class NumparqWriter(_WriterBase):  # type: ignore[misc]
    """Writer of a DataFrame; Spark pickles it for tasks and for the commit.

    With `by_session`, the session's setting decides which files the commit replaces; the arguments of tasks
    `by_session_in_tasks` have its values too. With `marks_success`, the commit ends with an empty file ``_SUCCESS``.
    """

    def __init__(
        self,
        job: SharedJob,
        schema: StructType,
        by_session: bool = False,
        marks_success: bool = False,
        by_session_in_tasks: Sequence[str] = (),
    ) -> None:
        self._job = job
        self._schema = schema
        self._by_session = by_session
        self._marks_success = marks_success
        self._by_session_in_tasks = by_session_in_tasks

    def write(self, iterator: Iterator[Any]) -> TaskCommitMessage:
        """Write the rows of a task: record batches, or Rows in older Spark. Each attempt writes its own files."""
        from pyspark import TaskContext

        context = TaskContext.get()
        setting = context.getLocalProperty(_OVERWRITE_SETTING) if context is not None else None
        batches = iterator if _TAKES_BATCHES else self._batches(iterator)
        message = write_batches(self._job, batches, self._by_session_in_tasks)
        return TaskCommitMessage(message, (setting or "static").lower())

    def _batches(self, rows: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows as record batches."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        arrow = to_arrow_schema(self._schema, timezone="UTC")
        waiting: list[dict[str, Any]] = []
        for row in rows:
            waiting.append(row.asDict(recursive=True))
            if len(waiting) == _BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(waiting, schema=arrow)
                waiting = []
        if waiting:
            yield pa.RecordBatch.from_pylist(waiting, schema=arrow)

    def commit(self, messages: list[Any]) -> None:
        """Commit the files of these tasks, and no others."""
        done = [message for message in messages if message is not None]
        mode = _OVERWRITE[done[0].overwritten] if self._by_session and done else None
        with sentence_first():
            self._job.commit([message.message for message in done], mode=mode)
        if self._marks_success:
            try:
                self._job.mark_success()
            except OSError as error:  # the rows are committed: the job must not fail
                warnings.warn(f"the rows are committed, but _SUCCESS was not written: {error}", stacklevel=2)

    def abort(self, messages: list[Any]) -> None:
        """Remove everything that any attempt of any task wrote."""
        self._job.abort()
