"""``on_error="skip"``: which rows and columns are left by which damage, and what the list of losses says."""

from __future__ import annotations

import datetime
import decimal
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driving.stored_pages import (
    data_pages,
    dictionary_page,
    flipped,
    footer_of,
    footer_start,
    in_body,
    in_header,
    pages_of,
    with_footer,
    with_header,
)

import numparq
from numparq import InvalidFileError
from numparq.errors import LimitError
from numparq.scan.recovery.losses import Losses, Lost, LostRows

CRC = "the checksum (CRC-32) does not match: the page is damaged"
ROWS, GROUP, PAGE = 1200, 400, 100


def table(rows: int = ROWS) -> pd.DataFrame:
    """A frame of all kinds of columns."""
    numbers = np.arange(rows)
    text = [f"some text {number * 7919 % 1000}" for number in range(rows)]
    days = datetime.date(2020, 1, 1)
    return pd.DataFrame(
        {
            "int": numbers * 1_000_003,
            "small": numbers.astype("i2"),
            "gaps": pd.Series(numbers).astype("float64").where(numbers % 3 != 0),
            "whole": pd.array([None if n % 5 == 0 else int(n) for n in numbers], dtype="Int32"),
            "flag": numbers % 2 == 0,
            "text": pd.Series(text).where(numbers % 4 != 0),
            "few": [f"word {number % 20}" for number in range(rows)],
            "kind": pd.Categorical([f"kind {number % 9}" for number in range(rows)]),
            "time": pd.date_range("2020", periods=rows, freq="min"),
            "day": [days + datetime.timedelta(int(n)) for n in numbers],
            "price": [decimal.Decimal(int(n)) / 100 for n in numbers],
            "list": [None if n % 7 == 0 else list(range(n % 4)) for n in range(rows)],
            "struct": [None if n % 11 == 0 else {"x": n, "y": f"y{n}"} for n in range(rows)],
            "map": [[(f"k{n % 3}", n), ("all", None)][: n % 3] for n in range(rows)],
        }
    )


def own(**options) -> bytes:
    frame = options.pop("frame", None)
    defaults = {
        "row_group_size": GROUP,
        "max_rows_per_page": PAGE,
        "data_page_version": "1.0",
        "schema": {"map": pa.map_(pa.string(), pa.int64())} if frame is None else None,
    }
    return numparq.to_parquet(table() if frame is None else frame, **{**defaults, **options})


LEAVES = [
    "int",
    "small",
    "gaps",
    "whole",
    "flag",
    "text",
    "few",
    "kind",
    "time",
    "day",
    "price",
    "list.list.element",
    "struct.x",
    "struct.y",
    "map.key_value.key",
    "map.key_value.value",
]


def skip(data: bytes, **options) -> tuple[pd.DataFrame, list[Lost]]:
    frame = numparq.read_parquet(data, on_error="skip", **options)
    return frame, frame.attrs.pop("numparq.lost")


def check(damaged: bytes, whole: bytes, lost: list[tuple], gone: list[str] = (), **options) -> list[Lost]:
    """Hold what is left of a file against the whole one: exactly the rows and columns that were not lost."""
    frame, found = skip(damaged, **options)
    assert [item[1:4] for item in found] == [(group, column, rows) for group, column, rows in lost]
    assert all(item.file == "<bytes>" and item.reason for item in found)
    expected = numparq.read_parquet(whole, include=["row_number"], **options)
    kept = np.ones(len(expected), bool)
    for _, column, rows in lost:
        if column.split(".")[0] not in gone:
            numbers = expected["row_number"]
            kept &= ~((numbers >= rows[0]) & (numbers < rows[1])).to_numpy()
    expected = expected.drop(columns=["row_number", *gone])
    pd.testing.assert_frame_equal(frame, expected[kept])
    with pytest.raises(numparq.ParquetError):
        numparq.read_parquet(damaged, **options)
    return found


# --- whole files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("options", [{}, {"row_range": (350, 900)}, {"row_groups": [2, 0]}, {"nrows": 0}])
def test_a_whole_file_is_read_as_ever(backend: str, options: dict) -> None:
    data = own()
    options = {**options, "dtype_backend": None if backend == "numpy" else backend}
    frame, lost = skip(data, **options)
    assert lost == []
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(data, **options))


