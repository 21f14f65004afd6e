"""Scratch buffers of a thread, reused for every page and every read."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from numparq.errors import LimitError
from numparq.kernels.tables import SLACK

# What is kept between reads: the buffers of so many threads, none of them larger than so many bytes.
MAX_IDLE_THREADS = 16
MAX_IDLE_BUFFER_BYTES = 8 << 20


class Scratch:
    """The buffers of one thread, by what they are for.

    Attributes
    ----------
    strings : dict of (int, int) to bytes
        By chunk and row, the string in front of a page, where pages cannot be read without; of the job at hand.
    tables : dict of type to object
        Small tables that are made once for the thread, by what they are; they may hold buffers.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}
        self.strings: dict[tuple[int, int], bytes] = {}
        self.tables: dict[type, Any] = {}

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

    def shrink(self, size: int) -> None:
        """Give buffers back that are larger than `size` bytes, and the tables, which may hold them."""
        large = [purpose for purpose, buffer in self._buffers.items() if len(buffer) > size]
        for purpose in large:
            del self._buffers[purpose]
        if large:
            self.tables.clear()


_idle: list[Scratch] = []


def borrow_scratch() -> Scratch:
    """Give the calling thread buffers, to be given back by `return_scratch`."""
    try:
        return _idle.pop()
    except IndexError:
        return Scratch()


def return_scratch(scratch: Scratch) -> None:
    """Let later reads have buffers; no thread may use them any more."""
    if len(_idle) < MAX_IDLE_THREADS:
        scratch.shrink(MAX_IDLE_BUFFER_BYTES)
        _idle.append(scratch)


class ThreadScratch:
    """One `Scratch` for each thread of a read; between reads they wait for the next one, up to a size."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._taken: list[Scratch] = []

    def get(self) -> Scratch:
        """Give the calling thread's."""
        try:
            return self._local.scratch
        except AttributeError:
            scratch = self._local.scratch = borrow_scratch()
            self._taken.append(scratch)
            return scratch

    def close(self) -> None:
        """Let later reads have the buffers; no thread may use them any more."""
        for scratch in self._taken:
            return_scratch(scratch)
        self._taken.clear()
        self._local = threading.local()


def allocate(size: int, dtype: str | np.dtype = "u1") -> np.ndarray:
    """Allocate an array of `size` items; LimitError where there is no memory for it."""
    try:
        return np.empty(size, dtype)
    except (MemoryError, ValueError):
        raise LimitError(
            f"the file asks for {size * np.dtype(dtype).itemsize:,} bytes of memory at once; read fewer columns or rows"
        ) from None
