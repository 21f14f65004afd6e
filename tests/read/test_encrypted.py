"""Encrypted files (Encryption.md) read with direct keys: the shared files, and files of pyarrow."""

from __future__ import annotations

import io
import pickle
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import DecryptionError, ParquetFile
from support.encryption.keys import COLUMN_KEYS, FOOTER_KEY, DirectKeys, shared_keys
from support.encryption.pyarrow_files import MaterialKeys, encrypt

LONG_FOOTER_KEY = FOOTER_KEY + b"6789012345678901"
LONG_NAMES = ("double", "float", "boolean", "int32", "ba", "flba", "int64", "int96")
LONG_KEYS = {
    f"{name}_field": b"1234567890123456789012345678901" + str(last).encode() for last, name in enumerate(LONG_NAMES, 2)
}
SHARED = {
    "encrypt_columns_and_footer": shared_keys(),
    "encrypt_columns_and_footer_disable_aad_storage": shared_keys(aad_prefix=b"tester"),
    "encrypt_columns_plaintext_footer": shared_keys(),
    "uniform_encryption": DirectKeys(FOOTER_KEY),
    "aes256/encrypt_columns_and_footer": DirectKeys(LONG_FOOTER_KEY, LONG_KEYS),
    "aes256/encrypt_columns_and_footer_ctr": DirectKeys(LONG_FOOTER_KEY, LONG_KEYS),
    "aes256/uniform_encryption": DirectKeys(LONG_FOOTER_KEY),
}
FILTERS = [
    [("a", "==", 1123)],
    [("s", "==", "v7")],
    [("u", "==", "x1400")],
    [("b", ">", 2.0)],
    [("a", ">", 100), ("a", "<", 1500), ("s", "in", ["v1", "v2"])],
]


def shared_file(folder, name, keys):
    return ParquetFile(folder / "data" / f"{name}.parquet.encrypted", decryption=keys)


def table(num_rows=2000):
    numbers = np.arange(num_rows)
    return pa.table(
        {
            "a": numbers,
            "b": np.random.default_rng(5).normal(size=num_rows),
            "s": [f"v{number % 50}" for number in numbers],
            "u": [f"x{number}" for number in numbers],
            "l": [[number, number + 1] if number % 3 else None for number in numbers],
        }
    )


OPTIONS = {
    "row_group_size": 900,
    "data_page_size": 1024,
    "write_batch_size": 64,
    "write_page_index": True,
    "write_page_checksum": True,
}


def plain_file(**options):
    sink = io.BytesIO()
    pq.write_table(table(), sink, **OPTIONS | options)
    return ParquetFile(sink.getvalue())


@pytest.mark.parametrize("name", SHARED)
def test_shared_files_have_the_values_of_their_writer(parquet_testing, name):
    frame = shared_file(parquet_testing, name, SHARED[name]).read()
    numbers = np.arange(len(frame))
    assert len(frame) >= 50
    np.testing.assert_allclose(frame["double_field"], numbers * 1.1111111)
    np.testing.assert_allclose(frame["float_field"], (numbers * 1.1).astype("f4"), rtol=1e-6)
    assert frame["boolean_field"].tolist() == [number % 2 == 0 for number in numbers]
    assert frame["flba_field"].tolist() == [bytes([number]) * 10 for number in numbers]
    strings = [f"parquet{number:03}".encode() if number % 2 == 0 else None for number in numbers]
    assert frame["ba_field"].tolist() == strings


def test_shared_file_with_bloom_filters(parquet_testing):
    file = shared_file(parquet_testing, "encrypt_columns_and_footer_bloom_filter", shared_keys())
    frame = file.read()
    assert frame["double_field"].tolist() == [number + 0.5 for number in range(2000)]
    for filters, count in (([("double_field", "==", 7.5)], 1), ([("double_field", "==", 7.25)], 0)):
        assert len(file.read(filters=filters)) == count
    assert "Bloom filter" in file.plan(filters=[("double_field", "==", 7.25)]).explain()


