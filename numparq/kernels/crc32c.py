"""CRC-32C (the polynomial of iSCSI, RFC 3385), which references of the FILE type may have as a checksum."""

from __future__ import annotations

import numpy as np

from .memory import load8
from .registry import kernel


def _table() -> np.ndarray:
    """Give what a byte does to the remainder."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table.astype(np.int64)


_TABLE = _table()


@kernel("u1 x")
def crc32c(data, count):
    """Give the CRC-32C of the first `count` bytes."""
    crc = 0xFFFFFFFF
    for i in range(count):
        crc = (crc >> 8) ^ _TABLE[(crc ^ load8(data, i)) & 0xFF]
    return crc ^ 0xFFFFFFFF
