"""Pages in the delta encodings and BYTE_STREAM_SPLIT, transcoded to PLAIN and decoded: types, casts, row windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import tables as t
from numparq.kernels.decode.transcode import STATE_FIELDS
from numparq.kernels.enums import DOUBLE, PLAIN
from numparq.kernels.status import BAD_COUNT, BAD_DELTA, BAD_LENGTH, BAD_VARINT, TRUNCATED
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.decode_pages import DecodeOutcome, decode_binary, decode_fixed
from support.kernels.engines import ENGINES, engines
from support.kernels.strategies import random_numbers, random_strings
from support.kernels.value_cases import CASES, FILLS, ValueCase, expected_values
from support.oracles import delta
from support.oracles.hybrid_rle import uleb
from support.oracles.pages import RLE_DICTIONARY, SNAPPY, UNCOMPRESSED, Chunk, Page, data_page, dictionary_page
from support.oracles.plain import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64, ColumnType, random_values

FIXED = [case for case in CASES if case.column.physical in delta.ENCODINGS and case.conversion != t.CODES]
NUMBERS, LENGTHS, STRINGS, STREAMS = 5, 6, 7, 9


def pages_of(rng, column: ColumnType, rows: list, size: int, codec: int) -> Chunk:
    """Divide rows into pages, each in a random encoding of the column's type."""
    encodings = [0, *delta.ENCODINGS[column.physical]]
    pages = []
    for start in range(0, len(rows), size):
        encoding, version = int(rng.choice(encodings)), int(rng.integers(1, 3))
        pages.append(data_page(column, rows[start : start + size], encoding, codec, version, rng))
    return Chunk(column, codec, pages)


def with_nulls(rng, values: list, share: float | None) -> list:
    nulls = rng.random(len(values)) < (share or 0)
    return [None if null else value for value, null in zip(values, nulls.tolist(), strict=True)]


def values_of(rng, case: ValueCase, count: int) -> list:
    """Return values of the case or, half of the time, numbers that make good deltas."""
    size = case.column.size
    if case.column.physical not in (INT32, INT64) or case.narrow != 64 or rng.random() < 0.5:
        return [value for _ in range(count // 50 + 1) for value in case.values(rng, 50)][:count]
    numbers = random_numbers(rng, 8 * size, count).tolist()
    return [number.to_bytes(size, "little", signed=True) for number in numbers]


@engines
@pytest.mark.parametrize("case", FIXED, ids=repr)
@pytest.mark.parametrize("null_share", [None, 0.0, 0.3, 1.0])
def test_fixed_pages(engine, case, null_share):
    rng = np.random.default_rng([FIXED.index(case), int(100 * (null_share or 0))])
    column = replace(case.column, optional=null_share is not None)
    for seed in range(engine.size(4)):
        rows = with_nulls(rng, values_of(rng, case, engine.size(int(rng.integers(1, 1500)))), null_share)
        chunk = pages_of(rng, column, rows, int(rng.integers(1, len(rows) + 1)), int(rng.integers(0, 2)))
        total = len(rows)
        edges = sorted(rng.integers(0, total + 1, 2).tolist())
        for nulls in (t.NULLS_FILL, t.NULLS_MASK):
            for start, stop in ((0, total), edges, (total - 1, total)):
                request = DecodeRequest(case.conversion, case.item, nulls, FILLS[seed % 4], start, stop)
                assert decode_fixed(engine, chunk, request, seed) == expected_values(case, chunk, request)


@engines
@pytest.mark.parametrize("null_share", [None, 0.0, 0.3, 1.0])
def test_string_pages(engine, null_share):
    rng = np.random.default_rng(int(100 * (null_share or 0)))
    column = ColumnType(BYTE_ARRAY, 0, null_share is not None)
    for seed in range(engine.size(30, 4)):
        rows = with_nulls(rng, random_strings(rng, engine.size(int(rng.integers(1, 600)))), null_share)
        chunk = pages_of(rng, column, rows, int(rng.integers(1, len(rows) + 1)), int(rng.integers(0, 2)))
        edges = sorted(rng.integers(0, len(rows) + 1, 2).tolist())
        for start, stop in ((0, len(rows)), edges):
            assert decode_binary(engine, chunk, DecodeRequest(start=start, stop=stop), seed) == outcome(
                rows[start:stop]
            )


def outcome(rows: list) -> DecodeOutcome:
    return DecodeOutcome(0, -1, tuple(rows), bytes(row is not None for row in rows), rows.count(None))


@given(data=st.data())
def test_any_rows(data):
    column = data.draw(st.sampled_from([ColumnType(INT32), ColumnType(INT64), ColumnType(BYTE_ARRAY)]), "column")
    column = replace(column, optional=data.draw(st.booleans(), "optional"))
    value = st.binary(min_size=column.size, max_size=column.size or 20)
    rows = data.draw(
        st.lists(st.one_of(value, st.none()) if column.optional else value, min_size=1, max_size=80), "rows"
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32), "seed"))
    chunk = pages_of(rng, column, rows, data.draw(st.integers(1, 80), "size"), UNCOMPRESSED)
    start = data.draw(st.integers(0, len(rows)), "start")
    stop = data.draw(st.integers(start, len(rows)), "stop")
    for engine in ENGINES:
        if column.physical == BYTE_ARRAY:
            assert decode_binary(engine, chunk, DecodeRequest(start=start, stop=stop)) == outcome(rows[start:stop])
        else:
            request = DecodeRequest(t.COPY, column.size, t.NULLS_MASK, -1, start, stop)
            case = ValueCase(column, t.COPY, column.size)
            assert decode_fixed(engine, chunk, request) == expected_values(case, chunk, request)


