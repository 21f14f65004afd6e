"""Batches of a file: concatenated they equal one read, for any batch size and memory limit."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from support.files.builder import INT64, FileColumn, build_file, data_page, encode_levels, encode_plain

ROWS = 20_000


def frame(rows=ROWS):
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {
            "a": np.arange(rows),
            "b": rng.random(rows),
            "c": rng.choice(["one", "two", None], rows),
            "d": pd.array(rng.integers(0, 100, rows), dtype="Int16"),
            "e": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(rows), unit="s"),
            "f": rng.random(rows) > 0.5,
        }
    )
    data.loc[3::7, "d"] = pd.NA
    return data


def write_buffer(table, **options):
    buffer = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.Table.from_pandas(table), buffer, **options)
    return buffer


def check_batches(file, *arguments, **options):
    """Read batches, compare their concatenation with one read, and return them."""
    batches = list(file.iter_batches(*arguments, **options))
    for name in ("batch_rows", "batch_bytes", "memory_limit"):
        options.pop(name, None)
    combined = pd.concat(batches)
    pd.testing.assert_frame_equal(combined, file.read(*arguments, **options))
    dtypes = [batch.dtypes for batch in batches]
    assert all(some.equals(dtypes[0]) for some in dtypes)
    return batches


@pytest.fixture(scope="module")
def data():
    return write_buffer(frame(), row_group_size=3000, data_page_size=4096, write_page_index=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_rows": 700},
        {"batch_rows": 3000},
        {"batch_rows": 7001},
        {"batch_rows": 10**6},
        {"batch_bytes": 10_000},
        {"batch_rows": 500, "nrows": 4321},
        {"row_range": (2999, 6001), "batch_rows": 100},
        {"row_groups": [4, 1]},
        {"columns": ["c", "a"]},
        {"columns": []},
        {"nrows": 0},
        {"threads": 1, "batch_rows": 999},
        {"include": ["row_number", "row_group"], "batch_rows": 1234},
        {"dtype_backend": "pyarrow", "batch_rows": 999},
        {"dtype_backend": "numpy_nullable", "batch_rows": 4000},
        {"memory_limit": 200_000},
        {"memory_limit": 600_000},
    ],
)
def test_concatenated_batches_equal_one_read(data, options):
    check_batches(numparq.ParquetFile(data), **options)


@pytest.mark.parametrize("batch_rows", [1, 7, 2999, 3000, 3001, 20_000])
def test_batch_rows(data, batch_rows):
    nrows = min(200 * batch_rows, ROWS)
    sizes = [len(batch) for batch in numparq.ParquetFile(data).iter_batches(batch_rows=batch_rows, nrows=nrows)]
    assert sizes[:-1] == [batch_rows] * (len(sizes) - 1)
    assert sum(sizes) == nrows


def test_batch_bytes(data):
    batches = list(numparq.ParquetFile(data).iter_batches(["a", "b"], batch_bytes=16_000))
    assert {len(batch) for batch in batches[:-1]} == {1000}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"memory_limit": 300_000},
        {"nrows": 100},
        {"batch_rows": 50},
        {"memory_limit": 300_000, "nrows": 4000},
    ],
)
@pytest.mark.parametrize(
    "expression",
    [
        col("a") < 100,
        col("b") > 0.5,
        col("c").is_null(),
        (col("a") % 1 == 0) if hasattr(col("a"), "__mod__") else col("d") == 5,
    ],
)
def test_batches_with_filters(data, expression, options):
    check_batches(numparq.ParquetFile(data), None, expression, **options)
    check_batches(numparq.ParquetFile(data), ["f"], expression, **options)


def test_no_rows_yield_one_empty_batch(data):
    file = numparq.ParquetFile(data)
    (batch,) = file.iter_batches(filters=col("a") < 0)
    pd.testing.assert_frame_equal(batch, file.read(filters=col("a") < 0))
    empty = write_buffer(frame(0))
    (batch,) = numparq.ParquetFile(empty).iter_batches()
    assert len(batch) == 0
    assert list(batch) == list(frame(0))
    own = numparq.to_parquet(pd.DataFrame({"c": pd.Categorical(["x", "y"], ["y", "x", "z"], ordered=True)}))
    for options in ({"filters": col("c") == "z"}, {"nrows": 0}, {"row_groups": []}):
        (batch,) = numparq.ParquetFile(own).iter_batches(**options)
        assert batch["c"].dtype == pd.CategoricalDtype(["y", "x", "z"], ordered=True)


# --- dtypes and labels ------------------------------------------------------------------------------------------------


def test_dtypes_do_not_depend_on_values():
    table = pa.table({"a": [1, 2, None, 4], "b": [True, None, False, True], "c": pa.array([1, 2, 3, 4], pa.int8())})
    file = numparq.ParquetFile(write_buffer(table, row_group_size=2))
    for options in ({}, {"row_groups": [0]}, {"filters": col("a") == 1}):
        for batch in file.iter_batches(batch_rows=2, **options):
            assert batch.dtypes.astype(str).tolist() == ["Int64", "boolean", "int8"]


def test_missing_statistics_imply_nullable_dtypes():
    file = numparq.ParquetFile(write_buffer(pa.table({"a": [1, 2]}), write_statistics=False))
    (batch,) = file.iter_batches()
    assert batch["a"].dtype == "Int64"


def test_int96_is_in_microseconds():
    moments = pa.array([pd.Timestamp("2020-01-01"), None]).cast(pa.timestamp("ns"))
    file = numparq.ParquetFile(write_buffer(pa.table({"a": moments}), use_deprecated_int96_timestamps=True))
    (batch,) = file.iter_batches()
    assert batch["a"].dtype == "M8[us]"
    assert batch["a"][0] == pd.Timestamp("2020-01-01")


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(5, 5 + 3 * 100, 3, name="n"),
        pd.Index(np.arange(100)[::-1], name="k"),
        pd.RangeIndex(100),
        pd.MultiIndex.from_product([range(10), list("abcdefghij")], names=["x", "y"]),
        pd.date_range("2020", periods=100, unit="us"),
    ],
)
def test_index_labels_across_batches(index):
    labelled = pd.DataFrame({"a": np.arange(100)}, index=index)
    file = numparq.ParquetFile(write_buffer(labelled, row_group_size=30))
    for options in ({}, {"batch_rows": 7}, {"nrows": 55, "batch_rows": 10}, {"columns": ["a"]}):
        check_batches(file, **options)
    check_batches(file, filters=col("a") > 50, batch_rows=9)
    own = numparq.ParquetFile(numparq.to_parquet(labelled, row_group_size=30))
    check_batches(own, batch_rows=7)


def test_categories_per_batch():
    texts = [f"k{number // 100}" for number in range(1000)]
    table = pa.table({"a": pa.array(texts).dictionary_encode(), "b": range(1000)})
    file = numparq.ParquetFile(write_buffer(table, row_group_size=300))
    batches = list(file.iter_batches(batch_rows=250, memory_limit=40_000))
    assert all(batch["a"].dtype == "category" for batch in batches)
    assert [value for batch in batches for value in batch["a"]] == texts
    assert [value for batch in batches for value in batch["b"]] == list(range(1000))


def test_nested_columns():
    table = pa.table(
        {
            "l": [[1, 2], [], None, [3]] * 500,
            "s": [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 4, "y": None}] * 500,
            "m": pa.array(
                [[("k", 1.5)], None, [], [("a", None), ("b", 2.0)]] * 500, pa.map_(pa.string(), pa.float64())
            ),
        }
    )
    for options in ({}, {"write_page_index": True, "data_page_size": 512}, {"data_page_version": "2.0"}):
        file = numparq.ParquetFile(write_buffer(table, row_group_size=800, **options))
        check_batches(file, batch_rows=300)
        check_batches(file, ["s.y"], batch_rows=123)
        (first, *_) = file.iter_batches(["s.x"])
        assert first["x"].dtype == "Int64"


def test_explode():
    table = pa.table({"k": range(1000), "l": [[number, number + 1] for number in range(1000)]})
    file = numparq.ParquetFile(write_buffer(table, row_group_size=300))
    batches = list(file.iter_batches(explode="l", batch_rows=450))
    pd.testing.assert_frame_equal(pd.concat(batches), file.read(explode="l"), check_dtype=False)
    assert {len(batch) for batch in batches[:-1]} == {450}


# --- memory -----------------------------------------------------------------------------------------------------------


def test_units_are_located_by_page_headers():
    """Without an offset index a row group is still divided, and no page is decoded again and again."""
    data = write_buffer(frame(), row_group_size=ROWS, data_page_size=4096, write_page_index=False, use_dictionary=False)
    file = numparq.ParquetFile(data)
    batches = check_batches(file, memory_limit=900_000)
    assert len(batches) >= 4
    again = numparq.ParquetFile(data)
    list(again.iter_batches(memory_limit=900_000))
    assert again._file.source.num_bytes < 3 * again._file.source.size


def test_page_headers_are_read_alone():
    """Large chunks are not read as a whole to locate their pages."""
    rows = 200_000
    table = pa.table({"a": np.random.default_rng(0).random(rows)})
    data = write_buffer(table, row_group_size=rows, use_dictionary=False, compression=None, data_page_size=50_000)
    file = numparq.ParquetFile(data)
    batches = file.iter_batches(memory_limit=2_000_000, threads=1)
    batches._units.reads_ahead = False
    first = next(batches)
    assert len(first) < rows // 8
    assert file._file.source.num_bytes < file._file.source.size // 4
    found = np.concatenate([first["a"].to_numpy(), *(batch["a"].to_numpy() for batch in batches)])
    np.testing.assert_array_equal(found, table["a"].to_numpy())
    assert file._file.source.num_bytes < 2 * file._file.source.size


@pytest.mark.parametrize("kind", ["numbers", "texts", "lists"])
def test_a_dictionary_is_read_for_pages_with_indices_alone(kind):
    """Writers give up dictionaries of too many entries: the pages behind hold plain values."""
    values = pa.array(np.random.default_rng(0).permutation(ROWS).astype(float))
    if kind == "texts":
        values = values.cast(pa.string())
    elif kind == "lists":
        values = pa.ListArray.from_arrays(np.arange(0, ROWS + 1, 2, dtype=np.int32), values)
    options = {"dictionary_pagesize_limit": 50_000, "data_page_size": 4096, "compression": None}
    data = write_buffer(pa.table({"a": values}), row_group_size=ROWS, **options)
    column = pq.read_metadata(data).row_group(0).column(0)
    assert column.has_dictionary_page
    dictionary = column.data_page_offset - column.dictionary_page_offset
    assert dictionary > 48_000
    file = numparq.ParquetFile(data)
    rows = {"row_range": (file.num_rows // 2, file.num_rows), "memory_limit": 400_000, "threads": 1}
    assert len(check_batches(file, **rows)) > 4
    before = file._file.source.num_bytes
    list(file.iter_batches(**rows))
    assert file._file.source.num_bytes - before < file._file.source.size - dictionary


def repeated(rows, values_of_a_page):
    """Build a file of lists with three values each, in version 1 pages of a given size, without an index."""
    ordinals = range(0, 3 * rows, values_of_a_page)
    pages = []
    for start in ordinals:
        values = range(start, min(start + values_of_a_page, 3 * rows))
        body = (
            encode_levels([number % 3 != 0 for number in values])
            + encode_levels([1] * len(values))
            + encode_plain(INT64, values)
        )
        pages.append(data_page(len(values), body))
    sizes = {"num_values": 3 * rows, "total_uncompressed_size": 24 * rows}
    return build_file([rows], [FileColumn("l", INT64, [pages], repetition=2, facts=sizes)]).stored()


@pytest.mark.parametrize("values_of_a_page", [150, 9000])
def test_rows_of_lists_are_located_by_levels(values_of_a_page):
    opened = numparq.ParquetFile(repeated(ROWS, values_of_a_page))
    batches = check_batches(opened, memory_limit=20_000_000, threads=1)
    assert len(batches) > 3
    arrow = opened.iter_batches(batch_rows=1500, memory_limit=20_000_000).reader().read_all()
    assert arrow["l"].to_pylist() == [[3 * row, 3 * row + 1, 3 * row + 2] for row in range(ROWS)]
    list(opened.iter_batches(memory_limit=20_000_000))
    assert opened._file.source.num_bytes < 10 * opened._file.source.size


def test_pages_that_end_within_a_row_cannot_be_divided():
    """Old writers end a page wherever it is full, even within a row."""
    opened = numparq.ParquetFile(repeated(3000, 1000))
    with pytest.raises(numparq.LimitError, match="'l'"):
        list(opened.iter_batches(memory_limit=1_000_000))
    assert [len(batch) for batch in check_batches(opened, batch_rows=1000)] == [1000] * 3


def test_batches_above_the_memory_limit_are_refused(data):
    with pytest.raises(numparq.LimitError, match="memory_limit"):
        numparq.ParquetFile(data).iter_batches(batch_rows=10_000, memory_limit=200_000)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_rows": 0},
        {"batch_rows": -1},
        {"batch_bytes": 0},
        {"memory_limit": 0},
        {"batch_rows": 5, "batch_bytes": 5},
    ],
)
def test_invalid_batch_sizes(data, options):
    with pytest.raises(ValueError, match=r"batch_rows|batch_bytes|memory_limit"):
        numparq.ParquetFile(data).iter_batches(**options)
    with pytest.raises((TypeError, ValueError)):
        numparq.ParquetFile(data).iter_batches(**dict.fromkeys(options, "many"))


# --- iterators --------------------------------------------------------------------------------------------------------


def prefetch_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("numparq-ahead")]


def test_dropped_iterator_stops_its_threads(data):
    batches = numparq.ParquetFile(data).iter_batches(batch_rows=100)
    next(batches)
    del batches
    gc.collect()
    end = time.monotonic() + 30
    while prefetch_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert not prefetch_threads()


def test_close_ends_iteration(data):
    with numparq.ParquetFile(data).iter_batches(batch_rows=100) as batches:
        next(batches)
    assert list(batches) == []


def test_errors_name_row_group_and_column(data):
    table = pa.table({"a": range(10_000), "b": range(10_000)})
    content = bytearray(write_buffer(table, row_group_size=2000, use_dictionary=False, compression=None).getvalue())
    position = pq.read_metadata(io.BytesIO(bytes(content))).row_group(3).column(1).data_page_offset
    content[position : position + 20] = b"\xff" * 20
    batches = numparq.ParquetFile(bytes(content)).iter_batches(batch_rows=2000, memory_limit=400_000)
    assert len(next(batches)) == 2000
    with pytest.raises(numparq.InvalidFileError) as caught:
        list(batches)
    assert caught.value.where["row_group"] == 3
    assert caught.value.where["column"] == "b"
    assert caught.value.where["file"] == "<bytes>"


def test_file_changed_between_batches(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(write_buffer(frame(), row_group_size=1000).getvalue())
    with numparq.ParquetFile(path) as file:
        batches = file.iter_batches(batch_rows=1000, memory_limit=500_000)
        next(batches)
        with open(path, "r+b") as changed:
            changed.seek(100)
            changed.write(b"other bytes")
            changed.truncate(path.stat().st_size - 1)
        with pytest.raises(numparq.InvalidFileError, match="changed"):
            list(batches)


def test_without_pyarrow():
    code = """if True:
        import sys
        sys.modules["pyarrow"] = None
        import numparq, pandas as pd
        frame = pd.DataFrame({"a": range(1000), "s": ["x", None] * 500, "c": pd.Categorical(["p", "q"] * 500)})
        file = numparq.ParquetFile(numparq.to_parquet(frame, row_group_size=300))
        pd.testing.assert_frame_equal(pd.concat(file.iter_batches(batch_rows=250)), file.read())
        for read in (file.__arrow_c_stream__, file.to_arrow):
            try:
                read()
            except ImportError as error:
                assert "numparq[arrow]" in str(error)
            else:
                raise AssertionError("Arrow without pyarrow")
    """
    subprocess.run([sys.executable, "-c", code], check=True)
