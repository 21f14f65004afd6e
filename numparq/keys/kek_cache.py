"""Keys that a KMS has unwrapped or wrapped, kept for a lifetime; per process, and never while others wait."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from numparq.util.fork_safe_lock import fork_safe_lock
from numparq.util.pluralize import pluralize

MAX_KEYS = 16_384
_Value = TypeVar("_Value")


class _Entry:
    """A value, the time when it expires, and the lock of the thread that makes it."""

    __slots__ = ("ends", "lock", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: Any = None
        self.ends = 0.0


class KeyCache:
    """Values by name, each made once within `lifetime` seconds: threads that need another one do not wait for it.

    A forked child begins with an empty cache.
    """

    def __init__(self, lifetime: float) -> None:
        self._lifetime = lifetime
        self._entries: dict[Hashable, _Entry] = {}
        self._process = os.getpid()
        self._adding = fork_safe_lock()

    def __repr__(self) -> str:
        return f"<KeyCache, {pluralize(len(self._entries), 'key')}>"

    def get_or_make(self, name: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return a value, made if there is none or its lifetime has ended; an error of `make` is not kept."""
        entry = self._entry(name)
        with entry.lock:
            if entry.value is None or time.monotonic() >= entry.ends:
                entry.value = None
                entry.value = make()
                entry.ends = time.monotonic() + self._lifetime
            value: _Value = entry.value
            return value

    def _entry(self, name: Hashable) -> _Entry:
        with self._adding:
            if self._process != os.getpid():
                self._entries, self._process = {}, os.getpid()
            entry = self._entries.get(name)
            if entry is None:
                while len(self._entries) >= MAX_KEYS:
                    del self._entries[next(iter(self._entries))]
                entry = self._entries[name] = _Entry()
            return entry