@engines
@pytest.mark.parametrize("physical", [INT64, BYTE_ARRAY])
def test_mixed_with_dictionary_pages(engine, physical):
    """A chunk that begins with a dictionary and changes its encoding page by page."""
    rng = np.random.default_rng(0)
    column = ColumnType(physical, 0, True)
    entries = list(dict.fromkeys(random_values(rng, column, 9)))
    rows = [entries[i] if i else None for i in rng.integers(0, len(entries), 120).tolist()]
    encodings = [RLE_DICTIONARY, *delta.ENCODINGS[physical], 0, RLE_DICTIONARY, *delta.ENCODINGS[physical], 0]
    pages = [
        data_page(column, rows[15 * i : 15 * i + 15], encoding, SNAPPY, 1 + i % 2, rng, entries)
        for i, encoding in enumerate(encodings)
    ]
    chunk = Chunk(column, SNAPPY, [dictionary_page(column, entries, SNAPPY, rng), *pages])
    for seed in range(4):
        if physical == BYTE_ARRAY:
            assert decode_binary(engine, chunk, DecodeRequest(stop=120), seed) == outcome(rows)
        else:
            request = DecodeRequest(t.COPY, 8, t.NULLS_MASK, 0, 0, 120)
            assert decode_fixed(engine, chunk, request, seed) == expected_values(
                ValueCase(column, t.COPY, 8), chunk, request
            )


# --- valid and invalid encodings ----------------------------------------------------------------------------


def decoded(engine, column: ColumnType, section: bytes, rows: int, encoding: int) -> DecodeOutcome:
    """Decode a page of version 1 with this value section."""
    more = {"encoding": encoding, "definition_level_encoding": 3, "repetition_level_encoding": 3}
    page = Page(0, section, rows, len(section), [b""] * rows, more)
    chunk = Chunk(column, UNCOMPRESSED, [page])
    if column.physical == BYTE_ARRAY:
        return decode_binary(engine, chunk, DecodeRequest(stop=rows))
    return decode_fixed(engine, chunk, DecodeRequest(t.COPY, column.size, stop=rows))


