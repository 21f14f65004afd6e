"""Filtered reads combined with the other options of `read_parquet`."""

from __future__ import annotations

import io
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numparq import Coalescing, ParquetFile, RuntimeFilter, col, read_parquet, to_parquet
from numparq.errors import ParquetError
from numparq.scan.filter_rows import RowFilter
from support.compare import write_by_pyarrow
from support.files.forged_metadata import forge
from support.filters.keyed_file import DATA, FRAME, GROUP, OPTIONS, filtered_frame, key, matching_row_numbers, x
from support.filters.reads import assert_frames_equal
from support.io.recorded_reads import file_regions


@pytest.mark.parametrize("columns", [["value"], ["key", "value"]])
def test_filters_decided_by_statistics_fetch_no_extra_bytes(columns):
    """Unprojected filter columns are not fetched, and projected ones only once."""
    pytest.importorskip("fsspec")
    from support.io.object_store import ObjectStore

    store = ObjectStore()
    # Long metadata after the rows keeps them out of the footer's first read.
    store.pipe("/a", to_parquet(FRAME, key_value_metadata={"long": "x" * 100_000}, **OPTIONS))
    options = {"filesystem": store, "coalescing": Coalescing(gap=0, max_bytes=1 << 20)}
    sizes = []
    for filters in (None, key >= 0, key.is_not_null()):
        store.reset()
        assert_frames_equal(read_parquet("/a", columns, filters, **options), FRAME[columns])
        sizes.append(store.num_bytes)
    assert sizes == sizes[:1] * 3


BACKENDS = [{}, {"dtype_backend": "numpy_nullable"}, {"dtype_backend": "pyarrow"}]
MIXED = pd.DataFrame(
    {
        "i": pd.array([1, 2, None, 4] * 5, "Int16"),
        "n": np.arange(20),
        "f": np.arange(20, dtype="f4"),
        "s": ["a", None, "b", "c"] * 5,
        "b": [True, False] * 10,
        "t": pd.date_range("2024", periods=20, tz="UTC"),
        "c": pd.Categorical(["x", "y", None, "z"] * 5),
    }
)


@pytest.mark.parametrize("options", BACKENDS, ids=repr)
@pytest.mark.parametrize("writer", ["numparq", "pyarrow"])
@pytest.mark.parametrize(
    "filters", [col("n") > 100, col("n") == 4.5, (col("s") == "bb") & (col("n") >= 0), col("n").isin([])]
)
def test_no_rows_match(options, writer, filters):
    """An empty result has the dtypes of the whole file."""
    data = to_parquet(MIXED, row_group_size=8) if writer == "numparq" else write_by_pyarrow(MIXED, row_group_size=8)
    got, whole = read_parquet(data, filters=filters, **options), read_parquet(data, **options)
    assert_frames_equal(got, whole[:0])
    assert list(got.columns) == list(MIXED)


def test_dtypes_do_not_depend_on_matching_rows():
    """Integers with nulls in the file are floats, whichever rows match."""
    data = write_by_pyarrow(
        pa.table({"i": pa.array([1, None, 3, 4]), "b": [True, None, False, True], "n": [0, 1, 2, 3]})
    )
    for filters in (col("n") >= 2, col("i").is_not_null(), col("n") == 1, col("n") < 0):
        got = read_parquet(data, filters=filters)
        assert got.dtypes.tolist() == read_parquet(data).dtypes.tolist() == [np.float64, object, np.int64]


def test_filter_on_an_unprojected_column():
    got = read_parquet(DATA, ["note", "value"], key.isin([2, 1998]))
    assert_frames_equal(got, filtered_frame([1, 999], ["note", "value"]))
    assert list(read_parquet(DATA, [], key < 10).index) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("writer", ["numparq", "pandas"])
def test_filter_on_the_index(writer):
    frame = MIXED.set_index(pd.Index(np.arange(20)[::-1] ** 2, name="n"))[["f", "s"]]
    data = to_parquet(frame, row_group_size=6) if writer == "numparq" else _by_pandas(frame)
    whole = read_parquet(data)
    for columns in (None, ["s"], []):
        got = read_parquet(data, columns, filters=col("n").between(4, 11))
        assert_frames_equal(got, (whole if columns is None else whole[columns]).iloc[16:18])
    got = read_parquet(data, filters=col("f") > 100)
    assert_frames_equal(got, whole[:0])


