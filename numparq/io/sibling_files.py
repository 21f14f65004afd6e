"""Sibling files: open paths named in a file, confined to its directory."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from numparq.errors import InvalidFileError, ParquetError, UnsupportedError

from .filesystem import is_url, strip_file_scheme
from .local_source import FileSource

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Not allowed in a path on any system: Windows separators and the end of C strings.
_FORBIDDEN = {"\0": "a NUL byte", "\\": "a backslash"}
_ON_WINDOWS = os.name == "nt"
_HAS_OPENAT = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
# Do not follow links, wait for a pipe or take over a terminal; no child process inherits the file.
_SAFE_OPEN_FLAGS = sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)


def split_sibling_path(path: str) -> list[str]:
    """Split a relative path into its parts, without ``.``; nothing in it is decoded.

    Raises UnsupportedError for a URL, InvalidFileError for a path that is absolute, leads upwards or is malformed.
    """
    if _SCHEME.match(path) and not _is_drive(path):
        raise UnsupportedError(
            f"{_abbreviated(path)} is a URL, and numparq does not open URLs that a file names; fetch it yourself"
        )
    trouble = _path_error(path)
    if trouble:
        raise InvalidFileError(f"the file refers to sibling file {_abbreviated(path)}, which is not opened: {trouble}")
    return [part for part in path.split("/") if part != "."]


def _is_drive(path: str) -> bool:
    return path[1:2] == ":"


def _path_error(path: str) -> str | None:
    """Return why a path is not a plain relative path, or None."""
    if len(os.fsencode(path) if _can_encode(path) else path) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    for character, name in _FORBIDDEN.items():
        if character in path:
            return f"it contains {name}"
    if path.startswith("/") or _is_drive(path) or (_ON_WINDOWS and ":" in path):
        return "it is not a relative path"
    parts = path.split("/")
    if ".." in parts:
        return "it leads to a parent directory"
    if "" in parts or all(part == "." for part in parts):
        return "it has an empty component"
    if not _can_encode(path) or any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in parts):
        return "this system does not allow such a name"
    if _ON_WINDOWS and any(part.endswith((".", " ")) and part != "." for part in parts):
        return "a component ends with a dot or space"
    return None


def _can_encode(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


class SiblingFiles:
    """The directory of a local file, and everything below it.

    Raises UnsupportedError for bytes, file objects and URLs, which have no local directory.
    """

    def __init__(self, path: object) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise UnsupportedError(
                "external_files=True needs the path of a local file: bytes and file objects have no directory to "
                "find sibling files in"
            )
        name = strip_file_scheme(os.fsdecode(os.fspath(path)))
        if is_url(name):
            raise UnsupportedError(f"external_files=True needs a local file, but {_abbreviated(name)} is a URL")
        self.folder = os.path.realpath(os.path.dirname(os.path.abspath(os.path.expanduser(name))))
        self._device = os.stat(self.folder).st_dev

    def open(self, path: str) -> FileSource:
        """Open a file below the directory; the caller closes it. Raises UnsupportedError for a URL.

        Raises InvalidFileError if it is missing, not a regular file, outside the directory or on another file system.
        """
        parts = split_sibling_path(path)
        try:
            return FileSource(os.path.join(self.folder, *parts), lambda name, flags: self._descriptor(name))
        except ParquetError as error:
            error.message = (
                f"the file refers to sibling file {_abbreviated(path)}, which is not opened: {error.message}"
            )
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidFileError(
                f"the file refers to sibling file {_abbreviated(path)}, which cannot be opened: {reason}"
            ) from None

    def _descriptor(self, name: str) -> int:
        """Open a file for reading and return its descriptor."""
        real = os.path.realpath(name, strict=True)
        try:
            inside = os.path.commonpath([real, self.folder]) == self.folder
        except ValueError:  # another drive
            inside = False
        if not inside:
            raise InvalidFileError("it leads out of the directory of the file")
        parts = os.path.relpath(real, self.folder).split(os.sep)
        with self._parent(parts[:-1]) as (parent, prefix):
            return self._regular(prefix + parts[-1], parent)

    @contextmanager
    def _parent(self, folders: list[str]) -> Iterator[tuple[int | None, str]]:
        """Yield the descriptor of the innermost directory, or None without `openat`, and the prefix of names in it."""
        if not _HAS_OPENAT:
            yield None, os.path.join(self.folder, *folders, "")
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | _SAFE_OPEN_FLAGS
        at = os.open(self.folder, flags & ~os.O_NOFOLLOW)
        try:
            for folder in folders:
                inner = os.open(folder, flags, dir_fd=at)
                os.close(at)
                at = inner
                self._check_device(os.fstat(at))
            yield at, ""
        finally:
            os.close(at)

    def _regular(self, name: str, parent: int | None) -> int:
        """Open a regular file, checked before and after: merely opening a device can have effects."""
        before = os.stat(name, dir_fd=parent, follow_symlinks=False)
        _check_regular(before)
        self._check_device(before)
        descriptor = os.open(name, os.O_RDONLY | _SAFE_OPEN_FLAGS, dir_fd=parent)
        try:
            opened = os.fstat(descriptor)
            _check_regular(opened)
            self._check_device(opened)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _check_device(self, status: os.stat_result) -> None:
        if status.st_dev != self._device:
            raise InvalidFileError("it is not on the file system of the file")


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InvalidFileError("it is not a regular file")


def _abbreviated(path: str) -> str:
    return repr(path if len(path) <= 200 else path[:200] + "...")
