"""Stage of a remote write: pending files that count once its record says so."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.io.open import open_filesystem_sink
from numparq.io.sink import Sink
from numparq.io.source import Source

from .record import COMMITTED, PENDING, CommitChanges, CommitRecord, new_job_id, record_name, stage_folder_name
from .remote_store import RemoteJobBase, run_in_parallel
from .stream_batch import StreamBatch

# Uploads are completed at the end, all together; of so many bytes in all, or so many files, some are before.
_MOST_HELD_BYTES = 1 << 28
_MOST_HELD_FILES = 256


class RemoteJob(RemoteJobBase):
    """A write that is under way; as `numparq.dataset.commit.local_stage.LocalJob`.

    Parameters
    ----------
    filesystem, base, name_of, alone
        As of `RemoteJobBase`.
    job : str, optional
        Its name, where it has one already.
    """

    def __init__(
        self, filesystem: Any, base: str, name_of: Callable[[str], str], alone: bool, job: str | None = None
    ) -> None:
        super().__init__(filesystem, base, name_of, alone, job or new_job_id())
        self._record = self._folder.path(record_name(self.id))
        self._names: list[str] = []  # of files that are opened
        self._held: list[tuple[Sink, int]] = []  # files that are written, and not completed
        self._lock = threading.Lock()
        self._begun = self._in_force = False

    def create_file(self, name: str) -> Sink:
        """Open a file of the dataset for writing."""
        path = self._to_come(name)
        return _HeldSink(self._create(path, lambda: self._sink(path)), self._hold)

    def adopt(self, names: Mapping[str, str]) -> None:
        """Move files written by others into the dataset; they do not count before the commit.

        Parameters
        ----------
        names : mapping of str to str
            By their places in the dataset, the paths where they are.
        """
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
        if not self._begun:  # before anything can be seen
            self._create(self._record, lambda: self._put_record(CommitRecord(self.id, PENDING, alone=self._alone)))
            self._begun = True

    def _create(self, path: str, make: Callable[[], Any]) -> Any:
        """Create a file, and its folder if that is missing."""
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
        """Keep a file that is written until the end, or complete some."""
        with self._lock:
            self._held.append((sink, sink.position))
            early: list[Sink] = []
            while sum(size for _, size in self._held) > _MOST_HELD_BYTES or len(self._held) > _MOST_HELD_FILES:
                early.append(self._held.pop(0)[0])
        for one in early:
            one.commit()

    def commit(self, changes_of: Callable[[DirectoryListing], CommitChanges]) -> None:
        """Replace the old files by the new ones for all readers, by one request.

        Parameters
        ----------
        changes_of : callable
            Says, of what the dataset has, what is to be changed.

        Raises
        ------
        BlockingIOError
            When another write is under way, and only one of the two may be.
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
        """Remove everything that was written, unless it is in force already."""
        for sink, _ in self._held:
            sink.abort()
        if self._begun and not self._in_force:
            self._folder.remove([*self._names, self._record])


class _HeldSink(Sink):
    """A file that is complete when it is committed, but not there before its job lets it."""

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
    """A hidden folder; as `numparq.dataset.commit.local_stage.LocalStage`, and it can be pickled, too.

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
        """Return the path of a file before the commit, by its number in the folder."""
        return self._name_of(f"{self._stage}/{number}")

    def create_file(self, number: str, name: str, synced: bool = False) -> Sink:
        """Open a new file for writing."""
        path, name = f"{self._stage}/{number}", self._name_of(self._folder.path(name))
        try:
            return open_filesystem_sink(self._folder.filesystem, path, name)
        except FileNotFoundError:
            self._folder.make_folder_of(path)
            return open_filesystem_sink(self._folder.filesystem, path, name)

    def open_staged(self, number: str) -> Source:
        """Open a file that does not count yet."""
        return self.open_source(f"{self._stage}/{number}")

    def remove(self, numbers: list[str]) -> None:
        """Remove files that do not come."""
        self._folder.remove(f"{self._stage}/{number}" for number in numbers)

    # --- the dataset ------------------------------------------------------------------------------------------------

    list_committed = RemoteJobBase.list_files

    def has_batch(self, batch: StreamBatch) -> bool:
        """Whether the dataset has a batch of a stream, or a later one.

        Interrupted commits are completed first, and what earlier batches have left is removed, as is what a dead
        attempt of this one has moved to its place.
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
        """Return what changes with the content of a file, as far as the file system reports it."""
        return f"{entry.size}-{entry.version}"

    def dataset_path(self, path: str) -> str:
        """Return the path of a file as listings of the dataset have it."""
        strip = getattr(self._folder.filesystem, "_strip_protocol", str)
        return strip(path)

    def write_marker(self, name: str) -> None:
        """Write an empty file into the dataset, outside any commit."""
        self._folder.put(self._folder.path(name), b"")

    # --- the end ----------------------------------------------------------------------------------------------------

    def commit(self, names: Mapping[str, str], changes_of: Callable[[DirectoryListing], CommitChanges]) -> None:
        """Move files into the dataset and replace old ones for all readers, as one change."""
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
        """Whether the commit holds, and is not yet complete."""
        return any(record.state == COMMITTED for record in self._records().values())

    def abort(self) -> None:
        """Remove everything that was written, unless it is in force already."""
        for path, record in self._records().items():
            if record.state == COMMITTED:
                return
            self._folder.roll_back(path, record)  # a process that was committing has died
        self._folder.clear(self._stage)

    def _records(self) -> dict[str, CommitRecord]:
        return {path: record for path, record in self._folder.records().items() if record.job == self.id}