def test_the_list_of_losses_is_an_attribute_beside_the_others() -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    frame.attrs = {"made by": "us"}
    data = numparq.to_parquet(frame)
    assert numparq.read_parquet(data, on_error="skip").attrs == {"made by": "us", "numparq.lost": []}
    assert "numparq.lost" not in numparq.read_parquet(data).attrs
    with numparq.ParquetFile(data) as file:
        assert file.read(on_error="skip").attrs["numparq.lost"] == []
        assert "numparq.lost" not in file.read().attrs


def test_the_argument_is_checked() -> None:
    with pytest.raises(ValueError, match="on_error is 'raise' or 'skip', not 'ignore'"):
        numparq.read_parquet(own(), on_error="ignore")


def test_conformance_files_are_read_as_ever(parquet_testing) -> None:
    for path in sorted((parquet_testing / "data").glob("*.parquet")):
        if path.name == "large_string_map.brotli.parquet":
            continue  # two strings of a gigabyte each
        try:
            expected = numparq.read_parquet(path)
        except numparq.ParquetError:
            continue
        frame = numparq.read_parquet(path, on_error="skip")
        assert frame.attrs.pop("numparq.lost") == [], path.name
        pd.testing.assert_frame_equal(frame, expected, obj=path.name)


# --- pages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("leaf", LEAVES)
def test_a_damaged_page_costs_its_rows(leaf: str, index: bool, version: str) -> None:
    data = own(data_page_version=version, write_page_index=index)
    repeated = "." in leaf and not leaf.startswith("struct")
    page = data_pages(data, 1, leaf)[2]
    damaged = in_body(data, page)
    unknown = repeated and not index and version == "1.0"  # how many rows the page had
    found = check(damaged, data, [(1, leaf, (599, 800) if unknown else (600, 700))])
    assert found[0].reason == CRC


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("leaf", LEAVES)
def test_a_damaged_page_header_costs_the_rest_of_the_chunk_or_its_page(leaf: str, index: bool) -> None:
    data = own(write_page_index=index)
    damaged = in_header(data, data_pages(data, 1, leaf)[1])
    repeated = "." in leaf and not leaf.startswith("struct")
    lost = (500, 600) if index else (499, 800) if repeated else (500, 800)
    found = check(damaged, data, [(1, leaf, lost)])
    assert "wrong type" in found[0].reason


@pytest.mark.parametrize("place", [1, 3])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("leaf", LEAVES)
def test_a_page_of_no_known_type_costs_the_rest_of_the_chunk_where_the_counts_do_not_add_up(
    leaf: str, version: str, place: int
) -> None:
    """Readers pass over pages of types that they do not know; here that would move the rows of all pages behind."""
    data = own(write_page_index=False, data_page_version=version)
    pages = data_pages(data, 1, leaf)
    damaged = with_header(data, pages[place], lambda header: setattr(header, "type", 9))
    repeated = "." in leaf and not leaf.startswith("struct") and version == "1.0"
    lost = (GROUP + place * PAGE - repeated, 2 * GROUP)
    for bytes_of_file in (damaged, in_header(damaged, pages[-1])):
        frame, found = skip(bytes_of_file)
        assert [item[1:4] for item in found] == [(1, leaf, lost)]
        pd.testing.assert_frame_equal(frame, numparq.read_parquet(data).drop(index=range(*lost)))
        frame, found = skip(bytes_of_file, row_range=(710, 790), columns=[leaf.split(".")[0]])
        assert [item[1:4] for item in found] == [(1, leaf, (710, 790))]
        assert not frame.size


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_other_backends(backend: str) -> None:
    data = own()
    for leaf in LEAVES:
        check(in_body(data, data_pages(data, 2, leaf)[0]), data, [(2, leaf, (800, 900))], dtype_backend=backend)


def test_damage_in_several_places() -> None:
    data = damaged = own()
    for row_group, leaf, page in ((0, "int", 1), (0, "int", 2), (0, "text", 3), (2, "list.list.element", 0)):
        damaged = in_body(damaged, data_pages(data, row_group, leaf)[page])
    damaged = in_header(damaged, data_pages(data, 2, "flag")[3])
    check(
        damaged,
        data,
        [
            (0, "int", (100, 300)),
            (0, "text", (300, 400)),
            (2, "flag", (1100, 1200)),
            (2, "list.list.element", (800, 900)),
        ],
    )


