"""`encryption=`: what is refused, and with which advice; what messages show; nonces; the plaintext stays out."""

from __future__ import annotations

import copy
import json
import os
import pickle
import traceback

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import SchemaError, UnsupportedError
from numparq.pandas.engine import NumparqImpl

pytest.importorskip("cryptography")

FOOTER, COLUMN = b"footer-marker-01", b"column-marker-02"
FRAME = pd.DataFrame({"secret": ["plaintext-marker"] * 4, "open": [1, 2, 3, 4]})


def encryption(**options) -> numparq.Encryption:
    return numparq.Encryption(FOOTER, {"secret": COLUMN}, **options)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"footer_key": b"short"}, ValueError, "footer_key: a key must have 16, 24 or 32 bytes"),
        ({"footer_key": bytes(16)}, ValueError, "zero"),
        ({"footer_key": "0123456789012345"}, TypeError, "footer_key must be bytes, not str"),
        ({"column_keys": {"a": b"0" * 17}}, ValueError, r"column_keys\['a'\]: a key must have"),
        ({"algorithm": "AES"}, ValueError, "algorithm must be one of AES_GCM_V1"),
        ({"aad_prefix": ""}, TypeError, "aad_prefix must be bytes"),
        ({"key_metadata": {"a": b"m"}}, ValueError, "key_metadata names 'a'"),
        ({"key_metadata": "text"}, TypeError, "key_metadata must be bytes"),
        ({"encrypt_other_columns": True}, ValueError, "needs column_keys"),
    ],
)
def test_wrong_keys_are_refused(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        numparq.Encryption(**{"footer_key": FOOTER, **arguments})
    assert "short" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"append": True}, UnsupportedError, "append=True cannot extend"),
        ({"checkpoint_row_groups": 2}, UnsupportedError, "checkpoint_row_groups cannot be used"),
        (
            {"encryption": {"secret": COLUMN}},
            TypeError,
            "must be a numparq.Encryption, .*, or None, not dict",
        ),
        ({"encryption": numparq.Encryption(FOOTER, {"secrets": COLUMN})}, SchemaError, "did you mean 'secret'"),
        ({"write_metadata_file": True}, UnsupportedError, "write_metadata_file"),
    ],
)
def test_calls_are_refused_before_anything_is_written(options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        numparq.to_parquet(FRAME, tmp_path / "a", **{"encryption": encryption(), **options})
    assert list(tmp_path.iterdir()) == []


def test_too_many_row_groups(tmp_path):
    frame = pd.DataFrame({"a": np.zeros(32_769, "int8")})
    with pytest.raises(UnsupportedError, match=r"row group 32,768 cannot be encrypted.*raise row_group_size"):
        numparq.to_parquet(frame, tmp_path / "a", row_group_size=1, encryption=numparq.Encryption(FOOTER))
    assert list(tmp_path.iterdir()) == []


def test_too_many_pages(tmp_path):
    frame = pd.DataFrame({"a": np.zeros(32_769, "int8")})
    with pytest.raises(UnsupportedError, match=r"data page 32,768 .*raise data_page_size") as caught:
        numparq.to_parquet(frame, tmp_path / "a", max_rows_per_page=1, encryption=numparq.Encryption(FOOTER))
    assert caught.value.where["column"] == "a"
    assert list(tmp_path.iterdir()) == []


def test_a_null_column_cannot_become_nested():
    with numparq.ParquetWriter(None, encryption=numparq.Encryption(FOOTER)) as writer:
        writer.write(pd.DataFrame({"a": [None, None]}))
        with pytest.raises(UnsupportedError, match="cannot become nested in an encrypted file; pass schema="):
            writer.write(pd.DataFrame({"a": [[1], [2]]}))
        writer.write(pd.DataFrame({"a": ["x", None]}))
    keys = numparq.Decryption(FOOTER)
    assert numparq.read_parquet(writer.getvalue(), decryption=keys)["a"].isna().tolist() == [True, True, False, True]


def test_the_plaintext_is_nowhere_in_the_file():
    for options in ({}, {"plaintext_footer": True}, {"algorithm": "AES_GCM_CTR_V1", "plaintext_footer": True}):
        data = numparq.to_parquet(FRAME, encryption=encryption(**options), compression=None)
        assert b"plaintext-marker" not in data
        assert FOOTER not in data
        assert COLUMN not in data
    assert b"plaintext-marker" in numparq.to_parquet(FRAME, compression=None)


def test_nonces_and_files_differ():
    first, second = (numparq.to_parquet(FRAME, encryption=encryption()) for _ in range(2))
    assert first != second


def test_files_are_equal_with_equal_random_bytes(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda size: bytes(range(1, 1 + size % 255)) * (size // (size % 255)))
    first, second = (numparq.to_parquet(FRAME, encryption=encryption()) for _ in range(2))
    assert first == second


def test_keys_have_no_text_and_do_not_travel():
    keys = encryption(aad_prefix=b"lake/", plaintext_footer=True)
    assert repr(keys) == "Encryption(footer key, 1 column key, aad_prefix=b'lake/', plaintext_footer=True)"
    for travel in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            travel(keys)


def test_a_file_replaced_by_a_failure_stays(tmp_path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(FRAME, path)
    with pytest.raises(SchemaError):
        numparq.to_parquet(FRAME, path, encryption=numparq.Encryption(FOOTER, {"missing": COLUMN}))
    assert len(numparq.read_parquet(path)) == 4


@pytest.mark.parametrize("folder", [None, "a"])
def test_values_of_encrypted_columns_are_in_no_message(folder, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    frame, types = pd.DataFrame({"secret": [70_123], "open": [70_123]}), {"secret": pyarrow.int8()}
    options = {"path": folder and tmp_path / folder, "partition_cols": folder and []}
    with pytest.raises(SchemaError, match="70123"):
        numparq.to_parquet(frame, schema={"open": pyarrow.int8()}, encryption=encryption(), **options)
    with pytest.raises(SchemaError, match="values of encrypted columns are not shown") as caught:
        numparq.to_parquet(frame, schema=types, encryption=encryption(), **options)
    assert "70123" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.where["column"] == "secret"


def test_dataset(tmp_path):
    frame = pd.DataFrame({"key": [1, 1, 2], "secret": ["plaintext-marker"] * 3})
    numparq.to_parquet(frame, tmp_path / "a", partition_cols=["key"], encryption=encryption())
    files = sorted((tmp_path / "a").rglob("*.parquet"))
    assert len(files) == 2
    assert all(file.read_bytes()[:4] == b"PARE" and b"plaintext-marker" not in file.read_bytes() for file in files)


def test_dataset_partition_columns_have_no_key(tmp_path):
    frame = pd.DataFrame({"key": [1, 1, 2], "secret": ["x"] * 3})
    keys = numparq.Encryption(FOOTER, {"key": COLUMN})
    with pytest.raises(SchemaError, match="column_keys names 'key'"):
        numparq.to_parquet(frame, tmp_path / "a", partition_cols=["key"], encryption=keys)
    assert not list(tmp_path.rglob("*.parquet"))


def test_dataset_without_rows_keeps_no_plaintext_schema(tmp_path):
    numparq.to_parquet(FRAME[:0], tmp_path / "a", partition_cols=["open"], encryption=encryption())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_pandas_engine(tmp_path):
    NumparqImpl().write(FRAME, tmp_path / "a", encryption=encryption())
    assert (tmp_path / "a").read_bytes()[:4] == b"PARE"
    decryption = numparq.Decryption(FOOTER, {"secret": COLUMN})
    pd.testing.assert_frame_equal(NumparqImpl().read(tmp_path / "a", decryption=decryption), FRAME)
    read = NumparqImpl().read(tmp_path / "a", decryption=decryption, to_pandas_kwargs={"maps_as_pydicts": "strict"})
    pd.testing.assert_frame_equal(read, FRAME)
    with pytest.raises(UnsupportedError, match=r"use encryption=numparq.Encryption"):
        NumparqImpl().write(FRAME, tmp_path / "b", encryption_properties=object())


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_round_trip(algorithm, plaintext_footer, version):
    frame = pd.DataFrame({"a": np.arange(999), "b": [[row, None] for row in range(999)], "c": [None, "x", "y"] * 333})
    keys = {"a": b"a" * 32, "b": b"b" * 24}
    encrypted = numparq.to_parquet(
        frame,
        encryption=numparq.Encryption(
            FOOTER, keys, algorithm=algorithm, plaintext_footer=plaintext_footer, encrypt_other_columns=True
        ),
        data_page_version=version,
        row_group_size=300,
        max_rows_per_page=70,
        bloom_filter_options={"c": True},
    )
    decryption = numparq.Decryption(FOOTER, keys)
    plain = numparq.read_parquet(numparq.to_parquet(frame))
    pd.testing.assert_frame_equal(numparq.read_parquet(encrypted, decryption=decryption), plain)
    for filters in (numparq.col("a") == 777, numparq.col("c") == "y", numparq.col("a").between(290, 310)):
        expected = numparq.read_parquet(numparq.to_parquet(frame), filters=filters)
        pd.testing.assert_frame_equal(numparq.read_parquet(encrypted, filters=filters, decryption=decryption), expected)


@pytest.mark.parametrize("name", ["secret", "open"])
def test_bounds_of_encrypted_geometries_are_not_in_a_plaintext_footer(name):
    geo = {"version": "1.0.0", "columns": {"secret": {"encoding": "WKB", "bbox": [1, 2, 3, 4], "geometry_types": []}}}
    data = numparq.to_parquet(
        FRAME.rename(columns={"secret": name, "open": "secret"}) if name == "open" else FRAME,
        encryption=numparq.Encryption(FOOTER, {name: COLUMN}, plaintext_footer=True),
        key_value_metadata={"geo": json.dumps(geo)},
    )
    assert (b"bbox" in data) is (name == "open")


def test_frames_added_to_an_encrypted_dataset(tmp_path):
    frame = pd.DataFrame({"key": [1, 2], "secret": ["x", "y"]})
    for _ in range(2):
        numparq.to_parquet(frame, tmp_path, partition_cols=["key"], append=True, encryption=encryption())
    read = numparq.read_parquet(tmp_path, decryption=numparq.Decryption(FOOTER, {"secret": COLUMN}))
    assert sorted(read["secret"]) == ["x", "x", "y", "y"]
