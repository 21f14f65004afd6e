"""Buffers with guard bytes on both sides."""

from __future__ import annotations

import numpy as np

GUARD_BYTES = 256


class GuardedBuffer:
    """An array between two stretches of random bytes; at first it holds random bytes, too.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the bytes come from.
    size : int
        Items.
    dtype : str
        The array's dtype.

    Attributes
    ----------
    array : numpy.ndarray
        What a kernel may write to.
    """

    def __init__(self, rng: np.random.Generator, size: int, dtype: str = "u1") -> None:
        item = np.dtype(dtype).itemsize
        self._end = GUARD_BYTES + size * item
        self._memory = random_bytes(rng, self._end + GUARD_BYTES)
        self._before = self._memory[:GUARD_BYTES].tobytes()
        self._behind = self._memory[self._end :].tobytes()
        self.array = self._memory[GUARD_BYTES : self._end].view(dtype)

    def check(self) -> None:
        """Raise if a guard was overwritten."""
        assert self._memory[:GUARD_BYTES].tobytes() == self._before, "bytes in front of a buffer were written to"
        assert self._memory[self._end :].tobytes() == self._behind, "bytes behind a buffer were written to"


_POOL = np.random.default_rng(0).integers(0, 256, 1 << 18, np.uint8)


def random_bytes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return pseudo-random bytes from a pool."""
    start = int(rng.integers(0, len(_POOL) // 2))
    if count <= len(_POOL) // 2:
        return _POOL[start : start + count].copy()
    return rng.integers(0, 256, count, np.uint8)


def with_slack(rng: np.random.Generator, data: bytes, slack: int = 64) -> np.ndarray:
    """Return bytes as an array followed by random bytes."""
    return np.concatenate([np.frombuffer(data, np.uint8), random_bytes(rng, slack)])