def test_all_pages_of_a_chunk_but_one() -> None:
    data = damaged = own()
    for page in data_pages(data, 1, "struct.y")[:3]:
        damaged = in_body(damaged, page)
    check(damaged, data, [(1, "struct.y", (400, 700))])


@pytest.mark.parametrize("kind", ["int", "text", "few", "list.list.element", "struct.y"])
def test_rows_that_are_asked_for(kind: str) -> None:
    data = own()
    damaged = in_body(data, data_pages(data, 1, kind)[2])
    check(damaged, data, [(1, kind, (650, 700))], row_range=(650, 1000))
    check(damaged, data, [(1, kind, (600, 620))], row_range=(130, 620))
    check(damaged, data, [(1, kind, (600, 700))], row_groups=[2, 1, 0])
    name = kind.split(".")[0]
    frame, lost = skip(damaged, row_range=(0, 600))
    if name in ("list", "struct"):  # the levels of a row group are read as a whole
        assert lost == []
    else:
        assert (len(frame), lost) == (600, [])
    assert len(frame) == 600


def test_columns_that_are_not_asked_for_cost_nothing() -> None:
    data = own()
    damaged = in_body(data, data_pages(data, 1, "int")[2])
    frame, lost = skip(damaged, columns=["text", "list"])
    assert (len(frame), lost) == (ROWS, [])


def test_without_checksums_what_can_be_told_is_told() -> None:
    frame = pd.DataFrame({"a": [f"text {n % 50}" for n in range(1000)], "b": np.arange(1000)})
    for compression in ("snappy", "gzip", "zstd", "brotli", "lz4"):
        data = numparq.to_parquet(
            frame, compression=compression, write_page_checksum=False, use_dictionary=False, max_rows_per_page=250
        )
        page = data_pages(data, 0, "a")[1]
        damaged = data[: page.body] + bytes(page.end - page.body) + data[page.end :]
        check(damaged, data, [(0, "a", (250, 500))])


def test_text_that_is_none_costs_its_page() -> None:
    frame = pd.DataFrame({"a": [f"text {n}" for n in range(1000)]})
    data = numparq.to_parquet(
        frame, compression=None, write_page_checksum=False, use_dictionary=False, max_rows_per_page=250
    )
    page = data_pages(data, 0, "a")[1]
    found = check(flipped(data, data.index(b"text", page.body), by=0x80), data, [(0, "a", (250, 500))])
    assert "UTF-8" in found[0].reason


def test_checksums_are_not_looked_at_when_not_wanted() -> None:
    frame = pd.DataFrame({"a": np.arange(1000)})
    data = numparq.to_parquet(frame, compression=None, use_dictionary=False, column_encoding="PLAIN")
    damaged = in_body(data, data_pages(data, 0, "a")[0])
    found, lost = skip(damaged, verify_crc=False)
    assert lost == []
    assert len(found) == 1000


# --- dictionaries -----------------------------------------------------------------------------------------------------


def mixed(**options) -> tuple[bytes, pd.DataFrame]:
    """A file of pyarrow's in which a column begins with a dictionary and goes on without."""
    rows = 4000
    frame = pd.DataFrame({"n": np.arange(rows), "t": [f"{'a' if n < 1000 else n} text" for n in range(rows)]})
    out = io.BytesIO()
    pq.write_table(
        pa.Table.from_pandas(frame),
        out,
        **{
            "dictionary_pagesize_limit": 4000,
            "write_batch_size": 100,
            "data_page_size": 1000,
            "write_page_checksum": True,
            "write_page_index": True,
            **options,
        },
    )
    return out.getvalue(), frame


@pytest.mark.parametrize("categories", [None, ["t"]])
@pytest.mark.parametrize("column", ["n", "t"])
def test_pages_without_a_dictionary_survive_the_loss_of_it(column: str, categories: list | None) -> None:
    data, _ = mixed()
    pages = data_pages(data, 0, column)
    coded = [page for page in pages if page.header.data_page_header.encoding == 8]
    assert 0 < len(coded) < len(pages), "the file is not mixed"
    first_plain = coded[-1].first_value + coded[-1].num_values
    damaged = in_body(data, dictionary_page(data, 0, column))
    if categories is None:
        check(damaged, data, [(0, column, (0, first_plain))])
    else:
        frame, lost = skip(damaged, categories=categories)
        assert [item.rows for item in lost] == [(0, first_plain)]
        expected = numparq.read_parquet(data)["t"][first_plain:]
        assert frame["t"].astype("str").tolist() == expected.tolist()


