"""Sources: bytes at positions, from a local file, from bytes in memory, or from a binary file object."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..errors import UnsupportedError
from ..kernels.tables import SLACK
from .ranges import Ranges, checked_ranges, room_for, too_short

__all__ = ["BytesSource", "FileObjectSource", "FileSource", "ReadSource", "Source", "open_local", "open_source"]


class Source(Protocol):
    """Something of a fixed size that can be read at any position, by several threads at once.

    Attributes
    ----------
    name : str
        What to call it in messages.
    size : int
        Bytes.
    is_remote : bool
        Whether a request has a latency that is worth saving; False for local files, bytes and file objects.
    num_requests, num_bytes : int
        Reads so far, and the bytes that they brought.
    """

    name: str
    size: int

    @property
    def is_remote(self) -> bool:
        """Whether a request has a latency that is worth saving."""

    @property
    def num_requests(self) -> int:
        """Reads so far."""

    @property
    def num_bytes(self) -> int:
        """The bytes that they brought."""

    def has(self, start: int, stop: int) -> bool:
        """Whether there are such bytes: a first one, and the one behind the last."""

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` (uint8) with the bytes from `position`; InvalidFileError where there are too few."""

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give bytes that are in memory already, with `slack` readable ones behind them, or None."""

    def read_ranges(self, ranges: Ranges) -> list[np.ndarray]:
        """Read several byte ranges, side by side where that takes less time.

        Parameters
        ----------
        ranges : iterable of (int, int)
            First byte, and the byte behind the last; in any order, none begins behind its end. An int64 array of two
            columns will do.

        Returns
        -------
        list of uint8 array
            One for each, of its bytes and SLACK readable ones behind them; it may be read-only.

        Raises
        ------
        InvalidFileError
            When one lies outside of the file; nothing is read then.
        LimitError
            When memory does not suffice.
        """

    def close(self) -> None:
        """Give back what `open_source` opened."""


class Counted:
    """Counts of requests and bytes, which stay right where several threads read at once."""

    size: int

    def __init__(self) -> None:
        self.num_requests = self.num_bytes = 0
        self._counting = threading.Lock()

    def _count(self, num_bytes: int, requests: int = 1) -> None:
        with self._counting:
            self.num_requests += requests
            self.num_bytes += num_bytes

    def has(self, start: int, stop: int) -> bool:
        """Whether there are such bytes."""
        return 0 <= start <= stop <= self.size


class BytesSource(Counted):
    """Bytes in memory (``bytes``, ``bytearray``, ``memoryview``); nothing is copied."""

    is_remote = False

    def __init__(self, data: Any, name: str = "<bytes>") -> None:
        super().__init__()
        self._data = np.frombuffer(data, np.uint8)
        self.name = name
        self.size = len(self._data)

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give bytes of the data itself; None where there is no slack behind them."""
        if position < 0 or length < 0 or position + length + slack > self.size:
            return None
        self._count(length)
        return self._data[position : position + length + slack]

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Copy bytes of the data."""
        if position < 0 or position + len(out) > self.size:
            raise too_short(self, position, len(out))
        self._count(len(out))
        out[:] = self._data[position : position + len(out)]

    def read_ranges(self, ranges: Ranges) -> list[np.ndarray]:
        """Give views of the data; copies of what has too little behind it."""
        return [self._piece(start, stop - start) for start, stop in checked_ranges(ranges, self)]

    def _piece(self, position: int, length: int) -> np.ndarray:
        found = self.view(position, length, SLACK)
        if found is None:
            found = room_for(length)
            self.read_into(position, found[:length])
        return found

    def close(self) -> None:
        """Do nothing: the bytes are their owner's."""


