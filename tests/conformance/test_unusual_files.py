"""Files that no writer of today makes, and that the format allows: all of them are read."""

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
    """A column of one row group and page."""
    return FileColumn(name, INT64, [[data_page(len(values), encode_plain(INT64, values))]], **more)


def read(made, **options):
    return read_parquet(made.stored(), **options)


def column_of(pages, physical=INT64, rows=4, repetition=0, **more):
    """Read a file of one column and row group, by one thread and by two."""
    made = build_file([rows], [FileColumn("a", physical, [pages], repetition, **more)])
    got = read(made, threads=1)["a"]
    pd.testing.assert_series_equal(read(made, threads=2)["a"], got)
    return got.tolist()


# --- the footer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [-1, 0, 1, 2, 3, 99, 2**31 - 1])
def test_the_version_does_not_matter(version):
    assert read(build_file([4], [numbers()], version=version))["a"].tolist() == NUMBERS


def fill(thing):
    """Put a struct of the future and bytes under id 32767 into every struct; a union has but one field."""
    unions = tuple(extended_idl().__thrift_meta__["unions"])
    for _, name, *_ in list(thing.thrift_spec.values()):
        value = getattr(thing, name)
        for item in value if isinstance(value, list) else [value]:
            if hasattr(item, "thrift_spec"):
                fill(item)
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


def test_fields_of_the_future_are_passed_over():
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
    made = build_file(
        [4],
        [numbers(), text],
        column_orders=[module.ColumnOrder(TYPE_ORDER=module.TypeDefinedOrder())] * 2,
        key_value_metadata=[module.KeyValue(key="k", value="v")],
    )
    for pages in made.chunks.values():
        for page in pages:
            fill(page.header)
    data = made.stored(fill)
    got = read_parquet(data)
    assert got["a"].tolist() == NUMBERS
    assert got["s"].tolist() == ["a", "", "c", "b"]
    assert got["s"].dtype == "str"
    metadata = ParquetFile(data).metadata
    assert metadata.row_groups[0].columns[1].meta_data.statistics.max_value == b"c"
    assert metadata.key_value_metadata[0].value == "v"


def test_keys_and_values():
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


def test_a_logical_type_of_the_future_is_its_physical_type():
    module = extended_idl()
    future = module.LogicalType(future=module.FutureStruct(number=1))
    got = read(build_file([4], [numbers(element={"logicalType": future})]))
    assert got["a"].tolist() == NUMBERS
    assert got["a"].dtype == np.int64
    texts = FileColumn(
        "s", BYTE_ARRAY, [[data_page(1, encode_plain(BYTE_ARRAY, [b"\xff"]))]], element={"logicalType": future}
    )
    assert read(build_file([1], [texts]))["s"].tolist() == [b"\xff"]


def test_a_converted_type_of_the_future_is_its_physical_type():
    assert read(build_file([4], [numbers(element={"converted_type": 99})]))["a"].tolist() == NUMBERS


def test_the_converted_type_that_unknown_had():
    """parquet-cpp wrote 24, pyarrow still knows it."""
    pages = [[data_page(3, encode_levels([0, 0, 0]))]]
    got = read(build_file([3], [FileColumn("a", INT32, pages, OPTIONAL, element={"converted_type": 24})]))
    assert got["a"].tolist() == [None] * 3
    assert got["a"].dtype == object


def test_groups_without_fields_are_left_out():
    """There is nothing of them in the file, not even whether they are null."""
    module = extended_idl()
    made = build_file([4], [numbers("x"), numbers("y"), numbers("z")])
    root, x, y, z = made.footer.schema

    def group(name, children, repetition=OPTIONAL):
        return module.SchemaElement(name=name, num_children=children, repetition_type=repetition)

    made.footer.schema = [root, x, group("empty", 0), group("s", 2, 0), y, group("inner", 1), group("none", 0), z]
    root.num_children = 4
    made.footer.row_groups[0].columns[1].meta_data.path_in_schema = ["s", "y"]
    assert ParquetFile(made.stored()).schema.columns == ["x", "empty", "s", "z"]
    got = read(made)
    assert got.columns.tolist() == ["x", "s", "z"]
    assert got["z"].tolist() == NUMBERS
    assert got["s"].tolist() == [{"y": number} for number in NUMBERS]
    with pytest.raises(UnsupportedError, match="a group without fields"):
        read(made, columns=["empty"])
    pytest.importorskip("pyarrow")
    assert read(made, dtype_backend="pyarrow")["s"].dtype.pyarrow_dtype.names == ["y"]


