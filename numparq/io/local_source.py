"""Sources of local files, bytes in memory and file objects."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import numpy as np

from numparq.kernels.tables import SLACK

from .pipe import await_writer, open_for_reading
from .source import (
    ByteRanges,
    CountingSource,
    ReadLoopSource,
    allocate_with_slack,
    check_byte_ranges,
    truncated_file_error,
)

# Time stamps have steps of up to 2 s (FAT): a file that is younger may be written to again without a new one.
SETTLED_NS = 2 * 10**9


class FileIdentity(NamedTuple):
    """Identity of a local file: differs if the file is replaced, or written to."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class BytesSource(CountingSource):
    """Bytes in memory (``bytes``, ``bytearray``, ``memoryview``), not copied if they are contiguous."""

    is_remote = False

    def __init__(self, data: bytes | bytearray | memoryview | np.ndarray, name: str = "<bytes>") -> None:
        view = memoryview(data)  # type: ignore[arg-type]
        self._data = np.frombuffer(view if view.c_contiguous else view.tobytes(), np.uint8)
        self.name = name
        self.size = len(self._data)

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return a view of the data; None if fewer than `slack` bytes follow it."""
        if position < 0 or length < 0 or position + length + slack > self.size:
            return None
        self._count(length)
        return self._data[position : position + length + slack]

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Copy bytes of the data into `out`."""
        if position < 0 or position + len(out) > self.size:
            raise truncated_file_error(self, position, len(out))
        self._count(len(out))
        out[:] = self._data[position : position + len(out)]

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Return views of the data; copies where fewer than SLACK bytes follow."""
        return [self._piece(start, stop - start) for start, stop in check_byte_ranges(ranges, self)]

    def _piece(self, position: int, length: int) -> np.ndarray:
        found = self.view(position, length, SLACK)
        if found is None:
            found = allocate_with_slack(length)
            self.read_into(position, found[:length])
        return found

    def close(self) -> None:
        """Do nothing: the caller owns the bytes."""


class FileSource(ReadLoopSource):
    """A local file, read by `preadv` where the system has it, else under a lock; `identity` is its device and inode.

    It is not mapped into memory: a mapped file that is truncated kills the process. A pipe, whose end has the footer,
    is copied to a temporary file first. `stamp_as_read` is the stamp when it was opened.
    """

    def __init__(self, path: str | os.PathLike[str], opener: Callable[[str, int], int] | None = None) -> None:
        self.name = os.fspath(path)
        self._file = open(path, "rb", buffering=0, opener=opener or open_for_reading)  # noqa: SIM115  (closed by `close`)
        status = os.fstat(self._file.fileno())
        if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
            self._file = _copy_pipe(self._file, self.name)
            status = os.fstat(self._file.fileno())
        self.size = status.st_size
        self.stamp_as_read = status.st_size, status.st_mtime_ns
        self.identity = status.st_dev, status.st_ino
        self._lock = threading.Lock()

    def stamp(self) -> tuple[int, int]:
        """Return size and modification time (ns), which change when the file is written to."""
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def file_identity(self) -> FileIdentity | None:
        """Return the identity; None if another write might not change it, as the file has just been written."""
        status = os.fstat(self._file.fileno())
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < SETTLED_NS:
            return None
        return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def _read_some(self, position: int, out: memoryview) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [out], position)
        with self._lock:
            self._file.seek(position)
            return self._file.readinto(out) or 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _copy_pipe(pipe: io.FileIO, name: str) -> io.FileIO:
    """Copy a pipe to a temporary file, which disappears when it is closed, and close the pipe."""
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (closed by `FileSource.close`)
    try:
        with pipe:
            file.write(await_writer(pipe.fileno(), name))
            shutil.copyfileobj(pipe, file, 1 << 20)
    except BaseException:
        file.close()
        raise
    return file


class FileObjectSource(ReadLoopSource):
    """A seekable binary file object, read under a lock."""

    def __init__(self, file: BinaryIO) -> None:
        if isinstance(file, io.TextIOBase):
            raise TypeError("the file object is in text mode; open it in binary mode, as in open(path, 'rb')")
        self._file = file
        self._lock = threading.Lock()
        name = getattr(file, "name", None)
        self.name = name if isinstance(name, str) else f"<{type(file).__name__}>"
        self._start = file.tell()
        file.seek(0, os.SEEK_END)
        self.size = file.tell()

    def _read_some(self, position: int, out: memoryview) -> int:
        with self._lock:
            self._file.seek(position)
            if hasattr(self._file, "readinto"):
                return self._file.readinto(out) or 0
            data = self._file.read(len(out))
            out[: len(data)] = data
            return len(data)

    def close(self) -> None:
        """Seek back to the position at which it was opened; the caller closes the file object."""
        if not getattr(self._file, "closed", False):
            self._file.seek(self._start)
