"""Regressions of filtered reads, found by reviews and fuzzing."""

from __future__ import annotations

import io
import struct
from datetime import datetime
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import ParquetFile, RuntimeFilter, SchemaError, col, read_parquet, to_parquet
from numparq.column.jobs import selection_tasks
from numparq.column.read.take import ValueIndices, take_array
from numparq.errors import CorruptPageError, UnsupportedError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowField
from numparq.types.pyarrow import field_to_pyarrow
from support.files.builder import FileColumn, build_file, data_page, encode_plain, extended_idl


def test_repeated_row_groups():
    frame = pd.DataFrame({"k": np.arange(30), "s": [f"{row % 7}" for row in range(30)]})
    data = to_parquet(frame, row_group_size=10, max_rows_per_page=3)
    twice = pd.concat([frame[:10], frame[:10]], ignore_index=True)
    for nrows in (5, 10, 13, 15, 20, 99):
        got = ParquetFile(data).read(row_groups=[0, 0], nrows=nrows)
        pd.testing.assert_frame_equal(got, twice[:nrows])
        got = ParquetFile(data).read(row_groups=[0, 2, 0], filters=col("s") == "3", nrows=nrows)
        want = pd.concat([frame[:10], frame[20:], frame[:10]], ignore_index=True)
        pd.testing.assert_frame_equal(got, want[want["s"] == "3"][:nrows].reset_index(drop=True))
    got = ParquetFile(data).read(row_groups=[1, 1], row_range=(13, 17), filters=col("k") != 15)
    assert got["k"].tolist() == [13, 14, 16] * 2


@pytest.mark.parametrize("threads", [1, 4])
def test_filters_on_struct_fields_with_small_tasks(threads, monkeypatch):
    monkeypatch.setattr(selection_tasks, "MIN_ROWS_PER_TASK", 4)
    number = np.arange(400)
    frame = pd.DataFrame({"k": number, "st": [{"x": int(row % 7), "y": f"{row % 5}"} for row in number]})
    data = to_parquet(frame, max_rows_per_page=20)
    got = read_parquet(data, ["k"], col("st.x") == 3, row_range=(1, 400), threads=threads)
    assert got["k"].tolist() == [row for row in number if row % 7 == 3]
    got = read_parquet(data, ["k", "st"], (col("st.y") == "2") & (col("k") > 37), threads=threads)
    assert got["k"].tolist() == [row for row in number if row % 5 == 2 and row > 37]
    assert [value["y"] for value in got["st"]] == ["2"] * len(got)


@pytest.mark.parametrize(("rows", "tasks"), [((1, 95), 1), ((90, 150), 2), ((1, 399), 4)])
def test_a_page_is_decompressed_by_one_task(rows, tasks, monkeypatch):
    monkeypatch.setattr(selection_tasks, "MIN_ROWS_PER_TASK", 4)
    build, columns = selection_tasks._selection_task, []

    def count(scheduler, column, chunk, selection):
        columns.append(column)
        return build(scheduler, column, chunk, selection)

    monkeypatch.setattr(selection_tasks, "_selection_task", count)
    data = to_parquet(pd.DataFrame({"k": np.arange(400)}), index=False, max_rows_per_page=100)
    assert read_parquet(data, row_range=rows, threads=4)["k"].tolist() == [*range(*rows)]
    assert columns == [0] * tasks


def test_nested_rows_around_pages_without_matches():
    number = np.arange(6000)
    middle = np.where((number >= 2000) & (number < 4000), np.where(number % 2, 0, 2), number % 2)
    frame = pd.DataFrame({"k": np.where(number < 1000, 9, middle), "l": [[int(row)] for row in number]})
    got = read_parquet(to_parquet(frame, index=False, max_rows_per_page=500), filters=[("k", "==", 1)])
    assert [value[0] for value in got["l"]] == frame.index[frame["k"] == 1].tolist()


def test_runtime_filter_columns_are_checked_before_arrival():
    data = to_parquet(pd.DataFrame({"st": [{"x": 1}], "l": [[1]], "k": [1]}))
    for name in ("st", "l", "l.list.element"):
        with pytest.raises(SchemaError, match="simple values"):
            read_parquet(data, runtime_filters=[RuntimeFilter(name)])
    assert len(read_parquet(data, runtime_filters=[RuntimeFilter("st.x"), RuntimeFilter("k")])) == 1


@pytest.mark.parametrize(("nrows", "error"), [(-1, ValueError), ("x", TypeError), (2.5, TypeError)])
def test_nrows_is_checked_with_filters(nrows, error):
    data = to_parquet(pd.DataFrame({"a": range(10)}))
    for filters in (None, col("a") > 1):
        with pytest.raises(error, match="nrows"):
            read_parquet(data, filters=filters, nrows=nrows)


def test_sparse_dictionaries_leave_the_predicate_cache():
    frame = pd.DataFrame({"s": [f"{row % 900:04d}" for row in range(2000)], "n": np.arange(2000)})
    data = to_parquet(frame, use_dictionary=["s"])
    pieces = []
    original = numparq.column.jobs.predicate_cache.CachedSink.finish

    def record(sink, task):
        pieces.append(sink.cached.array)
        original(sink, task)

    with mock.patch.object(numparq.column.jobs.predicate_cache.CachedSink, "finish", record):
        got = read_parquet(data, filters=col("s") == "0123")
        assert got["n"].tolist() == [123, 1023, 1923]
        assert not hasattr(pieces.pop(), "codes")
        got = read_parquet(data, filters=col("s") == "0123", categories=["s"])
    assert len(got["s"].cat.categories) == 900
    assert hasattr(pieces.pop(), "codes")


