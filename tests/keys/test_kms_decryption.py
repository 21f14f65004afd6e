"""`KmsDecryption`: files of parquet-java, key material in and next to files, caches, refusals, no secrets."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
import time
import traceback

import pandas as pd
import pytest

import numparq
from numparq import Decryption, DecryptionError, KmsDecryption, KmsEncryption, ParquetFile
from numparq.keys.clients import FileKms, VaultKms
from numparq.keys.key_material import KeyMaterial
from support.encryption.kms import MASTER_KEYS, MemoryKms

FRAME = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None], "c": [0.5, 1.5, 2.5]})
EXTERNAL = "external_key_material_java.parquet.encrypted"
MATERIAL = f"_KEY_MATERIAL_FOR_{EXTERNAL}.json"
COLUMN_KEYS = {"kc1": ["a"], "kc2": ["b"]}


def encrypted(**options) -> bytes:
    return numparq.to_parquet(FRAME, encryption=KmsEncryption(MemoryKms(), "kf", COLUMN_KEYS, **options))


def copy_external(parquet_testing, folder, name=EXTERNAL) -> None:
    shutil.copy(parquet_testing / "data" / EXTERNAL, folder / name)
    shutil.copy(parquet_testing / "data" / MATERIAL, folder / f"_KEY_MATERIAL_FOR_{name}.json")


def test_external_key_material_of_parquet_java(parquet_testing):
    kms = MemoryKms()
    frame = numparq.read_parquet(parquet_testing / "data" / EXTERNAL, decryption=KmsDecryption(kms))
    assert frame.columns.tolist() == ["integers", "strings"]
    assert frame["integers"].tolist() == [*range(len(frame))]
    assert frame["strings"].tolist()[:3] == ["a0", "b1", "c2"]
    assert sorted(kms.calls) == [("unwrap", name) for name in ("kc1", "kc2", "kf")]


def test_external_key_material_in_a_folder_of_files(parquet_testing, tmp_path):
    for name in ("a.parquet", "b.parquet"):
        copy_external(parquet_testing, tmp_path, name)
    one = numparq.read_parquet(parquet_testing / "data" / EXTERNAL, decryption=KmsDecryption(MemoryKms()))
    both = numparq.read_parquet(tmp_path, decryption=KmsDecryption(MemoryKms()))
    pd.testing.assert_frame_equal(both, pd.concat([one, one], ignore_index=True))


def test_external_key_material_next_to_the_file_of_a_link(parquet_testing, tmp_path):
    (tmp_path / "link.parquet").symlink_to(parquet_testing / "data" / EXTERNAL)
    assert len(numparq.read_parquet(tmp_path / "link.parquet", decryption=KmsDecryption(MemoryKms()))) > 2
    (tmp_path / "_KEY_MATERIAL_FOR_link.parquet.json").write_text("{}")  # the nearer one counts
    with pytest.raises(DecryptionError, match=r"'_KEY_MATERIAL_FOR_link.parquet.json' has no key material"):
        ParquetFile(tmp_path / "link.parquet", decryption=KmsDecryption(MemoryKms()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is missing: it belongs into the folder"),
        (b"[1]", "no JSON object of texts"),
        (b"[" * 100_000, "no JSON object of texts"),
        (b'{"columnKey0": "{}"}', "has no key material 'footerKey'"),
        (b'{"footerKey": "{}"}', "no JSON object of type PKMT1"),
        (b'{"footerKey": "{\\"keyMaterialType\\": \\"PKMT1\\"}"}', "doubleWrapping is missing"),
    ],
)
def test_damaged_external_key_material(parquet_testing, tmp_path, content, message):
    copy_external(parquet_testing, tmp_path)
    (tmp_path / MATERIAL).unlink()
    if content is not None:
        (tmp_path / MATERIAL).write_bytes(content)
    with pytest.raises(DecryptionError, match=message) as caught:
        ParquetFile(tmp_path / EXTERNAL, decryption=KmsDecryption(MemoryKms()))
    assert EXTERNAL in str(caught.value)


def test_external_key_material_needs_a_path(parquet_testing):
    data = (parquet_testing / "data" / EXTERNAL).read_bytes()
    with pytest.raises(DecryptionError, match="stored outside the file; pass the path"):
        ParquetFile(data, decryption=KmsDecryption(MemoryKms()))


def test_a_copy_of_a_file_uses_the_key_material_next_to_it(parquet_testing, tmp_path):
    keys = KmsDecryption(MemoryKms())
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        copy_external(parquet_testing, tmp_path / name)
    with ParquetFile(tmp_path / "a" / EXTERNAL, decryption=keys):
        pass  # its footer is in the caches, its columns are not
    shutil.rmtree(tmp_path / "a")
    assert len(numparq.read_parquet(tmp_path / "b" / EXTERNAL, decryption=keys)) > 2


@pytest.mark.parametrize(("double_wrapping", "reads"), [(True, 3), (False, 3)])
def test_the_client_is_asked_once_for_each_key(double_wrapping, reads):
    data, kms = encrypted(double_wrapping=double_wrapping), MemoryKms()
    keys = KmsDecryption(kms)
    for _ in range(reads):
        pd.testing.assert_frame_equal(numparq.read_parquet(data, decryption=keys), FRAME)
    assert sorted(kms.calls) == [("unwrap", name) for name in ("kc1", "kc2", "kf")]


def test_keys_are_asked_for_again_when_their_lifetime_has_ended():
    data, kms = encrypted(), MemoryKms()
    keys = KmsDecryption(kms, cache_lifetime=0)
    numparq.read_parquet(data, decryption=keys)
    numparq.read_parquet(data, decryption=keys)
    assert kms.calls.count(("unwrap", "kf")) == 2
    kms.refused = {"kf"}
    with pytest.raises(DecryptionError, match="could not unwrap a key by master key 'kf': PermissionError"):
        numparq.read_parquet(data, decryption=keys)


def test_columns_that_the_kms_allows_are_read():
    keys = KmsDecryption(MemoryKms(refused=["kc2"]))
    file = ParquetFile(encrypted(), decryption=keys)
    assert file.read(["a"])["a"].tolist() == [1, 2, 3]
    with pytest.raises(DecryptionError, match="master key 'kc2': PermissionError") as caught:
        file.read()
    assert caught.value.where["column"] == "b"
    assert isinstance(caught.value.__cause__, PermissionError)


def test_threads_share_one_call():
    class SlowKms(MemoryKms):
        def unwrap_key(self, wrapped_key, master_key_id):
            time.sleep(0.02)
            return super().unwrap_key(wrapped_key, master_key_id)

    data, kms = encrypted(), SlowKms()
    keys = KmsDecryption(kms)
    threads = [threading.Thread(target=numparq.read_parquet, args=[data], kwargs={"decryption": keys}) for _ in "1234"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(kms.calls) == [("unwrap", name) for name in ("kc1", "kc2", "kf")]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"short", "cannot be used: a key must have 16, 24 or 32 bytes, not 5"),
        (bytes(16), "zero bytes only is no key"),
        ("text", "returned a str, not bytes"),
        (b"9" * 16, "the wrapped key did not authenticate"),
    ],
)
def test_answers_of_a_client_that_are_no_keys(answer, message):
    class WrongKms(MemoryKms):
        def unwrap_key(self, wrapped_key, master_key_id):
            return answer

    with pytest.raises(DecryptionError, match=message):
        ParquetFile(encrypted(), decryption=KmsDecryption(WrongKms()))


def test_key_metadata_of_other_kinds():
    data = numparq.to_parquet(FRAME, encryption=numparq.Encryption(b"k" * 16, key_metadata=b"name"))
    with pytest.raises(DecryptionError, match=r"key metadata b'name' are no key material of a KMS \(PKMT1\)"):
        ParquetFile(data, decryption=KmsDecryption(MemoryKms()))
    keys = KmsDecryption(MemoryKms(), key_retriever={b"name": b"k" * 16}.__getitem__)
    pd.testing.assert_frame_equal(numparq.read_parquet(data, decryption=keys), FRAME)
    for allowed in (False, True):
        keys = KmsDecryption(MemoryKms(), allow_plaintext_files=allowed)
        if allowed:
            numparq.read_parquet(numparq.to_parquet(FRAME), decryption=keys)
        else:
            with pytest.raises(DecryptionError, match="the file is not encrypted"):
                numparq.read_parquet(numparq.to_parquet(FRAME), decryption=keys)


def test_other_readers_get_nothing_from_the_caches(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(encrypted(plaintext_footer=True))
    numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms()))
    wrong = MemoryKms(MASTER_KEYS | {"kc1": b"8" * 16})
    for keys in (KmsDecryption(wrong), Decryption(b"9" * 16, check_footer_integrity=False), None):
        with pytest.raises(DecryptionError):
            numparq.read_parquet(path, decryption=keys)
    numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms()))


def test_nothing_shows_keys_and_nothing_is_pickled():
    class TokenKms(MemoryKms):
        def __repr__(self):
            return "token s.1234"

    keys = KmsDecryption(TokenKms(), aad_prefix=b"lake")
    assert repr(keys) == f"KmsDecryption(<{TokenKms.__qualname__}>, aad_prefix=b'lake')"
    for each in (keys, keys.for_file("a", None), KmsEncryption(TokenKms(), "kf")):
        assert "1234" not in repr(each)
        with pytest.raises(TypeError, match="pickled or copied"):
            pickle.dumps(each)


@pytest.mark.parametrize("form", [bytes, bytes.hex, lambda key: json.dumps([*key])])
def test_errors_of_a_client_that_quote_the_key_are_no_causes(form):
    class LoudKms(MemoryKms):
        def wrap_key(self, key, master_key_id):
            raise ValueError("cannot wrap", form(key))

    with pytest.raises(DecryptionError, match="could not wrap a key by master key 'kf': ValueError") as caught:
        numparq.to_parquet(FRAME, encryption=KmsEncryption(LoudKms(), "kf"))
    assert caught.value.__cause__ is None
    assert "cannot wrap" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(("client", "shown"), [(object(), "a object"), (MemoryKms, "MemoryKms"), (None, "a NoneType")])
def test_clients_are_checked(client, shown):
    with pytest.raises(TypeError, match=f"must have the methods wrap_key and unwrap_key, and {shown} has not"):
        KmsDecryption(client)


LONG_KEYS = {"kf": b"01234567890123456789012345678901"} | {
    f"kc{number}": b"1234567890123456789012345678901%d" % (number + 1) for number in range(1, 9)
}
LONG_NAMES = ("double", "float", "boolean", "int32", "ba", "flba", "int64", "int96")
SHARED = {
    "encrypt_columns_and_footer": None,
    "encrypt_columns_and_footer_bloom_filter": None,
    "encrypt_columns_and_footer_disable_aad_storage": b"tester",
    "encrypt_columns_plaintext_footer": None,
    "uniform_encryption": None,
    "aes256/encrypt_columns_and_footer": None,
    "aes256/encrypt_columns_and_footer_ctr": None,
    "aes256/uniform_encryption": None,
}


@pytest.mark.parametrize("name", SHARED)
def test_shared_files_by_key_metadata_that_name_keys_of_the_kms(parquet_testing, name):
    path, prefix = parquet_testing / "data" / f"{name}.parquet.encrypted", SHARED[name]
    values = LONG_KEYS if name.startswith("aes256") else MASTER_KEYS
    kms = MemoryKms()
    wrapped = {name.encode(): kms.wrap_key(key, "kf") for name, key in values.items()}
    keys = KmsDecryption(kms, aad_prefix=prefix, key_retriever=lambda metadata: kms.unwrap_key(wrapped[metadata], "kf"))
    columns = {f"{column}_field": values.get(f"kc{number}") for number, column in enumerate(LONG_NAMES, 1)}
    direct = Decryption(values["kf"], {name: key for name, key in columns.items() if key}, aad_prefix=prefix)
    frame = numparq.read_parquet(path, decryption=keys)
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(path, decryption=direct))
    assert len(frame) >= 50
    assert ("unwrap", "kf") in kms.calls


@pytest.mark.parametrize("name", ["\ud800", "", "a" * 60_000, "../kf", "kf\0"])
def test_names_of_master_keys_that_no_kms_has(tmp_path, name):
    path = tmp_path / "keys.json"
    path.write_text("{}")
    path.chmod(0o600)
    metadata = json.dumps(json.loads(KeyMaterial("", "AAAA", True).to_json(is_internal=True)) | {"masterKeyID": name})
    data = numparq.to_parquet(FRAME, encryption=numparq.Encryption(b"k" * 16, key_metadata=metadata.encode()))
    for kms in (MemoryKms(), FileKms(path), VaultKms("http://127.0.0.1:9", token="t", timeout=1)):
        with pytest.raises(DecryptionError) as caught:
            ParquetFile(data, decryption=KmsDecryption(kms))
        assert len(str(caught.value)) < 100_000
