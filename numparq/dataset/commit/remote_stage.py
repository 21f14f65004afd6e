"""Stage of a remote write: pending files that count once its record says so."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.io.open import open_filesystem_sink
from numparq.io.sibling_bytes import sibling_path
from numparq.io.sink import Sink
from numparq.io.source import Source

from .record import COMMITTED, PENDING, CommitChanges, CommitRecord, new_job_id, record_name, stage_folder_name
from .remote_store import RemoteJobBase, run_in_parallel
from .stream_batch import StreamBatch

# Limits of uploads that are completed together by the commit; beyond them, the oldest are completed before.
_MOST_HELD_BYTES = 1 << 28
_MOST_HELD_FILES = 256


class RemoteJob(RemoteJobBase):
    """A write to a remote dataset by one process; `Job` for its callers.

    Files are written to their final paths. They do not count while the job's record is pending.

    Parameters
    ----------
    filesystem, base, name_of, alone
        As of `RemoteJobBase`.
    job : str, optional
        Id of the write; a new one by default.
    """

    def __init__(
        self, filesystem: Any, base: str, name_of: Callable[[str], str], alone: bool, job: str | None = None
    ) -> None:
        super().__init__(filesystem, base, name_of, alone, job or new_job_id())
        self._record = self._folder.path(record_name(self.id))
        self._names: list[str] = []  # paths of opened files
        self._held: list[tuple[Sink, int]] = []  # written files that are not completed
        self._lock = threading.Lock()
        self._begun = self._in_force = False

    def create_file(self, name: str) -> Sink:
        """Open a new file for writing; `name` is its path in the dataset."""
        path = self._to_come(name)
        sink = _HeldSink(self._create(path, lambda: self._sink(path)), self._hold)
        sink.create_sibling = lambda file_name: self.create_file(sibling_path(name, file_name))
        return sink

    def adopt(self, names: Mapping[str, str]) -> None:
        """Move staged files, given by path in the dataset, to that path; they do not count before the commit."""
        self._begin()
        places = {self._to_come(name): path for name, path in names.items()}
        run_in_parallel(
            [partial(self._create, place, partial(self._folder.move, path, place)) for place, path in places.items()]
        )

    def _to_come(self, name: str) -> str:
        path = self._folder.path(name)
        with self._lock:
            self._begin()
            self._names.append(path)
        return path

    def _begin(self) -> None:
        if not self._begun:  # before any file is visible
            self._create(self._record, lambda: self._put_record(CommitRecord(self.id, PENDING, alone=self._alone)))
            self._begun = True

    def _create(self, path: str, make: Callable[[], Any]) -> Any:
        """Create a file, and its directory if missing."""
        try:
            return make()
        except FileNotFoundError:
            self._folder.make_folder_of(path)
            return make()

    def _sink(self, path: str) -> Sink:
        return open_filesystem_sink(self._folder.filesystem, path, self._name_of(path))

    def _put_record(self, record: CommitRecord) -> None:
        self._folder.put(self._record, record.encode())

    def _hold(self, sink: Sink) -> None:
        """Hold a written file until the commit; complete the oldest ones beyond the limits."""
        with self._lock:
            self._held.append((sink, sink.position))
            early: list[Sink] = []
            while sum(size for _, size in self._held) > _MOST_HELD_BYTES or len(self._held) > _MOST_HELD_FILES:
                early.append(self._held.pop(0)[0])
        for one in early:
            one.commit()

    def commit(self, changes_of: Callable[[DirectoryListing], CommitChanges]) -> None:
        """Add the new files and remove replaced ones for all readers, by one request.

        Parameters
        ----------
        changes_of : callable
            Returns the other changes for a listing of the dataset.

        Raises
        ------
        BlockingIOError
            If another write is in progress, and one of the two must be alone.
        """
        self._finish_others()
        held, self._held = self._held, []
        try:
            run_in_parallel([partial(sink.commit) for sink, _ in held])
        except BaseException:
            self._held = held
            raise
        found = self.list_files()
        changes = changes_of(found)
        versions = {entry.path: entry.version for entry in [*found.files, *found.hidden]}
        start = len(self._folder.path(""))
        gone = {path[start:]: versions.get(path) for path in changes.gone}
        gone |= dict.fromkeys(changes.over)
        if not (self._begun or gone or changes.marks):
            return
        if gone or changes.marks:
            self._put_record(CommitRecord(self.id, COMMITTED, gone=gone, alone=self._alone, marks=changes.marks))
            self._in_force = True
            self._folder.remove(changes.gone)
            self._folder.put_marks(changes.marks)
            for place, data in changes.over.items():
                self._folder.put(self._folder.path(place), data)
        self._folder.remove([self._record])

    def _finish_others(self) -> None:
        for path, record in self._folder.records().items():
            if record.job == self.id:
                continue
            if record.state == COMMITTED:
                self._folder.finish_commit(path, record)
            elif self._alone and record.alone:
                raise BlockingIOError(
                    errno.EAGAIN,
                    f"write {record.job} is running, and replaces files or expects none; if it is dead, "
                    "numparq.dataset.recover(path, abandoned=True) removes its files",
                    self._name_of(self.base),
                )

    def abort(self) -> None:
        """Remove everything that was written, unless the commit has taken effect."""
        for sink, _ in self._held:
            sink.abort()
        if self._begun and not self._in_force:
            self._folder.remove([*self._names, self._record])


class _HeldSink(Sink):
    """A file whose upload its job completes, after the file's own commit."""

    def __init__(self, sink: Sink, hold: Callable[[Sink], None]) -> None:
        super().__init__(sink.name)
        self._sink = sink
        self._hold = hold

    def _write(self, view: memoryview) -> int:
        return self._sink.write(view)

    def _complete(self) -> None:
        self._hold(self._sink)

    def _discard(self) -> None:
        self._sink.abort()


