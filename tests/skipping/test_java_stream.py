"""The Java stream around a Bloom filter: its header by the grammar."""

from __future__ import annotations

import pytest

from numparq.skipping.java_stream import format_stream, parse_header

STREAM = format_stream(bytes(20))
HEADER = parse_header(STREAM)


def test_header_of_version_4():
    assert HEADER == 309
    assert STREAM[HEADER:] == b"w\x14" + bytes(20) + b"x"
    assert format_stream(bytes(1300))[HEADER : HEADER + 5] == b"z\0\0\x04\0"


def test_cut_header():
    assert [parse_header(STREAM[:end]) for end in range(HEADER)] == [0] * HEADER


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"BloomFilterImpl", b"BloomFilterImpV"),  # another class has other hashes
        (b"index.metadata.Bloom", b"index.metadata.Gloom"),
        (b"\xac\xed\0\5", b"\xac\xed\0\6"),
        (b"sr\0,org", b"tr\0,org"),
        (b"\3\0\2I", b"\2\0\2I"),  # without a method that writes blocks
        (b"\2\0\1L\0\x0bbloomFilter", b"\3\0\1L\0\x0bbloomFilter"),
        (b"\2\0\1L\0\x0bbloomFilter", b"\2\0\1I\0\x0bbloomFilter"),
        (b"\2\0\1L\0\x0bbloomFilter", b"\2\xff\xffL\0\x0bbloomFilter"),
        (b"MetadataType`?]", b"MetadataTyp\xff`?]"),
    ],
)
def test_other_streams(old, new):
    assert old in STREAM
    changed = STREAM.replace(old, new, 1)
    assert parse_header(changed) == (HEADER if old == b"MetadataType`?]" else 0)


def test_serial_numbers_and_fields_differ_between_versions():
    """Spark 4.3 has another serial number and no fields; a type may be a reference to an earlier string."""
    place = STREAM.index(b"BloomFilterImpl") + len(b"BloomFilterImpl")
    assert parse_header(STREAM[:place] + bytes(8) + b"\3\0\0xp" + b"w") == place + 13
    assert parse_header(STREAM[:place] + bytes(8) + b"\3\0\1L\0\1aq\0\0\0\0xp" + b"w")
    assert not parse_header(STREAM[:place] + bytes(8) + b"\3\0\1L\0\1az\0\0\0\0xp" + b"w")
