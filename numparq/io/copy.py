"""Copy the first bytes of a local file into a sink, inside the kernel of the system if possible."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numparq.errors import InvalidFileError
from numparq.util.pluralize import pluralize
from numparq.util.regular_file import open_regular

from .sink import Sink

_MAX_SYSTEM_COPY = 1 << 30  # bytes per system call
_COPY_BUFFER_BYTES = 1 << 22  # bytes per read where no system call copies
# Errors that mean "cannot copy between these files"; any other is a real error.
_UNSUPPORTED_ERRNOS = (
    errno.EXDEV,
    errno.EINVAL,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.ENOTSUP,
    errno.EPERM,
    errno.EBADF,
    errno.ETXTBSY,
)

Copy = Callable[[int, int, int, int], int]  # source, target, bytes, position in the source -> bytes copied


def copy_prefix(source: str | os.PathLike[str] | int, sink: Sink, length: int) -> None:
    """Copy the first `length` bytes of a local file (path or descriptor) to the current position of a sink.

    A descriptor's position stays. Raises InvalidFileError if the file is shorter or changes during the copy.
    """
    with _opened(source) as descriptor:
        before = _file_stamp(descriptor)
        size = os.fstat(descriptor).st_size
        if size < length:
            raise InvalidFileError(
                f"the file has {pluralize(size, 'byte')}, fewer than the {pluralize(length, 'byte')} to copy"
            )
        done = 0
        target = getattr(sink, "descriptor", None)
        if target is not None:
            sink.flush()
            for copy in _system_copies():
                done = _copy_with(copy, descriptor, sink, done, length)
        _copy_through_memory(descriptor, sink, done, length)
        if _file_stamp(descriptor) != before:
            raise InvalidFileError("the file changed during the copy")


@contextmanager
def _opened(source: str | os.PathLike[str] | int) -> Iterator[int]:
    if isinstance(source, int):
        yield source
        return
    descriptor = open_regular(source)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _file_stamp(descriptor: int) -> tuple[int, int]:
    """Return size and modification time (ns), which change when the file is written to."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def _system_copies() -> list[Copy]:
    """Return the copy functions of this operating system, fastest first."""
    ways: list[Copy] = []
    if hasattr(os, "copy_file_range"):
        ways.append(lambda source, target, count, at: os.copy_file_range(source, target, count, at))
    if hasattr(os, "sendfile") and os.uname().sysname == "Linux":  # on other systems the target must be a socket
        ways.append(lambda source, target, count, at: os.sendfile(target, source, at, count))
    return ways


def _copy_with(copy: Copy, source: int, sink: Any, done: int, length: int) -> int:
    """Copy with one system call until it is done or unsupported; return the number of bytes copied so far."""
    while done < length:
        try:
            count = copy(source, sink.descriptor, min(length - done, _MAX_SYSTEM_COPY), done)
        except OSError as error:
            if error.errno in _UNSUPPORTED_ERRNOS:
                break
            with sink.abort_on_error():
                raise
        if not count:  # some file systems return 0 for "unsupported"
            break
        sink.count_external_write(count)
        done += count
    return done


def _copy_through_memory(source: int, sink: Sink, done: int, length: int) -> None:
    while done < length:
        data = _read(source, min(length - done, _COPY_BUFFER_BYTES), done)
        if not data:
            raise InvalidFileError(f"the file ends after {done:,} of the {pluralize(length, 'byte')} to copy")
        sink.write(data)
        done += len(data)


def _read(source: int, count: int, position: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(source, count, position)
    kept = os.lseek(source, 0, os.SEEK_CUR)
    try:
        os.lseek(source, position, os.SEEK_SET)
        return os.read(source, count)
    finally:
        os.lseek(source, kept, os.SEEK_SET)
