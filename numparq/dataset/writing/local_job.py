"""A write to a local dataset: files lie in a hidden folder of it until one commit gives them their places."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from ...io.sink import Sink
from ...io.source import Source
from ..entries import Found
from .changes import Changes
from .job_folder import JobFolder
from .paths import job_id

__all__ = ["LocalJob"]


class LocalJob:
    """A write that is under way, by one process.

    Parameters
    ----------
    base : str
        The dataset's folder; it is made where it is not there.

    Attributes
    ----------
    id : str
        Its name, which no other write has.
    base : str
        The folder.
    """

    def __init__(self, base: str) -> None:
        self.base = base
        self.id = job_id()
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._is_open = True
        self._folder = JobFolder.make(base, self.id)

    def found(self) -> Found:
        """List what the dataset has now."""
        return self._folder.found()

    def source(self, path: str) -> Source:
        """Open a file that the dataset has."""
        return self._folder.source(path)

    def open(self, name: str) -> Sink:
        """Open a file of the dataset for writing.

        Parameters
        ----------
        name : str
            Its path in the dataset, with slashes.
        """
        with self._lock:
            number = self._names.setdefault(name, str(len(self._names)))
        return self._folder.create(number, name)

    def commit(self, changes_of: Callable[[Found], Changes]) -> None:
        """Give all files their places, and remove those that they replace, as one.

        Parameters
        ----------
        changes_of : callable
            Says, of what the dataset has once no other commit is under way, what is to be changed.
        """
        if self._names:
            self._folder.commit(self._names, changes_of)
        else:  # nothing was written, so that nothing changes
            self._folder.clear()
        self._is_open = False

    def abort(self) -> None:
        """Remove everything that was written, unless it is in force already."""
        self._is_open = False
        self._folder.abort()

    def __del__(self) -> None:
        # And not a copy of it, by a fork.
        if getattr(self, "_is_open", False) and hasattr(self, "_folder") and self._process == os.getpid():
            self.abort()
