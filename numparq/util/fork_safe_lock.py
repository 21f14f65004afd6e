"""Locks that are free in a forked child, whichever thread of the parent held them."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from _thread import RLock

_locks: WeakSet[threading.Lock | RLock] = WeakSet()


def fork_safe_lock() -> threading.Lock:
    """Return a lock that is free in a forked child; only for state that is whole whenever it is read."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def fork_safe_rlock() -> RLock:
    """Return a reentrant `fork_safe_lock`."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # type: ignore[union-attr]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
