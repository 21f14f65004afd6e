"""The steps of a commit where nothing can be renamed: in object stores, and on other file systems that are not local.

Files have their names from the beginning, and a record says that they do not count yet. The commit is one request: the
record is overwritten by one that says which files go, or, where none do, removed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ...io.remote_source import SIDE_BY_SIDE
from ...io.remote_source import open_on as open_source_on
from ...io.source import Source
from ...threads import Crew
from ..commit_record import COMMITTED, JOB, PENDING, Record, file_prefix, job_of
from ..entries import Entry, Found
from ..remote_listing import RemoteListing
from .local_commit import folder_of_job

__all__ = ["RemoteFolder", "RemoteWrite", "recover_remote", "side_by_side"]

_STAGE = re.compile(re.escape(folder_of_job("", outlives=True)) + f"({JOB})")


class RemoteFolder:
    """The folder of a dataset on a file system that is not local.

    Parameters
    ----------
    filesystem : fsspec or pyarrow file system
        Where it is.
    base : str
        Its path there.
    """

    def __init__(self, filesystem: Any, base: str) -> None:
        self.filesystem = filesystem
        self.base = base
        self._is_arrow = hasattr(filesystem, "open_input_file")

    def path(self, place: str) -> str:
        """Give the path of a place in the dataset."""
        return f"{self.base}/{place}" if self.base else place

    def found(self) -> Found:
        """List what counts of what it has."""
        return self._listed(RemoteListing(self.filesystem).walk)

    def everything(self) -> list[Entry]:
        """List all files, whether they count or not."""
        found = self._listed(RemoteListing(self.filesystem).walk_as_it_is)
        return [*found.files, *found.hidden]

    def _listed(self, walk: Callable[[str], Found]) -> Found:
        if hasattr(self.filesystem, "invalidate_cache"):
            self.filesystem.invalidate_cache(self.base)
        try:
            return walk(self.base)
        except FileNotFoundError:
            return Found()

    def records(self) -> dict[str, Record]:
        """Read the records that there are, by their paths."""
        found = {}
        for entry in self.everything():
            if job_of(entry.path) and entry.path.rpartition("/")[0] == self.base:
                try:
                    found[entry.path] = Record.decode(self.get(entry.path), entry.path)
                except FileNotFoundError:
                    continue
        return found

    def get(self, path: str) -> bytes:
        """Read a file."""
        if self._is_arrow:
            with self.filesystem.open_input_file(path) as file:
                return file.read()
        return self.filesystem.cat_file(path)

    def put(self, path: str, data: bytes) -> None:
        """Write a file, by one request."""
        if self._is_arrow:
            with self.filesystem.open_output_stream(path) as file:
                file.write(data)
        else:
            self.filesystem.pipe_file(path, data)

    def make_folder_of(self, path: str) -> None:
        """Make the folder that a file is to lie in."""
        folder = path.rpartition("/")[0]
        if self._is_arrow:
            self.filesystem.create_dir(folder, recursive=True)
        else:
            self.filesystem.makedirs(folder, exist_ok=True)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files that may be there."""
        side_by_side([partial(self._remove, path) for path in paths])

    def _remove(self, path: str) -> None:
        try:
            if self._is_arrow:
                self.filesystem.delete_file(path)
            else:
                self.filesystem.rm_file(path)
        except FileNotFoundError:
            pass

    def move(self, start: str, end: str) -> None:
        """Put a file where it belongs; where a file system cannot, it is copied there, by the store itself."""
        if self._is_arrow:
            self.filesystem.move(start, end)
        else:
            self.filesystem.cp_file(start, end)

    def clear(self, folder: str) -> None:
        """Remove a folder and the files in it; it need not be there."""
        try:
            found = RemoteListing(self.filesystem).walk_as_it_is(folder)
        except FileNotFoundError:
            found = Found()
        self.remove(entry.path for entry in (*found.files, *found.hidden))
        with contextlib.suppress(Exception):  # an object store has no folders
            self.filesystem.delete_dir(folder) if self._is_arrow else self.filesystem.rmdir(folder)

    def complete(self, path: str, record: Record) -> None:
        """Make true what a record says that is in force, and remove it."""
        versions = {entry.path: entry.version for entry in self.everything()} if any(record.gone.values()) else {}
        gone = {self.path(place): version for place, version in record.gone.items()}
        self.remove(name for name, version in gone.items()
                    if version is None or versions.get(name) in (None, version))  # fmt: skip
        self.remove([path])
        self.clear(self.path(folder_of_job(record.job, outlives=True)))

    def take_back(self, path: str, record: Record) -> None:
        """Remove the files of a write that has not come to its commit, and its record."""
        start = file_prefix(record.job)
        names = [entry.path for entry in self.everything()]
        self.remove(name for name in names if name.rpartition("/")[2].lstrip(".").startswith(start))
        self.remove([path])


class RemoteWrite:
    """A write to such a folder, wherever its files lie until they count.

    Parameters
    ----------
    filesystem : fsspec or pyarrow file system
        Where the dataset is.
    base : str
        Its folder.
    name_of : callable
        Gives what a path there is called in messages.
    alone : bool
        Whether no other write of this kind may be under way: those that replace files, or expect none.
    job : str
        Its name, which no other write has.
    """

    def __init__(self, filesystem: Any, base: str, name_of: Callable[[str], str], alone: bool, job: str) -> None:
        self.base, self.id = base, job
        self._name_of, self._alone = name_of, alone
        self._folder = RemoteFolder(filesystem, base)

    def found(self) -> Found:
        """List what counts of what the dataset has."""
        return self._folder.found()

    def source(self, path: str) -> Source:
        """Open a file that the dataset has."""
        return open_source_on(self._folder.filesystem, path, self._name_of(path))


def side_by_side(jobs: list[Callable[[], None]]) -> None:
    """Do what waits for answers."""
    with Crew(max(1, min(SIDE_BY_SIDE, len(jobs)))) as crew:
        crew.run(jobs)


def recover_remote(filesystem: Any, base: str, *, abandoned: bool) -> tuple[list[str], list[str]]:
    """Complete commits that broke off; give the writes that were completed, and those that were removed.

    Parameters
    ----------
    filesystem : fsspec or pyarrow file system
        Where the dataset is.
    base : str
        Its folder.
    abandoned : bool
        Whether writes that have not come to their commit are removed, too.
    """
    folder = RemoteFolder(filesystem, base)
    completed, removed = [], []
    for path, record in folder.records().items():
        if record.state == COMMITTED:
            folder.complete(path, record)
            completed.append(record.job)
        elif record.state == PENDING and abandoned:
            folder.take_back(path, record)
            removed.append(record.job)
    if abandoned:
        removed += _clear_stages(folder)
    return completed, removed


def _clear_stages(folder: RemoteFolder) -> list[str]:
    """Remove what writes of several processes have left that did not come to their record; give those writes."""
    start = len(folder.path(""))
    tops = {entry.path[start:].partition("/")[0] for entry in folder.everything()}
    stages = {top: found[1] for top in tops if (found := _STAGE.fullmatch(top))}
    for top in stages:
        folder.clear(folder.path(top))
    return sorted(stages.values())
