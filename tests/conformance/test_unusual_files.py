"""Unusual but legal files that no current writer produces."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from numparq import CorruptPageError, ParquetFile, SchemaError, UnsupportedError, read_parquet
from support.files.builder import (
    BIT_PACKED,
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    INDEX_PAGE,
    INT32,
    INT64,
    INT96,
    OPTIONAL,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE,
    RLE_DICTIONARY,
    FileColumn,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_indices,
    encode_levels,
    encode_plain,
    extended_idl,
    other_page,
)

NUMBERS = [3, 1, 2**62, -5]


def numbers(name="a", values=NUMBERS, **more):
    """Build a column with one row group and one page."""
    return FileColumn(name, INT64, [[data_page(len(values), encode_plain(INT64, values))]], **more)


def read(file, **options):
    return read_parquet(file.stored(), **options)


def read_column(pages, physical=INT64, rows=4, repetition=0, **more):
    """Build a file with one column and row group, and read it with one thread and with two."""
    file = build_file([rows], [FileColumn("a", physical, [pages], repetition, **more)])
    got = read(file, threads=1)["a"]
    pd.testing.assert_series_equal(read(file, threads=2)["a"], got)
    return got.tolist()


# --- the footer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [-1, 0, 1, 2, 3, 99, 2**31 - 1])
def test_version_is_ignored(version):
    assert read(build_file([4], [numbers()], version=version))["a"].tolist() == NUMBERS


def add_future_fields(thing):
    """Add an unknown struct, and bytes with id 32767, to every struct. A union has only one field."""
    unions = tuple(extended_idl().__thrift_meta__["unions"])
    for _, name, *_ in list(thing.thrift_spec.values()):
        value = getattr(thing, name)
        for item in value if isinstance(value, list) else [value]:
            if hasattr(item, "thrift_spec"):
                add_future_fields(item)
    if not isinstance(thing, unions):
        future = extended_idl().FutureStruct
        inner = [future(number=-1, flags=[True, False], inner=[future(flag=False)]), future()]
        thing.extension = bytes(range(256))
        thing.future = future(
            number=2**60,
            bytes=b"x" * 300,
            inner=inner,
            flag=True,
            fraction=0.5,
            flags=[True] * 20,
            members={1, 2},
            pairs={"k": 1},
        )


def test_unknown_fields_are_skipped():
    module = extended_idl()
    string = module.LogicalType(STRING=module.StringType())
    statistics = module.Statistics(null_count=0, min_value=b"a", max_value=b"c")
    text = FileColumn(
        "s",
        BYTE_ARRAY,
        [[data_page(4, encode_plain(BYTE_ARRAY, [b"a", b"", b"c", b"b"]))]],
        element={"logicalType": string},
        facts={"statistics": statistics},
    )
    file = build_file(
        [4],
        [numbers(), text],
        column_orders=[module.ColumnOrder(TYPE_ORDER=module.TypeDefinedOrder())] * 2,
        key_value_metadata=[module.KeyValue(key="k", value="v")],
    )
    for pages in file.chunks.values():
        for page in pages:
            add_future_fields(page.header)
    data = file.stored(add_future_fields)
    got = read_parquet(data)
    assert got["a"].tolist() == NUMBERS
    assert got["s"].tolist() == ["a", "", "c", "b"]
    assert got["s"].dtype == "str"
    metadata = ParquetFile(data).metadata
    assert metadata.row_groups[0].columns[1].meta_data.statistics.max_value == b"c"
    assert metadata.key_value_metadata[0].value == "v"


def test_key_value_metadata():
    module = extended_idl()
    texts = [("k", "first"), ("k", "second"), ("n", None), ("", "")]
    pairs = [module.KeyValue(key=key, value=value) for key, value in texts]
    chunk = [module.KeyValue(key="of the chunk", value="v")]
    data = build_file(
        [4], [numbers(facts={"key_value_metadata": chunk})], key_value_metadata=pairs, created_by=None
    ).stored()
    assert read_parquet(data)["a"].tolist() == NUMBERS
    metadata = ParquetFile(data).metadata
    assert [(pair.key, pair.value) for pair in metadata.key_value_metadata] == texts
    assert metadata.row_groups[0].columns[0].meta_data.key_value_metadata[0].key == "of the chunk"
    assert metadata.created_by is None


def test_unknown_logical_type_reads_as_physical_type():
    module = extended_idl()
    future = module.LogicalType(future=module.FutureStruct(number=1))
    got = read(build_file([4], [numbers(element={"logicalType": future})]))
    assert got["a"].tolist() == NUMBERS
    assert got["a"].dtype == np.int64
    texts = FileColumn(
        "s", BYTE_ARRAY, [[data_page(1, encode_plain(BYTE_ARRAY, [b"\xff"]))]], element={"logicalType": future}
    )
    assert read(build_file([1], [texts]))["s"].tolist() == [b"\xff"]


def test_unknown_converted_type_reads_as_physical_type():
    assert read(build_file([4], [numbers(element={"converted_type": 99})]))["a"].tolist() == NUMBERS


def test_converted_type_24_is_unknown():
    """parquet-cpp wrote 24, which pyarrow still reads."""
    pages = [[data_page(3, encode_levels([0, 0, 0]))]]
    got = read(build_file([3], [FileColumn("a", INT32, pages, OPTIONAL, element={"converted_type": 24})]))
    assert got["a"].tolist() == [None] * 3
    assert got["a"].dtype == object


def test_groups_without_fields_are_omitted():
    """The file stores nothing of them, not even whether they are null."""
    module = extended_idl()
    file = build_file([4], [numbers("x"), numbers("y"), numbers("z")])
    root, x, y, z = file.footer.schema

    def group(name, children, repetition=OPTIONAL):
        return module.SchemaElement(name=name, num_children=children, repetition_type=repetition)

    file.footer.schema = [root, x, group("empty", 0), group("s", 2, 0), y, group("inner", 1), group("none", 0), z]
    root.num_children = 4
    file.footer.row_groups[0].columns[1].meta_data.path_in_schema = ["s", "y"]
    assert ParquetFile(file.stored()).schema.columns == ["x", "empty", "s", "z"]
    got = read(file)
    assert got.columns.tolist() == ["x", "s", "z"]
    assert got["z"].tolist() == NUMBERS
    assert got["s"].tolist() == [{"y": number} for number in NUMBERS]
    with pytest.raises(UnsupportedError, match="a group without fields"):
        read(file, columns=["empty"])
    pytest.importorskip("pyarrow")
    assert read(file, dtype_backend="pyarrow")["s"].dtype.pyarrow_dtype.names == ["y"]


def test_unknown_column_order_is_ignored():
    module = extended_idl()
    future = module.ColumnOrder(future=module.FutureStruct())
    data = build_file([4], [numbers()], column_orders=[future]).stored()
    assert read_parquet(data)["a"].tolist() == NUMBERS
    assert ParquetFile(data).metadata.column_orders[0].which() is None


def test_unknown_physical_type_affects_only_its_column():
    file = build_file([4], [numbers(), FileColumn("x", 77, [[data_page(4, b"")]])])
    assert read(file, columns=["a"])["a"].tolist() == NUMBERS
    with pytest.raises(ValueError, match=r"physical type.*column 'x'"):
        read(file)


@pytest.mark.parametrize("codec", [8, 99, -1])
def test_unknown_codec_affects_only_its_column(codec):
    file = build_file([4], [numbers("x", facts={"codec": codec}), numbers()])
    assert read(file, columns=["a"])["a"].tolist() == NUMBERS
    for options in ({}, {"columns": ["x"]}, {"threads": 2}):
        with pytest.raises(UnsupportedError, match=rf"codec {codec} .*column 'x', page 0"):
            read(file, **options)


@pytest.mark.parametrize("encoding", [1, 10, 99, -1])
@pytest.mark.parametrize("make", [data_page, lambda n, body, encoding: data_page_v2(n, 0, b"", body, encoding)])
def test_unknown_encoding_affects_only_its_column(encoding, make):
    strange = make(4, encode_plain(INT64, NUMBERS), encoding=encoding)
    file = build_file([4], [FileColumn("x", INT64, [[strange]]), numbers(), FileColumn("s", BYTE_ARRAY, [[strange]])])
    assert read(file, columns=["a"])["a"].tolist() == NUMBERS
    for name in "xs":
        for options in ({}, {"categories": [name]}):
            with pytest.raises(UnsupportedError, match=f"encoding.*row group 0, column '{name}', page 0"):
                read(file, columns=["a", name], **options)


@pytest.mark.parametrize(
    ("physical", "encodings"),
    [
        (INT64, (RLE, 6, 7)),
        (INT32, (6, 7)),
        (DOUBLE, (5, 6, 7)),
        (BOOLEAN, (5, 6, 7, 9)),
        (BYTE_ARRAY, (RLE, 5, 9)),
        (INT96, (5, 6, 7, 9)),
    ],
)
def test_encodings_invalid_for_the_type(physical, encodings):
    for encoding in encodings:
        file = build_file([4], [FileColumn("x", physical, [[data_page(4, bytes(99), encoding)]])])
        with pytest.raises(UnsupportedError, match=r"encoding.*row group 0, column 'x', page 0"):
            read(file)


# --- pages ------------------------------------------------------------------------------------------


def halves(make=data_page):
    return make(2, encode_plain(INT64, NUMBERS[:2])), make(2, encode_plain(INT64, NUMBERS[2:]))


@pytest.mark.parametrize("page_type", [INDEX_PAGE, 4, 9, -1, 2**31 - 1])
@pytest.mark.parametrize("body", [b"", b"\x00" * 300], ids=["empty", "long"])
def test_pages_of_other_types_are_skipped(page_type, body):
    first, second = halves()
    other = other_page(page_type, body)
    for pages in (
        [other, first, second],
        [first, other, second],
        [first, second, other],
        [other, first, other, other, second],
    ):
        assert read_column(pages) == NUMBERS


def test_pages_of_both_versions_in_one_chunk():
    old = halves()
    new = halves(lambda count, body: data_page_v2(count, 0, b"", body))
    assert read_column([old[0], new[1]]) == read_column([new[0], old[1]]) == NUMBERS


def test_pages_without_values():
    first, second = halves()
    for empty in (data_page(0, b""), data_page_v2(0, 0, b"", b""), data_page(0, encode_levels([]))):
        assert read_column([empty, first, empty, empty, second]) == NUMBERS


TEXTS = [b"x", b"y", b"x", b"zz"]


def dictionary_of(physical, entries, encoding=PLAIN):
    return dictionary_page(len(entries), encode_plain(physical, entries), encoding)


@pytest.mark.parametrize("page_encoding", [PLAIN, PLAIN_DICTIONARY])
@pytest.mark.parametrize("encoding", [PLAIN_DICTIONARY, RLE_DICTIONARY])
def test_both_dictionary_encoding_names(encoding, page_encoding):
    pages = [
        dictionary_of(INT64, NUMBERS, page_encoding),
        data_page(4, b"\x02" + encode_indices([3, 2, 1, 0], 2), encoding),
    ]
    assert read_column(pages) == NUMBERS[::-1]


@pytest.mark.parametrize("offset", [None, 0, "the data's"])
def test_dictionary_page_offset_missing(offset):
    """data_page_offset is then the offset of the dictionary page."""
    pages = [
        dictionary_of(BYTE_ARRAY, TEXTS[:2]),
        data_page(4, b"\x01" + encode_indices([0, 1, 1, 0], 1), RLE_DICTIONARY),
    ]
    file = build_file([4], [FileColumn("a", BYTE_ARRAY, [pages])])

    def change(footer):
        metadata = footer.row_groups[0].columns[0].meta_data
        metadata.data_page_offset = metadata.dictionary_page_offset
        metadata.dictionary_page_offset = metadata.data_page_offset if offset == "the data's" else offset

    assert read_parquet(file.stored(change))["a"].tolist() == [b"x", b"y", b"y", b"x"]


def test_dictionary_page_offset_without_a_dictionary():
    def change(footer):
        metadata = footer.row_groups[0].columns[0].meta_data
        metadata.dictionary_page_offset = metadata.data_page_offset

    assert read_parquet(build_file([4], [numbers()]).stored(change))["a"].tolist() == NUMBERS


@pytest.mark.parametrize("options", [{}, {"categories": ["a"]}, {"dtype_backend": "pyarrow"}], ids=str)
def test_dictionary_fallback_in_the_middle(options):
    if options.get("dtype_backend"):
        pytest.importorskip("pyarrow")
    coded = data_page(2, b"\x01" + encode_indices([1, 0], 1), RLE_DICTIONARY)
    utf8 = {"converted_type": 0}
    for physical, element, values in ((INT64, {}, NUMBERS), (BYTE_ARRAY, utf8, TEXTS)):
        expected = values[1::-1] + values[2:] + values[1::-1]
        pages = [dictionary_of(physical, values[:2]), coded, data_page(2, encode_plain(physical, values[2:])), coded]
        file = build_file([6], [FileColumn("a", physical, [pages], element=element)])
        for threads in (1, 2):
            got = read(file, threads=threads, **options)["a"].tolist()
            assert got == ([text.decode() for text in expected] if element else expected)


@pytest.mark.parametrize("width", [2, 3, 8, 17, 31, 32])
def test_indices_wider_than_needed(width):
    pages = [
        dictionary_of(INT64, NUMBERS),
        data_page(4, bytes([width]) + encode_indices([3, 2, 1, 0], width), RLE_DICTIONARY),
    ]
    assert read_column(pages) == NUMBERS[::-1]


def test_indices_of_zero_bits():
    pages = [dictionary_of(INT64, NUMBERS[:1]), data_page(4, b"\x00" + bytes([4 << 1]), RLE_DICTIONARY)]
    assert read_column(pages) == NUMBERS[:1] * 4
    pages[1] = data_page(4, b"\x00" + encode_indices([0] * 4, 0), RLE_DICTIONARY)
    assert read_column(pages) == NUMBERS[:1] * 4


def test_empty_dictionary_with_nulls_only():
    for body in (encode_levels([0] * 4), encode_levels([0] * 4) + b"\x00"):
        pages = [dictionary_page(0, b""), data_page(4, body, RLE_DICTIONARY)]
        for physical in (INT32, INT64, DOUBLE, BYTE_ARRAY):
            assert pd.isna(read_column(pages, physical, repetition=OPTIONAL)).all()
        assert pd.isna(read_column(pages, BYTE_ARRAY, repetition=OPTIONAL, element={"converted_type": 0})).all()


def test_dictionary_with_duplicate_entries():
    pages = [
        dictionary_of(BYTE_ARRAY, [b"x", b"x", b"y"]),
        data_page(4, b"\x02" + encode_indices([0, 1, 2, 1], 2), RLE_DICTIONARY),
    ]
    file = build_file([4], [FileColumn("a", BYTE_ARRAY, [pages], element={"converted_type": 0})])
    assert read(file)["a"].tolist() == ["x", "x", "y", "x"]
    got = read(file, categories=["a"])["a"]
    assert got.tolist() == ["x", "x", "y", "x"]
    assert got.cat.categories.tolist() == ["x", "y"]


PRESENT = [1, 0, 0, 1, 1, 0, 1, 1, 0, 1]


@pytest.mark.parametrize("physical", [INT64, DOUBLE, BYTE_ARRAY])
def test_bit_packed_levels(physical):
    """BIT_PACKED levels start at the highest bit, without a length prefix."""
    texts = [str(number).encode() for number in range(10)]
    values = texts if physical == BYTE_ARRAY else list(range(10))
    section = int("".join(map(str, PRESENT)).ljust(16, "0"), 2).to_bytes(2, "big")
    body = section + encode_plain(physical, [value for value, present in zip(values, PRESENT, strict=True) if present])
    got = read_column([data_page(10, body, PLAIN, BIT_PACKED)], physical, 10, OPTIONAL)
    assert [None if pd.isna(value) else value for value in got] == [
        value if present else None for value, present in zip(values, PRESENT, strict=True)
    ]


def test_bit_packed_levels_of_impala():
    """Impala starts at the lowest bit, which only the writer's name reveals."""
    section = int("".join(map(str, reversed(PRESENT))), 2).to_bytes(2, "little")
    body = section + encode_plain(INT64, [value for value, present in enumerate(PRESENT) if present])
    column = FileColumn("a", INT64, [[data_page(10, body, PLAIN, BIT_PACKED)]], OPTIONAL)
    expected = [value if present else None for value, present in enumerate(PRESENT)]
    file = build_file([10], [column], created_by="impala version 2.11.0-SNAPSHOT (build 0)")
    assert [None if pd.isna(value) else value for value in read(file)["a"]] == expected
    file = build_file([10], [column], created_by="parquet-mr version 1.0.0 (build 0)")
    assert [None if pd.isna(value) else value for value in read(file)["a"]] != expected  # levels decide


