"""Encrypted files, as other readers read them: all modes, both algorithms, all sizes of keys, both page versions."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import numparq

pytest.importorskip("cryptography")
pytest.importorskip("pyarrow.parquet.encryption")
from support.encryption.pyarrow_reader import key_material, open_with_pyarrow, read_with_pyarrow

ROWS = 1500
FRAME = pd.DataFrame(
    {
        "a": np.arange(ROWS),
        "s": [f"x{row % 7}" if row % 5 else None for row in range(ROWS)],
        "l": [[row, row + 1] for row in range(ROWS)],
        "u": [f"u{row}" for row in range(ROWS)],
        "c": 1.5,
    }
)
SMALL_PAGES = {"row_group_size": 600, "max_rows_per_page": 250, "bloom_filter_options": {"u": True}}


def make_encryption(bits: int, mode: str, **options) -> numparq.Encryption:
    footer, first, second = (bytes([number]) * (bits // 8) for number in (1, 2, 3))
    metadata = {None: key_material(footer, is_footer_key=True)}
    if mode == "uniform":
        return numparq.Encryption(footer, key_metadata=metadata, **options)
    metadata |= {"a": key_material(first), "l": key_material(second)}
    keys = {"a": first, "l": second, "s": None}
    is_whole = mode == "columns"
    return numparq.Encryption(footer, keys, key_metadata=metadata, encrypt_other_columns=is_whole, **options)


def assert_reads_back(data: bytes) -> None:
    read = read_with_pyarrow(data).to_pandas()
    pd.testing.assert_frame_equal(read.assign(l=[list(each) for each in read["l"]]), FRAME)


@pytest.mark.parametrize("mode", ["uniform", "columns", "partial"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize(
    ("algorithm", "bits", "version"),
    [
        ("AES_GCM_V1", 128, "1.0"),
        ("AES_GCM_V1", 192, "2.0"),
        ("AES_GCM_CTR_V1", 256, "1.0"),
        ("AES_GCM_CTR_V1", 128, "2.0"),
    ],
)
def test_pyarrow(mode, plaintext_footer, algorithm, bits, version):
    encryption = make_encryption(bits, mode, algorithm=algorithm, plaintext_footer=plaintext_footer)
    data = numparq.to_parquet(FRAME, encryption=encryption, data_page_version=version, **SMALL_PAGES)
    assert data[:4] == data[-4:] == (b"PAR1" if plaintext_footer else b"PARE")
    assert_reads_back(data)


@pytest.mark.parametrize("options", [{"write_page_index": False}, {"write_page_checksum": False}, {"threads": 2}])
def test_pyarrow_with_options(options):
    assert_reads_back(numparq.to_parquet(FRAME, encryption=make_encryption(128, "columns"), **options))


def test_pyarrow_many_small_row_groups():
    encryption = make_encryption(128, "columns")
    assert_reads_back(numparq.to_parquet(FRAME, encryption=encryption, row_group_size=20))


def test_writer_of_several_frames():
    with numparq.ParquetWriter(None, encryption=make_encryption(128, "partial")) as writer:
        for start in range(0, ROWS, 500):
            writer.write(FRAME[start : start + 500].reset_index(drop=True).assign(c=None if start == 0 else 1.5))
    read = read_with_pyarrow(writer.getvalue())
    assert read["a"].to_pylist() == FRAME["a"].tolist()
    assert read["c"].null_count == 500


def test_statistics_stay_behind_the_key():
    encryption = make_encryption(128, "partial", plaintext_footer=True)
    chunk = {
        column["meta_data"]["path_in_schema"][0]: column["meta_data"]
        for column in numparq.ParquetFile(numparq.to_parquet(FRAME, encryption=encryption)).metadata.to_dict()[
            "row_groups"
        ][0]["columns"]
    }
    hidden = {"statistics", "encoding_stats", "size_statistics", "bloom_filter_offset", "bloom_filter_length"}
    assert {name for name in hidden if chunk["a"].get(name) is not None} == set()
    assert chunk["c"]["statistics"] is not None
    with open_with_pyarrow(numparq.to_parquet(FRAME, encryption=encryption)) as file:
        assert file.metadata.row_group(0).column(0).statistics.max == ROWS - 1


@pytest.mark.parametrize("stored", [True, False])
def test_polars_with_column_keys_and_prefix(stored):
    polars = pytest.importorskip("polars", minversion="2.1")
    keys = {"a": b"a" * 16, "u": b"u" * 16}
    encryption = numparq.Encryption(
        b"f" * 16, keys, aad_prefix=b"lake", store_aad_prefix=stored, encrypt_other_columns=True
    )
    data = numparq.to_parquet(FRAME.drop(columns="l"), encryption=encryption, **SMALL_PAGES)
    decryption = polars.io.parquet.ParquetDecryptionProperties(
        footer_key=b"f" * 16, column_keys=keys, aad_prefix=b"lake"
    )
    read = polars.read_parquet(io.BytesIO(data), decryption=decryption)
    assert read["a"].to_list() == FRAME["a"].tolist()
    assert read["s"].null_count() == FRAME["s"].isna().sum()


@pytest.mark.parametrize("stored", [True, False])
def test_polars_reads_parts_by_their_prefixes(tmp_path, stored):
    polars = pytest.importorskip("polars", minversion="2.1")
    prefix = numparq.PartPrefix(b"lake/events")
    encryption = numparq.Encryption(b"f" * 16, aad_prefix=prefix, store_aad_prefix=stored)
    rows = pd.DataFrame({"day": [1, 2, 2], "a": [10, 20, 30]})
    with numparq.DatasetWriter(tmp_path, partition_cols=["day"], encryption=encryption) as writer:
        writer.write(rows)
    read = {}
    for name in writer.parts:
        properties = polars.io.parquet.ParquetDecryptionProperties(footer_key=b"f" * 16, aad_prefix=prefix.of(name))
        data = (tmp_path / name).read_bytes()
        read[name.partition("/")[0]] = polars.read_parquet(io.BytesIO(data), decryption=properties)["a"].to_list()
        other = polars.io.parquet.ParquetDecryptionProperties(footer_key=b"f" * 16, aad_prefix=prefix.of("x"))
        with pytest.raises(polars.exceptions.PolarsError):
            polars.read_parquet(io.BytesIO(data), decryption=other)
    assert read == {"day=1": [10], "day=2": [20, 30]}


def test_duckdb_uniform(tmp_path):
    duckdb = pytest.importorskip("duckdb", minversion="2.0")
    key = b"0123456789112345"  # as text: duckdb takes a base64 key of 24 characters for one of 192 bits
    numparq.to_parquet(FRAME, tmp_path / "a.parquet", encryption=numparq.Encryption(key))
    with duckdb.connect() as connection:
        connection.execute(f"PRAGMA add_parquet_key('k', '{key.decode()}')")
        query = f"SELECT sum(a) FROM read_parquet('{tmp_path}/a.parquet', encryption_config={{footer_key: 'k'}})"
        assert connection.execute(query).fetchone() == (FRAME["a"].sum(),)
