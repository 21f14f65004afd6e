"""Unusual but legal places of row groups, column chunks and pages, and unusual counts of them."""

from __future__ import annotations

import copy
import itertools
import struct

import numpy as np
import pandas as pd
import pytest

from numparq import InvalidFileError, ParquetFile, read_parquet
from support.files.builder import (
    BYTE_ARRAY,
    DATA_PAGE,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    INDEX_PAGE,
    INT64,
    MAGIC,
    OPTIONAL,
    PLAIN,
    REPEATED,
    RLE_DICTIONARY,
    FileColumn,
    FilePage,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_indices,
    encode_plain,
    extended_idl,
    other_page,
    to_bytes,
    with_footer,
)

NUMBERS = [3, 1, 2**62, -5]
BACKENDS = ["numpy", "numpy_nullable", "pyarrow"]


def read(file, **options):
    return read_parquet(file.stored(), **options)


def section(values, width=1):
    levels = encode_indices(values, width)
    return struct.pack("<I", len(levels)) + levels


def levels_and_values(rows):
    """Return repetition levels, definition levels and values of a REQUIRED list of REQUIRED elements."""
    repetition, definition, values = [], [], []
    for row in rows:
        repetition += [0] + [1] * (len(row) - 1)
        definition += [1] * len(row) or [0]
        values += row
    return repetition, definition, values


def list_page(rows):
    repetition, definition, values = levels_and_values(rows)
    return data_page(len(repetition), section(repetition) + section(definition) + encode_plain(INT64, values))


def list_column(name, groups):
    """Build a repeated column from the rows of each row group, with one page per row group."""
    return FileColumn(name, INT64, [[list_page(rows)] if rows else [] for rows in groups], REPEATED)


def as_lists(series):
    return [list(item) for item in series]


# --- empty row groups and projections ---


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow")
    return {} if request.param == "numpy" else {"dtype_backend": request.param}


def with_empty_groups(groups, name, **more):
    """Build a file with a flat, a repeated and a dictionary-encoded column; some row groups have no rows."""
    texts = []
    for rows in groups:
        entries = sorted({b"s%d" % len(row) for row in rows})
        codes = [entries.index(b"s%d" % len(row)) for row in rows]
        pages = [
            dictionary_page(len(entries), encode_plain(BYTE_ARRAY, entries)),
            data_page(len(rows), b"\x02" + encode_indices(codes, 2), RLE_DICTIONARY),
        ]
        texts.append(pages if rows else [])
    numbers = [
        [data_page(len(rows), encode_plain(INT64, [len(row) for row in rows]))] if rows else [] for rows in groups
    ]
    file = build_file(
        [len(rows) for rows in groups],
        [
            FileColumn("n", INT64, numbers),
            list_column("l", groups),
            FileColumn("s", BYTE_ARRAY, texts, element={"converted_type": 0}),
        ],
    )
    for group, rows in enumerate(groups):
        file.footer.row_groups[group].columns[1].meta_data.num_values = len(levels_and_values(rows)[0])
    return file


EMPTY_OR_NOT = [[], [[1], [], [2, 3]], [], [], [[4, 5, 6]], [[], []], []]


@pytest.mark.parametrize("groups", [EMPTY_OR_NOT, [[], []], [[]], []], ids=["between", "all", "one", "none"])
@pytest.mark.parametrize("categories", [[], ["s"]], ids=["strings", "categories"])
def test_row_groups_without_rows(groups, categories, backend):
    rows = list(itertools.chain(*groups))
    for threads in (1, 2):
        got = read(with_empty_groups(groups, "l"), threads=threads, categories=categories, **backend)
        assert got["n"].tolist() == [len(row) for row in rows]
        assert as_lists(got["l"]) == rows
        assert got["s"].tolist() == [f"s{len(row)}" for row in rows]
        if categories and not backend:
            assert got["s"].dtype == "category"


