"""Codecs and their framings: whole, empty, concatenated and truncated data; in buffers and in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from numparq import CorruptPageError, read_parquet
from numparq.compression.codecs import decompressor
from numparq.kernels.enums import CODEC_NAMES, LZ4, LZ4_RAW, LZO, UNCOMPRESSED, ZSTD
from support.files.builder import (
    BYTE_ARRAY,
    INT64,
    OPTIONAL,
    RLE_DICTIONARY,
    FileColumn,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_indices,
    encode_levels,
    encode_plain,
)
from support.files.codec_framings import FRAMINGS, big_endian, hadoop, lz4_block, lzo_block, python_lzo, zstd

# A block of 84 bytes; its first four bytes, read as a length, are 83.
BLOCK = bytes.fromhex(
    "53000000fa00010033bd00ba0a003000000505000002003058008d070090000000800012c000800b00f010c06200bd4080c0c000003f7f00"
    "417f807fbf8080807f4200423fff7f7f8000"
)


every_form = pytest.mark.parametrize("form", FRAMINGS)

TEXT = b"abcdefghijklmnopqrstuvwxyz" * 40


def decompressed(codec, data, size):
    out = bytearray(b"\xaa" * size)
    decompressor(codec)(memoryview(data), memoryview(out))
    return bytes(out)


def check_refused(codec, data, size):
    with pytest.raises(CorruptPageError, match=CODEC_NAMES[codec]):
        decompressed(codec, data, size)


@every_form
@pytest.mark.parametrize("data", [TEXT, b"x", b"", bytes(300_000)], ids=["text", "one byte", "nothing", "zeros"])
def test_decompress_whole_data(form, data):
    codec, compress = FRAMINGS[form]
    assert decompressed(codec, compress(data), len(data)) == data


@every_form
def test_cut_at_every_byte(form):
    codec, compress = FRAMINGS[form]
    packed = compress(TEXT)
    for cut in range(1, len(packed)):
        check_refused(codec, packed[:cut], len(TEXT))


@every_form
def test_wrong_uncompressed_size_is_refused(form):
    codec, compress = FRAMINGS[form]
    packed = compress(TEXT)
    for size in (0, 1, len(TEXT) - 1, len(TEXT) + 1, 2 * len(TEXT)):
        check_refused(codec, packed, size)
    check_refused(codec, compress(b""), 1)


# cramjam stops at the end of Brotli's data, and does not report its position.
@pytest.mark.parametrize("form", [form for form in FRAMINGS if form != "brotli"])
@pytest.mark.parametrize("more", [b"\x00", b"\x07", b"\x11", b"\x28\xb5", bytes(9), b"\xff" * 300])
def test_trailing_bytes_are_refused(form, more):
    codec, compress = FRAMINGS[form]
    if more == bytes(9) and form == "lz4 of hadoop":
        more = bytes(10)  # blocks of length zero are valid, see `test_empty_hadoop_data`
    check_refused(codec, compress(TEXT) + more, len(TEXT))
    if len(more) > 4 or form != "lz4 of hadoop":
        check_refused(codec, compress(b"") + more, 0)


@pytest.mark.parametrize("form", ["gzip", "zstd", "zstd with a checksum", "zstd without its size", "lz4 frame"])
def test_concatenated_frames(form):
    codec, compress = FRAMINGS[form]
    parts = [TEXT, b"", b"x", TEXT * 2, b""]
    packed = b"".join(map(compress, parts))
    whole = b"".join(parts)
    assert decompressed(codec, packed, len(whole)) == whole
    check_refused(codec, packed, len(whole) - 1)
    check_refused(codec, packed[:-1], len(whole))
    check_refused(codec, compress(TEXT) * 2, len(TEXT))


def test_zstd_skippable_frames():
    skipped = [(0x184D2A50 + low).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"xyz" for low in range(16)]
    packed = zstd(TEXT).join(skipped)
    assert decompressed(ZSTD, packed, 15 * len(TEXT)) == TEXT * 15
    check_refused(ZSTD, packed[:-1], 15 * len(TEXT))
    assert decompressed(ZSTD, skipped[0], 0) == b""


@pytest.mark.parametrize("level", [-5, 1, 3, 19, 22])
def test_zstd_frame_ends(level):
    """Frames with many blocks of all kinds, and every form of frame header."""
    rng = np.random.default_rng(0)
    for size in (1, 200, 255, 256, 300, 65791, 65792, 70_000, 300_000):
        data = rng.bytes(size // 3) + bytes(size // 3) + TEXT * (size // 3000)
        for checksum in (True, False):
            for content_size in (True, False):
                packed = zstd(data, level=level, write_checksum=checksum, write_content_size=content_size)
                assert decompressed(ZSTD, packed, len(data)) == data
                check_refused(ZSTD, packed[:-1], len(data))
                check_refused(ZSTD, packed + packed[:1], len(data))
                check_refused(ZSTD, packed + packed[:5], len(data))


def test_lz4_block_that_looks_length_prefixed():
    for codec in (LZ4_RAW, LZ4):
        out = decompressed(codec, BLOCK, 84)
        assert out[:12] == bytes.fromhex("000000fa0000000000000000")
        assert out[-6:] == bytes.fromhex("3fff7f7f8000")


# --- Hadoop's framing ------------------------------------------------------------------------------------------------

BLOCKS = pytest.mark.parametrize(("codec", "block"), [(LZ4, lz4_block), (LZO, lzo_block)], ids=["lz4", "lzo"])


@BLOCKS
@pytest.mark.parametrize("cuts", [(), (1,), (100, 200, 900), (1, 500)])
@pytest.mark.parametrize("inner", [None, 64, 100])
def test_hadoop_blocks(codec, block, cuts, inner):
    packed = hadoop(TEXT, block, cuts, inner)
    assert decompressed(codec, packed, len(TEXT)) == TEXT
    check_refused(codec, packed, len(TEXT) + 1)
    check_refused(codec, packed, len(TEXT) - 1)
    for cut in range(1, len(packed), 3):
        check_refused(codec, packed[:-cut], len(TEXT))


@BLOCKS
def test_empty_hadoop_data(codec, block):
    """Hadoop writes only the length 0; Arrow adds an empty block."""
    for packed in (b"", bytes(4), bytes(8), bytes(4) + big_endian(len(block(b""))) + block(b"")):
        assert decompressed(codec, packed, 0) == b""
        check_refused(codec, packed, 1)
    assert decompressed(codec, hadoop(TEXT, block) + bytes(4), len(TEXT)) == TEXT


@BLOCKS
def test_wrong_hadoop_lengths_are_refused(codec, block):
    packed = block(TEXT)
    size, length = len(TEXT), len(packed)
    for stream in (
        big_endian(size + 1) + big_endian(length) + packed,
        big_endian(size - 1) + big_endian(length) + packed,
        big_endian(size) + big_endian(length - 1) + packed,
        big_endian(size) + big_endian(length + 1) + packed,
        big_endian(size) + big_endian(0) + packed,
        big_endian(size) + bytes(400),
        big_endian(1 << 31) + big_endian(length) + packed,
        big_endian(size) + big_endian((1 << 32) - 1) + packed,
        big_endian(0) + big_endian(length) + packed,
        (big_endian(size) + big_endian(length) + packed) * 2,
    ):
        check_refused(codec, stream, size)


def test_python_lzo_headers():
    packed = python_lzo(TEXT)
    check_refused(LZO, b"\xf2" + packed[1:], len(TEXT))
    check_refused(LZO, packed[:1] + big_endian(len(TEXT) + 1) + packed[5:], len(TEXT))
    assert decompressed(LZO, b"\xf1" + packed[1:], len(TEXT)) == TEXT


def test_lzo_written_by_lzallright():
    library = pytest.importorskip("lzallright").LZOCompressor()
    data = np.random.default_rng(1).integers(0, 9, 600_000, np.uint8).tobytes()
    assert decompressed(LZO, hadoop(data, library.compress, (), 256 << 10), len(data)) == data


# --- in files ---------------------------------------------------------------------------------------------------------

NUMBERS = list(range(100, 400))
WHOLE = encode_plain(INT64, NUMBERS)


def packed_page(page, compress, levels_bytes=0):
    """Compress a page's body after its level sections."""
    page.header.uncompressed_page_size = len(page.body)
    page.body = page.body[:levels_bytes] + compress(page.body[levels_bytes:])
    return page


