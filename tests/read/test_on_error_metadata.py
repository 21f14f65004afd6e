"""``on_error="skip"``: damage in chunk metadata, footers and indexes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import InvalidFileError
from support.damaged_reads import GROUP, LEAVES, ROWS, assert_only_lost, read_skipping_damage, written_file
from support.files.page_damage import (
    damage_body,
    damage_header,
    data_pages,
    edit_footer,
    edit_header,
    flip_bytes,
    footer_of,
    footer_start,
)


def set_in_chunk(row_group: int, column: int, **fields):
    def edit(footer) -> None:
        for name, value in fields.items():
            setattr(footer.row_groups[row_group].columns[column].meta_data, name, value)

    return edit


WRONG_CHUNKS = {
    "far away": {"data_page_offset": 1 << 40, "dictionary_page_offset": None},
    "negative": {"data_page_offset": -5, "dictionary_page_offset": None},
    "size": {"total_compressed_size": -1},
    "type": {"type": 6},
    "values": {"num_values": 399},
    "many values": {"num_values": 1 << 60},
}


@pytest.mark.parametrize("lie", WRONG_CHUNKS)
@pytest.mark.parametrize("column", [0, 5, 11])
def test_wrong_chunk_metadata_loses_that_chunk(lie: str, column: int) -> None:
    data = written_file()
    leaf = LEAVES[column]
    if (lie, leaf) in (("type", "text"), ("many values", "list.list.element")):
        return
    damaged = edit_footer(data, set_in_chunk(1, column, **WRONG_CHUNKS[lie]))
    assert_only_lost(damaged, data, [(1, leaf, (400, 800))])


def test_wrong_codec_loses_that_chunk() -> None:
    data = written_file()
    assert_only_lost(edit_footer(data, set_in_chunk(1, 0, codec=2)), data, [(1, "int", (400, 800))])
    losses = assert_only_lost(edit_footer(data, set_in_chunk(1, 0, codec=77)), data, [(1, "int", (400, 800))])
    assert "codec" in losses[0].reason


def test_unknown_codec_in_all_chunks_loses_the_column() -> None:
    data = written_file()

    def edit(footer) -> None:
        for group in footer.row_groups:
            group.columns[12].meta_data.codec = 77

    lost = [(group, "struct.x", (group * 400, group * 400 + 400)) for group in range(3)]
    assert_only_lost(edit_footer(data, edit), data, lost, ["struct"])


def test_chunk_without_metadata() -> None:
    data = written_file()

    def edit(footer) -> None:
        footer.row_groups[2].columns[3].meta_data = None

    losses = assert_only_lost(edit_footer(data, edit), data, [(2, "whole", (800, 1200))])
    assert "no metadata" in losses[0].reason


def test_unreadable_chunk_metadata() -> None:
    data = written_file()
    footer = footer_start(data)
    name = data.index(b"int", footer + data[footer:].index(b"map"))  # path_in_schema of the first chunk
    damaged = flip_bytes(data, name - 2, by=0x0F)  # the type of the list
    try:
        numparq.ParquetFile(damaged)
    except InvalidFileError:
        pytest.skip("this flip damages the footer")
    frame, lost = read_skipping_damage(damaged)
    assert {item.column for item in lost} <= {"int"}
    assert len(frame) in (ROWS, ROWS - GROUP)


def test_invalid_logical_type_loses_its_column() -> None:
    data = written_file()

    def edit(footer) -> None:
        element = next(element for element in footer.schema if element.name == b"price")
        element.precision = 1000
        if element.logicalType is not None:
            element.logicalType.DECIMAL.precision = 1000

    damaged = edit_footer(data, edit)
    with pytest.raises(numparq.ParquetError):
        numparq.read_parquet(damaged)
    frame, lost = read_skipping_damage(damaged)
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(data).drop(columns="price"))
    assert [item[:4] for item in lost] == [("<bytes>", None, "price", None)]


def test_damaged_footer_raises_and_suggests_salvage() -> None:
    data = written_file()
    for damaged in (data[:-20], flip_bytes(data, footer_start(data) + 1), data[:4] + data[-8:]):
        with pytest.raises(InvalidFileError, match="numparq salvage"):
            numparq.read_parquet(damaged, on_error="skip")
        with pytest.raises(InvalidFileError) as caught:
            numparq.read_parquet(damaged)
        assert "salvage" not in str(caught.value)


def test_damaged_page_indexes_and_bloom_filters_lose_nothing() -> None:
    data = written_file(bloom_filter_options={"int": True, "text": True})
    footer = footer_of(data)
    damaged = bytearray(data)
    for group in footer.row_groups:
        for chunk in group.columns:
            metadata = chunk.meta_data
            for start, length in (
                (chunk.offset_index_offset, chunk.offset_index_length),
                (chunk.column_index_offset, chunk.column_index_length),
                (metadata.bloom_filter_offset, metadata.bloom_filter_length),
            ):
                if start:
                    damaged[start : start + length] = b"\xff" * length
    frame, lost = read_skipping_damage(bytes(damaged))
    assert lost == []
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(data))
    # Without an offset index, a damaged header loses the rest of its chunk.
    page = data_pages(data, 1, "int")[1]
    assert_only_lost(damage_header(bytes(damaged), page), data, [(1, "int", (500, 800))])


def test_implausible_offset_index_is_ignored() -> None:
    data = written_file()
    position = footer_of(data).row_groups[1].columns[0].offset_index_offset
    damaged = damage_header(flip_bytes(data, position + 3, position + 4, by=0x11), data_pages(data, 1, "int")[1])
    frame, lost = read_skipping_damage(damaged)
    expected = numparq.read_parquet(data)
    assert lost
    assert {item[1:3] for item in lost} == {(1, "int")}
    pd.testing.assert_frame_equal(frame, expected.loc[frame.index])


def test_wrong_value_count_loses_its_page_or_the_chunk() -> None:
    for index, lost in ((True, (500, 600)), (False, (400, 800))):
        data = written_file(write_page_index=index)
        page = data_pages(data, 1, "int")[1]
        for wrong in (99, 101):

            def edit(header, wrong=wrong) -> None:
                header.data_page_header.num_values = wrong

            frame, losses = read_skipping_damage(edit_header(data, page, edit))
            assert [item.column for item in losses] == ["int"]
            first, stop = losses[0].rows
            assert first <= 500
            assert stop == 800 or index
            assert first >= lost[0]
            pd.testing.assert_frame_equal(frame, numparq.read_parquet(data).drop(index=range(first, stop)))


def test_list_pages_without_row_counts() -> None:
    """Go writers leave num_rows of version 2 pages at 0: rows are counted by levels, up to the damage."""
    leaf = "list.list.element"
    data = written_file(write_page_index=False, data_page_version="2.0", max_rows_per_page=50)
    for page in data_pages(data, 1, leaf):
        data = edit_header(data, page, lambda header: setattr(header.data_page_header_v2, "num_rows", 0))
    assert len(numparq.read_parquet(data)) == ROWS
    assert_only_lost(damage_body(data, data_pages(data, 1, leaf)[3]), data, [(1, leaf, (549, 800))])


def test_page_encoding_missing_from_chunk_metadata() -> None:
    frame = pd.DataFrame({"a": np.arange(1000.0)})
    data = numparq.to_parquet(frame, use_dictionary=False, max_rows_per_page=250)

    def edit(header) -> None:
        header.data_page_header.encoding = 9  # BYTE_STREAM_SPLIT values have the same size

    damaged = edit_header(data, data_pages(data, 0, "a")[2], edit)
    got, lost = read_skipping_damage(damaged)
    assert [item[1:4] for item in lost] == [(0, "a", (500, 750))]
    pd.testing.assert_frame_equal(got, frame.drop(index=range(500, 750)))
