"""Sinks on fsspec and pyarrow file systems."""

from __future__ import annotations

import contextlib
import errno
import secrets
from typing import Any

from .local_sink import TEMPORARY_SUFFIX
from .remote_errors import explain_remote_errors
from .sink import Sink


class FsspecSink(Sink):
    """A file of an fsspec file system: an upload to an object store is completed on commit or discarded on abort.

    Elsewhere, where writes are in place, it is written under a temporary name and moved on commit.
    """

    def __init__(self, filesystem: Any, path: str, name: str) -> None:
        super().__init__(name)
        self._filesystem = filesystem
        self._path = path
        self._temporary = _temporary_path(path)
        with explain_remote_errors(name):
            self._file = filesystem.open(self._temporary, "wb", autocommit=False)
        if _completes_on_close(self._file):  # nothing has been uploaded yet
            self._drop()
            self._temporary = ""
            self._file = filesystem.open(path, "wb", autocommit=False)
        elif type(self._file).__name__ == "LocalFileOpener":
            # A local file system behind a wrapper: a missing directory would be noticed only at the commit.
            self._check_folder(path.rpartition("/")[0])

    def _check_folder(self, folder: str) -> None:
        """Raise FileNotFoundError if the file's directory does not exist."""
        if folder and not self._filesystem.isdir(folder):
            self._drop()
            raise FileNotFoundError(errno.ENOENT, "the directory does not exist", folder)

    def _write(self, view: memoryview) -> int:
        with explain_remote_errors(self.name):
            written = self._file.write(view)
        return len(view) if written is None else written

    def _complete(self) -> None:
        with explain_remote_errors(self.name):
            self._finish()

    def _finish(self) -> None:
        """Complete the upload, or move the file to its name."""
        self._file.close()
        if not self._temporary:
            self._file.commit()
            return
        if hasattr(self._file, "commit"):
            self._file.commit()
        _move(self._filesystem, self._temporary, self._path)

    def _discard(self) -> None:
        self._drop()
        if self._temporary:
            with contextlib.suppress(Exception):
                self._filesystem.rm_file(self._temporary)

    def _release(self) -> None:
        if _completes_on_close(self._file):
            self._file.closed = True

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.abort()

    def _drop(self) -> None:
        """Discard an upload; close a file that is written in place."""
        if not _completes_on_close(self._file):
            with contextlib.suppress(Exception):
                self._file.close()
                self._file.discard()
            return
        with contextlib.suppress(Exception):
            self._file.discard()
        self._file.closed = True  # else the garbage collector would complete the upload


def _move(filesystem: Any, start: str, end: str) -> None:
    """Move a file by the file system's own rename, or else copy it and remove the original.

    fsspec's default `mv` does the latter too, but expands ``*``, ``?`` and ``[`` in both names.
    """
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.spec import AbstractFileSystem

    inner = filesystem
    while isinstance(inner, DirFileSystem):
        inner = inner.fs
    if getattr(inner.mv, "__func__", None) is not AbstractFileSystem.mv:
        filesystem.mv(start, end)
    else:
        filesystem.cp_file(start, end)
        try:
            filesystem.rm_file(start)
        except NotImplementedError:  # some have only `rm`; nothing else matches a temporary name
            filesystem.rm(start)


def _completes_on_close(file: Any) -> bool:
    """Whether a file is an upload that closing completes, as on object stores."""
    from fsspec.spec import AbstractBufferedFile

    return isinstance(file, AbstractBufferedFile)


def _temporary_path(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.{secrets.token_hex(6)}{TEMPORARY_SUFFIX}"


class ArrowSink(Sink):
    """A file of a pyarrow file system, written under a temporary name and moved on commit."""

    def __init__(self, filesystem: Any, path: str, name: str) -> None:
        super().__init__(name)
        self._filesystem = filesystem
        self._path = path
        self._temporary = _temporary_path(path)
        self._file = filesystem.open_output_stream(self._temporary)

    def _write(self, view: memoryview) -> int:
        self._file.write(view)
        return len(view)

    def _complete(self) -> None:
        self._file.close()
        self._filesystem.move(self._temporary, self._path)

    def _discard(self) -> None:
        with contextlib.suppress(Exception):
            self._file.close()
        with contextlib.suppress(Exception):
            self._filesystem.delete_file(self._temporary)