def column_of(pages, codec, physical=INT64, rows=300, repetition=0):
    built = build_file([rows], [FileColumn("a", physical, [pages], repetition, facts={"codec": codec})])
    values = read_parquet(built.stored(), threads=1)["a"]
    pd.testing.assert_series_equal(read_parquet(built.stored(), threads=2)["a"], values)
    return values.tolist()


def v2(values, nulls=0, section=b""):
    page = data_page_v2(len(values) + nulls, nulls, section, encode_plain(INT64, values))
    page.header.data_page_header_v2.is_compressed = True
    return page


@every_form
def test_data_pages_v1_and_v2(form):
    codec, compress = FRAMINGS[form]
    assert column_of([packed_page(data_page(len(NUMBERS), WHOLE), compress)], codec) == NUMBERS
    half = len(NUMBERS) // 2
    pages = [packed_page(v2(part), compress) for part in (NUMBERS[:half], NUMBERS[half:])]
    assert column_of(pages, codec) == NUMBERS


@every_form
def test_dictionary_pages(form):
    codec, compress = FRAMINGS[form]
    entries = [b"one", b"", b"three" * 9]
    codes = [0, 1, 2, 2, 1, 0, 0, 0]
    pages = [
        packed_page(dictionary_page(3, encode_plain(BYTE_ARRAY, entries)), compress),
        packed_page(data_page(8, b"\x02" + encode_indices(codes, 2), RLE_DICTIONARY), compress),
    ]
    assert column_of(pages, codec, BYTE_ARRAY, 8) == [entries[code] for code in codes]
    pages = [
        packed_page(dictionary_page(0, b""), compress),
        packed_page(data_page(4, encode_levels([0] * 4)), compress),
    ]
    assert pd.isna(column_of(pages, codec, BYTE_ARRAY, 4, OPTIONAL)).all()


