"""Every file of the conformance suite: read as by pyarrow or better, or refused with the expected message.

The tables below list every file of the suite. Add a new file to one of them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import CorruptPageError, DecryptionError, InvalidFileError, read_parquet
from support.compare import BACKENDS, assert_frames_equal, backend_options, nested_values_equal, read_by_pandas

pytest.importorskip("pyarrow")


def lines(text):
    return text.split()


FOLDERS = ("data", "data/geospatial", "data/aes256", "bad_data")

# Files with flat columns only, in supported encodings and codecs.
FLAT = lines("""
data/alltypes_dictionary.parquet data/alltypes_plain.parquet data/alltypes_plain.snappy.parquet
data/alltypes_tiny_pages.parquet data/binary.parquet data/binary_truncated_min_max.parquet
data/byte_array_decimal.parquet data/byte_stream_split.zstd.parquet data/column_chunk_key_value_metadata.parquet
data/concatenated_gzip_members.parquet data/data_index_bloom_encoding_stats.parquet
data/datapage_v1-snappy-compressed-checksum.parquet data/datapage_v1-uncompressed-checksum.parquet
data/datapage_v2_empty_datapage.snappy.parquet data/delta_binary_packed.parquet data/delta_byte_array.parquet
data/delta_encoding_required_column.parquet data/delta_length_byte_array.parquet data/dict-page-offset-zero.parquet
data/fixed_length_byte_array.parquet data/fixed_length_decimal.parquet data/float16_nonzeros_and_nans.parquet
data/hadoop_lz4_compressed.parquet data/int32_decimal.parquet data/int32_with_null_pages.parquet
data/lz4_raw_compressed.parquet data/lz4_raw_compressed_larger.parquet data/nan_in_stats.parquet
data/nation.dict-malformed.parquet data/non_hadoop_lz4_compressed.parquet
data/plain-dict-uncompressed-checksum.parquet data/rle-dict-snappy-checksum.parquet data/rle_boolean_encoding.parquet
data/single_nan.parquet data/unknown-logical-type.parquet
data/geospatial/crs-arbitrary-value.parquet data/geospatial/crs-default.parquet data/geospatial/crs-geography.parquet
data/geospatial/crs-projjson.parquet data/geospatial/geography-points.parquet
data/geospatial/geography-polygons.parquet data/geospatial/geospatial.parquet
bad_data/ARROW-GH-43605.parquet
""")

# Files with nested columns, all supported.
NESTED = lines("""
data/datapage_v2.snappy.parquet data/nested_lists.snappy.parquet data/nonnullable.impala.parquet data/null_list.parquet
data/nulls.snappy.parquet data/repeated_no_annotation.parquet
""")

ENCRYPTED_COLUMN = "column {column!r} is encrypted; pass decryption="

# Files with unsupported columns: the first of them, the message, and the supported columns.
PARTLY = {
    "data/encrypt_columns_plaintext_footer.parquet.encrypted": (
        "float_field",
        ENCRYPTED_COLUMN,
        ["boolean_field", "int32_field", "int64_field", "ba_field", "flba_field"],
    ),
}

ENCRYPTED = lines("""
data/encrypt_columns_and_footer.parquet.encrypted data/encrypt_columns_and_footer_bloom_filter.parquet.encrypted
data/encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted data/external_key_material_java.parquet.encrypted
data/uniform_encryption.parquet.encrypted data/aes256/encrypt_columns_and_footer.parquet.encrypted
data/aes256/encrypt_columns_and_footer_ctr.parquet.encrypted data/aes256/uniform_encryption.parquet.encrypted
""")

# Damaged on purpose: the exception and its full message ({file} is the path).
BAD = {
    "data/datapage_v1-corrupt-checksum.parquet": (
        CorruptPageError,
        "the checksum (CRC-32) does not match: the page is damaged (file '{file}', row group 0, column 'a', page 0)",
    ),
    "bad_data/ARROW-GH-41321.parquet": (
        CorruptPageError,
        "the data ends too early (file '{file}', row group 0, column 'int64', page 1)",
    ),
    "bad_data/ARROW-GH-47662.parquet": (
        CorruptPageError,
        "the data ends too early (file '{file}', row group 0, column 'flba_field', page 0)",
    ),
    "bad_data/ARROW-RS-GH-6229-DICTHEADER.parquet": (
        InvalidFileError,
        "the column chunk lies outside of the file's data: the file is cut off, or the footer is damaged"
        " (file '{file}', row group 0, column 'region_key')",
    ),
    "bad_data/PARQUET-1481.parquet": (
        InvalidFileError,
        "the physical type -7 is unknown (file '{file}', column 'Handle')",
    ),
}

# Files that pyarrow reads wrongly or not at all.
DIFFERENT = lines("""
data/int96_from_spark.parquet data/incorrect_map_schema.parquet data/large_string_map.brotli.parquet
data/nested_structs.rust.parquet
""")

NOT_PARQUET = lines("""
data/_KEY_MATERIAL_FOR_external_key_material_java.parquet.encrypted.json data/bloom_filter.bin
data/bloom_filter.xxhash.bin data/delta_binary_packed_expect.csv data/delta_byte_array_expect.csv
data/delta_encoding_required_column_expect.csv data/geospatial/geospatial.yaml
""")


def test_every_file_is_listed(parquet_testing):
    files = {
        path.relative_to(parquet_testing).as_posix()
        for folder in FOLDERS
        for path in (parquet_testing / folder).iterdir()
        if path.is_file()
    }
    listed = [*FLAT, *NESTED, *PARTLY, *ENCRYPTED, *BAD, *DIFFERENT, *NOT_PARQUET]
    assert len(listed) == len(set(listed))
    assert files == set(listed)


# --- flat files, as pyarrow reads them --------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("name", FLAT)
def test_flat_files(parquet_testing, name, dtype_backend, threads):
    path = parquet_testing / name
    expected = read_by_pandas(path, **backend_options(dtype_backend))
    assert_frames_equal(read_parquet(path, threads=threads, **backend_options(dtype_backend)), expected)


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("name", FLAT)
def test_flat_files_column_by_column(parquet_testing, name):
    path = parquet_testing / name
    for column in numparq.ParquetFile(path).schema.columns:
        for dtype_backend in BACKENDS:
            options = {"columns": [column], **backend_options(dtype_backend)}
            assert_frames_equal(read_parquet(path, **options), read_by_pandas(path, **options))


@pytest.mark.parametrize("name", FLAT)
def test_last_row_only(parquet_testing, name):
    path = parquet_testing / name
    for dtype_backend in BACKENDS:
        expected = read_by_pandas(path, **backend_options(dtype_backend))
        rows = len(expected)
        got = read_parquet(path, row_range=(max(rows - 1, 0), rows), **backend_options(dtype_backend))
        # An integer column without a null in that row keeps its integer dtype.
        last = expected.iloc[-1:].reset_index(drop=True)
        pd.testing.assert_frame_equal(got, last, check_exact=True, check_dtype=dtype_backend is not None)


@pytest.mark.parametrize("name", FLAT)
def test_without_checksums(parquet_testing, name):
    path = parquet_testing / name
    assert_frames_equal(read_parquet(path, verify_crc=False), read_by_pandas(path))


@pytest.mark.parametrize("name", ["delta_binary_packed", "delta_byte_array", "delta_encoding_required_column"])
def test_expected_values_of_the_suite(parquet_testing, name):
    """The suite has the values of these files as text."""
    expected = pd.read_csv(parquet_testing / f"data/{name}_expect.csv", dtype=str, keep_default_na=False)
    got = read_parquet(parquet_testing / f"data/{name}.parquet", dtype_backend="pyarrow")
    for column, texts in zip(got, expected.T.to_numpy(), strict=True):
        assert ["" if value is pd.NA else str(value) for value in got[column]] == texts.tolist()


# --- partly supported files, nested files -----------------------------------------------------------------


@pytest.mark.parametrize("name", PARTLY)
def test_unsupported_columns_are_named(parquet_testing, name):
    path = parquet_testing / name
    column, reason, _ = PARTLY[name]
    for threads in (1, 2):
        with pytest.raises(DecryptionError) as caught:
            read_parquet(path, threads=threads)
        assert caught.value.message == reason.format(column=column)
        assert caught.value.where["file"] == str(path)
        assert caught.value.where["column"] == column


@pytest.mark.parametrize("name", PARTLY)
def test_supported_columns_of_partly_supported_files(parquet_testing, name):
    path = parquet_testing / name
    flat = PARTLY[name][2]
    for column in flat:
        for dtype_backend in BACKENDS:
            options = {"columns": [column], **backend_options(dtype_backend)}
            assert_frames_equal(read_parquet(path, **options), read_by_pandas(path, **options))
    if flat:
        assert_frames_equal(read_parquet(path, columns=flat), read_by_pandas(path, columns=flat))


@pytest.mark.parametrize("name", PARTLY)
def test_unsupported_columns_of_partly_supported_files(parquet_testing, name):
    path = parquet_testing / name
    _, reason, flat = PARTLY[name]
    for column in numparq.ParquetFile(path).schema.columns:
        if column in flat or column == "int96_field":
            continue
        with pytest.raises(DecryptionError) as caught:
            read_parquet(path, columns=[column])
        assert caught.value.message == reason.format(column=column)
        assert caught.value.where["column"] == column


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("name", NESTED)
def test_nested_files(parquet_testing, name, dtype_backend, threads):
    path = parquet_testing / name
    expected = read_by_pandas(path, **backend_options(dtype_backend))
    assert_frames_equal(read_parquet(path, threads=threads, **backend_options(dtype_backend)), expected)
    assert_frames_equal(read_parquet(path, verify_crc=False, **backend_options(dtype_backend)), expected)
    for column in expected.columns:
        options = {"columns": [column], **backend_options(dtype_backend)}
        assert_frames_equal(read_parquet(path, **options), read_by_pandas(path, **options))
    for first, stop in ((0, 1), (1, 3), (len(expected) - 1, len(expected))):
        options = {"columns": list(expected.columns[-1:]), **backend_options(dtype_backend)}
        got = read_parquet(path, row_range=(first, stop), **options)
        assert nested_values_equal(got.iloc[:, 0].tolist(), expected.iloc[first:stop, -1].tolist())


def test_map_with_nullable_key(parquet_testing):
    """pyarrow refuses this file."""
    got = read_parquet(parquet_testing / "data/incorrect_map_schema.parquet")
    assert got["my_map"].tolist() == [[("parent", "another"), ("name", "report")]]


def test_strings_of_a_gigabyte(parquet_testing):
    """Two maps, each with a key of 1 GB. The keys are not read, which would be too much for a test."""
    with numparq.ParquetFile(parquet_testing / "data/large_string_map.brotli.parquet") as file:
        assert [group.num_rows for group in file.metadata.row_groups] == [2]
        assert len(file.read(nrows=0)) == 0
        assert file.read(columns=["arr.key_value.value"])["arr"].tolist() == [[1], [1]]


def test_timestamps_beyond_datetime(parquet_testing):
    """pyarrow cannot convert this file to pandas: its milliseconds are in the year 52951."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = parquet_testing / "data/nested_structs.rust.parquet"
    got = read_parquet(path)
    table = pq.read_table(path)
    for name in table.column_names:
        column = table[name].combine_chunks()
        for number, field in enumerate(column.type):
            if not pa.types.is_timestamp(field.type):
                assert [row[field.name] for row in got[name]] == column.field(number).to_pylist()
    latest = table["ul_observation_date"].combine_chunks().field("max").cast("int64")
    assert [row["max"] for row in got["ul_observation_date"]] == latest.to_pylist()


