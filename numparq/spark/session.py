"""A task, seen from within: what numparq does first in one of Spark's Python workers."""

from __future__ import annotations

import os
import sys

__all__ = ["begin_task", "task_threads"]


def begin_task() -> None:
    """Have numparq take one thread from now on, where this is a task: Spark runs as many tasks as there are cores.

    A ``NUMPARQ_THREADS`` that is set stays; so does whatever a call says itself.
    """
    if _is_task():
        os.environ.setdefault("NUMPARQ_THREADS", "1")


def task_threads() -> int | None:
    """Say how many threads a read or write is to have that nobody gave a number for.

    Returns
    -------
    int or None
        1 in a task; elsewhere None, which is every core, or what ``NUMPARQ_THREADS`` says.
    """
    return 1 if _is_task() else None


def _is_task() -> bool:
    """Whether Spark runs a task in this process; where pyspark was never imported, it does not."""
    module = sys.modules.get("pyspark.taskcontext")
    return module is not None and module.TaskContext.get() is not None