def test_a_column_order_of_the_future_does_not_matter():
    module = extended_idl()
    future = module.ColumnOrder(future=module.FutureStruct())
    data = build_file([4], [numbers()], column_orders=[future]).stored()
    assert read_parquet(data)["a"].tolist() == NUMBERS
    assert ParquetFile(data).metadata.column_orders[0].which() is None


def test_an_unknown_physical_type_matters_to_its_column_alone():
    made = build_file([4], [numbers(), FileColumn("x", 77, [[data_page(4, b"")]])])
    assert read(made, columns=["a"])["a"].tolist() == NUMBERS
    with pytest.raises(ValueError, match=r"physical type.*column 'x'"):
        read(made)


@pytest.mark.parametrize("codec", [8, 99, -1])
def test_an_unknown_codec_matters_to_its_column_alone(codec):
    made = build_file([4], [numbers("x", facts={"codec": codec}), numbers()])
    assert read(made, columns=["a"])["a"].tolist() == NUMBERS
    for options in ({}, {"columns": ["x"]}, {"threads": 2}):
        with pytest.raises(UnsupportedError, match=rf"codec {codec} .*column 'x', page 0"):
            read(made, **options)


@pytest.mark.parametrize("encoding", [1, 10, 99, -1])
@pytest.mark.parametrize("make", [data_page, lambda n, body, encoding: data_page_v2(n, 0, b"", body, encoding)])
def test_an_unknown_encoding_matters_to_its_column_alone(encoding, make):
    strange = make(4, encode_plain(INT64, NUMBERS), encoding=encoding)
    made = build_file([4], [FileColumn("x", INT64, [[strange]]), numbers(), FileColumn("s", BYTE_ARRAY, [[strange]])])
    assert read(made, columns=["a"])["a"].tolist() == NUMBERS
    for name in "xs":
        for options in ({}, {"categories": [name]}):
            with pytest.raises(UnsupportedError, match=f"encoding.*row group 0, column '{name}', page 0"):
                read(made, columns=["a", name], **options)


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
def test_encodings_of_other_types(physical, encodings):
    for encoding in encodings:
        made = build_file([4], [FileColumn("x", physical, [[data_page(4, bytes(99), encoding)]])])
        with pytest.raises(UnsupportedError, match=r"encoding.*row group 0, column 'x', page 0"):
            read(made)


# --- pages ------------------------------------------------------------------------------------------


def halves(make=data_page):
    return make(2, encode_plain(INT64, NUMBERS[:2])), make(2, encode_plain(INT64, NUMBERS[2:]))


@pytest.mark.parametrize("page_type", [INDEX_PAGE, 4, 9, -1, 2**31 - 1])
@pytest.mark.parametrize("body", [b"", b"\x00" * 300], ids=["empty", "long"])
def test_pages_of_other_types_are_passed_over(page_type, body):
    first, second = halves()
    other = other_page(page_type, body)
    for pages in (
        [other, first, second],
        [first, other, second],
        [first, second, other],
        [other, first, other, other, second],
    ):
        assert column_of(pages) == NUMBERS


def test_pages_of_both_versions_in_one_chunk():
    old = halves()
    new = halves(lambda count, body: data_page_v2(count, 0, b"", body))
    assert column_of([old[0], new[1]]) == column_of([new[0], old[1]]) == NUMBERS


def test_pages_without_values():
    first, second = halves()
    for empty in (data_page(0, b""), data_page_v2(0, 0, b"", b""), data_page(0, encode_levels([]))):
        assert column_of([empty, first, empty, empty, second]) == NUMBERS


TEXTS = [b"x", b"y", b"x", b"zz"]


