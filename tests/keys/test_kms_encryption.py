"""`KmsEncryption`: keys of their own for files and leaf columns, key material, calls of the client, arguments."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import numparq
from numparq import KmsDecryption, KmsEncryption
from numparq.keys.key_material import parse_key_metadata
from numparq.keys.wrapping import Unwrapper
from support.encryption.kms import MASTER_KEYS, MemoryKms

PATHS = [("a",), ("s", "x"), ("s", "y"), ("b",)]


def keys_of(kms=None, column_keys=None, **options):
    return KmsEncryption(kms or MemoryKms(), "kf", column_keys, **options).file_keys(PATHS)


def test_each_file_and_leaf_column_has_a_key_of_its_own():
    kms = MemoryKms()
    encryption = KmsEncryption(kms, "kf", {"kc1": ["a", "s"], "kc2": [("b",)]})
    files = [encryption.file_keys(PATHS) for _ in range(2)]
    keys = [leaf.key.value for file in files for leaf in [file.footer, *file.leaves]]
    assert len({*keys}) == len(keys) == 10
    assert {len(key) for key in keys} == {16}
    materials = [parse_key_metadata(leaf.key_metadata) for leaf in files[0].leaves]
    assert [each.master_key_id for each in materials] == ["kc1", "kc1", "kc1", "kc2"]
    unwrapper = Unwrapper(MemoryKms(), 600)
    assert [unwrapper.unwrap(each).value for each in materials] == keys[1:5]


def test_columns_without_a_name():
    assert [leaf and leaf.is_footer_key for leaf in keys_of().leaves] == [True] * 4
    assert [leaf and leaf.is_footer_key for leaf in keys_of(column_keys={"kc1": ["s.x"]}).leaves] == [
        None, False, None, None,
    ]  # fmt: skip
    leaves = keys_of(column_keys={"kc1": ["s.x"]}, encrypt_other_columns=True).leaves
    assert [leaf and leaf.is_footer_key for leaf in leaves] == [True, False, True, True]


@pytest.mark.parametrize(("double_wrapping", "calls"), [(True, 2), (False, 8)])
def test_calls_of_the_client(double_wrapping, calls):
    kms = MemoryKms()
    encryption = KmsEncryption(kms, "kf", {"kc1": ["a", "s.x", "b"]}, double_wrapping=double_wrapping)
    for _ in range(2):
        encryption.file_keys(PATHS)
    assert len(kms.calls) == calls
    assert {action for action, _ in kms.calls} == {"wrap"}


def test_a_key_encryption_key_ends_with_its_lifetime():
    def kek_ids(lifetime):
        encryption = KmsEncryption(MemoryKms(), "kf", cache_lifetime=lifetime)
        return {parse_key_metadata(encryption.file_keys(PATHS).footer.key_metadata).kek_id for _ in range(3)}

    assert [len(kek_ids(lifetime)) for lifetime in (600, 0)] == [1, 3]


@pytest.mark.parametrize("bits", [128, 192, 256])
def test_lengths_of_keys(bits):
    frame = pd.DataFrame({"a": range(5), "b": list("abcde")})
    encryption = KmsEncryption(MemoryKms(), "kf", {"kc1": ["a"]}, data_key_length_bits=bits)
    data = numparq.to_parquet(frame, encryption=encryption)
    pd.testing.assert_frame_equal(numparq.read_parquet(data, decryption=KmsDecryption(MemoryKms())), frame)
    assert len(encryption.file_keys([("a",)]).footer.key.value) == bits // 8


def test_key_metadata_have_the_fields_of_other_writers():
    fields = json.loads(keys_of().footer.key_metadata)
    assert fields.keys() == {
        "keyMaterialType", "internalStorage", "isFooterKey", "kmsInstanceID", "kmsInstanceURL", "masterKeyID",
        "wrappedDEK", "doubleWrapping", "keyEncryptionKeyID", "wrappedKEK",
    }  # fmt: skip
    fields = json.loads(keys_of(column_keys={"kc1": ["a"]}, double_wrapping=False).leaves[0].key_metadata)
    assert fields.keys() == {
        "keyMaterialType", "internalStorage", "isFooterKey", "masterKeyID", "wrappedDEK", "doubleWrapping",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"footer_key": b"kf"}, TypeError, "footer_key must name master keys of the KMS by str, not by a bytes"),
        ({"footer_key": ""}, TypeError, "not by an empty text"),
        ({"column_keys": {"kc1": "a"}}, TypeError, r"column_keys\['kc1'\] must be a list"),
        ({"column_keys": {"kc1": ["a"], "kc2": ["a"]}}, ValueError, "names column 'a' twice"),
        ({"column_keys": {"kc1": ["z"]}}, numparq.SchemaError, "column_keys names 'z', which is no column"),
        ({"data_key_length_bits": 64}, ValueError, "must be 128, 192 or 256, not 64"),
        ({"cache_lifetime": -1}, ValueError, "cache_lifetime must be a number of seconds"),
        ({"algorithm": "AES"}, ValueError, "algorithm must be one of"),
        ({"encrypt_other_columns": True}, ValueError, "encrypt_other_columns needs column_keys"),
        (
            {"internal_key_material": False},
            numparq.UnsupportedError,
            "write to a path or a dataset, not into memory",
        ),
        ({"client": object()}, TypeError, "wrap_key and unwrap_key"),
    ],
)
def test_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        KmsEncryption(**{"client": MemoryKms(), "footer_key": "kf"} | arguments).file_keys(PATHS)


def test_nothing_is_written_if_the_kms_fails(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"before")
    with pytest.raises(numparq.DecryptionError, match="could not wrap a key by master key 'kf'"):
        numparq.to_parquet(pd.DataFrame({"a": [1]}), path, encryption=KmsEncryption(MemoryKms(refused=["kf"]), "kf"))
    assert path.read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]


def test_repr_and_columns_that_may_be_encrypted():
    encryption = KmsEncryption(MemoryKms(), "kf", {"kc1": ["a"]}, plaintext_footer=True, aad_prefix=b"lake")
    text = "KmsEncryption(<MemoryKms>, footer_key='kf', 1 column key, aad_prefix=b'lake', plaintext_footer=True)"
    assert repr(encryption) == text
    assert not any(key.decode() in text for key in MASTER_KEYS.values())
    assert [encryption.may_encrypt(name) for name in ("a", "b")] == [True, False]
