"""The hidden folder of a local dataset that a write's files lie in until its commit."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Mapping
from typing import Any

from ...io.local_sink import try_lock
from ...io.sink import Sink
from ...io.source import FileSource, Source
from ..commit_record import COMMITTED, Record, record_name
from ..entries import Entry, Found
from ..local_listing import walk
from ..places import local_name
from .changes import Changes
from .local_commit import (
    complete_all,
    exclusive,
    folder_of_job,
    make_folder,
    perform,
    remove_folders,
    remove_job_folder,
    sweep,
    sync_files,
    version_of,
)

__all__ = ["JobFolder"]

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_GONE = (
    "the folder of the write is not there: the write is over, or was removed as that of a dead process, or this "
    "machine does not see the folder that it was begun in"
)


class JobFolder:
    """The folder of one write; `make` makes it.

    It can be pickled: a copy finds the same files, and does not hold the lock that says that the write is alive.

    Parameters
    ----------
    base : str
        The dataset's folder.
    job : str
        The write.
    name : str
        What the hidden folder is called.
    made : list of str
        Folders that were made for it, outer ones first.
    """

    def __init__(self, base: str, job: str, name: str, made: list[str]) -> None:
        self.base, self.id, self.name = base, job, name
        self._made = made
        self._descriptor = -1
        self._process = os.getpid()

    @classmethod
    def make(cls, base: str, job: str, outlives: bool = False) -> JobFolder:
        """Make it, and lock it.

        Parameters
        ----------
        base : str
            The dataset's folder; it is made where it is not there.
        job : str
            The write.
        outlives : bool
            Whether the write goes on without the process that begins it. No lock tells then whether it is alive, and
            only `numparq.dataset.commits.recover` with ``abandoned=True`` removes what it leaves when it dies.
        """
        folder = cls(base, job, folder_of_job(job, outlives), [])
        if os.path.exists(base) and not os.path.isdir(base):
            raise NotADirectoryError(errno.ENOTDIR, "a dataset is a folder, and there is a file of this name", base)
        try:
            make_folder(base, folder._made)
            with exclusive(base):  # nobody sweeps it away before it is locked
                os.mkdir(folder.path(""))
                if not outlives:
                    folder._lock()
        except BaseException:
            folder.abort()
            raise
        return folder

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_descriptor": -1}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _process=os.getpid())

    def __del__(self) -> None:
        if getattr(self, "_process", 0) == os.getpid():  # and not a copy of it, by a fork
            self._close()

    # --- files ------------------------------------------------------------------------------------------------------

    def path(self, number: str) -> str:
        """Say where a file lies before the commit, by the number that it has in the folder."""
        return os.path.join(self.base, self.name, number)

    def create(self, number: str, name: str, synced: bool = False) -> Sink:
        """Open a new file for writing.

        Parameters
        ----------
        number : str
            What it is called until the commit: digits.
        name : str
            Its path in the dataset, for messages.
        synced : bool
            Whether it is brought to the disk when it is complete. If not, the commit does that.
        """
        kind = _SyncedFile if synced else _FileOfJob
        try:
            return kind(self.path(number), os.path.join(self.base, name))
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, _GONE, self.path("")) from None

    def staged_source(self, number: str) -> Source:
        """Open a file that does not count yet."""
        return FileSource(self.path(number))

    def remove(self, numbers: list[str]) -> None:
        """Remove files that do not come."""
        for number in numbers:
            with contextlib.suppress(OSError):
                os.unlink(self.path(number))

    # --- the dataset ------------------------------------------------------------------------------------------------

    def found(self) -> Found:
        """List what the dataset has now."""
        return walk(self.base)

    def settled(self) -> Found:
        """List it once no commit is under way, or has broken off."""
        with exclusive(self.base):
            complete_all(self.base)
            return self.found()

    def source(self, path: str) -> Source:
        """Open a file that the dataset has."""
        return FileSource(path)

    def version(self, entry: Entry) -> str | None:
        """Say what changes along with a file."""
        return version_of(entry.path)

    def place(self, path: str) -> str:
        """Give the path of a file as listings of the dataset have it."""
        name = os.path.relpath(os.path.abspath(local_name(path)), os.path.abspath(self.base))
        return f"{self.base.rstrip('/')}/{name.replace(os.sep, '/')}"

    # --- the end ----------------------------------------------------------------------------------------------------

    def commit(self, names: Mapping[str, str], changes_of: Callable[[Found], Changes]) -> None:
        """Give files their places, and remove those that they replace, as one.

        Parameters
        ----------
        names : mapping of str to str
            By the places of files in the dataset, the numbers of those that come.
        changes_of : callable
            Says, of what the dataset has once no other commit is under way, what is to be changed.
        """
        with exclusive(self.base):
            if self._descriptor < 0:
                self._lock()  # or this very commit would take it for that of a dead process
            complete_all(self.base)
            self._check_alive()
            sweep(self.base)
            changes = changes_of(self.found())
            over = {name: f"{number:020}" for number, name in enumerate(changes.over)}
            for name, number in over.items():
                with self.create(number, name) as sink:
                    sink.write(changes.over[name])
            start = len(self.base.rstrip("/")) + 1
            gone = {path[start:]: version_of(path) for path in changes.gone}
            sync_files(self.path(number) for number in (*names.values(), *over.values()))
            perform(self.base, Record(self.id, COMMITTED, self.name, dict(names), over, gone))
        self._close()

    def _check_alive(self) -> None:
        if not os.path.isdir(self.path("")):
            raise FileNotFoundError(errno.ENOENT, _GONE, self.path(""))

    @property
    def is_in_force(self) -> bool:
        """Whether the commit has begun to hold, and is not yet complete."""
        return os.path.exists(os.path.join(self.base, record_name(self.id)))

    def abort(self) -> None:
        """Remove everything that was written, unless it is in force already."""
        if not self.is_in_force:
            self.clear()
        self._close()
        remove_folders(self._made)

    def clear(self) -> None:
        """Remove the folder, and what is in it."""
        remove_job_folder(self.base, self.name)
        self._close()

    def _lock(self) -> None:
        with contextlib.suppress(OSError):  # Windows
            self._descriptor = os.open(self.path(""), _DIRECTORY)
            try_lock(self._descriptor)

    def _close(self) -> None:
        descriptor, self._descriptor = getattr(self, "_descriptor", -1), -1
        if descriptor >= 0:
            os.close(descriptor)


class _FileOfJob(Sink):
    """A file in the hidden folder of a job."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(name)
        self._path = path
        self._descriptor = os.open(path, _CREATE, 0o666)

    def _put(self, view: memoryview) -> int:
        return os.write(self._descriptor, view)

    def _complete(self) -> None:
        os.close(self._descriptor)  # the commit brings all files to the disk, side by side

    def sync(self) -> None:
        """Have everything written so far on the disk."""
        self.flush()
        with self.aborting():
            os.fsync(self._descriptor)

    def _discard(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        with contextlib.suppress(OSError):
            os.unlink(self._path)


class _SyncedFile(_FileOfJob):
    """One that is on the disk when it is complete: the process that commits may be on another machine."""

    def _complete(self) -> None:
        os.fsync(self._descriptor)
        super()._complete()
