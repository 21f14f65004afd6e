"""Arguments that are counts, checked."""

from __future__ import annotations

from operator import index
from typing import Any

__all__ = ["checked_size", "optional_size"]


def checked_size(value: Any, what: str) -> int:
    """Check a number of bytes or rows that has to be 1 at least; `what` is what messages call it."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is a whole number, not {value!r}")
    number = index(value)
    if number < 1:
        raise ValueError(f"{what} must be at least 1, not {number}")
    return number


def optional_size(value: Any, what: str) -> int | None:
    """Check the same, or None."""
    return None if value is None else checked_size(value, what)