@pytest.mark.parametrize("leaf", ["few", "kind", "map.key_value.key"])
@pytest.mark.parametrize("damage", [in_body, in_header])
def test_a_damaged_dictionary_costs_the_chunk(leaf: str, damage) -> None:
    data = own(use_dictionary=True)
    damaged = damage(data, dictionary_page(data, 1, leaf))
    if leaf != "kind":
        check(damaged, data, [(1, leaf, (400, 800))])
    else:
        frame, lost = skip(damaged)
        assert [item[1:4] for item in lost] == [(1, leaf, (400, 800))]
        assert frame["kind"].tolist() == [f"kind {n % 9}" for n in range(ROWS) if not 400 <= n < 800]


# --- columns ----------------------------------------------------------------------------------------------------------


def test_a_column_of_which_nothing_is_left_is_left_out() -> None:
    data = damaged = own()
    for row_group in range(3):
        damaged = in_body(damaged, dictionary_page(data, row_group, "few"))
    lost = [(group, "few", (group * 400, group * 400 + 400)) for group in range(3)]
    check(damaged, data, lost, ["few"])


def test_of_a_nested_column_all_leaves_count_together() -> None:
    data = damaged = own(write_page_index=False)
    for row_group, leaf in ((0, "struct.x"), (1, "struct.y"), (2, "struct.x")):
        damaged = in_header(damaged, pages_of(data, row_group, leaf)[0])
    lost = [(0, "struct.x", (0, 400)), (1, "struct.y", (400, 800)), (2, "struct.x", (800, 1200))]
    check(damaged, data, lost, ["struct"])
    frame, lost = skip(damaged, columns=["struct.y", "int"])
    assert (len(frame), [item[1:4] for item in lost]) == (800, [(1, "struct.y", (400, 800))])


def test_one_row_group_and_one_damage() -> None:
    data = own(row_group_size=ROWS, write_page_index=False)
    check(in_header(data, pages_of(data, 0, "time")[0]), data, [(0, "time", (0, ROWS))], ["time"])


def test_columns_that_would_leave_no_row_are_left_out_the_least_damaged_ones_last() -> None:
    data = damaged = own(write_page_index=False)
    for row_group, leaf, page in ((0, "int", 0), (1, "int", 2), (1, "flag", 0), (2, "text", 1), (2, "day", 0)):
        damaged = in_header(damaged, data_pages(data, row_group, leaf)[page])
    lost = [
        (0, "int", (0, 400)),
        (1, "int", (600, 800)),
        (1, "flag", (400, 800)),
        (2, "text", (900, 1200)),
        (2, "day", (800, 1200)),
    ]
    check(damaged, data, lost, ["int"])


def test_all_columns_gone() -> None:
    frame = pd.DataFrame({"a": np.arange(10)})
    data = numparq.to_parquet(frame, write_page_index=False)
    found, lost = skip(in_header(data, pages_of(data, 0, "a")[0]))
    assert found.shape == (10, 0)
    assert [item[1:4] for item in lost] == [(0, "a", (0, 10))]


def set_in_chunk(row_group: int, column: int, **fields):
    def edit(footer) -> None:
        for name, value in fields.items():
            setattr(footer.row_groups[row_group].columns[column].meta_data, name, value)

    return edit


WRONG_CHUNKS = {
    "far away": {"data_page_offset": 1 << 40, "dictionary_page_offset": None},
    "negative": {"data_page_offset": -5, "dictionary_page_offset": None},
    "size": {"total_compressed_size": 1 << 50},
    "type": {"type": 6},
    "values": {"num_values": 399},
    "many values": {"num_values": 1 << 60},
}


@pytest.mark.parametrize("lie", WRONG_CHUNKS)
@pytest.mark.parametrize("column", [0, 5, 11])
def test_wrong_metadata_of_a_chunk_cost_that_chunk(lie: str, column: int) -> None:
    data = own()
    leaf = LEAVES[column]
    if (lie, leaf) in (("type", "text"), ("many values", "list.list.element")):
        return
    damaged = with_footer(data, set_in_chunk(1, column, **WRONG_CHUNKS[lie]))
    check(damaged, data, [(1, leaf, (400, 800))])


def test_a_wrong_codec_costs_that_chunk() -> None:
    data = own()
    check(with_footer(data, set_in_chunk(1, 0, codec=2)), data, [(1, "int", (400, 800))])
    found = check(with_footer(data, set_in_chunk(1, 0, codec=77)), data, [(1, "int", (400, 800))])
    assert "codec" in found[0].reason


