"""Counting bits: how wide the numbers are that are to be packed."""

from __future__ import annotations

import numpy as np

from .registry import helper


@helper
def bit_length(value):
    """Count the bits of a uint64 up to its highest one that is set."""
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> np.uint64(step) != 0:
            value = value >> np.uint64(step)
            length += step
    return length + np.int64(value)
