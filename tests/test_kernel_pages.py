"""Walking over pages: headers written by thriftpy2, whole and cut, in windows of any size, and such that lie."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from driving.buffers import with_slack
from driving.engines import ENGINES
from driving.tables import Request, chunk_table, page_table, scan
from twins.pages import DATA_PAGE, DICTIONARY_PAGE, INDEX_PAGE, PLAIN, RLE_DICTIONARY, SNAPPY, UNCOMPRESSED, Chunk, Page
from twins.pages import data_page, dictionary_page, idl, random_chunk, to_bytes
from twins.values import BYTE_ARRAY, INT64, Column, random_values

from numparq.errors import BAD_COUNT, BAD_LENGTH, BAD_PAGE, MISSING_FIELD, NEED_ROOM, TRUNCATED
from numparq.kernels import tables as t
from numparq.kernels.pages import SCAN_CHUNK, SCAN_FIELDS, SCAN_NEEDED, SCAN_PAGES, SCAN_POS

pytestmark = pytest.mark.parametrize("engine", ENGINES, ids=repr)


def make_chunks(rng, count, rows=20):
    chunks = []
    for number in range(count):
        column = Column(int(rng.choice([INT64, BYTE_ARRAY])), 0, bool(rng.random() < 0.5))
        values = random_values(rng, column, 9)
        chunk = random_chunk(rng, column, values, int(rng.integers(1, 5)), rows, 0.3, number % 2 == 0,
                             int(rng.choice([UNCOMPRESSED, SNAPPY])))  # fmt: skip
        pages = [page.with_crc() if rng.random() < 0.5 else page for page in chunk.pages]
        chunks.append(replace(chunk, pages=pages))
    return chunks


def lay_out(chunks, gap=b""):
    """Put chunks one after the other: the bytes, the chunk table, the page table that is to be expected."""
    data, table, pages = b"", [], []
    for number, chunk in enumerate(chunks):
        stored = chunk.stored()
        data += gap
        table.append(chunk_table(chunk.column, chunk.codec, len(chunk.rows), len(stored), Request(stop=len(chunk.rows)), len(data)))
        found = page_table(chunk, len(data))
        found[:, t.P_CHUNK] = number
        pages.append(found)
        data += stored
    return data, np.concatenate(table), np.concatenate(pages)


def expect_chunks(chunks, table):
    first = 0
    for row, chunk in zip(table.reshape(-1, t.CHUNK_FIELDS), chunks, strict=True):
        assert row[t.C_FIRST_PAGE] == first
        assert row[t.C_DICTIONARY_PAGE] == (first if chunk.pages[0].type == DICTIONARY_PAGE else -1)
        first += len(chunk.pages)
        assert row[t.C_LAST_PAGE] == first


def test_chunks_one_after_the_other(engine):
    rng = np.random.default_rng(0)
    for number in range(engine.size(30)):
        chunks = make_chunks(rng, int(rng.integers(1, 6)))
        data, table, expected = lay_out(chunks, rng.bytes(number % 3))
        status, pages, state = scan(engine, with_slack(rng, data), len(data), table, len(expected) + number % 2,
                                    state=start_at(table))  # fmt: skip
        assert status == 0
        assert (pages == expected).all()
        assert state[SCAN_CHUNK] == len(chunks)
        expect_chunks(chunks, table)


def start_at(table):
    state = np.zeros(SCAN_FIELDS, np.int64)
    state[SCAN_POS] = table[t.C_START]
    return state


def test_in_windows_of_any_size(engine):
    """However little of the bytes is there, the walk goes on where it stopped, and says how much it needs."""
    rng = np.random.default_rng(1)
    chunks = make_chunks(rng, 3)
    data, table, expected = lay_out(chunks)
    for step in (1, 7, 50, 333) if engine.name == "compiled" else (50,):
        chunk_rows, state, found, available = table.copy(), start_at(table), np.zeros((0, t.PAGE_FIELDS), np.int64), 0
        while True:
            raw = np.concatenate([with_slack(rng, data[:available], 0), rng.integers(0, 256, 64 + len(data), np.uint8)])
            status, found, state = scan(engine, raw, available, chunk_rows, len(expected), state, found)
            if status == 0:
                break
            assert status == 1
            if state[SCAN_NEEDED]:
                assert available < state[SCAN_NEEDED] <= len(data)
            available = min(available + step, len(data))
        assert (found == expected).all()


def test_the_page_table_grows(engine):
    rng = np.random.default_rng(2)
    chunks = make_chunks(rng, 4)
    data, table, expected = lay_out(chunks)
    state, found = start_at(table), None
    for room in range(len(expected)):
        status, found, state = scan(engine, with_slack(rng, data), len(data), table, room, state, found)
        assert status == NEED_ROOM and state[SCAN_PAGES] == room
    status, found, state = scan(engine, with_slack(rng, data), len(data), table, len(expected), state, found)
    assert status == 0 and (found == expected).all()
    expect_chunks(chunks, table)


def test_cut_at_every_byte(engine):
    """A chunk that the footer says is longer than what is there: never a page that is not whole."""
    rng = np.random.default_rng(3)
    chunk = make_chunks(rng, 1)[0]
    data, table, expected = lay_out([chunk])
    for cut in range(0, len(data), 1 if engine.name == "compiled" else 5):
        whole = int((expected[:, t.P_BODY] + expected[:, t.P_COMPRESSED] <= cut).sum())
        status, pages, _ = scan(engine, with_slack(rng, data[:cut]), cut, table.copy(), 99)
        assert status == 1 and (pages == expected[:whole]).all()
        short = table.copy()
        short[t.C_END] = cut
        status, pages, _ = scan(engine, with_slack(rng, data), len(data), short, 99)
        assert status in (TRUNCATED, BAD_LENGTH, BAD_COUNT) and (pages == expected[:whole]).all()


def one_page(rng, **header):
    column = Column(INT64)
    page = data_page(column, random_values(rng, column, 9), PLAIN, UNCOMPRESSED, 1, rng)
    return column, page


def scan_pages_of(engine, rng, pages, num_values, column=None, codec=UNCOMPRESSED):
    column = column or Column(INT64)
    data = b"".join(page if isinstance(page, bytes) else page.stored() for page in pages)
    table = chunk_table(column, codec, num_values, len(data), Request(stop=1 << 40))
    return scan(engine, with_slack(rng, data), len(data), table, 50)


def test_other_pages_are_passed_over(engine):
    rng = np.random.default_rng(4)
    _, page = one_page(rng)
    index = Page(INDEX_PAGE, rng.bytes(30), 0, 30, [], {})
    future = to_bytes(idl().PageHeader(type=77, uncompressed_page_size=5, compressed_page_size=5)) + rng.bytes(5)
    status, pages, _ = scan_pages_of(engine, rng, [index, page, future, index, page], 18)
    assert status == 0
    assert pages[:, t.P_IN_CHUNK].tolist() == [1, 4] and pages[:, t.P_ROW].tolist() == [0, 9]


@pytest.mark.parametrize("delta", [-18, -9, -1, 1, 9])
def test_pages_hold_as_many_values_as_the_footer_says(engine, delta):
    rng = np.random.default_rng(5)
    _, page = one_page(rng)
    status, _, _ = scan_pages_of(engine, rng, [page, page], 18 + delta)
    # What is behind the last value is not looked at: nothing at all, or a page that nobody asked for.
    assert status == (0 if delta in (-18, -9) else BAD_COUNT)


@pytest.mark.parametrize("num_values", [-1, -(1 << 31), (1 << 31) - 1])
def test_counts_out_of_range(engine, num_values):
    rng = np.random.default_rng(6)
    column = Column(INT64)
    _, page = one_page(rng)
    version2 = data_page(column, page.rows, PLAIN, UNCOMPRESSED, 2, rng)
    for lying in (page, version2):
        assert scan_pages_of(engine, rng, [replace(lying, num_values=num_values)], 9)[0] == BAD_COUNT
    dictionary = dictionary_page(column, page.rows[:3], UNCOMPRESSED, rng)
    status, pages, _ = scan_pages_of(engine, rng, [replace(dictionary, num_values=num_values), page], 9)
    assert status == (BAD_COUNT if num_values < 0 else 0)


def test_level_sections_lie_within_the_page(engine):
    rng = np.random.default_rng(7)
    column = Column(INT64, 0, True)
    page = data_page(column, random_values(rng, column, 9), PLAIN, UNCOMPRESSED, 2, rng)
    size = len(page.body)
    for definition, repetition, status in ((size, 0, 0), (0, size, 0), (size - 1, 1, 0), (size, 1, BAD_LENGTH),
                                           (1, size, BAD_LENGTH), (-1, 0, BAD_LENGTH), (0, -1, BAD_LENGTH),
                                           ((1 << 31) - 1, (1 << 31) - 1, BAD_LENGTH), (size + 1, -1, BAD_LENGTH)):  # fmt: skip
        more = {**page.more, "definition_levels_byte_length": definition, "repetition_levels_byte_length": repetition}
        assert scan_pages_of(engine, rng, [replace(page, more=more)], 9, column)[0] == status
    compressed = data_page(column, random_values(rng, column, 9), PLAIN, SNAPPY, 2, rng)
    more = {**compressed.more, "definition_levels_byte_length": 20, "is_compressed": True}
    lying = replace(compressed, more=more, uncompressed=19)
    assert scan_pages_of(engine, rng, [lying], 9, column, SNAPPY)[0] == BAD_LENGTH


def test_nulls_and_rows_of_version_2(engine):
    rng = np.random.default_rng(8)
    column = Column(INT64, 0, True)
    page = data_page(column, [None, *random_values(rng, column, 8)], PLAIN, UNCOMPRESSED, 2, rng)
    for name, value, status in (("num_nulls", 9, 0), ("num_nulls", 10, BAD_COUNT), ("num_nulls", -1, BAD_COUNT),
                                ("num_rows", 8, BAD_COUNT), ("num_rows", 10, BAD_COUNT), ("num_rows", -1, BAD_COUNT)):  # fmt: skip
        assert scan_pages_of(engine, rng, [replace(page, more={**page.more, name: value})], 9, column)[0] == status


@pytest.mark.parametrize("size", [-1, -(1 << 31), (1 << 31) - 1])
def test_sizes_out_of_range(engine, size):
    rng = np.random.default_rng(9)
    more = idl().DataPageHeader(num_values=9, encoding=0, definition_level_encoding=3, repetition_level_encoding=3)
    for sizes in ((size, 72), (72, size)):
        header = to_bytes(idl().PageHeader(type=DATA_PAGE, uncompressed_page_size=sizes[0], compressed_page_size=sizes[1],
                                           data_page_header=more))  # fmt: skip
        status, pages, _ = scan_pages_of(engine, rng, [header + bytes(72)], 9, codec=SNAPPY)
        assert status == (0 if sizes[0] == (1 << 31) - 1 else BAD_LENGTH)


def test_a_second_dictionary_is_refused(engine):
    rng = np.random.default_rng(10)
    column, page = one_page(rng)
    dictionary = dictionary_page(column, page.rows[:2], UNCOMPRESSED, rng)
    assert scan_pages_of(engine, rng, [dictionary, dictionary, page], 9)[0] == BAD_PAGE
    assert scan_pages_of(engine, rng, [dictionary, page], 9)[0] == 0


def test_headers_of_another_type_than_they_say(engine):
    rng = np.random.default_rng(11)
    column, page = one_page(rng)
    module = idl()
    headers = {"data_page_header": module.DataPageHeader(num_values=9, encoding=0, definition_level_encoding=3,
                                                         repetition_level_encoding=3),
               "dictionary_page_header": module.DictionaryPageHeader(num_values=9, encoding=0),
               "data_page_header_v2": module.DataPageHeaderV2(num_values=9, num_nulls=0, num_rows=9, encoding=0,
                                                              definition_levels_byte_length=0,
                                                              repetition_levels_byte_length=0)}  # fmt: skip
    for page_type, name in ((0, "data_page_header"), (2, "dictionary_page_header"), (3, "data_page_header_v2")):
        for given, header in headers.items():
            made = to_bytes(module.PageHeader(type=page_type, uncompressed_page_size=72, compressed_page_size=72,
                                              **{given: header})) + page.body  # fmt: skip
            status, _, _ = scan_pages_of(engine, rng, [made, page], 18 if given != "dictionary_page_header" else 9)
            assert status == (0 if given == name else BAD_PAGE)


def test_required_fields(engine):
    rng = np.random.default_rng(12)
    module = idl()
    for missing in ("type", "uncompressed_page_size", "compressed_page_size"):
        fields = {"type": 1, "uncompressed_page_size": 0, "compressed_page_size": 0}
        del fields[missing]
        header = module.PageHeader(**fields)
        header.thrift_spec = {number: (*spec[:-1], False) for number, spec in module.PageHeader.thrift_spec.items()}
        assert scan_pages_of(engine, rng, [to_bytes(header)], 9)[0] == MISSING_FIELD


def test_statistics_and_unknown_fields_are_skipped(engine):
    rng = np.random.default_rng(13)
    column, page = one_page(rng)
    statistics = idl().Statistics(max=b"x" * 500, min=b"", null_count=0, max_value=b"\xff" * 200, min_value=b"y")
    status, pages, _ = scan_pages_of(engine, rng, [replace(page, more={**page.more, "statistics": statistics})], 9)
    assert status == 0 and pages[0, t.P_NUM_VALUES] == 9
    header = page.header
    unknown = bytes([0x98]) + b"\x05hello" + bytes([0x16]) + b"\x04"  # fields 14 and 15, before the stop byte
    status, pages, _ = scan_pages_of(engine, rng, [header[:-1] + unknown + b"\x00" + page.body], 9)
    assert status == 0 and pages[0, t.P_COMPRESSED] == len(page.body)


def test_positions_outside_of_the_window(engine):
    """A chunk that begins in front of the bytes, behind them, or at no place at all."""
    rng = np.random.default_rng(14)
    chunks = make_chunks(rng, 2)
    data, table, _ = lay_out(chunks)
    for start, statuses in ((-1, (BAD_LENGTH,)), (-(1 << 62), (BAD_LENGTH,)), (len(data), (BAD_COUNT,)), (1 << 62, (BAD_COUNT,))):
        lying = table.copy()
        lying[t.CHUNK_FIELDS + t.C_START] = start
        status, pages, state = scan(engine, with_slack(rng, data), len(data), lying, 99)
        assert status in statuses and state[SCAN_CHUNK] == 1 and len(pages) == len(chunks[0].pages)


def test_damaged_headers(engine):
    """Whatever bytes there are: a status, or pages that lie within the chunk."""
    rng = np.random.default_rng(15)
    chunk = make_chunks(rng, 1, 3)[0]
    data, table, expected = lay_out([chunk])
    places = [place for start, stop in expected[:, [t.P_HEADER, t.P_BODY]].tolist() for place in range(start, stop)]
    for _ in range(engine.size(2500)):
        damaged = bytearray(data)
        for place in rng.choice(places, int(rng.integers(1, 4))):
            damaged[place] = rng.integers(0, 256)
        status, pages, state = scan(engine, with_slack(rng, bytes(damaged)), len(data), table.copy(), 99)
        assert -30 < status <= 0
        assert 0 <= state[SCAN_POS] <= len(data)
        for page in pages:
            assert 0 <= page[t.P_HEADER] < page[t.P_BODY] <= page[t.P_BODY] + page[t.P_COMPRESSED] <= len(data)
            assert 0 <= page[t.P_NUM_VALUES] < 1 << 31 and 0 <= page[t.P_UNCOMPRESSED] < 1 << 31
            levels = page[t.P_DEFINITION_BYTES] + page[t.P_REPETITION_BYTES]
            assert 0 <= levels <= min(page[t.P_COMPRESSED], page[t.P_UNCOMPRESSED])
            assert page[t.P_NUM_NULLS] <= page[t.P_NUM_VALUES]
        data_pages = pages[pages[:, t.P_TYPE] != t.DICTIONARY_PAGE]
        if status == 0:
            assert data_pages[:, t.P_NUM_VALUES].sum() == len(chunk.rows)


def test_negative_crcs_are_unsigned(engine):
    rng = np.random.default_rng(16)
    _, page = one_page(rng)
    for crc in (0, -1, -(1 << 31), (1 << 31) - 1):
        status, pages, _ = scan_pages_of(engine, rng, [replace(page, more={**page.more, "crc": crc})], 9)
        assert status == 0 and pages[0, t.P_CRC] == struct.unpack("<I", struct.pack("<i", crc))[0]


def test_pages_that_were_never_compressed(engine):
    rng = np.random.default_rng(17)
    column = Column(INT64, 0, True)
    rows = random_values(rng, column, 9)
    page = data_page(column, rows, RLE_DICTIONARY, UNCOMPRESSED, 2, rng, rows)
    for is_compressed, expected in ((False, 0), (True, 1), (None, 1)):
        more = {**page.more, "is_compressed": is_compressed}
        pages = scan_pages_of(engine, rng, [replace(page, more=more)], 9, column, SNAPPY)[1]
        assert pages[0, t.P_IS_COMPRESSED] == expected
    nothing = data_page(column, [None] * 9, PLAIN, UNCOMPRESSED, 2, rng)  # levels, and not a byte of values
    pages = scan_pages_of(engine, rng, [nothing], 9, column, SNAPPY)[1]
    assert pages[0, t.P_IS_COMPRESSED] == 0
