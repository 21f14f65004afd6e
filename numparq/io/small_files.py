"""Small local files, read whole when they are opened: many of them one after the other into one buffer."""

from __future__ import annotations

import errno
import os
import stat
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np

from numparq.kernels.tables import SLACK
from numparq.util.fork_safe_lock import fork_safe_lock
from numparq.util.regular_file import OPEN_FLAGS

from .local_source import SETTLED_NS, BytesSource, FileIdentity
from .source import truncated_file_error

# Bytes of files in one buffer.
MAX_BUFFER_BYTES = 8 << 20


_MOST_LOADED = 128
_loaded: deque[UnloadedFileSource] = deque()


class SmallFileSource(BytesSource):
    """A local file in memory, as it was when it was opened; needs no descriptor.

    Attributes
    ----------
    buffer : numpy.ndarray
        uint8, the bytes of this file and of others, with SLACK readable bytes after each.
    start : int
        Position of the first byte of the file.
    stamp_as_read : tuple of (int, int)
        Size and modification time (ns) when it was read.
    """

    def __init__(self, path: str, name: str, buffer: np.ndarray, start: int, status: os.stat_result) -> None:
        self.num_requests, self.num_bytes = 1, status.st_size  # all of it has been read
        self.name, self.size, self.buffer, self.start = name, status.st_size, buffer, start
        self._data = buffer[start : start + status.st_size + SLACK]
        self._path, self._status = path, status
        self.stamp_as_read = status.st_size, status.st_mtime_ns

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return a view of the file's bytes, and of those after it; None if it is not that long."""
        if position < 0 or length < 0 or position + length > self.size or slack > SLACK:
            return None
        return self._data[position : position + length + slack]

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Copy bytes of the file into `out`."""
        kept = self.view(position, len(out), 0)
        if kept is None:
            raise truncated_file_error(self, position, len(out))
        out[:] = kept

    def stamp(self) -> tuple[int, int]:
        """Return size and modification time (ns) of what was opened: as it was read, if it is gone or was replaced."""
        try:
            status = os.stat(self._path)
        except OSError:  # it is gone, or its directory
            status = self._status
        if (status.st_ino, status.st_dev) != (self._status.st_ino, self._status.st_dev):
            status = self._status
        return status.st_size, status.st_mtime_ns

    def file_identity(self) -> FileIdentity | None:
        """Return the identity; None if another write might not change it, as the file has just been written."""
        status = self._status
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < SETTLED_NS:
            return None
        return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class UnloadedFileSource(SmallFileSource):
    """A small local file whose size and times are known; it is read whole by its first read.

    Of all such files, the bytes of the last `_MOST_LOADED` stay in memory.
    """

    buffer = None  # type: ignore[assignment]
    start = 0

    def __init__(self, path: str, name: str, status: os.stat_result) -> None:
        self.name, self.size = name, status.st_size
        self._path, self._status = path, status
        self.stamp_as_read = status.st_size, status.st_mtime_ns
        self._loaded: np.ndarray | None = None

    @property
    def _data(self) -> np.ndarray:  # type: ignore[override]
        """The bytes, with SLACK readable ones after them."""
        loaded = self._loaded
        if loaded is None:
            self._loaded = loaded = SmallFilesSource([self])._load(0, self.size)
            self._count(self.size)
            _loaded.append(self)
            if len(_loaded) > _MOST_LOADED:
                _loaded.popleft().close()
        return loaded

    def close(self) -> None:
        """Drop the bytes."""
        self._loaded = None


class SmallFilesSource(BytesSource):
    """Small local files, one after the other; each is read whole by its first read, and again after `release`.

    Attributes
    ----------
    starts : list of int
        Position of the first byte of each file; SLACK bytes lie between two.
    """

    def __init__(self, files: Sequence[UnloadedFileSource]) -> None:
        self.name = files[0].name
        stops = [*accumulate(file.size + SLACK for file in files)]
        self.starts, self.size = [0, *stops[:-1]], stops[-1]
        self._files = files
        self._buffer: np.ndarray | None = None
        self._memory = memoryview(b"")
        self._is_loaded = bytearray(len(files))
        self._loading = fork_safe_lock()

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return a view of the bytes of a file; None if fewer than `slack` bytes follow it."""
        if position < 0 or length < 0 or position + length + slack > self.size:
            return None
        return self._load(position, length)[position : position + length + slack]

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Copy bytes into `out`."""
        view = self.view(position, len(out), 0)
        if view is None:
            raise truncated_file_error(self, position, len(out))
        out[:] = view

    def _load(self, position: int, length: int) -> np.ndarray:
        """Read the files that have bytes of a range, unless they have been; return the bytes of all."""
        first = bisect_right(self.starts, position) - 1
        stop = max(bisect_left(self.starts, position + length), first + 1)
        buffer = self._buffer
        if buffer is None or 0 in self._is_loaded[first:stop]:
            with self._loading:
                if self._buffer is None:
                    memory = np.empty(self.size, np.uint8)
                    self._memory, self._buffer = memory.data, memory[:]
                    self._buffer.flags.writeable = False
                buffer = self._buffer
                self._read(range(first, stop))
        return buffer

    def _read(self, numbers: Iterable[int]) -> None:
        """Read the files with these numbers that have not been read."""
        memory, num_bytes, num_files = self._memory, 0, 0
        for number in numbers:
            if not self._is_loaded[number]:
                file, start = self._files[number], self.starts[number]
                if not _read_whole(file._path, file._status, memory[start : start + file.size]):
                    # `Dataset` lists its files again then, as if it were gone.
                    message = "the file was replaced or changed while it was read"
                    raise FileNotFoundError(errno.ENOENT, message, file.name)
                self._is_loaded[number] = True
                num_bytes, num_files = num_bytes + file.size, num_files + 1
        self._count(num_bytes, num_files)

    def release(self) -> None:
        """Drop the bytes."""
        with self._loading:
            self._buffer, self._memory = None, memoryview(b"")
            self._is_loaded = bytearray(len(self._files))


def _read_whole(path: str, status: os.stat_result, out: memoryview) -> bool:
    """Fill `out` with a file's bytes; return whether it is the one with that status, unchanged. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | OPEN_FLAGS)
    try:
        count = os.preadv(descriptor, [out], 0)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    identity = status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns
    return count == status.st_size and identity == (after.st_ino, after.st_dev, after.st_size, after.st_mtime_ns)


