"""Small local files, read whole when they are opened: many of them one after the other into one buffer."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from numparq.kernels.tables import SLACK
from numparq.util.regular_file import OPEN_FLAGS

from .local_source import SETTLED_NS, BytesSource, FileIdentity
from .source import truncated_file_error

__all__ = ["SmallFileSource", "open_small_files"]

# Bytes of files in one buffer.
MAX_BUFFER_BYTES = 8 << 20


class SmallFileSource(BytesSource):
    """A local file in memory, as it was when it was opened; needs no descriptor.

    Attributes
    ----------
    buffer : numpy.ndarray
        uint8, the bytes of this file and of others, with SLACK readable bytes after each.
    start : int
        Position of the first byte of the file.
    """

    def __init__(self, name: str, buffer: np.ndarray, start: int, status: os.stat_result) -> None:
        self.num_requests, self.num_bytes = 1, status.st_size  # all of it has been read
        self.name, self.size, self.buffer, self.start = name, status.st_size, buffer, start
        self._data = buffer[start : start + status.st_size + SLACK]
        self._status = status

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
        """Return size and modification time (ns) when it was read; later changes do not matter."""
        return self.size, self._status.st_mtime_ns

    def file_identity(self) -> FileIdentity | None:
        """Return the identity; None if another write might not change it, as the file has just been written."""
        status = self._status
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < SETTLED_NS:
            return None
        return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def open_small_files(paths: Sequence[tuple[str, str]], most: int) -> list[SmallFileSource | None]:
    """Open files of at most `most` bytes, given by path and name, by reading them whole.

    None stands for others, and for those that cannot be read; for all where there is no `preadv`.
    """
    found: list[SmallFileSource | None] = [None] * len(paths)
    waiting: list[tuple[int, int]] = []
    filled = 0
    if not hasattr(os, "preadv"):
        return found
    for place, (path, _) in enumerate(paths):
        with suppress(OSError):
            status = os.stat(path)
            size = status.st_size
            if stat.S_ISREG(status.st_mode) and 0 < size <= most:
                if filled + size > MAX_BUFFER_BYTES:
                    _fill_buffer(paths, waiting, found)
                    waiting, filled = [], 0
                waiting.append((place, size))
                filled += size
    _fill_buffer(paths, waiting, found)
    return found


def _fill_buffer(
    paths: Sequence[tuple[str, str]], waiting: Sequence[tuple[int, int]], found: list[SmallFileSource | None]
) -> None:
    """Read files of known sizes, given by their place, into one buffer."""
    buffer = np.empty(sum(size + SLACK for _, size in waiting), np.uint8)
    view, start = memoryview(buffer.data), 0
    for place, size in waiting:
        path, name = paths[place]
        status = None
        with suppress(OSError):
            status = _read_whole(path, view[start : start + size])
        if status is not None:
            found[place] = SmallFileSource(name, buffer, start, status)
            start += size + SLACK
    buffer.flags.writeable = False


def _read_whole(path: str, out: memoryview) -> os.stat_result | None:
    """Read a file of the size of `out`; return its status, None if it is another file by now or was written to."""
    descriptor = os.open(path, os.O_RDONLY | OPEN_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(out):
            return None
        count = os.preadv(descriptor, [out], 0)
        after = os.fstat(descriptor)
        same = (after.st_size, after.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
        return status if same and count == len(out) else None
    finally:
        os.close(descriptor)