def dictionary_of(physical, entries, encoding=PLAIN):
    return dictionary_page(len(entries), encode_plain(physical, entries), encoding)


@pytest.mark.parametrize("page_encoding", [PLAIN, PLAIN_DICTIONARY])
@pytest.mark.parametrize("encoding", [PLAIN_DICTIONARY, RLE_DICTIONARY])
def test_dictionaries_under_both_names(encoding, page_encoding):
    pages = [
        dictionary_of(INT64, NUMBERS, page_encoding),
        data_page(4, b"\x02" + encode_indices([3, 2, 1, 0], 2), encoding),
    ]
    assert column_of(pages) == NUMBERS[::-1]


@pytest.mark.parametrize("offset", [None, 0, "the data's"])
def test_dictionary_page_offset_missing(offset):
    """Then data_page_offset is that of the dictionary page."""
    pages = [
        dictionary_of(BYTE_ARRAY, TEXTS[:2]),
        data_page(4, b"\x01" + encode_indices([0, 1, 1, 0], 1), RLE_DICTIONARY),
    ]
    made = build_file([4], [FileColumn("a", BYTE_ARRAY, [pages])])

    def change(footer):
        facts = footer.row_groups[0].columns[0].meta_data
        facts.data_page_offset = facts.dictionary_page_offset
        facts.dictionary_page_offset = facts.data_page_offset if offset == "the data's" else offset

    assert read_parquet(made.stored(change))["a"].tolist() == [b"x", b"y", b"y", b"x"]


def test_dictionary_page_offset_without_a_dictionary():
    def change(footer):
        facts = footer.row_groups[0].columns[0].meta_data
        facts.dictionary_page_offset = facts.data_page_offset

    assert read_parquet(build_file([4], [numbers()]).stored(change))["a"].tolist() == NUMBERS


@pytest.mark.parametrize("options", [{}, {"categories": ["a"]}, {"dtype_backend": "pyarrow"}], ids=str)
def test_a_dictionary_given_up_in_the_middle(options):
    if options.get("dtype_backend"):
        pytest.importorskip("pyarrow")
    coded = data_page(2, b"\x01" + encode_indices([1, 0], 1), RLE_DICTIONARY)
    utf8 = {"converted_type": 0}
    for physical, element, values in ((INT64, {}, NUMBERS), (BYTE_ARRAY, utf8, TEXTS)):
        expected = values[1::-1] + values[2:] + values[1::-1]
        pages = [dictionary_of(physical, values[:2]), coded, data_page(2, encode_plain(physical, values[2:])), coded]
        made = build_file([6], [FileColumn("a", physical, [pages], element=element)])
        for threads in (1, 2):
            got = read(made, threads=threads, **options)["a"].tolist()
            assert got == ([text.decode() for text in expected] if element else expected)


@pytest.mark.parametrize("width", [2, 3, 8, 17, 31, 32])
def test_indices_wider_than_they_need_be(width):
    pages = [
        dictionary_of(INT64, NUMBERS),
        data_page(4, bytes([width]) + encode_indices([3, 2, 1, 0], width), RLE_DICTIONARY),
    ]
    assert column_of(pages) == NUMBERS[::-1]


def test_indices_of_no_bits():
    pages = [dictionary_of(INT64, NUMBERS[:1]), data_page(4, b"\x00" + bytes([4 << 1]), RLE_DICTIONARY)]
    assert column_of(pages) == NUMBERS[:1] * 4
    pages[1] = data_page(4, b"\x00" + encode_indices([0] * 4, 0), RLE_DICTIONARY)
    assert column_of(pages) == NUMBERS[:1] * 4


def test_an_empty_dictionary_and_nothing_but_nulls():
    for body in (encode_levels([0] * 4), encode_levels([0] * 4) + b"\x00"):
        pages = [dictionary_page(0, b""), data_page(4, body, RLE_DICTIONARY)]
        for physical in (INT32, INT64, DOUBLE, BYTE_ARRAY):
            assert pd.isna(column_of(pages, physical, repetition=OPTIONAL)).all()
        assert pd.isna(column_of(pages, BYTE_ARRAY, repetition=OPTIONAL, element={"converted_type": 0})).all()