def _by_pandas(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow")
    return buffer.getvalue()


def test_duplicate_column_names():
    """A name resolves to the same column as without filters."""
    table = pa.table([pa.array([1, 2, 3]), pa.array(["a", "b", "c"]), pa.array([6, 5, 4])], ["x", "y", "x"])
    data = write_by_pyarrow(table)
    first = read_parquet(data, ["x"]).iloc[:, 0].tolist()
    assert matching_row_numbers(data, x == first[2]) == [2]
    got = read_parquet(data, filters=col("y") == "b")
    assert_frames_equal(got, read_parquet(data).iloc[1:2].reset_index(drop=True))


def test_names_with_dots():
    """A top-level column with the exact name comes first. A tuple is always a path."""
    struct = pa.array([{"y": 10}, {"y": 20}, {"y": 30}])
    data = write_by_pyarrow(pa.table({"x.y": [3, 2, 1], "x": struct}))
    assert matching_row_numbers(data, col("x.y") == 3) == [0]
    assert matching_row_numbers(data, col(("x", "y")) == 30) == [2]
    assert matching_row_numbers(data, [("x.y", "<", 3), (("x", "y"), ">", 20)]) == [2]


def test_categories():
    got = read_parquet(DATA, ["word", "key"], col("word").isin(["w00", "w07"]), categories=["word"])
    assert isinstance(got["word"].dtype, pd.CategoricalDtype)
    assert_frames_equal(
        got.astype({"word": "str"}), filtered_frame(FRAME["word"].isin(["w00", "w07"]), ["word", "key"])
    )


def test_stored_categories_are_preserved():
    data = to_parquet(MIXED, row_group_size=8)
    got = read_parquet(data, filters=col("c") == "z")
    assert got["c"].cat.categories.tolist() == ["x", "y", "z"]
    assert got["c"].tolist() == ["z"] * 5


@pytest.mark.parametrize("groups", [[2, 0], [4], [], [1, 1], [3, 1, 3]])
def test_row_groups_in_requested_order(groups):
    """A row group may be requested twice."""
    keep = key.isin([0, 10, 2 * 399, 2 * 400, 2 * 401, 2 * 799, 2 * 999])
    whole = read_parquet(DATA, row_groups=groups)
    expected = whole[whole["key"].isin([0, 10, 798, 800, 802, 1598, 1998])].reset_index(drop=True)
    assert_frames_equal(read_parquet(DATA, filters=keep, row_groups=groups), expected)
    assert_frames_equal(read_parquet(DATA, filters=keep, row_groups=groups, nrows=2), expected[:2])
    assert_frames_equal(
        read_parquet(DATA, filters=col("note").like("%9"), row_groups=groups, threads=3),
        whole[whole["note"].str.endswith("9")].reset_index(drop=True),
    )


def test_row_range_applies_before_filters_and_nrows_after():
    keep = col("word") == "w07"
    rows = [row for row in range(101, 750) if FRAME["word"][row] == "w07"]
    got = read_parquet(DATA, ["key"], keep, row_range=(101, 750), nrows=7, include=["row_group", "row_number"])
    assert got["row_number"].tolist() == rows[:7]
    assert got["row_group"].tolist() == [row // GROUP for row in rows[:7]]
    assert got["key"].tolist() == [2 * row for row in rows[:7]]
    assert isinstance(got.index, pd.RangeIndex)
    assert len(read_parquet(DATA, ["key"], keep, nrows=0)) == 0


def test_damaged_filter_column_is_named():
    start, stop = file_regions(DATA)["page", 1, "key", 2]
    with pytest.raises(ParquetError, match="column 'key'"):
        read_parquet(_damaged(start, stop), ["value"], key == 500)


def _damaged(start, stop):
    return DATA[:start] + b"\xff" * (stop - start) + DATA[stop:]


def test_damage_outside_matching_rows_is_ignored():
    start, stop = file_regions(DATA)["page", 1, "value", 2]
    frame = read_parquet(_damaged(start, stop), filters=key.between(2 * 300, 2 * 310))
    assert_frames_equal(frame, filtered_frame(FRAME["key"].between(600, 620)))


def test_filters_with_explode():
    """The filter selects rows of the file, then their elements are exploded."""
    table = pa.table({"n": [1, 2, 3, 4], "l": [[1, 2], None, [], [5, None, 7]]})
    data = write_by_pyarrow(table, row_group_size=2)
    whole = read_parquet(data, explode="l")
    got = read_parquet(data, explode="l", filters=col("n") >= 2)
    assert_frames_equal(got, whole[whole["n"] >= 2].reset_index(drop=True), loose=True)
    got = read_parquet(data, explode="l", filters=col("l").contains(7))
    assert_frames_equal(got, whole[whole["n"] == 4].reset_index(drop=True), loose=True)


class CallbackFile(io.BytesIO):
    """A file object that runs a callback at its n-th read."""

    def __init__(self, data, number, callback):
        super().__init__(data)
        self.remaining, self.callback = number, callback

    def readinto(self, out):
        self.remaining -= 1
        if self.remaining == 0:
            self.callback()
        return super().readinto(out)


@pytest.mark.parametrize("filters", [None, key >= 100, col("note").like("%7%")], ids=repr)
@pytest.mark.parametrize("given", [{"values": [2 * 50, 2 * 450, 2 * 451, 7, None]}, {"low": 800, "high": 2 * 450}])
def test_runtime_filter_arrives_during_the_read(filters, given):
    """Later rows that do not pass are dropped. All passing rows are returned in order."""
    whole = read_parquet(DATA, filters=filters)["key"].tolist()
    late = RuntimeFilter("key")
    assert read_parquet(DATA, filters=filters, runtime_filters=[late])["key"].tolist() == whole
    passing = read_parquet(DATA, filters=filters, runtime_filters=[RuntimeFilter("key", **given)])["key"].tolist()
    passes = (lambda value: value in given["values"]) if "values" in given else lambda value: 800 <= value <= 900
    assert passing == [value for value in whole if passes(value)]
    for number in (1, 2, 3, 4, 5, 7, 9, 12, 20):
        for threads in (1, 3):
            late = RuntimeFilter("key")
            source = CallbackFile(DATA, number, partial(late.arrive, **given))
            got = read_parquet(source, ["key"], filters, runtime_filters=[late], threads=threads)["key"].tolist()
            assert [value for value in got if passes(value)] == passing
            assert set(got) <= set(whole)
            assert got == sorted(got)


@pytest.mark.parametrize("filters", [None, key >= 0, key >= 100], ids=repr)
def test_late_runtime_filter_prunes_row_groups_that_the_filter_matches_whole(monkeypatch, filters):
    late, filter_row_groups = RuntimeFilter("key"), RowFilter.filter_row_groups

    def arriving(*arguments):
        late.arrive(values=[2 * 450, 7])
        return filter_row_groups(*arguments)

    monkeypatch.setattr(RowFilter, "filter_row_groups", arriving)
    assert read_parquet(DATA, ["key"], filters, runtime_filters=[late])["key"].tolist() == [2 * 450]


def test_page_indexes_are_cached_with_the_file():
    """A second look-up fetches no more than the first."""
    source = io.BytesIO(DATA)
    with ParquetFile(source) as file:
        for row in (250, 251, 999, 0):
            assert_frames_equal(file.read(filters=key == 2 * row), filtered_frame([row]))
        before = file._file.source.num_requests
        file.read(["value"], filters=key == 2 * 250)
        again = file._file.source.num_requests
        file.read(["value"], filters=key == 2 * 251)
        assert file._file.source.num_requests - again <= again - before <= 3
        assert_frames_equal(file.read(), FRAME)


def test_files_without_rows():
    for data in (to_parquet(FRAME[:0]), write_by_pyarrow(pa.table({"key": pa.array([], pa.int64())}))):
        whole = read_parquet(data)
        assert_frames_equal(read_parquet(data, filters=key > 3), whole)
        assert_frames_equal(read_parquet(data, ["key"], (key > 3) | key.is_null()), whole[["key"]])


def test_offset_index_that_contradicts_the_pages():
    """An offset index is used only if the page headers agree."""
    data = forge(DATA, ("lie: moved",))
    assert read_parquet(data, filters=key == 500)["key"].tolist() == [500]


@pytest.mark.parametrize("threads", [1, 4])
def test_memory_of_strings_behind_few_codes(threads):
    """Pages of codes are small, the strings that they stand for are not: 20 MB here."""
    words = [f"y{number % 50:08}" * 12 for number in range(200_000)] + [
        f"z{number:08}" * 12 for number in range(20_000)
    ]
    sink = io.BytesIO()
    table = pa.table({"s": words, "i": range(len(words))})
    options = {"dictionary_pagesize_limit": 1 << 19, "use_dictionary": ["s"], "write_statistics": False}
    pq.write_table(table, sink, row_group_size=len(words), **options)
    found = read_parquet(sink, ["i"], col("s") == words[3], memory_limit=48 << 20, threads=threads)
    assert found["i"].tolist() == [*range(3, 200_000, 50)]


def test_pages_of_lists_that_a_stream_finds_after_a_read_of_some_rows(tmp_path):
    path = tmp_path / "lists.parquet"
    lists = np.random.default_rng(0).integers(0, 1 << 40, (10_000, 8)).tolist()
    pq.write_table(pa.table({"l": lists}), path, use_dictionary=False, data_page_size=8 << 10)
    read = []
    for rows in (None, (100, 110)):
        with ParquetFile(path) as file:
            if rows is not None:
                file.read(row_range=rows)
            before = file._file.source.num_bytes
            assert sum(map(len, file.iter_batches(batch_rows=200))) == len(lists)
            read.append(file._file.source.num_bytes - before)
    assert read[1] <= 1.1 * read[0]
