"""CRC-32 of pages, against zlib's."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from driving.buffers import with_slack
from driving.engines import ENGINES

from numparq.errors import BAD_CRC
from numparq.kernels import tables as t

pytestmark = pytest.mark.parametrize("engine", ENGINES, ids=repr)


def bodies(rng, sizes):
    """Make pages of random bytes, one after the other with a few bytes in between: (raw, page table)."""
    pages = np.zeros((len(sizes), t.PAGE_FIELDS), np.int64)
    raw = b""
    for page, size in zip(pages, sizes, strict=True):
        body = rng.bytes(size)
        raw += rng.bytes(int(rng.integers(0, 9)))
        page[t.P_BODY], page[t.P_COMPRESSED], page[t.P_CRC] = len(raw), size, zlib.crc32(body)
        raw += body
    return raw, pages


def check(engine, raw, pages, first=0):
    state = np.full(1, -1, np.int64)
    status = engine.check_crcs(pages.reshape(-1), first, len(pages), with_slack(np.random.default_rng(0), raw), state)
    return status, int(state[0])


def test_sizes_and_places(engine):
    rng = np.random.default_rng(0)
    raw, pages = bodies(rng, [*range(engine.size(130, 40)), engine.size(100_000)])
    assert check(engine, raw, pages) == (0, -1)


def test_every_damaged_bit_is_noticed(engine):
    rng = np.random.default_rng(1)
    raw, pages = bodies(rng, [3, 17, 5])
    start = pages[1, t.P_BODY]
    for bit in range(8 * 17):
        damaged = bytearray(raw)
        damaged[start + bit // 8] ^= 1 << bit % 8
        assert check(engine, bytes(damaged), pages) == (BAD_CRC, 1)
        assert check(engine, bytes(damaged), pages, first=2) == (0, -1)


def test_pages_without_a_crc_are_passed_over(engine):
    raw, pages = bodies(np.random.default_rng(2), [9, 9])
    pages[0, t.P_CRC] = -1
    pages[1, t.P_CRC] ^= 1
    assert check(engine, raw, pages) == (BAD_CRC, 1)
    pages[1, t.P_CRC] = -1
    assert check(engine, raw, pages) == (0, -1)
