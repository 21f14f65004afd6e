"""Page headers as page indexes: equal to those that the writer makes, and read only where that may pay."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.format.open_file import OpenFile
from numparq.format.page_index import PAGE_ROW, PAGE_SIZE
from numparq.plan.chunk_pages import ChunkPages
from numparq.prune import index_reader, page_headers
from numparq.prune.index_reader import COLUMN_INDEX, OFFSET_INDEX, IndexLocations, PageIndexReader
from support.io.recorded_reads import count_io

ROWS = 30_000
NUMBERS = np.arange(ROWS)
TABLE = pa.table(
    {
        "key": NUMBERS * 3,
        "text": [f"name {number:06}" for number in NUMBERS],
        "price": [decimal.Decimal(int(number)).scaleb(-2) for number in NUMBERS],
        "some": pa.array([None if number // 5000 == 2 else int(number) for number in NUMBERS], pa.int32()),
        "random": np.random.default_rng(1).random(ROWS),
        "few": [f"word {number // 1000}" for number in NUMBERS],
        "inner": [{"a": int(number)} if number % 3 else None for number in NUMBERS],
    }
)


def write(path, **options) -> None:
    chosen = {"data_page_size": 8192, "row_group_size": 15_000, "write_batch_size": 500, "use_dictionary": ["few"]}
    pq.write_table(TABLE, path, **(chosen | options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("headers")
    for version in ("1.0", "2.0"):
        for has_index in (False, True):
            write(made / f"{version} {has_index}", data_page_version=version, write_page_index=has_index)
    return made


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(index_reader, "MIN_CHUNK_BYTES", 16 << 10)


def bounds_of(index, page) -> tuple[bytes, ...]:
    places = [*index.lows[page].tolist(), *index.highs[page].tolist()]
    found = zip(places[::2], places[1::2], strict=True)
    return tuple(b"" if start < 0 else index.data[start : start + length].tobytes() for start, length in found)


def whole_chunk(file, group, leaf) -> ChunkPages:
    chunk = file.metadata.row_groups[group].columns[leaf.index].meta_data
    start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
    return ChunkPages.unindexed(start, start + chunk.total_compressed_size, ROWS // 2)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_headers_say_what_the_page_index_says(folder, monkeypatch, version):
    monkeypatch.setattr(page_headers, "_MIN_PAGE_BYTES", 0)
    walked, indexed = OpenFile(folder / f"{version} False"), OpenFile(folder / f"{version} True")
    compared = 0
    for leaf in map(walked.schema.leaf, range(walked.footer.num_leaves)):
        readers = [PageIndexReader(file, [leaf], IndexLocations.for_file(file)) for file in (walked, indexed)]
        for group in range(walked.num_row_groups):
            readers[1].load({OFFSET_INDEX: [(group, leaf.index)], COLUMN_INDEX: [(group, leaf.index)]})
            offsets, columns = page_headers.walk_page_headers(
                walked.reader, whole_chunk(walked, group, leaf), group, leaf
            )
            expected = readers[1].chunk_pages(whole_chunk(indexed, group, leaf), group, leaf.index)
            # pyarrow writes statistics to headers or to the index, so headers differ in length
            assert offsets.locations[:, PAGE_ROW].tolist() == expected.first_rows.tolist()
            assert (offsets.locations[:, PAGE_SIZE] >= expected.sizes).all()
            assert offsets.needs_dictionary.all() == offsets.needs_dictionary.any() == (leaf.name == "few")
            index = readers[1].column_index(group, leaf.index)
            assert columns.null_counts.tolist() == index.null_counts.tolist()
            for page in np.flatnonzero(~index.null_pages):
                assert bounds_of(columns, page) == bounds_of(index, page)
                compared += 1
    assert compared > 100


FILTERS = [
    col("key") == 3 * 4321,
    col("key").isin([3 * 4321, 3 * 20_000, 5]),
    (col("key") >= 3 * 14_990) & (col("key") < 3 * 15_010),
    col("text") == "name 012345",
    col("text").startswith("name 0123"),
    col("price") == decimal.Decimal("217.31"),
    (col("some") > 4990) & (col("some") < 5010),
    col("some").is_null() & (col("key") < 3 * 10_005),
    col("few") == "word 7",
    (col("inner.a") > 100) & (col("inner.a") < 110),
    (col("key") == 33) | (col("text") == "name 029999"),
]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("number", range(len(FILTERS)))
def test_filters_read_few_pages_and_equal_the_whole_read(folder, monkeypatch, version, number):
    def read():
        return count_io(folder / f"{version} False", lambda file: file.read(["price", "random"], FILTERS[number]))

    found, num_bytes, _ = read()
    with monkeypatch.context() as patch:
        patch.setattr(index_reader, "MIN_CHUNK_BYTES", 1 << 40)
        expected, all_bytes, _ = read()
    pd.testing.assert_frame_equal(found, expected)
    assert len(found)
    assert num_bytes < all_bytes * 0.8


def test_plan_names_the_page_headers(folder):
    plan = numparq.ParquetFile(folder / "1.0 False").plan(["key", "text"], FILTERS[0])
    assert "page headers" in plan.explain()
    assert [chunk.num_pages for chunk in plan.left[0].chunks] > [5, 5]
    assert plan.num_rows < 2000


def test_small_pages_and_chunks_are_not_walked(tmp_path, monkeypatch):
    write(tmp_path / "small pages", data_page_size=500, write_batch_size=50)
    write(tmp_path / "small chunks", row_group_size=2000, data_page_size=8 << 10)
    calls = []
    original = index_reader.walk_page_headers
    monkeypatch.setattr(
        index_reader, "walk_page_headers", lambda *where: calls.append(found := original(*where)) or found
    )
    for name, expected in (("small chunks", 0), ("small pages", 1)):
        frame = numparq.read_parquet(tmp_path / name, ["key"], filters=col("key") == 33)
        assert frame["key"].tolist() == [33]
        assert len(calls) == expected
    assert calls == [None]


def damaged(data: bytes, position: int, change: int) -> bytes:
    return data[:position] + bytes([data[position] ^ change]) + data[position + 1 :]


@pytest.mark.parametrize("change", [0x01, 0x10, 0x80, 0xFF])
def test_damaged_headers_are_errors_or_do_not_matter(folder, change):
    """No byte of the first headers makes a read crash, or return other rows than it returns of the whole file."""
    data = (folder / "1.0 False").read_bytes()
    file = OpenFile(data)
    chunk = file.metadata.row_groups[0].columns[0].meta_data
    filters = FILTERS[0]
    expected = numparq.read_parquet(data, ["key", "text"], filters=filters)
    errors = []
    for position in range(chunk.data_page_offset, chunk.data_page_offset + 25):
        try:
            found = numparq.read_parquet(damaged(data, position, change), ["key", "text"], filters=filters)
        except numparq.ParquetError as error:
            errors.append((error.where["row_group"], error.where["column"]))
        else:
            pd.testing.assert_frame_equal(found, expected)
    assert set(errors) == {(0, "key")}


@pytest.mark.parametrize("kind", ["index", "headers"])
def test_dictionary_page_is_read_only_for_pages_that_need_it(tmp_path, kind):
    """A chunk whose dictionary has filled up: the first pages hold indices, the others values."""
    path, size = tmp_path / kind, 250_000
    options = {"dictionary_pagesize_limit": 300 << 10, "write_page_index": kind == "index", "compression": "none"}
    write(path, use_dictionary=["text"], row_group_size=ROWS, **options)

    def read(number):
        return count_io(path, lambda file: file.read(["text"], col("key") == 3 * number))

    for number, needs_dictionary in ((50, True), (25_000, False), (51, True), (29_999, False)):
        frame, num_bytes, _ = read(number)
        assert frame["text"].tolist() == [f"name {number:06}"]
        assert (num_bytes > size) == needs_dictionary, num_bytes
    rows = [50, 25_000, 29_999]
    frame, num_bytes, _ = count_io(path, lambda file: file.read(["text"], col("key").isin([3 * row for row in rows])))
    assert frame["text"].tolist() == [f"name {row:06}" for row in rows]
    assert num_bytes > size
