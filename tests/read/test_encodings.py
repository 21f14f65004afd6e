"""Delta encodings and BYTE_STREAM_SPLIT: files of pyarrow and DuckDB, and hand-built ones."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pytest

from numparq import CorruptPageError, ParquetFile, read_parquet
from numparq.kernels.encodings.delta_binary_packed import max_delta_bytes
from numparq.kernels.encodings.delta_byte_arrays import max_delta_byte_array_bytes, max_delta_length_bytes
from numparq.kernels.kernel_groups import delta_writing_kernels, writing_kernels
from support.compare import (
    BACKENDS,
    assert_equal_to_pandas,
    assert_frames_equal,
    backend_options,
    read_by_pandas,
    write_by_pyarrow,
)
from support.files.builder import (
    BYTE_ARRAY,
    DOUBLE,
    INT32,
    INT64,
    OPTIONAL,
    PLAIN,
    RLE_DICTIONARY,
    FileColumn,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_indices,
    encode_levels,
    encode_plain,
    extended_idl,
)
from support.kernels.page_encoding import encode_delta
from support.oracles import delta

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NUMBERS, LENGTHS, STRINGS, STREAMS = 5, 6, 7, 9
NAMES = {
    NUMBERS: "DELTA_BINARY_PACKED",
    LENGTHS: "DELTA_LENGTH_BYTE_ARRAY",
    STRINGS: "DELTA_BYTE_ARRAY",
    STREAMS: "BYTE_STREAM_SPLIT",
}
ROWS = 3000


def columns(missing: np.ndarray | None) -> dict[str, tuple]:
    """Return (encodings, values) for a column of every type that the encodings support."""
    rng = np.random.default_rng(8)
    small = rng.integers(-100, 100, ROWS)
    large = rng.integers(-(2**62), 2**62, ROWS)
    moments = (rng.integers(0, 10**6, ROWS).cumsum() * 10**6).astype("M8[us]")
    words = [f"a word {number // 5}, {'é' * (number % 7)}" for number in rng.integers(0, 5000, ROWS)]
    octets = [word.encode()[::-1] for word in words]
    decimals = [decimal.Decimal(int(number)) / 100 for number in small * 1001]

    def array(values, kind):
        return pa.array(values, kind, mask=missing)

    numbers, text, fixed = (NUMBERS, STREAMS), (LENGTHS, STRINGS), (STRINGS, STREAMS)
    typed_columns = {
        "int8": (numbers, array(small.astype("i1"), pa.int8())),
        "uint16": (numbers, array(abs(small).astype("u2"), pa.uint16())),
        "int32": (numbers, array((large >> 31).astype("i4"), pa.int32())),
        "uint32": (numbers, array((large & 0xFFFFFFFF).astype("u4"), pa.uint32())),
        "int64": (numbers, array(small.cumsum(), pa.int64())),
        "large": (numbers, array(large, pa.int64())),
        "uint64": (numbers, array(large.view("u8"), pa.uint64())),
        "date": (numbers, array(small.astype("i4"), pa.date32())),
        "moment": (numbers, array(moments, pa.timestamp("us", "UTC"))),
        "span": (numbers, array(small.astype("m8[ms]"), pa.duration("ms"))),
        "float": ((STREAMS,), array(small.astype("f4"), pa.float32())),
        "double": ((STREAMS,), array(large / 7, pa.float64())),
        "half": (fixed, array(small.astype("f2"), pa.float16())),
        "decimal": (fixed, array(decimals, pa.decimal128(20, 2))),
        "fixed": (fixed, array([octet[:6] for octet in octets], pa.binary(6))),
        "string": (text, array(sorted(words), pa.string())),
        "words": (text, array(words, pa.string())),
        "binary": (text, array(octets, pa.binary())),
    }
    if missing is not None:  # numparq does not round these to float64, as pandas does
        del typed_columns["large"], typed_columns["uint64"]
    return typed_columns


def tables(nulls: bool):
    """Yield two tables with the encoding of each column. Together they cover the encodings of each type."""
    missing = np.random.default_rng(1).random(ROWS) < 0.2 if nulls else None
    typed_columns = columns(missing)
    for choice in (0, -1):
        encodings = {name: NAMES[choices[choice]] for name, (choices, _) in typed_columns.items()}
        yield pa.table({name: values for name, (_, values) in typed_columns.items()}), encodings


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("nulls", [False, True])
def test_pyarrow_files(nulls, version, dtype_backend):
    for number, (table, encodings) in enumerate(tables(nulls)):
        codec = ("none", "snappy", "zstd")[(number + nulls + (version == "2.0")) % 3]
        data = write_by_pyarrow(
            table,
            use_dictionary=False,
            column_encoding=encodings,
            data_page_version=version,
            compression=codec,
            data_page_size=3000,
            row_group_size=1700,
        )
        used = {column.path_in_schema: column.encodings for column in chunk_metadata(data)}
        assert all(name in used[column] for column, name in encodings.items())
        for threads in (1, 2):
            expected = read_by_pandas(data, **backend_options(dtype_backend))
            assert_frames_equal(read_parquet(data, threads=threads, **backend_options(dtype_backend)), expected)


def chunk_metadata(data):
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    return [metadata.row_group(0).column(number) for number in range(metadata.num_columns)]


@pytest.mark.parametrize("nulls", [False, True])
def test_row_ranges_and_projected_columns(nulls):
    for table, encodings in tables(nulls):
        data = write_by_pyarrow(
            table, use_dictionary=False, column_encoding=encodings, data_page_size=2000, row_group_size=1700
        )
        whole = read_by_pandas(data, dtype_backend="pyarrow")
        for start, stop in ((0, 1), (1, 1000), (1600, 1800), (2999, 3000), (5, 5)):
            got = read_parquet(data, row_range=(start, stop), dtype_backend="pyarrow")
            assert_frames_equal(got, whole.iloc[start:stop].reset_index(drop=True))
        for name in encodings:
            assert_equal_to_pandas(data, columns=[name])
        assert read_parquet(data, categories=["words"])["words"].tolist() == read_by_pandas(data)["words"].tolist()


def test_required_and_null_columns():
    for table, encodings in tables(False):
        schema = pa.schema([field.with_nullable(False) for field in table.schema])
        for rows in (0, 1, 2, 33, 200):
            data = write_by_pyarrow(table.slice(0, rows).cast(schema), use_dictionary=False, column_encoding=encodings)
            assert_equal_to_pandas(data)
            assert_equal_to_pandas(data, dtype_backend="pyarrow")
        nulls = pa.table({field.name: pa.nulls(50, field.type) for field in table.schema})
        for version in ("1.0", "2.0"):
            data = write_by_pyarrow(nulls, use_dictionary=False, column_encoding=encodings, data_page_version=version)
            assert_equal_to_pandas(data, dtype_backend="pyarrow")


# --- hand-built files --------------------------------------------------------------------------------------


def read(pages, physical, rows, repetition=0, **more):
    """Build a file with one column and read it with one thread and with two."""
    data = build_file([rows], [FileColumn("a", physical, [pages], repetition, **more)]).stored()
    got = read_parquet(data, threads=1)["a"]
    pd.testing.assert_series_equal(read_parquet(data, threads=2)["a"], got)
    return data, got.tolist()


def test_pages_of_a_chunk_in_all_encodings():
    values = [5, -3, 2**60, 7]
    octets = [value.to_bytes(8, "little", signed=True) for value in values]
    indices = data_page(4, b"\x02" + encode_indices([0, 1, 2, 3], 2), RLE_DICTIONARY)
    pages = [
        dictionary_page(4, encode_plain(INT64, values)),
        indices,
        data_page(4, delta.encode(values, 64), NUMBERS),
        data_page(4, delta.split_byte_streams(octets, 8), STREAMS),
        indices,
        data_page(4, encode_plain(INT64, values), PLAIN),
        data_page_v2(4, 0, b"", delta.encode(values, 64), NUMBERS),
    ]
    assert read(pages, INT64, 24)[1] == values * 6
    words = [b"one", b"", b"onerous", b"two"]
    pages = [
        dictionary_page(4, encode_plain(BYTE_ARRAY, words)),
        indices,
        data_page(4, delta.encode_length(words), LENGTHS),
        indices,
        data_page(4, delta.encode_byte_array(words), STRINGS),
        data_page(4, encode_plain(BYTE_ARRAY, words), PLAIN),
    ]
    data, got = read(pages, BYTE_ARRAY, 20, element={"converted_type": 0})
    assert got == [word.decode() for word in words] * 5
    assert read_parquet(data, categories=["a"])["a"].tolist() == got


def test_pages_decoded_again_for_another_output_type():
    """A value or null that does not fit the output type decodes the pages again, by the same page table."""
    values = [1, 2**60 + 1, 3]
    present = [data_page(4, encode_levels([1, 1, 0, 1]) + delta.encode(values, 64), NUMBERS)]
    statistics = {"statistics": extended_idl().Statistics(null_count=0)}
    data, got = read(present * 2, INT64, 8, OPTIONAL, facts=statistics)
    assert [None if value is pd.NA else value for value in got] == [1, 2**60 + 1, None, 3] * 2
    assert read_parquet(data, row_range=(0, 2))["a"].tolist() == [1, 2**60 + 1]


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_damage_names_the_page(damaged):
    words = [b"one", b"", b"onerous", b"two"]
    cases = (
        (INT64, NUMBERS, delta.encode([1, 2, 3, 2**40], 64), "the data ends too early"),
        (BYTE_ARRAY, LENGTHS, delta.encode_length(words), "a length is negative"),
        (BYTE_ARRAY, STRINGS, delta.encode_byte_array(words), "a length is negative"),
        (DOUBLE, STREAMS, bytes(32), "a length is negative"),
    )
    for physical, encoding, body, message in cases:
        bodies = [body[:-1] if number == damaged else body for number in range(3)]
        if encoding == NUMBERS:
            bodies[damaged] = body[:20]
        pages = [data_page(4, each, encoding) for each in bodies]
        data = build_file([12], [FileColumn("x", physical, [pages])]).stored()
        for options in ({}, {"threads": 2}, {"row_range": (4 * damaged + 1, 4 * damaged + 2)}):
            with pytest.raises(CorruptPageError, match=message) as caught:
                read_parquet(data, **options)
            assert caught.value.where == {"file": "<bytes>", "row_group": 0, "column": "x", "page": damaged}


@pytest.mark.parametrize("encoding", [LENGTHS, STRINGS])
def test_invalid_utf8_names_the_page(encoding):
    encode = delta.encode_length if encoding == LENGTHS else delta.encode_byte_array
    good, bad = [b"one", b"two"], [b"one", b"\xff"]
    pages = [data_page(2, encode(words), encoding) for words in (good, bad, good)]
    column = FileColumn("x", BYTE_ARRAY, [pages], element={"converted_type": 0})
    with pytest.raises(CorruptPageError, match="not valid UTF-8") as caught:
        read_parquet(build_file([6], [column]).stored())
    assert caught.value.where["page"] == 1


def test_duckdb_deltas_wider_than_32_bits(tmp_path):
    """DuckDB's INT32 deltas have up to 34 bits, which pyarrow does not read."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "deltas.parquet"
    numbers = "case i % 3 when 0 then -2147483648 when 1 then 2147483647 - i else i end"
    duckdb.sql(
        f"copy (select ({numbers})::integer a, ({numbers} + 2147483648)::uinteger b, {numbers} * 4294967296 c"
        f" from range(5000) r(i)) to '{path}' (format parquet, parquet_version v2, dictionary_size_limit 1)"
    )
    got, expected = read_parquet(path), duckdb.sql(f"from '{path}'").df()
    assert ParquetFile(path).metadata.row_groups[0].columns[0].meta_data.encodings == [NUMBERS]
    for name in "abc":
        assert got[name].tolist() == expected[name].tolist()


