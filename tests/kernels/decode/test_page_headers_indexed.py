"""Page headers at the locations of an offset index: against thriftpy2, truncated, and wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.format.thrift.layout import thrift_layout
from numparq.kernels import tables as t
from numparq.kernels.decode.page_headers import HEADER_FIELDS
from numparq.kernels.status import BAD_COUNT, BAD_LENGTH, BAD_PAGE
from numparq.kernels.tables import L_END, L_ROW, L_ROWS, L_START, LOCATION_FIELDS
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS
from support.kernels.chunk_tables import DecodeRequest, chunk_table, make_chunks, page_locations, page_table
from support.kernels.engines import CHECKED, ENGINES
from support.kernels.guarded_buffers import GuardedBuffer, with_slack
from support.kernels.strategies import SEEDS
from support.oracles.pages import (
    DICTIONARY_PAGE,
    INDEX_PAGE,
    PLAIN,
    RLE_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    Chunk,
    Page,
    data_page,
    dictionary_page,
    idl,
    to_bytes,
)
from support.oracles.plain import BYTE_ARRAY, INT64, ColumnType, random_values


def scan_located(engine, data, located, column=None, codec=UNCOMPRESSED, is_flat=1):
    """Run `scan_pages_at`: the status, the page that it is about, and the page table."""
    rng = np.random.default_rng(len(data))
    header = thrift_layout("PageHeader", *HEADER_FIELDS)
    slots = np.array([header.slot(name) for name in HEADER_FIELDS], np.int64)
    chunks = chunk_table(column or ColumnType(INT64), codec, 1 << 40, len(data), DecodeRequest(stop=1 << 40))
    chunks[t.C_DICTIONARY_PAGE] = -1
    count = len(located)
    table, state = GuardedBuffer(rng, count * t.PAGE_FIELDS, "i8"), GuardedBuffer(rng, 1, "i8")
    record, stack = GuardedBuffer(rng, header.words, "i8"), GuardedBuffer(rng, STACK_WORDS, "i8")
    stack.array[S_TOP] = stack.array[S_ROOM] = header.words
    status = engine.scan_pages_at(
        with_slack(rng, data),
        located.reshape(-1),
        count,
        is_flat,
        chunks,
        table.array,
        header.table,
        slots,
        record.array,
        stack.array,
        state.array,
    )
    for buffer in (table, state, record, stack):
        buffer.check()
    about = int(state.array[0]) if count else -1
    return status, about, table.array.reshape(count, t.PAGE_FIELDS).copy()


def chunk_of(seed):
    """Return a chunk of a dictionary and pages of 5 to 9 rows, its bytes after others, and its page locations."""
    rng = np.random.default_rng(seed)
    column, codec = ColumnType(INT64, 0, bool(seed % 2)), (UNCOMPRESSED, SNAPPY)[seed % 3 % 2]
    values = random_values(rng, column, 9)
    entries = list(dict.fromkeys(values))
    pages = [dictionary_page(column, entries, codec, rng)]
    for count in range(5, 10):
        pages.append(data_page(column, values[:count], RLE_DICTIONARY, codec, 1 + count % 2, rng, entries))
    chunk = Chunk(column, codec, pages)
    return chunk, b"7 bytes" + chunk.stored(), page_locations(page_table(chunk, 7))


@given(seed=SEEDS, data=st.data(), gap=st.binary(max_size=5))
def test_located_pages(seed, data, gap):
    """Some pages of a chunk, at any position: their rows of the page table equal those of the full walk."""
    (chunk,) = make_chunks(np.random.default_rng(seed), 1)
    pages = page_table(chunk, 3)
    kept = np.array([data.draw(st.booleans()) for _ in pages], bool)
    # As the reader fetches them: only selected pages, back to back.
    raw, moved = gap, pages[kept].copy()
    stored = chunk.stored()
    for page in moved:
        start, body = page[t.P_HEADER] - 3, page[t.P_BODY] - 3
        page[t.P_HEADER], page[t.P_BODY] = len(raw), len(raw) + body - start
        raw += stored[start : body + page[t.P_COMPRESSED]]
    for engine in ENGINES:
        status, _, found = scan_located(engine, raw, page_locations(moved), chunk.column, chunk.codec)
        assert status == 0
        expected = moved.copy()
        expected[expected[:, t.P_TYPE] == DICTIONARY_PAGE, t.P_ROW] = -1
        assert (found == expected).all()


def test_nested_pages_have_other_row_counts():
    """Only in flat columns must the number of values equal the number of rows."""
    chunk, data, located = chunk_of(4)
    located[:, L_ROWS] = 1
    for engine in ENGINES:
        assert scan_located(engine, data, located, chunk.column, chunk.codec, is_flat=0)[0] == 0
        status, page, _ = scan_located(engine, data, located, chunk.column, chunk.codec)
        assert (status, page) == (BAD_COUNT, 1)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_no_located_pages(engine):
    assert scan_located(engine, b"", np.empty((0, LOCATION_FIELDS), np.int64))[0] == 0


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@pytest.mark.parametrize("seed", [1, 2])
def test_truncated_located_pages(engine, seed):
    """Every page ends at every byte: neither a header nor a body reads beyond."""
    chunk, data, located = chunk_of(seed)
    for number in range(len(located)):
        for end in range(int(located[number, L_START]), int(located[number, L_END])):
            lying = located.copy()
            lying[number, L_END] = end
            status, page, _ = scan_located(engine, data, lying, chunk.column, chunk.codec)
            assert status < 0
            assert page == number
        # A data page ends where its header says; a dictionary page may have bytes after it.
        lying = located.copy()
        lying[number, L_END] += 1
        status, page, _ = scan_located(engine, data + b"?", lying, chunk.column, chunk.codec)
        assert status == 0 if located[number, L_ROW] < 0 else (status, page) == (BAD_PAGE, number)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_damaged_headers_and_locations(engine):
    rng = np.random.default_rng(3)
    chunk, data, located = chunk_of(1)
    for _ in range(engine.size(3000, 300)):
        lying = located.copy()
        number = int(rng.integers(0, len(located)))
        start, end = np.sort(rng.integers(0, len(data) + 1, 2)).tolist()
        lying[number, [L_START, L_END]] = start, end
        status, _, _ = scan_located(engine, data, lying, chunk.column, chunk.codec)
        assert status < 0 or located[number, L_ROW] < 0 or (lying == located).all()
        damaged = bytearray(data)
        damaged[int(rng.integers(7, len(data)))] ^= 1 << int(rng.integers(0, 8))
        scan_located(engine, bytes(damaged), located, chunk.column, chunk.codec)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_wrong_page_locations(engine):
    """Overlapping, swapped, off by one byte, or with other row counts."""
    chunk, data, located = chunk_of(3)
    flat = chunk.column, chunk.codec
    assert scan_located(engine, data, located, *flat)[0] == 0
    one, other = 1, 2
    for column, difference in ((L_START, -1), (L_START, 1), (L_END, -1), (L_ROWS, 1), (L_ROWS, -1)):
        lying = located.copy()
        lying[other, column] += difference
        status, page, _ = scan_located(engine, data, lying, *flat)
        assert status < 0, (column, difference)
        assert page == other, (column, difference)
    both = located.copy()  # a place that two pages have together
    both[other, [L_START, L_END]] = located[one, L_START], located[other, L_END]
    assert scan_located(engine, data, both, *flat)[:2] == (BAD_PAGE, other)
    swapped = located.copy()
    for column in (L_START, L_END):
        swapped[[one, other], column] = located[[other, one], column]
    assert scan_located(engine, data, swapped, *flat)[:2] == (BAD_COUNT, one)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_wrong_page_types(engine):
    chunk, data, located = chunk_of(5)
    flat = chunk.column, chunk.codec
    dictionary, first = 0, 1
    swapped = located.copy()
    swapped[[dictionary, first], L_ROW] = located[[first, dictionary], L_ROW]
    assert scan_located(engine, data, swapped, *flat)[:2] == (BAD_PAGE, 0)  # a dictionary where a data page should be
    assert scan_located(engine, data, swapped[first:], *flat)[:2] == (BAD_PAGE, 0)  # and the other way round
    rng = np.random.default_rng(0)
    index = Page(INDEX_PAGE, rng.bytes(30), 0, 30, [], {}).stored()
    future = to_bytes(idl().PageHeader(type=77, uncompressed_page_size=5, compressed_page_size=5)) + rng.bytes(5)
    for stored in (index, future):
        for row in (-1, 0):
            assert scan_located(engine, stored, np.array([[0, len(stored), row, 0, 0]]))[:2] == (BAD_PAGE, 0)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_wrong_counts_and_sizes(engine):
    """Counts and sizes that are negative, or larger than the data."""
    rng = np.random.default_rng(6)
    column = ColumnType(INT64)
    page = data_page(column, random_values(rng, column, 9), PLAIN, UNCOMPRESSED, 1, rng)
    entries = dictionary_page(column, page.rows[:3], UNCOMPRESSED, rng)

    def status(one, row):
        stored = one.stored()
        return scan_located(engine, stored, np.array([[0, len(stored), row, 9 * (row >= 0), 0]]))[0]

    assert status(page, 0) == 0
    assert status(entries, -1) == 0
    for count in (-1, -(1 << 31), 8, 10, (1 << 31) - 1):
        assert status(replace(page, num_values=count), 0) == BAD_COUNT
    for count in (-1, -(1 << 31)):
        assert status(replace(entries, num_values=count), -1) == BAD_COUNT
    more = idl().DataPageHeader(num_values=9, encoding=0, definition_level_encoding=3, repetition_level_encoding=3)
    for size in (-1, -(1 << 31), 71, 73, (1 << 31) - 1):
        for sizes in ((size, 72), (72, size)):
            header = to_bytes(
                idl().PageHeader(
                    type=0, uncompressed_page_size=sizes[0], compressed_page_size=sizes[1], data_page_header=more
                )
            )
            stored = header + bytes(72)
            found = scan_located(engine, stored, np.array([[0, len(stored), 0, 9, 0]]), codec=SNAPPY)[0]
            if sizes[0] >= 0 and sizes[1] == 72:
                assert found == 0  # that is for the decompressor to find out
            else:
                assert found == (BAD_PAGE if sizes[1] == 71 else BAD_LENGTH)


def test_located_string_pages():
    rng = np.random.default_rng(8)
    column = ColumnType(BYTE_ARRAY, 0, True)
    page = data_page(column, [b"a", None, b"long"], PLAIN, UNCOMPRESSED, 2, rng)
    located = np.array([[0, len(page.stored()), 5, 3, 2]])
    status, _, found = scan_located(CHECKED, page.stored(), located, column)
    assert status == 0
    assert found[0, [t.P_ROW, t.P_IN_CHUNK, t.P_NUM_NULLS]].tolist() == [5, 2, -1]
