"""Pool of open local files: closes the least recently used, reopens them when read."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from numparq.errors import InvalidFileError

from .local_source import FileSource
from .source import ByteRanges, ReadLoopSource

__all__ = ["MAX_OPEN_FILES", "FilePool", "PooledFileSource"]

# Files that are open at once, but for those that are being read: systems allow a process 256 at the least.
MAX_OPEN_FILES = 200


class FilePool:
    """The files that are open, of those that share a limit.

    Parameters
    ----------
    most_open : int
        How many stay open; those that are being read do so in any case.
    """

    def __init__(self, most_open: int = MAX_OPEN_FILES) -> None:
        self._most = most_open
        self._open: dict[int, weakref.ref[PooledFileSource]] = {}  # by identity, those used last behind
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._open)

    def used(self, source: PooledFileSource) -> None:
        """Take note of a file that is open and in use, and close some that are not; to be called with the lock."""
        self._open.pop(id(source), None)
        self._open[id(source)] = weakref.ref(source)
        self.shrink()

    def shrink(self) -> None:
        """Close files while too many are open, unless they are in use; to be called with the lock."""
        while len(self._open) > self._most and self._close_one():
            pass

    def _close_one(self) -> bool:
        """Close the file that was not used for the longest time; False where all are in use."""
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

    def forget(self, source: PooledFileSource) -> None:
        """Take note that a file is closed; to be called with the lock."""
        self._open.pop(id(source), None)


# All datasets of a process share one.
_POOL = FilePool()


class PooledFileSource(ReadLoopSource):
    """A local file that is closed when too many are open, and opened again when it is read.

    Parameters
    ----------
    path : str
        Its name.
    final_path : str, optional
        What it is called once it has been moved to its place, if it waits for that.
    pool : FilePool, optional
        Which files share a limit; by default, all.

    Raises
    ------
    InvalidFileError
        By whatever reads, when another file has taken its place since, or it was changed.
    OSError
        As `open` does; by whatever reads, too.
    """

    def __init__(self, path: str, final_path: str | None = None, pool: FilePool = _POOL) -> None:
        super().__init__()
        self._pool = pool
        self._paths = (path, final_path or path)
        self._users = 0
        self._closed = False
        self._file: FileSource | None = self._open()
        self.name = final_path or path
        self.size = self._file.size
        self._identity = self._file.identity, self._file.stamp()
        with pool.lock:
            pool.used(self)

    @property
    def is_open(self) -> bool:
        """Whether it has a descriptor."""
        return self._file is not None

    @property
    def is_in_use(self) -> bool:
        """Whether it is being read."""
        return self._users > 0

    def stamp(self) -> tuple[int, int]:
        """Give size and time of the last change, as `FileSource.stamp` does."""
        with self._opened() as file:
            return file.stamp()

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read one after the other; the file stays open in between."""
        with self._opened():
            return super().read_ranges(ranges)

    def _read_some(self, position: int, out: memoryview) -> int:
        with self._opened() as file:
            return file._read_some(position, out)

    @contextmanager
    def _opened(self) -> Iterator[FileSource]:
        """Give the open file, which stays open as long as it is used."""
        with self._pool.lock:
            if self._file is None:
                self._file = self._reopen()
            file = self._file
            self._users += 1
            self._pool.used(self)
        try:
            yield file
        finally:
            with self._pool.lock:
                self._users -= 1
                if self._closed:
                    self.release()
                self._pool.shrink()  # files that were all in use at once may be too many

    def _open(self) -> FileSource:
        try:
            return FileSource(self._paths[0])
        except FileNotFoundError:
            return FileSource(self._paths[1])

    def _reopen(self) -> FileSource:
        if self._closed:
            raise ValueError(f"{self.name} is closed: nothing more can be read")
        file = self._open()
        if (file.identity, file.stamp()) == self._identity:
            return file
        file.close()
        raise InvalidFileError("the file was replaced or changed since it was opened", file=self.name)

    def release(self) -> None:
        """Close the file, unless it is being read, until it is read again."""
        with self._pool.lock:
            if self._file is not None and not self._users:
                self._file.close()
                self._file = None
                self._pool.forget(self)

    def close(self) -> None:
        """Close the file for good."""
        self._closed = True
        self.release()