def test_null_count_missing_from_v2_headers():
    """parquet-cpp writes 0 in V2 pages of columns without statistics, such as INT96, and parquet-java writes -1.

    Levels decide, whatever the header says.
    """
    present = [1, 0, 1, 1]
    section, values = encode_indices(present, 1), encode_plain(INT64, [7, 8, 9])
    for num_nulls in (0, -1, 2, 4):
        got = read_column([data_page_v2(4, num_nulls, section, values)], INT64, 4, OPTIONAL)
        assert [None if pd.isna(value) else value for value in got] == [7, None, 8, 9]
        assert read_column([data_page_v2(3, num_nulls, b"", values)], INT64, 3) == [7, 8, 9]
    with pytest.raises(CorruptPageError, match="the data ends too early"):  # a value too few for the levels
        read_column([data_page_v2(4, 1, section, values[:-8])], INT64, 4, OPTIONAL)


def test_row_count_missing_from_v2_headers():
    """Go writers leave num_rows of V2 pages at 0."""
    pages = [
        data_page_v2(2, 0, b"", encode_plain(INT64, NUMBERS[:2])),
        data_page_v2(2, 0, b"", encode_plain(INT64, NUMBERS[2:])),
    ]
    for page in pages:
        page.header.data_page_header_v2.num_rows = 0
    assert read_column(pages) == NUMBERS
    pages[1].header.data_page_header_v2.num_rows = 1
    assert read_column(pages) == NUMBERS


