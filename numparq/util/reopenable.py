"""Open files and datasets that are pickled as what opens them again."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["Reopenable"]

Reopen = Callable[[], Any]


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