def test_value_indices_from_mask():
    mask = np.array([0, 1, 1, 0, 1], np.uint8)
    assert ValueIndices.from_mask(mask).indices.tolist() == [1, 2, 4]
    assert take_array(np.arange(5), ValueIndices.from_mask(mask)).tolist() == [1, 2, 4]


@pytest.mark.parametrize("encoding", ["PLAIN", "RLE_DICTIONARY"])
def test_invalid_utf8_in_filter_columns_names_the_page(encoding):
    """Found by fuzzing: the error for a cached string named no page."""
    frame = pd.DataFrame({"s": [f"abc{row}" for row in range(100)], "k": range(100)})
    data = bytearray(to_parquet(frame, column_encoding={"s": encoding}, compression=None, write_page_checksum=False))
    data[data.index(b"abc50")] = 0xFF
    for columns in (None, ["k"]):
        with pytest.raises(CorruptPageError, match="not valid UTF-8") as caught:
            read_parquet(bytes(data), columns, col("s") >= "abc5")
        assert caught.value.where == {"file": "<bytes>", "row_group": 0, "column": "s", "page": 0}


def test_filter_on_invalid_int96_names_the_column():
    """Found by fuzzing: values that are read as bytes cannot be filtered."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    stored = io.BytesIO()
    table = pa.table({"t": pa.array([datetime(2020, 1, 1), datetime(2021, 1, 1)])})
    pq.write_table(table, stored, use_deprecated_int96_timestamps=True, compression=None, use_dictionary=False)
    data = bytearray(stored.getvalue())
    start = data.index(struct.pack("<qi", 0, 2458850))
    data[start : start + 12] = struct.pack("<qi", 2**63 - 1, 2**31 - 1)
    assert isinstance(read_parquet(bytes(data))["t"][0], bytes)
    with pytest.raises(UnsupportedError, match="outside the range of timestamps") as caught:
        read_parquet(bytes(data), filters=col("t") != datetime(2020, 6, 1))
    assert (caught.value.where["row_group"], caught.value.where["column"]) == (0, "t")


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
def test_structs_with_two_fields_of_one_name_lose_none(kind: str):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    twice = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([3, None])], names=["a", "a"])
    column = {
        "struct": twice,
        "list": pa.ListArray.from_arrays([0, 1, 2], twice),
        "map": pa.MapArray.from_arrays([0, 1, 2], pa.array(["k", "l"]), twice),
    }[kind]
    buffer = io.BytesIO()
    pq.write_table(pa.table({"s": column, "n": [1, 2]}), buffer)
    data = buffer.getvalue()
    assert numparq.ParquetFile(data).to_arrow()["s"].combine_chunks().equals(column)
    assert numparq.read_parquet(data, ["n"])["n"].tolist() == [1, 2]
    with pytest.raises(UnsupportedError, match="two fields of the name 'a', of which a dict would lose one"):
        numparq.read_parquet(data)
    if kind == "list":
        exploded = numparq.read_parquet(data, explode="s", dtype_backend="numpy_nullable")
        assert list(exploded.columns) == ["s.list.element.a", "s.list.element.a", "n"]
        assert [exploded.iloc[:, number].tolist() for number in range(3)] == [[1, 2], [3, pd.NA], [1, 2]]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("+01", "+01:00"), ("-0330", "-03:30"), ("+0100", "+01:00"), ("-00:30", "-00:30"), ("Etc/GMT-1", "Etc/GMT-1")],
)
def test_short_offsets_are_time_zones(zone: str, expected: str):
    """The zone ``+01`` became UTC, and ``-0330`` became -03:00."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    table = pa.table({"a": pa.array([0, 3_600_000_000], pa.timestamp("us", zone))})
    pq.write_table(table, buffer)
    read = pd.Series(pd.to_datetime([0, 3_600_000_000], unit="us", utc=True)).dt.as_unit("us").dt.tz_convert(expected)
    for data in (buffer.getvalue(), to_parquet(table), to_parquet(read.to_frame("a"), schema=table.schema)):
        assert ParquetFile(data).to_arrow()["a"].type == pa.timestamp("us", expected)
        frame = read_parquet(data)
        pd.testing.assert_series_equal(frame["a"], read, check_names=False)
        assert read_parquet(data, filters=col("a") >= read[1])["a"].tolist() == [read[1]]
        assert read_parquet(data, filters=[("a", "<", read[1].isoformat())])["a"].tolist() == [read[0]]


def test_a_required_column_of_the_null_type_is_read_as_arrow():
    """ValueError: pyarrow has no such field, and reads the column as one that may be null."""
    pa = pytest.importorskip("pyarrow")
    pages = [[data_page(2, encode_plain(1, [7, 8]))], [data_page(1, encode_plain(1, [9]))]]
    unknown = {"logicalType": extended_idl().LogicalType(UNKNOWN=extended_idl().NullType())}
    columns = [FileColumn("n", 1, pages, element=unknown), FileColumn("i", 1, pages)]
    data = build_file([2, 1], columns).stored()
    table = ParquetFile(data).to_arrow()
    assert table.to_pydict() == {"n": [None, None, None], "i": [7, 8, 9]}
    assert table.schema == pa.schema([pa.field("n", pa.null()), pa.field("i", pa.int32(), False)])
    assert pa.table(ParquetFile(data)).equals(table)
    assert read_parquet(data)["n"].tolist() == [None, None, None]


def test_required_fields_of_the_null_type_have_an_arrow_type():
    pa = pytest.importorskip("pyarrow")
    field = ArrowField("s", ArrowType("struct"), (ArrowField("n", ArrowType("null"), (), False),))
    assert field_to_pyarrow(field) == pa.struct([pa.field("n", pa.null())])