def test_uncomputed_checksums():
    """Parquet.jl writes 0 into every page. A 0 of other writers is a checksum."""
    page = data_page(4, encode_plain(INT64, NUMBERS))
    page.header.crc = 0
    assert (
        read(build_file([4], [FileColumn("a", INT64, [[page]])], created_by="Parquet.jl 0.6.0"))["a"].tolist()
        == NUMBERS
    )
    for writer in ("parquet-mr version 1.13.1", None):
        with pytest.raises(CorruptPageError, match="CRC"):
            read(build_file([4], [FileColumn("a", INT64, [[page]])], created_by=writer))


@pytest.mark.parametrize("dtype_backend", ["numpy", "pyarrow"])
def test_int96_values_that_are_not_timestamps(dtype_backend):
    """One such value makes the whole column bytes."""
    if dtype_backend == "pyarrow":
        pytest.importorskip("pyarrow")
    raw = [b"0123456789ab", bytes(12), b"\xff" * 7 + b"\x7f" * 5]
    for values in (raw, raw[1:] + raw):
        column = FileColumn("a", INT96, [[data_page(len(values), b"".join(values))]])
        options = {"dtype_backend": dtype_backend} if dtype_backend == "pyarrow" else {}
        got = read(build_file([len(values)], [column]), **options)["a"]
        assert got.tolist() == values
        assert str(got.dtype) == ("fixed_size_binary[12][pyarrow]" if options else "object")


