"""`SharedJob`: one write by several processes, staged by tasks and committed once."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from typing import Any

from numparq.dataset.commit.local_stage import LocalStage
from numparq.dataset.commit.record import CommitChanges, is_path_inside, new_job_id
from numparq.dataset.commit.remote_stage import RemoteStage
from numparq.dataset.listing.files import DirectoryListing
from numparq.dataset.partitions.partitioning import parse_hive_path
from numparq.errors import SchemaError, error_context
from numparq.format.open_file import OpenFile
from numparq.io.filesystem import resolve_paths
from numparq.util.arguments import check_optional_positive_int

from .existing_data import WRITE_MODES, RemovalRule, ReplacedFiles, check_schemas_compatible, plan_changes
from .job_options import JobOptions
from .partition_files import FileLimits
from .row_group_buffer import RowGroupLimits, parse_sort_keys
from .task_writer import StagedFile, TaskMessage, TaskWriter

__all__ = ["SharedJob"]

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 1 << 27
_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NO_ROWS = "norows"  # the task that makes a file without rows, where nothing else tells what columns there are


class SharedJob:
    """A write that is under way; `begin` begins one.

    It can be pickled, and copies are as good as the first one: the process that commits need not be the one that has
    begun, and tasks may run anywhere that sees the dataset. In a local folder, the first one holds a lock that says
    that the write is alive, unless that process is not to stay (`outlives`).

    Attributes
    ----------
    id : str
        Its name, which no other write has.
    path : str
        The dataset's folder.

    Examples
    --------
    >>> import pandas, numparq, tempfile
    >>> from numparq.dataset.write.shared_job import SharedJob
    >>> folder = tempfile.mkdtemp()
    >>> job = SharedJob.begin(folder, mode="append", partition_cols=["year"])
    >>> with job.task("0") as writer:  # in any process
    ...     writer.write(pandas.DataFrame({"year": [2020, 2021], "x": [1, 2]}))
    >>> job.commit([writer.message])
    >>> len(numparq.read_parquet(folder))
    2
    """

    def __init__(self, path: str, stage: LocalStage | RemoteStage, gone_of: RemovalRule, layout: JobOptions) -> None:
        self.id, self.path = stage.id, path
        self._stage, self._gone_of, self._layout = stage, gone_of, layout

    @classmethod
    def begin(
        cls,
        path: Any,
        *,
        mode: str = "append",
        gone: Iterable[Any] = (),
        partition_cols: Sequence[str] = (),
        schema: Any = None,
        row_group_size: int | None = None,
        row_group_bytes: int | None = None,
        max_rows_per_file: int | None = None,
        max_bytes_per_file: int | None = None,
        sort_by: Sequence[Any] = (),
        same_name: Callable[[str], str] = str,
        outlives: bool = False,
        storage_options: dict[str, Any] | None = None,
        filesystem: Any = None,
        **options: Any,
    ) -> SharedJob:
        """Begin a write.

        Parameters
        ----------
        path : str or os.PathLike
            The dataset's folder.
        mode : {"append", "error", "overwrite", "delete_matching", "replace"}
            What becomes of files that are there when the write is committed: they stay, they are an error, they go,
            those in partitions that there are rows for go, or those that `gone` names.
        gone : iterable of (str or os.PathLike)
            The files that go, by their paths. They are looked at now: the commit fails if one of them is another by
            then, so begin before you read them. Files that come meanwhile stay.
        partition_cols : sequence of str
            The columns by whose values rows are divided into folders, as in `DatasetWriter`.
        schema : pyarrow.Schema, sequence or dict, optional
            The columns' types, as in `numparq.ParquetWriter`; by default each task has those of its first rows. With
            it, a dataset that would be without any file gets one without rows.
        row_group_size : int, optional
            Rows of a row group at the most, 1,048,576 by default.
        row_group_bytes : int, optional
            Bytes of a row group, as they are in memory, about, 128 MiB by default; the smaller of both limits counts.
        max_rows_per_file, max_bytes_per_file : int, optional
            What a file has at the most; of bytes, about.
        sort_by : sequence, optional
            What the rows of each task are sorted by, and so those of each file: names, or tuples of name, descending,
            nulls first. The rows of a task are held in memory until it is closed.
        same_name : callable
            Gives the same for names of columns that are one to those who read the dataset, such as `str.lower`: the
            commit refuses a column beside another such one.
        outlives : bool
            Whether the write goes on without this process. No lock tells then whether it is alive: other writes leave
            its files alone, and only `numparq.dataset.recover` with ``abandoned=True`` removes what it
            leaves
            when it dies.
        storage_options, filesystem
            As in `numparq.to_parquet`.
        **options
            Of each file, as in `numparq.ParquetWriter`.

        Raises
        ------
        FileNotFoundError
            When a file that is to go is not there.
        FileExistsError
            When there are files, and `mode` is ``"error"``; the commit looks for them once more.
        """
        if mode != "replace" and mode not in WRITE_MODES:
            raise ValueError(f"mode is one of {', '.join([*WRITE_MODES, 'replace'])}, not {mode!r}")
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a dataset is a folder: path is its name, not {type(path).__name__}")
        place = resolve_paths([path], storage_options, filesystem)
        keys = tuple(parse_sort_keys(sort_by))
        columns = (partition_cols,) if isinstance(partition_cols, str) else tuple(partition_cols)
        if keys:
            options.setdefault("sorting_columns", [key for key in keys if key[0] not in columns])
        layout = JobOptions(
            columns,
            schema,
            RowGroupLimits(
                check_optional_positive_int(row_group_size, "row_group_size") or ROW_GROUP_ROWS,
                check_optional_positive_int(row_group_bytes, "row_group_bytes") or ROW_GROUP_BYTES,
            ),
            FileLimits(
                check_optional_positive_int(max_rows_per_file, "max_rows_per_file"),
                check_optional_positive_int(max_bytes_per_file, "max_bytes_per_file"),
            ),
            keys,
            options,
            same_name,
        )
        layout.check()
        (base,) = place.paths
        stage: LocalStage | RemoteStage
        if place.filesystem is None:
            stage = LocalStage.make(os.path.abspath(base), new_job_id(), outlives)
        else:
            stage = RemoteStage(place.filesystem, base.rstrip("/"), place.name_of, mode != "append", new_job_id())
        try:
            gone_of = _replaced(stage, gone) if mode == "replace" else WRITE_MODES[mode]
            if mode == "error":
                gone_of(stage.base, stage.settled().files, (), ())
            job = cls(place.name_of(stage.base), stage, gone_of, layout)
            if mode == "append":
                job._check_beforehand()
        except BaseException:
            stage.abort()
            raise
        return job

    def _check_beforehand(self) -> None:
        """Refuse, as the commit would, what does not go with the files that are there, before any task runs."""
        layout = self._layout
        if not layout.is_complete:
            return
        found = self._stage.settled()
        if not found.files:
            return
        with error_context(file=self.path):
            keys = layout.partition_cols
            changes = plan_changes(self._gone_of, self._stage.base, found, keys, [(None,) * len(keys)])
            check_schemas_compatible(
                found, changes, self._stage.source, [OpenFile(layout.empty_file())], layout.same_name
            )

    # --- tasks ------------------------------------------------------------------------------------------------------

    def task(self, name: str) -> TaskWriter:
        """Begin an attempt of a task, in any process.

        Parameters
        ----------
        name : str
            Of the task, the same for all its attempts, whether they run one after the other or side by side: each
            writes files of its own, and the message that the job is committed with says which of them count. Within a
            folder, files are in the order of the names of their tasks. Letters, digits, ``_`` and ``-``.
        """
        if not _TASK.fullmatch(name):
            raise ValueError(f"a task's name has letters, digits, '_' and '-', unlike {name!r}")
        return TaskWriter(self._stage, name, self._layout)

    def staged(self, messages: Iterable[TaskMessage | None]) -> list[str]:
        """Say where files are before the commit, to be read and looked at.

        Parameters
        ----------
        messages : iterable of TaskMessage
            Of tasks.

        Returns
        -------
        list of str
            Paths, or URLs; in the order of the messages, and in each of its files.
        """
        return [self._stage.path(file.staged) for file in self._files(messages)]

    # --- the end ----------------------------------------------------------------------------------------------------

    def commit(self, messages: Iterable[TaskMessage | None]) -> None:
        """Let the files count that messages tell of, and no others, and let those go that they replace, as one.

        Parameters
        ----------
        messages : iterable of TaskMessage
            One of each task; None counts for nothing.

        Raises
        ------
        ValueError
            When two are of the same task, or one is of another job.
        FileNotFoundError
            When the job is over, or a file that a message tells of is not there any more.
        InvalidFileError
            When a file that is to be replaced was changed since the job began.
        SchemaError
            When the files do not go with those that stay.
        BlockingIOError
            In an object store, when another write is under way, and only one of the two may be.
            Whatever is raised, the dataset is as before; `abort` removes the files.
        """
        told = [message for message in messages if message is not None]
        files = self._files(told)
        with error_context(file=self.path):
            if not files:
                told = self._without_rows()
                files = self._files(told)
            # Of tasks with the same columns, which all have mostly, one file stands for all.
            first_of = {message.columns: message.files[0].staged for message in reversed(told) if message.files}
            with ExitStack() as stack:  # where a commit moves files, they are not where they were
                sources = [self._stage.open_staged(staged) for staged in first_of.values()]
                new = [stack.enter_context(closing(OpenFile(source))) for source in sources]
                names = {file.name: file.staged for file in files}
                self._stage.commit(names, lambda found: self._changes(files, found, new))

    def _files(self, messages: Iterable[TaskMessage | None]) -> list[StagedFile]:
        known: set[str] = set()
        files: list[StagedFile] = []
        for message in messages:
            if message is None:
                continue
            if message.job != self.id:
                raise ValueError(f"the message is of the write {message.job}, and this is {self.id}")
            if message.task in known:
                raise ValueError(f"two messages are of the task {message.task!r}: two attempts have the same rows")
            known.add(message.task)
            files += message.files
        for file in files:
            if not (is_path_inside(file.name) and file.staged.isdigit()):
                raise ValueError(f"a message tells of a file that is none of the write: {file.name!r}")
        return files

    def _without_rows(self) -> list[TaskMessage]:
        """Make a file without rows where otherwise nothing would tell what columns there are."""
        found = self._stage.settled()
        going = set(self._changes([], found).gone)
        if any(entry.path not in going for entry in found.files):
            return []
        if self._layout.schema is None:
            if going:
                raise SchemaError("no rows were written, and no schema was given: nothing would be left of the dataset")
            return []
        writer = self.task(_NO_ROWS)
        with writer:
            writer.write_empty_file()
        assert writer.message is not None
        return [writer.message]

    def _changes(self, files: list[StagedFile], found: DirectoryListing, new: Sequence[OpenFile] = ()) -> CommitChanges:
        """Say what is to be changed of what is there; `new` stand for all the new files."""
        partitions = [parse_hive_path(file.folder) for file in files]
        keys = list(partitions[0]) if partitions else list(self._layout.partition_cols)
        for file, partition in zip(files, partitions, strict=True):
            if list(partition) != keys:
                shown = [", ".join(map(repr, names)) or "nothing" for names in (partition, keys)]
                raise SchemaError(
                    f"a file of the write is partitioned by {shown[0]}, and others by {shown[1]}: "
                    "no reader reads them together",
                    file=file.name,
                )
        written = {tuple(partition.get(key, "") for key in keys) for partition in partitions}
        changes = plan_changes(self._gone_of, self._stage.base, found, keys, written, self._layout.partition_kinds)
        if new:
            check_schemas_compatible(found, changes, self._stage.source, new, self._layout.same_name)
        return changes

    def abort(self) -> None:
        """Give up: nothing is left of what was written, and the dataset is as it was.

        Raises
        ------
        RuntimeError
            When the commit is in force already, so that nothing can be taken back.
        """
        if self._stage.is_committed:
            raise RuntimeError(
                f"the write {self.id} to {self.path} is in force: its commit broke off after the point "
                "from which on readers have the new files; the next write completes it"
            )
        self._stage.abort()


def _replaced(stage: LocalStage | RemoteStage, gone: Iterable[Any]) -> ReplacedFiles:
    """Look at the files that are to go."""
    wanted = [stage.place(os.fsdecode(path)) for path in gone]
    there = {entry.path: entry for entry in stage.settled().files}
    for path in wanted:
        if path not in there:
            raise FileNotFoundError(errno.ENOENT, "the dataset has no such file, which is to be replaced", path)
    return ReplacedFiles({path: stage.version(there[path]) for path in wanted}, stage.version)
