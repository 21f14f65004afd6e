"""Regressions of the writer: unusual frames and interruptions."""

from __future__ import annotations

import datetime
import io
import signal
import threading
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.column import scratch
from numparq.column.write.chunk import LeafEncoder
from numparq.errors import SchemaError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def chunked_frame(*chunks: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(chunks)))})


def read(data: bytes | None) -> Any:
    return pq.read_table(io.BytesIO(data or b""))


# --- Arrow's dictionaries ---------------------------------------------------------------------------------------------


def test_dictionary_with_equal_values():
    array = pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, None], pa.int8()), pa.array(["x", "y", "x"]))
    for part in (array, array.slice(1, 2)):
        data = numparq.to_parquet(chunked_frame(part))
        assert read(data)["a"].to_pylist() == part.to_pylist()


def test_merged_dictionaries_beyond_the_index_type():
    small = pa.dictionary(pa.int8(), pa.string())
    chunks = [pa.array([f"{letter}{i}" for i in range(100)]).dictionary_encode().cast(small) for letter in "ab"]
    data = numparq.to_parquet(chunked_frame(*chunks), row_group_size=70)
    assert read(data)["a"].to_pylist() == chunks[0].to_pylist() + chunks[1].to_pylist()
    assert pa.types.is_dictionary(read(data)["a"].type)


@pytest.mark.parametrize(
    "values",
    [pa.array([1.0, 2.0], pa.float16()), pa.nulls(2), pa.array(["x", None])],
    ids=["half floats", "nulls", "a null"],
)
def test_dictionaries_that_pyarrow_cannot_unify(values: Any):
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), values)
    other = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), values[::-1])
    data = numparq.to_parquet(chunked_frame(array, other), row_group_size=3)
    assert read(data)["a"].to_pylist() == array.to_pylist() + other.to_pylist()


def lists_of(array: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array(range(0, len(array) + 1, 2), pa.int32()), array)


@pytest.mark.parametrize(
    "values",
    [pa.array([1.0, 2.0], pa.float16()), pa.nulls(2), pa.array(["x", None]), pa.array([str(i) for i in range(100)])],
    ids=["half floats", "nulls", "a null", "too many"],
)
def test_nested_dictionaries_that_pyarrow_cannot_unify(values: Any):
    codes = pa.array([0, 1, None, *range(len(values)), 0], pa.int8())
    others = values[::-1] if len(values) == 2 else pa.array([f"b{i}" for i in range(len(values))])
    chunks = [lists_of(pa.DictionaryArray.from_arrays(codes, dictionary)) for dictionary in (values, others)]
    data = numparq.to_parquet(chunked_frame(*chunks), row_group_size=3)
    assert read(data)["a"].to_pylist() == [row for chunk in chunks for row in chunk.to_pylist()]


# --- indexes ----------------------------------------------------------------------------------------------------------


def test_index_level_of_complex_numbers():
    index = pd.MultiIndex.from_arrays([[1j, 2 + 1j, 1j], [1, 2, 3]], names=["z", "n"])
    data = numparq.to_parquet(pd.DataFrame({"a": range(3)}, index=index))
    assert read(data)["z"].to_pylist() == [{"real": z.real, "imag": z.imag} for z in (1j, 2 + 1j, 1j)]


# --- objects ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_timedeltas_beyond_64_bits_of_microseconds(sign: int):
    longest = datetime.timedelta(microseconds=(1 << 63) - 1)
    df = pd.DataFrame({"a": pd.Series([sign * longest], dtype=object)})
    assert read(numparq.to_parquet(df))["a"].cast(pa.int64()).to_pylist() == [sign * ((1 << 63) - 1)]
    df = pd.DataFrame({"a": pd.Series([datetime.timedelta(days=sign * 999_999_999)], dtype=object)})
    with pytest.raises(SchemaError, match="range"):
        numparq.to_parquet(df)