@pytest.mark.parametrize("columns", [None, ["a", "s", "l.list.element"]], ids=["uniform", "columns"])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_reads_equal_those_of_the_plain_file(algorithm, columns):
    for plaintext_footer, version in product([False, True], ["1.0", "2.0"]):
        if columns is None and plaintext_footer:
            continue
        options = OPTIONS | {"data_page_version": version, "compression": "snappy" if plaintext_footer else "none"}
        content = encrypt(table(), columns, algorithm=algorithm, plaintext_footer=plaintext_footer, **options)
        plain, file = plain_file(**options), ParquetFile(content, decryption=MaterialKeys())
        pd.testing.assert_frame_equal(file.read(), plain.read())
        pd.testing.assert_frame_equal(file.read(on_error="skip"), plain.read())
        pd.testing.assert_frame_equal(file.read(row_range=(700, 1200)), plain.read(row_range=(700, 1200)))
        for filters in FILTERS:
            pd.testing.assert_frame_equal(file.read(filters=filters), plain.read(filters=filters))
        batches = zip(file.iter_batches(batch_rows=300), plain.iter_batches(batch_rows=300), strict=True)
        for batch, expected in batches:
            pd.testing.assert_frame_equal(batch, expected)


def test_plans_prune_as_those_of_the_plain_file():
    plain, file = plain_file(), ParquetFile(encrypt(table(), None, **OPTIONS), decryption=MaterialKeys())
    for filters in FILTERS:
        plan = file.plan(["a", "u"], filters)
        assert plan.num_rows == plain.plan(["a", "u"], filters).num_rows
    assert 0 < file.plan(["u"], [("a", "==", 1123)]).num_rows < 400


def test_windows_smaller_than_pages_carry_opened_headers(monkeypatch):
    content = encrypt(table(), None, **OPTIONS | {"row_group_size": 2000, "data_page_size": 8192})
    expected = plain_file().read()
    for window in (100, 1000, 5000):
        monkeypatch.setattr("numparq.column.read.page_sources.WINDOW_BYTES", window)
        pd.testing.assert_frame_equal(ParquetFile(content, decryption=MaterialKeys()).read(), expected)


def test_some_keys_read_some_columns(parquet_testing):
    name = "encrypt_columns_and_footer"
    file = shared_file(parquet_testing, name, DirectKeys(FOOTER_KEY, {"float_field": COLUMN_KEYS["float_field"]}))
    assert file.read(columns=["float_field", "int32_field"]).shape == (50, 2)
    with pytest.raises(
        DecryptionError, match=r"column 'double_field' is encrypted with a key that was not given"
    ) as no:
        file.read()
    assert "kc1" in str(no.value)
    assert no.value.where["column"] == "double_field"


def test_plain_columns_need_no_key(parquet_testing):
    for keys in (DirectKeys(check_footer_integrity=False), None):
        file = shared_file(parquet_testing, "encrypt_columns_plaintext_footer", keys)
        assert file.read(columns=["int32_field", "ba_field"]).shape == (50, 2)
        with pytest.raises(DecryptionError, match="column 'double_field' is encrypted"):
            file.read(columns=["double_field"])


def test_wrong_keys_are_refused(parquet_testing):
    wrong = b"9" * 16
    with pytest.raises(DecryptionError, match="the footer did not authenticate"):
        shared_file(parquet_testing, "uniform_encryption", DirectKeys(wrong))
    with pytest.raises(DecryptionError, match="signature does not match"):
        shared_file(parquet_testing, "encrypt_columns_plaintext_footer", DirectKeys(wrong, COLUMN_KEYS))
    file = shared_file(parquet_testing, "encrypt_columns_and_footer", DirectKeys(FOOTER_KEY, {"double_field": wrong}))
    with pytest.raises(DecryptionError, match="column metadata did not authenticate") as caught:
        file.read(columns=["double_field"])
    assert caught.value.where["column"] == "double_field"


@pytest.mark.parametrize(
    ("name", "prefix", "message"),
    [
        ("encrypt_columns_and_footer_disable_aad_storage", None, "is not stored in the file; pass aad_prefix="),
        ("encrypt_columns_and_footer_disable_aad_storage", b"other", "did not authenticate"),
        ("encrypt_columns_and_footer", b"tester", "has no AAD prefix"),
    ],
)
def test_aad_prefixes(parquet_testing, name, prefix, message):
    with pytest.raises(DecryptionError, match=message):
        shared_file(parquet_testing, name, shared_keys(aad_prefix=prefix))


