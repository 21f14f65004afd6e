"""Selected rows of pages, decoded without the others: against the oracle of whole pages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import tables as t
from numparq.kernels.selection.binary_pages import STEP
from numparq.kernels.status import (
    BAD_COMPRESSED_DATA,
    BAD_RUN,
    INDEX_OUT_OF_RANGE,
    INEXACT,
    NO_DICTIONARY,
    NULL_FOUND,
    TRUNCATED,
    UNSUPPORTED_ENCODING,
)
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.damaged_chunks import chunks_to_truncate, damage_chunk, oracle_verdict, refused_by_the_walk
from support.kernels.decode_pages import DecodeOutcome
from support.kernels.decode_rows import STRINGS, TAKEN, expected_rows, take_rows
from support.kernels.engines import ENGINES, engines
from support.kernels.value_cases import FILLS, ValueCase, first_null
from support.oracles import hybrid_rle, row_selection, snappy
from support.oracles.pages import (
    DICTIONARY_PAGE,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    Chunk,
    data_page,
    dictionary_page,
    random_chunk,
)
from support.oracles.plain import (
    FIXED_LEN_BYTE_ARRAY,
    INT32,
    INT64,
    INT96,
    ColumnType,
    keep,
    random_values,
)

cases = pytest.mark.parametrize("case", TAKEN, ids=repr)


def random_indices(rng, count):
    """Return sorted row indices: none, one, few, or all."""
    share = float(rng.choice([0, 0.02, 0.2, 1]))
    return np.flatnonzero(rng.random(count) < share).tolist() if count else []


def request_for(case: ValueCase, rng, chunk: Chunk) -> DecodeRequest:
    start, stop = sorted(rng.integers(0, len(chunk.rows) + 1, 2).tolist())
    nulls = int(rng.choice([t.NULLS_FILL, t.NULLS_MASK]))
    return DecodeRequest(case.conversion, case.item, nulls, int(rng.choice(FILLS)), start, stop)


@engines
@cases
@pytest.mark.parametrize("null_share", [None, 0.0, 0.1, 1.0])
def test_random_pages(engine, case, null_share):
    rng = np.random.default_rng([TAKEN.index(case), int(100 * (null_share or 0))])
    column = replace(case.column, optional=null_share is not None)
    for seed in range(engine.size(12, 3)):
        more, codec = bool(rng.random() < 0.3), int(rng.choice([UNCOMPRESSED, SNAPPY]))
        dictionary = bool(rng.random() < 0.6)
        values = case.values(rng, int(rng.choice([1, 2, 30, 300])))
        chunk = random_chunk(
            rng,
            column,
            values,
            int(rng.integers(1, 4)),
            engine.size(int(rng.integers(1, 500)), 40),
            null_share or 0.0,
            dictionary,
            codec,
            more=more,
        )
        request = request_for(case, rng, chunk)
        places = random_indices(rng, request.stop - request.start)
        expected = expected_rows(case, chunk, request, places)
        assert take_rows(engine, chunk, request, places, False, seed) == expected
        if not more:
            assert take_rows(engine, chunk, request, places, True, seed) == expected


@given(data=st.data())
def test_any_rows(data):
    """Runs of any lengths in pages of both versions."""
    case = data.draw(st.sampled_from([TAKEN[1], STRINGS]), "case")
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32), "seed"))
    column = replace(case.column, optional=data.draw(st.booleans(), "optional"))
    entries = case.values(rng, data.draw(st.integers(1, 9), "entries"))
    row = st.sampled_from([*entries, None] if column.optional else entries)
    codec = data.draw(st.sampled_from([UNCOMPRESSED, SNAPPY]), "codec")
    pages = [dictionary_page(column, entries, codec, rng)]
    for parts in data.draw(st.lists(st.lists(st.tuples(row, st.integers(1, 40)), max_size=6), max_size=4), "pages"):
        rows = [value for value, count in parts for _ in range(count)]
        encoding = data.draw(st.sampled_from([PLAIN, RLE_DICTIONARY]), "encoding")
        pages.append(data_page(column, rows, encoding, codec, data.draw(st.integers(1, 2), "version"), rng, entries))
    chunk = Chunk(column, codec, pages)
    request = DecodeRequest(case.conversion, case.item, t.NULLS_MASK, -1, 0, len(chunk.rows))
    places = sorted(data.draw(st.sets(st.integers(0, max(request.stop - 1, 0)), max_size=9), "places"))
    places = places if request.stop else []
    for engine in ENGINES:
        for stored in (False, True):
            assert take_rows(engine, chunk, request, places, stored) == expected_rows(case, chunk, request, places)


@engines
def test_nulls_are_refused(engine):
    """Nulls between a page's first and last selected row count, as when all these rows are decoded."""
    rng = np.random.default_rng(3)
    case = TAKEN[1]
    column = replace(case.column, optional=True)
    for seed in range(engine.size(40, 8)):
        chunk = random_chunk(rng, column, case.values(rng, 9), 2, 20, 0.03)
        request = replace(request_for(case, rng, chunk), nulls=t.NULLS_RAISE)
        places = list(range(request.stop - request.start))
        page = first_null(chunk, request)
        expected = expected_rows(case, chunk, request, places) if page < 0 else DecodeOutcome(NULL_FOUND, page)
        assert take_rows(engine, chunk, request, places, False, seed) == expected


