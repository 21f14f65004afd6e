"""Sealed, private cache files for compiled kernels and generated tables."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .regular_file import NO_FOLLOW, open_regular

KEEP_FOLDERS = 3
KEEP = 8  # entries kept per name: more than the versions and CPUs that share a home directory at a time
_TEMPORARY = ".numparq-"
_DIGEST = hashlib.sha256().digest_size
_warned = False


def directory() -> str:
    """Return the cache directory: ``NUMPARQ_CACHE_DIR``, or ``numparq`` in the user's cache directory.

    It need not exist. Raises OSError if the user has no home directory.
    """
    chosen = os.environ.get("NUMPARQ_CACHE_DIR")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    place = _user_cache()
    if not os.path.isabs(place):
        raise OSError("the user has no home directory")
    return os.path.join(place, "numparq")


def _user_cache() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches")
    configured = os.environ.get("XDG_CACHE_HOME", "")
    return configured if os.path.isabs(configured) else os.path.expanduser("~/.cache")


def load(name: str, key: bytes) -> bytes | None:
    """Read the content of an entry; None unless it is intact and only this user (or root) can write it.

    `key` is everything that the content depends on, or a digest of that.
    """
    try:
        folder = directory()
        if not _private(folder):
            return None
        with open(_path(folder, name, key), "rb", opener=open_regular) as file:
            if not _owned(os.fstat(file.fileno())):
                return None
            head, content = file.read(_DIGEST), file.read()
    except OSError:
        return None
    return content if head == _seal(key, content) else None


def store(name: str, key: bytes, data: bytes) -> bool:
    """Write an entry, replacing one of the same name and key; return whether that succeeded.

    A failure warns once a process.
    """
    folder = "any directory"
    try:
        folder = directory()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not _private(folder):
            raise PermissionError("other users can write there, or own it")
        path = _path(folder, name, key)
        replace_file(path, _seal(key, data) + data)
        _prune(folder, name, keep=path)
    except OSError as error:
        _warn(folder, error.strerror or str(error))
        return False
    return True


def private_directory(name: str, key: bytes) -> str | None:
    """Return a directory for Numba's own cache that only this user can write, created if needed, or None.

    Directories of the same name are removed, except the newest `KEEP_FOLDERS`.
    """
    try:
        place = directory()
        folder = _path(place, name, key).removesuffix(".bin")
        for path in (place, folder):
            os.makedirs(path, mode=0o700, exist_ok=True)
            if not _private(path):
                return None
        os.utime(folder)
        found = [entry.path for entry in os.scandir(place) if entry.is_dir() and entry.name.startswith(name + "-")]
        for path in sorted(found, key=os.path.getmtime)[:-KEEP_FOLDERS]:
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return None
    return folder


@contextmanager
def build_lock(name: str, key: bytes, timeout: float = 60.0) -> Iterator[None]:
    """Hold the lock of an entry while it is built, so that processes that start together build it once.

    After `timeout` seconds the caller proceeds without it: the lock saves work, correctness does not depend on it.
    """
    file = None
    try:
        folder = directory()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if _private(folder):
            file = open(_path(folder, name, key) + ".lock", "ab", opener=_open_lock)  # noqa: SIM115
            _lock(file.fileno(), timeout)
    except OSError:
        pass
    try:
        yield
    finally:
        if file is not None:
            file.close()


def _open_lock(path: str, flags: int) -> int:
    return open_regular(path, flags | NO_FOLLOW)  # a link could lead to a file that it would create


def _lock(descriptor: int, timeout: float) -> None:
    """Lock an open file, or raise BlockingIOError after `timeout` seconds."""
    try:
        import fcntl
    except ImportError:
        return  # on Windows, two processes may both compile
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _path(folder: str, name: str, key: bytes) -> str:
    return os.path.join(folder, f"{name}-{hashlib.sha256(key).hexdigest()[:24]}.bin")


def _seal(key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key).digest() + content).digest()


def _private(folder: str) -> bool:
    """Whether only this user (and root) can write to a directory."""
    status = os.stat(folder)
    return stat.S_ISDIR(status.st_mode) and _owned(status)


def _owned(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True  # Windows: the user's profile is private, and mode bits mean nothing
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def replace_file(path: str, content: bytes) -> None:
    """Write a file atomically: other processes see all of it or nothing."""
    descriptor, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # readable by all: root warms up an image, others run it
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _prune(folder: str, name: str, keep: str) -> None:
    """Remove the oldest entries of a name with their locks, and temporary files of interrupted processes."""
    age: dict[str, float] = {}
    for path in (entry.path for entry in os.scandir(folder)):
        with suppress(OSError):  # another process may be pruning, too
            age[path] = os.lstat(path).st_mtime
    entries = [path for path in age if os.path.basename(path).startswith(name + "-") and path.endswith(".bin")]
    old = sorted(entries, key=lambda path: (path == keep, age[path]))[:-KEEP]
    yesterday = time.time() - 86400
    stray = [path for path in age if os.path.basename(path).startswith(_TEMPORARY) and age[path] < yesterday]
    for path in [*old, *(path + ".lock" for path in old), *stray]:
        with suppress(OSError):
            os.unlink(path)


def _warn(folder: str, reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"numparq cannot cache its compiled kernels in {folder} ({reason}), and will compile them again in every "
            "process; set NUMPARQ_CACHE_DIR to a private, writable directory",
            RuntimeWarning,
            stacklevel=3,
        )