@pytest.mark.parametrize("value", [[1e39], [1e39, 1], [10**39, 1.0]], ids=str)
def test_numbers_in_lists_that_overflow_float32(value: list):
    schema = pa.schema([("a", pa.list_(pa.float32()))])
    with pytest.raises(SchemaError, match="beyond the range of float32"):
        numparq.to_parquet(pd.DataFrame({"a": [value]}), schema=schema)
    infinite = pd.DataFrame({"a": [[float("inf"), 2, -1.5]]})
    assert read(numparq.to_parquet(infinite, schema=schema))["a"].to_pylist() == infinite["a"].tolist()


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [None, "RLE"])
def test_bools_whose_bytes_are_not_0_and_1(encoding: str | None):
    mask = np.array([0, 255, 2, 1, 0] * 20, np.uint8)
    df = pd.DataFrame({"a": pd.Series(mask.view(bool), copy=False)})
    for frame in (df, df.astype("boolean")):
        data = numparq.to_parquet(frame, column_encoding=encoding)
        assert read(data)["a"].to_pylist() == (mask > 0).tolist()


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [{"a": True}, {"a": True, "b": False}, ["a"]], ids=str)
def test_byte_stream_split_applies_to_named_columns(split: Any):
    df = pd.DataFrame({"a": [1.5, 2.5], "b": [1.5, 2.5]})
    group = pq.read_metadata(io.BytesIO(numparq.to_parquet(df, use_byte_stream_split=split) or b"")).row_group(0)
    assert ["BYTE_STREAM_SPLIT" in group.column(number).encodings for number in (0, 1)] == [True, False]


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs Unix signals")
def test_interrupt_releases_buffers_after_all_threads_end(monkeypatch: pytest.MonkeyPatch):
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        pytest.skip("SIGINT is ignored, as in background jobs of shells")
    df = pd.DataFrame({"a": np.arange(5000), "b": np.arange(5000)})
    numparq.to_parquet(df, threads=2)  # loads the kernels, so that jobs are quick
    encode, running, done, released = LeafEncoder.encode, threading.Event(), threading.Event(), []

    def slow(*arguments: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            running.wait(10)
            encoded = encode(*arguments)
            done.set()
            return encoded
        running.set()
        done.wait(10)
        time.sleep(0.1)  # the main thread waits, without a job
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
        time.sleep(0.1)
        released.append(bool(scratch._idle))
        return encode(*arguments)

    monkeypatch.setattr(LeafEncoder, "encode", slow)
    monkeypatch.setattr(scratch, "_idle", [])
    with pytest.raises(KeyboardInterrupt):
        numparq.to_parquet(df, threads=2)
    assert released == [False]
    assert len(scratch._idle) > 0


# --- after a failure --------------------------------------------------------------------------------------------------


def test_aborted_writer_has_no_bytes():
    writer = numparq.ParquetWriter(None)
    writer.write(pd.DataFrame({"a": [1]}))
    writer.abort()
    with pytest.raises(ValueError, match="aborted"):
        writer.getvalue()


@pytest.mark.parametrize(
    ("values", "have", "wanted"),
    [
        ([[1e300], [1.0]], pa.list_(pa.float64()), pa.list_(pa.float32())),
        ([{"a": 1e300}], pa.struct([("a", pa.float64())]), pa.struct([("a", pa.float32())])),
        ([[("k", 1e300)]], pa.map_(pa.string(), pa.float64()), pa.map_(pa.string(), pa.float32())),
        ([[0]], pa.list_(pa.timestamp("us", "UTC")), pa.list_(pa.timestamp("us"))),
        ([[0]], pa.list_(pa.timestamp("us")), pa.list_(pa.timestamp("us", "Europe/Berlin"))),
    ],
)
def test_lossy_casts_of_nested_arrow_data_are_refused(values, have, wanted):
    df = pd.DataFrame({"a": pd.array(pa.array(values, have), dtype=pd.ArrowDtype(have))})
    with pytest.raises(numparq.SchemaError, match="within nested data"):
        numparq.to_parquet(df, schema=pa.schema([("a", wanted)]))


def test_lossless_casts_of_nested_arrow_data():
    df = pd.DataFrame({"a": pd.array(pa.array([[1], None, [2, 3]]), dtype=pd.ArrowDtype(pa.list_(pa.int64())))})
    data = numparq.to_parquet(df, schema=pa.schema([("a", pa.list_(pa.int8()))]))
    assert pq.read_table(io.BytesIO(data))["a"].to_pylist() == [[1], None, [2, 3]]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("values", [["a", "b", None, "a"], [b"a", b"b", None, b"a"]])
def test_pyarrow_reads_categories_without_a_dictionary(tmp_path, encoding: str, values: list):
    frame = pd.DataFrame({"c": pd.Categorical(values, ordered=True), "n": [1, 2, 3, 4]})
    path = tmp_path / "a.parquet"
    numparq.to_parquet(frame, path, column_encoding={"c": encoding})
    assert pq.read_table(path)["c"].to_pylist() == values
    pd.testing.assert_frame_equal(numparq.read_parquet(path), frame)
    numparq.to_parquet(frame, path)
    assert pa.types.is_dictionary(pq.read_schema(path).field("c").type)
    numparq.to_parquet(frame, path, append=True, column_encoding={"c": encoding})
    assert pq.read_table(path)["c"].to_pylist() == values * 2
    assert numparq.read_parquet(path)["c"].dtype == frame["c"].dtype


def test_pyarrow_reads_nested_dictionaries_without_a_dictionary():
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    field = pa.field("c", pa.list_(words.type), metadata={"k": "v"})
    table = pa.table([pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), words)], schema=pa.schema([field]))
    for encoding in ("DELTA_BYTE_ARRAY", "PLAIN"):
        data = io.BytesIO(numparq.to_parquet(table, column_encoding=encoding))
        assert pq.read_table(data)["c"].to_pylist() == [["a"], ["b", "a"]]
        assert pa.types.is_dictionary(pq.read_schema(data).field("c").type.value_type) == (encoding == "PLAIN")
