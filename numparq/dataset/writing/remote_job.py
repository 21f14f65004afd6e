"""A write to an object store, or to another file system that is not local."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...io.remote_sink import open_on
from ...io.sink import Sink
from ..commit_record import COMMITTED, PENDING, Record, record_name
from ..entries import Found
from .changes import Changes
from .paths import job_id
from .remote_commit import RemoteWrite, side_by_side

__all__ = ["RemoteJob"]

# Uploads are completed at the end, all together; of so many bytes in all, or so many files, some are before.
_MOST_HELD_BYTES = 1 << 28
_MOST_HELD_FILES = 256


class RemoteJob(RemoteWrite):
    """A write that is under way; as `numparq.dataset.writing.local_job.LocalJob`.

    Parameters
    ----------
    filesystem, base, name_of, alone
        As of `RemoteWrite`.
    job : str, optional
        Its name, where it has one already.
    """

    def __init__(
        self, filesystem: Any, base: str, name_of: Callable[[str], str], alone: bool, job: str | None = None
    ) -> None:
        super().__init__(filesystem, base, name_of, alone, job or job_id())
        self._record = self._folder.path(record_name(self.id))
        self._names: list[str] = []  # of files that are opened
        self._held: list[tuple[Sink, int]] = []  # files that are written, and not completed
        self._lock = threading.Lock()
        self._begun = self._in_force = False

    def open(self, name: str) -> Sink:
        """Open a file of the dataset for writing."""
        path = self._to_come(name)
        return _HeldSink(self._made(path, lambda: self._sink(path)), self._hold)

    def adopt(self, names: Mapping[str, str]) -> None:
        """Give files that were written elsewhere their places; they do not count before the commit.

        Parameters
        ----------
        names : mapping of str to str
            By their places in the dataset, the paths where they are.
        """
        self._begin()
        places = {self._to_come(name): path for name, path in names.items()}
        side_by_side([partial(self._made, place, partial(self._folder.move, path, place))
                      for place, path in places.items()])  # fmt: skip

    def _to_come(self, name: str) -> str:
        path = self._folder.path(name)
        with self._lock:
            self._begin()
            self._names.append(path)
        return path

    def _begin(self) -> None:
        if not self._begun:  # before anything can be seen
            self._made(self._record, lambda: self._put_record(PENDING))
            self._begun = True

    def _made(self, path: str, make: Callable[[], Any]) -> Any:
        """Make a file; where that takes a folder, that too."""
        try:
            return make()
        except FileNotFoundError:
            self._folder.make_folder_of(path)
            return make()

    def _sink(self, path: str) -> Sink:
        return open_on(self._folder.filesystem, path, self._name_of(path))

    def _put_record(self, state: str, gone: dict[str, str | None] | None = None) -> None:
        self._folder.put(self._record, Record(self.id, state, gone=gone or {}, alone=self._alone).encode())

    def _hold(self, sink: Sink) -> None:
        """Keep a file that is written until the end, or complete some."""
        with self._lock:
            self._held.append((sink, sink.position))
            early: list[Sink] = []
            while sum(size for _, size in self._held) > _MOST_HELD_BYTES or len(self._held) > _MOST_HELD_FILES:
                early.append(self._held.pop(0)[0])
        for one in early:
            one.commit()

    def commit(self, changes_of: Callable[[Found], Changes]) -> None:
        """Let all files count, and those that they replace not any more, by one request.

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
            side_by_side([partial(sink.commit) for sink, _ in held])
        except BaseException:
            self._held = held
            raise
        found = self.found()
        changes = changes_of(found)
        versions = {entry.path: entry.version for entry in [*found.files, *found.hidden]}
        start = len(self._folder.path(""))
        gone = {path[start:]: versions.get(path) for path in changes.gone}
        gone |= dict.fromkeys(changes.over)
        if not self._begun:
            return
        if gone:
            self._put_record(COMMITTED, gone)
            self._in_force = True
            self._folder.remove(changes.gone)
            for place, data in changes.over.items():
                self._folder.put(self._folder.path(place), data)
        self._folder.remove([self._record])

    def _finish_others(self) -> None:
        for path, record in self._folder.records().items():
            if record.job == self.id:
                continue
            if record.state == COMMITTED:
                self._folder.complete(path, record)
            elif self._alone and record.alone:
                raise BlockingIOError(
                    errno.EAGAIN,
                    f"another write, {record.job}, replaces files there, or expects none; if it is dead, "
                    "numparq.dataset.commits.recover(path, abandoned=True) removes what it has left",
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

    def _put(self, view: memoryview) -> int:
        return self._sink.write(view)

    def _complete(self) -> None:
        self._hold(self._sink)

    def _discard(self) -> None:
        self._sink.abort()
