"""Columns with 2**31 bytes or values and more in a row group: only slow tests are so large, others lower the limits."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from numparq import ParquetFile, read_parquet, to_parquet
from numparq.column.buffers import BinaryArray
from numparq.to_pandas import arrow
from numparq.to_pandas.nested import arrow as nested_arrow
from support.files.builder import (
    BYTE_ARRAY,
    REPEATED,
    FileColumn,
    build_file,
    data_page,
    dictionary_page,
    encode_indices,
    encode_plain,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TEXTS = [["abcdef", "gh"], [], None, ["ijklmn", None, "opqrstu"], ["", "vwxyz"]]


@pytest.fixture
def low_limits(monkeypatch):
    monkeypatch.setattr(arrow, "_MAX_OFFSET", 10)
    monkeypatch.setattr(nested_arrow, "_MAX_BYTES", 10)
    monkeypatch.setattr(nested_arrow, "_MAX_ELEMENTS", 5)


def stored(array, **options) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": array}), sink, **options)
    return sink.getvalue().to_pybytes()


def read(array, **options):
    return read_parquet(stored(array), dtype_backend="pyarrow", **options)["a"]


@pytest.mark.usefixtures("low_limits")
@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_lists_with_too_many_bytes_use_large_values(kind):
    texts = pa.array(TEXTS, pa.list_(pa.string())).cast(pa.list_(kind))
    got = read(texts)
    assert got.dtype.pyarrow_dtype.value_type == (pa.large_binary() if kind == pa.binary() else pa.large_string())
    assert got.array.__arrow_array__().to_pylist() == texts.to_pylist()


@pytest.mark.usefixtures("low_limits")
def test_json_with_too_many_bytes():
    texts = ['{"a": 1}', None, '{"bcdefgh": 2}']
    array = pa.StructArray.from_arrays([pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))], ["j"])
    got = read(array).array.__arrow_array__()
    assert [item["j"] and str(item["j"]) for item in got.to_pylist()] == texts


@pytest.mark.usefixtures("low_limits")
def test_lists_with_too_many_elements_use_large_list():
    numbers = [[1, 2], [], None, [3, None, 5], [6]]
    got = read(pa.array(numbers, pa.list_(pa.int32())))
    assert got.dtype == pd.ArrowDtype(pa.large_list(pa.field("element", pa.int32())))
    assert got.array.__arrow_array__().to_pylist() == numbers
    few = read(pa.array(numbers[:3], pa.list_(pa.int32())))
    assert few.dtype == pd.ArrowDtype(pa.list_(pa.field("element", pa.int32())))


@pytest.mark.usefixtures("low_limits")
def test_structs_and_maps_with_too_many_bytes():
    structs = [{"s": text, "n": number} for number, text in enumerate(["abcdef", None, "ghijkl", "mn"])]
    got = read(pa.array(structs, pa.struct([("s", pa.string()), ("n", pa.int64())])))
    assert got.dtype.pyarrow_dtype.field("s").type == pa.large_string()
    assert got.array.__arrow_array__().to_pylist() == structs
    maps = [[("abcdef", "gh")], None, [], [("ijkl", "mnopqrst"), ("uv", None)]]
    got = read(pa.array(maps, pa.map_(pa.string(), pa.string())))
    assert got.dtype == pd.ArrowDtype(pa.map_(pa.large_string(), pa.string()))
    assert got.array.__arrow_array__().to_pylist() == maps
    maps = [[("a", 1), ("b", 2), ("c", 3)], [("d", 4), ("e", 5), ("f", 6)]]
    got = read(pa.array(maps, pa.map_(pa.string(), pa.int64())))
    assert pa.types.is_large_list(got.dtype.pyarrow_dtype)  # Arrow has no map with 64-bit offsets
    pairs = [[(item["key"], item["value"]) for item in row] for row in got.array.__arrow_array__().to_pylist()]
    assert pairs == maps


@pytest.mark.usefixtures("low_limits")
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=str)
def test_flat_columns_with_too_many_bytes_keep_their_type(kind):
    texts = ["abcdef", None, "ghijklmnopqrs", "", "tuvwx", "yz", None, "0123456789abcdef", "x"]
    array = pa.array(texts).cast(kind)
    got = read(array)
    assert got.dtype == pd.ArrowDtype(kind)
    assert got.array.__arrow_array__().to_pylist() == array.to_pylist()


@pytest.mark.usefixtures("low_limits")
def test_dictionary_type_without_dictionary_pages():
    """ARROW:schema has a dictionary type, but the chunk has no dictionary page."""
    texts = pa.array(["abcdef", "ghijkl", None, "abcdef", "mnopqr"]).dictionary_encode()
    data = stored(texts, use_dictionary=False)
    got = read_parquet(data, dtype_backend="pyarrow")["a"]
    assert got.dtype == pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    assert got.array.__arrow_array__().to_pylist() == texts.to_pylist()


@pytest.mark.parametrize("lengths", [[6, 6, 6], [20, 1], [1, 20], [4, 4, 4, 4, 20, 0, 0, 3]], ids=str)
def test_split_at_31_bits_starts_each_part_at_zero(monkeypatch, lengths):
    """This holds for a part with a single long value, too."""
    monkeypatch.setattr(arrow, "_MAX_OFFSET", 10)
    offsets = np.cumsum([0, *lengths])
    data = np.arange(offsets[-1], dtype=np.uint8)
    parts = arrow._split_at_31_bits(BinaryArray(offsets, data))
    assert all(part.offsets[-1] <= 10 or len(part) == 1 for part in parts)
    values = [part.data[start:stop].tobytes() for part in parts for start, stop in pairwise(part.offsets)]
    assert values == [data[start:stop].tobytes() for start, stop in pairwise(offsets)]
    assert all(part.offsets[-1] <= max(10, *lengths) for part in parts)


# --- more than 2 GiB ---

SIZE = (1 << 31) + (100 << 20)
TEXT = 1 << 20


def texts_of_a_dictionary() -> bytes:
    """Build a small file with one column of lists: 2,148 strings of 1 MiB from a dictionary with two entries."""
    count = SIZE // TEXT
    lengths = [0, 1, 3] * (count // 4)
    codes = [number % 2 for number in range(sum(lengths))]
    repetition = [level for length in lengths for level in ([0] + [1] * (length - 1))]
    definition = [level for length in lengths for level in ([1] * length or [0])]
    sections = b"".join(
        len(encode_indices(part, 1)).to_bytes(4, "little") + encode_indices(part, 1)
        for part in (repetition, definition)
    )
    entries = [b"x" * (TEXT - 1) + b"y", b"z" * TEXT]
    pages = [
        dictionary_page(2, encode_plain(BYTE_ARRAY, entries)),
        data_page(len(definition), sections + b"\x01" + encode_indices(codes, 1), 8),
    ]
    column = FileColumn("a", BYTE_ARRAY, [pages], REPEATED, {"converted_type": 0}, {"num_values": len(definition)})
    return build_file([len(lengths)], [column]).stored()


def first_and_last(value) -> tuple[int, str, str]:
    return len(value), value[0], value[-1]


EXPECTED = [(TEXT, "x", "y"), (TEXT, "z", "z")]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_lists_beyond_2_gib(backend):
    """The file is small by its dictionary. Strings of the last lists lie beyond 2 GiB."""
    got = read_parquet(texts_of_a_dictionary(), dtype_backend=backend)
    lengths = [0, 1, 3] * (SIZE // TEXT // 4)
    if backend == "pyarrow":
        array = got["a"].array.__arrow_array__().chunk(0)
        assert array.type == pa.list_(pa.field("element", pa.large_string(), False))
        assert array.flatten().get_total_buffer_size() > 1 << 31
        tail = [item.as_py() for item in array[-6:]]
        assert pa.compute.list_value_length(array).to_pylist() == lengths
    else:
        tail = got["a"][-6:].tolist()
        assert got["a"].map(len).tolist() == lengths
    number = sum(lengths[:-6])
    for row, length in zip(tail, lengths[-6:], strict=True):
        assert [first_and_last(text) for text in row] == [EXPECTED[(number + i) % 2] for i in range(length)]
        number += length
    del got, tail
    gc.collect()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flat", "nested"])
def test_round_trip_beyond_2_gib(tmp_path, kind):
    """One row group of strings, flat or in lists, that zstd compresses well."""
    count = SIZE // TEXT
    text = "w" * (TEXT - 1) + "v"
    frame = pd.DataFrame({"a": pd.Series([text if kind == "flat" else [text]] * count, dtype=object)})
    to_parquet(frame, tmp_path / "file", compression="zstd", use_dictionary=False, row_group_size=count)
    assert (tmp_path / "file").stat().st_size < 50 << 20
    del frame
    assert ParquetFile(tmp_path / "file").num_row_groups == 1
    for backend in ("numpy_nullable", "pyarrow"):
        got = read_parquet(tmp_path / "file", dtype_backend=backend)["a"]
        assert len(got) == count
        for row in (0, count // 2, count - 1):
            value = got.iloc[row]
            assert first_and_last(value if kind == "flat" else value[0]) == (TEXT, "w", "v")
        if backend == "pyarrow" and kind == "flat":
            assert got.array.__arrow_array__().num_chunks > 1  # each with 31-bit offsets
        elif backend == "pyarrow":
            assert got.dtype.pyarrow_dtype.value_type == pa.large_string()
        del got, value
        gc.collect()
