"""A local file that is to grow: opened and locked, so that of two processes that append one waits for the other."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import BinaryIO


class GrowingFile:
    """An existing file, held until what replaces it is in its place.

    Parameters
    ----------
    path : str
        Its name.

    Attributes
    ----------
    file : binary file object
        Open for reading.

    Raises
    ------
    FileNotFoundError
        When there is no such file.

    Notes
    -----
    Appending makes a new file and renames it over the old one. Whoever waits for the lock of the old one finds then
    that the name means another file, and begins anew with that. The lock is advisory: where there is none (Windows,
    some network file systems), `check` still sees most of what others do, right before the rename.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        while True:
            self.file: BinaryIO = open(path, "rb")  # noqa: SIM115
            _lock(self.file)
            if self._is_in_place():
                break
            self.file.close()
        self._state = _state(self.file)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self.file.fileno()))
        except OSError:
            return False

    def check(self) -> None:
        """Raise OSError when the file was changed or replaced since it was opened."""
        if not self._is_in_place() or _state(self.file) != self._state:
            raise OSError(f"{self._path} was changed by somebody else while rows were appended; nothing was written")

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


def _lock(file: BinaryIO) -> None:
    try:
        import fcntl
    except ImportError:
        return
    with suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_EX)


def _state(file: BinaryIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns
