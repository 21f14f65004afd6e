"""Check integer arguments: counts, sizes and numbers of threads."""

from __future__ import annotations

import os
from operator import index
from typing import Any

__all__ = ["check_optional_positive_int", "check_positive_int"]


def check_positive_int(value: Any, name: str) -> int:
    """Check an int that must be at least 1, such as a number of bytes or rows; `name` is used in messages."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, not {value!r}")
    number = index(value)
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")
    return number


def check_optional_positive_int(value: Any, name: str) -> int | None:
    """Check an int that must be at least 1, or None."""
    return None if value is None else check_positive_int(value, name)


def check_row_count(value: Any, name: str) -> int:
    """Check a number of rows, 0 or more; `name` is used in messages."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {value!r}") from None
    if number < 0:
        raise ValueError(f"{name} must be at least 0, not {number}")
    return number


def thread_count(threads: int | None) -> int:
    """Return the number of threads; None means ``NUMPARQ_THREADS``, or every core that this process may use."""
    if threads is None:
        chosen = os.environ.get("NUMPARQ_THREADS")
        if chosen:
            return _env_thread_count(chosen)
        if hasattr(os, "sched_getaffinity"):
            return max(len(os.sched_getaffinity(0)), 1)
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads must be an int or None, not {threads!r}")
    count = index(threads)
    if count < 1:
        raise ValueError(f"threads must be at least 1, not {count}")
    return count


def _env_thread_count(text: str) -> int:
    """Parse the value of ``NUMPARQ_THREADS``."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"NUMPARQ_THREADS must be an int of at least 1, not {text!r}")
    return int(text)