class ReadSource(Counted):
    """What reads have in common: repeated until all is there, counted."""

    name: str
    is_remote = False

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give None: nothing is in memory."""
        return None

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Read until `out` is full."""
        if position < 0 or position + len(out) > self.size:
            raise too_short(self, position, len(out))
        left = memoryview(out.data)
        while left:
            count = self._read_some(position, left)
            if not count:
                raise too_short(self, position, len(left))
            self._count(count)
            position += count
            left = left[count:]

    def read_ranges(self, ranges: Ranges) -> list[np.ndarray]:
        """Read one after the other."""
        pieces = []
        for start, stop in checked_ranges(ranges, self):
            pieces.append(room_for(stop - start))
            self.read_into(start, pieces[-1][: stop - start])
        return pieces

    def _read_some(self, position: int, out: memoryview) -> int:
        raise NotImplementedError

    def close(self) -> None:
        """Give back what was opened."""


class FileSource(ReadSource):
    """A local file, read at positions without a shared cursor where the system can do that.

    It is not mapped into memory: a mapped file that somebody truncates kills the process.

    Parameters
    ----------
    path : str or os.PathLike
        Its name.
    opener : callable, optional
        Opens it instead of `os.open`, as for the built-in `open`.

    Attributes
    ----------
    identity : tuple of int
        The file system that it is on, and its number there.
    """

    def __init__(self, path: str | os.PathLike[str], opener: Callable[[str, int], int] | None = None) -> None:
        super().__init__()
        self.name = os.fspath(path)
        self._file = open(path, "rb", buffering=0, opener=opener)  # noqa: SIM115  (closed by `close`)
        status = os.fstat(self._file.fileno())
        self.size = status.st_size
        self.identity = status.st_dev, status.st_ino
        self._lock = threading.Lock()

    def stamp(self) -> tuple[int, int]:
        """Give size and time of the last change: others than before, the file is not what it was."""
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def _read_some(self, position: int, out: memoryview) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [out], position)
        with self._lock:
            self._file.seek(position)
            return self._file.readinto(out) or 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FileObjectSource(ReadSource):
    """A binary file object that can seek; reads take turns."""

    def __init__(self, file: Any) -> None:
        super().__init__()
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
        """Put the cursor back where it was; the file object is its owner's to close."""
        if not getattr(self._file, "closed", False):
            self._file.seek(self._start)


def open_source(path: Any, storage_options: dict[str, Any] | None = None, filesystem: Any = None) -> Source:
    """Open what a user calls a path.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, binary file object, or Source
        A file's name or URL; the bytes of a file; an object with ``read`` and ``seek``; or what is open already.
    storage_options : dict, optional
        For the file system of a URL.
    filesystem : fsspec or pyarrow file system, optional
        Where `path` is.

    Returns
    -------
    Source

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As `open` does.
    ImportError
        For a URL, when fsspec, or what it needs for this kind of URL, is not installed.
    UnsupportedError
        For a directory or a list of paths, which this version does not read.
    TypeError, ValueError
        For anything else, and for options that do not go with it.
    """
    if isinstance(path, (str, os.PathLike)):
        return _open_name(os.fsdecode(path), storage_options or {}, filesystem)
    if isinstance(path, (list, tuple)):
        raise UnsupportedError("numparq does not read several files at once yet; read them one by one")
    if storage_options or filesystem is not None:
        raise ValueError("storage_options and filesystem go with a path or URL only")
    if isinstance(path, (bytes, bytearray, memoryview)):
        return BytesSource(path)
    if hasattr(path, "read_ranges"):
        return path
    if hasattr(path, "read") and hasattr(path, "seek"):
        return FileObjectSource(path)
    raise TypeError(f"path is a str, PathLike, bytes or binary file object, not {type(path).__name__}")


def _open_name(name: str, storage_options: dict[str, Any], filesystem: Any) -> Source:
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options are for URLs; the file system has its own already")
        from .remote_source import open_on

        return open_on(filesystem, name)
    if "://" in name and not name.startswith("file://"):
        from .remote_source import open_url

        return open_url(name, storage_options)
    if storage_options:
        raise ValueError(f"storage_options are for URLs, and {name!r} is a local path")
    return open_local(name.removeprefix("file://"))


def open_local(name: str) -> FileSource:
    """Open a local file by its name; UnsupportedError for a directory."""
    try:
        return FileSource(os.path.expanduser(name))
    except OSError:
        if os.path.isdir(name):
            message = "this is a directory: read_parquet and Dataset read all of its files"
            raise UnsupportedError(message, file=name) from None
        raise
