"""Pages of fixed-size values to rows: every type, cast, null policy and row window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import tables as t
from numparq.kernels.decode.page_sections import STATE_FIELDS
from numparq.kernels.status import NO_DICTIONARY, TRUNCATED, UNSUPPORTED_ENCODING
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.decode_pages import DecodeOutcome, decode_fixed
from support.kernels.engines import ENGINES, engines
from support.kernels.value_cases import CASES, FILLS, compare_values
from support.oracles.pages import (
    PLAIN,
    RLE,
    RLE_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    Chunk,
    data_page,
    dictionary_page,
    random_chunk,
)
from support.oracles.plain import (
    BOOLEAN,
    BYTE_ARRAY,
    FIXED_LEN_BYTE_ARRAY,
    INT32,
    INT64,
    INT96,
    ColumnType,
    random_values,
)

cases = pytest.mark.parametrize("case", CASES, ids=repr)


@engines
@cases
@pytest.mark.parametrize("null_share", [None, 0.0, 0.01, 0.5, 1.0])
def test_random_pages(engine, case, null_share):
    rng = np.random.default_rng([CASES.index(case), int(100 * (null_share or 0))])
    column = replace(case.column, optional=null_share is not None)
    for seed in range(engine.size(4)):
        values = case.values(rng, int(rng.choice([1, 2, 30, 300])))
        chunk = random_chunk(
            rng,
            column,
            values,
            int(rng.integers(1, 4)),
            engine.size(int(rng.integers(1, 700))),
            null_share or 0.0,
            bool(rng.random() < 0.6),
            int(rng.choice([UNCOMPRESSED, SNAPPY])),
        )
        total = len(chunk.rows)
        edges = sorted(rng.integers(0, total + 1, 2).tolist())
        for nulls in (t.NULLS_FILL, t.NULLS_MASK, t.NULLS_RAISE):
            request = DecodeRequest(case.conversion, case.item, nulls, FILLS[seed % 4])
            for start, stop in ((0, total), edges, (total - 1, total)):
                compare_values(engine, case, chunk, request.rows(start, stop), seed)


@engines
def test_every_row_window(engine):
    rng = np.random.default_rng(7)
    for case in (CASES[0], CASES[1], CASES[2], CASES[8], CASES[16]):
        column = replace(case.column, optional=True)
        chunk = random_chunk(rng, column, case.values(rng, 20), 3, 11, 0.3, True, SNAPPY)
        request = DecodeRequest(case.conversion, case.item, t.NULLS_MASK, -1)
        for start in range(0, 34, 2 if engine.name == "compiled" else 7):
            for stop in range(start, 34, 1 if engine.name == "compiled" else 5):
                compare_values(engine, case, chunk, request.rows(start, stop), start)


@given(data=st.data())
def test_any_rows(data):
    case = data.draw(st.sampled_from(CASES), "case")
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32), "seed"))
    column = replace(case.column, optional=data.draw(st.booleans(), "optional"))
    values = case.values(rng, data.draw(st.integers(1, 9), "distinct"))
    entries = list(dict.fromkeys(values))
    row = st.sampled_from(values)
    codec = data.draw(st.sampled_from([UNCOMPRESSED, SNAPPY]), "codec")
    pages = [dictionary_page(column, entries, codec, rng)]
    for rows in data.draw(
        st.lists(st.lists(st.one_of(row, st.none()) if column.optional else row), max_size=4), "pages"
    ):
        encoding = data.draw(st.sampled_from([PLAIN, RLE_DICTIONARY]), "encoding")
        pages.append(data_page(column, rows, encoding, codec, data.draw(st.integers(1, 2), "version"), rng, entries))
    chunk = Chunk(column, codec, pages)
    start = data.draw(st.integers(0, len(chunk.rows)), "start")
    stop = data.draw(st.integers(start, len(chunk.rows)), "stop")
    nulls = data.draw(st.sampled_from([t.NULLS_FILL, t.NULLS_MASK, t.NULLS_RAISE]), "nulls")
    request = DecodeRequest(case.conversion, case.item, nulls, data.draw(st.sampled_from(FILLS), "fill"), start, stop)
    for engine in ENGINES:
        compare_values(engine, case, chunk, request, 5)


@engines
@pytest.mark.parametrize("physical", [BOOLEAN, INT32, INT96, FIXED_LEN_BYTE_ARRAY, BYTE_ARRAY])
def test_dictionary_codes(engine, physical):
    """Indices as stored, whatever the dictionary holds; a PLAIN page has none."""
    rng = np.random.default_rng(physical)
    column = ColumnType(physical, 5 if physical == FIXED_LEN_BYTE_ARRAY else 0, True)
    for seed in range(engine.size(12)):
        entries = list(dict.fromkeys(random_values(rng, column, int(rng.choice([1, 2, 40, 300])))))
        rows = [
            None if rng.random() < 0.2 else entries[i] for i in rng.integers(0, len(entries), engine.size(500)).tolist()
        ]
        pages = [
            dictionary_page(column, entries, SNAPPY, rng),
            *(
                data_page(column, rows[i : i + 100], RLE_DICTIONARY, SNAPPY, 1 + i % 2, rng, entries)
                for i in range(0, len(rows), 100)
            ),
        ]
        chunk = Chunk(column, SNAPPY, pages)
        request = DecodeRequest(t.CODES, 4, t.NULLS_FILL, -1, 3, len(rows))
        codes = tuple(
            (-1 if row is None else entries.index(row)).to_bytes(4, "little", signed=True) for row in rows[3:]
        )
        assert decode_fixed(engine, chunk, request, seed) == DecodeOutcome(0, -1, codes, b"", rows[3:].count(None))
        plain = data_page(column, rows[:9], PLAIN, SNAPPY, 2, rng)
        outcome = decode_fixed(engine, replace(chunk, pages=[*pages, plain]), request.rows(0, len(rows) + 9), seed)
        assert outcome == DecodeOutcome(NO_DICTIONARY, len(pages))


@engines
def test_missing_dictionary(engine):
    rng = np.random.default_rng(0)
    column = ColumnType(INT64)
    page = data_page(column, [bytes(8)] * 9, RLE_DICTIONARY, UNCOMPRESSED, 1, rng, [bytes(8)])
    request = DecodeRequest(t.COPY, 8, stop=9)
    assert decode_fixed(engine, Chunk(column, UNCOMPRESSED, [page]), request) == DecodeOutcome(NO_DICTIONARY, 0)


@engines
def test_unsupported_encodings(engine):
    rng = np.random.default_rng(0)
    column = ColumnType(INT32)
    page = data_page(column, [bytes(4)] * 9, PLAIN, UNCOMPRESSED, 1, rng)
    for encoding in (RLE, 6, 7, 10, -1, 99, (1 << 31) - 1):
        other = replace(page, more={**page.more, "encoding": encoding})
        outcome = decode_fixed(engine, Chunk(column, UNCOMPRESSED, [other]), DecodeRequest(t.COPY, 4, stop=9))
        assert outcome == DecodeOutcome(UNSUPPORTED_ENCODING, 0)
        assert (
            decode_fixed(engine, Chunk(column, UNCOMPRESSED, [other]), DecodeRequest(t.COPY, 4, start=9, stop=9)).status
            == 0
        )


@engines
def test_pages_without_values(engine):
    rng = np.random.default_rng(0)
    for case in CASES:
        column = replace(case.column, optional=True)
        entries = list(dict.fromkeys(case.values(rng, 3)))
        empty = [
            data_page(column, [], encoding, codec, version, rng, entries)
            for encoding in (PLAIN, RLE_DICTIONARY)
            for codec in (UNCOMPRESSED,)
            for version in (1, 2)
        ]
        full = data_page(column, entries, PLAIN, UNCOMPRESSED, 1, rng)
        chunk = Chunk(column, UNCOMPRESSED, [dictionary_page(column, entries, UNCOMPRESSED, rng), *empty, full, *empty])
        compare_values(
            engine, case, chunk, DecodeRequest(case.conversion, case.item, t.NULLS_MASK, 0, 0, len(entries)), 1
        )


@engines
def test_wrong_num_nulls_is_ignored(engine):
    """The levels decide; some writers did not count nulls."""
    rng = np.random.default_rng(0)
    for optional, rows in ((True, [bytes(8), None, bytes(8)]), (False, [bytes(8)] * 3)):
        column = ColumnType(INT64, 0, optional)
        page = data_page(column, rows, PLAIN, UNCOMPRESSED, 2, rng)
        request = DecodeRequest(t.COPY, 8, stop=3)
        sound = decode_fixed(engine, Chunk(column, UNCOMPRESSED, [page]), request)
        for num_nulls in {0, 1, 2, 3} - {rows.count(None)}:
            lying = replace(page, more={**page.more, "num_nulls": num_nulls})
            outcome = decode_fixed(engine, Chunk(column, UNCOMPRESSED, [lying]), request)
            assert outcome == sound


@engines
def test_huge_value_counts(engine):
    """Counts near 2**31 of values of 2**31 - 1 bytes: products must not overflow."""
    rng = np.random.default_rng(0)
    most = (1 << 31) - 1
    for physical, length, item in ((FIXED_LEN_BYTE_ARRAY, most, most), (INT64, 0, 8), (BOOLEAN, 0, 1)):
        column = ColumnType(physical, length)
        page = data_page(ColumnType(INT32), [bytes(4)] * 3, PLAIN, UNCOMPRESSED, 1, rng)
        page = replace(page, num_values=most)
        chunk = Chunk(column, UNCOMPRESSED, [page])
        pages, chunks = _tables_for(chunk, item)
        state, small = np.zeros(STATE_FIELDS, np.int64), np.zeros(64, np.uint8)
        raw = np.frombuffer(page.stored() + bytes(64), np.uint8)
        status = engine.decode_fixed_pages(chunks, pages, 0, 1, raw, raw, small, small, small, small, small, state)
        assert status == TRUNCATED


def _tables_for(chunk: Chunk, item: int) -> tuple[np.ndarray, np.ndarray]:
    from support.kernels.chunk_tables import chunk_table, page_table

    count = chunk.pages[0].num_values
    request = DecodeRequest(t.COPY, item, stop=count)
    return page_table(chunk).reshape(-1), chunk_table(chunk.column, chunk.codec, count, 99, request)
