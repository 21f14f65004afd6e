"""Dictionaries that an earlier read of a few rows left in the file's entry of the cache."""

from __future__ import annotations

import datetime
import decimal
import io
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.format.footer import tail as footer_module
from numparq.io import local_source
from support.files.page_damage import damage_body, data_pages, dictionary_page, flip_bytes
from support.io.recorded_reads import RecordingFile, file_regions

ROWS, ENTRIES = 2000, 300
NUMBERS = [(7 * row) % ENTRIES for row in range(ROWS)]
START = datetime.datetime(2020, 1, 1)
COLUMNS = {
    "i4": pa.array(NUMBERS, pa.int32()),
    "i1": pa.array([number % 100 for number in NUMBERS], pa.int8()),
    "i8": pa.array([None if number % 3 == 0 else number for number in NUMBERS], pa.int64()),
    "f8": pa.array([number / 7 for number in NUMBERS]),
    "text": pa.array([None if number % 4 == 0 else f"text {number}" for number in NUMBERS]),
    "bytes": pa.array([b"\xff%d" % number for number in NUMBERS]),
    "day": pa.array([(START + datetime.timedelta(number)).date() for number in NUMBERS]),
    "moment": pa.array([START + datetime.timedelta(0, number) for number in NUMBERS]),
    "decimal": pa.array([decimal.Decimal(number) / 100 for number in NUMBERS], pa.decimal128(30, 2)),
    "list": pa.array([[number, number + 1] for number in NUMBERS]),
}


def write(columns=COLUMNS, **options):
    sink = io.BytesIO()
    sizes = {"data_page_size": 200, "write_batch_size": 100, "row_group_size": 1000}
    pq.write_table(pa.table(columns), sink, store_schema=False, write_page_index=True, **sizes | options)
    return sink.getvalue()


def dictionary_bytes_read(source, data):
    """Return the names of the columns whose dictionary pages were read in the first row group."""
    places = {name[2]: place for name, place in file_regions(data).items() if name[:2] == ("dictionary", 0)}
    return {
        name
        for name, (start, end) in places.items()
        if any(first < end and start < last for first, last in source.ranges)
    }


@pytest.mark.parametrize("options", [{}, {"categories": ["text", "bytes"]}, {"dtype_backend": "pyarrow"}], ids=repr)
@pytest.mark.parametrize("threads", [1, 2])
def test_second_read_takes_the_dictionary_from_the_cache(monkeypatch, options, threads):
    monkeypatch.setattr(footer_module, "TAIL_BYTES", 16)
    data = write()
    expected = numparq.read_parquet(data, **options)
    source = RecordingFile(data)
    with numparq.ParquetFile(source) as file:
        for start, stop in [(500, 507), (1230, 1260), (510, 760), (501, 502), (1240, 1330), (0, ROWS)]:
            got = file.read(row_range=(start, stop), threads=threads, **options)
            wanted = expected.iloc[start:stop].reset_index(drop=True)
            if "categories" in options:
                got, wanted = (frame.astype({"text": object, "bytes": object}) for frame in (got, wanted))
            pd.testing.assert_frame_equal(got, wanted)
            if start == 500:
                assert len(dictionary_bytes_read(source, data)) == len(COLUMNS)
                source.ranges.clear()
            elif start == 501:
                assert dictionary_bytes_read(source, data) == {"list"}


@pytest.mark.parametrize("name", ["i4", "text", "moment", "decimal"])
def test_filters_use_cached_dictionaries(name):
    data = write({"key": pa.array(range(ROWS)), name: COLUMNS[name]})
    expected = numparq.read_parquet(data)
    with numparq.ParquetFile(data) as file:
        for row in (3, 1500, 4, 700, 1501):
            for value in expected[name].iloc[row : row + 1].dropna().tolist():
                got = file.read(filters=[("key", ">=", row - 2), ("key", "<=", row + 2), (name, "==", value)])
                wanted = expected.iloc[max(row - 2, 0) : row + 3]
                pd.testing.assert_frame_equal(got, wanted[wanted[name] == value].reset_index(drop=True))


@pytest.mark.parametrize("name", ["i4", "text", "f8"])
@pytest.mark.parametrize("options", [{}, {"categories": True}], ids=["values", "codes"])
def test_codes_beyond_a_cached_dictionary(name, options):
    options = {"categories": [name]} if options and name == "text" else {}
    data = write({name: COLUMNS[name].drop_null()[:1000]}, compression="none", write_batch_size=50)
    page = data_pages(data, 0, name)[-1]
    bad = bytearray(data)
    bad[page.end - 8 : page.end] = b"\xff" * 8
    with numparq.ParquetFile(bytes(bad)) as file:
        with pytest.raises(numparq.CorruptPageError) as first:
            file.read(row_range=(file.num_rows - 3, file.num_rows), **options)
        assert len(file.read(row_range=(0, 3), **options)) == 3  # keeps the dictionary
        with pytest.raises(numparq.CorruptPageError) as second:
            file.read(row_range=(file.num_rows - 3, file.num_rows), **options)
    assert str(first.value) == str(second.value)


