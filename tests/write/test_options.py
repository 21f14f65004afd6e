"""`to_parquet` and `ParquetWriter`: effects of options, refused arguments, and what remains after errors."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import SchemaError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def frame(rows: int = 1000) -> pd.DataFrame:
    random = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "number": np.arange(rows),
            "code": random.integers(0, 50, rows).astype("int32"),
            "real": np.where(random.random(rows) < 0.1, np.nan, random.standard_normal(rows)),
            "flag": random.random(rows) < 0.5,
            "moment": np.datetime64("2026-01-01", "us") + random.integers(0, 10**9, rows),
            "text": pd.Series([None if i % 7 == 0 else f"text {i % 90}" for i in range(rows)], dtype="str"),
        }
    )


def pages_of(data: bytes, column: int, row_group: int = 0) -> list[tuple[int, int]]:
    """Return (first row, size in bytes) of each page, from the offset index."""
    with numparq.ParquetFile(data) as file:
        chunk = file.metadata.row_groups[row_group].columns[column]
        start = chunk.offset_index_offset
        assert chunk.offset_index_length > 0
    import thriftpy2.protocol.compact as compact
    import thriftpy2.transport as transport

    from support.thrift_definition import thrift_module

    index = thrift_module().OffsetIndex()
    raw = transport.TMemoryBuffer(data[start : start + chunk.offset_index_length])
    index.read(compact.TCompactProtocol(raw))
    return [(location.first_row_index, location.compressed_page_size) for location in index.page_locations]


def metadata(data: bytes):
    return pq.ParquetFile(io.BytesIO(data)).metadata


# --- round trips -------------------------------------------------------------------------


def test_round_trip_by_bytes_path_and_file_object(tmp_path: Path):
    df = frame()
    data = numparq.to_parquet(df)
    assert isinstance(data, bytes)
    assert numparq.to_parquet(df, tmp_path / "a.parquet") is None
    stream = io.BytesIO()
    assert numparq.to_parquet(df, stream) is None
    assert not stream.closed
    assert (tmp_path / "a.parquet").read_bytes() == data == stream.getvalue()
    pd.testing.assert_frame_equal(numparq.read_parquet(data), df)
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(data), engine="pyarrow"), df)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bytes_do_not_depend_on_threads(threads: int):
    assert numparq.to_parquet(frame(), row_group_size=300, threads=threads) == numparq.to_parquet(
        frame(), row_group_size=300, threads=3
    )


@pytest.mark.parametrize("index", [None, True, False])
@pytest.mark.parametrize("kind", ["range", "text", "multi"])
def test_index_option(index: bool | None, kind: str):
    df = frame(50)
    if kind == "text":
        df = df.set_index("text")
    if kind == "multi":
        df = df.set_index(["code", "moment"])
    expected = io.BytesIO()
    df.to_parquet(expected, engine="pyarrow", index=index)
    data = numparq.to_parquet(df, index=index)
    assert data is not None
    pd.testing.assert_frame_equal(
        pd.read_parquet(io.BytesIO(data), engine="pyarrow"), pd.read_parquet(expected, engine="pyarrow")
    )
    pd.testing.assert_frame_equal(numparq.read_parquet(data), pd.read_parquet(expected, engine="pyarrow"))


def test_no_rows_and_no_columns():
    for df in (frame(0), pd.DataFrame(index=range(5)), pd.DataFrame()):
        data = numparq.to_parquet(df)
        assert data is not None
        pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(data), engine="pyarrow"), df)
        pd.testing.assert_frame_equal(numparq.read_parquet(data), df)


# --- sizes ---------------------------------------------------------------------


def test_row_groups_by_rows_and_bytes():
    df = frame(10_000)
    assert metadata(numparq.to_parquet(df, row_group_size=3000)).num_row_groups == 4
    by_bytes = metadata(numparq.to_parquet(df, row_group_bytes=100_000))
    sizes = [by_bytes.row_group(i).num_rows for i in range(by_bytes.num_row_groups)]
    plain = df.memory_usage(index=False, deep=False).sum() / len(df)
    assert 50_000 < sizes[0] * plain < 200_000
    assert sum(sizes) == len(df)
    both = metadata(numparq.to_parquet(df, row_group_bytes=1 << 30, row_group_size=5000))
    assert both.num_row_groups == 2


def test_pages_by_rows_and_bytes():
    df = frame(10_000)
    data = numparq.to_parquet(df, max_rows_per_page=1000, use_dictionary=False, compression=None)
    assert [row for row, _ in pages_of(data, 2)] == list(range(0, 10_000, 1000))
    data = numparq.to_parquet(df, data_page_size=2048, use_dictionary=False, compression=None)
    pages = pages_of(data, 2)
    assert all(size < 2048 + 300 for _, size in pages)
    assert len(pages) > 30
    pd.testing.assert_frame_equal(numparq.read_parquet(data), df)


def test_default_page_size_depends_on_the_codec():
    """Snappy compresses 64 KiB at a time, others profit from larger pages."""
    rng = np.random.default_rng(0)
    names = ("snappy", None, "zstd", "gzip", "lz4")
    df = pd.DataFrame({str(name): rng.random(50_000) for name in names})
    data = numparq.to_parquet(df, compression={str(name): name for name in names})
    few, many = [0, 20_000, 40_000], [*range(0, 50_000, 8192)]
    for column, expected in enumerate((many, many, few, few, few)):
        assert [row for row, _ in pages_of(data, column)] == expected
    data = numparq.to_parquet(df[["snappy"]], data_page_size=1 << 20)
    assert [row for row, _ in pages_of(data, 0)] == few


def test_row_group_alignment():
    data = numparq.to_parquet(frame(3000), row_group_size=1000, row_group_alignment=8192)
    footer = metadata(data)
    for i in range(3):
        chunk = footer.row_group(i).column(0)
        assert min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))) % 8192 == 0
    pd.testing.assert_frame_equal(numparq.read_parquet(data), frame(3000))


def test_row_group_alignment_is_limited():
    with pytest.raises(ValueError, match=r"row_group_alignment must be at most 1,073,741,824, not 1,000,000,000,000"):
        numparq.to_parquet(frame(3), row_group_alignment=10**12)


# --- footer and indexes ------------------------------------------------------------------


def test_footer_fields():
    data = numparq.to_parquet(
        frame(),
        key_value_metadata={"who": "me", "raw": "ü".encode()},
        sorting_columns=["number", ("code", "descending")],
    )
    with numparq.ParquetFile(data) as file:
        footer = file.metadata
        assert footer.version == 1
        assert footer.created_by.startswith("numparq version ")
        assert [key.key for key in footer.key_value_metadata if key.key in ("who", "raw")] == ["who", "raw"]
        group = footer.row_groups[0]
        assert [(one.column_idx, one.descending) for one in group.sorting_columns] == [(0, False), (1, True)]
        assert all(chunk.file_offset == 0 for chunk in group.columns)
        assert group.ordinal == 0
        assert group.total_compressed_size == sum(chunk.meta_data.total_compressed_size for chunk in group.columns)
        real = group.columns[2].meta_data
        assert real.statistics.nan_count == 0
        assert real.statistics.null_count == frame()["real"].isna().sum()
        assert real.statistics.is_min_value_exact
        assert real.size_statistics is None
        assert group.columns[5].meta_data.size_statistics.unencoded_byte_array_data_bytes > 0
        assert [str(order.which()) for order in footer.column_orders] == ["TYPE_ORDER"] * 6
    assert b"ARROW:schema" not in numparq.to_parquet(frame(), store_schema=False)


def test_indexes_are_stored_before_the_footer():
    data = numparq.to_parquet(
        frame(3000), row_group_size=1000, bloom_filter_options={"text": True, "code": {"fpp": 0.1}}
    )
    with numparq.ParquetFile(data) as file:
        groups = [list(group.columns) for group in file.metadata.row_groups]
    last_page = max(chunk.meta_data.data_page_offset for chunks in groups for chunk in chunks)
    blooms = [
        chunk.meta_data.bloom_filter_offset
        for chunks in groups
        for chunk in chunks
        if chunk.meta_data.bloom_filter_offset
    ]
    columns = [[chunk.column_index_offset for chunk in chunks] for chunks in groups]
    offsets = [[chunk.offset_index_offset for chunk in chunks] for chunks in groups]
    order = [*blooms, *(location for pair in zip(columns, offsets, strict=True) for part in pair for location in part)]
    assert len(blooms) == 6
    assert order == sorted(order)
    assert last_page < order[0]


def test_page_index_and_statistics_options():
    data = numparq.to_parquet(frame(), write_page_index=False)
    with numparq.ParquetFile(data) as file:
        assert file.metadata.row_groups[0].columns[0].offset_index_offset is None
    none = numparq.to_parquet(frame(), write_statistics=["code"])
    row_group = metadata(none).row_group(0)
    assert row_group.column(1).statistics is not None
    assert row_group.column(0).statistics is None
    assert row_group.column(1).has_column_index
    assert not row_group.column(0).has_column_index


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_page_checksums(version: str):
    data = bytearray(
        numparq.to_parquet(frame(), data_page_version=version, compression=None, use_dictionary=False) or b""
    )
    location = metadata(bytes(data)).row_group(0).column(2).data_page_offset + 600
    data[location] ^= 1
    with pytest.raises(numparq.CorruptPageError, match="checksum"):
        numparq.read_parquet(bytes(data), columns=["real"])


def test_codec_level_and_encoding_per_column():
    data = numparq.to_parquet(
        frame(),
        compression={"number": "zstd", "text": "gzip", "real": None},
        compression_level={"number": 19},
        column_encoding={"number": "DELTA_BINARY_PACKED", "real": "BYTE_STREAM_SPLIT", "text": "DELTA_BYTE_ARRAY"},
    )
    group = metadata(data).row_group(0)
    codecs = [group.column(i).compression for i in range(6)]
    assert codecs == ["ZSTD", "SNAPPY", "UNCOMPRESSED", "SNAPPY", "SNAPPY", "GZIP"]
    assert [group.column(i).encodings[-1] for i in (0, 2, 5)] == [
        "DELTA_BINARY_PACKED",
        "BYTE_STREAM_SPLIT",
        "DELTA_BYTE_ARRAY",
    ]
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(data), engine="pyarrow"), frame())
    pd.testing.assert_frame_equal(numparq.read_parquet(data), frame())


def nested_frame() -> pd.DataFrame:
    """Return a struct of a list, a string and a flag, a map from strings to numbers, a list of flags and integers."""
    rows = [{"numbers": [i, i + 1], "text": f"text {i % 3}", "flag": i % 2 == 0} for i in range(50)]
    maps = pd.array([[(f"key {i % 3}", i * 1.5)] for i in range(50)], pd.ArrowDtype(pa.map_(pa.string(), pa.float64())))
    return pd.DataFrame({"struct": rows, "map": maps, "flags": [[True]] * 50, "flat": range(50)})


def column_chunks(**options) -> dict[str, pq.ColumnChunkMetaData]:
    data = numparq.to_parquet(nested_frame(), **options)
    pd.testing.assert_frame_equal(numparq.read_parquet(data, columns=["flat"]), nested_frame()[["flat"]])
    assert pq.read_table(io.BytesIO(data))["struct"].to_pylist() == nested_frame()["struct"].tolist()
    group = metadata(data).row_group(0)
    return {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}


def paths_with_encoding(encoding: str, chunks: dict[str, pq.ColumnChunkMetaData]) -> list[str]:
    return [path for path, chunk in chunks.items() if encoding in chunk.encodings]


NUMBERS, TEXT, FLAG = "struct.numbers.list.element", "struct.text", "struct.flag"
KEY, VALUE = "map.key_value.key", "map.key_value.value"


def test_group_options_apply_to_leaves_and_the_closest_name_wins():
    compression = {"struct": "gzip", "struct.numbers": "zstd", "map": "none", VALUE: "brotli"}
    chunks = column_chunks(compression=compression, compression_level={"struct.numbers": 3})
    codecs = {path: chunk.compression for path, chunk in chunks.items()}
    assert codecs == {
        NUMBERS: "ZSTD",
        TEXT: "GZIP",
        FLAG: "GZIP",
        KEY: "UNCOMPRESSED",
        VALUE: "BROTLI",
        "flags.list.element": "SNAPPY",
        "flat": "SNAPPY",
    }


def test_groups_in_lists_and_dicts_of_flags():
    chunks = column_chunks(write_statistics=["struct.numbers", "map"])
    assert [path for path, chunk in chunks.items() if chunk.is_stats_set] == [NUMBERS, KEY, VALUE]
    chunks = column_chunks(write_statistics={"struct": False, NUMBERS: True})
    assert [path for path, chunk in chunks.items() if not chunk.is_stats_set] == [TEXT, FLAG]
    assert paths_with_encoding("RLE_DICTIONARY", column_chunks()) == [TEXT, KEY]
    assert paths_with_encoding("RLE_DICTIONARY", column_chunks(use_dictionary=["struct", "flat"])) == [TEXT]
    assert paths_with_encoding("RLE_DICTIONARY", column_chunks(use_dictionary={"struct": False})) == [KEY]


def test_group_encodings_and_bloom_filters_apply_to_suitable_leaves():
    chunks = column_chunks(
        column_encoding={"struct": "DELTA_BYTE_ARRAY", "map": "BYTE_STREAM_SPLIT"},
        bloom_filter_options={"struct": True, TEXT: False},
    )
    assert paths_with_encoding("DELTA_BYTE_ARRAY", chunks) == [TEXT]
    assert paths_with_encoding("BYTE_STREAM_SPLIT", chunks) == [VALUE]
    assert [path for path, chunk in chunks.items() if chunk.bloom_filter_offset] == [NUMBERS]
    with pytest.raises(ValueError, match="'map' of physical type binary and double"):
        column_chunks(column_encoding={"map": "DELTA_BINARY_PACKED"})
    with pytest.raises(SchemaError, match=r"BOOLEAN.*'flags'"):
        column_chunks(bloom_filter_options={"flags": True})


def test_dictionary_size_limit():
    df = pd.DataFrame({"a": [f"value number {i % 5000}" for i in range(20_000)]})
    with_one = metadata(numparq.to_parquet(df)).row_group(0).column(0)
    without = metadata(numparq.to_parquet(df, dictionary_pagesize_limit=10_000)).row_group(0).column(0)
    assert "RLE_DICTIONARY" in with_one.encodings
    assert "RLE_DICTIONARY" not in without.encodings


def test_categories_of_bools_have_no_dictionary():
    df = pd.DataFrame({"a": pd.Categorical([True, False, None, True])})
    data = numparq.to_parquet(df)
    assert "RLE_DICTIONARY" not in metadata(data).row_group(0).column(0).encodings
    assert pq.read_table(io.BytesIO(data or b""))["a"].to_pylist() == [True, False, None, True]


@pytest.mark.parametrize("rows", [0, 3])
def test_dictionary_of_nulls_only(rows):
    codes = pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()), pa.nulls(0))
    data = numparq.to_parquet(pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(codes))}))
    assert pq.read_table(io.BytesIO(data or b""))["a"].to_pylist() == [None] * rows


# --- several frames ---------------------------------------------------------------------


def test_several_frames(tmp_path: Path):
    path = tmp_path / "a.parquet"
    parts = [frame(300).iloc[start : start + 100] for start in (0, 100, 200)]
    with numparq.ParquetWriter(path) as writer:
        for part in parts:
            writer.write(part)
            assert not path.exists()
    assert metadata(path.read_bytes()).num_row_groups == 3
    pd.testing.assert_frame_equal(numparq.read_parquet(path), frame(300))
    pd.testing.assert_frame_equal(pd.read_parquet(path, engine="pyarrow"), frame(300))


def test_different_schemas_are_refused(tmp_path: Path):
    path = tmp_path / "a.parquet"
    with pytest.raises(SchemaError, match="'code'"), numparq.ParquetWriter(path) as writer:
        writer.write(frame(10))
        writer.write(frame(10).astype({"code": "str"}))
    assert os.listdir(tmp_path) == []


def test_writer_without_frames_is_an_error(tmp_path: Path):
    with pytest.raises(SchemaError, match="without rows needs a schema"), numparq.ParquetWriter(tmp_path / "a.parquet"):
        pass
    assert os.listdir(tmp_path) == []


def test_exception_preserves_the_earlier_file(tmp_path: Path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(frame(10), path)
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), numparq.ParquetWriter(path) as writer:
        writer.write(frame(1000))
        1 / 0  # noqa: B018
    df = frame(10)
    df["text"] = [b"bytes", "text"] * 5
    with pytest.raises(SchemaError, match="text"):
        numparq.to_parquet(df.astype({"text": object}), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.parquet"]
    with pytest.raises(ValueError, match="closed"):
        writer.write(frame(1))


@pytest.mark.parametrize(("groups", "footers"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_last_checkpoint_is_the_footer(groups: int, footers: int):
    with numparq.ParquetWriter(None, checkpoint_row_groups=2) as writer:
        for number in range(groups):
            writer.write(pd.DataFrame({"a": [number]}))
    data = writer.getvalue()
    assert data.count(b"PAR1") == 1 + footers
    assert numparq.read_parquet(data)["a"].tolist() == list(range(groups))


def test_checkpoint_with_outdated_metadata_is_followed_by_a_footer():
    with numparq.ParquetWriter(None, checkpoint_row_groups=1) as writer:
        writer.write(pd.DataFrame({"a": pd.Categorical(["x"])}))
        writer.write(pd.DataFrame({"a": pd.Categorical([], categories=list("xyz"))}))
    data = writer.getvalue()
    assert data.count(b"PAR1") == 3
    entry = json.loads(pq.read_metadata(io.BytesIO(data)).metadata[b"pandas"])["columns"][0]
    assert entry["metadata"]["num_categories"] == 3


# --- wrong arguments ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"compression": "zip"}, ValueError, "snappy"),
        ({"compression": {"nothing": "zstd"}}, SchemaError, "nothing"),
        ({"use_dictionary": ["txet"]}, SchemaError, "'txet', which does not exist; did you mean 'text'"),
        ({"write_statistics": {"text.x": False}}, SchemaError, "'text.x', which does not exist; did you mean 'text'"),
        ({"compression": "zstd", "compression_level": 99}, ValueError, "22"),
        ({"compression_level": {"text": 3}}, ValueError, "SNAPPY"),
        ({"column_encoding": {"text": "DELTA_BINARY_PACKED"}}, ValueError, "text"),
        ({"column_encoding": "MORSE"}, ValueError, "PLAIN"),
        ({"data_page_version": "3.0"}, ValueError, "2.0"),
        ({"data_page_size": 0}, ValueError, "at least 1"),
        ({"row_group_size": 0}, ValueError, "at least 1"),
        ({"row_group_size": 1.5}, TypeError, "must be an int"),
        ({"bloom_filter_options": {"text": {"fpp": 2}}}, ValueError, "between 0 and 1"),
        ({"bloom_filter_options": {"text": {"size": 2}}}, TypeError, "fpp"),
        ({"bloom_filter_options": {"flag": True}}, SchemaError, "BOOLEAN"),
        ({"sorting_columns": ["nothing"]}, SchemaError, "nothing"),
        ({"column_order": "random"}, ValueError, "ieee754"),
    ],
)
def test_invalid_arguments(tmp_path: Path, options: dict, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        numparq.to_parquet(frame(20), tmp_path / "a.parquet", **options)
    assert os.listdir(tmp_path) == []


def test_hadoop_lz4_warns():
    with pytest.warns(DeprecationWarning, match="lz4"):
        data = numparq.to_parquet(frame(), compression="lz4_hadoop")
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(data or b""), engine="pyarrow"), frame())
