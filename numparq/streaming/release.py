"""Memory that is freed given back to the system: allocators keep it otherwise, as much again as is in use."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

__all__ = ["give_back"]


@lru_cache(maxsize=1)
def _trim() -> Any:
    """Give glibc's `malloc_trim`; None where there is another allocator."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim


def give_back() -> None:
    """Give back what is free. glibc keeps up to 64 MiB for each thread that has freed a large array."""
    trim = _trim()
    if trim is not None:
        trim(0)
