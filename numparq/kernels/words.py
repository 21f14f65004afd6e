"""Bit length, byte swap and big-endian prefixes of 64-bit words."""

from __future__ import annotations

import numpy as np

from .memory import load8, load64
from .registry import helper, inlined

_BYTES = np.uint64(0x00FF00FF00FF00FF)
_PAIRS = np.uint64(0x0000FFFF0000FFFF)


@helper
def bit_length(value):
    """Return the bit length of a uint64."""
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> np.uint64(step) != 0:
            value = value >> np.uint64(step)
            length += step
    return length + np.int64(value)


@inlined
def swap_bytes(word):
    """Reverse the bytes of a uint64 (one instruction after LLVM)."""
    word = ((word >> np.uint64(8)) & _BYTES) | ((word & _BYTES) << np.uint64(8))
    word = ((word >> np.uint64(16)) & _PAIRS) | ((word & _PAIRS) << np.uint64(16))
    return (word >> np.uint64(32)) | (word << np.uint64(32))


@inlined
def big_endian_prefix(data, size, start, end):
    """Return the first eight bytes of a value as a big-endian uint64, zero-padded; `data` has `size` bytes."""
    count = min(end - start, 8)
    word = np.uint64(0)
    if count <= 0:
        return word
    if start + 8 <= size:
        unused = np.uint64(64 - 8 * count)
        return (swap_bytes(load64(data, start)) >> unused) << unused
    for i in range(count):
        word |= np.uint64(load8(data, start + i)) << np.uint64(56 - 8 * i)
    return word