def test_level_encoding_of_a_required_column_is_ignored():
    for encoding in (0, RLE, BIT_PACKED, 99):
        assert read_column([data_page(4, encode_plain(INT64, NUMBERS), PLAIN, encoding)]) == NUMBERS


@pytest.mark.parametrize("behind", [b"x", bytes(8)])
def test_bytes_after_the_last_value_are_ignored(behind):
    assert read_column([data_page(4, encode_plain(INT64, NUMBERS) + behind)]) == NUMBERS


def test_uncompressed_page_of_a_compressed_chunk():
    page = data_page_v2(4, 0, b"", encode_plain(INT64, NUMBERS))
    page.header.data_page_header_v2.is_compressed = False
    assert read_column([page], facts={"codec": 1}) == NUMBERS


# --- row groups and columns --------------------------------------------------------------------------------


def test_empty_row_groups():
    first, second = halves()
    empty = [[], [data_page(0, b"")]]
    file = build_file([0, 2, 0, 2, 0], [FileColumn("a", INT64, [empty[0], [first], empty[1], [second], empty[0]])])
    assert read(file)["a"].tolist() == NUMBERS
    assert read(file, row_groups=[0])["a"].tolist() == []
    assert read(file, row_groups=[4, 3, 2, 1], include=["row_number", "row_group"])["row_number"].tolist() == [
        2,
        3,
        0,
        1,
    ]


