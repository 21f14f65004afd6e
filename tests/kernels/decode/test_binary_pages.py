"""BYTE_ARRAY pages to offsets and bytes, whatever the initial size of the output."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.status import (
    BAD_DICTIONARY,
    BAD_LENGTH,
    NO_DICTIONARY,
    TRUNCATED,
    UNSUPPORTED_ENCODING,
)
from support.kernels.binary_values import compare_strings
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.decode_pages import DecodeOutcome, decode_binary
from support.kernels.engines import ENGINES, engines
from support.oracles.pages import (
    PLAIN,
    RLE_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    Chunk,
    data_page,
    dictionary_page,
    random_chunk,
)
from support.oracles.plain import BYTE_ARRAY, ColumnType, random_values


@engines
@pytest.mark.parametrize("null_share", [None, 0.0, 0.01, 0.5, 1.0])
def test_random_pages(engine, null_share):
    rng = np.random.default_rng(int(100 * (null_share or 0)))
    column = ColumnType(BYTE_ARRAY, 0, null_share is not None)
    for seed in range(engine.size(25, 5)):
        values = random_values(rng, column, int(rng.choice([1, 2, 30, 300])))
        chunk = random_chunk(
            rng,
            column,
            values,
            int(rng.integers(1, 4)),
            engine.size(int(rng.integers(1, 500))),
            null_share or 0.0,
            bool(rng.random() < 0.6),
            int(rng.choice([UNCOMPRESSED, SNAPPY])),
        )
        total = len(chunk.rows)
        start, stop = sorted(rng.integers(0, total + 1, 2).tolist())
        for first, last in ((0, total), (start, stop), (total - 1, total)):
            compare_strings(engine, chunk, first, last, seed)
        compare_strings(engine, chunk, 0, total, seed, room=1 << 20)


@engines
def test_every_row_window(engine):
    rng = np.random.default_rng(7)
    column = ColumnType(BYTE_ARRAY, 0, True)
    chunk = random_chunk(rng, column, random_values(rng, column, 20), 3, 11, 0.3, True, SNAPPY)
    for start in range(0, 34, 1 if engine.name == "compiled" else 7):
        for stop in range(start, 34, 1 if engine.name == "compiled" else 5):
            compare_strings(engine, chunk, start, stop, start)


@given(data=st.data())
def test_any_rows(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32), "seed"))
    column = ColumnType(BYTE_ARRAY, 0, data.draw(st.booleans(), "optional"))
    entries = data.draw(st.lists(st.binary(max_size=70), min_size=1, max_size=9, unique=True), "entries")
    row = st.sampled_from(entries)
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
    for engine in ENGINES:
        compare_strings(engine, chunk, start, stop, 5)


@engines
def test_wrong_value_lengths_are_refused(engine):
    """The output has the size of the page: no length may use the room of later values."""
    rng = np.random.default_rng(0)
    column = ColumnType(BYTE_ARRAY)
    page = data_page(column, [b"x" * 6] * 300, PLAIN, UNCOMPRESSED, 1, rng)
    request = DecodeRequest(stop=300)
    size = len(page.body)
    for lying in (size - 4, size - 5, size - 4 * 300 + 1, size - 4 * 300, size, size + 60, 1 << 31, (1 << 32) - 1):
        for place in (0, 10, 2990):
            body = page.body[:place] + struct.pack("<I", lying) + page.body[place + 4 :]
            outcome = decode_binary(engine, Chunk(column, UNCOMPRESSED, [replace(page, body=body)]), request, 1, 0)
            assert outcome.status in (BAD_LENGTH, TRUNCATED)


@engines
def test_bytes_after_the_last_value_are_ignored(engine):
    rng = np.random.default_rng(0)
    column = ColumnType(BYTE_ARRAY)
    page = data_page(column, [b"abc"] * 9, PLAIN, UNCOMPRESSED, 1, rng)
    sound = decode_binary(engine, Chunk(column, UNCOMPRESSED, [page]), DecodeRequest(stop=9))
    for behind in (b"\0", b"\xff" * 9, struct.pack("<I", 3) + b"def"):
        longer = replace(page, body=page.body + behind, uncompressed=len(page.body) + len(behind))
        assert decode_binary(engine, Chunk(column, UNCOMPRESSED, [longer]), DecodeRequest(stop=9)) == sound


@engines
@pytest.mark.parametrize("window", [(0, 50), (20, 50), (0, 20), (49, 50)])
def test_more_values_than_bytes(engine, window):
    rng = np.random.default_rng(0)
    column = ColumnType(BYTE_ARRAY)
    request = DecodeRequest(start=window[0], stop=window[1])
    for size in (0, 3, 4, 79, 80, 81, 199, 200):
        rows = [b"x" * max(size - 4, 0), *[b""] * 49]
        page = data_page(column, rows, PLAIN, UNCOMPRESSED, 1, rng)
        page = replace(page, body=page.body[:size], uncompressed=size)
        outcome = decode_binary(engine, Chunk(column, UNCOMPRESSED, [page]), request, 1, 0)
        if (
            size == 200 or window != (0, 20) or size < 80
        ):  # enough for the lengths of fifty empty values, but the first takes all
            assert outcome.status in (BAD_LENGTH, TRUNCATED)


@engines
def test_damaged_dictionaries(engine):
    rng = np.random.default_rng(0)
    column = ColumnType(BYTE_ARRAY)
    page = dictionary_page(column, [b"abc", b"de"], UNCOMPRESSED, rng)
    data = data_page(column, [b"de"], RLE_DICTIONARY, UNCOMPRESSED, 1, rng, [b"abc", b"de"])
    for body, status in (
        (page.body[:-1], BAD_LENGTH),
        (page.body[:-2] + b"\xff\xff", 0),
        (page.body[:8], TRUNCATED),
        (page.body[:7], BAD_DICTIONARY),
        (b"\xff\xff\xff\xff" + page.body[4:], BAD_LENGTH),
        (b"\x06" + page.body[1:], TRUNCATED),
    ):
        lying = replace(page, body=body, uncompressed=len(body))
        assert decode_binary(engine, Chunk(column, UNCOMPRESSED, [lying, data]), DecodeRequest(stop=1)).status == status


@engines
def test_unsupported_encodings_and_missing_dictionary(engine):
    rng = np.random.default_rng(0)
    column = ColumnType(BYTE_ARRAY)
    page = data_page(column, [b"abc"] * 9, PLAIN, UNCOMPRESSED, 1, rng)
    for encoding in (3, 4, 5, 9, 10, -1, 99):
        other = replace(page, more={**page.more, "encoding": encoding})
        assert decode_binary(engine, Chunk(column, UNCOMPRESSED, [other]), DecodeRequest(stop=9)) == DecodeOutcome(
            UNSUPPORTED_ENCODING, 0
        )
    other = replace(page, more={**page.more, "encoding": RLE_DICTIONARY})
    assert decode_binary(engine, Chunk(column, UNCOMPRESSED, [other]), DecodeRequest(stop=9)) == DecodeOutcome(
        NO_DICTIONARY, 0
    )
