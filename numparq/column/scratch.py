"""Scratch buffers: allocated once a thread, and used again for every page that it decodes.

Touching fresh memory costs more than decoding into it; a buffer that is used again stays in the cache.
"""

from __future__ import annotations

import threading

import numpy as np

from ..errors import LimitError
from ..kernels.tables import SLACK


class Scratch:
    """The buffers of one thread, by what they are for."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def take(self, purpose: str, size: int) -> np.ndarray:
        """Give a uint8 buffer of at least `size` bytes and SLACK behind them; what it holds is not kept.

        A buffer taken for the same purpose before is the same memory.
        """
        buffer = self._buffers.get(purpose)
        if buffer is None or len(buffer) < size + SLACK:
            self._buffers.pop(purpose, None)
            buffer = allocate(max(size + size // 4, 4096) + SLACK)
            self._buffers[purpose] = buffer
        return buffer


class ThreadScratch(threading.local):
    """One `Scratch` a thread, for as long as the read lasts."""

    def __init__(self) -> None:
        self.scratch = Scratch()


def allocate(size: int, dtype: str | np.dtype = "u1") -> np.ndarray:
    """Allocate an array of `size` items; LimitError where there is no memory for it."""
    try:
        return np.empty(size, dtype)
    except (MemoryError, ValueError):
        raise LimitError(
            f"the file asks for {size * np.dtype(dtype).itemsize:,} bytes of memory at once; read fewer columns or rows"
        ) from None