def test_what_a_read_did_not_check_is_checked_by_the_next():
    data = write({"i4": COLUMNS["i4"]}, compression="none", write_page_checksum=True)
    bad = flip_bytes(data, dictionary_page(data, 0, "i4").end - 1, by=1)
    with numparq.ParquetFile(bad) as file:
        assert len(file.read(row_range=(3, 5), verify_crc=False)) == 2
        with pytest.raises(numparq.CorruptPageError, match="checksum"):
            file.read(row_range=(3, 5))


def test_damaged_dictionary_is_not_cached():
    data = write({"text": COLUMNS["text"]})
    bad = damage_body(data, dictionary_page(data, 0, "text"))
    with numparq.ParquetFile(bad) as file:
        for _ in range(2):
            with pytest.raises(numparq.CorruptPageError):
                file.read(row_range=(3, 5))


def test_replaced_file_has_other_dictionaries(tmp_path, monkeypatch):
    monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    path = tmp_path / "a"
    for turn in range(3):
        words = [f"{turn}{number:04}" for number in NUMBERS]
        columns = {"text": pa.array(words), "i8": pa.array(np.array(NUMBERS) + turn)}
        path.write_bytes(write(columns, write_statistics=False))
        os.utime(path, ns=(10**18, 10**18))
        for row in (5, 6, 1500):
            got = numparq.read_parquet(path, row_range=(row, row + 2))
            assert got["text"].tolist() == words[row : row + 2]
            assert got["i8"].tolist() == [number + turn for number in NUMBERS[row : row + 2]]


def test_columns_and_types_have_dictionaries_of_their_own():
    data = write({"i4": COLUMNS["i4"], "other": pa.array([number + 1000 for number in NUMBERS], pa.int32())})
    with numparq.ParquetFile(data) as file:
        for _ in range(2):
            got = file.read(row_range=(40, 43))
            assert got["i4"].tolist() == NUMBERS[40:43]
            assert got["other"].tolist() == [number + 1000 for number in NUMBERS[40:43]]
            filtered = file.read(["other"], filters=[("i4", "==", NUMBERS[1041])], row_range=(1040, 1043))
            assert filtered["other"].tolist() == [NUMBERS[1041] + 1000]


def test_stored_and_shown_values_have_dictionaries_of_their_own():
    """Integers with nulls are compared as they are stored, and shown as float64."""
    data = write({"i8": COLUMNS["i8"], "key": pa.array(range(ROWS))})
    expected = numparq.read_parquet(data)
    with numparq.ParquetFile(data) as file:
        for row in (43, 44, 50):
            filters = [("key", ">=", row - 2), ("key", "<=", row + 2), ("i8", ">=", 0)]
            wanted = expected.iloc[row - 2 : row + 3].dropna().reset_index(drop=True)
            pd.testing.assert_frame_equal(
                file.read(filters=filters).astype({"i8": float}), wanted.astype({"i8": float})
            )
            got = file.read(row_range=(row - 2, row + 3))
            pd.testing.assert_frame_equal(got, expected.iloc[row - 2 : row + 3].reset_index(drop=True))


@pytest.mark.parametrize("options", [{}, {"categories": ["text"]}], ids=repr)
def test_some_pages_have_no_codes(options):
    words = [f"word {number}" for number in range(1000)]
    data = write({"text": pa.array(words)}, dictionary_pagesize_limit=3000)
    with numparq.ParquetFile(data) as file:
        for start, stop in [(0, 3), (990, 995), (1, 4), (0, 1000), (150, 600), (2, 5)]:
            got = file.read(row_range=(start, stop), **options)
            assert got["text"].tolist() == words[start:stop]


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("values", [["a", "b", "c"], [1.5, 2.5, 3.5]])
def test_code_behind_the_last_entry(tmp_path, values, is_cached):
    path = tmp_path / "forged.parquet"
    column = pa.array([values[0], values[1]] * 500 + [values[2]] * 1000)
    schema = pa.schema([pa.field("a", column.type, nullable=False)])
    options = {"compression": "none", "write_page_index": True, "max_rows_per_page": 1000, "write_batch_size": 1000}
    pq.write_table(pa.table([column], schema), path, **options)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    last = chunk.dictionary_page_offset + chunk.total_compressed_size - 1
    assert data[last] == 2  # the one code of the second page
    data[last] = 3
    path.write_bytes(data)
    with numparq.ParquetFile(path) as file:
        if is_cached:
            assert file.read(row_range=(0, 2))["a"].tolist() == values[:2]
        with pytest.raises(numparq.CorruptPageError):
            file.read(row_range=(1998, 2000))
