"""Pages with wanted rows, runs of values taken, and headers of pages whose places are known: against slow twins."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from driving.buffers import Guarded, random_bytes, with_slack
from driving.engines import CHECKED, ENGINES
from driving.tables import Request, chunk_table, page_table
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kernel_pages import make_chunks
from twins import selecting
from twins.pages import (
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
from twins.values import BYTE_ARRAY, INT64, Column, random_values

from numparq.format.thrift.layout import thrift_layout
from numparq.kernels import tables as t
from numparq.kernels.decode.page_headers import HEADER_FIELDS
from numparq.kernels.selection.rows import K_FIELDS, K_PAGE, K_START, K_STOP, SELECTED_PAGES, SELECTED_ROWS
from numparq.kernels.status import BAD_COUNT, BAD_LENGTH, BAD_PAGE
from numparq.kernels.tables import L_END, L_IN_CHUNK, L_ROW, L_ROWS, L_START, LOCATION_FIELDS
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS

few = settings(deadline=None, max_examples=60)
SEEDS = st.integers(0, (1 << 32) - 1)

# --- pages with wanted rows -------------------------------------------------------------------------------------------


def apart(steps, start=0):
    """Make ranges that lie apart of alternating gaps and lengths."""
    ranges = []
    for gap, length in steps:
        ranges.append((start + gap, start + gap + length))
        start += gap + length
    return ranges


def select(engine, pages, ranges, first=0, seed=0):
    """Run `select_pages` over a page table with `first` other pages in front, and one behind."""
    rng = np.random.default_rng(seed)
    table = rng.integers(-(1 << 60), 1 << 60, (first + len(pages) + 1, t.PAGE_FIELDS))
    for row, (start, count) in zip(table[first:], pages, strict=False):
        row[t.P_ROW], row[t.P_NUM_VALUES] = start, count
    kept = Guarded(rng, len(pages) * K_FIELDS, "i8")
    spans, state = Guarded(rng, 2 * (len(ranges) + len(pages)), "i8"), Guarded(rng, 2, "i8")
    bounds = np.array(ranges, np.int64).reshape(-1)
    found = engine.select_pages_of_ranges(
        table.reshape(-1), first, first + len(pages), bounds, len(ranges), kept.array, spans.array, state.array
    )
    for buffer in (kept, spans, state):
        buffer.check()
    rows = kept.array.reshape(-1, K_FIELDS)[: state.array[SELECTED_PAGES], [K_PAGE, K_START, K_STOP]]
    runs = [tuple(run) for run in spans.array[: 2 * found].reshape(-1, 2).tolist()]
    return [(page - first, start, stop) for page, start, stop in rows.tolist()], runs, int(state.array[SELECTED_ROWS])


def check_select(pages, ranges, first=0):
    kept, places, rows = selecting.select_pages(pages, ranges)
    for engine in ENGINES:
        got, runs, decoded = select(engine, pages, ranges, first)
        assert got == kept
        assert decoded == rows
        assert [place for start, count in runs for place in range(start, start + count)] == [at for at, _ in places]
        assert sum(count == 0 for _, count in runs) == sum(start == stop for _, start, stop in kept)
        assert len(runs) <= len(ranges) + len(pages)


@few
@given(
    sizes=st.lists(st.integers(0, 12), max_size=12),
    begin=st.integers(0, 9),
    steps=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 14)), max_size=12),
    first=st.integers(0, 3),
    gaps=st.booleans(),
)
def test_pages_with_wanted_rows(sizes, begin, steps, first, gaps):
    """Pages of any number of rows, one behind the other or (some left out) apart; rows wanted in and around them."""
    starts = begin + np.cumsum([0, *sizes])[:-1] + (np.arange(len(sizes)) * 3 if gaps else 0)
    check_select(list(zip(starts.tolist(), sizes, strict=True)), apart(steps), first)


def test_no_pages_and_no_rows():
    beside = [(5, 5)], [(0, 5), (10, 12)]
    for pages, ranges in (([], []), ([], [(0, 9)]), ([(0, 5)], []), ([(0, 0)], [(0, 3)]), beside):
        check_select(pages, ranges)
        for engine in ENGINES:
            assert select(engine, pages, ranges) == ([], [], 0)
    check_select([(0, 4), (4, 0), (4, 0), (4, 5), (9, 0)], [(2, 6), (8, 9)])


def test_rows_beyond_32_bits():
    start = 1 << 40
    kept, runs, rows = [(1, start + 3, start + 9)], [(0, 2), (5, 1)], 6
    for engine in ENGINES:
        found = select(engine, [(0, start), (start, 10)], [(start + 3, start + 5), (start + 8, start + 9)])
        assert found == (kept, runs, rows)
        whole = select(engine, [(0, start), (start, start)], [(0, 2 * start)])
        assert whole == ([(0, 0, start), (1, start, 2 * start)], [(0, start), (start, start)], 2 * start)


def test_a_range_over_many_pages():
    pages = [(10 * number, 10) for number in range(50)]
    check_select(pages, [(5, 495)])
    check_select(pages, [(0, 500)])
    check_select(pages, [(row, row + 1) for row in range(0, 500, 2)])


# --- values taken -----------------------------------------------------------------------------------------------------


def take_items(engine, items, size, spans, place, seed=0):
    """Run `take_items` to a place in the middle of an output whose other bytes must stay."""
    rng = np.random.default_rng(seed)
    count = sum(length for _, length in spans)
    # Neither the source nor the output has a byte that may be touched behind its last item.
    out = Guarded(rng, place + count * size + 5)
    before = out.array.copy()
    source = np.frombuffer(b"".join(items), np.uint8)
    flat = np.array(spans, np.int64).reshape(-1)
    end = engine.take_fixed_ranges(source, size, flat, len(spans), out.array, place)
    out.check()
    assert end == place + count * size
    assert out.array[:place].tobytes() == before[:place].tobytes()
    assert out.array[end:].tobytes() == before[end:].tobytes()
    return out.array[place:end].tobytes()


@st.composite
def runs_of(draw, count):
    """Runs of some of `count` values, in any order, over each other, at times empty or all of them."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, count))
        found.append((start, draw(st.integers(0, min(count - start, draw(st.sampled_from([1, 2, 5, 9, 300])))))))
    return found