def test_no_row_groups():
    got = read(build_file([], [numbers(), FileColumn("s", BYTE_ARRAY, [], element={"converted_type": 0})]))
    assert got.shape == (0, 2)
    assert got["a"].dtype == np.int64
    assert got["s"].dtype == "str"


def test_no_columns():
    got = read(build_file([4, 2], []))
    assert got.shape == (6, 0)
    assert got.index.equals(pd.RangeIndex(6))
    got = read(build_file([4, 2], []), include=["row_group"], row_range=(3, 6))
    assert got["row_group"].tolist() == [0, 1, 1]


def test_duplicate_column_names():
    file = build_file([4], [numbers(), numbers("b"), numbers(values=[1, 2, 3, 4])])
    got = read(file)
    assert got.columns.tolist() == ["a", "b", "a"]
    assert got.iloc[:, 2].tolist() == [1, 2, 3, 4]
    assert read(file, columns=["a"]).iloc[:, 0].tolist() == NUMBERS


@pytest.mark.parametrize("name", ["", " ", "a.b", "'", "\n", "\x00", "ü" * 1000, "None", "0"])
def test_unusual_column_names(name):
    got = read(build_file([4], [numbers(name), numbers("other")]), columns=[name])
    assert got.columns.tolist() == [name]
    assert got[name].tolist() == NUMBERS


