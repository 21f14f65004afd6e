"""Encrypted files read as their plain counterparts, which an independent decryptor makes of them."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import numparq
from support.encryption.keys import COLUMN_KEYS, FOOTER_KEY
from support.encryption.kms import MemoryKms
from support.encryption.pyarrow_files import MaterialKeys, encrypt
from support.encryption.violations import keys as violation_keys
from support.encryption.violations import longer_metadata, sound_file
from support.files.builder import from_bytes
from support.oracles.encryption import decrypt_file

KEY, OTHER, WIDE = b"f" * 16, b"c" * 24, b"w" * 32
LONG_FOOTER_KEY = FOOTER_KEY + b"6789012345678901"
LONG_NAMES = ("double", "float", "boolean", "int32", "ba", "flba", "int64", "int96")
LONG_KEYS = {
    f"{name}_field": b"1234567890123456789012345678901" + str(last).encode() for last, name in enumerate(LONG_NAMES, 2)
}
SHARED = {
    "encrypt_columns_and_footer": (FOOTER_KEY, COLUMN_KEYS),
    "encrypt_columns_and_footer_disable_aad_storage": (FOOTER_KEY, COLUMN_KEYS, b"tester"),
    "encrypt_columns_plaintext_footer": (FOOTER_KEY, COLUMN_KEYS),
    "encrypt_columns_and_footer_bloom_filter": (FOOTER_KEY, COLUMN_KEYS),
    "uniform_encryption": (FOOTER_KEY,),
    "aes256/encrypt_columns_and_footer": (LONG_FOOTER_KEY, LONG_KEYS),
    "aes256/encrypt_columns_and_footer_ctr": (LONG_FOOTER_KEY, LONG_KEYS),
    "aes256/uniform_encryption": (LONG_FOOTER_KEY,),
}


def frame(num_rows=250):
    numbers = np.arange(num_rows)
    return pd.DataFrame(
        {
            "a": numbers,
            "s": [f"x{number % 7}" if number % 5 else None for number in numbers],
            "u": [f"u{number}" for number in numbers],
            "l": [[number, number + 1] if number % 3 else None for number in numbers],
            "d": [{"x": number, "y": f"y{number % 4}"} for number in numbers],
        }
    )


def compare(encrypted, decryption, plain, filters=()):
    """Compare an encrypted read with that of the plain file, by numparq and by pyarrow."""
    expected = numparq.read_parquet(plain)
    pd.testing.assert_frame_equal(numparq.read_parquet(encrypted, decryption=decryption), expected)
    by_pyarrow = pq.read_table(io.BytesIO(plain), page_checksum_verification=True)
    assert by_pyarrow.num_rows == len(expected)
    found = numparq.read_parquet(encrypted, decryption=decryption, dtype_backend="pyarrow")
    for name in (name for name in expected if name != "int96_field"):  # years beyond those of Python
        assert found[name].array.__arrow_array__().to_pylist() == by_pyarrow[name].to_pylist(), name
    for one in filters:
        pd.testing.assert_frame_equal(
            numparq.read_parquet(encrypted, decryption=decryption, filters=one),
            numparq.read_parquet(plain, filters=one),
        )
    with numparq.ParquetFile(encrypted, decryption=decryption) as file, numparq.ParquetFile(plain) as expected_file:
        columns = [file.metadata.row_groups[-1].columns, expected_file.metadata.row_groups[-1].columns]
    assert [one.meta_data.encodings for one in columns[0]] == [one.meta_data.encodings for one in columns[1]]
    assert [each for each in numparq.verify(plain) if each.severity == "error"] == []
    assert [each for each in numparq.verify(encrypted, decryption=decryption) if each.severity == "error"] == []


@pytest.mark.parametrize("name", SHARED)
def test_shared_files(parquet_testing, name):
    content, keys = (parquet_testing / "data" / f"{name}.parquet.encrypted").read_bytes(), SHARED[name]
    prefix = keys[2] if len(keys) > 2 else None
    compare(content, numparq.Decryption(*keys[:2], aad_prefix=prefix), decrypt_file(content, *keys))


def test_shared_file_with_external_key_material(parquet_testing):
    """The oracle unwraps the keys itself."""
    name = "external_key_material_java.parquet.encrypted"
    path = parquet_testing / "data" / name
    material = json.loads((parquet_testing / "data" / f"_KEY_MATERIAL_FOR_{name}.json").read_text())
    keys = {entry: _unwrapped(json.loads(text)) for entry, text in material.items()}
    columns = {"integers": keys["columnKey0"], "strings": keys["columnKey1"]}
    plain = decrypt_file(path.read_bytes(), keys["footerKey"], columns)
    compare(path, numparq.KmsDecryption(MemoryKms()), plain)


def _unwrapped(material):
    kms, master_key = MemoryKms(), material["masterKeyID"]
    if not material["doubleWrapping"]:
        return kms.unwrap_key(material["wrappedDEK"], master_key)
    key_encryption_key = AESGCM(kms.unwrap_key(material["wrappedKEK"], master_key))
    sealed = base64.b64decode(material["wrappedDEK"])
    return key_encryption_key.decrypt(sealed[:12], sealed[12:], base64.b64decode(material["keyEncryptionKeyID"]))


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_written_files(algorithm, plaintext_footer):
    columns = [None, {"a": OTHER, "l": WIDE, "d.x": None}]
    for number, (column_keys, version) in enumerate(zip(columns * 2, ("1.0", "1.0", "2.0", "2.0"), strict=True)):
        prefix = b"lake" if number % 2 else None
        encryption = numparq.Encryption(
            (KEY, OTHER, WIDE)[number % 3],
            column_keys,
            algorithm=algorithm,
            plaintext_footer=plaintext_footer,
            aad_prefix=prefix,
            store_aad_prefix=not plaintext_footer,
        )
        content = numparq.to_parquet(
            frame(),
            encryption=encryption,
            row_group_size=100,
            max_rows_per_page=40,
            data_page_version=version,
            bloom_filter_options={"u": True, "a": True},
        )
        given = {name: key for name, key in (column_keys or {}).items() if key is not None}
        keys = (KEY, OTHER, WIDE)[number % 3], given
        filters = ([("u", "==", "u120")], [("a", ">", 180), ("s", "==", "x3")])
        compare(content, numparq.Decryption(*keys, aad_prefix=prefix), decrypt_file(content, *keys, prefix), filters)


@pytest.mark.parametrize("bits", [128, 256])
def test_files_of_pyarrow(bits):
    import pyarrow as pa

    table = pa.Table.from_pandas(frame(), preserve_index=False)
    for columns, algorithm in ((None, "AES_GCM_V1"), (["a", "l.list.element", "u"], "AES_GCM_CTR_V1")):
        content = encrypt(
            table,
            columns,
            algorithm=algorithm,
            plaintext_footer=columns is not None,
            key_bits=bits,
            row_group_size=100,
            data_page_size=512,
            write_batch_size=32,
            write_page_index=True,
            write_page_checksum=True,
            data_page_version="2.0" if columns else "1.0",
        )
        compare(content, MaterialKeys(), decrypt_file(content, *_keys_in_material(content)))


def test_bytes_behind_column_metadata_are_ignored():
    """parquet-java leaves some in their modules; read as fields of the column chunk they would move its indexes."""
    files = [
        numparq.ParquetFile(content, decryption=violation_keys()) for content in (longer_metadata(), sound_file(True))
    ]
    pd.testing.assert_frame_equal(*(file.read() for file in files))
    chunks = [file.metadata.row_groups[0].columns[0] for file in files]
    assert len({chunk.offset_index_length for chunk in chunks}) == 1


def _keys_in_material(content):
    """Return the keys that the key metadata of a file of pyarrow hold, by its plain structs."""

    def key(metadata):
        return base64.b64decode(json.loads(metadata)["wrappedDEK"])

    length = int.from_bytes(content[-8:-4], "little")
    stored = content[-8 - length : -8]
    if content[-4:] == b"PARE":
        return (key(from_bytes("FileCryptoMetaData", stored)[0].key_metadata),)
    footer, _ = from_bytes("FileMetaData", stored)
    chunks = [chunk for chunk in footer.row_groups[0].columns if chunk.crypto_metadata is not None]
    columns = [chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY for chunk in chunks]
    return key(footer.footer_signing_key_metadata), {
        ".".join(map(bytes.decode, column.path_in_schema)): key(column.key_metadata) for column in columns
    }
