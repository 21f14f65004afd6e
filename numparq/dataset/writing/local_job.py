"""A write into a local folder: files lie in a hidden folder of it until the commit gives them their places."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Callable

from ...io.local_sink import try_lock
from ...io.sink import Sink
from ...io.source import FileSource, Source
from ..commit_record import COMMITTED, Record, record_name
from ..entries import Found
from ..local_listing import walk
from .changes import Changes
from .local_commit import (
    complete_all,
    exclusive,
    folder_of_job,
    make_folder,
    perform,
    remove_folders,
    sweep,
    sync_files,
    version_of,
)
from .paths import job_id

__all__ = ["LocalJob"]

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


class LocalJob:
    """A write that is under way.

    Parameters
    ----------
    base : str
        The dataset's folder; it is made where it is not there.

    Attributes
    ----------
    id : str
        Its name, which no other write has.
    base : str
        The folder.
    """

    def __init__(self, base: str) -> None:
        self.base = base
        self.id = job_id()
        self._folder = folder_of_job(self.id)
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        self._descriptor = -1
        self._process = os.getpid()
        self._made: list[str] = []
        if os.path.exists(base) and not os.path.isdir(base):
            raise NotADirectoryError(errno.ENOTDIR, "a dataset is a folder, and there is a file of this name", base)
        try:
            make_folder(base, self._made)
            with exclusive(base):  # nobody sweeps it away before it is locked
                os.mkdir(os.path.join(base, self._folder))
                with contextlib.suppress(OSError):  # Windows
                    self._descriptor = os.open(os.path.join(base, self._folder), _DIRECTORY)
                    try_lock(self._descriptor)
        except BaseException:
            self.abort()
            raise

    def found(self) -> Found:
        """List what the dataset has now."""
        return walk(self.base)

    def source(self, path: str) -> Source:
        """Open a file that the dataset has."""
        return FileSource(path)

    def open(self, name: str) -> Sink:
        """Open a file of the dataset for writing.

        Parameters
        ----------
        name : str
            Its path in the dataset, with slashes.
        """
        with self._lock:
            number = self._names.setdefault(name, str(len(self._names)))
        return _FileOfJob(os.path.join(self.base, self._folder, number), os.path.join(self.base, name))

    def commit(self, changes_of: Callable[[Found], Changes]) -> None:
        """Give all files their places, and remove those that they replace, as one.

        Parameters
        ----------
        changes_of : callable
            Says, of what the dataset has once no other commit is under way, what is to be changed.
        """
        if not self._names:  # nothing was written, so that nothing changes
            self._remove()
            return
        with exclusive(self.base):
            complete_all(self.base)
            sweep(self.base)
            changes = changes_of(self.found())
            for name, data in changes.over.items():
                with self.open(name) as sink:
                    sink.write(data)
            over = {name: number for name, number in self._names.items() if name in changes.over}
            files = {name: number for name, number in self._names.items() if name not in changes.over}
            start = len(self.base.rstrip("/")) + 1
            gone = {path[start:]: version_of(path) for path in changes.gone}
            sync_files(os.path.join(self.base, self._folder, number) for number in self._names.values())
            perform(self.base, Record(self.id, COMMITTED, self._folder, files, over, gone))
        self._close()

    def abort(self) -> None:
        """Remove everything that was written, unless it is in force already."""
        if not os.path.exists(os.path.join(self.base, record_name(self.id))):
            self._remove()
        self._close()
        remove_folders(self._made)

    def _remove(self) -> None:
        shutil.rmtree(os.path.join(self.base, self._folder), ignore_errors=True)
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0 and self._process == os.getpid():  # and not a copy of it, by a fork
            self.abort()


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
