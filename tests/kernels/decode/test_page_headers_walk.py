"""The walk over page headers written by thriftpy2: whole, truncated, in windows of any size, and damaged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.page_headers import SCAN_CHUNK, SCAN_FIELDS, SCAN_NEEDED, SCAN_PAGES, SCAN_POS
from numparq.kernels.status import BAD_COUNT, BAD_LENGTH, NEED_ROOM, TRUNCATED
from support.kernels.chunk_tables import (
    DecodeRequest,
    chunk_table,
    make_chunks,
    page_table,
    pages_with_rows,
    scan_page_headers,
)
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import with_slack
from support.kernels.strategies import SEEDS
from support.oracles.pages import DICTIONARY_PAGE


def lay_out(chunks, gap=b""):
    """Concatenate chunks: the bytes, the chunk table, and the expected page table."""
    data, table, pages = b"", [], []
    for number, chunk in enumerate(chunks):
        stored = chunk.stored()
        data += gap
        table.append(
            chunk_table(
                chunk.column, chunk.codec, len(chunk.rows), len(stored), DecodeRequest(stop=len(chunk.rows)), len(data)
            )
        )
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


@engines
def test_consecutive_chunks(engine):
    rng = np.random.default_rng(0)
    for number in range(engine.size(30)):
        chunks = make_chunks(rng, int(rng.integers(1, 6)))
        data, table, expected = lay_out(chunks, rng.bytes(number % 3))
        status, pages, state = scan_page_headers(
            engine, with_slack(rng, data), len(data), table, len(expected) + number % 2, state=start_at(table)
        )
        assert status == 0
        assert (pages == expected).all()
        assert state[SCAN_CHUNK] == len(chunks)
        expect_chunks(chunks, table)


def start_at(table):
    state = np.zeros(SCAN_FIELDS, np.int64)
    state[SCAN_POS] = table[t.C_START]
    return state


@engines
def test_windows_of_any_size(engine):
    """The walk resumes where it stopped, and reports how many bytes it needs."""
    rng = np.random.default_rng(1)
    chunks = make_chunks(rng, 3)
    data, table, expected = lay_out(chunks)
    for step in (1, 7, 50, 333) if engine.name == "compiled" else (50,):
        chunk_rows, state, found, available = table.copy(), start_at(table), np.zeros((0, t.PAGE_FIELDS), np.int64), 0
        while True:
            raw = np.concatenate([with_slack(rng, data[:available], 0), rng.integers(0, 256, 64 + len(data), np.uint8)])
            status, found, state = scan_page_headers(engine, raw, available, chunk_rows, len(expected), state, found)
            if status == 0:
                break
            assert status == 1
            if state[SCAN_NEEDED]:
                assert available < state[SCAN_NEEDED] <= len(data)
            available = min(available + step, len(data))
        assert (found == expected).all()


@engines
def test_pages_without_selected_rows_are_skipped(engine):
    rng = np.random.default_rng(18)
    for _ in range(engine.size(40, 8)):
        chunks = make_chunks(rng, 3, 5)
        data, table, expected = lay_out(chunks)
        kept = []
        for number, chunk in enumerate(chunks):
            start, stop = sorted(rng.integers(0, len(chunk.rows) + 1, 2).tolist())
            row = table[number * t.CHUNK_FIELDS : (number + 1) * t.CHUNK_FIELDS]
            row[t.C_ROW_START], row[t.C_ROW_STOP] = start, stop
            pages = expected[expected[:, t.P_CHUNK] == number]
            kept.append(pages_with_rows(pages, start, stop))
        status, pages, _ = scan_page_headers(
            engine, with_slack(rng, data), len(data), table, len(expected), start_at(table)
        )
        assert status == 0
        assert (pages == np.concatenate(kept)).all()


@engines
def test_dictionary_page_after_data_pages_comes_first(engine):
    rng = np.random.default_rng(19)
    chunks = [
        replace(chunk, pages=[*chunk.pages[1:], chunk.pages[0]] if number % 2 == 0 else chunk.pages)
        for number, chunk in enumerate(make_chunks(rng, 5))
    ]
    for chunk in chunks[::2]:
        assert chunk.pages[-1].type == DICTIONARY_PAGE
    data, table, expected = lay_out(chunks)
    for row, chunk in zip(table.reshape(-1, t.CHUNK_FIELDS), chunks, strict=True):
        row[t.C_NUM_VALUES] = row[t.C_ROW_STOP] = len(chunk.rows) + (chunk.pages[-1].type == DICTIONARY_PAGE)
    # One value more than stored; otherwise the walk ends with the last value.
    status, pages, state = scan_page_headers(engine, with_slack(rng, data), len(data), table, 99, start_at(table))
    assert status == BAD_COUNT
    assert state[SCAN_CHUNK] == 0
    assert (pages == pages_with_rows(expected[expected[:, t.P_CHUNK] == 0], 0, 1 << 40)).all()
    assert table[t.C_DICTIONARY_PAGE] == 0


@engines
def test_page_table_grows(engine):
    rng = np.random.default_rng(2)
    chunks = make_chunks(rng, 4)
    data, table, expected = lay_out(chunks)
    state, found = start_at(table), None
    for room in range(len(expected)):
        status, found, state = scan_page_headers(engine, with_slack(rng, data), len(data), table, room, state, found)
        assert status == NEED_ROOM
        assert state[SCAN_PAGES] == room
    status, found, state = scan_page_headers(
        engine, with_slack(rng, data), len(data), table, len(expected), state, found
    )
    assert status == 0
    assert (found == expected).all()
    expect_chunks(chunks, table)


@engines
def test_cut_at_every_byte(engine):
    """A chunk that is longer in the footer than in the file yields whole pages only."""
    rng = np.random.default_rng(3)
    chunk = make_chunks(rng, 1)[0]
    data, table, expected = lay_out([chunk])
    for cut in range(0, len(data), 1 if engine.name == "compiled" else 5):
        whole = int((expected[:, t.P_BODY] + expected[:, t.P_COMPRESSED] <= cut).sum())
        status, pages, _ = scan_page_headers(engine, with_slack(rng, data[:cut]), cut, table.copy(), 99)
        assert status == 1
        assert (pages == expected[:whole]).all()
        short = table.copy()
        short[t.C_END] = cut
        status, pages, _ = scan_page_headers(engine, with_slack(rng, data), len(data), short, 99)
        assert status in (TRUNCATED, BAD_LENGTH, BAD_COUNT)
        assert (pages == expected[:whole]).all()


@engines
def test_chunk_positions_outside_the_data(engine):
    """Chunks that begin before the data, after it, or far away."""
    rng = np.random.default_rng(14)
    chunks = make_chunks(rng, 2)
    data, table, _ = lay_out(chunks)
    for start, statuses in (
        (-1, (BAD_LENGTH,)),
        (-(1 << 62), (BAD_LENGTH,)),
        (len(data), (BAD_COUNT,)),
        (1 << 62, (BAD_COUNT,)),
    ):
        lying = table.copy()
        lying[t.CHUNK_FIELDS + t.C_START] = start
        status, pages, state = scan_page_headers(engine, with_slack(rng, data), len(data), lying, 99)
        assert status in statuses
        assert state[SCAN_CHUNK] == 1
        assert len(pages) == len(chunks[0].pages)


@engines
def test_damaged_headers(engine):
    """Any bytes give a status, or pages within the chunk."""
    rng = np.random.default_rng(15)
    chunk = make_chunks(rng, 1, 3)[0]
    data, table, expected = lay_out([chunk])
    places = [place for start, stop in expected[:, [t.P_HEADER, t.P_BODY]].tolist() for place in range(start, stop)]
    for _ in range(engine.size(2500)):
        damaged = bytearray(data)
        for place in rng.choice(places, int(rng.integers(1, 4))):
            damaged[place] = rng.integers(0, 256)
        status, pages, state = scan_page_headers(engine, with_slack(rng, bytes(damaged)), len(data), table.copy(), 99)
        assert -30 < status <= 0
        assert 0 <= state[SCAN_POS] <= len(data)
        for page in pages:
            assert 0 <= page[t.P_HEADER] < page[t.P_BODY] <= page[t.P_BODY] + page[t.P_COMPRESSED] <= len(data)
            assert 0 <= page[t.P_NUM_VALUES] < 1 << 31
            assert 0 <= page[t.P_UNCOMPRESSED] < 1 << 31
            levels = page[t.P_DEFINITION_BYTES] + page[t.P_REPETITION_BYTES]
            assert 0 <= levels <= min(page[t.P_COMPRESSED], page[t.P_UNCOMPRESSED])
            assert page[t.P_NUM_NULLS] == -1
        data_pages = pages[pages[:, t.P_TYPE] != enums.DICTIONARY_PAGE]
        if status == 0:
            assert data_pages[:, t.P_NUM_VALUES].sum() == len(chunk.rows)


@given(seed=SEEDS, count=st.integers(1, 4), gap=st.binary(max_size=3))
def test_any_chunks(seed, count, gap):
    rng = np.random.default_rng(seed)
    data, table, expected = lay_out(make_chunks(rng, count, 5), gap)
    for engine in ENGINES:
        status, pages, _ = scan_page_headers(
            engine, with_slack(rng, data), len(data), table.copy(), len(expected), start_at(table)
        )
        assert status == 0
        assert (pages == expected).all()
