"""Damage to bytes: truncation anywhere, and seeded bit flips."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

Case = tuple[str, bytes]  # what was done, in words that suffice to do it again; the bytes that came of it


def truncations(data: bytes, most: int) -> Iterator[Case]:
    """Yield the file cut at up to `most` points, including the first and last bytes, and with its middle removed."""
    if not most:
        return
    points = {0, 1, 3, 4, 7, 8, 11, 12, len(data) - 8, len(data) - 4, len(data) - 1}
    points.update(np.linspace(0, len(data) - 1, most).astype(int).tolist())
    for point in sorted(point for point in points if 0 <= point < len(data)):
        yield f"cut at {point}", data[:point]
        yield f"begun at {point}", data[point:]
        # With the footer still there, and all offsets in it wrong.
        yield f"without the 5 bytes at {point}", data[:point] + data[point + 5 :]


def flipped_bytes(data: bytes, seed: int, first: int, count: int) -> Iterator[Case]:
    """Yield the file with 1 to 3 flipped bytes; damage ``n`` of a seed does not depend on `first` and `count`."""
    for number in range(first, first + count):
        rng = np.random.default_rng([seed, number])
        damaged = bytearray(data)
        for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
            place = int(rng.integers(0, len(data)))
            kind = int(rng.integers(0, 4))
            damaged[place] = (
                damaged[place] ^ 1 << int(rng.integers(0, 8)),
                int(rng.integers(0, 256)),
                (damaged[place] + int(rng.choice([-2, -1, 1, 2]))) & 255,
                int(rng.choice([0, 1, 127, 128, 255])),
            )[kind]
        yield f"seed {seed}, flip {number}", bytes(damaged)