@few
@given(data=st.data(), size=st.sampled_from([1, 2, 3, 4, 8, 12, 16]), place=st.integers(0, 40), seed=SEEDS)
def test_items(data, size, place, seed):
    count = data.draw(st.integers(0, 300))
    items = [one.tobytes() for one in random_bytes(np.random.default_rng(seed), count * size).reshape(count, size)]
    spans = data.draw(runs_of(count))
    for engine in ENGINES:
        assert take_items(engine, items, size, spans, place) == b"".join(selecting.take(items, spans))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 12, 16])
@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_items_of_each_size(engine, size):
    """Runs of every short length, from the first item, to the last one, and one after the other."""
    items = [bytes([number, size] * size)[:size] for number in range(40)]
    for length in range(12):
        many = [(number, length) for number in range(0, 41 - length, 3)]
        for spans in ([(0, length)], [(40 - length, length)], many):
            assert take_items(engine, items, size, spans, size) == b"".join(selecting.take(items, spans))


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_long_runs_of_items(engine):
    count = engine.size(200_000, 3000)
    values = np.random.default_rng(1).integers(0, 1 << 62, count)
    spans = [(1, count - 2), (count - 1, 1), (0, count)]
    expected = np.concatenate([values[start : start + length] for start, length in spans])
    out = Guarded(np.random.default_rng(2), 8 * len(expected))
    flat = np.array(spans, np.int64).reshape(-1)
    assert engine.take_fixed_ranges(values.view(np.uint8), 8, flat, 3, out.array, 0) == len(out.array)
    out.check()
    assert (out.array.view(np.int64) == expected).all()


def take_strings(engine, values, spans, start=0, seed=0):
    """Count the bytes of strings, which begin somewhere in a buffer, and take them."""
    rng = np.random.default_rng(seed)
    data = np.frombuffer(random_bytes(rng, start).tobytes() + b"".join(values), np.uint8)
    offsets = np.cumsum([start, *map(len, values)]).astype(np.int64)
    flat, count = np.array(spans, np.int64).reshape(-1), sum(length for _, length in spans)
    size = engine.count_bytes_of_ranges(offsets, flat, len(spans))
    out_offsets, out = Guarded(rng, count + 1, "i8"), Guarded(rng, size)
    assert engine.take_binary_ranges(offsets, data, flat, len(spans), out_offsets.array, out.array) == size
    out_offsets.check()
    out.check()
    ends, taken = out_offsets.array.tolist(), out.array.tobytes()
    assert ends[0] == 0
    assert ends[-1] == size
    return [taken[first:last] for first, last in itertools.pairwise(ends)]


@few
@given(
    data=st.data(),
    start=st.integers(0, 30),
    values=st.lists(st.one_of(st.binary(max_size=5), st.binary(max_size=60)), max_size=60),
)
def test_strings(data, start, values):
    spans = data.draw(runs_of(len(values)))
    for engine in ENGINES:
        assert take_strings(engine, values, spans, start) == selecting.take(values, spans)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_strings_of_odd_lengths(engine):
    values = [b"", b"x" * engine.size(100_000), b"", b"short", b"y" * 17]
    several = [(0, 1), (2, 1)], [(1, 2), (1, 2), (4, 1)], [(4, 1), (3, 1), (0, 3)]
    for spans in ([], [(0, 0)], [(5, 0)], [(0, 5)], *several):
        assert take_strings(engine, values, spans, 3) == selecting.take(values, spans)
    assert take_strings(engine, [], []) == []


