"""Advisory locks of local files that are appended to or written under temporary names."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

__all__ = ["boot_id", "try_lock"]

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class LockedFile:
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
        self._state = _file_stamp(self.file)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self.file.fileno()))
        except OSError:
            return False

    def check(self) -> None:
        """Raise OSError when the file was changed or replaced since it was opened."""
        if not self._is_in_place() or _file_stamp(self.file) != self._state:
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


def _file_stamp(file: BinaryIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Give a name of this run of this system's kernel: a lock says nothing about the processes of another."""
    try:
        found = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return "x"
    return hashlib.sha256(found.encode()).hexdigest()[:8]


def try_lock(descriptor: int) -> bool | None:
    """Lock a file: whether it worked; None where the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
