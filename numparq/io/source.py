"""Sources: bytes at positions, from a local file, from bytes in memory, or from a binary file object."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..errors import InvalidFileError, UnsupportedError


class Source(Protocol):
    """Something of a fixed size that can be read at any position, by several threads at once.

    Attributes
    ----------
    name : str
        What to call it in messages.
    size : int
        Bytes.
    num_requests, num_bytes : int
        Reads so far, and the bytes that they brought.
    """

    name: str
    size: int

    @property
    def num_requests(self) -> int:
        """Reads so far."""

    @property
    def num_bytes(self) -> int:
        """The bytes that they brought."""

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` (uint8) with the bytes from `position`; InvalidFileError where there are too few."""

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give bytes that are in memory already, with `slack` readable ones behind them, or None."""

    def close(self) -> None:
        """Give back what `open_source` opened."""


class BytesSource:
    """Bytes in memory (``bytes``, ``bytearray``, ``memoryview``); nothing is copied."""

    def __init__(self, data: Any, name: str = "<bytes>") -> None:
        self._data = np.frombuffer(data, np.uint8)
        self.name = name
        self.size = len(self._data)
        self.num_requests = self.num_bytes = 0

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give bytes of the data itself; None where there is no slack behind them."""
        if position < 0 or length < 0 or position + length + slack > self.size:
            return None
        self.num_requests += 1
        self.num_bytes += length
        return self._data[position : position + length + slack]

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Copy bytes of the data."""
        if position < 0 or position + len(out) > self.size:
            raise _too_short(self, position, len(out))
        self.num_requests += 1
        self.num_bytes += len(out)
        out[:] = self._data[position : position + len(out)]

    def close(self) -> None:
        """Do nothing: the bytes are their owner's."""


class _ReadSource:
    """What reads have in common: repeated until all is there, counted."""

    name: str
    size: int

    def __init__(self) -> None:
        self.num_requests = self.num_bytes = 0

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give None: nothing is in memory."""
        return None

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Read until `out` is full."""
        if position < 0 or position + len(out) > self.size:
            raise _too_short(self, position, len(out))
        left = memoryview(out.data)
        while left:
            count = self._read_some(position, left)
            if not count:
                raise _too_short(self, position, len(left))
            self.num_requests += 1
            self.num_bytes += count
            position += count
            left = left[count:]

    def _read_some(self, position: int, out: memoryview) -> int:
        raise NotImplementedError


class FileSource(_ReadSource):
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

    def _read_some(self, position: int, out: memoryview) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [out], position)
        with self._lock:
            self._file.seek(position)
            return self._file.readinto(out) or 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FileObjectSource(_ReadSource):
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


def open_source(path: Any) -> Source:
    """Open what a user calls a path.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        A file's name; the bytes of a file; or an object with ``read`` and ``seek``.

    Returns
    -------
    Source

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As `open` does.
    UnsupportedError
        For a URL, a directory or a list of paths, which this version does not read.
    TypeError
        For anything else.
    """
    if isinstance(path, (bytes, bytearray, memoryview)):
        return BytesSource(path)
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        if isinstance(name, bytes):
            name = os.fsdecode(name)
        if name.startswith("file://"):
            name = name[len("file://") :]
        elif "://" in name:
            raise UnsupportedError("numparq does not read URLs yet; download the file, or pass an open file", file=name)
        if os.path.isdir(name):
            raise UnsupportedError("numparq does not read directories yet; name one file of it", file=name)
        return FileSource(os.path.expanduser(name))
    if isinstance(path, (list, tuple)):
        raise UnsupportedError("numparq does not read several files at once yet; read them one by one")
    if hasattr(path, "read") and hasattr(path, "seek"):
        return FileObjectSource(path)
    raise TypeError(f"path is a str, PathLike, bytes or binary file object, not {type(path).__name__}")


def _too_short(source: Source | _ReadSource, position: int, length: int) -> InvalidFileError:
    return InvalidFileError(
        f"bytes {position} to {position + length} are wanted, but there are only {source.size}: the file is cut off, "
        "or an offset in it is wrong",
        file=source.name,
    )
