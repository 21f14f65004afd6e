"""Commit in an object store: files, records and requests where nothing can be renamed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.dataset.listing.remote import RemoteLister
from numparq.io.open import open_filesystem_source as open_source_on
from numparq.io.remote_errors import explain_remote_errors
from numparq.io.remote_source import MAX_CONCURRENT_REQUESTS
from numparq.io.source import Source
from numparq.util.worker_pool import WorkerPool

from .consistent_listing import CommittedRemoteListing
from .record import JOB_PATTERN, KEY_MATERIAL_PREFIX, CommitRecord, job_file_prefix, job_of_record, stage_folder_name

_STAGE = re.compile(re.escape(stage_folder_name("", outlives=True)) + f"({JOB_PATTERN})")


class RemoteStore:
    """Requests to a dataset's directory, `base`, on a file system of fsspec or pyarrow."""

    def __init__(self, filesystem: Any, base: str) -> None:
        self.filesystem = filesystem
        self.base = base
        self._is_arrow = hasattr(filesystem, "open_input_file")

    def path(self, place: str) -> str:
        """Return the full path of a path within the dataset."""
        return f"{self.base}/{place}" if self.base else place

    def list_files(self) -> DirectoryListing:
        """List the committed files."""
        return self._listed(CommittedRemoteListing(self.filesystem).walk)

    def list_all(self) -> list[FileEntry]:
        """List all files, committed or not."""
        found = self._listed(RemoteLister(self.filesystem).list_all)
        return [*found.files, *found.hidden]

    def _listed(self, walk: Callable[[str], DirectoryListing]) -> DirectoryListing:
        try:
            return walk(self.base)
        except FileNotFoundError:
            return DirectoryListing()

    def records(self) -> dict[str, CommitRecord]:
        """Read the commit records, by path."""
        found = {}
        for entry in self.list_all():
            if job_of_record(entry.path) and entry.path.rpartition("/")[0] == self.base:
                try:
                    found[entry.path] = CommitRecord.decode(self.get(entry.path), entry.path)
                except FileNotFoundError:
                    continue
        return found

    def get(self, path: str) -> bytes:
        """Read a file."""
        return RemoteLister(self.filesystem).read(path)

    def put(self, path: str, data: bytes) -> None:
        """Write a file, by one request."""
        with explain_remote_errors(path):
            if self._is_arrow:
                with self.filesystem.open_output_stream(path) as file:
                    file.write(data)
            else:
                self.filesystem.pipe_file(path, data)

    def put_marks(self, marks: Mapping[str, str]) -> None:
        """Write the marks of streams, given by file name."""
        for name, text in marks.items():
            self.put(self.path(name), text.encode())

    def make_folder_of(self, path: str) -> None:
        """Create the directory of a file."""
        folder = path.rpartition("/")[0]
        if self._is_arrow:
            self.filesystem.create_dir(folder, recursive=True)
        else:
            self.filesystem.makedirs(folder, exist_ok=True)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove those files that exist."""
        run_in_parallel([partial(self._remove, path) for path in paths])

    def _remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError), explain_remote_errors(path):
            self.filesystem.delete_file(path) if self._is_arrow else self.filesystem.rm_file(path)

    def move(self, start: str, end: str) -> None:
        """Move a file; on fsspec file systems, copy it, and leave the original to `clear`."""
        with explain_remote_errors(end):
            self.filesystem.move(start, end) if self._is_arrow else self.filesystem.cp_file(start, end)

    def clear(self, folder: str) -> None:
        """Remove a directory and the files in it, if it exists."""
        try:
            found = RemoteLister(self.filesystem).list_all(folder)
        except FileNotFoundError:
            found = DirectoryListing()
        self.remove(entry.path for entry in (*found.files, *found.hidden))
        with contextlib.suppress(Exception):  # an object store has no directories
            self.filesystem.delete_dir(folder) if self._is_arrow else self.filesystem.rmdir(folder)

    def clear_stages(self, is_chosen: Callable[[str], bool]) -> list[str]:
        """Remove the stages of chosen shared jobs that have no record yet; return the ids of the jobs."""
        start = len(self.path(""))
        tops = {entry.path[start:].partition("/")[0] for entry in self.list_all()}
        stages = {top: found[1] for top in tops if (found := _STAGE.fullmatch(top)) and is_chosen(found[1])}
        for top in stages:
            self.clear(self.path(top))
        return sorted(stages.values())

    def finish_commit(self, path: str, record: CommitRecord) -> None:
        """Complete an interrupted commit by its record, and remove the record."""
        versions = {entry.path: entry.version for entry in self.list_all()} if any(record.gone.values()) else {}
        gone = {self.path(place): version for place, version in record.gone.items()}
        self.remove(name for name, version in gone.items() if version is None or versions.get(name) in (None, version))
        self.put_marks(record.marks)
        self.remove([path])
        self.clear(self.path(stage_folder_name(record.job, outlives=True)))

    def roll_back(self, path: str, record: CommitRecord) -> None:
        """Remove the files of a write that did not reach its commit, and its record."""
        start = job_file_prefix(record.job)
        names = [entry.path for entry in self.list_all()]
        self.remove(name for name in names if _data_file_name(name).startswith(start))
        self.remove([path])


def _data_file_name(path: str) -> str:
    """Return the name of the data file that a path is of: its own, or that of its key material, complete or not."""
    return path.rpartition("/")[2].lstrip(".").removeprefix(KEY_MATERIAL_PREFIX)


class RemoteJobBase:
    """Base of writes to a remote dataset.

    Parameters
    ----------
    filesystem : fsspec or pyarrow file system
        File system of the dataset.
    base : str
        Directory of the dataset.
    name_of : callable
        Returns the name of a path in messages.
    alone : bool
        Whether no other such write may run at the same time: those that replace files, or expect none.
    job : str
        Unique id of the write.
    """

    is_local = False

    def __init__(self, filesystem: Any, base: str, name_of: Callable[[str], str], alone: bool, job: str) -> None:
        self.base, self.id = base, job
        self._name_of, self._alone = name_of, alone
        self._folder = RemoteStore(filesystem, base)

    def list_files(self) -> DirectoryListing:
        """List the committed files of the dataset."""
        return self._folder.list_files()

    def open_source(self, path: str) -> Source:
        """Open a file of the dataset for reading."""
        return open_source_on(self._folder.filesystem, path, self._name_of(path))


def run_in_parallel(jobs: list[Callable[[], None]]) -> None:
    """Run jobs that wait for answers, in parallel."""
    with WorkerPool(max(1, min(MAX_CONCURRENT_REQUESTS, len(jobs)))) as crew:
        crew.run(jobs)