@every_form
def test_empty_pages(form):
    """Pages without values: no bytes, or the codec's output for no bytes."""
    codec, compress = FRAMINGS[form]
    whole = packed_page(data_page(len(NUMBERS), WHOLE), compress)
    for empty in (data_page(0, b""), packed_page(data_page(0, b""), compress), v2([]), packed_page(v2([]), compress)):
        assert column_of([empty, whole, empty], codec) == NUMBERS
        assert column_of([empty], codec, rows=0) == []


@every_form
def test_empty_value_sections_of_v2_pages(form):
    """Version 2 pages of nulls only: the empty section is left out, or compressed as the header says."""
    codec, compress = FRAMINGS[form]
    section = encode_indices([0] * 8, 1)
    expected = NUMBERS[:8] + [None] * 8
    whole = packed_page(v2(NUMBERS[:8], 0, encode_indices([1] * 8, 1)), compress, len(section))
    left_out, compressed = v2([], 8, section), packed_page(v2([], 8, section), compress, len(section))
    assert len(left_out.body) == len(section) < len(compressed.body)
    for nulls in (left_out, compressed):
        values = column_of([whole, nulls], codec, rows=16, repetition=OPTIONAL)
        assert [None if pd.isna(value) else value for value in values] == expected


@every_form
def test_error_names_the_damaged_page(form):
    codec, compress = FRAMINGS[form]
    for change in (lambda body: body[:-1], lambda body: body[:1]):
        whole = packed_page(data_page(len(NUMBERS), WHOLE), compress)
        page = packed_page(data_page(len(NUMBERS), WHOLE), compress)
        page.body = change(page.body)
        built = build_file([2 * len(NUMBERS)], [FileColumn("a", INT64, [[whole, page]], facts={"codec": codec})])
        with pytest.raises(CorruptPageError) as caught:
            read_parquet(built.stored())
        assert caught.value.where == {"file": "<bytes>", "row_group": 0, "column": "a", "page": 1}


@pytest.mark.parametrize("codec", [code for code in range(len(CODEC_NAMES)) if code != UNCOMPRESSED])
@pytest.mark.parametrize("make", [lambda: data_page(4, bytes(50)), lambda: v2([1, 2, 3, 4])], ids=["v1", "v2"])
def test_pages_that_claim_gigabytes(codec, make):
    """Refused before memory is allocated."""
    page = make()
    page.header.uncompressed_page_size = (1 << 31) - 1
    built = build_file([4], [FileColumn("a", INT64, [[page]], facts={"codec": codec})])
    with pytest.raises(CorruptPageError, match="claims more bytes than its compressed data can hold"):
        read_parquet(built.stored())