@pytest.mark.parametrize("row_range", [(0, 1), (2, 5), (3, 4), (4, 6), (6, 6), (6, 9)])
def test_row_range_over_empty_row_groups(row_range):
    rows = list(itertools.chain(*EMPTY_OR_NOT))[slice(*row_range)]
    got = read(with_empty_groups(EMPTY_OR_NOT, "l"), row_range=row_range, include=["row_number", "row_group"])
    assert as_lists(got["l"]) == rows
    assert got["s"].tolist() == [f"s{len(row)}" for row in rows]
    assert got["row_number"].tolist() == list(range(*row_range))[: len(rows)]


def test_empty_row_groups_in_any_order():
    file = with_empty_groups(EMPTY_OR_NOT, "l")
    order = [6, 5, 4, 0, 1, 2, 3, 3]
    rows = list(itertools.chain(*(EMPTY_OR_NOT[group] for group in order)))
    got = read(file, row_groups=order)
    assert as_lists(got["l"]) == rows
    assert got["n"].tolist() == [len(row) for row in rows]


def test_empty_row_group_with_any_offset():
    """Offset and size of a chunk without values do not matter, as long as they are within the file."""
    file = build_file([0, 4], [FileColumn("a", INT64, [[], [data_page(4, encode_plain(INT64, NUMBERS))]])])

    def change(footer):
        footer.row_groups[0].columns[0].meta_data.data_page_offset = 4

    assert read_parquet(file.stored(change))["a"].tolist() == NUMBERS


def test_no_columns_matches_pyarrow():
    pq = pytest.importorskip("pyarrow.parquet")
    import io

    for rows in ([5, 2], [0], []):
        data = build_file(rows, []).stored()
        got = read_parquet(data)
        expected = pq.read_table(io.BytesIO(data)).to_pandas()
        assert got.shape == (sum(rows), 0)
        assert len(expected) == len(got)
        assert ParquetFile(data).num_rows == sum(rows)
        assert ParquetFile(data).schema.columns == []
        for options in ({"dtype_backend": "pyarrow"}, {"columns": []}, {"threads": 3}):
            assert read_parquet(data, **options).shape == (sum(rows), 0)
    assert read_parquet(build_file([5], []).stored(), nrows=3).index.tolist() == [0, 1, 2]


def test_empty_projection(backend):
    file = build_file([4], [FileColumn("a", INT64, [[data_page(4, encode_plain(INT64, NUMBERS))]])])
    assert read(file, columns=[], **backend).shape == (4, 0)


# --- more pages and row groups than 16 bits count ---


class ManyPages(FilePage):
    """Pages with equal headers and bodies of equal size, stored at once."""

    def __init__(self, first: FilePage, bodies: list[bytes]) -> None:
        header = copy.copy(first.header)
        header.compressed_page_size = header.uncompressed_page_size = len(bodies[0])
        super().__init__(header, b"")
        start = to_bytes(header)
        self._stored = b"".join(start + body for body in bodies)

    def stored(self) -> bytes:
        return self._stored


MANY = 70_000  # beyond 16 bits, signed or unsigned


@pytest.mark.parametrize("options", [{}, {"threads": 1}, {"row_range": (32_760, 65_540)}], ids=str)
@pytest.mark.parametrize("make", [data_page, lambda n, body: data_page_v2(n, 0, b"", body)], ids=["V1", "V2"])
def test_very_many_pages(make, options):
    bodies = [struct.pack("<q", number * 12345) for number in range(MANY)]
    file = build_file([MANY], [FileColumn("a", INT64, [[ManyPages(make(1, bodies[0]), bodies)]])])
    rows = slice(*options.get("row_range", (0, MANY)))
    assert np.array_equal(read(file, **options)["a"], np.arange(MANY)[rows] * 12345)


