"""`TaskWriter`: rows of one task attempt, written to staged files."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import xxhash

from numparq.dataset.commit.local_stage import LocalStage
from numparq.dataset.commit.record import data_file_name
from numparq.dataset.commit.remote_stage import RemoteStage
from numparq.dataset.listing.patterns import is_hidden_path
from numparq.dataset.partitions.partitioning import format_hive_path
from numparq.errors import SchemaError
from numparq.file.category_order import CategoryOrder
from numparq.file.writer import ParquetWriter, WriterContext, check_columns
from numparq.format.schema_node import SchemaNode
from numparq.from_pandas.frame import shred_frame
from numparq.io.sink import Sink
from numparq.util.transaction import TransactionalWriter

from .job_options import JobOptions
from .partition_files import PartitionedFileWriter, RollingFileWriter
from .partition_frame import FramePartitioner, PartitionRows, partition_frame
from .row_group_buffer import RowGroupBuffer, arrow_to_frame, is_arrow_table, sort_order

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StagedFile", "TaskMessage", "TaskWriter"]


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that was written, and counts when the write is committed.

    Parameters
    ----------
    name : str
        Its path in the dataset, with slashes.
    staged : str
        What it is called until then.
    num_rows, num_bytes : int
        What it has.
    """

    name: str
    staged: str
    num_rows: int
    num_bytes: int

    @property
    def folder(self) -> str:
        """The folder of the dataset that it is for; empty for the dataset's own."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """What a task has written: what the commit has to be told.

    Parameters
    ----------
    job : str
        The write.
    task : str
        The task.
    files : tuple of StagedFile
        In the order of their rows, within a folder.
    columns : str
        The same for tasks whose files have the same columns, and another one where these are others.
    """

    job: str
    task: str
    files: tuple[StagedFile, ...] = ()
    columns: str = ""

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return sum(file.num_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.num_bytes for file in self.files)


class TaskWriter(TransactionalWriter):
    """Writes the rows of one attempt of a task; `numparq.dataset.SharedJob.task` makes it.

    Nothing that it writes counts before the job is committed with the message that `close` gives. Leaving a ``with``
    block closes it (`message` is there then), or, by an exception, removes what it has written.

    Parameters
    ----------
    stage : LocalStage or RemoteStage
        Where files lie.
    task : str
        The name of the task.
    layout : JobOptions
        What files look like.

    Attributes
    ----------
    message : TaskMessage or None
        What was written, once it is closed.
    """

    def __init__(self, stage: LocalStage | RemoteStage, task: str, layout: JobOptions) -> None:
        self.message: TaskMessage | None = None
        self._stage, self._task, self._layout = stage, task, layout
        self._columns = FramePartitioner(layout.partition_cols)
        self._gathered = RowGroupBuffer(layout.row_group, holds_all=bool(layout.sort_keys))
        self._gathered_for: tuple[Any, ...] = ()
        self._workshop = WriterContext(threads=1, progress=False)
        self._spread = PartitionedFileWriter(
            self._new_part, lambda values: format_hive_path(self._columns.names, values), self._workshop.crew
        )
        self._nodes: list[SchemaNode] | None = None
        self._order = CategoryOrder()
        self._staged: dict[str, str] = {}
        self._is_open = True

    # --- rows -------------------------------------------------------------------------------------------------------

    def write(
        self, rows: pd.DataFrame | pa.Table | pa.RecordBatch, *, index: bool | None = None, folder: str | None = None
    ) -> None:
        """Write rows; they are gathered until they make a row group.

        Parameters
        ----------
        rows : pandas.DataFrame, pyarrow.Table or pyarrow.RecordBatch
            The columns must be those of the first ones, or of the schema. Arrow data are written from their buffers.
        index : bool, optional
            Of frames, as in `numparq.dataset.write.dataset_writer.DatasetWriter.write`.
        folder : str, optional
            The folder of the dataset that the rows are for, as it is called there (``"year=2024/month=01"``; empty
            for the dataset's own), where they are not divided by partition columns.

        Raises
        ------
        SchemaError
            When the columns are others than before, or values do not fit them.
        """
        if not self._is_open:
            raise ValueError("the writer is closed")
        try:
            if folder is not None:
                _check_folder(folder, self._layout.partition_cols)
            rows = _table(rows) if is_arrow_table(rows) else rows
            if not len(rows):
                return
            if self._gathered_for != (index, folder) or not self._gathered.fits(rows):
                self._flush()
                self._gathered_for = (index, folder)
            for full in self._gathered.add(rows):
                self._write_row_group(full)
        except BaseException:
            self.abort()
            raise

    def write_empty_file(self) -> None:
        """Make a file that has the columns of the schema, and no rows."""
        taken = shred_frame(pd.DataFrame(), index=False, schema=self._layout.file_schema)
        folder = format_hive_path(self._layout.partition_cols, [None] * len(self._layout.partition_cols))
        self._spread.write([PartitionRows((), replace(taken, key_value_metadata={}), folder)])

    def flush(self) -> None:
        """Let a row group end here."""
        try:
            self._flush()
        except BaseException:
            self.abort()
            raise

    def roll(self) -> None:
        """Let all files end here, so that the next rows begin others."""
        try:
            self._flush()
            self._spread.close()
        except BaseException:
            self.abort()
            raise

    @property
    def num_bytes(self) -> int:
        """Bytes that the open files have so far."""
        return self._spread.open_bytes

    def _flush(self) -> None:
        keys = list(self._layout.sort_keys)
        for rows in self._gathered.rest(partial(sort_order, keys) if keys else None):
            self._write_row_group(rows)

    def _write_row_group(self, rows: Any) -> None:
        index, folder = self._gathered_for
        frame = partition_frame(
            arrow_to_frame(rows), self._columns, False if is_arrow_table(rows) else index, self._layout.schema
        )
        if is_arrow_table(rows):  # there is no frame that the keys of the file could restore
            frame.whole = replace(frame.whole, key_value_metadata={})
        nodes = [column.node for column in frame.whole.columns]
        self._nodes = self._nodes or nodes
        check_columns(nodes, self._nodes)
        self._order.extend(frame.whole.ordered)
        for stretches in frame.batches():
            self._spread.write([_put_in(folder, stretch) for stretch in stretches])

    def _new_part(self, folder: str) -> RollingFileWriter:
        start = f"{folder}/" if folder else ""
        return RollingFileWriter(
            lambda number: start + data_file_name(self._stage.id, number, self._task),
            self._create,
            partial(ParquetWriter, workshop=self._workshop, **self._layout.options),
            self._layout.file,
            keep_footers=False,
        )

    def _create(self, name: str) -> Sink:
        # Another attempt of the task may be writing at the same time.
        self._staged[name] = f"1{secrets.randbits(96):029}"
        return self._stage.create(self._staged[name], name, synced=True)

    # --- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> TaskMessage:
        """Complete all files, and say what they are.

        Returns
        -------
        TaskMessage
            Small, and it can be pickled.
        """
        if self.message is not None:
            return self.message
        if not self._is_open:
            raise ValueError("the writer was aborted: what it has written is gone")
        self.roll()
        self._end()
        files = (
            StagedFile(written.name, self._staged[written.name], written.num_rows, written.num_bytes)
            for written in self._spread.written
        )
        columns = xxhash.xxh3_128_hexdigest(repr(self._nodes).encode())
        self.message = TaskMessage(self._stage.id, self._task, tuple(files), columns)
        return self.message

    def abort(self) -> None:
        """Give up: nothing is left of what was written."""
        if self._is_open:
            self._end()
            self._spread.abort()
            self._stage.remove(list(self._staged.values()))

    def _end(self) -> None:
        self._is_open = False
        self._workshop.close()


def _table(rows: Any) -> Any:
    import pyarrow as pa

    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return rows
    raise TypeError(f"a DataFrame, a pyarrow.Table or a pyarrow.RecordBatch is wanted, not {type(rows).__name__}")


def _put_in(folder: str | None, stretch: PartitionRows) -> PartitionRows:
    return stretch if folder is None else replace(stretch, folder=folder)


def _check_folder(folder: str, partition_cols: Sequence[str]) -> None:
    """Refuse what leads out of the dataset, and what readers of it would not look into."""
    if partition_cols:
        raise ValueError("rows are divided into folders by partition_cols, or are for a folder, but not both")
    parts = folder.split("/") if folder else []
    leads_out = any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts)
    if leads_out or (folder and is_hidden_path(f"{folder}/x")):
        raise SchemaError(f"{folder!r} is no folder that a dataset's files could be in")