def test_pyarrow_reads_encoded_pages():
    rng = np.random.default_rng(0)
    numbers = rng.integers(-1000, 1000, 1000).cumsum()
    words = [b"word %d" % number for number in abs(numbers)]
    ends = np.cumsum([len(word) for word in words])
    starts = np.concatenate([[0], ends[:-1]])
    octets = np.frombuffer(b"".join(words), "u1")
    lengths, others = np.empty(1000, "i4"), np.empty(1000, "i4")
    kernels, total = delta_writing_kernels, len(octets)
    out = [
        np.zeros(room, "u1")
        for room in (
            max_delta_bytes(1000, 4),
            max_delta_bytes(1000, 8),
            max_delta_length_bytes(1000, total),
            max_delta_byte_array_bytes(1000, total),
            8000,
        )
    ]
    small = numbers.astype("i4")
    ends_at = [
        encode_delta(writing_kernels, small, 0, 1000, out[0]),
        encode_delta(writing_kernels, numbers, 0, 1000, out[1]),
        kernels.encode_delta_length(octets, starts, ends, 0, 1000, lengths, out[2], 0),
        kernels.encode_delta_byte_array(octets, starts, ends, 0, 1000, lengths, others, out[3], 0),
        kernels.encode_byte_stream_split(numbers.view("u1"), 8, 0, 1000, out[4], 0),
    ]
    encodings = (NUMBERS, NUMBERS, LENGTHS, STRINGS, STREAMS)
    physical = (INT32, INT64, BYTE_ARRAY, BYTE_ARRAY, INT64)
    data = build_file(
        [1000],
        [
            FileColumn(str(place), kind, [[data_page(1000, out[place][: ends_at[place]].tobytes(), encoding)]])
            for place, (kind, encoding) in enumerate(zip(physical, encodings, strict=True))
        ],
    ).stored()
    expected = [small.tolist(), numbers.tolist(), words, words, numbers.tolist()]
    table = pq.read_table(pa.BufferReader(data))
    for place, values in enumerate(expected):
        assert table.column(place).to_pylist() == values
        assert read_parquet(data, columns=[str(place)])[str(place)].tolist() == values
