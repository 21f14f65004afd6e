"""Rotation of master keys: files of ours, of pyarrow and of parquet-java, folders, refusals, crashes, races."""

from __future__ import annotations

import json
import os
import shutil

import pandas as pd
import pytest

import numparq
from numparq import DecryptionError, KmsDecryption, KmsEncryption, UnsupportedError, rotate_master_keys
from numparq.io import local_sink
from support.encryption.kms import MASTER_KEYS, MemoryKms

FRAME = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
NEW_KEYS = {name: b"n" + key[1:] for name, key in MASTER_KEYS.items()}
JAVA = "external_key_material_java.parquet.encrypted"


class RotatingKms(MemoryKms):
    """Wraps by new master keys, and unwraps by old ones too."""

    def __init__(self) -> None:
        super().__init__(NEW_KEYS)
        self.old = MemoryKms()

    def unwrap_key(self, wrapped_key, master_key_id):
        try:
            return super().unwrap_key(wrapped_key, master_key_id)
        except Exception:
            return self.old.unwrap_key(wrapped_key, master_key_id)


def write(path, **options) -> None:
    options = {"internal_key_material": False} | options
    numparq.to_parquet(FRAME, path, encryption=KmsEncryption(MemoryKms(), "kf", {"kc1": ["a"]}, **options))


def read(path, keys=NEW_KEYS) -> pd.DataFrame:
    return numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms(keys)))