# --- values taken one by one ------------------------------------------------------------------------------------------


@few
@given(mask=st.lists(st.booleans(), max_size=200))
def test_places_of_a_mask(mask):
    for engine in ENGINES:
        # There is room for one more than there may be.
        out = Guarded(np.random.default_rng(0), len(mask) + 1, "i4")
        count = engine.mask_to_indices(np.array(mask, np.uint8), len(mask), out.array)
        out.check()
        assert out.array[:count].tolist() == [place for place, there in enumerate(mask) if there]


@few
@given(data=st.data(), size=st.sampled_from([1, 2, 3, 4, 8, 12, 16]), place=st.integers(0, 40), seed=SEEDS)
def test_items_one_by_one(data, size, place, seed):
    """Items in any order, some more than once, behind what is in the output already; nothing beside them is touched."""
    rng = np.random.default_rng(seed)
    count = data.draw(st.integers(1, 100))
    items = [one.tobytes() for one in random_bytes(rng, count * size).reshape(count, size)]
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=60))
    source, flat = np.frombuffer(b"".join(items), np.uint8), np.array(places, np.int32)
    for engine in ENGINES:
        out = Guarded(rng, place + len(places) * size + 5)
        before = out.array.tobytes()
        end = engine.take_fixed_indices(source, size, flat, len(places), out.array, place)
        out.check()
        assert end == place + len(places) * size
        assert out.array[place:end].tobytes() == b"".join(selecting.take_at(items, places))
        assert out.array[:place].tobytes() == before[:place]
        assert out.array[end:].tobytes() == before[end:]


@few
@given(data=st.data(), values=st.lists(st.one_of(st.binary(max_size=5), st.binary(max_size=60)), max_size=40))
def test_strings_one_by_one(data, values):
    """Strings in any order, and empty ones for negative places."""
    places = data.draw(st.lists(st.integers(-2, len(values) - 1), max_size=60))
    check_strings_at(values, places, data.draw(st.integers(0, 9)))


def test_strings_of_every_length_one_by_one():
    values = [bytes(range(1, length + 1)) for length in range(40)]
    check_strings_at(values, list(range(40)))
    check_strings_at(values, list(range(39, -2, -1)), 3)


def check_strings_at(values, places, start=0):
    """Take strings; up to 16 bytes behind them may be touched."""
    rng = np.random.default_rng(len(values))
    stored = with_slack(rng, bytes(start) + b"".join(values), 16)
    offsets, flat = np.cumsum([start, *map(len, values)]).astype(np.int64), np.array(places, np.int32)
    expected = selecting.take_at(values, places, b"")
    for engine in ENGINES:
        size = engine.count_bytes_of_indices(offsets, flat, len(places))
        assert size == sum(map(len, expected))
        out_offsets, out = Guarded(rng, len(places) + 1, "i8"), Guarded(rng, size + 16)
        assert engine.take_binary_indices(offsets, stored, flat, len(places), out_offsets.array, out.array) == size
        out_offsets.check()
        out.check()
        taken = out.array.tobytes()
        found = [taken[first:last] for first, last in itertools.pairwise(out_offsets.array.tolist())]
        assert found == expected


# --- pages whose places are known -------------------------------------------------------------------------------------


def locate(pages):
    """Tell where the pages of a page table lie, as an offset index does."""
    table = np.empty((len(pages), LOCATION_FIELDS), np.int64)
    ends = pages[:, t.P_BODY] + pages[:, t.P_COMPRESSED]
    is_data = pages[:, t.P_TYPE] != DICTIONARY_PAGE
    table[:, L_START], table[:, L_END], table[:, L_IN_CHUNK] = pages[:, t.P_HEADER], ends, pages[:, t.P_IN_CHUNK]
    table[:, L_ROW], table[:, L_ROWS] = np.where(is_data, pages[:, t.P_ROW], -1), pages[:, t.P_NUM_VALUES] * is_data
    return table