def test_an_unknown_codec_everywhere_costs_the_column() -> None:
    data = own()

    def edit(footer) -> None:
        for group in footer.row_groups:
            group.columns[12].meta_data.codec = 77

    lost = [(group, "struct.x", (group * 400, group * 400 + 400)) for group in range(3)]
    check(with_footer(data, edit), data, lost, ["struct"])


def test_a_chunk_without_metadata() -> None:
    data = own()

    def edit(footer) -> None:
        footer.row_groups[2].columns[3].meta_data = None

    found = check(with_footer(data, edit), data, [(2, "whole", (800, 1200))])
    assert "no metadata" in found[0].reason


def test_chunk_metadata_that_cannot_be_read() -> None:
    data = own()
    footer = footer_start(data)
    name = data.index(b"int", footer + data[footer:].index(b"map"))  # path_in_schema of the first chunk
    damaged = flipped(data, name - 2, by=0x0F)  # the list's type
    try:
        numparq.ParquetFile(damaged)
    except InvalidFileError:
        pytest.skip("this flip costs the footer")
    frame, lost = skip(damaged)
    assert {item.column for item in lost} <= {"int"}
    assert len(frame) in (ROWS, ROWS - GROUP)


def test_a_type_that_breaks_the_specification_costs_its_column() -> None:
    data = own()

    def edit(footer) -> None:
        element = next(element for element in footer.schema if element.name == b"price")
        element.precision = 1000
        if element.logicalType is not None:
            element.logicalType.DECIMAL.precision = 1000

    damaged = with_footer(data, edit)
    with pytest.raises(numparq.ParquetError):
        numparq.read_parquet(damaged)
    frame, lost = skip(damaged)
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(data).drop(columns="price"))
    assert [item[:4] for item in lost] == [("<bytes>", None, "price", None)]


def test_a_damaged_footer_still_raises_and_names_the_way_out() -> None:
    data = own()
    for damaged in (data[:-20], flipped(data, footer_start(data) + 1), data[:4] + data[-8:]):
        with pytest.raises(InvalidFileError, match="numparq salvage"):
            numparq.read_parquet(damaged, on_error="skip")
        with pytest.raises(InvalidFileError) as caught:
            numparq.read_parquet(damaged)
        assert "salvage" not in str(caught.value)


def test_damaged_indexes_and_filters_cost_nothing() -> None:
    data = own(bloom_filter_options={"int": True, "text": True})
    footer = footer_of(data)
    damaged = bytearray(data)
    for group in footer.row_groups:
        for chunk in group.columns:
            facts = chunk.meta_data
            for start, length in (
                (chunk.offset_index_offset, chunk.offset_index_length),
                (chunk.column_index_offset, chunk.column_index_length),
                (facts.bloom_filter_offset, facts.bloom_filter_length),
            ):
                if start:
                    damaged[start : start + length] = b"\xff" * length
    frame, lost = skip(bytes(damaged))
    assert lost == []
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(data))
    # Without its help, a damaged header costs the rest of its chunk.
    page = data_pages(data, 1, "int")[1]
    check(in_header(bytes(damaged), page), data, [(1, "int", (500, 800))])


def test_an_offset_index_that_cannot_be_right_is_not_followed() -> None:
    data = own()
    place = footer_of(data).row_groups[1].columns[0].offset_index_offset
    damaged = in_header(flipped(data, place + 3, place + 4, by=0x11), data_pages(data, 1, "int")[1])
    frame, lost = skip(damaged)
    expected = numparq.read_parquet(data)
    assert lost
    assert {item[1:3] for item in lost} == {(1, "int")}
    pd.testing.assert_frame_equal(frame, expected.loc[frame.index])


# --- headers, which no checksum covers --------------------------------------------------------------------------------


def test_a_wrong_count_costs_its_page_by_the_index_and_else_the_chunk() -> None:
    for index, lost in ((True, (500, 600)), (False, (400, 800))):
        data = own(write_page_index=index)
        page = data_pages(data, 1, "int")[1]
        for wrong in (99, 101):

            def edit(header, wrong=wrong) -> None:
                header.data_page_header.num_values = wrong

            frame, found = skip(with_header(data, page, edit))
            assert [item.column for item in found] == ["int"]
            first, stop = found[0].rows
            assert first <= 500
            assert stop == 800 or index
            assert first >= lost[0]
            pd.testing.assert_frame_equal(frame, numparq.read_parquet(data).drop(index=range(first, stop)))


