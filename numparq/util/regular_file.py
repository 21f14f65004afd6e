"""Open regular files only: a FIFO would block, and opening a device can have effects."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFLNK: "a symbolic link",
}
OPEN_FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor (an `opener` of `open`); OSError at once for anything else."""
    with suppress(FileNotFoundError):  # checked before it is opened, too: that would wake the writer of a FIFO
        _check(path, os.stat(path, follow_symlinks=not flags & NO_FOLLOW))
    descriptor = os.open(path, flags | OPEN_FLAGS, 0o666)
    try:
        _check(path, os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
        message = f"path is {kind}, not a regular file; copy it to one, or read all of it and pass the bytes"
        raise OSError(errno.EINVAL, message, os.fspath(path))
