"""Path of something opened: enough to open it again in another process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["OpenedPath"]


def working_directory() -> str | None:
    """Return the working directory; None if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


@dataclass
class OpenedPath:
    """Path or paths, options of their file system, and the working directory when they were opened."""

    path: Any
    storage_options: Any = None
    filesystem: Any = None
    directory: str | None = field(default_factory=working_directory)

    def absolute(self, name: str) -> str:
        """Return a relative local path as it was meant when opened; other names stay."""
        if self.filesystem is not None or self.directory is None or "://" in name or name[:1] == "~":
            return name
        return os.path.join(self.directory, name)

    def from_here(self) -> OpenedPath:
        """Return what to open now: the path as given, or absolute if the working directory is another one."""
        path = self.path
        if self.directory == working_directory():
            return self
        if isinstance(path, (list, tuple)):
            return replace(self, path=[self.absolute(os.fsdecode(one)) for one in path])
        return replace(self, path=self.absolute(os.fsdecode(path))) if isinstance(path, (str, os.PathLike)) else self
