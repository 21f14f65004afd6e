"""UTF-8 validation of strings."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, load64
from numparq.kernels.registry import helper, kernel
from numparq.kernels.status import BAD_UTF8

_HIGH_BITS = np.uint64(0x8080808080808080)


@helper
def is_ascii(data, pos, end):
    """Whether no byte of ``data[pos:end]`` has its high bit set."""
    high = np.uint64(0)
    while pos + 8 <= end:
        high |= load64(data, pos)
        pos += 8
    if high & _HIGH_BITS:
        return False
    while pos < end:
        if load8(data, pos) >= 0x80:
            return False
        pos += 1
    return True


@helper
def sequence_length(data, pos, end):
    """Return the length of the well-formed UTF-8 sequence at `pos`, or 0 (Unicode 15, table 3-7)."""
    lead = load8(data, pos)
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if length > end - pos:
        return 0
    second = load8(data, pos + 1)
    low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
    if second < low or second > high:
        return 0
    for i in range(2, length):
        if load8(data, pos + i) & 0xC0 != 0x80:
            return 0
    return length


@helper
def is_utf8(data, pos, end):
    """Whether ``data[pos:end]`` is well-formed UTF-8."""
    if is_ascii(data, pos, end):
        return True
    while pos < end:
        length = sequence_length(data, pos, end)
        if length == 0:
            return False
        pos += length
    return True


@kernel("i8 x u1")
def check_utf8(offsets, count, data):
    """Check `count` strings ``data[offsets[i]:offsets[i + 1]]``; return 0 or BAD_UTF8."""
    if is_ascii(data, offsets[0], offsets[count]):
        return 0
    for i in range(count):
        if not is_utf8(data, offsets[i], offsets[i + 1]):
            return BAD_UTF8
    return 0