def test_a_dictionary_with_entries_twice():
    pages = [
        dictionary_of(BYTE_ARRAY, [b"x", b"x", b"y"]),
        data_page(4, b"\x02" + encode_indices([0, 1, 2, 1], 2), RLE_DICTIONARY),
    ]
    made = build_file([4], [FileColumn("a", BYTE_ARRAY, [pages], element={"converted_type": 0})])
    assert read(made)["a"].tolist() == ["x", "x", "y", "x"]
    got = read(made, categories=["a"])["a"]
    assert got.tolist() == ["x", "x", "y", "x"]
    assert got.cat.categories.tolist() == ["x", "y"]


PRESENT = [1, 0, 0, 1, 1, 0, 1, 1, 0, 1]


@pytest.mark.parametrize("physical", [INT64, DOUBLE, BYTE_ARRAY])
def test_levels_in_the_old_encoding(physical):
    """BIT_PACKED: from the highest bit down, and without a length in front."""
    texts = [str(number).encode() for number in range(10)]
    values = texts if physical == BYTE_ARRAY else list(range(10))
    section = int("".join(map(str, PRESENT)).ljust(16, "0"), 2).to_bytes(2, "big")
    body = section + encode_plain(physical, [value for value, present in zip(values, PRESENT, strict=True) if present])
    got = column_of([data_page(10, body, PLAIN, BIT_PACKED)], physical, 10, OPTIONAL)
    assert [None if pd.isna(value) else value for value in got] == [
        value if present else None for value, present in zip(values, PRESENT, strict=True)
    ]


def test_levels_in_the_old_encoding_as_impala_packs_them():
    """From the lowest bit up: only the writer's name tells."""
    section = int("".join(map(str, reversed(PRESENT))), 2).to_bytes(2, "little")
    body = section + encode_plain(INT64, [value for value, present in enumerate(PRESENT) if present])
    column = FileColumn("a", INT64, [[data_page(10, body, PLAIN, BIT_PACKED)]], OPTIONAL)
    expected = [value if present else None for value, present in enumerate(PRESENT)]
    made = build_file([10], [column], created_by="impala version 2.11.0-SNAPSHOT (build 0)")
    assert [None if pd.isna(value) else value for value in read(made)["a"]] == expected
    made = build_file([10], [column], created_by="parquet-mr version 1.0.0 (build 0)")
    assert [None if pd.isna(value) else value for value in read(made)["a"]] != expected


def test_nulls_that_the_header_of_a_page_does_not_count():
    """parquet-cpp says 0 in V2 pages of columns without statistics, such as INT96, and parquet-java says -1."""
    present = [1, 0, 1, 1]
    section, values = encode_indices(present, 1), encode_plain(INT64, [7, 8, 9])
    for said in (0, -1):
        got = column_of([data_page_v2(4, said, section, values)], INT64, 4, OPTIONAL)
        assert [None if pd.isna(value) else value for value in got] == [7, None, 8, 9]
        assert column_of([data_page_v2(3, said, b"", values)], INT64, 3) == [7, 8, 9]
    with pytest.raises(CorruptPageError, match="the number of values does not match the page header"):
        column_of([data_page_v2(4, 2, section, values)], INT64, 4, OPTIONAL)


def test_rows_that_the_header_of_a_page_does_not_count():
    """Writers in Go leave num_rows of V2 pages at 0."""
    pages = [
        data_page_v2(2, 0, b"", encode_plain(INT64, NUMBERS[:2])),
        data_page_v2(2, 0, b"", encode_plain(INT64, NUMBERS[2:])),
    ]
    for page in pages:
        page.header.data_page_header_v2.num_rows = 0
    assert column_of(pages) == NUMBERS
    pages[1].header.data_page_header_v2.num_rows = 1
    with pytest.raises(CorruptPageError, match="the number of values does not match the page header"):
        column_of(pages)


