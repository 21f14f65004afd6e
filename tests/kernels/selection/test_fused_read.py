"""Fused read of a run of rows: the oracle's rows, or a status, and never another value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.format.thrift.layout import thrift_layout
from numparq.kernels import enums as t
from numparq.kernels import tables
from numparq.kernels.decode.page_headers import HEADER_FIELDS
from numparq.kernels.decode.scratch_layout import TOTAL_FIELDS
from numparq.kernels.selection.fused_read import ROOM_FIELDS
from numparq.kernels.selection.lazy_pages import STATE_FIELDS
from numparq.kernels.status import BAD_COUNT, BAD_CRC, NEED_ROOM
from numparq.kernels.tables import L_END, L_ROW, L_ROWS
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS
from support.kernels.chunk_tables import DecodeRequest, chunk_table, page_locations, page_table
from support.kernels.decode_rows import STRINGS, TAKEN, expected_rows
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer, with_slack
from support.oracles.pages import PLAIN, RLE_DICTIONARY, SNAPPY, UNCOMPRESSED, Chunk, data_page, dictionary_page
from support.oracles.plain import INT64, ColumnType, random_values

LARGE = 1 << 16


class FusedRead:
    """One kernel call, in guarded buffers."""

    def __init__(self, engine, chunk, request, data, located, few, room=LARGE, verify=1):
        self.engine, self.request, self.few = engine, request, few
        self.rng = np.random.default_rng(len(data))
        self.guarded: list[GuardedBuffer] = []
        self.is_string = chunk.column.physical == t.BYTE_ARRAY
        self.chunk = chunk_table(chunk.column, chunk.codec, 1 << 40, len(data), request)
        self.chunk[tables.C_DICTIONARY_PAGE] = -1
        self.room = np.full(ROOM_FIELDS, room, np.int64)
        header = thrift_layout("PageHeader", *HEADER_FIELDS)
        slots = np.array([header.slot(name) for name in HEADER_FIELDS], np.int64)
        stack, count = self.buffer(STACK_WORDS, "i8"), request.stop - request.start
        stack[S_TOP] = stack[S_ROOM] = header.words
        common = (
            with_slack(self.rng, data),
            located.reshape(-1),
            len(located),
            verify,
            self.chunk,
            self.buffer(len(located) * tables.PAGE_FIELDS, "i8"),
            header.table,
            slots,
            self.buffer(header.words, "i8"),
            stack,
            self.buffer((len(located) + 1) * tables.BATCH_FIELDS, "i8"),
            self.buffer(TOTAL_FIELDS, "i8"),
            self.buffer(STATE_FIELDS, "i8"),
            self.room,
        )
        places = np.arange(count if few or self.is_string else 0, dtype=np.int32)
        values = self.buffer(len(places), "i8")
        size = room + tables.SLACK
        if self.is_string:
            self.offsets, self.validity = self.buffer(count + 1, "i8"), self.buffer(count)
            self.out = self.buffer(LARGE + tables.SLACK)
            self.status = engine.fused_read_binary(
                *common,
                self.buffer(size),
                self.buffer(size),
                places,
                count,
                values,
                self.validity,
                self.offsets,
                self.out,
                LARGE,
            )
        else:
            self.out, self.mask = self.buffer(count * request.item + tables.SLACK), self.buffer(count + tables.SLACK)
            self.status = engine.fused_read_fixed(
                *common, *(self.buffer(size) for _ in range(4)), places, len(places), values, self.mask, 0, self.out, 0
            )
        for buffer in self.guarded:
            buffer.check()

    def buffer(self, size, dtype="u1"):
        self.guarded.append(GuardedBuffer(self.rng, size, dtype))
        return self.guarded[-1].array

    @property
    def rows(self):
        """Return the rows, as `expected_rows` has them."""
        count, item = self.request.stop - self.request.start, self.request.item
        if self.is_string:
            ends, data = self.offsets.tolist(), self.out.tobytes()
            pairs = zip(ends, ends[1:], self.validity.tolist(), strict=False)
            return tuple(data[first:last] if valid else None for first, last, valid in pairs)
        data = self.out.tobytes()
        return tuple(data[place * item : (place + 1) * item] for place in range(count))


def some_chunk(draw):
    """Draw a case, a chunk of up to four pages, and a request for some of its rows."""
    case = draw(st.sampled_from([TAKEN[1], TAKEN[2], STRINGS]))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    column = replace(case.column, optional=draw(st.booleans()))
    entries = case.values(rng, draw(st.integers(1, 9)))
    codec = draw(st.sampled_from([UNCOMPRESSED, SNAPPY]))
    coded = case is not STRINGS and draw(st.booleans())
    pages = [dictionary_page(column, entries, codec, rng)] if coded else []
    row = st.sampled_from([*entries, None] if column.optional else entries)
    for rows in draw(st.lists(st.lists(row, min_size=1, max_size=60), min_size=1, max_size=4)):
        encoding = RLE_DICTIONARY if coded and draw(st.booleans()) else PLAIN
        pages.append(data_page(column, rows, encoding, codec, draw(st.integers(1, 2)), rng, entries))
    chunk = Chunk(column, codec, pages)
    start = draw(st.integers(0, len(chunk.rows) - 1))
    stop = draw(st.integers(start + 1, len(chunk.rows)))
    nulls = tables.NULLS_MASK if case is STRINGS else draw(st.sampled_from([tables.NULLS_MASK, tables.NULLS_FILL]))
    return case, chunk, DecodeRequest(case.conversion, case.item, nulls, -1, start, stop)


@given(data=st.data(), few=st.booleans())
def test_any_run_of_rows(data, few):
    case, chunk, request = some_chunk(data.draw)
    expected = expected_rows(case, chunk, request, range(request.stop - request.start))
    located = page_locations(page_table(chunk))
    for engine in ENGINES:
        run = FusedRead(engine, chunk, request, chunk.stored(), located, few)
        assert run.status == 0
        assert int(run.chunk[tables.C_NULL_COUNT]) == expected.null_count
        assert run.rows == expected.rows
        if request.nulls == tables.NULLS_MASK and case is not STRINGS:
            assert run.mask[: len(expected.mask)].tobytes() == expected.mask


def three_pages(seed=1, codec=SNAPPY):
    rng, column = np.random.default_rng(seed), ColumnType(INT64)
    values = random_values(rng, column, 30)
    pages = [data_page(column, values[first : first + 10], PLAIN, codec, 1, rng) for first in (0, 10, 20)]
    chunk = Chunk(column, codec, pages)
    return chunk, chunk.stored(), page_locations(page_table(chunk))


@engines
@pytest.mark.parametrize("few", [False, True])
def test_cut_at_every_byte(engine, few):
    """Pages truncated in their header or their body give a status."""
    chunk, data, located = three_pages()
    request = DecodeRequest(tables.COPY, 8, tables.NULLS_FILL, 0, 5, 25)
    assert FusedRead(engine, chunk, request, data, located, few).status == 0
    for number in range(3):
        for end in range(int(located[number, 0]), int(located[number, L_END]), 1 if engine.name == "compiled" else 9):
            lying = located.copy()
            lying[number, L_END] = end
            assert FusedRead(engine, chunk, request, data, lying, few, verify=0).status < 0


@engines
def test_truncated_strings(engine):
    """Truncated inside a string, and between strings."""
    rng, column = np.random.default_rng(6), STRINGS.column
    page = data_page(column, [b"one", b"two and more", b"", b"three"], PLAIN, UNCOMPRESSED, 1, rng)
    request = DecodeRequest(tables.COPY, 0, tables.NULLS_MASK, 0, 0, 4)
    for cut in range(len(page.body) + 1):
        chunk = Chunk(column, UNCOMPRESSED, [replace(page, body=page.body[:cut], uncompressed=cut)])
        run = FusedRead(engine, chunk, request, chunk.stored(), page_locations(page_table(chunk)), True)
        assert run.status < 0 if cut < len(page.body) else run.rows == (b"one", b"two and more", b"", b"three")


@engines
def test_damaged_bytes(engine):
    """Any flipped bit gives a status or other values; guarded memory stays untouched."""
    chunk, data, located = three_pages(2)
    request = DecodeRequest(tables.COPY, 8, tables.NULLS_FILL, 0, 5, 25)
    for place in range(0, len(data), 1 if engine.name == "compiled" else 11):
        bad = bytearray(data)
        bad[place] ^= 1 << place % 8
        for few in (False, True):
            assert FusedRead(engine, chunk, request, bytes(bad), located, few, verify=0).status <= 0


@engines
def test_wrong_crc(engine):
    chunk, _, _ = three_pages(3)
    pages = [chunk.pages[0], replace(chunk.pages[1], more={**chunk.pages[1].more, "crc": 12345}), chunk.pages[2]]
    chunk = replace(chunk, pages=pages)
    data, located, request = (
        chunk.stored(),
        page_locations(page_table(chunk)),
        DecodeRequest(tables.COPY, 8, tables.NULLS_FILL, 0, 0, 30),
    )
    assert FusedRead(engine, chunk, request, data, located, False).status == BAD_CRC
    assert FusedRead(engine, chunk, request, data, located, False, verify=0).status == 0


@engines
@pytest.mark.parametrize("few", [False, True])
def test_rows_missing_from_the_pages(engine, few):
    chunk, data, located = three_pages(4)
    request = DecodeRequest(tables.COPY, 8, tables.NULLS_FILL, 0, 5, 25)
    for lying in (located[1:], located[:2], located[[0, 2]]):
        assert FusedRead(engine, chunk, request, data, lying, few).status < 0
    shifted = located.copy()
    shifted[1:, L_ROW] += 1
    assert FusedRead(engine, chunk, request, data, shifted, few).status < 0
    more = located.copy()
    more[0, L_ROWS] += 1
    assert FusedRead(engine, chunk, request, data, more, few).status == BAD_COUNT
    assert FusedRead(engine, chunk, request, b"", located[:0], few).status < 0


@engines
def test_too_little_room(engine):
    """The kernel reports the room that it needs, and that suffices."""
    chunk, data, located = three_pages(5)
    request = DecodeRequest(tables.COPY, 8, tables.NULLS_FILL, 0, 5, 25)
    run = FusedRead(engine, chunk, request, data, located, False, room=16)
    assert run.status == NEED_ROOM
    assert run.room.max() > 16
    assert FusedRead(engine, chunk, request, data, located, False, room=int(run.room.max())).status == 0