def content(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_keys_are_wrapped_by_the_new_versions(tmp_path, plaintext_footer, before, after):
    path = tmp_path / "a.parquet"
    write(path, double_wrapping=before, plaintext_footer=plaintext_footer)
    data, kms = path.read_bytes(), RotatingKms()
    assert rotate_master_keys(path, kms, double_wrapping=after) == 1
    assert path.read_bytes() == data
    pd.testing.assert_frame_equal(read(path), FRAME)
    with pytest.raises(DecryptionError):
        read(path, MASTER_KEYS)
    material = json.loads((tmp_path / "_KEY_MATERIAL_FOR_a.parquet.json").read_bytes())
    assert [json.loads(text)["doubleWrapping"] for text in material.values()] == [after] * 2
    assert {name for _, name in kms.calls} == {"kf", "kc1"}


def test_files_of_parquet_java(parquet_testing, tmp_path):
    for name in (JAVA, f"_KEY_MATERIAL_FOR_{JAVA}.json"):
        shutil.copy(parquet_testing / "data" / name, tmp_path)
        (tmp_path / name).chmod(0o644)
    expected = read(tmp_path / JAVA, MASTER_KEYS)
    assert rotate_master_keys(tmp_path, RotatingKms()) == 1
    pd.testing.assert_frame_equal(read(tmp_path / JAVA), expected)


def test_folders(tmp_path):
    (tmp_path / "year=2026").mkdir()
    (tmp_path / "year=2027").mkdir()
    write(tmp_path / "year=2026" / "a.parquet")
    write(tmp_path / "year=2027" / "b.parquet")
    numparq.to_parquet(FRAME, tmp_path / "year=2027" / "plain.parquet")
    numparq.to_parquet(FRAME, tmp_path / "year=2027" / "direct.parquet", encryption=numparq.Encryption(b"k" * 16))
    assert rotate_master_keys(tmp_path, RotatingKms()) == 2
    pd.testing.assert_frame_equal(read(tmp_path / "year=2026" / "a.parquet"), FRAME)
    pd.testing.assert_frame_equal(read(tmp_path / "year=2027" / "b.parquet"), FRAME)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_internal_key_material_is_refused_before_anything_changes(tmp_path, plaintext_footer):
    write(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet", internal_key_material=True, plaintext_footer=plaintext_footer)
    before = content(tmp_path)
    message = "the wrapped keys are inside the file and cannot be replaced; write it again.*'.*b.parquet'"
    for path in (tmp_path, tmp_path / "b.parquet"):
        with pytest.raises(UnsupportedError, match=message):
            rotate_master_keys(path, RotatingKms())
    assert content(tmp_path) == before


def test_links(tmp_path):
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "a.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "data" / "a.parquet")
    assert rotate_master_keys(tmp_path / "link.parquet", RotatingKms()) == 1
    pd.testing.assert_frame_equal(read(tmp_path / "data" / "a.parquet"), FRAME)


def test_remote_file_systems():
    fsspec = pytest.importorskip("fsspec")
    write("memory://rotated/a.parquet")
    assert rotate_master_keys("memory://rotated", RotatingKms()) == 1
    pd.testing.assert_frame_equal(read("memory://rotated/a.parquet"), FRAME)
    assert rotate_master_keys("/rotated/a.parquet", RotatingKms(), filesystem=fsspec.filesystem("memory")) == 1


def test_missing_and_damaged_key_material(tmp_path):
    write(tmp_path / "a.parquet")
    material = tmp_path / "_KEY_MATERIAL_FOR_a.parquet.json"
    material.write_text("{")
    with pytest.raises(DecryptionError, match=r"no JSON object of texts \(file '.*a.parquet'\)"):
        rotate_master_keys(tmp_path, RotatingKms())
    material.unlink()
    with pytest.raises(DecryptionError, match=r"'_KEY_MATERIAL_FOR_a.parquet.json', is missing"):
        rotate_master_keys(tmp_path, RotatingKms())


def test_a_failing_kms_changes_nothing(tmp_path):
    write(tmp_path / "a.parquet")
    before, kms = content(tmp_path), RotatingKms()
    kms.refused = {"kc1"}
    kms.old.refused = {"kc1"}
    with pytest.raises(DecryptionError, match="master key 'kc1'"):
        rotate_master_keys(tmp_path, kms)
    assert content(tmp_path) == before


def test_a_crash_leaves_the_old_key_material(tmp_path, monkeypatch):
    def crash(start, end):
        raise KeyboardInterrupt

    write(tmp_path / "a.parquet")
    before = content(tmp_path)
    monkeypatch.setattr(local_sink.os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        rotate_master_keys(tmp_path, RotatingKms())
    assert content(tmp_path) == before


def test_key_material_that_a_writer_replaces_meanwhile(tmp_path):
    class WritingKms(RotatingKms):
        def wrap_key(self, key, master_key_id):
            if not self.calls:
                write(path)
            return super().wrap_key(key, master_key_id)

    path = tmp_path / "a.parquet"
    write(path)
    kms = WritingKms()
    kms.unwrap_key = kms.old.unwrap_key
    with pytest.raises(numparq.InvalidFileError, match="was replaced meanwhile; rotate again"):
        rotate_master_keys(path, kms)
    pd.testing.assert_frame_equal(read(path, MASTER_KEYS), FRAME)
    assert sorted(os.listdir(tmp_path)) == ["_KEY_MATERIAL_FOR_a.parquet.json", "a.parquet"]


def test_arguments(tmp_path):
    with pytest.raises(TypeError, match="wrap_key and unwrap_key"):
        rotate_master_keys(tmp_path, object())
    with pytest.raises(FileNotFoundError):
        rotate_master_keys(tmp_path / "none", MemoryKms())


def test_open_files_find_rotated_key_material(tmp_path):
    path, kms = tmp_path / "a.parquet", MemoryKms()
    encryption = KmsEncryption(MemoryKms(), "kf", {"kc1": ["a"], "kc2": ["b"]}, internal_key_material=False)
    numparq.to_parquet(FRAME, path, encryption=encryption)
    file = numparq.ParquetFile(path, decryption=KmsDecryption(kms))
    assert file.read(["a"])["a"].tolist() == [1, 2, 3]
    rotate_master_keys(path, RotatingKms())
    kms.keys = NEW_KEYS  # the old versions are gone
    pd.testing.assert_frame_equal(file.read(), FRAME)
    kms.keys = {name: b"x" + key[1:] for name, key in NEW_KEYS.items()}
    file = numparq.ParquetFile(path, decryption=KmsDecryption(MemoryKms(NEW_KEYS | {"kc2": b"x" * 16})))
    assert file.read(["a"])["a"].tolist() == [1, 2, 3]
    with pytest.raises(DecryptionError, match="master key 'kc2'"):
        file.read(["b"])