def test_pages_of_lists_whose_rows_no_header_counts() -> None:
    """Writers in Go leave num_rows of version 2 at 0: the rows are known by the levels, up to the damage."""
    leaf = "list.list.element"
    data = own(write_page_index=False, data_page_version="2.0", max_rows_per_page=50)
    for page in data_pages(data, 1, leaf):
        data = with_header(data, page, lambda header: setattr(header.data_page_header_v2, "num_rows", 0))
    assert len(numparq.read_parquet(data)) == ROWS
    check(in_body(data, data_pages(data, 1, leaf)[3]), data, [(1, leaf, (549, 800))])


def test_an_encoding_that_the_chunk_does_not_have() -> None:
    frame = pd.DataFrame({"a": np.arange(1000.0)})
    data = numparq.to_parquet(frame, use_dictionary=False, max_rows_per_page=250)

    def edit(header) -> None:
        header.data_page_header.encoding = 9  # BYTE_STREAM_SPLIT has values of just as many bytes

    damaged = with_header(data, data_pages(data, 0, "a")[2], edit)
    found, lost = skip(damaged)
    assert [item[1:4] for item in lost] == [(0, "a", (500, 750))]
    pd.testing.assert_frame_equal(found, frame.drop(index=range(500, 750)))


# --- the index of the frame -------------------------------------------------------------------------------------------


