"""`TaskWriter`: rows of one task attempt, written to staged files."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd
import xxhash

from numparq.dataset.commit.stage import Stage
from numparq.dataset.listing.patterns import is_hidden_path
from numparq.dataset.partitions.partitioning import format_hive_path
from numparq.errors import ParquetError, SchemaError
from numparq.file.category_order import CategoryOrder
from numparq.file.encryption import hide_values
from numparq.file.writer_context import WriterContext
from numparq.from_pandas.arrow_stream import arrow_to_frame, is_arrow_data, read_table, without_views
from numparq.from_pandas.frame import ShreddedFrame, shred_frame
from numparq.from_pandas.user_schema import UserColumn
from numparq.io.sibling_bytes import sibling_path
from numparq.io.sink import Sink
from numparq.keys.material_file import key_material_path
from numparq.typing import FrameOrArrow
from numparq.util.transaction import TransactionalWriter

from .job_options import JobOptions
from .partition_files import PartitionedFileWriter, PartitionFiles, writer_factory
from .partition_frame import FramePartitioner, PartitionRows, partition_frame
from .row_group_buffer import RowGroupBuffer, is_arrow_table, sort_order


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A written file, not in the dataset before the commit.

    Attributes
    ----------
    name : str
        Path in the dataset, separated by slashes.
    staged_name : str
        Name until the commit.
    num_rows, num_bytes : int
        Size of the file.
    fingerprint : str or None
        Fingerprint of an encrypted file, as in `numparq.Dataset.parts`.
    staged_material : str
        Name until the commit of the file with its key material; empty: the file has none outside.
    """

    name: str
    staged_name: str
    num_rows: int
    num_bytes: int
    fingerprint: str | None = None
    staged_material: str = ""

    @property
    def names(self) -> dict[str, str]:
        """Names until the commit, of the file and of its key material, by path in the dataset."""
        material = {key_material_path(self.name): self.staged_material} if self.staged_material else {}
        return {self.name: self.staged_name, **material}

    @property
    def folder(self) -> str:
        """Directory of the file in the dataset; empty for the dataset's own."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """Result of a task, to be passed to `SharedJob.commit`; small, and can be pickled.

    Attributes
    ----------
    job : str
        Id of the write.
    task : str
        Name of the task.
    files : tuple of StagedFile
        Written files, in row order within each directory.
    columns : str
        Digest of the columns; equal for tasks whose files have the same columns.
    """

    job: str
    task: str
    files: tuple[StagedFile, ...] = ()
    columns: str = ""

    @property
    def parts(self) -> dict[str, str | None]:
        """Fingerprint of each file by its path in the dataset, as in `numparq.Dataset.parts`; None for plain files."""
        return {file.name: file.fingerprint for file in self.files}

    @property
    def num_rows(self) -> int:
        """Number of rows of all files."""
        return sum(file.num_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(file.num_bytes for file in self.files)


class TaskWriter(TransactionalWriter):
    """Writes the rows of one attempt of a task; made by `SharedJob.task`.

    The rows count once the job is committed with the message that `close` returns. Leaving a ``with`` block closes the
    writer; leaving it by an exception removes what was written.

    Parameters
    ----------
    stage : Stage
        Stage of the job's files.
    task : str
        Name of the task.
    layout : JobOptions
        Options of the job.

    Attributes
    ----------
    message : TaskMessage or None
        Result of the task, once the writer is closed.
    """

    def __init__(self, stage: Stage, task: str, layout: JobOptions) -> None:
        self.message: TaskMessage | None = None
        self._stage, self._task, self._layout = stage, task, layout
        self._columns = FramePartitioner(layout.partition_cols)
        self._gathered = RowGroupBuffer(layout.row_group_limits, holds_all=bool(layout.sort_keys))
        self._gathered_for: tuple[Any, ...] = ()
        self._workshop = WriterContext(threads=1)
        self._staged: dict[str, str] = {}
        make_writer = writer_factory(stage, self._workshop, layout.options)
        create_file = partial(_create_file, stage, self._staged)
        files = PartitionFiles(stage.id, create_file, make_writer, layout.file_limits, task)
        self._spread = PartitionedFileWriter(files.writer_of, self._columns.folder, self._workshop.pool)
        self._known: list[UserColumn] | None = None
        self._order = CategoryOrder()
        self._begin_writing()

    # --- rows -------------------------------------------------------------------------------------------------------

    def write(self, rows: FrameOrArrow, *, index: bool | None = None, folder: str | None = None) -> None:
        """Write rows; they are buffered until they fill a row group.

        Parameters
        ----------
        rows : pandas.DataFrame, or Arrow data such as a pyarrow.Table
            Rows with the columns of the first ones, or of the schema. Arrow data are written from their own buffers.
        index : bool, optional
            Index of frames, as in `numparq.DatasetWriter.write`.
        folder : str, optional
            Directory of the rows in the dataset, such as ``"year=2024/month=01"`` (empty: the dataset's own). Only
            without partition columns.

        Raises
        ------
        SchemaError
            If the columns differ from earlier ones, or values do not fit them.
        """
        self._check_writing()
        try:
            if folder is not None:
                _check_folder(folder, self._layout.partition_cols)
            table: Any = without_views(read_table(rows)) if is_arrow_data(rows) else rows
            if not len(table):
                return
            if self._gathered_for != (index, folder) or not self._gathered.accepts(table):
                self._flush()
                self._gathered_for = (index, folder)
            for full in self._gathered.add(table):
                self._write_row_group(full)
        except BaseException as error:
            self._abort_for(error)
            raise

    def write_shredded(self, rows: ShreddedFrame) -> None:
        """Write rows that are leaf values already, at once, without partition columns.

        Parameters
        ----------
        rows : ShreddedFrame
            Rows with the columns of the schema.
        """
        self._check_writing()
        try:
            self._spread.write([PartitionRows((), rows, "")])
        except BaseException:
            self.abort()
            raise

    def write_empty_file(self) -> None:
        """Write a file with the columns of the schema and no rows."""
        taken = shred_frame(pd.DataFrame(), index=False, schema=self._layout.file_schema)
        folder = format_hive_path(self._layout.partition_cols, [None] * len(self._layout.partition_cols))
        self._spread.write([PartitionRows((), replace(taken, key_value_metadata={}), folder)])

    def flush(self) -> None:
        """End the current row group."""
        try:
            self._flush()
        except BaseException as error:
            self._abort_for(error)
            raise

    def roll(self) -> None:
        """Complete all open files; the next rows begin new ones."""
        try:
            self._flush()
            self._spread.close()
        except BaseException as error:
            self._abort_for(error)
            raise

    def _abort_for(self, error: BaseException) -> None:
        """Abort for an error, which then quotes no values of encrypted columns."""
        self.abort()
        if isinstance(error, ParquetError):
            hide_values(error, self._layout.encryption)

    @property
    def num_bytes(self) -> int:
        """Bytes written to the open files so far."""
        return self._spread.open_bytes

    def _flush(self) -> None:
        keys = list(self._layout.sort_keys)
        for rows in self._gathered.flush(partial(sort_order, keys) if keys else None):
            self._write_row_group(rows)

    def _write_row_group(self, rows: Any) -> None:
        index, folder = self._gathered_for
        is_table = is_arrow_table(rows)
        frame = partition_frame(
            arrow_to_frame(rows) if is_table else rows, self._columns, False if is_table else index, self._layout.schema
        )
        if is_table:  # it has no frame for the pandas metadata to restore
            frame.whole = replace(frame.whole, key_value_metadata={})
        self._known = frame.fit(self._known)
        self._order.check_append(frame.whole.ordered_categories)
        for stretches in frame.batches():
            self._spread.write([_put_in(folder, stretch) for stretch in stretches])

    # --- close and abort --------------------------------------------------------------------------------------------

    def close(self) -> TaskMessage:
        """Complete all files, and return the message for the commit.

        Returns
        -------
        TaskMessage
            Result of the task; small, and can be pickled.
        """
        if self.message is not None:
            return self.message
        if not self._process:
            raise ValueError("the writer was aborted, and its files were removed")
        self._check_writing()
        self.roll()
        self._end_writing()
        self._workshop.close()
        files = (
            StagedFile(
                written.name, self._staged[written.name], written.num_rows, written.num_bytes, written.fingerprint
            )
            for written in self._spread.written
        )
        material = {name: self._staged.get(key_material_path(name), "") for name in self._staged}
        files = (replace(file, staged_material=material[file.name]) for file in files)
        nodes = None if self._known is None else [column.node for column in self._known]
        columns = xxhash.xxh3_128_hexdigest(repr(nodes).encode())
        self.message = TaskMessage(self._stage.id, self._task, tuple(files), columns)
        return self.message

    def _discard(self) -> None:
        self._workshop.close()
        self._spread.abort()
        self._stage.remove(list(self._staged.values()))

    @property
    def _target(self) -> str:
        return f"task {self._task} in {self._stage.base}"


def _create_file(stage: Stage, staged: dict[str, str], name: str) -> Sink:
    """Open a staged file and add its name to `staged`."""
    # A random name: another attempt of the task may be writing at the same time.
    staged[name] = f"1{secrets.randbits(96):029}"
    sink = stage.create_file(staged[name], name, synced=True)
    sink.create_sibling = lambda file_name: _create_file(stage, staged, sibling_path(name, file_name))
    return sink


def _put_in(folder: str | None, stretch: PartitionRows) -> PartitionRows:
    return stretch if folder is None else replace(stretch, folder=folder)


def _check_folder(folder: str, partition_cols: Sequence[str]) -> None:
    """Raise if a directory leads out of the dataset, or is hidden from readers."""
    if partition_cols:
        raise ValueError("folder cannot be used with partition_cols, which choose the folders")
    parts = folder.split("/") if folder else []
    leads_out = any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts)
    if leads_out or (folder and is_hidden_path(f"{folder}/x")):
        raise SchemaError(f"folder must be a visible directory below the dataset, not {folder!r}")
