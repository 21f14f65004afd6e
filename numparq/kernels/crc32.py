"""CRC-32 (the polynomial of gzip) of page bodies: by carry-less multiplication or, eight bytes a step, by tables."""

from __future__ import annotations

import numpy as np

from ..errors import BAD_CRC
from .carry_less import POLYNOMIAL, fold_crc32
from .memory import load8, load64
from .registry import helper, kernel
from .tables import P_BODY, P_COMPRESSED, P_CRC, PAGE_FIELDS


def _tables() -> np.ndarray:
    """Give the eight tables of 256 entries, one after the other: table k is for a byte with k bytes behind it."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1).astype(np.uint32)
    tables = [table]
    for _ in range(7):
        tables.append((tables[-1] >> 8) ^ table[tables[-1] & 0xFF])
    return np.concatenate(tables)


_TABLES = _tables().astype(np.int64)


@helper
def crc32(data, pos, count):
    """Give the CRC-32 of ``data[pos : pos + count]``."""
    end = pos + count
    crc, pos = fold_crc32(data, pos, end)
    whole = end - ((end - pos) & 7)
    while pos < whole:
        word = load64(data, pos)
        low = np.int64(word & np.uint64(0xFFFFFFFF)) ^ crc
        high = np.int64(word >> np.uint64(32))
        crc = (
            _TABLES[1792 + (low & 0xFF)]
            ^ _TABLES[1536 + ((low >> 8) & 0xFF)]
            ^ _TABLES[1280 + ((low >> 16) & 0xFF)]
            ^ _TABLES[1024 + (low >> 24)]
            ^ _TABLES[768 + (high & 0xFF)]
            ^ _TABLES[512 + ((high >> 8) & 0xFF)]
            ^ _TABLES[256 + ((high >> 16) & 0xFF)]
            ^ _TABLES[high >> 24]
        )
        pos += 8
    for i in range(pos, end):
        crc = (crc >> 8) ^ _TABLES[(crc ^ load8(data, i)) & 0xFF]
    return crc ^ 0xFFFFFFFF


@kernel("i8 x x u1 i8")
def check_crcs(pages, first, last, raw, state):
    """Check the CRC of every page of rows `first` to `last` that has one.

    Returns 0, or BAD_CRC with the page in item 0 of `state`.
    """
    for number in range(first, last):
        page = number * PAGE_FIELDS
        expected = pages[page + P_CRC]
        if expected >= 0 and crc32(raw, pages[page + P_BODY], pages[page + P_COMPRESSED]) != expected:
            state[0] = number
            return BAD_CRC
    return 0