@pytest.mark.slow
def test_very_many_pages_of_strings():
    bodies = [encode_plain(BYTE_ARRAY, [b"%05d" % number]) for number in range(MANY)]
    pages = [[ManyPages(data_page(1, bodies[0]), bodies)]]
    file = build_file([MANY], [FileColumn("a", BYTE_ARRAY, pages, element={"converted_type": 0})])
    assert read(file)["a"].tolist() == [f"{number:05}" for number in range(MANY)]


@pytest.mark.slow
def test_very_many_pages_of_codes():
    codes = [b"\x01" + encode_indices([number % 2], 1) for number in range(MANY)]
    entries = dictionary_page(2, encode_plain(BYTE_ARRAY, [b"x", b"y"]))
    pages = [entries, ManyPages(data_page(1, codes[0], RLE_DICTIONARY), codes)]
    file = build_file([MANY], [FileColumn("a", BYTE_ARRAY, [pages], element={"converted_type": 0})])
    for options in ({}, {"categories": ["a"]}):
        assert read(file, **options)["a"].tolist() == ["x", "y"] * (MANY // 2)


@pytest.mark.parametrize("version", [1, 2])
def test_very_many_pages_of_lists(version):
    """Each page has one row, a list of two numbers. A list in V1 pages could even continue in the next page."""
    repetition, definition = encode_indices([0, 1], 1), encode_indices([1, 1], 1)
    values = [struct.pack("<qq", number, -number) for number in range(MANY)]
    if version == 1:
        bodies = [section([0, 1]) + section([1, 1]) + pair for pair in values]
        first = data_page(2, bodies[0])
    else:
        bodies = [repetition + definition + pair for pair in values]
        first = data_page_v2(2, 0, definition, b"")
        first.header.data_page_header_v2.repetition_levels_byte_length = len(repetition)
        first.header.data_page_header_v2.num_rows = 1
    file = build_file(
        [MANY], [FileColumn("l", INT64, [[ManyPages(first, bodies)]], REPEATED, facts={"num_values": 2 * MANY})]
    )
    got = read(file)["l"]
    assert np.array_equal(np.concatenate(got.tolist()), np.stack([np.arange(MANY), -np.arange(MANY)], 1).reshape(-1))
    assert as_lists(read(file, row_range=(40_000, 40_002))["l"]) == [[40_000, -40_000], [40_001, -40_001]]


def test_list_over_very_many_pages():
    """All values belong to one row."""
    first, bodies = section([0]) + section([1]), [section([1]) + section([1])] * (MANY - 1)
    values = [struct.pack("<q", number) for number in range(MANY)]
    bodies = [levels + value for levels, value in zip([first, *bodies], values, strict=True)]
    file = build_file(
        [1],
        [FileColumn("l", INT64, [[ManyPages(data_page(1, bodies[0]), bodies)]], REPEATED, facts={"num_values": MANY})],
    )
    assert np.array_equal(read(file)["l"][0], np.arange(MANY))


@pytest.mark.slow
def test_very_many_row_groups():
    """RowGroup.ordinal has 16 bits, but a file may have more row groups."""
    count = 40_000
    file = build_file([1], [FileColumn("a", INT64, [[data_page(1, encode_plain(INT64, [7]))]])])
    data, footer = file.laid_out()
    group = footer.row_groups[0]
    group.ordinal = -1
    footer.row_groups, footer.num_rows = [group] * count, count
    data = with_footer(data, footer)
    assert ParquetFile(data).num_row_groups == count
    got = read_parquet(data, include=["row_group"], row_groups=[0, 32_767, 32_768, 39_999])
    assert got["a"].tolist() == [7] * 4
    assert got["row_group"].tolist() == [0, 32_767, 32_768, 39_999]
    assert read_parquet(data, nrows=2)["a"].tolist() == [7, 7]


# --- any order on disk ---


def three_by_three(order, gap=b""):
    """Build a file with three columns and row groups, its chunks in the given order and with gaps between them."""
    rows = {group: [[group], [group, group], []] for group in range(3)}
    columns = [
        FileColumn(
            "a", INT64, [[data_page(3, encode_plain(INT64, [group, group + 10, group + 20]))] for group in rows]
        ),
        list_column("l", list(rows.values())),
        FileColumn(
            "s",
            BYTE_ARRAY,
            [
                [
                    dictionary_page(2, encode_plain(BYTE_ARRAY, [b"x%d" % group, b"y%d" % group])),
                    data_page(3, b"\x01" + encode_indices([1, 0, 1], 1), RLE_DICTIONARY),
                ]
                for group in rows
            ],
            element={"converted_type": 0},
        ),
    ]
    file = build_file([3, 3, 3], columns)
    for group in rows:
        file.footer.row_groups[group].columns[1].meta_data.num_values = 4
    data, footer = MAGIC, copy.deepcopy(file.footer)
    for group, column in order:
        data += gap
        metadata = footer.row_groups[group].columns[column].meta_data
        start = len(data)
        metadata.dictionary_page_offset = None
        for page in file.chunks[group, column]:
            if page.header.type == DICTIONARY_PAGE:
                metadata.dictionary_page_offset = len(data)
                data += page.stored()
                metadata.data_page_offset = len(data)
            else:
                metadata.data_page_offset = metadata.data_page_offset or len(data)
                data += page.stored()
        metadata.total_compressed_size = metadata.total_uncompressed_size = len(data) - start
    expected = pd.DataFrame(
        {
            "a": [number for group in range(3) for number in (group, group + 10, group + 20)],
            "s": [text for group in range(3) for text in (f"y{group}", f"x{group}", f"y{group}")],
        }
    )
    return with_footer(data + gap, footer), expected, [row for group in rows.values() for row in group]


PLACES = list(itertools.product(range(3), range(3)))
ORDERS = {
    "column by column": sorted(PLACES, key=lambda place: place[::-1]),
    "backwards": PLACES[::-1],
    "columns reversed": sorted(PLACES, key=lambda place: (place[0], -place[1])),
    "row groups reversed": sorted(PLACES, key=lambda place: (-place[0], place[1])),
    "interleaved": PLACES[::2] + PLACES[1::2],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("gap", [0, 1, 40_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_chunks_in_any_order(order, gap, threads):
    data, expected, rows = three_by_three(ORDERS[order], b"\xee" * gap)
    got = read_parquet(data, threads=threads)
    pd.testing.assert_frame_equal(got[["a", "s"]], expected)
    assert as_lists(got["l"]) == rows
    got = read_parquet(data, columns=["s", "a"], row_groups=[2, 0], row_range=(0, 8))
    assert got["a"].tolist() == [2, 12, 0, 10, 20]
    assert got["s"].tolist() == ["y2", "x2", "y0", "x0", "y0"]


def test_row_groups_that_share_bytes():
    """The second row group is the last page of the first one."""
    pages = [data_page(2, encode_plain(INT64, NUMBERS[:2])), data_page(2, encode_plain(INT64, NUMBERS[2:]))]
    file = build_file([4, 2, 4], [FileColumn("a", INT64, [pages, [], []])])

    def change(footer):
        whole, part, again = (group.columns[0].meta_data for group in footer.row_groups)
        first = len(pages[0].stored())
        part.data_page_offset = whole.data_page_offset + first
        part.total_compressed_size = whole.total_compressed_size - first
        again.data_page_offset, again.total_compressed_size = whole.data_page_offset, whole.total_compressed_size

    for threads in (1, 2):
        got = read_parquet(file.stored(change), threads=threads)["a"].tolist()
        assert got == NUMBERS + NUMBERS[2:] + NUMBERS


def test_columns_that_share_bytes():
    """Two list columns can share a chunk."""
    file = build_file([3], [list_column("k", [[[1], [], [2, 3]]]), list_column("l", [[[1], [], [2, 3]]])])

    def change(footer):
        first, second = footer.row_groups[0].columns
        first.meta_data.num_values = 4
        second.meta_data = first.meta_data

    got = read_parquet(file.stored(change))
    assert as_lists(got["k"]) == as_lists(got["l"]) == [[1], [], [2, 3]]


def test_redundant_metadata_is_ignored():
    """No read needs these fields. Some writers set them to 0 or get them wrong."""
    file = build_file(
        [2, 2],
        [FileColumn("a", INT64, [[data_page(2, encode_plain(INT64, half))] for half in (NUMBERS[:2], NUMBERS[2:])])],
    )
    for number in (0, -1, 4, 2**31, 2**63 - 1):

        def change(footer, number=number):
            for group in footer.row_groups:
                group.file_offset = group.total_byte_size = group.total_compressed_size = number
                group.ordinal = min(number, 2**15 - 1)
                group.columns[0].file_offset = group.columns[0].meta_data.index_page_offset = number
                group.columns[0].meta_data.total_uncompressed_size = number

        assert read_parquet(file.stored(change))["a"].tolist() == NUMBERS


# --- the ends of chunks ---


def one_chunk(pages, rows=4, physical=INT64, change=lambda metadata: None, **more):
    file = build_file([rows], [FileColumn("a", physical, [pages], **more)])
    return file.stored(lambda footer: change(footer.row_groups[0].columns[0].meta_data))


@pytest.mark.parametrize("page_type", [INDEX_PAGE, 4, 99])
@pytest.mark.parametrize("count", [1, 3])
def test_chunks_that_end_with_non_data_pages(page_type, count):
    others = [other_page(page_type, b"x" * 50)] * count
    assert read_parquet(one_chunk([data_page(4, encode_plain(INT64, NUMBERS)), *others]))["a"].tolist() == NUMBERS
    file = build_file(
        [3], [FileColumn("l", INT64, [[list_page([[1], [], [2, 3]]), *others]], REPEATED, facts={"num_values": 4})]
    )
    assert as_lists(read(file)["l"]) == [[1], [], [2, 3]]
    pages = [
        dictionary_page(1, encode_plain(BYTE_ARRAY, [b"x"])),
        data_page(4, b"\x00" + bytes([8]), RLE_DICTIONARY),
        *others,
    ]
    for options in ({}, {"categories": ["a"]}):
        got = read_parquet(one_chunk(pages, physical=BYTE_ARRAY, element={"converted_type": 0}), **options)
        assert got["a"].tolist() == ["x"] * 4


def test_empty_pages_in_lists():
    empty = [data_page(0, b""), data_page(0, section([]) + section([])), data_page_v2(0, 0, b"", b"")]
    rows = [[1], [], [2, 3]]
    for place in range(3):
        pages = [list_page(rows[:2]), list_page(rows[2:])]
        pages[place:place] = empty
        file = build_file([3], [FileColumn("l", INT64, [pages], REPEATED, facts={"num_values": 4})])
        assert as_lists(read(file)["l"]) == rows


def test_empty_pages_with_a_dictionary():
    entries = dictionary_page(2, encode_plain(BYTE_ARRAY, [b"x", b"y"]))
    coded = data_page(2, b"\x01" + encode_indices([1, 0], 1), RLE_DICTIONARY)
    for empty in (
        data_page(0, b"", RLE_DICTIONARY),
        data_page(0, b"\x01", RLE_DICTIONARY),
        data_page(0, b"", PLAIN),
        data_page_v2(0, 0, b"", b"", RLE_DICTIONARY),
    ):
        for pages in ([entries, empty, coded, coded], [entries, coded, empty, coded], [entries, coded, coded, empty]):
            for options in ({}, {"categories": ["a"]}):
                got = read_parquet(one_chunk(pages, physical=BYTE_ARRAY), **options)
                assert got["a"].tolist() == [b"y", b"x"] * 2


def test_index_page_before_the_dictionary():
    pages = [
        other_page(INDEX_PAGE, b"x" * 9),
        dictionary_page(1, encode_plain(INT64, [7])),
        data_page(4, b"\x00" + bytes([8]), RLE_DICTIONARY),
    ]
    for dictionary in (True, False):

        def change(metadata, dictionary=dictionary):
            if not dictionary:
                metadata.dictionary_page_offset = None
            metadata.data_page_offset = 4

        assert read_parquet(one_chunk(pages, change=change))["a"].tolist() == [7] * 4


def test_dictionary_offset_after_the_data_is_ignored():
    """The dictionary page is the first page of its chunk."""

    def change(metadata):
        metadata.dictionary_page_offset = metadata.data_page_offset + 10

    assert read_parquet(one_chunk([data_page(4, encode_plain(INT64, NUMBERS))], change=change))["a"].tolist() == NUMBERS


def test_dictionary_after_the_data_is_an_error():
    coded = data_page(4, b"\x00" + bytes([8]), RLE_DICTIONARY)
    entries = dictionary_page(1, encode_plain(INT64, [7]))
    with pytest.raises(InvalidFileError, match=r"column 'a', page"):
        read_parquet(one_chunk([coded, entries], change=lambda metadata: setattr(metadata, "data_page_offset", 4)))


@pytest.mark.parametrize("too_much", [1, 5, 1000])
def test_chunk_size_too_large(too_much):
    """Bytes behind the last page are ignored, as pyarrow and polars do."""
    file = build_file([4], [FileColumn("a", INT64, [[data_page(4, encode_plain(INT64, NUMBERS))]])])
    data, footer = file.laid_out()
    footer.row_groups[0].columns[0].meta_data.total_compressed_size += too_much
    data = with_footer(data + b"\x15" * 1000, footer)
    assert read_parquet(data)["a"].tolist() == NUMBERS


@pytest.mark.parametrize("too_few", [1, 9, 50])
def test_chunk_size_too_small(too_few):
    def change(metadata):
        metadata.total_compressed_size -= too_few

    with pytest.raises(InvalidFileError, match="column 'a'"):
        read_parquet(one_chunk([data_page(4, encode_plain(INT64, NUMBERS))], change=change))


@pytest.mark.parametrize("kind", [DATA_PAGE, DATA_PAGE_V2])
def test_page_with_more_values_than_the_chunk(kind):
    page = (
        data_page(4, encode_plain(INT64, NUMBERS))
        if kind == DATA_PAGE
        else data_page_v2(4, 0, b"", encode_plain(INT64, NUMBERS))
    )
    with pytest.raises(InvalidFileError):
        read_parquet(one_chunk([page], rows=3))


def test_two_dictionaries_in_a_chunk():
    """The format allows one."""
    entries, coded = dictionary_page(1, encode_plain(INT64, [7])), data_page(2, b"\x00" + bytes([4]), RLE_DICTIONARY)
    with pytest.raises(InvalidFileError):
        read_parquet(one_chunk([entries, coded, dictionary_page(1, encode_plain(INT64, [8])), coded]))


def test_nulls_only(backend):
    """The pages have levels and no values."""
    levels = section([0, 0, 0, 0])
    for pages in (
        [data_page(4, levels)],
        [data_page(2, section([0, 0]))] * 2,
        [data_page_v2(4, 4, encode_indices([0] * 4, 1), b"")],
    ):
        for physical in (INT64, BYTE_ARRAY):
            got = read_parquet(one_chunk(pages, physical=physical, repetition=OPTIONAL), **backend)["a"]
            assert got.isna().all()
            assert len(got) == 4


def test_schema_of_an_empty_file():
    module = extended_idl()
    data = build_file(
        [],
        [FileColumn("a", INT64, []), list_column("l", [])],
        version=1,
        key_value_metadata=[module.KeyValue(key="k", value="v")],
    ).stored()
    with ParquetFile(data) as opened:
        assert opened.num_rows == opened.num_row_groups == 0
        got = opened.read()
    assert got.dtypes.tolist() == [np.int64, object]
    assert got.shape == (0, 2)
