"""Advisory locks of local files that are appended to or written under temporary names."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from numparq.util.regular_file import open_regular

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class LockedFile:
    """An existing file, locked until a new one is renamed over it; a process that waits for the lock opens the new one.

    Without locks (Windows, some network file systems), `check_unchanged` before the rename detects most changes.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        while True:
            self.file: BinaryIO = open(path, "rb", opener=open_regular)  # noqa: SIM115
            _lock(self.file)
            if self._is_current_file():
                break
            self.file.close()
        self._state = _file_stamp(self.file)

    def _is_current_file(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self.file.fileno()))
        except OSError:
            return False

    def check_unchanged(self) -> None:
        """Raise OSError if the file was changed or replaced since it was opened."""
        if not self._is_current_file() or _file_stamp(self.file) != self._state:
            raise OSError(f"{self._path} was changed by another process while rows were appended; nothing was written")

    def close(self) -> None:
        """Close the file, which releases its lock."""
        self.file.close()


def _lock(file: BinaryIO) -> None:
    try:
        import fcntl
    except ImportError:
        return
    with suppress(OSError):  # the file system has no locks
        fcntl.flock(file, fcntl.LOCK_EX)


def _file_stamp(file: BinaryIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return an identifier of this boot, "x" if unknown: a lock says nothing about processes of another system."""
    try:
        found = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return "x"
    return hashlib.sha256(found.encode()).hexdigest()[:8]


def try_lock(descriptor: int) -> bool | None:
    """Lock a file without waiting; return whether it worked, or None if the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
