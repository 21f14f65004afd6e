"""DELTA_BYTE_ARRAY of parquet-mr before 1.8.0: prefixes continue from one page to the next (PARQUET-246)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq import CorruptPageError, ParquetFile, read_parquet
from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.transcode import STATE_FIELDS, STATE_NEEDED, STATE_PREVIOUS, STATE_PREVIOUS_SIZE
from numparq.kernels.status import BAD_LENGTH, NEED_ROOM
from support.files.builder import (
    BYTE_ARRAY,
    FIXED_LEN_BYTE_ARRAY,
    INT64,
    OPTIONAL,
    RLE_DICTIONARY,
    FileColumn,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_indices,
    encode_levels,
    encode_plain,
)
from support.files.prefix_carryover import (
    DELTA_BYTE_ARRAY,
    FIXED,
    OLD,
    OTHER,
    PARTS,
    WORDS,
    carryover_file,
    data_page_v2_of,
    encode_prefixes,
    pages_of,
)
from support.io.recorded_reads import RecordingFile
from support.kernels.engines import ENGINES
from support.kernels.guarded_buffers import GuardedBuffer, with_slack
from support.oracles import delta


@pytest.mark.parametrize("make", [data_page, data_page_v2_of], ids=["v1", "v2"])
@pytest.mark.parametrize("created_by", [OLD, "parquet-mr", "parquet-mr version 1.2.8", None, ""])
def test_prefixes_continue_across_pages(created_by, make):
    data = carryover_file(pages_of(PARTS, make), len(WORDS), created_by)
    for threads in (1, 2):
        assert read_parquet(data, threads=threads)["a"].tolist() == WORDS
    for first in range(len(WORDS)):
        for last in range(first, len(WORDS) + 1):
            got = read_parquet(data, row_range=(first, last))["a"].tolist()
            assert got == WORDS[first:last]


@pytest.mark.parametrize("created_by", [FIXED, OTHER, "numparq version 1.0.0", "parquet-mr version 1.10.1"])
def test_other_writers_must_follow_the_specification(created_by):
    with pytest.raises(CorruptPageError) as caught:
        read_parquet(carryover_file(pages_of(PARTS), len(WORDS), created_by))
    assert caught.value.where["page"] == 1
    sound = [data_page(len(part), encode_prefixes(part), DELTA_BYTE_ARRAY) for part in PARTS]
    assert read_parquet(carryover_file(sound, len(WORDS), created_by))["a"].tolist() == WORDS
    assert read_parquet(carryover_file(sound, len(WORDS), OLD))["a"].tolist() == WORDS


def test_prefix_longer_than_the_previous_string():
    first = data_page(1, encode_prefixes([b"abc"], b"abcdef"), DELTA_BYTE_ARRAY)
    with pytest.raises(CorruptPageError):
        read_parquet(carryover_file([first], 1))
    longer = [
        data_page(1, encode_prefixes([b"ab"]), DELTA_BYTE_ARRAY),
        data_page(1, encode_prefixes([b"abc"], b"abcd"), 7),
    ]
    with pytest.raises(CorruptPageError) as caught:
        read_parquet(carryover_file(longer, 2))
    assert caught.value.where["page"] == 1


def test_prefixes_restart_in_each_chunk():
    columns = [FileColumn(name, BYTE_ARRAY, [pages_of(PARTS), pages_of(PARTS[::-1])]) for name in "ab"]
    backwards = [word for part in PARTS[::-1] for word in part]
    data = build_file([len(WORDS)] * 2, columns, created_by=OLD).stored()
    got = read_parquet(data)
    assert got["a"].tolist() == got["b"].tolist() == WORDS + backwards
    # A first page that continues the previous chunk is damaged.
    bad = pages_of(PARTS)
    bad[0] = data_page(2, encode_prefixes(PARTS[0], b"str"), DELTA_BYTE_ARRAY)
    with pytest.raises(CorruptPageError):
        read_parquet(
            build_file([len(WORDS)] * 2, [FileColumn("a", BYTE_ARRAY, [pages_of(PARTS), bad])], created_by=OLD).stored()
        )


@pytest.mark.parametrize("is_file", [False, True])
def test_row_ranges_of_carried_prefixes(is_file):
    """Earlier pages are decoded for their prefixes, but only the rows of the range are shown."""
    columns = [FileColumn(name, BYTE_ARRAY, [pages_of(PARTS), pages_of(PARTS[::-1])]) for name in "ab"]
    words = WORDS + [word for part in PARTS[::-1] for word in part]
    data = build_file([len(WORDS)] * 2, columns, created_by=OLD).stored()
    for start in range(len(words)):
        for stop in range(start + 1, len(words) + 1):
            source = RecordingFile(data) if is_file else data
            got = read_parquet(source, row_range=(start, stop))
            assert got["a"].tolist() == got["b"].tolist() == words[start:stop]
    with ParquetFile(RecordingFile(data) if is_file else data) as file:
        for rows in range(1, 7):
            assert [word for batch in file.iter_batches(batch_rows=rows) for word in batch["b"]] == words


def test_prefixes_continue_across_pages_of_nulls():
    """Pages of nulls hold no string; the next page continues the last string before them."""

    def page(values, before):
        present = [value for value in values if value is not None]
        body = encode_levels([int(value is not None) for value in values]) + (
            encode_prefixes(present, before) if present else b""
        )
        return data_page(len(values), body, DELTA_BYTE_ARRAY)

    parts = [[None, b"abcd", None], [None, None], [b"abce", None], [None] * 9, [b"abcef"]]
    pages, before = [], b""
    for part in parts:
        pages.append(page(part, before))
        before = next((value for value in part[::-1] if value is not None), before)
    expected = [value for part in parts for value in part]
    data = carryover_file(pages, len(expected), repetition=OPTIONAL)
    assert [None if pd.isna(value) else value for value in read_parquet(data)["a"]] == expected
    assert read_parquet(data, row_range=(len(expected) - 1, len(expected)))["a"].tolist() == [b"abcef"]


def test_prefixes_after_a_dictionary():
    """Pages after an abandoned dictionary begin with no prefix; columns of numbers are unaffected."""
    coded = data_page(2, b"\x01" + encode_indices([1, 0], 1), RLE_DICTIONARY)
    last = data_page(1, encode_plain(BYTE_ARRAY, [b"plain"]))
    words = [dictionary_page(2, encode_plain(BYTE_ARRAY, [b"x", b"y"])), coded, *pages_of(PARTS), last]
    numbers = list(range(len(WORDS) + 3))
    columns = [
        FileColumn("n", INT64, [[data_page(len(numbers), delta.encode(numbers, 64), 5)]]),
        FileColumn("a", BYTE_ARRAY, [words]),
    ]
    data = build_file([len(numbers)], columns, created_by=OLD).stored()
    expected = [b"y", b"x", *WORDS, b"plain"]
    for first, last in ((0, len(numbers)), (1, 4), (5, 6), (len(numbers) - 1, len(numbers))):
        got = read_parquet(data, row_range=(first, last))
        assert got["a"].tolist() == expected[first:last]
        assert got["n"].tolist() == numbers[first:last]


def test_fixed_length_values():
    parts = [[b"abcd", b"abce"], [b"abcf"], [b"abce", b"zzzz"], [b"zzzy"]]
    words = [word for part in parts for word in part]
    data = carryover_file(pages_of(parts), len(words), physical=FIXED_LEN_BYTE_ARRAY, element={"type_length": 4})
    assert read_parquet(data)["a"].tolist() == words
    assert read_parquet(data, row_range=(2, 5))["a"].tolist() == words[2:5]


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("options", [{}, {"categories": ["a"]}, {"row_range": (70_000, 70_010)}], ids=str)
def test_windows_and_large_strings(options):
    """Several windows of the file; strings larger than a batch before a page."""
    rng = np.random.default_rng(0)
    head = rng.bytes(1_500_000).hex().encode()
    parts = [[head, head + b"1"], [head + b"12"]]
    parts += [
        [b"%x-%d" % (number // 7, number) for number in range(start, start + 500)] for start in range(0, 80_000, 500)
    ]
    parts += [[head], [head + b"z"]]
    words = [word.decode() for part in parts for word in part]
    data = carryover_file(pages_of(parts), len(words), element={"converted_type": 0})
    first, last = options.get("row_range", (0, len(words)))
    assert read_parquet(data, **options)["a"].tolist() == words[first:last]


def test_repeated_values():
    """Lists, one per page."""
    module_rows = [[b"aa", b"ab"], [b"abc"], [b"abd", b"abde", b"b"]]
    pages, before = [], b""
    for row in module_rows:
        body = _repetition([0] + [1] * (len(row) - 1)) + encode_levels([1] * len(row)) + encode_prefixes(row, before)
        pages.append(data_page(len(row), body, DELTA_BYTE_ARRAY))
        before = row[-1]
    column = FileColumn("a", BYTE_ARRAY, [pages], 2, facts={"num_values": 6})
    got = read_parquet(build_file([3], [column], created_by=OLD).stored())["a"]
    assert [list(row) for row in got] == module_rows


_repetition = encode_levels


def decode(engine, bodies, counts, room, seed=0):
    """Transcode pages to PLAIN in as many calls as needed, each given the last string: the bytes, or a status."""
    rng = np.random.default_rng(seed)
    chunks = np.zeros(t.CHUNK_FIELDS, np.int64)
    chunks[t.C_TYPE], chunks[t.C_QUIRKS] = enums.BYTE_ARRAY, t.PREFIX_CARRYOVER
    pages = np.zeros((len(bodies), t.PAGE_FIELDS), np.int64)
    starts = np.cumsum([0, *map(len, bodies)])
    for page, body, count, start, row in zip(pages, bodies, counts, starts, np.cumsum([0, *counts]), strict=False):
        page[t.P_TYPE], page[t.P_ENCODING], page[t.P_NUM_VALUES] = enums.DATA_PAGE, enums.DELTA_BYTE_ARRAY, count
        page[t.P_BODY], page[t.P_COMPRESSED], page[t.P_UNCOMPRESSED], page[t.P_ROW] = start, len(body), len(body), row
    raw, nothing = with_slack(rng, b"".join(bodies)), np.zeros(t.SLACK, np.uint8)
    lengths, state = GuardedBuffer(rng, 8 * max(counts, default=0) + t.SLACK), GuardedBuffer(rng, STATE_FIELDS, "i8")
    first, before, made = 0, b"", b""
    while first < len(bodies):
        out = GuardedBuffer(rng, room + t.SLACK)
        out.array[: len(before)] = np.frombuffer(before, np.uint8)
        state.array[STATE_PREVIOUS_SIZE] = len(before)
        status = engine.transcode_delta_pages(
            chunks, pages.reshape(-1), first, len(bodies), raw, nothing, lengths.array, out.array, room, state.array
        )
        for buffer in (out, lengths, state):
            buffer.check()
        if status == NEED_ROOM:
            assert state.array[STATE_NEEDED] > room
            room = int(state.array[STATE_NEEDED])
            continue
        if status < 0:
            return status, int(state.array[0])
        for page in pages[first:status]:
            made += out.array[page[t.P_SCRATCH] :][: page[t.P_UNCOMPRESSED]].tobytes()
        before = out.array[state.array[STATE_PREVIOUS] :][: state.array[STATE_PREVIOUS_SIZE]].tobytes()
        first = status
    return made


strings = st.lists(st.text("ab", max_size=6).map(str.encode), max_size=5)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@given(parts=st.lists(strings, min_size=1, max_size=6), room=st.integers(0, 200))
def test_pages_in_one_call_and_in_many(engine, parts, room):
    bodies, before = [], b""
    for part in parts:
        bodies.append(encode_prefixes(part, before))
        before = part[-1] if part else before
    expected = encode_plain(BYTE_ARRAY, [word for part in parts for word in part])
    assert decode(engine, bodies, list(map(len, parts)), room + len(before)) == expected


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_invalid_first_prefixes(engine):
    for first, before in (([b"ab"], b"abc"), ([], b"a"), ([b"abc", b""], b"a")):
        bodies = [encode_prefixes(first), encode_prefixes([before + b"z"], before)]
        assert decode(engine, bodies, [len(first), 1], 100) == (BAD_LENGTH, 1)
    assert decode(engine, [encode_prefixes([b"ab"], b"a")], [1], 100) == (BAD_LENGTH, 0)


@pytest.mark.parametrize(
    ("created_by", "faulty"),
    [
        ("parquet-cpp version 1.5.1-SNAPSHOT", True),
        ("parquet-cpp", True),
        ("parquet-cpp-arrow version 3.0.0", False),
        (None, False),
    ],
)
def test_compressed_pages_marked_uncompressed(created_by, faulty):
    import cramjam

    section, values = encode_indices([1, 0, 1, 1, 0, 0, 0, 0], 1), encode_plain(INT64, [5, 6, 7])
    page = data_page_v2(8, 5, section, values)
    page.header.uncompressed_page_size = len(page.body)
    page.header.data_page_header_v2.is_compressed = not faulty
    page.body = section + bytes(cramjam.snappy.compress_raw(values))
    nulls = data_page_v2(8, 8, encode_indices([0] * 8, 1), b"")
    nulls.header.data_page_header_v2.is_compressed = not faulty
    column = FileColumn("a", INT64, [[page, nulls]], OPTIONAL, facts={"codec": 1})
    got = read_parquet(build_file([16], [column], created_by=created_by).stored())["a"]
    assert got.dropna().to_dict() == {0: 5, 2: 6, 3: 7}
    stored = data_page_v2(8, 5, section, values)
    stored.header.data_page_header_v2.is_compressed = False
    column = FileColumn("a", INT64, [[stored]], OPTIONAL, facts={"codec": 0})
    got = read_parquet(build_file([8], [column], created_by=created_by).stored())["a"]
    assert got.dropna().to_dict() == {0: 5, 2: 6, 3: 7}
