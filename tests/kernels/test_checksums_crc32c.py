"""CRC-32C against a bitwise oracle."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.kernels.engines import engines

pytestmark = engines


def bitwise_crc32c(data: bytes) -> int:
    """Compute the remainder by the polynomial 0x1EDC6F41 bit by bit, all bits reflected."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def crc32c(engine, data: bytes) -> int:
    return engine.crc32c(np.frombuffer(data, np.uint8), len(data))


def test_known_values(engine):
    """Values of RFC 3720, appendix B.4, and the usual check value."""
    assert crc32c(engine, b"") == 0
    assert crc32c(engine, b"123456789") == 0xE3069283
    assert crc32c(engine, bytes(32)) == 0x8A9136AA
    assert crc32c(engine, b"\xff" * 32) == 0x62A8AB43
    assert crc32c(engine, bytes(range(32))) == 0x46DD794E
    assert crc32c(engine, bytes(range(31, -1, -1))) == 0x113FDB5C


@given(data=st.binary(max_size=200))
def test_any_bytes(engine, data):
    assert crc32c(engine, data) == bitwise_crc32c(data)


def test_bytes_after_the_length_are_ignored(engine):
    data = np.frombuffer(b"123456789xyz", np.uint8)
    assert engine.crc32c(data, 9) == 0xE3069283
