"""Random numbers and strings for encoders; Hypothesis strategies and settings for kernel tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

COUNTS = (0, 1, 2, 32, 33, 34, 128, 129, 130, 160, 161, 257, 1000)


def random_numbers(rng: np.random.Generator, bits: int, count: int) -> np.ndarray:
    """Return numbers whose deltas take few bits, many, or both in turn."""
    kind = int(rng.integers(0, 5))
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    if kind == 0:
        numbers = rng.integers(least, most, count, endpoint=True)
    elif kind == 1:
        numbers = rng.choice([least, most, 0, -1], count)
    elif kind == 2:
        numbers = np.arange(count) * int(rng.integers(-9, 10)) + int(rng.integers(-1000, 1000))
    elif kind == 3:
        numbers = rng.integers(-50, 50, count).cumsum()
    else:
        shifts = np.repeat(rng.integers(0, bits, count // 20 + 1), 20)[:count]
        numbers = rng.integers(least, most, count, endpoint=True) >> shifts
    return numbers.astype(f"i{bits // 8}")


def random_strings(rng: np.random.Generator, count: int) -> list[bytes]:
    """Return strings with long or short common prefixes."""
    kind = int(rng.integers(0, 4))
    if kind == 0:
        return [rng.bytes(int(rng.choice([0, 1, 7, 8, 9, 100]))) for _ in range(count)]
    if kind == 1:
        return [b""] * count
    stem = rng.bytes(int(rng.choice([1, 8, 15, 40])))
    strings = [stem[: int(rng.integers(0, len(stem) + 1))] + rng.bytes(int(rng.integers(0, 3))) for _ in range(count)]
    return sorted(strings) if kind == 2 else strings


SEEDS = st.integers(0, (1 << 32) - 1)
STRINGS = st.lists(
    st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"a", b"ab" * 9, b"ab" * 9 + b"c"])), max_size=40
)