def test_checksums_that_were_never_computed():
    """Parquet.jl writes 0 into every page; from others it is a checksum."""
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
def test_int96_that_are_no_timestamps(dtype_backend):
    """Twelve bytes of something else come back as these, whatever the others of the column are."""
    if dtype_backend == "pyarrow":
        pytest.importorskip("pyarrow")
    raw = [b"0123456789ab", bytes(12), b"\xff" * 7 + b"\x7f" * 5]
    for values in (raw, raw[1:] + raw):
        column = FileColumn("a", INT96, [[data_page(len(values), b"".join(values))]])
        options = {"dtype_backend": dtype_backend} if dtype_backend == "pyarrow" else {}
        got = read(build_file([len(values)], [column]), **options)["a"]
        assert got.tolist() == values
        assert str(got.dtype) == ("fixed_size_binary[12][pyarrow]" if options else "object")


def test_the_level_encoding_does_not_matter_to_a_required_column():
    for encoding in (0, RLE, BIT_PACKED, 99):
        assert column_of([data_page(4, encode_plain(INT64, NUMBERS), PLAIN, encoding)]) == NUMBERS


def test_values_behind_the_last_one_are_passed_over():
    assert column_of([data_page(4, encode_plain(INT64, [*NUMBERS, 7]) + b"xyz")]) == NUMBERS


def test_a_page_that_is_not_compressed_under_a_codec():
    page = data_page_v2(4, 0, b"", encode_plain(INT64, NUMBERS))
    page.header.data_page_header_v2.is_compressed = False
    assert column_of([page], facts={"codec": 1}) == NUMBERS


# --- row groups and columns --------------------------------------------------------------------------------


def test_empty_row_groups():
    first, second = halves()
    empty = [[], [data_page(0, b"")]]
    made = build_file([0, 2, 0, 2, 0], [FileColumn("a", INT64, [empty[0], [first], empty[1], [second], empty[0]])])
    assert read(made)["a"].tolist() == NUMBERS
    assert read(made, row_groups=[0])["a"].tolist() == []
    assert read(made, row_groups=[4, 3, 2, 1], include=["row_number", "row_group"])["row_number"].tolist() == [
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


def test_columns_of_the_same_name():
    made = build_file([4], [numbers(), numbers("b"), numbers(values=[1, 2, 3, 4])])
    got = read(made)
    assert got.columns.tolist() == ["a", "b", "a"]
    assert got.iloc[:, 2].tolist() == [1, 2, 3, 4]
    assert read(made, columns=["a"]).iloc[:, 0].tolist() == NUMBERS


@pytest.mark.parametrize("name", ["", " ", "a.b", "'", "\n", "\x00", "ü" * 1000, "None", "0"])
def test_strange_names(name):
    got = read(build_file([4], [numbers(name), numbers("other")]), columns=[name])
    assert got.columns.tolist() == [name]
    assert got[name].tolist() == NUMBERS


def test_names_that_are_not_utf8():
    made = build_file([4], [numbers(b"\xffa"), numbers("b")])
    name = b"\xffa".decode("utf-8", "surrogateescape")
    assert ParquetFile(made.stored()).schema.columns == [name, "b"]
    for options in ({}, {"columns": [name]}, {"columns": ["b"]}, {"include": ["file", "row_number"]}):
        got = read(made, **options)
        assert got[got.columns[0]].tolist() == NUMBERS
    with pytest.raises(SchemaError, match="no column '\\\\udcff'"):
        read(made, columns=["\udcff"])


def test_two_columns_in_the_same_bytes():
    made = build_file([4], [numbers(), numbers("b")])

    def change(footer):
        first, second = footer.row_groups[0].columns
        second.meta_data = first.meta_data

    got = read_parquet(made.stored(change))
    assert got["a"].tolist() == got["b"].tolist() == NUMBERS


def test_chunks_in_any_order():
    made = build_file(
        [2, 2],
        [FileColumn("a", INT64, [[page] for page in halves()]), FileColumn("b", INT64, [[page] for page in halves()])],
    )
    made.chunks = dict(sorted(made.chunks.items(), key=lambda item: (-item[0][0], -item[0][1])))
    got = read(made)
    assert got["a"].tolist() == got["b"].tolist() == NUMBERS