class RemoteStage(RemoteJobBase):
    """Stage of one write on a remote file system: a hidden directory. It can be pickled.

    Parameters
    ----------
    filesystem, base, name_of, alone, job
        As of `RemoteJobBase`.
    """

    def __init__(self, filesystem: Any, base: str, name_of: Callable[[str], str], alone: bool, job: str) -> None:
        super().__init__(filesystem, base, name_of, alone, job)
        self._stage = self._folder.path(stage_folder_name(job, outlives=True))

    # --- files ------------------------------------------------------------------------------------------------------

    def path(self, number: str) -> str:
        """Return the path or URL of a staged file, by its name in the stage."""
        return self._name_of(f"{self._stage}/{number}")

    def create_file(self, number: str, name: str, synced: bool = False) -> Sink:
        """Open a new file for writing, as `LocalStage.create_file`; an upload needs no sync."""
        path, name = f"{self._stage}/{number}", self._name_of(self._folder.path(name))
        try:
            return open_filesystem_sink(self._folder.filesystem, path, name)
        except FileNotFoundError:
            self._folder.make_folder_of(path)
            return open_filesystem_sink(self._folder.filesystem, path, name)

    def open_staged(self, number: str) -> Source:
        """Open a staged file for reading."""
        return self.open_source(f"{self._stage}/{number}")

    def remove(self, numbers: list[str]) -> None:
        """Remove staged files."""
        self._folder.remove(f"{self._stage}/{number}" for number in numbers)

    # --- the dataset ------------------------------------------------------------------------------------------------

    list_committed = RemoteJobBase.list_files

    def has_batch(self, batch: StreamBatch) -> bool:
        """Whether the dataset has a batch of a stream, or a later one.

        Completes interrupted commits first. Removes the stages of earlier batches, and the files that a dead attempt of
        this one has moved.
        """
        for path, record in self._folder.records().items():
            if record.state == COMMITTED:
                self._folder.finish_commit(path, record)
            elif record.job == self.id or batch.is_earlier(record.job):
                self._folder.roll_back(path, record)
        self._folder.clear_stages(batch.is_earlier)
        try:
            return batch.is_committed(self._folder.get(self._folder.path(batch.mark)), self.base)
        except FileNotFoundError:
            return False

    def file_version(self, entry: FileEntry) -> str | None:
        """Return a token that changes with the content of a file, as far as the file system reports it."""
        return f"{entry.size}-{entry.version}"

    def dataset_path(self, path: str) -> str:
        """Return the path that listings of the dataset have for a file."""
        strip = getattr(self._folder.filesystem, "_strip_protocol", str)
        return strip(path)

    def write_marker(self, name: str) -> None:
        """Write an empty file into the dataset, outside any commit."""
        self._folder.put(self._folder.path(name), b"")

    # --- the end ----------------------------------------------------------------------------------------------------

    def commit(self, names: Mapping[str, str], changes_of: Callable[[DirectoryListing], CommitChanges]) -> None:
        """Move staged files into the dataset and remove replaced ones, as one atomic change for readers."""
        job = RemoteJob(self._folder.filesystem, self.base, self._name_of, self._alone, self.id)
        try:
            job.adopt({place: f"{self._stage}/{number}" for place, number in names.items()})
            job.commit(changes_of)
        except BaseException:
            job.abort()
            raise
        self._folder.clear(self._stage)

    @property
    def is_committed(self) -> bool:
        """Whether the commit has taken effect, but is not complete."""
        return any(record.state == COMMITTED for record in self._records().values())

    def abort(self) -> None:
        """Remove everything that was written, unless the commit has taken effect."""
        for path, record in self._records().items():
            if record.state == COMMITTED:
                return
            self._folder.roll_back(path, record)  # of a process that died during its commit
        self._folder.clear(self._stage)

    def _records(self) -> dict[str, CommitRecord]:
        return {path: record for path, record in self._folder.records().items() if record.job == self.id}