def numbers(values, bits=64) -> tuple:
    return tuple(value.to_bytes(bits // 8, "little", signed=True) for value in values)


@engines
def test_specification_examples(engine):
    first = uleb(8) + uleb(1) + uleb(5) + uleb(2) + uleb(2) + b"\x00"
    assert decoded(engine, ColumnType(INT32), first, 5, NUMBERS).rows == numbers(range(1, 6), 32)
    second = uleb(8) + uleb(1) + uleb(8) + uleb(14) + uleb(3) + b"\x02" + b"\xc0\x3f"
    assert decoded(engine, ColumnType(INT64), second, 8, NUMBERS).rows == numbers([7, 5, 3, 1, 2, 3, 4, 5])
    names = [b"Hello", b"World", b"Foobar", b"ABCDEF"]
    section = delta.encode([5, 5, 6, 6], 32) + b"HelloWorldFoobarABCDEF"
    assert decoded(engine, ColumnType(BYTE_ARRAY), section, 4, LENGTHS).rows == tuple(names)
    section = delta.encode([0, 2, 0, 3], 32) + delta.encode([4, 2, 6, 5], 32) + b"axislebabbleyhood"
    words = (b"axis", b"axle", b"babble", b"babyhood")
    assert decoded(engine, ColumnType(BYTE_ARRAY), section, 4, STRINGS).rows == words
    section = bytes.fromhex("AA00A3BB11B4CC22C5DD33D6")
    assert decoded(engine, ColumnType(INT32), section, 3, STREAMS).rows == tuple(
        bytes.fromhex(text) for text in ("AABBCCDD", "00112233", "A3B4C5D6")
    )


@engines
@pytest.mark.parametrize("bits", [32, 64])
def test_extremes_wrap_around(engine, bits):
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    values = [least, most, least, 0, most, most, -1, least + 1] * 20
    column = ColumnType(INT32 if bits == 32 else INT64)
    for miniblocks in (1, 4):
        section = delta.encode(values, bits, 128, miniblocks)
        assert decoded(engine, column, section, 160, NUMBERS).rows == numbers(values, bits)


@engines
@pytest.mark.parametrize("bits", [32, 64])
def test_every_bit_width(engine, bits):
    """A block of each width, and widths beyond the type's."""
    rng = np.random.default_rng(bits)
    column = ColumnType(INT32 if bits == 32 else INT64)
    for width in range(bits + 1):
        deltas = [0, 2**width - 1, *(int.from_bytes(rng.bytes(8), "little") % 2**width for _ in range(60))]
        values = [delta.wrap(sum(deltas[:i]), bits) for i in range(len(deltas))]
        section = delta.encode(values, bits, 256, 8, rng)
        assert decoded(engine, column, section, len(values), NUMBERS).rows == numbers(values, bits)
    for width in (65 if bits == 64 else 58, 65, 128, 255):
        section = uleb(128) + uleb(4) + uleb(2) + uleb(0) + uleb(0) + bytes([width, 0, 0, 0]) + bytes(32 * 40)
        assert decoded(engine, column, section, 2, NUMBERS) == DecodeOutcome(BAD_DELTA, 0)


@engines
def test_int32_deltas_wider_than_32_bits(engine):
    """DuckDB computes deltas as INT64; the lower 32 bits of the sums are equal."""
    values = [0, 2**31 - 1, -(2**31), 2**31 - 1, -1, -(2**31), -(2**31), 7] * 40
    for miniblocks in (1, 4):
        section = delta.encode(values, 64, 128, miniblocks)
        assert max(section[7 : 7 + miniblocks]) > 32
        assert decoded(engine, ColumnType(INT32), section, 320, NUMBERS).rows == numbers(values, 32)


@engines
def test_miniblock_padding(engine):
    values = list(range(0, 400, 4))
    section = delta.encode(values, 64, 256, 8)
    whole = decoded(engine, ColumnType(INT64), section, 100, NUMBERS)
    assert whole.rows == numbers(values)
    values = [0, 1, 3, 2, 7]
    section = delta.encode(values, 64)
    for cut in range(11):  # the values take two of the twelve bytes of a 3-bit miniblock
        assert decoded(engine, ColumnType(INT64), section[: len(section) - cut], 5, NUMBERS).rows == numbers(values)
    assert decoded(engine, ColumnType(INT64), section[:-11], 5, NUMBERS) == DecodeOutcome(TRUNCATED, 0)
    strange = section[:7] + b"\xff\x41\x07" + section[10:-10] + b"\xff" * 10  # widths of absent miniblocks
    assert decoded(engine, ColumnType(INT64), strange, 5, NUMBERS).rows == numbers(values)


@engines
@pytest.mark.parametrize(
    ("header", "status"),
    [
        ((0, 1, 3), BAD_DELTA),
        ((128, 0, 3), BAD_DELTA),
        ((128, 3, 3), BAD_DELTA),
        ((100, 4, 3), BAD_DELTA),
        ((4, 8, 3), BAD_DELTA),
        ((1 << 31, 1, 3), BAD_DELTA),
        ((1 << 40, 4, 3), BAD_DELTA),
        ((128, 4, 4), 0),  # more than the page has: the others are ignored
        ((128, 4, (1 << 64) - 1), 0),
        ((128, 4, 2), TRUNCATED),
        ((128, 4, 0), TRUNCATED),
        (((1 << 31) - 128, 1 << 19, 3), BAD_DELTA),
        ((1 << 30, 1 << 25, 3), TRUNCATED),
        ((1 << 64, 4, 3), BAD_VARINT),
        ((128, 1 << 70, 3), BAD_VARINT),
    ],
)
def test_invalid_delta_headers(engine, header, status):
    section = b"".join(map(uleb, header)) + uleb(0) + uleb(2) + bytes(4)
    outcome = decoded(engine, ColumnType(INT64), section, 3, NUMBERS)
    assert outcome == DecodeOutcome(status, 0) if status else outcome.rows == numbers([0, 1, 2])


@engines
def test_block_larger_than_the_page(engine):
    section = uleb(1 << 30) + uleb(1) + uleb(3) + uleb(2) + uleb(4) + b"\x00"
    assert decoded(engine, ColumnType(INT64), section, 3, NUMBERS).rows == numbers([1, 3, 5])


@engines
@pytest.mark.parametrize(
    ("prefixes", "suffixes", "data", "status"),
    [
        ([1, 0], [1, 1], b"ab", BAD_LENGTH),
        ([0, 2], [1, 1], b"ab", BAD_LENGTH),
        ([0, -1], [1, 2], b"abc", BAD_LENGTH),
        ([0, 0], [1, -1], b"abc", BAD_LENGTH),
        ([0, 0], [1, 2], b"ab", BAD_LENGTH),
        ([0, 0], [(1 << 31) - 1, 1], b"ab", BAD_LENGTH),
        ([0, 1], [1], b"ab", BAD_COUNT),
        ([0], [1, 0], b"ab", BAD_COUNT),
        ([0], [1], b"ab", TRUNCATED),
        ([0], [1], b"a", TRUNCATED),
        ([0, 0, 0], [1, 0, 0], b"ab", BAD_COUNT),
        ([0, 1], [2, 0], b"ab", 0),
    ],
)
def test_invalid_prefixes(engine, prefixes, suffixes, data, status):
    section = delta.encode(prefixes, 32) + delta.encode(suffixes, 32) + data
    assert decoded(engine, ColumnType(BYTE_ARRAY), section, 2, STRINGS).status == status


@engines
def test_invalid_lengths(engine):
    for lengths, data, status in (
        ([1, -1], b"ab", BAD_LENGTH),
        ([2, 1], b"ab", BAD_LENGTH),
        ([(1 << 31) - 1] * 2, b"ab", BAD_LENGTH),
        ([1, 1, 1], b"abc", BAD_COUNT),
        ([1], b"ab", TRUNCATED),
        ([1], b"a", TRUNCATED),
        ([1, 1], b"abc", 0),  # what follows the last string is ignored
        ([1, 1], b"ab", 0),
        ([0, 0], delta.encode_length([b"a", b"b"]), BAD_DELTA),  # a section of DELTA_BYTE_ARRAY
        ([0, 0], delta.encode_length([b"a", b"b", b"c"]), 0),
    ):
        section = delta.encode(lengths, 32) + data
        assert decoded(engine, ColumnType(BYTE_ARRAY), section, 2, LENGTHS).status == status


@engines
def test_fixed_length_values_must_have_their_length(engine):
    column = ColumnType(FIXED_LEN_BYTE_ARRAY, 3)
    for strings, status in (([b"abc", b"abd"], 0), ([b"abc", b"ab"], BAD_LENGTH), ([b"abcd", b"abc"], BAD_LENGTH)):
        assert decoded(engine, column, delta.encode_byte_array(strings), 2, STRINGS).status == status


@engines
@pytest.mark.parametrize(
    "column", [ColumnType(INT32), ColumnType(INT64), ColumnType(FIXED_LEN_BYTE_ARRAY, 3)], ids=repr
)
def test_byte_streams_of_a_wrong_size(engine, column):
    for size in range(4 * column.size):
        got = decoded(engine, column, bytes(size), 2, STREAMS)
        if size % column.size:
            assert got == DecodeOutcome(BAD_LENGTH, 0)
        else:
            assert got.status == {0: TRUNCATED, 1: BAD_COUNT, 2: 0, 3: BAD_COUNT}[size // column.size]


@engines
@pytest.mark.parametrize("name", ["transcode_delta_pages", "transcode_alp_pages"])
def test_pages_whose_levels_leave_no_value(engine, name):
    chunks, page = np.zeros(t.CHUNK_FIELDS, np.int64), np.zeros(t.PAGE_FIELDS, np.int64)
    chunks[t.C_TYPE] = DOUBLE
    page[[t.P_COMPRESSED, t.P_UNCOMPRESSED]], garbage = 5, np.full(5 + t.SLACK, 255, np.uint8)
    out, state = np.zeros(t.SLACK, np.uint8), np.zeros(STATE_FIELDS, np.int64)
    buffers = [garbage, garbage, *([out] if name == "transcode_delta_pages" else []), out]
    assert page[t.P_ENCODING] == PLAIN, "the decoder of levels says so"
    assert getattr(engine, name)(chunks, page, 0, 1, *buffers, 0, state) == 1
    assert page[[t.P_IS_COMPRESSED, t.P_UNCOMPRESSED]].tolist() == [1, 0]