def test_columns_beside_variants(parquet_testing):
    """Each file has a number beside a VARIANT column, which read/test_variant.py reads."""
    paths = sorted((parquet_testing / "shredded_variant").glob("*.parquet"))
    assert len(paths) >= 60
    for path in paths:
        assert_frames_equal(read_parquet(path, columns=["id"]), read_by_pandas(path, columns=["id"]))


def test_int96_of_the_earliest_days(parquet_testing):
    """The file's days start at 0, the first Julian day, where pyarrow's nanoseconds overflow."""
    path = parquet_testing / "data/encrypt_columns_plaintext_footer.parquet.encrypted"
    got = read_parquet(path, columns=["int96_field"])["int96_field"]
    numbers = np.arange(len(got))
    nanoseconds = (numbers + 1) << 32 | numbers  # the file's INT96 values are three 32-bit numbers: i, i + 1, i + 2
    days = np.datetime64("-4713-11-24", "D") + numbers + 2
    expected = days.astype("M8[us]") + (nanoseconds // 1000).astype("m8[us]")
    assert got.dtype == "datetime64[us]"
    np.testing.assert_array_equal(got.to_numpy(), expected)


@pytest.mark.parametrize("name", ENCRYPTED)
def test_encrypted_files(parquet_testing, name):
    path = parquet_testing / name
    with pytest.raises(DecryptionError, match=r"^the footer is encrypted; pass decryption= \(key metadata") as caught:
        read_parquet(path)
    assert caught.value.where == {"file": str(path)}


# --- damaged files, and files that pyarrow reads wrongly --------------------------------------------------


@pytest.mark.parametrize("name", BAD)
def test_bad_files(parquet_testing, name):
    path = parquet_testing / name
    kind, message = BAD[name]
    for threads in (1, 2):
        with pytest.raises(kind) as caught:
            read_parquet(path, threads=threads)
        assert type(caught.value) is kind
        assert str(caught.value) == message.format(file=path)


def test_corrupt_checksum_is_ignored_without_verify_crc(parquet_testing):
    path = parquet_testing / "data/datapage_v1-corrupt-checksum.parquet"
    assert_frames_equal(read_parquet(path, verify_crc=False), read_by_pandas(path))
    with pytest.raises(CorruptPageError) as caught:
        read_parquet(path, columns=["b"])
    assert caught.value.where == {"file": str(path), "row_group": 0, "column": "b", "page": 1}


def test_columns_beside_damaged_columns(parquet_testing):
    """Undamaged columns of a file with flipped bytes are read."""
    path = parquet_testing / "bad_data/ARROW-GH-41321.parquet"
    failed = {}
    for column in numparq.ParquetFile(path).schema.columns:
        try:
            got = read_parquet(path, columns=[column])
        except numparq.ParquetError as error:
            failed.setdefault(error.message, []).append(column)
        else:
            if column != "time64_ns":  # pyarrow cannot convert these nanoseconds to times
                assert_frames_equal(got, read_by_pandas(path, columns=[column]))
    assert failed == {
        "the data ends too early": ["int64", "fixed_size_list_float64"],
        "bytes follow the last page, which a header that seems shorter than it is would explain": ["large_binary"],
        "the number of values does not match the page header": ["map_float32"],
    }


@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_int96_beyond_nanoseconds(parquet_testing, dtype_backend):
    got = read_parquet(parquet_testing / "data/int96_from_spark.parquet", **backend_options(dtype_backend))["a"]
    expected = [
        "2024-01-01T20:34:56.123456",
        "2024-01-01T01:00:00",
        "9999-12-31T03:00:00",
        "2024-12-30T23:00:00",
        "NaT",
        "290000-12-30T23:00:00",
    ]
    assert str(got.dtype) == ("timestamp[us][pyarrow]" if dtype_backend == "pyarrow" else "datetime64[us]")
    if dtype_backend == "pyarrow":
        got = got.astype("datetime64[us]")
    np.testing.assert_array_equal(got.to_numpy(), np.array(expected, "M8[us]"))


@pytest.mark.parametrize("name", NOT_PARQUET)
def test_files_that_are_not_parquet(parquet_testing, name):
    path = parquet_testing / name
    with pytest.raises(InvalidFileError, match="it is not a Parquet file") as caught:
        read_parquet(path)
    assert caught.value.where == {"file": str(path)}


def test_every_footer_is_readable(parquet_testing):
    """Metadata and schema exist for every file with a readable footer, and their counts agree."""
    for name in [*FLAT, *NESTED, *PARTLY, *BAD, *DIFFERENT]:
        with numparq.ParquetFile(parquet_testing / name) as file:
            metadata = file.metadata
            assert sum(group.num_rows for group in metadata.row_groups) == file.num_rows
            assert len(metadata.row_groups) == file.num_row_groups
            assert len(metadata.schema[0].name) >= 0
            assert str(file.schema).startswith("schema {")
            assert name in repr(file)
