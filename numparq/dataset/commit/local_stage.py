"""Stage of a local write: a hidden, locked directory that holds its files until the commit."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.dataset.listing.local import file_version, list_local
from numparq.io.file_lock import try_lock
from numparq.io.filesystem import strip_file_scheme
from numparq.io.local_source import FileSource
from numparq.io.open import open_local_sink
from numparq.io.replaced_files import remove_expired_files, replaced_folder_name
from numparq.io.sibling_bytes import sibling_path
from numparq.io.sink import Sink
from numparq.io.source import Source
from numparq.util.regular_file import open_regular

from .local_store import (
    commit,
    exclusive_lock,
    make_directory,
    remove_directories,
    remove_stage,
    sync_files,
    sync_folders,
)
from .record import (
    COMMITTED,
    STAGE_FOLDER_PATTERN,
    CommitChanges,
    CommitRecord,
    is_key_material,
    new_job_id,
    record_name,
    stage_folder_name,
)
from .recover import complete_interrupted, remove_abandoned
from .stream_batch import StreamBatch

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_GONE = (
    "the directory of the write is missing: the write has ended, or was removed as that of a dead process, or this "
    "machine does not see the directory"
)


class LocalStage:
    """Stage of one write in a local directory; `begin` creates it.

    A pickled copy finds the same files, but does not hold the lock that marks the write as alive.

    Parameters
    ----------
    base : str
        Directory of the dataset.
    job : str
        Id of the write.
    name : str
        Name of the hidden directory.
    made : list of str
        Directories created for the write, outer ones first.
    keep_seconds : float
        Seconds for which the commit keeps the files that it removes.
    """

    is_local = True

    def __init__(self, base: str, job: str, name: str, made: list[str], keep_seconds: float = 0) -> None:
        self.base, self.id, self.name = base, job, name
        self._keep_seconds = keep_seconds
        self._made, self._hidden = made, list[str]()
        self._descriptor = -1
        self._process = os.getpid()

    @classmethod
    def begin(
        cls, base: str, job: str, outlives: bool = False, keep_seconds: float = 0, *, exist_ok: bool = False
    ) -> LocalStage:
        """Create the stage and lock it.

        Parameters
        ----------
        base : str
            Directory of the dataset; created if missing.
        job : str
            Id of the write.
        outlives : bool
            Whether the write goes on without the process that begins it. No lock then shows whether it is alive: if it
            dies, only `numparq.dataset.recover` with ``abandoned=True`` removes its files.
        keep_seconds : float
            As of the class.
        exist_ok : bool
            Whether another process may have begun the same write.
        """
        folder = cls(base, job, stage_folder_name(job, outlives), [], keep_seconds)
        if os.path.exists(base) and not os.path.isdir(base):
            raise NotADirectoryError(errno.ENOTDIR, "path must be the directory of a dataset, but is a file", base)
        try:
            make_directory(base, folder._made)
            with exclusive_lock(base):  # otherwise another write could remove it before it is locked
                os.makedirs(folder.path(""), exist_ok=exist_ok)
                if not outlives:
                    folder._lock()
        except BaseException:
            if not exist_ok:
                folder.abort()
            raise
        return folder

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_descriptor": -1}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _process=os.getpid())

    def __del__(self) -> None:
        if getattr(self, "_process", 0) == os.getpid():  # not in a forked child
            self._close()

    # --- files ------------------------------------------------------------------------------------------------------

    def path(self, number: str) -> str:
        """Return the path of a staged file, by its name in the stage."""
        return os.path.join(self.base, self.name, number)

    def create_file(self, number: str, name: str, synced: bool = False) -> Sink:
        """Open a new file for writing.

        Parameters
        ----------
        number : str
            Name in the stage: digits.
        name : str
            Path in the dataset, for messages.
        synced : bool
            Whether completing the file writes it to the disk (fsync); otherwise the commit does.
        """
        kind = _SyncedStagedFileSink if synced else _StagedFileSink
        try:
            return kind(self.path(number), os.path.join(self.base, name))
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, _GONE, self.path("")) from None

    def create_hidden(self, name: str) -> Sink:
        """Open a new hidden file at its path in the dataset, outside the commit; an abort removes it."""
        path = os.path.join(self.base, name)
        make_directory(os.path.dirname(path), self._made)
        self._hidden.append(path)
        return open_local_sink(path)

    def open_staged(self, number: str) -> Source:
        """Open a staged file for reading."""
        return FileSource(self.path(number))

    def remove(self, numbers: list[str]) -> None:
        """Remove staged files."""
        for number in numbers:
            with contextlib.suppress(OSError):
                os.unlink(self.path(number))

    # --- the dataset ------------------------------------------------------------------------------------------------

    def list_files(self) -> DirectoryListing:
        """List the files of the dataset."""
        return list_local(self.base)

    def list_committed(self) -> DirectoryListing:
        """List the files of the dataset while no commit runs; completes interrupted ones first."""
        with exclusive_lock(self.base):
            complete_interrupted(self.base)
            return self.list_files()

    def has_batch(self, batch: StreamBatch) -> bool:
        """Whether the dataset has a batch of a stream, or a later one.

        Completes interrupted commits first, and removes the stages of earlier batches.
        """
        with exclusive_lock(self.base):
            complete_interrupted(self.base)
            for name in os.listdir(self.base):
                found = STAGE_FOLDER_PATTERN.fullmatch(name)
                if found and batch.is_earlier(name[found.end(1) + 1 :]):
                    remove_stage(self.base, name)
            try:
                with open(os.path.join(self.base, batch.mark), "rb", opener=open_regular) as file:
                    return batch.is_committed(file.read(), self.base)
            except FileNotFoundError:
                return False

    def open_source(self, path: str) -> Source:
        """Open a file of the dataset for reading."""
        return FileSource(path)

    def file_version(self, entry: FileEntry) -> str | None:
        """Return a token that changes with the content of a file."""
        return file_version(entry.path)

    def dataset_path(self, path: str) -> str:
        """Return the path that listings of the dataset have for a file."""
        name = os.path.relpath(os.path.abspath(strip_file_scheme(path)), os.path.abspath(self.base))
        return f"{self.base.rstrip('/')}/{name.replace(os.sep, '/')}"

    def write_marker(self, name: str) -> None:
        """Write an empty file into the dataset, outside any commit."""
        with open(os.path.join(self.base, name), "wb"):
            pass

    # --- the end ----------------------------------------------------------------------------------------------------

    def commit(self, names: Mapping[str, str], changes_of: Callable[[DirectoryListing], CommitChanges]) -> None:
        """Move staged files into the dataset and remove replaced ones, as one atomic change.

        Parameters
        ----------
        names : mapping of str to str
            Names of the files in the stage, by their paths in the dataset.
        changes_of : callable
            Returns the other changes for a listing of the dataset, which no other commit changes meanwhile.
        """
        with exclusive_lock(self.base):
            if self._descriptor < 0:
                self._lock()  # otherwise `remove_abandoned` would remove this stage
            complete_interrupted(self.base)
            self._check_alive()
            remove_abandoned(self.base)
            remove_expired_files(self.base)
            changes = changes_of(self.list_files())
            if not names and changes == CommitChanges():
                self.clear()
                return
            over = {name: f"{number:020}" for number, name in enumerate(changes.over)}
            for name, number in over.items():
                with self.create_file(number, name) as sink:
                    sink.write(changes.over[name])
            start = len(self.base.rstrip("/")) + 1
            gone = {path[start:]: file_version(path) for path in changes.gone}
            early = {name: number for name, number in names.items() if is_key_material(name)}
            files = {name: number for name, number in names.items() if name not in early}
            self._move_key_material(early)
            sync_files(self.path(number) for number in (*files.values(), *over.values()))
            kept = replaced_folder_name(self.id, self._keep_seconds) if self._keep_seconds else ""
            record = CommitRecord(self.id, COMMITTED, self.name, files, over, gone, kept=kept, marks=changes.marks)
            commit(self.base, record)
        self._close()

    def _move_key_material(self, names: Mapping[str, str]) -> None:
        """Move key material into the dataset, so that it is there when its data files count; an abort removes it."""
        paths = {number: os.path.join(self.base, name) for name, number in names.items()}
        present = [number for number in paths if os.path.exists(self.path(number))]  # others by a commit that failed
        sync_files(map(self.path, present))
        for number, path in paths.items():
            make_directory(os.path.dirname(path), self._made)
            self._hidden.append(path)
            if number in present:
                os.replace(self.path(number), path)
        sync_folders({os.path.dirname(path) for path in paths.values()})

    def _check_alive(self) -> None:
        if not os.path.isdir(self.path("")):
            raise FileNotFoundError(errno.ENOENT, _GONE, self.path(""))

    @property
    def is_committed(self) -> bool:
        """Whether the commit has taken effect, but is not complete."""
        return os.path.exists(os.path.join(self.base, record_name(self.id)))

    def abort(self) -> None:
        """Remove everything that was written, unless the commit has taken effect."""
        if not self.is_committed:
            self.clear()
        self._close()
        remove_directories(self._made)

    def clear(self) -> None:
        """Remove the stage and its files."""
        remove_stage(self.base, self.name)
        for path in self._hidden:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._close()

    def _lock(self) -> None:
        with contextlib.suppress(OSError):  # Windows
            self._descriptor = os.open(self.path(""), _DIRECTORY)
            try_lock(self._descriptor)

    def _close(self) -> None:
        descriptor, self._descriptor = getattr(self, "_descriptor", -1), -1
        if descriptor >= 0:
            os.close(descriptor)


class _StagedFileSink(Sink):
    """A file in a stage."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(name)
        self._path = path
        self._descriptor = os.open(path, _CREATE, 0o666)

    def _write(self, view: memoryview) -> int:
        return os.write(self._descriptor, view)

    def _complete(self) -> None:
        os.close(self._descriptor)  # the commit syncs all files in parallel

    def sync(self) -> None:
        """Flush everything written so far to the disk."""
        self.flush()
        with self.abort_on_error():
            os.fsync(self._descriptor)

    def _discard(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        with contextlib.suppress(OSError):
            os.unlink(self._path)


class _SyncedStagedFileSink(_StagedFileSink):
    """A staged file that is on the disk once it is complete: another machine may commit it."""

    def _complete(self) -> None:
        os.fsync(self._descriptor)
        super()._complete()


class LocalJob:
    """A write to a local dataset by one process; `Job` for its callers.

    Parameters
    ----------
    base : str
        Directory of the dataset; created if missing.
    keep_seconds : float
        As of `LocalStage`.
    """

    is_local = True

    def __init__(self, base: str, keep_seconds: float = 0) -> None:
        self.base = base
        self.id = new_job_id()
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._is_open = True
        self._folder = LocalStage.begin(base, self.id, keep_seconds=keep_seconds)

    def list_files(self) -> DirectoryListing:
        """List the files of the dataset."""
        return self._folder.list_files()

    def open_source(self, path: str) -> Source:
        """Open a file of the dataset for reading."""
        return self._folder.open_source(path)

    def create_file(self, name: str) -> Sink:
        """Open a new file for writing; `name` is its path in the dataset."""
        with self._lock:
            number = self._names.setdefault(name, str(len(self._names)))
        sink = self._folder.create_file(number, name)
        sink.create_sibling = lambda file_name: self._folder.create_hidden(sibling_path(name, file_name))
        return sink

    def commit(self, changes_of: Callable[[DirectoryListing], CommitChanges]) -> None:
        """Commit all files; ``changes_of`` as in `LocalStage.commit`."""
        self._folder.commit(self._names, changes_of)
        self._is_open = False

    def abort(self) -> None:
        """Remove everything that was written, unless the commit has taken effect."""
        self._is_open = False
        self._folder.abort()

    def __del__(self) -> None:
        # Not in a forked child.
        if getattr(self, "_is_open", False) and hasattr(self, "_folder") and self._process == os.getpid():
            self.abort()
