"""Where files of a write of several processes lie on a file system that is not local, until its commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...io.remote_sink import open_on
from ...io.sink import Sink
from ...io.source import Source
from ..commit_record import COMMITTED, Record
from ..entries import Entry, Found
from .changes import Changes
from .local_commit import folder_of_job
from .remote_commit import RemoteWrite
from .remote_job import RemoteJob

__all__ = ["RemoteStage"]


class RemoteStage(RemoteWrite):
    """A hidden folder; as `numparq.dataset.writing.job_folder.JobFolder`, and it can be pickled, too.

    Parameters
    ----------
    filesystem, base, name_of, alone, job
        As of `RemoteWrite`.
    """

    def __init__(self, filesystem: Any, base: str, name_of: Callable[[str], str], alone: bool, job: str) -> None:
        super().__init__(filesystem, base, name_of, alone, job)
        self._stage = self._folder.path(folder_of_job(job, outlives=True))

    # --- files ------------------------------------------------------------------------------------------------------

    def path(self, number: str) -> str:
        """Say where a file lies before the commit, by the number that it has in the folder."""
        return self._name_of(f"{self._stage}/{number}")

    def create(self, number: str, name: str, synced: bool = False) -> Sink:
        """Open a new file for writing."""
        path, name = f"{self._stage}/{number}", self._name_of(self._folder.path(name))
        try:
            return open_on(self._folder.filesystem, path, name)
        except FileNotFoundError:
            self._folder.make_folder_of(path)
            return open_on(self._folder.filesystem, path, name)

    def staged_source(self, number: str) -> Source:
        """Open a file that does not count yet."""
        return self.source(f"{self._stage}/{number}")

    def remove(self, numbers: list[str]) -> None:
        """Remove files that do not come."""
        self._folder.remove(f"{self._stage}/{number}" for number in numbers)

    # --- the dataset ------------------------------------------------------------------------------------------------

    settled = RemoteWrite.found

    def version(self, entry: Entry) -> str | None:
        """Say what changes along with a file, as far as the file system tells."""
        return f"{entry.size}-{entry.version}"

    def place(self, path: str) -> str:
        """Give the path of a file as listings of the dataset have it."""
        strip = getattr(self._folder.filesystem, "_strip_protocol", str)
        return strip(path)

    # --- the end ----------------------------------------------------------------------------------------------------

    def commit(self, names: Mapping[str, str], changes_of: Callable[[Found], Changes]) -> None:
        """Give files their places, and let those that they replace not count any more, as one."""
        job = RemoteJob(self._folder.filesystem, self.base, self._name_of, self._alone, self.id)
        try:
            job.adopt({place: f"{self._stage}/{number}" for place, number in names.items()})
            job.commit(changes_of)
        except BaseException:
            job.abort()
            raise
        self._folder.clear(self._stage)

    @property
    def is_in_force(self) -> bool:
        """Whether the commit holds, and is not yet complete."""
        return any(record.state == COMMITTED for record in self._records().values())

    def abort(self) -> None:
        """Remove everything that was written, unless it is in force already."""
        for path, record in self._records().items():
            if record.state == COMMITTED:
                return
            self._folder.take_back(path, record)  # a process that was committing has died
        self._folder.clear(self._stage)

    def _records(self) -> dict[str, Record]:
        return {path: record for path, record in self._folder.records().items() if record.job == self.id}