def test_column_names_that_are_not_utf8():
    file = build_file([4], [numbers(b"\xffa"), numbers("b")])
    name = b"\xffa".decode("utf-8", "surrogateescape")
    assert ParquetFile(file.stored()).schema.columns == [name, "b"]
    for options in ({}, {"columns": [name]}, {"columns": ["b"]}, {"include": ["file", "row_number"]}):
        got = read(file, **options)
        assert got[got.columns[0]].tolist() == NUMBERS
    with pytest.raises(SchemaError, match="no column '\\\\udcff'"):
        read(file, columns=["\udcff"])


def test_columns_that_share_a_chunk():
    file = build_file([4], [numbers(), numbers("b")])

    def change(footer):
        first, second = footer.row_groups[0].columns
        second.meta_data = first.meta_data

    got = read_parquet(file.stored(change))
    assert got["a"].tolist() == got["b"].tolist() == NUMBERS


def test_chunks_in_any_order():
    file = build_file(
        [2, 2],
        [FileColumn("a", INT64, [[page] for page in halves()]), FileColumn("b", INT64, [[page] for page in halves()])],
    )
    file.chunks = dict(sorted(file.chunks.items(), key=lambda item: (-item[0][0], -item[0][1])))
    got = read(file)
    assert got["a"].tolist() == got["b"].tolist() == NUMBERS
