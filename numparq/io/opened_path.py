"""Files and datasets that are pickled as what opens them again, such as their path."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

Reopen = Callable[[], Any]


class OpenedPath:
    """Path or paths, options of their file system, and the working directory when they were opened."""

    def __init__(self, path: object, storage_options: object = None, filesystem: object = None) -> None:
        self.path: Any = path
        self.storage_options: Any = storage_options
        self.filesystem: Any = filesystem
        try:
            self.directory: str | None = os.getcwd()
        except FileNotFoundError:  # it was removed
            self.directory = None

    def absolute(self, name: str) -> str:
        """Return a relative local path as it was meant when opened; other names stay."""
        if self.filesystem is not None or self.directory is None or "://" in name or name[:1] == "~":
            return name
        return os.path.join(self.directory, name)

    def from_here(self) -> OpenedPath:
        """Return what to open now: the path as given, or absolute if the working directory is another one."""
        path, here = self.path, OpenedPath(self.path, self.storage_options, self.filesystem)
        if self.directory == here.directory:
            return self
        if isinstance(path, (list, tuple)):
            here.path = [self.absolute(os.fsdecode(one)) for one in path]
        elif isinstance(path, (str, os.PathLike)):
            here.path = self.absolute(os.fsdecode(path))
        return here


class Reopenable(ABC):
    """Object that is pickled or copied as a small callable; the copy calls it at first use.

    Caches, locks and open files never travel.
    """

    @abstractmethod
    def _reopener(self) -> Reopen:
        """Return a picklable callable that opens an equal object, or raises if it changed."""

    def __getstate__(self) -> Reopen:
        pending: Reopen | None = self.__dict__.get("_pending")
        return pending or self._reopener()

    def __setstate__(self, reopen: Reopen) -> None:
        self._pending, self._opening_lock = reopen, threading.Lock()

    if not TYPE_CHECKING:  # otherwise mypy would accept any attribute

        def __getattr__(self, name: str) -> object:
            """Open a copy again when its first attribute is used."""
            lock = self.__dict__.get("_opening_lock")
            if lock is not None:
                with lock:
                    if "_pending" in self.__dict__:
                        self.__dict__.update(self._pending().__dict__)
                        del self._pending
            return object.__getattribute__(self, name)
