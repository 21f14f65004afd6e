"""Threads in the background; a forked child has none, and the end of the interpreter starts none."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from .fork_safe_lock import fork_safe_lock

Result = TypeVar("Result")

_starting = fork_safe_lock()  # one for all: a lock of its own costs each read more than it waits here


class BackgroundThreads:
    """At most `count` threads, started when needed, for callers that can also do without."""

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether this process is a forked child, without the threads and what they had in hand."""
        return os.getpid() != self._process

    def submit(self, call: Callable[[], Result]) -> Future[Result] | None:
        """Run a call on a thread; None in a forked child, after `shutdown`, and at the end of the interpreter."""
        if self.is_forked:
            return None
        with _starting:
            self._pool = self._pool or ThreadPoolExecutor(self._count, self._name)
        try:
            return self._pool.submit(call)
        except RuntimeError:  # the handlers of atexit run after the executors have stopped
            return None

    def shutdown(self, wait: bool = True) -> None:
        """Cancel the calls that no thread has begun; wait for the others if `wait`."""
        if self._pool is not None and not self.is_forked:
            self._pool.shutdown(wait=wait, cancel_futures=True)
