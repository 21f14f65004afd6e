"""Page headers: fields, missing fields and wrong values."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.status import BAD_COUNT, BAD_LENGTH, BAD_PAGE, MISSING_FIELD
from support.kernels.chunk_tables import DecodeRequest, chunk_table, scan_page_headers
from support.kernels.engines import engines
from support.kernels.guarded_buffers import with_slack
from support.oracles.pages import (
    DATA_PAGE,
    INDEX_PAGE,
    PLAIN,
    RLE_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    Page,
    data_page,
    dictionary_page,
    idl,
    to_bytes,
)
from support.oracles.plain import INT64, ColumnType, random_values

pytestmark = engines


def one_page(rng):
    column = ColumnType(INT64)
    page = data_page(column, random_values(rng, column, 9), PLAIN, UNCOMPRESSED, 1, rng)
    return column, page


def scan(engine, rng, pages, num_values, column=None, codec=UNCOMPRESSED):
    column = column or ColumnType(INT64)
    data = b"".join(page if isinstance(page, bytes) else page.stored() for page in pages)
    table = chunk_table(column, codec, num_values, len(data), DecodeRequest(stop=1 << 40))
    return scan_page_headers(engine, with_slack(rng, data), len(data), table, 50)


def test_index_and_unknown_pages_are_skipped(engine):
    rng = np.random.default_rng(4)
    _, page = one_page(rng)
    index = Page(INDEX_PAGE, rng.bytes(30), 0, 30, [], {})
    future = to_bytes(idl().PageHeader(type=77, uncompressed_page_size=5, compressed_page_size=5)) + rng.bytes(5)
    status, pages, _ = scan(engine, rng, [index, page, future, index, page], 18)
    assert status == 0
    assert pages[:, t.P_IN_CHUNK].tolist() == [1, 4]
    assert pages[:, t.P_ROW].tolist() == [0, 9]


@pytest.mark.parametrize("delta", [-18, -9, -1, 1, 9])
def test_num_values_must_match_the_footer(engine, delta):
    rng = np.random.default_rng(5)
    _, page = one_page(rng)
    status, _, _ = scan(engine, rng, [page, page], 18 + delta)
    assert status == (0 if delta == -18 else BAD_COUNT)  # an empty chunk may have any bytes


def test_bytes_behind_the_last_page_are_ignored(engine):
    """But for a page with values: then the page headers do not add up."""
    rng = np.random.default_rng(5)
    _, page = one_page(rng)
    index = Page(INDEX_PAGE, rng.bytes(5), 0, 5, [], {})
    empty = replace(page, body=b"", num_values=0, uncompressed=0)
    dictionary = dictionary_page(ColumnType(INT64), page.rows[:3], UNCOMPRESSED, rng)
    for behind in (b"\0", b"\0" * 40, page.stored()[:-1], page.stored()[:3], rng.bytes(99), index, empty, dictionary):
        status, pages, _ = scan(engine, rng, [page, behind], 9)
        assert status == 0
        assert pages[0, t.P_NUM_VALUES] == 9
        assert not pages[1:, t.P_NUM_VALUES].any()
    assert scan(engine, rng, [page, page], 9)[0] == BAD_COUNT
    assert scan(engine, rng, [page, index, page], 9)[0] == BAD_COUNT
    for behind in (b"\0", page.stored()[:-1], dictionary):
        assert scan(engine, rng, [page, behind], 10)[0] < 0


@pytest.mark.parametrize("num_values", [-1, -(1 << 31), (1 << 31) - 1])
def test_counts_out_of_range(engine, num_values):
    rng = np.random.default_rng(6)
    column = ColumnType(INT64)
    _, page = one_page(rng)
    version2 = data_page(column, page.rows, PLAIN, UNCOMPRESSED, 2, rng)
    for lying in (page, version2):
        assert scan(engine, rng, [replace(lying, num_values=num_values)], 9)[0] == BAD_COUNT
    dictionary = dictionary_page(column, page.rows[:3], UNCOMPRESSED, rng)
    status, _pages, _ = scan(engine, rng, [replace(dictionary, num_values=num_values), page], 9)
    assert status == (BAD_COUNT if num_values < 0 else 0)


def test_level_sections_must_lie_within_the_page(engine):
    rng = np.random.default_rng(7)
    column = ColumnType(INT64, 0, True)
    page = data_page(column, random_values(rng, column, 9), PLAIN, UNCOMPRESSED, 2, rng)
    size = len(page.body)
    for definition, repetition, status in (
        (size, 0, 0),
        (0, size, 0),
        (size - 1, 1, 0),
        (size, 1, BAD_LENGTH),
        (1, size, BAD_LENGTH),
        (-1, 0, BAD_LENGTH),
        (0, -1, BAD_LENGTH),
        ((1 << 31) - 1, (1 << 31) - 1, BAD_LENGTH),
        (size + 1, -1, BAD_LENGTH),
    ):
        more = {**page.more, "definition_levels_byte_length": definition, "repetition_levels_byte_length": repetition}
        assert scan(engine, rng, [replace(page, more=more)], 9, column)[0] == status
    compressed = data_page(column, random_values(rng, column, 9), PLAIN, SNAPPY, 2, rng)
    more = {**compressed.more, "definition_levels_byte_length": 20, "is_compressed": True}
    lying = replace(compressed, more=more, uncompressed=19)
    assert scan(engine, rng, [lying], 9, column, SNAPPY)[0] == BAD_LENGTH


def test_num_nulls_and_num_rows_of_v2_pages(engine):
    rng = np.random.default_rng(8)
    column = ColumnType(INT64, 0, True)
    page = data_page(column, [None, *random_values(rng, column, 8)], PLAIN, UNCOMPRESSED, 2, rng)
    for name, value, status in (
        ("num_nulls", 9, 0),
        ("num_nulls", 10, 0),  # only a hint: the levels decide
        ("num_nulls", -1, 0),
        ("num_nulls", -2, 0),
        ("num_rows", 0, 0),
        ("num_rows", 8, 0),
        ("num_rows", 10, 0),
        ("num_rows", -1, 0),
    ):
        assert scan(engine, rng, [replace(page, more={**page.more, name: value})], 9, column)[0] == status


@pytest.mark.parametrize("size", [-1, -(1 << 31), (1 << 31) - 1])
def test_sizes_out_of_range(engine, size):
    rng = np.random.default_rng(9)
    more = idl().DataPageHeader(num_values=9, encoding=0, definition_level_encoding=3, repetition_level_encoding=3)
    for sizes in ((size, 72), (72, size)):
        header = to_bytes(
            idl().PageHeader(
                type=DATA_PAGE, uncompressed_page_size=sizes[0], compressed_page_size=sizes[1], data_page_header=more
            )
        )
        status, _pages, _ = scan(engine, rng, [header + bytes(72)], 9, codec=SNAPPY)
        assert status == (0 if sizes[0] == (1 << 31) - 1 else BAD_LENGTH)


def test_second_dictionary_is_refused(engine):
    rng = np.random.default_rng(10)
    column, page = one_page(rng)
    dictionary = dictionary_page(column, page.rows[:2], UNCOMPRESSED, rng)
    assert scan(engine, rng, [dictionary, dictionary, page], 9)[0] == BAD_PAGE
    assert scan(engine, rng, [dictionary, page], 9)[0] == 0


def test_unknown_num_values_reads_only_the_first_page(engine):
    rng = np.random.default_rng(12)
    column, page = one_page(rng)
    dictionary = dictionary_page(column, page.rows[:2], UNCOMPRESSED, rng)
    for pages in ([dictionary, page], [dictionary], [page, dictionary], []):
        status, found, _ = scan(engine, rng, pages, -1)
        assert status == 0
        kinds = [enums.DICTIONARY_PAGE if one is dictionary else DATA_PAGE for one in pages[:1]]
        assert found[:, t.P_TYPE].tolist() == kinds
    assert scan(engine, rng, [b"\x15"], -1)[0] < 0


def test_header_struct_must_match_the_page_type(engine):
    rng = np.random.default_rng(11)
    _column, page = one_page(rng)
    module = idl()
    headers = {
        "data_page_header": module.DataPageHeader(
            num_values=9, encoding=0, definition_level_encoding=3, repetition_level_encoding=3
        ),
        "dictionary_page_header": module.DictionaryPageHeader(num_values=9, encoding=0),
        "data_page_header_v2": module.DataPageHeaderV2(
            num_values=9,
            num_nulls=0,
            num_rows=9,
            encoding=0,
            definition_levels_byte_length=0,
            repetition_levels_byte_length=0,
        ),
    }
    for page_type, name in ((0, "data_page_header"), (2, "dictionary_page_header"), (3, "data_page_header_v2")):
        for field, header in headers.items():
            made = (
                to_bytes(
                    module.PageHeader(
                        type=page_type, uncompressed_page_size=72, compressed_page_size=72, **{field: header}
                    )
                )
                + page.body
            )
            status, _, _ = scan(engine, rng, [made, page], 18 if field != "dictionary_page_header" else 9)
            assert status == (0 if field == name else BAD_PAGE)


def test_missing_required_fields(engine):
    rng = np.random.default_rng(12)
    module = idl()
    for missing in ("type", "uncompressed_page_size", "compressed_page_size"):
        fields = {"type": 1, "uncompressed_page_size": 0, "compressed_page_size": 0}
        del fields[missing]
        header = module.PageHeader(**fields)
        header.thrift_spec = {number: (*spec[:-1], False) for number, spec in module.PageHeader.thrift_spec.items()}
        assert scan(engine, rng, [to_bytes(header)], 9)[0] == MISSING_FIELD


def test_statistics_and_unknown_fields_are_skipped(engine):
    rng = np.random.default_rng(13)
    _column, page = one_page(rng)
    statistics = idl().Statistics(max=b"x" * 500, min=b"", null_count=0, max_value=b"\xff" * 200, min_value=b"y")
    status, pages, _ = scan(engine, rng, [replace(page, more={**page.more, "statistics": statistics})], 9)
    assert status == 0
    assert pages[0, t.P_NUM_VALUES] == 9
    header = page.header
    unknown = bytes([0x98]) + b"\x05hello" + bytes([0x16]) + b"\x04"  # fields 14 and 15, before the stop byte
    status, pages, _ = scan(engine, rng, [header[:-1] + unknown + b"\x00" + page.body], 9)
    assert status == 0
    assert pages[0, t.P_COMPRESSED] == len(page.body)


def test_negative_crcs_are_unsigned(engine):
    rng = np.random.default_rng(16)
    _, page = one_page(rng)
    for crc in (0, -1, -(1 << 31), (1 << 31) - 1):
        status, pages, _ = scan(engine, rng, [replace(page, more={**page.more, "crc": crc})], 9)
        assert status == 0
        assert pages[0, t.P_CRC] == struct.unpack("<I", struct.pack("<i", crc))[0]


def test_is_compressed_of_v2_pages(engine):
    rng = np.random.default_rng(17)
    column = ColumnType(INT64, 0, True)
    rows = random_values(rng, column, 9)
    page = data_page(column, rows, RLE_DICTIONARY, UNCOMPRESSED, 2, rng, rows)
    for is_compressed, expected in ((False, 0), (True, 1), (None, 1)):
        more = {**page.more, "is_compressed": is_compressed}
        pages = scan(engine, rng, [replace(page, more=more)], 9, column, SNAPPY)[1]
        assert pages[0, t.P_IS_COMPRESSED] == expected
    nothing = data_page(column, [None] * 9, PLAIN, UNCOMPRESSED, 2, rng)  # levels, but no bytes of values
    pages = scan(engine, rng, [nothing], 9, column, SNAPPY)[1]
    assert pages[0, t.P_IS_COMPRESSED] == 0
