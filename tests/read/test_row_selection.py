"""Row selections of column chunks equal a full read's rows, however pages are located and with any threads."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numparq import read_parquet, to_parquet
from support.data import write_matrix
from support.filters.reads import assert_frames_equal
from support.row_selection import (
    SMALL,
    arrow_table,
    by_offset_index,
    expected_rows,
    page_locations,
    random_rows,
    read_rows,
    rows_of_file,
    small_read_sizes,
    whole_chunks,
    write_by_pyarrow,
)


def some_columns(row_group, leaf, locations):
    """Locate the pages of every other chunk."""
    return locations if (row_group + leaf) % 2 else None


WAYS = (by_offset_index, whole_chunks, some_columns)


def assert_selection(data, rng, repetitions=4, masked=False, **options):
    """Compare random rows, as ranges or as a mask, with those of a full read with the same options."""
    counts = rows_of_file(data)
    for number in range(repetitions):
        groups = rng.permutation(len(counts))[: int(rng.integers(1, len(counts) + 1))].tolist()
        rows = {group: random_rows(rng, counts[group]) for group in groups}
        expected = expected_rows(data, rows, **options)
        for way in WAYS:
            with small_read_sizes(**SMALL[int(rng.integers(0, len(SMALL)))]):
                got = read_rows(data, rows, way, masked=masked, threads=(1, 3)[number % 2], **options)
            loose = options.get("dtype_backend") is None  # dtypes may depend on the nulls among the rows
            assert_frames_equal(got, expected, loose=loose)


MATRIX = [case for case in write_matrix.all_cases() if case.size in ("rows", "bytes") and case.kind != "category"]
FILES = write_matrix.group_by_file(write_matrix.covering_subset(MATRIX, 2, seed=3))


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("about", FILES, ids=lambda about: "-".join(map(str, about)))
@pytest.mark.parametrize("backend", [None, "pyarrow"])
def test_write_matrix(about, backend):
    """All dtypes, encodings, nestings, codecs and null patterns."""
    data, _, _ = write_matrix.write(FILES[about])
    assert_selection(data, np.random.default_rng(len(data)), **({} if backend is None else {"dtype_backend": backend}))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_alp(version):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 10_000, 3000) / 100
    frame = pd.DataFrame(
        {
            "double": values,
            "single": values.astype("f4"),
            "odd": np.where(rng.random(3000) < 0.2, np.pi * values, values),
            "nulls": pd.array(np.where(rng.random(3000) < 0.3, None, values), "Float64"),
        }
    )
    data = to_parquet(
        frame, column_encoding="ALP", data_page_version=version, max_rows_per_page=170, row_group_size=1300, index=False
    )
    assert_selection(data, rng)


def test_dictionary_fallback():
    """Chunks begin with dictionary pages and continue with PLAIN: strings and fixed sizes, also as categories."""
    rng = np.random.default_rng(2)
    few, many = rng.integers(0, 9, 900), rng.integers(0, 1 << 40, 600)
    numbers = np.concatenate([few, many])
    names = [f"name {number}" if number % 7 else None for number in numbers.tolist()]
    table = pa.table(
        {
            "n": numbers,
            "s": pa.array(names),
            "b": pa.array([name and name.encode() for name in names]),
            "f": pa.array([b"%012d" % (number % 10**12) for number in numbers], pa.binary(12)),
        }
    )
    out = io.BytesIO()
    pq.write_table(
        table,
        out,
        dictionary_pagesize_limit=2000,
        data_page_size=400,
        write_batch_size=50,
        write_page_index=True,
        row_group_size=1200,
    )
    data = out.getvalue()
    encodings = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).encodings
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(encodings)
    for options in ({}, {"categories": ["s"]}, {"categories": ["s", "b"], "dtype_backend": "pyarrow"}):
        assert_selection(data, rng, **options)


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_pyarrow_files(codec, version, dictionary):
    data = write_by_pyarrow(
        arrow_table(),
        compression=codec,
        data_page_version=version,
        use_dictionary=dictionary,
        write_page_checksum=codec == "zstd",
    )
    assert max(map(len, page_locations(data).values())) > 5
    assert_selection(data, np.random.default_rng(7), repetitions=3)
    assert_selection(data, np.random.default_rng(8), repetitions=2, dtype_backend="numpy_nullable")


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pyarrow_encodings(version):
    encodings = {
        "i4": "DELTA_BINARY_PACKED",
        "i8": "DELTA_BINARY_PACKED",
        "u2": "BYTE_STREAM_SPLIT",
        "f4": "BYTE_STREAM_SPLIT",
        "f8": "BYTE_STREAM_SPLIT",
        "fixed": "BYTE_STREAM_SPLIT",
        "text": "DELTA_BYTE_ARRAY",
        "bool": "RLE",
        "bytes": "DELTA_LENGTH_BYTE_ARRAY",
        "wide": "DELTA_BYTE_ARRAY",
        "list.list.element": "DELTA_BINARY_PACKED",
        "words.list.element": "DELTA_BYTE_ARRAY",
    }
    data = write_by_pyarrow(arrow_table(), data_page_version=version, use_dictionary=False, column_encoding=encodings)
    assert_selection(data, np.random.default_rng(9), repetitions=8)


def test_files_without_offset_indexes():
    data = write_by_pyarrow(arrow_table(), write_page_index=False)
    assert not page_locations(data)
    assert_selection(data, np.random.default_rng(10))


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("statistics", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_dtypes_that_depend_on_values(statistics, masked):
    """Nulls without a null count, and integers beyond float64: chunks are decoded a second time."""
    rng, rows = np.random.default_rng(13), 400
    nulls, few = rng.random(rows) < 0.3, np.arange(rows) % 97 == 96
    numbers = np.where(np.arange(rows) % 50 == 7, (1 << 53) + 1, np.arange(rows))
    table = pa.table(
        {
            "none": pa.array(np.arange(rows)),
            "some": pa.array(np.arange(rows), mask=nulls),
            "few": pa.array(np.arange(rows), mask=few),
            "large": pa.array(numbers, mask=nulls),
            "single": pa.array(numbers.astype("i4"), mask=few),
            "bool": pa.array(nulls[::-1], mask=few),
            "text": pa.array([f"text {number % 30}" for number in range(rows)], mask=nulls),
        }
    )
    for options in ({"use_dictionary": False}, {"compression": "snappy"}):
        data = write_by_pyarrow(table, write_statistics=statistics, **options)
        assert_selection(data, rng, repetitions=4, masked=masked)
        assert_selection(data, rng, repetitions=2, masked=masked, dtype_backend="numpy_nullable")
        for indices in ([7, 57, 300], [*range(100, 140)], [96, 193], [*range(7, 400, 50)], [*range(1, 400, 2)]):
            by_group = {0: [row for row in indices if row < 220], 1: [row - 220 for row in indices if row >= 220]}
            selection = {group: some for group, some in by_group.items() if some}
            got = read_rows(data, selection, whole_chunks, masked=masked)
            expected = table.take(indices).to_pandas(integer_object_nulls=True)
            for name in table.column_names:
                values = [None if pd.isna(value) else value for value in got[name].tolist()]
                assert values == [None if pd.isna(value) else value for value in expected[name].tolist()]


def test_required_columns():
    table = arrow_table()
    names = ["i4", "f8", "bytes", "fixed", "decimal"]
    schema = pa.schema([pa.field(name, table[name].type, nullable=False) for name in names])
    for options in ({}, {"use_dictionary": False}, {"data_page_version": "2.0"}):
        data = write_by_pyarrow(table.select(names).cast(schema), **options)
        assert_selection(data, np.random.default_rng(11))
        assert_selection(data, np.random.default_rng(11), dtype_backend="numpy_nullable")


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_masks(version, nested):
    """Scattered rows are passed as a mask over a row range."""
    table, rng = arrow_table(), np.random.default_rng(12)
    table = table.select([name for name in table.column_names if pa.types.is_nested(table[name].type) == nested])
    for dictionary in (False, True):
        data = write_by_pyarrow(table, data_page_version=version, use_dictionary=dictionary)
        assert_selection(data, rng, repetitions=8, masked=True)


def test_mask_without_rows_in_some_pages():
    """A filter leaves a row range, scattered rows, and pages without any between them."""
    rows = np.arange(1200)
    odd = rows % 2
    key = np.where(rows < 200, 9, np.where((rows >= 400) & (rows < 800), np.where(odd, 0, 2), odd))
    frame = pd.DataFrame({"key": key, "flat": rows, "list": [[row, row] for row in rows.tolist()]})
    data = to_parquet(frame, index=False, max_rows_per_page=100)
    got = read_parquet(data, filters=[("key", "==", 1)])
    assert_frames_equal(got, frame[key == 1].reset_index(drop=True), loose=True)


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_memory_of_strings_grows_in_the_midst_of_pages(compression, dictionary):
    texts = [f"{row}" * (2000 if row >= 1900 else 1) for row in range(2000)]
    frame = pd.DataFrame({"text": texts, "row": range(2000)})
    data = to_parquet(
        frame, max_rows_per_page=40, compression=compression, use_dictionary=["text"] if dictionary else False
    )
    read = read_parquet(data, ["text"], row_range=(1890, 1990))
    assert read["text"].tolist() == texts[1890:1990]
    read = read_parquet(data, ["text"], filters=[("row", ">", 1890), ("row", "<", 1990)])
    assert read["text"].tolist() == texts[1891:1990]
