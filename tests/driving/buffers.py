"""Buffers with guards on both sides."""

from __future__ import annotations

import numpy as np

GUARD_BYTES = 256


class Guarded:
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
        self._memory = rng.integers(0, 256, 2 * GUARD_BYTES + size * item, np.uint8)
        self._end = GUARD_BYTES + size * item
        self._before = self._memory[:GUARD_BYTES].copy()
        self._behind = self._memory[self._end :].copy()
        self.array = self._memory[GUARD_BYTES : self._end].view(dtype)

    def check(self) -> None:
        """Fail where a guard has been written to."""
        assert (self._memory[:GUARD_BYTES] == self._before).all(), "bytes in front of a buffer were written to"
        assert (self._memory[self._end :] == self._behind).all(), "bytes behind a buffer were written to"


def with_slack(rng: np.random.Generator, data: bytes, slack: int = 64) -> np.ndarray:
    """Give bytes as an array, with random ones behind them."""
    return np.concatenate([np.frombuffer(data, np.uint8), rng.integers(0, 256, slack, np.uint8)])