def long_strings(rng, count):
    """Return strings of one length, then of many; they compress well and are a few steps long."""
    same = [b"the same: %07d" % number for number in rng.integers(0, 999, count // 2).tolist()]
    return same + [b"x" * length for length in rng.integers(0, 60, count - count // 2).tolist()]


@engines
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("optional", [False, True])
def test_pages_decompressed_in_steps(engine, version, optional):
    rng = np.random.default_rng(4)
    count = engine.size(9000, 3000)
    for case in (TAKEN[1], STRINGS):
        column = replace(case.column, optional=optional)
        values = long_strings(rng, count) if case is STRINGS else case.values(rng, 50) * (count // 50)
        rows = [
            None if optional and null else value for value, null in zip(values, rng.random(count) < 0.1, strict=True)
        ]
        page = data_page(column, rows, PLAIN, SNAPPY, version, rng, [])
        assert page.uncompressed > (2 * STEP if case is STRINGS and engine.name == "compiled" else 0)
        chunk = Chunk(column, SNAPPY, [page])
        request = DecodeRequest(case.conversion, case.item, t.NULLS_MASK, -1, 0, count)
        for places in ([0], [count - 1], [count // 2], [0, 1, count // 3], sorted(rng.integers(0, count, 30).tolist())):
            places = sorted(set(places))
            assert take_rows(engine, chunk, request, places, True) == expected_rows(case, chunk, request, places)


@engines
def test_bytes_after_the_last_selected_row_are_not_decompressed(engine):
    """Damage after the last selected row is not noticed; damage before it and a truncated block are refused."""
    column, rng = ColumnType(INT64), np.random.default_rng(5)
    rows = [number.to_bytes(8, "little") for number in rng.integers(0, 1 << 60, 400).tolist()]
    first, last = b"".join(rows[:200]), b"".join(rows[200:])
    page = data_page(column, rows, PLAIN, SNAPPY, 1, rng, [])
    head = b"\x80\x19" + snappy.literal(first, 2)
    assert snappy.decompress(head + snappy.literal(last, 2), 3200) == first + last
    bad = replace(page, body=head + snappy.copy(60000, 64, 2) + snappy.literal(last, 2))
    request = DecodeRequest(t.COPY, 8, t.NULLS_FILL, 0, 0, 400)
    for places, status in (([0, 199], 0), ([0, 200], BAD_COMPRESSED_DATA)):
        assert take_rows(engine, Chunk(column, SNAPPY, [bad]), request, places, True).status == status
    cut = replace(page, body=head)
    assert take_rows(engine, Chunk(column, SNAPPY, [cut]), request, [399], True).status == BAD_COMPRESSED_DATA
    longer = replace(page, body=head + snappy.literal(last, 2) + snappy.literal(b"more", 0))
    assert take_rows(engine, Chunk(column, SNAPPY, [longer]), request, [399], True).status == BAD_COMPRESSED_DATA


@engines
def test_missing_dictionary_and_unknown_encoding(engine):
    rng = np.random.default_rng(6)
    column = ColumnType(INT64)
    values = random_values(rng, column, 5)
    indexed = data_page(column, values, RLE_DICTIONARY, UNCOMPRESSED, 1, rng, values)
    plain = data_page(column, values, PLAIN, UNCOMPRESSED, 1, rng, [])
    request = DecodeRequest(t.COPY, 8, t.NULLS_FILL, 0, 0, 5)
    codes = replace(request, conversion=t.CODES, item=4)
    other = replace(plain, more={**plain.more, "encoding": 77})
    for page, page_request, status in (
        (indexed, request, NO_DICTIONARY),
        (plain, codes, NO_DICTIONARY),
        (other, request, UNSUPPORTED_ENCODING),
    ):
        assert take_rows(engine, Chunk(column, UNCOMPRESSED, [page]), page_request, [1, 3], True) == DecodeOutcome(
            status, 0
        )


@engines
@pytest.mark.parametrize("case", [TAKEN[1], TAKEN[2], TAKEN[9], TAKEN[19], STRINGS], ids=repr)
def test_damaged_chunks(engine, case):
    """Rows of damaged pages equal the oracle's if it reads them; otherwise only stray loads and stores fail."""
    rng = np.random.default_rng(TAKEN.index(case))
    decoded = refused = 0
    for number in range(engine.size(150, 20)):
        column = replace(case.column, optional=bool(rng.random() < 0.7))
        values = case.values(rng, int(rng.choice([1, 3, 20])))
        dictionary = bool(rng.random() < 0.6)
        chunk = random_chunk(
            rng,
            column,
            values,
            int(rng.integers(1, 4)),
            int(rng.integers(1, 40)),
            float(rng.choice([0.0, 0.3, 1.0])),
            dictionary,
            int(rng.choice([0, 1])),
        )
        request = DecodeRequest(case.conversion, case.item, t.NULLS_MASK, -1, 0, len(chunk.rows))
        for _ in range(4):
            bad = damage_chunk(rng, chunk)
            if refused_by_the_walk(engine, bad):
                continue
            found = attempt(engine, case, bad, request, random_indices(rng, len(chunk.rows)), number)
            decoded, refused = decoded + (found.status == 0), refused + (found.status < 0)
    assert decoded
    assert refused


def indexed_chunk(column: ColumnType, entries: list[bytes], body: bytes) -> Chunk:
    """Return a chunk of a dictionary and a page of eight indices with this body."""
    rng = np.random.default_rng(7)
    page = data_page(column, [entries[0]] * 8, RLE_DICTIONARY, UNCOMPRESSED, 1, rng, entries)
    page = replace(page, body=body, uncompressed=len(body))
    return Chunk(column, UNCOMPRESSED, [dictionary_page(column, entries, UNCOMPRESSED, rng), page])


@engines
@pytest.mark.parametrize(
    "column", [ColumnType(INT32), ColumnType(INT64), *(ColumnType(FIXED_LEN_BYTE_ARRAY, n) for n in (3, 16))]
)
def test_indices_beyond_the_dictionary(engine, column):
    """Refused where they are selected, from the first invalid index on."""
    entries = [bytes([number]) * column.size for number in range(3)]
    request = DecodeRequest(t.COPY, column.size, t.NULLS_FILL, 0, 0, 8)
    for index in (2, 3, 4, 255):
        for made in ([("rle", index, 8)], [("packed", [0] * 7 + [index])]):
            chunk = indexed_chunk(column, entries, b"\x08" + hybrid_rle.encode(made, 8))
            found = take_rows(engine, chunk, request, [0, 7], True)
            if index == 2:
                assert found.rows is not None
                assert found.rows[1] == entries[2]
            else:
                assert found == DecodeOutcome(INDEX_OUT_OF_RANGE, 1)


@engines
def test_invalid_index_runs_are_refused(engine):
    """Empty runs before a valid one, and truncated runs; bytes after the page would be valid indices."""
    column, request = ColumnType(INT64), DecodeRequest(t.COPY, 8, t.NULLS_FILL, 0, 0, 8)
    entries = [bytes([number]) * 8 for number in range(256)]
    enough, packed = hybrid_rle.encode([("rle", 9, 8)], 8), hybrid_rle.encode([("packed", [9] * 8)], 8)
    for body, status in (
        (enough, 0),
        (b"\x00\x01" + enough, BAD_RUN),
        (b"\x01" + enough, BAD_RUN),
        (packed, 0),
        (enough[:1], TRUNCATED),
        (packed[:-1], TRUNCATED),
        (b"", TRUNCATED),
    ):
        found = take_rows(engine, indexed_chunk(column, entries, b"\x08" + body), request, [1, 6], True)
        assert found == (DecodeOutcome(status, 1) if status else DecodeOutcome(0, -1, (entries[9],) * 2))


@engines
def test_truncated_plain_pages(engine):
    """Truncated by one byte or by the last value, whichever rows are selected."""
    rng = np.random.default_rng(9)
    for column in (ColumnType(INT32), ColumnType(FIXED_LEN_BYTE_ARRAY, 3)):
        rows = [rng.bytes(column.size) for _ in range(5)]
        page = data_page(column, rows, PLAIN, UNCOMPRESSED, 1, rng, [])
        for cut in (0, 1, column.size):
            body = page.body[: len(page.body) - cut]
            chunk = Chunk(column, UNCOMPRESSED, [replace(page, body=body, uncompressed=len(body))])
            for places in ([0], [4], [1, 4]):
                found = take_rows(
                    engine, chunk, DecodeRequest(t.COPY, column.size, t.NULLS_FILL, 0, 0, 5), places, True
                )
                assert found == (
                    DecodeOutcome(TRUNCATED, 0) if cut else DecodeOutcome(0, -1, tuple(rows[i] for i in places))
                )


@engines
def test_value_after_nulls_is_decompressed(engine):
    """The first value lies where the levels end, in a Snappy element of its own."""
    rng = np.random.default_rng(10)
    column = ColumnType(INT64, 0, True)
    value = rng.bytes(8)
    page = data_page(column, [None, None, value, None], PLAIN, UNCOMPRESSED, 1, rng, [])
    levels, values = page.body[:-8], page.body[-8:]
    body = bytes([len(page.body)]) + snappy.literal(levels, 0) + snappy.literal(values, 0)
    assert snappy.decompress(body, len(page.body)) == page.body
    chunk = Chunk(column, SNAPPY, [replace(page, body=body)])
    request = DecodeRequest(t.COPY, 8, t.NULLS_FILL, 0, 0, 4)
    for places in ([2], [0, 2], [1, 2, 3]):
        expected = tuple(value if place == 2 else bytes(8) for place in places)
        assert take_rows(engine, chunk, request, places, True) == DecodeOutcome(0, -1, expected, b"", len(places) - 1)


@engines
def test_level_sections_beyond_the_page(engine):
    rng = np.random.default_rng(11)
    column = ColumnType(INT64, 0, True)
    section = hybrid_rle.encode([("rle", 0, 9)], 1)
    page = data_page(column, [None] * 9, PLAIN, UNCOMPRESSED, 1, rng, [])
    request = DecodeRequest(t.COPY, 8, t.NULLS_FILL, 0, 0, 9)
    for beyond in (-1, 0, 1, 1 << 31):
        body = (len(section) + beyond).to_bytes(4, "little") + section
        chunk = Chunk(column, UNCOMPRESSED, [replace(page, body=body, uncompressed=len(body))])
        found = take_rows(engine, chunk, request, [1, 8], True)
        assert found == (DecodeOutcome(TRUNCATED, 0) if beyond else DecodeOutcome(0, -1, (bytes(8),) * 2, b"", 2))


@engines
def test_inexact_values_are_refused_only_where_selected(engine):
    rng = np.random.default_rng(8)
    rows = [number.to_bytes(8, "little") for number in (1, (1 << 53) + 1, 3)]
    moments = [bytes(8) + day.to_bytes(4, "little") for day in (2440588, (1 << 31) - 1, 2440589)]
    for column, values, conversion in (
        (ColumnType(INT64), rows, t.WIDEN_SIGNED),
        (ColumnType(INT96), moments, t.INT96_NS),
    ):
        values = values + values[:1] * 29  # of a page with few selected rows, only these are converted
        chunk = Chunk(column, UNCOMPRESSED, [data_page(column, values, PLAIN, UNCOMPRESSED, 1, rng, [])])
        request = DecodeRequest(conversion, 8, t.NULLS_FILL, 0, 0, 32)
        assert take_rows(engine, chunk, request, [0, 2], True).status == 0
        for places in ([1], [0, 1], [1, 2]):
            assert take_rows(engine, chunk, request, places, True) == DecodeOutcome(INEXACT, 0)


def attempt(engine, case, chunk, request, places, seed) -> DecodeOutcome:
    """Take rows of a damaged chunk; compares them with the oracle's if it has any."""
    taken = {PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY}
    stored = all(page.type == DICTIONARY_PAGE or page.more["encoding"] in taken for page in chunk.pages)
    found = take_rows(engine, chunk, request, places, stored, seed)
    whole = oracle_verdict(chunk, request, keep if case is STRINGS else case.convert)
    if whole is not None:
        assert found.rows == tuple(row_selection.take_indices(whole.rows, places))
    return found


@pytest.mark.quick_cases(1)
@engines
def test_cut_at_every_byte(engine):
    """Data pages end at any byte."""
    num_taken = 0
    for chunk, _, request in list(chunks_to_truncate())[:: 1 if engine.name == "compiled" else 7]:
        page = chunk.pages[1]
        if page.more["encoding"] not in (PLAIN, RLE_DICTIONARY):
            continue
        for cut in range(len(page.body)):
            shorter = replace(page, body=page.body[:cut])
            if chunk.codec == UNCOMPRESSED:
                shorter = replace(shorter, uncompressed=cut)
            bad = replace(chunk, pages=[chunk.pages[0], shorter])
            if not refused_by_the_walk(engine, bad):
                places = [0, len(chunk.rows) // 2, len(chunk.rows) - 1]
                assert -30 < take_rows(engine, bad, request, places, True).status <= 0
                num_taken += 1
    assert num_taken >= 40
