"""Sinks of local files: a temporary file renamed on commit, and devices."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat

from .file_lock import boot_id, try_lock
from .pipe import open_for_writing
from .sink import Sink, explain_write_error

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY_SUFFIX = ".numparq"
_MOST_NAME_BYTES = 180  # of the target's name in the temporary name: file systems allow 255 in all
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF)


class DeviceSink(Sink):
    """A device or pipe, written directly; an abort cannot undo what was written."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._descriptor = open_for_writing(name)

    def _write(self, view: memoryview) -> int:
        return os.write(self._descriptor, view)

    def _complete(self) -> None:
        os.close(self._descriptor)

    def _discard(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


class FileSink(Sink):
    """A local file, written under a temporary name and renamed to `target` on commit, after an fsync.

    A symbolic link stays; the file it names is replaced. The new file takes over permissions and, where allowed,
    the owner; other hard links keep the old content.

    Attributes
    ----------
    target : str
        Path of the file, symbolic links resolved.
    temporary : str
        Path that is written until the commit.
    descriptor : int
        Descriptor of the temporary file. To write to it directly, call `flush` before and `count_external_write` after.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.descriptor = -1
        self.target = os.path.realpath(name)
        self.temporary = ""
        earlier = _stat_existing(name, self.target)
        try:
            self.descriptor, self.temporary = _create(self.target, 0o666 if earlier is None else 0o600)
        except OSError as error:
            raise _explain_create_error(error, self.target) from error
        if earlier is not None:
            self._copy_permissions(earlier)

    def _copy_permissions(self, earlier: os.stat_result) -> None:
        """Copy owner and permissions of the replaced file to the new one, as far as the system allows."""
        if hasattr(os, "fchown"):
            with contextlib.suppress(OSError):
                os.fchown(self.descriptor, earlier.st_uid, earlier.st_gid)
            with contextlib.suppress(OSError):
                os.fchmod(self.descriptor, stat.S_IMODE(earlier.st_mode))

    def _write(self, view: memoryview) -> int:
        return os.write(self.descriptor, view)

    def count_external_write(self, count: int) -> None:
        """Count bytes that were written to `descriptor` directly."""
        self._num_written += count
        self.position += count

    def sync(self) -> None:
        """Write everything so far to the disk (fsync), as after a checkpoint footer."""
        self.flush()
        with self.abort_on_error():
            os.fsync(self.descriptor)

    def _complete(self) -> None:
        os.fsync(self.descriptor)
        if fcntl is None:  # Windows cannot rename an open file; elsewhere the lock is held until the rename
            self._close()
        os.replace(self.temporary, self.target)
        self._close()
        sync_folder(os.path.dirname(self.target))

    def _close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _discard(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.temporary)
        with contextlib.suppress(OSError):
            self._close()
        with contextlib.suppress(OSError):
            os.unlink(self.temporary)

    def _release(self) -> None:
        self._close()

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            self.abort()


def _stat_existing(name: str, target: str) -> os.stat_result | None:
    """Return the status of the file to replace, None if it does not exist; raise PermissionError if it is read-only."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the existing file is read-only", name)
    return found


def _create(target: str, mode: int) -> tuple[int, str]:
    """Create and lock a temporary file beside `target`; return its descriptor and path."""
    folder, stem = os.path.dirname(target), temporary_prefix(target)
    while True:
        temporary = os.path.join(folder, f"{stem}{boot_id()}-{secrets.token_hex(6)}{TEMPORARY_SUFFIX}")
        try:
            descriptor = os.open(temporary, _CREATE, mode)
        except FileExistsError:
            continue
        if try_lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return descriptor, temporary
        os.close(descriptor)  # a cleanup of leftover files locked or unlinked it first


def temporary_prefix(target: str) -> str:
    """Return the common prefix of the names of all temporary files of `target`; a long name is cut and hashed."""
    name = os.path.basename(target)
    if len(os.fsencode(name)) <= _MOST_NAME_BYTES:
        return f".{name}."
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    while len(os.fsencode(name)) > _MOST_NAME_BYTES - 17:
        name = name[:-1]
    return f".{name}~{digest}."


def sync_folder(folder: str) -> None:
    """Write a directory's entries to the disk (fsync), where the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def _explain_create_error(error: OSError, target: str) -> OSError:
    """Return an error that says why the temporary file cannot be created."""
    folder = os.path.dirname(target)
    if error.errno == errno.ENOENT and not os.path.isdir(folder or "."):
        return FileNotFoundError(error.errno, f"the directory {folder!r} does not exist", target)
    if error.errno in (errno.EACCES, errno.EPERM):
        reason = "the directory must be writable: the file is first written to a temporary file in it"
        return PermissionError(error.errno, reason, target)
    return explain_write_error(error, target, 0)
