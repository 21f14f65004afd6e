"""A process that is killed at a chosen step."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

__all__ = ["run_killed_at_step"]

# What changes something in a file system.
STEPS = ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "fsync", "write")


def run_killed_at_step(step: int, work: Callable[[], object], names: tuple[str, ...] = STEPS) -> bool:
    """Do something in a process that is killed at its nth change of the file system; whether it got there.

    Parameters
    ----------
    step : int
        Changes that are made before.
    work : callable
        What is done.
    names : tuple of str
        The functions of `os` that count as changes.
    """
    child = os.fork()
    if not child:
        left = step

        def counted(change: Callable) -> Callable:
            def do(*arguments: object, **options: object) -> object:
                nonlocal left
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return change(*arguments, **options)

            return do

        status = 1
        try:
            for name in names:
                setattr(os, name, counted(getattr(os, name)))
            work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0
