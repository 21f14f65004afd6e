"""Scratch buffers of a thread, reused for every page and every read."""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

import numpy as np

from numparq.errors import LimitError
from numparq.kernels.tables import SLACK
from numparq.util.pluralize import pluralize

# Idle buffers between reads: at most so many threads' sets, and no buffer larger than this.
MAX_IDLE_THREADS = 16
MAX_IDLE_BUFFER_BYTES = 8 << 20


class ScratchShare(NamedTuple):
    """A thread's share of the read's ``memory_limit``.

    Bytes of a buffer (None: any), of pages fetched at once, and of a row group's values in the predicate cache.
    """

    limit: int | None
    window_bytes: int
    cached_bytes: int = sys.maxsize


UNLIMITED = ScratchShare(None, sys.maxsize)


class Scratch:
    """Reusable buffers of one thread, by purpose.

    Attributes
    ----------
    carried_prefixes : dict of (int, int) to bytes
        By chunk and row: the last string before that page, for prefixes carried over (PARQUET-246).
        Belongs to the current job.
    kernel_tables : dict of type to object
        Small kernel tables, by class, made once a thread; they may hold buffers.
    limit : int or None
        Maximum bytes of a buffer, part of the read's ``memory_limit``.
    window_bytes : int
        Bytes of pages that are fetched together, at most; half as many are decompressed together.
    cached_bytes : int
        Bytes of a row group's values in the predicate cache, at most.
    """

    def __init__(self, share: ScratchShare = UNLIMITED) -> None:
        self.limit, self.window_bytes, self.cached_bytes = share
        self._buffers: dict[str, np.ndarray] = {}
        self.carried_prefixes: dict[tuple[int, int], bytes] = {}
        self.kernel_tables: dict[type, Any] = {}

    def buffer(self, purpose: str, size: int) -> np.ndarray:
        """Return a uint8 buffer of at least `size` bytes plus SLACK, with arbitrary contents.

        A buffer taken before for the same purpose is the same memory. Raises LimitError for more than `limit` bytes.
        """
        if self.limit is not None and size > self.limit:
            raise LimitError(
                f"a page takes {pluralize(size, 'byte')} while it is decoded, and the share of memory_limit "
                "for this is "
                f"{pluralize(self.limit, 'byte')}; raise memory_limit"
            )
        buffer = self._buffers.get(purpose)
        if buffer is None or len(buffer) < size + SLACK:
            self._buffers.pop(purpose, None)
            buffer = allocate(max(size + size // 4, 4096) + SLACK)
            self._buffers[purpose] = buffer
        return buffer

    def release(self) -> None:
        """Hand the buffers over to later reads, but for large ones; no thread may use them any more."""
        self.limit, self.window_bytes, self.cached_bytes = UNLIMITED
        if len(_idle) >= MAX_IDLE_THREADS:
            return
        for purpose, buffer in [*self._buffers.items()]:
            if len(buffer) > MAX_IDLE_BUFFER_BYTES:
                del self._buffers[purpose]
                self.kernel_tables.clear()  # they may hold it
        _idle.append(self)


_idle: list[Scratch] = []


class ThreadScratch:
    """One `Scratch` for each thread of a read; idle ones are reused by later reads, up to a size.

    `share` is that of each `Scratch`.
    """

    def __init__(self, share: ScratchShare = UNLIMITED) -> None:
        self.share = share
        self._local = threading.local()
        self._taken: list[Scratch] = []
        self._cached = 0

    def reserve_cache(self, num_bytes: int) -> bool:
        """Whether the predicate cache may hold further values: all row groups share what two of each thread may."""
        if self._cached + num_bytes > 2 * self.share.cached_bytes * max(len(self._taken), 1):
            return False
        self._cached += num_bytes
        return True

    def get(self) -> Scratch:
        """Return the calling thread's buffers."""
        try:
            found: Scratch = self._local.scratch
            return found
        except AttributeError:
            try:
                scratch = _idle.pop()
            except IndexError:
                scratch = Scratch()
            self._local.scratch = scratch
            scratch.limit, scratch.window_bytes, scratch.cached_bytes = self.share
            self._taken.append(scratch)
            return scratch

    def close(self) -> None:
        """Return all buffers for later reads; no thread may use them any more."""
        for scratch in self._taken:
            scratch.release()
        self._taken.clear()
        self._local = threading.local()


def allocate(size: int, dtype: str | np.dtype = "u1") -> np.ndarray:
    """Return an uninitialised array of `size` items; LimitError if there is no memory for it."""
    try:
        return np.empty(size, dtype)
    except (MemoryError, ValueError):
        raise LimitError(
            f"a buffer of {pluralize(size * np.dtype(dtype).itemsize, 'byte')} cannot be allocated; read "
            "fewer columns or rows"
        ) from None
