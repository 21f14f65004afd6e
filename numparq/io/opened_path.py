"""Path of something opened: enough to open it again in another process."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["OpenedPath"]


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
