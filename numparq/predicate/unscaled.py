"""Big-endian two's complement numbers as bytes that compare unsigned: their sign bit turned round."""

from __future__ import annotations

from typing import Any

import numpy as np

from .byte_set import ByteSet, Strings
from .joining import Mask
from .ranges import TOP, Ranges
from .values import Values

_CHUNK_BYTES = 1 << 24


def offset_binary(ranges: Ranges, width: int) -> Ranges:
    """Write ranges of ints as ranges of bytes of one size; what does not fit lies beyond the ends."""
    half = 1 << 8 * width - 1

    def edge(key: Any) -> Any:
        if key >= half:
            return TOP
        return b"" if key <= -half else (key + half).to_bytes(width, "big")

    return tuple((edge(low), edge(high)) for low, high in ranges if low < half and high > -half)


def join_unscaled(column: Values, ranges: Ranges, into: Mask) -> None:
    """Join with a mask whether numbers of any length are in a set.

    Parameters
    ----------
    column : Values
        Byte strings: big-endian two's complement; no bytes are 0.
    ranges : Ranges
        Of ints.
    into : Mask
        Of as many rows.
    """
    assert column.offsets is not None
    starts = column.offsets[:-1].astype(np.int64)
    sizes = column.offsets[1:] - starts
    data = np.ascontiguousarray(column.values).view(np.uint8)
    width = max(int(sizes.max(initial=1)), 1)
    step = max(_CHUNK_BYTES // width, 1)
    wanted = ByteSet(offset_binary(ranges, width))
    for start in range(0, len(sizes), step):
        rows = slice(start, start + step)
        wide = _widened(data, starts[rows], sizes[rows], width)
        wanted.join(Strings.of_width(wide, width), into.part(start, start + step))


def _widened(data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, width: int) -> np.ndarray:
    """Extend numbers by their sign to one size, and turn their sign bits round."""
    if not len(data):
        data = np.zeros(1, np.uint8)
    last = len(data) - 1
    negative = (sizes > 0) & (data[np.minimum(starts, last)] >= 0x80)
    wide = np.empty((len(sizes), width), np.uint8)
    for column in range(width):
        place = column - (width - sizes)  # in the number; before it begins, there is its sign
        stored = data[np.clip(starts + place, 0, last)]
        wide[:, column] = np.where(place >= 0, stored, np.where(negative, 0xFF, 0))
    wide[:, 0] ^= 0x80
    return wide.reshape(-1)
