"""Ends of the sections of a page: levels, bit widths, indices, and sizes slightly beyond the page."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import tables as t
from numparq.kernels.status import BAD_LEVELS, BAD_PAGE, BAD_RUN, INDEX_OUT_OF_RANGE, TRUNCATED
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.decode_pages import DecodeOutcome, decode_binary, decode_fixed
from support.kernels.engines import engines
from support.oracles import hybrid_rle
from support.oracles.pages import (
    BIT_PACKED,
    PLAIN,
    RLE,
    RLE_DICTIONARY,
    UNCOMPRESSED,
    Chunk,
    Page,
    data_page,
    dictionary_page,
)
from support.oracles.plain import BOOLEAN, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64, ColumnType

pytestmark = engines

NULL = b"\xff" * 8
DICTIONARY = dictionary_page(ColumnType(INT64), [bytes(8)], UNCOMPRESSED, np.random.default_rng(0))


def with_body(page: Page, body: bytes) -> Page:
    return replace(page, body=body, uncompressed=len(body))


def decode(engine, column: ColumnType, pages: list[Page]) -> DecodeOutcome:
    chunk = Chunk(column, UNCOMPRESSED, pages)
    count = len(chunk.rows)
    if column.physical == BYTE_ARRAY:
        return decode_binary(engine, chunk, DecodeRequest(stop=count))
    item = 1 if column.physical == BOOLEAN else column.size
    return decode_fixed(engine, chunk, DecodeRequest(t.COPY, item, t.NULLS_FILL, -1, 0, count))


def null_page(count: int, level_encoding: int = RLE) -> Page:
    """Return a page without values, so that its levels may end anywhere."""
    rng = np.random.default_rng(0)
    return data_page(
        ColumnType(INT64, 0, True), [None] * count, PLAIN, UNCOMPRESSED, 1, rng, level_encoding=level_encoding
    )


def test_level_sections_beyond_the_page(engine):
    section = hybrid_rle.encode([("rle", 0, 9)], 1)
    for beyond in (-1, 0, 1, 2, 3, 4, 5, 1 << 31, (1 << 32) - 1 - len(section)):
        page = with_body(null_page(9), struct.pack("<I", len(section) + beyond) + section)
        expected = DecodeOutcome(0, -1, (NULL,) * 9, b"", 9) if beyond == 0 else DecodeOutcome(TRUNCATED, 0)
        assert decode(engine, ColumnType(INT64, 0, True), [page]) == expected
        page = replace(page, more={**page.more, "encoding": RLE_DICTIONARY})
        assert decode(engine, ColumnType(INT64, 0, True), [DICTIONARY, page]).status == expected.status
    for size in range(4):
        assert decode(engine, ColumnType(INT64, 0, True), [with_body(null_page(9), bytes(size))]) == DecodeOutcome(
            TRUNCATED, 0
        )


def test_bit_packed_levels_beyond_the_page(engine):
    for count in (1, 7, 8, 9, 16, 17, 2000):
        for size in {0, (count - 1) // 8, (count + 7) // 8}:
            page = with_body(null_page(count, BIT_PACKED), bytes(size))
            whole = DecodeOutcome(0, -1, (NULL,) * count, b"", count)
            expected = whole if size == (count + 7) // 8 else DecodeOutcome(TRUNCATED, 0)
            assert decode(engine, ColumnType(INT64, 0, True), [page]) == expected
            page = replace(page, more={**page.more, "encoding": RLE_DICTIONARY})
            assert decode(engine, ColumnType(INT64, 0, True), [DICTIONARY, page]).status == expected.status


def test_unknown_level_encodings(engine):
    for encoding in (0, 2, 5, 8, -1, 99):
        page = null_page(9)
        page = replace(page, more={**page.more, "definition_level_encoding": encoding})
        assert decode(engine, ColumnType(INT64, 0, True), [page]) == DecodeOutcome(BAD_LEVELS, 0)


@pytest.mark.parametrize("physical", [INT64, BYTE_ARRAY])
def test_truncated_index_runs(engine, physical):
    """Every byte is a valid index, so bytes read after the page would pass."""
    rng = np.random.default_rng(0)
    column = ColumnType(physical)
    entries = [struct.pack("<Q", number) for number in range(256)]
    dictionary = dictionary_page(column, entries, UNCOMPRESSED, rng)
    page = data_page(column, [entries[200]] * 24, RLE_DICTIONARY, UNCOMPRESSED, 1, rng, entries)
    for made in (
        [("rle", 200, 24)],
        [("packed", [200] * 24)],
        [("rle", 200, 16), ("packed", [200] * 8)],
        [("packed", [200] * 8), ("rle", 200, 16)],
    ):
        encoded = hybrid_rle.encode(made, 8)
        for size in range(len(encoded) + 1):
            outcome = decode(engine, column, [dictionary, with_body(page, b"\x08" + encoded[:size])])
            if size == len(encoded):
                assert outcome.rows == (entries[200],) * 24
            else:
                assert outcome == DecodeOutcome(TRUNCATED, 1)
    assert decode(engine, column, [dictionary, with_body(page, b"")]) == DecodeOutcome(TRUNCATED, 1)


def indices_of_two(physical):
    """Return a column, two entries, their dictionary page, and a page of eight indices whose body is replaced later."""
    rng = np.random.default_rng(0)
    column, entries = ColumnType(physical), [bytes(8), b"\x01" * 8]
    dictionary = dictionary_page(column, entries, UNCOMPRESSED, rng)
    return column, entries, dictionary, data_page(column, entries * 4, RLE_DICTIONARY, UNCOMPRESSED, 1, rng, entries)


@pytest.mark.parametrize("physical", [INT64, BYTE_ARRAY])
def test_index_bit_widths(engine, physical):
    column, entries, dictionary, page = indices_of_two(physical)
    for width in range(256):
        outcome = decode(engine, column, [dictionary, with_body(page, bytes([width, 16]) + bytes((width + 7) // 8))])
        if width <= 32:
            assert outcome.rows == (entries[0],) * 8
        else:
            assert outcome == DecodeOutcome(BAD_PAGE, 1)
    for width, index in ((2, 2), (2, 3), (8, 255), (9, 256), (31, (1 << 31) - 1), (32, 1 << 31), (32, (1 << 32) - 1)):
        for made in ([("rle", index, 8)], [("packed", [0] * 7 + [index])]):
            body = bytes([width]) + hybrid_rle.encode(made, width)
            outcome = decode(engine, column, [dictionary, with_body(page, body)])
            assert outcome == DecodeOutcome(INDEX_OUT_OF_RANGE, 1)


@pytest.mark.parametrize("physical", [INT64, BYTE_ARRAY])
def test_empty_index_runs(engine, physical):
    """Runs without indices, or without groups of them, before a valid run."""
    column, _, dictionary, page = indices_of_two(physical)
    enough = hybrid_rle.encode([("rle", 1, 8)], 8)
    for front, expected in ((b"\x00\x01", BAD_RUN), (b"\x01", BAD_RUN), (b"", 0)):
        assert decode(engine, column, [dictionary, with_body(page, b"\x08" + front + enough)]).status == expected


@pytest.mark.parametrize(
    "column", [ColumnType(INT32), ColumnType(INT64), *(ColumnType(FIXED_LEN_BYTE_ARRAY, n) for n in (3, 16))]
)
def test_indices_beyond_the_dictionary(engine, column):
    """The last valid index and the first invalid ones, for each size of values."""
    rng = np.random.default_rng(0)
    entries = [bytes([number]) * column.size for number in range(3)]
    dictionary = dictionary_page(column, entries, UNCOMPRESSED, rng)
    page = data_page(column, [entries[0]] * 8, RLE_DICTIONARY, UNCOMPRESSED, 1, rng, entries)
    for index in (2, 3, 4, 255):
        for made in ([("rle", index, 8)], [("packed", [0] * 7 + [index])], [("packed", [index] + [0] * 7)]):
            outcome = decode(engine, column, [dictionary, with_body(page, b"\x08" + hybrid_rle.encode(made, 8))])
            if index < 3:
                assert outcome.rows is not None
                assert entries[2] in outcome.rows
            else:
                assert outcome == DecodeOutcome(INDEX_OUT_OF_RANGE, 1)


def test_index_into_an_empty_dictionary(engine):
    rng = np.random.default_rng(0)
    for physical in (INT64, BYTE_ARRAY):
        column = ColumnType(physical, 0, True)
        dictionary = dictionary_page(column, [], UNCOMPRESSED, rng)
        page = data_page(column, [bytes(8)] * 8, RLE_DICTIONARY, UNCOMPRESSED, 1, rng, [bytes(8)])
        assert decode(engine, column, [dictionary, page]) == DecodeOutcome(INDEX_OUT_OF_RANGE, 1)
        empty = data_page(column, [None] * 8, RLE_DICTIONARY, UNCOMPRESSED, 1, rng, [])
        assert decode(engine, column, [dictionary, empty]).null_count == 8


def test_rle_boolean_sections(engine):
    rng = np.random.default_rng(0)
    column = ColumnType(BOOLEAN)
    page = data_page(column, [True] * 9, RLE, UNCOMPRESSED, 2, rng)
    section = hybrid_rle.encode([("rle", 1, 9)], 1)
    for beyond in (-1, 0, 1, 2, 3, 4, 5, 1 << 31):
        body = struct.pack("<I", len(section) + beyond) + section
        expected = DecodeOutcome(0, -1, (b"\x01",) * 9) if beyond == 0 else DecodeOutcome(TRUNCATED, 0)
        assert decode(engine, column, [with_body(page, body)]) == expected
    for size in range(4):
        assert decode(engine, column, [with_body(page, bytes(size))]) == DecodeOutcome(TRUNCATED, 0)
    twos = struct.pack("<I", 2) + hybrid_rle.encode([("rle", 2, 9)], 2)
    assert decode(engine, column, [with_body(page, twos)]) == DecodeOutcome(BAD_RUN, 0)


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 5), max_size=4),  # rows of each page
            st.integers(0, 6),  # the chunk's first page begins with this row
            st.integers(0, 12),
            st.integers(0, 12),
        ),
        max_size=5,
    )
)
def test_bounds_of_chunks(engine, given_chunks):
    """Oracle: the rows of a chunk's pages that are selected, as a set."""
    chunks = np.zeros((len(given_chunks), t.CHUNK_FIELDS), np.int64)
    chunks[:, t.C_NULL_COUNT] = 7
    rows, expected = [], []
    for number, (sizes, first, start, count) in enumerate(given_chunks):
        chunks[number, [t.C_ROW_START, t.C_ROW_STOP]] = start, start + count
        rows += [(number, first + sum(sizes[:page]), size) for page, size in enumerate(sizes)]
        expected.append(set(range(first, first + sum(sizes))) & set(range(start, start + count)))
    pages = np.zeros((len(rows), t.PAGE_FIELDS), np.int64)
    if rows:
        pages[:, [t.P_CHUNK, t.P_ROW, t.P_NUM_VALUES]] = rows
    total = engine.bound_chunks(chunks.reshape(-1), len(chunks), pages.reshape(-1), len(pages))
    found = [set(range(*bounds)) for bounds in chunks[:, [t.C_ROW_START, t.C_ROW_STOP]].tolist()]
    assert found == expected
    sizes = list(map(len, expected))
    assert chunks[:, t.C_VALIDITY].tolist() == [sum(sizes[:number]) for number in range(len(sizes))]
    assert total == sum(sizes)
    assert not chunks[:, t.C_NULL_COUNT].any()
