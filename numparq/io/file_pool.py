"""Pool of open local files: closes the least recently used, reopens them when read."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from numparq.errors import InvalidFileError
from numparq.util.fork_safe_lock import fork_safe_rlock
from numparq.util.regular_file import open_regular

from .local_source import FileSource
from .replaced_files import find_replaced_file
from .source import ByteRanges, ReadLoopSource

# Open files that are not being read: systems allow a process at least 256.
MAX_OPEN_FILES = 200


class FilePool:
    """LRU of open files that share a limit; files being read stay open beyond it."""

    def __init__(self, max_open: int = MAX_OPEN_FILES) -> None:
        self._most = max_open
        self._open: dict[int, weakref.ref[PooledFileSource]] = {}  # by id(), least recently used first
        self.lock = fork_safe_rlock()

    def __len__(self) -> int:
        return len(self._open)

    def touch(self, source: PooledFileSource) -> None:
        """Mark a file as most recently used and close idle files over the limit; the caller holds the lock."""
        reference = self._open.get(id(source))
        if reference is None or reference() is not source:  # the id may be that of a file that was dropped
            reference = weakref.ref(source)
        elif next(reversed(self._open)) == id(source):
            return
        self._open.pop(id(source), None)
        self._open[id(source)] = reference
        self.evict_idle()

    def evict_idle(self) -> None:
        """Close the least recently used idle files until the limit is met; the caller holds the lock."""
        while len(self._open) > self._most and self._close_one():
            pass

    def _close_one(self) -> bool:
        """Close the least recently used idle file; return False if all are in use."""
        idle = (
            number
            for number, reference in self._open.items()
            if (source := reference()) is None or not source.is_in_use
        )
        number = next(idle, None)
        if number is None:
            return False
        source = self._open[number]()
        if source is None:
            del self._open[number]
        else:
            source.release()
        return True

    def discard(self, source: PooledFileSource) -> None:
        """Remove a closed file; the caller holds the lock."""
        self._open.pop(id(source), None)


# Shared by all datasets of a process.
_POOL = FilePool()


class PooledFileSource(ReadLoopSource):
    """A local file that its pool may close; a read reopens it and raises InvalidFileError if it was changed.

    `final_path` is the file's name after a commit renames it. A later commit may keep the file for a time. OSError
    for a pipe, which cannot be reopened.
    """

    def __init__(self, path: str, final_path: str | None = None, pool: FilePool = _POOL) -> None:
        self._pool = pool
        self._paths = (path, final_path or path)
        self._users = 0
        self._closed = False
        self._file: FileSource | None = self._open()
        self.name = final_path or path
        self.size = self._file.size
        self._identity = self._file.identity, self._file.stamp()
        with pool.lock:
            pool.touch(self)

    @property
    def is_in_use(self) -> bool:
        """Whether a thread is reading it."""
        return self._users > 0

    def stamp(self) -> tuple[int, int]:
        """Return size and modification time (ns)."""
        with self._opened() as file:
            return file.stamp()

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges one by one; the file stays open in between."""
        with self._opened():
            return super().read_ranges(ranges)

    def _read_some(self, position: int, out: memoryview) -> int:
        with self._opened() as file:
            return file._read_some(position, out)

    @contextmanager
    def _opened(self) -> Iterator[FileSource]:
        """Yield the open file, reopened if needed, which the pool does not close meanwhile."""
        with self._pool.lock:
            if self._file is None:
                self._file = self._reopen()
            file = self._file
            self._users += 1
            self._pool.touch(self)
        try:
            yield file
        finally:
            with self._pool.lock:
                self._users -= 1
                if self._closed:
                    self.release()
                self._pool.evict_idle()  # more than the limit may have been in use at once

    def _open(self) -> FileSource:
        for path in self._paths:
            with suppress(FileNotFoundError):
                return FileSource(path, open_regular)
        return FileSource(find_replaced_file(self._paths[1]) or self._paths[1], open_regular)

    def _reopen(self) -> FileSource:
        if self._closed:
            raise ValueError(f"{self.name} is closed: nothing more can be read")
        file = self._open()
        if (file.identity, file.stamp()) == self._identity:
            return file
        file.close()
        raise InvalidFileError("the file was replaced or changed since it was opened", file=self.name)

    def release(self) -> None:
        """Close the file until the next read, unless it is being read."""
        with self._pool.lock:
            if self._file is not None and not self._users:
                self._file.close()
                self._file = None
                self._pool.discard(self)

    def close(self) -> None:
        """Close the file for good."""
        self._closed = True
        self.release()