INDEXES = {
    "default": pd.RangeIndex(1000),
    "range": pd.RangeIndex(5, 5 + 3 * 1000, 3, name="r"),
    "labels": pd.Index([f"l{n}" for n in range(1000)], name="l"),
    "levels": pd.MultiIndex.from_arrays([np.arange(1000) // 10, np.arange(1000) % 10], names=["a", None]),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_rows_keep_their_labels(kind: str) -> None:
    frame = pd.DataFrame({"v": np.arange(1000), "w": np.arange(1000.0)}, index=INDEXES[kind])
    data = numparq.to_parquet(frame, max_rows_per_page=100)
    damaged = in_body(data, data_pages(data, 0, "w")[4])
    check(damaged, data, [(0, "w", (400, 500))])
    check(damaged, data, [(0, "w", (450, 500))], row_range=(450, 900))


def test_rows_of_other_writers_are_numbered_as_if_none_were_lost() -> None:
    out = io.BytesIO()
    pq.write_table(
        pa.table({"a": pa.array(range(1000), pa.int64())}),
        out,
        data_page_size=800,
        write_batch_size=100,
        use_dictionary=False,
        write_page_checksum=True,
    )
    data = out.getvalue()
    pages = data_pages(data, 0, "a")
    damaged = in_body(data, pages[2])
    first, stop = pages[2].first_value, pages[3].first_value
    found, lost = skip(damaged, include=["row_number", "row_group", "file"])
    assert lost == [Lost("<bytes>", 0, "a", (first, stop), CRC)]
    assert found["row_number"].tolist() == found.index.tolist() == found["a"].tolist()
    assert len(found) == 1000 - (stop - first)


def test_an_index_column_that_is_lost_is_left_out() -> None:
    frame = pd.DataFrame({"v": np.arange(1000)}, index=pd.Index(np.arange(1000.0), name="i"))
    data = numparq.to_parquet(frame, write_page_index=False)
    found, lost = skip(in_header(data, pages_of(data, 0, "i")[0]))
    assert [item.column for item in lost] == ["i"]
    pd.testing.assert_frame_equal(found, frame.reset_index(drop=True))


# --- files of pyarrow -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_files_of_pyarrow(version: str, index: bool, codec: str) -> None:
    frame = table(2000)
    arrow = pa.Table.from_pandas(frame.drop(columns="map"))
    out = io.BytesIO()
    pq.write_table(
        arrow,
        out,
        row_group_size=1000,
        data_page_size=500,
        write_batch_size=50,
        compression=codec,
        data_page_version=version,
        write_page_checksum=True,
        write_page_index=index,
    )
    data = out.getvalue()
    expected = numparq.read_parquet(data)
    for leaf in ("int", "text", "few", "list.list.element", "struct.y"):
        pages = data_pages(data, 1, leaf)
        damaged = in_body(data, pages[len(pages) // 2])
        found, lost = skip(damaged)
        assert {item[1:3] for item in lost} == {(1, leaf)}
        assert [item.reason for item in lost] == [CRC]
        ((first, stop),) = (item.rows for item in lost)
        assert 1000 <= first < stop <= 2000
        if "list" not in leaf:
            page = pages[len(pages) // 2]
            assert (first, stop) == (1000 + page.first_value, 1000 + page.first_value + page.num_values)
        elif index or version == "2.0":
            assert stop - first < 300
        pd.testing.assert_frame_equal(found, expected.drop(index=range(first, stop)))


def test_rows_that_go_on_from_page_to_page() -> None:
    """Without an offset index, pages of version 1 may end within a row: the row before a damaged page goes, too."""
    lists = [list(range(n % 97)) for n in range(400)]
    out = io.BytesIO()
    pq.write_table(
        pa.table({"l": lists, "n": list(range(400))}),
        out,
        data_page_size=300,
        write_batch_size=64,
        use_dictionary=False,
        write_page_checksum=True,
    )
    data = out.getvalue()
    pages = data_pages(data, 0, "l.list.element")
    starts = np.cumsum([0, *(max(len(item), 1) for item in lists)])
    for page in pages[1::7]:
        found, lost = skip(in_body(data, page))
        whole = int(np.searchsorted(starts, page.first_value, side="right")) - 1  # rows that end before the page
        assert whole - 1 <= lost[0].rows[0] <= whole
        assert lost[0].rows[1] == 400
        assert found["n"].tolist() == list(range(lost[0].rows[0]))
        assert [list(item) for item in found["l"]] == lists[: lost[0].rows[0]]


def test_exploded_lists() -> None:
    data = own()
    for leaf in ("list.list.element", "int"):
        damaged = in_body(data, data_pages(data, 1, leaf)[2])
        frame, lost = skip(damaged, columns=["int"], explode="list.list.element")
        assert [item[1:4] for item in lost] == [(1, leaf, (600, 700))]
        expected = numparq.read_parquet(data, columns=["int"], explode="list.list.element")
        gone = expected["int"].isin([number * 1_000_003 for number in range(600, 700)])
        pd.testing.assert_frame_equal(frame, expected[~gone].reset_index(drop=True))
    everything = data
    for row_group in range(3):
        everything = in_header(everything, pages_of(everything, row_group, "list.list.element")[0])
    frame, lost = skip(everything, columns=["int"], explode="list.list.element")
    assert len(frame) < 1200
    assert len(lost) == 3


# --- any damage at all ------------------------------------------------------------------------------------------------

SMALL = {
    "numbers": lambda n: {
        "a": n * 1_000_003,
        "f": np.sin(n),
        "g": pd.Series(n * 1.0).where(n % 3 != 0),
        "b": n % 2 == 0,
    },
    "texts": lambda n: {
        "t": [f"text {i * 7919 % 1000}" for i in n],
        "few": [f"w{i % 7}" for i in n],
        "gaps": pd.Series([f"w{i % 50}" for i in n]).where(n % 4 != 0),
    },
    "nested": lambda n: {
        "l": [None if i % 7 == 0 else list(range(i, i + i % 4)) for i in n],
        "s": [None if i % 11 == 0 else {"x": int(i), "y": f"y{i % 5}"} for i in n],
    },
}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("kind", SMALL)
def test_a_flipped_byte_never_gives_a_wrong_value(kind: str, index: bool, version: str) -> None:
    """The footer excepted: no checksum of the format covers it."""
    data = numparq.to_parquet(
        pd.DataFrame(SMALL[kind](np.arange(120))),
        max_rows_per_page=40,
        row_group_size=60,
        data_page_version=version,
        write_page_index=index,
        compression="snappy" if index else None,
    )
    expected = numparq.read_parquet(data)
    rng = np.random.default_rng([len(kind), index, int(version[0])])
    noticed = 0
    for _ in range(40):
        position, by = int(rng.integers(4, footer_start(data))), int(rng.integers(1, 256))
        frame, lost = skip(flipped(data, position, by=by), threads=1)
        noticed += bool(lost)
        if len(frame):
            where = f"byte {position} by {by}"
            pd.testing.assert_frame_equal(frame, expected.loc[frame.index, frame.columns], obj=where)
        whole = np.ones(len(expected), bool)
        for item in lost:
            if item.column.split(".")[0] in frame.columns:
                whole[slice(*item.rows)] = False
        assert frame.index.tolist() == np.flatnonzero(whole).tolist()
    assert noticed > 10


@pytest.mark.parametrize("kind", SMALL)
def test_damage_without_checksums_is_skipped_or_not_noticed_but_no_error(kind: str) -> None:
    data = numparq.to_parquet(
        pd.DataFrame(SMALL[kind](np.arange(120))),
        max_rows_per_page=40,
        row_group_size=60,
        write_page_checksum=False,
        compression=None,
    )
    rng = np.random.default_rng(len(kind))
    for _ in range(80):
        positions = rng.integers(4, footer_start(data), 3).tolist()
        frame, lost = skip(flipped(data, *positions, by=int(rng.integers(1, 256))), threads=1)
        assert len(frame) <= 120
        assert all(item.reason for item in lost)


# --- other errors -----------------------------------------------------------------------------------------------------


def test_io_errors_are_raised(monkeypatch) -> None:
    monkeypatch.setattr("numparq.format.footer.tail.TAIL_BYTES", 100)  # the end of a file stays in memory

    class Broken(io.BytesIO):
        broken = False

        def readinto(self, out) -> int:
            if self.broken:
                raise OSError("the disk is gone")
            return super().readinto(out)

    frame = pd.DataFrame({"a": np.arange(50_000)})  # more than what is kept of a file's end
    file = numparq.ParquetFile(source := Broken(own(frame=frame, compression=None, use_dictionary=False)))
    source.broken = True
    with pytest.raises(OSError, match="the disk is gone"):
        file.read(on_error="skip")


def test_what_takes_too_much_memory_is_raised(monkeypatch) -> None:
    from numparq.column.read import decode, dictionary

    def refuse(*arguments):
        raise LimitError("no memory")

    monkeypatch.setattr(decode, "allocate", refuse)
    monkeypatch.setattr(dictionary, "allocate", refuse)
    with pytest.raises(LimitError):
        numparq.read_parquet(own(), columns=["text"], on_error="skip")


def test_columns_that_the_file_does_not_have_are_no_loss() -> None:
    with pytest.raises(numparq.errors.SchemaError):
        numparq.read_parquet(own(), columns=["nothing"], on_error="skip")


def test_bad_data_of_the_conformance_suite(parquet_testing) -> None:
    found = {}
    for path in sorted((parquet_testing / "bad_data").glob("*.parquet")):
        frame = numparq.read_parquet(path, on_error="skip")
        assert {item.file for item in frame.attrs["numparq.lost"]} <= {str(path)}
        found[path.stem] = frame.shape, [item[1:4] for item in frame.attrs["numparq.lost"]]
    assert found == {
        "ARROW-GH-41321": (
            (3, 78),
            [
                (0, "int64", (0, 3)),
                (0, "large_binary", (0, 3)),
                (1, "fixed_size_list_float64.list.item", (3, 5)),
                (1, "map_float32.key_value.value", (3, 5)),
            ],
        ),
        "ARROW-GH-43605": ((21186, 1), []),  # its writer left a width of 0 where the dictionary has one entry
        "ARROW-GH-47662": ((1000, 0), [(0, "flba_field", (0, 1000))]),
        "ARROW-RS-GH-6229-DICTHEADER": (
            (25, 0),
            [(0, name, (0, 25)) for name in ("nation_key", "name", "region_key", "comment_col")],
        ),
        "PARQUET-1481": ((34, 0), [(None, "Handle", None)]),
    }


# --- the list of losses -----------------------------------------------------------------------------------------------


def test_ranges_that_follow_each_other_for_one_reason_are_one() -> None:
    bad, worse = InvalidFileError("bad"), InvalidFileError("worse")
    losses = Losses("f", [0, 100])
    losses.add(1, 0, [LostRows(30, 40, bad), LostRows(0, 10, bad), LostRows(10, 20, bad), LostRows(20, 30, worse)])
    losses.add(0, 1, [LostRows(5, 5, bad)])
    losses.add(1, 0, [LostRows(30, 40, bad)])
    assert losses.listed(["a", "b"]) == [
        Lost("f", 1, "a", (100, 120), "bad"),
        Lost("f", 1, "a", (120, 130), "worse"),
        Lost("f", 1, "a", (130, 140), "bad"),
    ]
    losses.forget(1, 0)
    assert not losses
