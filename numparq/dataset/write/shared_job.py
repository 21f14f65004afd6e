"""`SharedJob`: one write by several processes, staged by tasks and committed once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

from numparq.crypto.key import KeySource
from numparq.dataset.commit.record import CommitChanges, is_path_inside
from numparq.dataset.commit.stage import Stage
from numparq.dataset.commit.stream_batch import StreamBatch
from numparq.dataset.listing.files import DirectoryListing
from numparq.dataset.listing.table_formats import check_no_table_below, check_plain_folder
from numparq.dataset.partitions.partitioning import parse_hive_path
from numparq.errors import SchemaError, error_context
from numparq.format.open_file import OpenFile
from numparq.io.filesystem import resolve_paths
from numparq.keys.provider import as_encryption_keys, as_key_source
from numparq.typing import PathLike, StorageOptions
from numparq.util.arguments import check_positive_int, check_seconds

from .existing_data import WRITE_MODES, RemovalRule, find_replaced_files, plan_changes
from .job_options import JobOptions, parse_limits
from .job_schemas import check_job_schemas, open_staged_file
from .job_stage import begin_stage
from .row_group_buffer import parse_sort_keys
from .store_refresh import RefreshableStore, check_refreshable, refresh_store
from .task_writer import StagedFile, TaskMessage, TaskWriter

_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
SUCCESS_FILE = "_SUCCESS"
_NO_ROWS = "norows"  # task of the file without rows, which keeps the schema of an empty dataset


class SharedJob:
    """One write to a dataset by several processes; `begin` starts it.

    A job can be pickled, and all copies are equal: any process that sees the dataset can run tasks or commit. In a
    local directory, the process that began the job holds a lock that marks the write as alive, unless `outlives` is
    set.

    Attributes
    ----------
    id : str
        Unique id of the write.
    path : str
        Directory of the dataset.

    Examples
    --------
    >>> import pandas, numparq, tempfile
    >>> from numparq.dataset.write.shared_job import SharedJob
    >>> folder = tempfile.mkdtemp()
    >>> job = SharedJob.begin(folder, mode="append", partition_cols=["year"])
    >>> with job.task("0") as writer:  # in any process
    ...     writer.write(pandas.DataFrame({"year": [2020, 2021], "x": [1, 2]}))
    >>> job.commit([writer.message])
    True
    >>> len(numparq.read_parquet(folder))
    2
    """

    def __init__(
        self,
        path: str,
        stage: Stage,
        gone_of: RemovalRule,
        layout: JobOptions,
        batch: StreamBatch | None = None,
    ) -> None:
        self.id, self.path = stage.id, path
        self._stage, self._gone_of, self._layout, self._batch = stage, gone_of, layout, batch

    @classmethod
    def begin(
        cls,
        path: PathLike,
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
        batch: StreamBatch | None = None,
        keep_replaced: float = 0,
        decryption: KeySource | str | None = None,
        skipping: RefreshableStore | None = None,
        table_format: str = "auto",
        storage_options: StorageOptions = None,
        filesystem: Any = None,
        **options: Any,
    ) -> SharedJob:
        """Begin a write.

        Parameters
        ----------
        path : str or os.PathLike
            Directory of the dataset.
        mode : {"append", "error", "overwrite", "delete_matching", "replace"}, default "append"
            What the commit does with existing files: "append" keeps them, "error" raises, "overwrite" removes all.
            "delete_matching" removes those in partitions that get rows, "replace" those in `gone`.
        gone : iterable of (str or os.PathLike)
            Paths of the files to remove in mode "replace". The commit fails if one of them changes after this call, so
            begin before you read them. Files added meanwhile stay.
        partition_cols : sequence of str
            Columns whose values divide rows into directories, as in `DatasetWriter`.
        schema : pyarrow.Schema, sequence or dict, optional
            Types of the columns, as in `numparq.ParquetWriter`; by default each task infers them from its first rows.
            With a schema, a dataset that would have no file gets one without rows.
        row_group_size : int, default 1,048,576
            Maximum number of rows of a row group.
        row_group_bytes : int, default 128 MiB
            Approximate maximum size of a row group, in bytes of memory; the smaller of both limits counts.
        max_rows_per_file, max_bytes_per_file : int, optional
            Maximum rows and approximate maximum bytes of a file; no limit by default.
        sort_by : sequence, optional
            Sort order of each task's rows, and so of each file: names, or tuples of (name, descending, nulls first). A
            task holds all its rows in memory until it closes.
        same_name : callable, default str
            Maps column names that readers treat as equal to one value, such as `str.lower`. The commit rejects a column
            beside another with an equal name.
        outlives : bool, default False
            Whether the write goes on without this process. No lock then shows whether the write is alive: other writes
            leave its files alone, and only `numparq.dataset.recover` with ``abandoned=True`` removes
            them if it dies.
        batch : StreamBatch, optional
            Batch of a stream that the write commits exactly once: `commit` does nothing if the dataset has it already.
            Any number of processes may begin the write of one batch; they share it, and it outlives them.
        keep_replaced, table_format, storage_options, filesystem
            As in `numparq.to_parquet`.
        decryption : Decryption or str, optional
            Keys with which the commit opens files to compare their columns; default: those of `encryption`.
        skipping : numparq.skipping.Store, optional
            Data-skipping store of the dataset, which the commit refreshes; if that fails, it warns.
        **options
            Options of each file, as in `numparq.ParquetWriter`. With `encryption`, the job can be pickled only if it is
            the name of a provider, and so is `decryption`.

        Returns
        -------
        SharedJob
            The job; `task` writes rows, and `commit` or `abort` ends it.

        Raises
        ------
        FileNotFoundError
            If a file in `gone` does not exist.
        FileExistsError
            If the dataset has files and `mode` is ``"error"``; the commit checks again.
        SchemaError
            If a partition column is missing from the schema, or the schema does not fit the files that stay.
        UnsupportedError
            If the directory belongs to a table of another system (``docs/table-formats.md``).
        """
        if mode != "replace" and mode not in WRITE_MODES:
            raise ValueError(f"mode must be one of {', '.join([*WRITE_MODES, 'replace'])}, not {mode!r}")
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path must be the directory of a dataset, a str or os.PathLike, not {type(path).__name__}")
        place = resolve_paths([path], storage_options, filesystem)
        check_plain_folder(place, table_format)
        keys = tuple(parse_sort_keys(sort_by))
        columns = (partition_cols,) if isinstance(partition_cols, str) else tuple(partition_cols)
        options["encryption"] = as_encryption_keys(options.get("encryption"))
        if keys:
            options.setdefault("sorting_columns", [key for key in keys if key[0] not in columns])
        layout = JobOptions(
            columns,
            schema,
            *parse_limits(row_group_size, row_group_bytes, max_rows_per_file, max_bytes_per_file),
            keys,
            options,
            same_name,
            table_format,
            as_key_source(decryption),
            check_refreshable(skipping),
        )
        layout.check()
        stage = begin_stage(place, outlives, mode != "append", check_seconds(keep_replaced, "keep_replaced"), batch)
        try:
            gone_of = find_replaced_files(stage, gone) if mode == "replace" else WRITE_MODES[mode]
            if mode == "error":
                gone_of(stage.base, stage.list_committed().files, (), ())
            job = cls(place.display_name(stage.base), stage, gone_of, layout, batch)
            if mode == "append" and batch is None:
                job._check_beforehand()
        except BaseException:
            stage.abort()
            raise
        return job

    def _check_beforehand(self) -> None:
        """Raise before any task runs if the schema does not fit the existing files, as the commit would."""
        layout = self._layout
        if not layout.has_all_columns:
            return
        found = self._stage.list_committed()
        if not found.files:
            return
        with error_context(file=self.path):
            keys = layout.partition_cols
            check_no_table_below(found, self._stage.base, layout.table_format)
            changes = plan_changes(self._gone_of, self._stage.base, found, keys, [(None,) * len(keys)])
            check_job_schemas(self._stage, self._layout, found, changes, [OpenFile(layout.empty_file())])

    def __getstate__(self) -> dict[str, Any]:
        self._layout.check_travels()
        return self.__dict__

    # --- tasks ------------------------------------------------------------------------------------------------------

    def task(self, name: str, *, max_rows_per_file: int | None = None, **options: Any) -> TaskWriter:
        """Begin an attempt of a task, in any process.

        Parameters
        ----------
        name : str
            Name of the task: letters, digits, ``_`` and ``-``. Attempts of a task share its name, and may run at the
            same time. Each writes its own files, and the messages passed to `commit` decide which count. Within a
            directory, files sort by the names of their tasks.
        max_rows_per_file : int, optional
            Maximum rows of a file, instead of that of `begin`.
        **options
            Options of each file, instead of those of `begin`; not `encryption`.

        Returns
        -------
        TaskWriter
            Writer of the attempt's rows.
        """
        if "encryption" in options:
            raise ValueError("all tasks of a job encrypt alike; pass encryption= to SharedJob.begin")
        if not _TASK.fullmatch(name):
            raise ValueError(f"the name of a task must have only letters, digits, '_' and '-', unlike {name!r}")
        limits = self._layout.file_limits
        if max_rows_per_file is not None:
            limits = replace(limits, rows=check_positive_int(max_rows_per_file, "max_rows_per_file"))
        layout = replace(self._layout, options=self._layout.options | options, file_limits=limits)
        return TaskWriter(self._stage, name, layout)

    def staged(self, messages: Iterable[TaskMessage | None]) -> list[str]:
        """Return the current paths of files before the commit, to read and inspect them.

        Parameters
        ----------
        messages : iterable of TaskMessage
            Messages of tasks.

        Returns
        -------
        list of str
            Paths or URLs, in the order of the messages and of the files in each.
        """
        return [self._stage.path(file.staged_name) for file in self._files(messages)]

    # --- commit and abort -------------------------------------------------------------------------------------------

    def commit(self, messages: Iterable[TaskMessage | None], *, mode: str | None = None) -> bool:
        """Add the files of the messages to the dataset and remove those that they replace, as one atomic step.

        Other files of the job are dropped. If an error is raised, the dataset is unchanged, and `abort` removes the
        files.

        Parameters
        ----------
        messages : iterable of TaskMessage
            One message of each task; None is ignored.
        mode : {"overwrite", "delete_matching"}, optional
            Mode instead of that of `begin`, which must be one of these two.

        Returns
        -------
        bool
            False if the dataset already had the job's batch, and did not change.

        Raises
        ------
        ValueError
            If the mode cannot be changed; if two messages are of one task, or a message is of another job.
        FileNotFoundError
            If the job has ended, or a file of a message is gone.
        InvalidFileError
            If a file to be replaced has changed since the job began.
        SchemaError
            If the new files do not fit together, or do not fit the files that stay.
        BlockingIOError
            If another write to the same object store is in progress, and one of the two must be alone.
        """
        if mode is not None:
            self._change_mode(mode)
        if self._batch is not None and self._stage.has_batch(self._batch):
            self.abort()
            return False
        told = [message for message in messages if message is not None]
        files = self._files(told)
        with error_context(file=self.path):
            if not files:
                told = self._without_rows()
                files = self._files(told)
            # One file represents all tasks with the same columns; mostly that is all tasks.
            first_of = {message.columns: message.files[0] for message in reversed(told) if message.files}
            with ExitStack() as stack:  # opened here, as the commit may move the files
                new = [
                    stack.enter_context(closing(open_staged_file(self._stage, self._layout, file)))
                    for file in first_of.values()
                ]
                names = {name: staged for file in files for name, staged in file.names.items()}
                self._stage.commit(names, lambda found: self._changes(files, found, new))
        refresh_store(self._layout.skipping, self.path)
        return True

    def _change_mode(self, mode: str) -> None:
        rules = {name: WRITE_MODES[name] for name in ("overwrite", "delete_matching")}
        if mode not in rules or self._gone_of not in rules.values():
            raise ValueError(f"commit can change the mode between {' and '.join(rules)} only, not to {mode!r}")
        self._gone_of = rules[mode]

    def mark_success(self) -> None:
        """Write the empty file ``_SUCCESS`` after the commit, by which other systems see that a job has ended."""
        self._stage.write_marker(SUCCESS_FILE)

    def _files(self, messages: Iterable[TaskMessage | None]) -> list[StagedFile]:
        known: set[str] = set()
        files: list[StagedFile] = []
        for message in filter(None, messages):
            if message.job != self.id:
                raise ValueError(f"the message is from write {message.job}, but this is write {self.id}")
            if message.task in known:
                raise ValueError(
                    f"two messages are from task {message.task!r}; pass the message of one attempt per task"
                )
            known.add(message.task)
            files += message.files
        for file in files:
            if not (is_path_inside(file.name) and all(staged.isdigit() for staged in file.names.values())):
                raise ValueError(f"a message names file {file.name!r}, which the write did not stage")
        return files

    def _without_rows(self) -> list[TaskMessage]:
        """Write a file without rows if the dataset would otherwise have no file; return its message."""
        found = self._stage.list_committed()
        going = set(self._changes([], found).gone)
        if any(entry.path not in going for entry in found.files):
            return []
        if self._layout.schema is None:
            if going:
                raise SchemaError(
                    "no rows were written, and the dataset would be empty; pass schema= to keep its columns"
                )
            return []
        writer = self.task(_NO_ROWS)
        with writer:
            writer.write_empty_file()
        assert writer.message is not None
        return [writer.message]

    def _changes(self, files: list[StagedFile], found: DirectoryListing, new: Sequence[OpenFile] = ()) -> CommitChanges:
        """Plan the changes of the commit; ``new`` holds one open file for each set of columns."""
        partitions = [parse_hive_path(file.folder) for file in files]
        keys = list(partitions[0]) if partitions else list(self._layout.partition_cols)
        for file, partition in zip(files, partitions, strict=True):
            if list(partition) != keys:
                shown = [", ".join(map(repr, names)) or "nothing" for names in (partition, keys)]
                raise SchemaError(
                    f"a written file is partitioned by {shown[0]}, but others by {shown[1]}",
                    file=file.name,
                )
        written = {tuple(partition.get(key, "") for key in keys) for partition in partitions}
        check_no_table_below(found, self._stage.base, self._layout.table_format)
        changes = plan_changes(self._gone_of, self._stage.base, found, keys, written, self._layout.partition_kinds)
        if new:
            check_job_schemas(self._stage, self._layout, found, changes, new)
        return changes if self._batch is None else replace(changes, marks={self._batch.mark: self._batch.mark_text})

    def abort(self) -> None:
        """Remove everything that was written; the dataset stays as it was.

        Raises
        ------
        RuntimeError
            If the commit has already taken effect and cannot be undone.
        """
        if self._stage.is_committed:
            raise RuntimeError(
                f"write {self.id} to {self.path} cannot be aborted: its commit was interrupted after it took "
                "effect for readers; the next write completes it"
            )
        self._stage.abort()