def open_small_files(paths: Sequence[str], names: Sequence[str], most: int) -> list[SmallFileSource | None]:
    """Open files of at most `most` bytes by reading them whole.

    None stands for others, and for those that cannot be read; for all where there is no `preadv`.
    """
    found: list[SmallFileSource | None] = [None] * len(paths)
    waiting: list[tuple[int, os.stat_result]] = []
    filled = 0
    if not hasattr(os, "preadv"):
        return found
    for place, path in enumerate(paths):
        try:
            status = os.stat(path)
        except OSError:
            continue
        size = status.st_size
        if 0 < size <= most and stat.S_ISREG(status.st_mode):
            if filled + size > MAX_BUFFER_BYTES:
                _fill_buffer(paths, names, waiting, found)
                waiting, filled = [], 0
            waiting.append((place, status))
            filled += size
    _fill_buffer(paths, names, waiting, found)
    return found


def _fill_buffer(
    paths: Sequence[str],
    names: Sequence[str],
    waiting: Sequence[tuple[int, os.stat_result]],
    found: list[SmallFileSource | None],
) -> None:
    """Read files, given by their place and status, into one buffer; not those that are others by now, or written to."""
    buffer = np.empty(sum([status.st_size + SLACK for _, status in waiting]), np.uint8)
    view, start = memoryview(buffer.data), 0
    for place, status in waiting:
        path, size = paths[place], status.st_size
        try:
            is_same = _read_whole(path, status, view[start : start + size])
        except OSError:
            continue
        if is_same:
            found[place] = SmallFileSource(path, names[place], buffer, start, status)
            start += size + SLACK
    buffer.flags.writeable = False
