"""Parquet files in the cells of a column: their rows, the cell of each row, and schema-only dtypes."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import CorruptPageError, InvalidFileError, SchemaError, col
from numparq.dataset.small_files import read_small_files
from numparq.spark.udf import decode_bytes, decode_paths

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def frame(start, rows):
    numbers = np.arange(start, start + rows)
    texts = pd.Series([f"text {number % 5}" for number in numbers], dtype="str")
    return pd.DataFrame({"n": numbers, "x": numbers / 2, "s": texts})


def to_bytes(table, **options):
    buffer = io.BytesIO()
    numparq.to_parquet(table, buffer, **options)
    return buffer.getvalue()


@pytest.fixture
def frames():
    return [frame(0, 7), frame(100, 0), frame(200, 30), frame(300, 1)]


@pytest.fixture
def paths(frames, tmp_path):
    file_paths = []
    for number, one in enumerate(frames):
        numparq.to_parquet(one, tmp_path / f"{number}.parquet", row_group_size=10)
        file_paths.append(str(tmp_path / f"{number}.parquet"))
    return pd.Series(file_paths, index=["a", "b", "c", "d"])


@pytest.fixture
def contents(frames):
    return pd.Series([to_bytes(one, row_group_size=10) for one in frames], index=["a", "b", "c", "d"], dtype=object)


def expected_frame(frames, labels="abcd"):
    whole = pd.concat(frames)
    whole.index = pd.Index([label for label, one in zip(labels, frames, strict=True) for _ in range(len(one))])
    return whole.astype({"n": "Int64"})


@pytest.mark.parametrize("kind", ["paths", "contents"])
def test_rows_are_indexed_by_their_cell(kind, frames, request):
    cells = request.getfixturevalue(kind)
    decode = decode_paths if kind == "paths" else decode_bytes
    pd.testing.assert_frame_equal(decode(cells), expected_frame(frames))
    filtered = decode(cells, columns=["s", "n"], filters=(col("n") >= 5) & (col("n") < 205))
    expected = expected_frame(frames)[["s", "n"]]
    pd.testing.assert_frame_equal(filtered, expected[(expected["n"] >= 5) & (expected["n"] < 205)])
    assert set(filtered.index) == {"a", "c"}


def test_aggregates_per_cell(paths, contents):
    for decoded in (decode_paths(paths, columns=["x"]), decode_bytes(contents, columns=["x"])):
        got = decoded["x"].groupby(level=0).sum().reindex(paths.index)
        assert got.tolist()[0] == 10.5
        assert np.isnan(got.tolist()[1])
        assert got.tolist()[3] == 150.0
    counted = decode_bytes(contents, columns=[]).groupby(level=0).size().reindex(contents.index, fill_value=0)
    assert counted.tolist() == [7, 0, 30, 1]


def test_null_cells_are_skipped_and_cells_may_repeat(paths, frames):
    cells = pd.Series([None, paths["c"], np.nan, paths["a"], paths["c"]], index=[5, 6, 7, 8, 6])
    expected = expected_frame([frames[2], frames[0], frames[2]], [6, 8, 6])
    pd.testing.assert_frame_equal(decode_paths(cells), expected)


@pytest.mark.parametrize("decode", [decode_paths, decode_bytes])
def test_only_null_cells(decode):
    nothing = pd.Series([None, None], dtype=object)
    assert decode(nothing).shape == (0, 0)
    assert decode(nothing, columns=["n"]).columns.tolist() == ["n"]
    typed = decode(nothing, schema=pa.schema([("n", pa.int32()), ("s", pa.string())]))
    assert typed.dtypes.map(str).tolist() == ["Int32", "str"]
    assert not len(typed)


def test_dtypes_are_schema_only():
    full, holes = (pa.table({"n": pa.array(values, pa.int32())}) for values in ([1, 2], [None, 3]))
    for table in (full, holes):
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        got, which = read_small_files([buffer.getvalue()])
        assert str(got["n"].dtype) == "Int32"
        assert which.tolist() == [0, 0]


def test_cells_of_different_schemas(tmp_path):
    contents = [to_bytes(pd.DataFrame({"a": [1]})), to_bytes(pd.DataFrame({"b": ["x"], "a": [2]}))]
    cells = pd.Series(contents, dtype=object)
    got = decode_bytes(cells)
    assert got["a"].tolist() == [1, 2]
    assert got["b"].isna().tolist() == [True, False]
    only = decode_bytes(cells, schema=pa.schema([("a", pa.int64()), ("c", pa.float64())]))
    assert only.columns.tolist() == ["a", "c"]
    assert only["c"].isna().all()
    clash = pd.Series([cells[0], to_bytes(pd.DataFrame({"a": ["text"]}))], dtype=object)
    with pytest.raises(SchemaError, match="cell 1"):
        decode_bytes(clash)


def test_stored_index_becomes_a_column(tmp_path):
    stored = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index(["p", "q"], name="key"))
    got = decode_bytes(pd.Series([to_bytes(stored)], index=["cell"], dtype=object))
    assert got.columns.tolist() == ["x", "key"]
    assert got.index.tolist() == ["cell", "cell"]


def test_errors_name_the_cell(paths, contents):
    damaged = bytearray(contents["c"])
    damaged[40] ^= 255
    cells = pd.Series([contents["a"], bytes(damaged)], dtype=object)
    with pytest.raises(CorruptPageError, match="<cell 1>") as caught:
        decode_bytes(cells)
    assert caught.value.where["column"] == "n"
    with pytest.raises(InvalidFileError, match="<cell 0>"):
        decode_bytes(pd.Series([b"no Parquet file"], dtype=object))
    with pytest.raises(FileNotFoundError):
        decode_paths(pd.Series([paths["a"], "/no/such/file.parquet"]))
    with pytest.raises(TypeError, match="must hold str or PathLike values, not int"):
        decode_paths(pd.Series([3], dtype=object))
    with pytest.raises(TypeError, match="must hold bytes, not str"):
        decode_bytes(pd.Series(["text"], dtype=object))


def test_paths_on_another_file_system(frames):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    urls = []
    for number, one in enumerate(frames):
        numparq.to_parquet(one, f"memory://cells/{number}.parquet")
        urls.append(f"memory://cells/{number}.parquet")
    try:
        pd.testing.assert_frame_equal(decode_paths(pd.Series(urls, index=list("abcd"))), expected_frame(frames))
    finally:
        memory.rm("/cells", recursive=True)