def test_plain_files_are_refused_unless_they_are_allowed():
    content = numparq.to_parquet(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(DecryptionError, match="not encrypted; pass allow_plaintext_files=True"):
        ParquetFile(content, decryption=shared_keys())
    assert len(ParquetFile(content, decryption=shared_keys(allow_plaintext_files=True)).read()) == 2


def test_caches_serve_only_readers_with_the_same_keys(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(encrypt(table(), ["a", "s"], plaintext_footer=True, **OPTIONS))
    filters = [("a", "==", 1123)]
    with ParquetFile(path, decryption=MaterialKeys()) as file:
        assert len(file.read(filters=filters)) == 1
    for keys in (MaterialKeys(["s"]), None):
        with (
            ParquetFile(path, decryption=keys) as file,
            pytest.raises(DecryptionError, match="column 'a' is encrypted"),
        ):
            file.read(columns=["u"], filters=filters)
    with ParquetFile(path, decryption=MaterialKeys()) as file:
        assert len(file.read(filters=filters)) == 1


def test_read_parquet_decrypts_a_file_and_a_folder_of_one(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(encrypt(table(), ["a"], **OPTIONS))
    keys = numparq.Decryption(key_retriever=lambda metadata: MaterialKeys().footer_key(metadata).value)
    expected = plain_file().read()
    for name in (path, tmp_path, str(tmp_path / "*.parquet")):
        pd.testing.assert_frame_equal(numparq.read_parquet(name, decryption=keys), expected)
    with pytest.raises(DecryptionError, match="the footer is encrypted; pass decryption="):
        numparq.read_parquet(tmp_path)


def test_datasets_equal_those_of_plain_files(tmp_path):
    folders = tmp_path / "plain", tmp_path / "encrypted"
    for number in range(3):
        one = table(700 + number)
        for folder in folders:
            (folder / f"k={number}").mkdir(parents=True)
        pq.write_table(one, folders[0] / f"k={number}/a.parquet", **OPTIONS)
        content = encrypt(one, ["a"] if number else None, plaintext_footer=number == 2, **OPTIONS)
        (folders[1] / f"k={number}/a.parquet").write_bytes(content)
    plain = numparq.Dataset(folders[0])
    with numparq.Dataset(folders[1], decryption=MaterialKeys()) as files:
        assert files.count_rows() == 2103
        for filters in (None, [("k", "=", 1)], *FILTERS):
            pd.testing.assert_frame_equal(files.read(filters=filters), plain.read(filters=filters))
            pd.testing.assert_frame_equal(
                numparq.read_parquet(folders[1], ["u"], filters, decryption=MaterialKeys()),
                numparq.read_parquet(folders[0], ["u"], filters),
            )
        batches = zip(files.iter_batches(batch_rows=500), plain.iter_batches(batch_rows=500), strict=True)
        for batch, expected in batches:
            pd.testing.assert_frame_equal(batch, expected)
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(files)
    (folders[1] / "k=1/b.parquet").write_bytes((folders[0] / "k=1/a.parquet").read_bytes())
    with pytest.raises(DecryptionError, match="the file is not encrypted") as caught:
        numparq.read_parquet(folders[1], decryption=MaterialKeys())
    assert caught.value.where["file"].endswith("b.parquet")


def test_files_with_keys_are_not_pickled(parquet_testing):
    file = shared_file(parquet_testing, "uniform_encryption", DirectKeys(FOOTER_KEY))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(file)


def test_key_sources_that_fail_quote_nothing(parquet_testing):
    class Broken(DirectKeys):
        def footer_key(self, key_metadata):
            raise ValueError("the secret")

    with pytest.raises(DecryptionError, match="no key could be retrieved: ValueError") as caught:
        shared_file(parquet_testing, "uniform_encryption", Broken())
    assert "secret" not in str(caught.value)
