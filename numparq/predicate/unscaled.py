"""Big-endian two's complement numbers as bytes that compare unsigned: their sign bit turned round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .byte_strings import ByteStrings
from .ranges import TOP, Ranges

_CHUNK_BYTES = 1 << 24


def offset_binary(ranges: Ranges, width: int) -> Ranges:
    """Write ranges of ints as ranges of bytes of one size; what does not fit lies beyond the ends."""
    half = 1 << 8 * width - 1

    def edge(key: Any) -> Any:
        if key >= half:
            return TOP
        return b"" if key <= -half else (key + half).to_bytes(width, "big")

    return tuple((edge(low), edge(high)) for low, high in ranges if low < half and high > -half)


def inside_unscaled(
    strings: ByteStrings, ranges: Ranges, inside: Callable[[ByteStrings, Ranges], np.ndarray]
) -> np.ndarray:
    """Say of numbers of any length whether they are in a set.

    Parameters
    ----------
    strings : ByteStrings
        Big-endian two's complement; no bytes are 0.
    ranges : Ranges
        Of ints.
    inside : callable
        Says it of bytes that compare unsigned.
    """
    width = max(int(strings.sizes.max(initial=1)), 1)
    step = max(_CHUNK_BYTES // width, 1)
    wanted = offset_binary(ranges, width)
    parts = [
        inside(_widened(strings, slice(start, start + step), width), wanted)
        for start in range(0, len(strings.sizes), step)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, bool)


def _widened(strings: ByteStrings, rows: slice, width: int) -> ByteStrings:
    """Extend numbers by their sign to one size, and turn their sign bits round."""
    starts, sizes = strings.starts[rows], strings.sizes[rows]
    last = len(strings.data) - 1
    negative = (sizes > 0) & (strings.data[np.minimum(starts, last)] >= 0x80)
    wide = np.empty((len(sizes), width), np.uint8)
    for column in range(width):
        place = column - (width - sizes)  # in the number; before it begins, there is its sign
        stored = strings.data[np.clip(starts + place, 0, last)]
        wide[:, column] = np.where(place >= 0, stored, np.where(negative, 0xFF, 0))
    wide[:, 0] ^= 0x80
    return ByteStrings.of_width(wide.reshape(-1), width)