def scan_located(engine, data, located, column=None, codec=UNCOMPRESSED, is_flat=1):
    """Run `scan_located_pages`: the status, the page that it is about, and the page table."""
    rng = np.random.default_rng(len(data))
    header = thrift_layout("PageHeader", *HEADER_FIELDS)
    slots = np.array([header.slot(name) for name in HEADER_FIELDS], np.int64)
    chunks = chunk_table(column or Column(INT64), codec, 1 << 40, len(data), Request(stop=1 << 40))
    chunks[t.C_DICTIONARY_PAGE] = -1
    count = len(located)
    table, state = Guarded(rng, count * t.PAGE_FIELDS, "i8"), Guarded(rng, 1, "i8")
    record, stack = Guarded(rng, header.words, "i8"), Guarded(rng, STACK_WORDS, "i8")
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
    """A chunk with a dictionary and pages of 5 to 9 rows: it, its bytes behind others, and where its pages are."""
    rng = np.random.default_rng(seed)
    column, codec = Column(INT64, 0, bool(seed % 2)), (UNCOMPRESSED, SNAPPY)[seed % 3 % 2]
    values = random_values(rng, column, 9)
    entries = list(dict.fromkeys(values))
    pages = [dictionary_page(column, entries, codec, rng)]
    for count in range(5, 10):
        pages.append(data_page(column, values[:count], RLE_DICTIONARY, codec, 1 + count % 2, rng, entries))
    chunk = Chunk(column, codec, pages)
    return chunk, b"7 bytes" + chunk.stored(), locate(page_table(chunk, 7))


@few
@given(seed=SEEDS, data=st.data(), gap=st.binary(max_size=5))
def test_located_pages(seed, data, gap):
    """Some pages of a chunk, in any bytes: the rows of the page table that the walk over all of them writes."""
    (chunk,) = make_chunks(np.random.default_rng(seed), 1)
    pages = page_table(chunk, 3)
    kept = np.array([data.draw(st.booleans()) for _ in pages], bool)
    # As the reader fetches them: only those wanted, one behind the other.
    raw, moved = gap, pages[kept].copy()
    stored = chunk.stored()
    for page in moved:
        start, body = page[t.P_HEADER] - 3, page[t.P_BODY] - 3
        page[t.P_HEADER], page[t.P_BODY] = len(raw), len(raw) + body - start
        raw += stored[start : body + page[t.P_COMPRESSED]]
    for engine in ENGINES:
        status, _, found = scan_located(engine, raw, locate(moved), chunk.column, chunk.codec)
        assert status == 0
        expected = moved.copy()
        expected[expected[:, t.P_TYPE] == DICTIONARY_PAGE, t.P_ROW] = -1
        assert (found == expected).all()


def test_nested_pages_have_rows_of_their_own():
    """The number of values of a page is held against its rows in flat columns only."""
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
def test_located_pages_that_are_cut(engine, seed):
    """Every page is made to end at every byte: no header reaches beyond, and no body."""
    chunk, data, located = chunk_of(seed)
    for number in range(len(located)):
        for end in range(int(located[number, L_START]), int(located[number, L_END])):
            lying = located.copy()
            lying[number, L_END] = end
            status, page, _ = scan_located(engine, data, lying, chunk.column, chunk.codec)
            assert status < 0
            assert page == number
        # A data page ends where its header says; a dictionary page may have something behind it.
        lying = located.copy()
        lying[number, L_END] += 1
        status, page, _ = scan_located(engine, data + b"?", lying, chunk.column, chunk.codec)
        assert status == 0 if located[number, L_ROW] < 0 else (status, page) == (BAD_PAGE, number)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_bytes_that_are_no_headers(engine):
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
def test_places_of_other_pages(engine):
    """Overlapping, in another order, off by one byte, with other numbers of rows."""
    chunk, data, located = chunk_of(3)
    flat = chunk.column, chunk.codec
    assert scan_located(engine, data, located, *flat)[0] == 0
    one, other = 1, 2
    for column, difference in ((L_START, -1), (L_START, 1), (L_END, -1), (L_ROWS, 1), (L_ROWS, -1)):
        lying = located.copy()
        lying[other, column] += difference
        status, page, _ = scan_located(engine, data, lying, *flat)
        assert status < 0 and page == other, (column, difference)
    both = located.copy()  # a place that two pages have together
    both[other, [L_START, L_END]] = located[one, L_START], located[other, L_END]
    assert scan_located(engine, data, both, *flat)[:2] == (BAD_PAGE, other)
    swapped = located.copy()
    for column in (L_START, L_END):
        swapped[[one, other], column] = located[[other, one], column]
    assert scan_located(engine, data, swapped, *flat)[:2] == (BAD_COUNT, one)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_pages_of_another_type(engine):
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
def test_headers_that_lie(engine):
    """Counts and sizes that are negative, or larger than what is there."""
    rng = np.random.default_rng(6)
    column = Column(INT64)
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


def test_strings_have_located_pages_too():
    rng = np.random.default_rng(8)
    column = Column(BYTE_ARRAY, 0, True)
    page = data_page(column, [b"a", None, b"long"], PLAIN, UNCOMPRESSED, 2, rng)
    located = np.array([[0, len(page.stored()), 5, 3, 2]])
    status, _, found = scan_located(CHECKED, page.stored(), located, column)
    assert status == 0
    assert found[0, [t.P_ROW, t.P_IN_CHUNK, t.P_NUM_NULLS]].tolist() == [5, 2, 1]
