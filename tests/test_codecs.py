"""What codecs' libraries have to be told."""

from __future__ import annotations

from numparq.codecs import LZ4_RAW, decompressor

# A block of 84 bytes, whose first four are 83 when they are read as a length.
BLOCK = bytes.fromhex(
    "53000000fa00010033bd00ba0a003000000505000002003058008d070090000000800012c000800b00f010c06200bd4080c0c000003f7f00"
    "417f807fbf8080807f4200423fff7f7f8000"
)


def test_a_block_of_lz4_that_seems_to_begin_with_its_length():
    out = bytearray(84)
    decompressor(LZ4_RAW)(BLOCK, out)
    assert out[:12] == bytes.fromhex("000000fa0000000000000000")
    assert out[-6:] == bytes.fromhex("3fff7f7f8000")
