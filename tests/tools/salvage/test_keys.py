"""Salvage of encrypted files: what is saved is what `on_error="skip"` reads, and `verify` finds the damage."""

from __future__ import annotations

import base64
import json

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import DecryptionError, InvalidFileError
from numparq.cli import main
from support.encryption.kms import MemoryKms
from support.hostile.byte_damage import flipped_bytes
from support.oracles.encryption import EncryptedFile

FOOTER_KEY, COLUMN_KEY, NEW_KEY = b"f" * 16, b"c" * 32, b"n" * 16
KEYS = numparq.Decryption(FOOTER_KEY, {"a": COLUMN_KEY})
NEW = numparq.Encryption(NEW_KEY)


def frame():
    numbers = np.arange(120)
    return pd.DataFrame({"a": numbers, "l": [[number, 7] for number in numbers], "p": [f"p{n % 5}" for n in numbers]})


def write(plaintext_footer=False, algorithm="AES_GCM_V1", **options):
    encryption = numparq.Encryption(
        FOOTER_KEY, {"a": COLUMN_KEY, "l": None}, plaintext_footer=plaintext_footer, algorithm=algorithm
    )
    options = {"row_group_size": 60, "max_rows_per_page": 20} | options
    return numparq.to_parquet(frame(), encryption=encryption, **options)


def salvage(tmp_path, content, **options):
    (tmp_path / "broken").write_bytes(content)
    (tmp_path / "saved").unlink(missing_ok=True)
    return numparq.salvage(tmp_path / "broken", tmp_path / "saved", **options)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_sound_files_are_written_anew(tmp_path, plaintext_footer):
    content = write(plaintext_footer)
    report = salvage(tmp_path, content, decryption=KEYS, encryption=NEW)
    assert (report.num_rows, report.num_row_groups, report.lost) == (120, 2, [])
    saved = (tmp_path / "saved").read_bytes()
    assert saved[:4] == b"PARE"
    pd.testing.assert_frame_equal(numparq.read_parquet(saved, decryption=numparq.Decryption(NEW_KEY)), frame())
    assert numparq.verify(saved, decryption=numparq.Decryption(NEW_KEY)) == []
    report = salvage(tmp_path, content, decryption=KEYS, plaintext_output=True)
    assert report.num_rows == 120
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path / "saved"), frame())


def test_plain_files_become_encrypted(tmp_path):
    plain = numparq.to_parquet(frame())
    prefix = numparq.Encryption(NEW_KEY, {"a": COLUMN_KEY}, aad_prefix=b"lake", store_aad_prefix=False)
    report = salvage(tmp_path, plain, encryption=prefix)
    assert report.num_rows == 120
    keys = numparq.Decryption(NEW_KEY, {"a": COLUMN_KEY}, aad_prefix=b"lake")
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path / "saved", decryption=keys), frame())


@pytest.mark.parametrize("internal", [False, True])
def test_keys_of_a_kms(tmp_path, internal):
    """Key material of the new file is next to it, or in it."""
    kms = MemoryKms()
    encryption = numparq.KmsEncryption(kms, "kf", {"kc1": ["a"]}, internal_key_material=internal)
    report = salvage(tmp_path, write(), decryption=KEYS, encryption=encryption)
    assert report.num_rows == 120
    assert (tmp_path / "_KEY_MATERIAL_FOR_saved.json").exists() == (not internal)
    found = numparq.read_parquet(tmp_path / "saved", decryption=numparq.KmsDecryption(kms))
    pd.testing.assert_frame_equal(found, numparq.read_parquet(write(), decryption=KEYS))
    report = numparq.salvage(
        tmp_path / "saved", tmp_path / "plain", decryption=numparq.KmsDecryption(kms), plaintext_output=True
    )
    assert report.num_rows == 120


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_an_encrypted_file_needs_a_decision(tmp_path, plaintext_footer):
    content = write(plaintext_footer)
    with pytest.raises(ValueError, match="pass encryption= with keys for the new file, or plaintext_output=True"):
        salvage(tmp_path, content, decryption=KEYS)
    with pytest.raises(ValueError, match="exclude each other"):
        salvage(tmp_path, content, decryption=KEYS, encryption=NEW, plaintext_output=True)
    assert not (tmp_path / "saved").exists()


def test_columns_without_a_key_are_lost(tmp_path):
    some = numparq.Decryption(FOOTER_KEY)
    for content, keys, lost in (
        (write(True), None, {"a", "l"}),
        (write(True), some, {"a"}),
        (write(False), some, {"a"}),
    ):
        report = salvage(tmp_path, content, decryption=keys, plaintext_output=True)
        assert report.num_rows == 120
        assert any("encrypted" in line for line in report.lost)
        assert set(numparq.read_parquet(tmp_path / "saved")) == {"a", "l", "p"} - lost


def test_files_that_cannot_be_opened(tmp_path):
    content = write()
    with pytest.raises(DecryptionError, match="the footer is encrypted"):
        salvage(tmp_path, content, plaintext_output=True)
    with pytest.raises(DecryptionError, match="did not authenticate"):
        salvage(tmp_path, content, decryption=numparq.Decryption(NEW_KEY), plaintext_output=True)
    with pytest.raises(InvalidFileError, match="without its footer nothing of it can be decrypted"):
        salvage(tmp_path, content[:-30], decryption=KEYS, plaintext_output=True)
    with pytest.raises(DecryptionError, match="the file is not encrypted"):
        salvage(tmp_path, numparq.to_parquet(frame()), decryption=KEYS, plaintext_output=True)
    plain = numparq.to_parquet(frame())
    with pytest.raises(numparq.UnsupportedError, match="salvage it without encryption="):
        salvage(tmp_path, plain[:-30], schema=plain, encryption=NEW)
    with pytest.raises(numparq.SchemaError, match="column_keys names 'b'"):
        salvage(tmp_path, content, decryption=KEYS, encryption=numparq.Encryption(NEW_KEY, {"b": COLUMN_KEY}))
    assert not (tmp_path / "saved").exists()


def test_magic_numbers_are_restored(tmp_path):
    report = salvage(tmp_path, b"\0\0\0\0" + write()[4:], decryption=KEYS, plaintext_output=True)
    assert (report.num_rows, report.lost) == (120, [])


def check(tmp_path, content, keys=KEYS):
    """Check that skipping reads, salvage and verify agree on a damaged file; return the losses."""
    try:
        skipped = numparq.read_parquet(content, decryption=keys, on_error="skip")
    except numparq.ParquetError:
        with pytest.raises(numparq.ParquetError):
            salvage(tmp_path, content, decryption=keys, plaintext_output=True)
        return ["the file"]
    lost = skipped.attrs.pop("numparq.lost")
    errors = [one for one in numparq.verify(content, decryption=keys) if one.severity == "error"]
    assert bool(errors) >= bool(lost)
    expected = numparq.read_parquet(numparq.to_parquet(frame())).loc[skipped.index, list(skipped)]
    pd.testing.assert_frame_equal(skipped, expected)
    if len(skipped.columns) and len(skipped):
        report = salvage(tmp_path, content, decryption=keys, plaintext_output=True)
        assert bool(report.lost) == bool(lost)
        saved = numparq.read_parquet(tmp_path / "saved")
        pd.testing.assert_frame_equal(saved, skipped.reset_index(drop=True))
    return [loss.reason for loss in lost]


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_skip_salvage_and_verify_agree(tmp_path, plaintext_footer):
    content = write(plaintext_footer)
    reasons = []
    for what, changed in flipped_bytes(content, 3, 4, 12):
        reasons += check(tmp_path, changed)
        assert what
    assert any("did not authenticate" in reason for reason in reasons)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_damaged_column_metadata(tmp_path, plaintext_footer):
    for damage in (
        lambda sealed: sealed[:-1] + bytes([sealed[-1] ^ 1]),
        lambda sealed: sealed[:20],
        lambda sealed: b"",
    ):
        file = EncryptedFile(write(plaintext_footer), FOOTER_KEY, {"a": COLUMN_KEY})
        chunk = file.footer.row_groups[0].columns[0]
        chunk.encrypted_column_metadata = damage(chunk.encrypted_column_metadata)
        assert check(tmp_path, file.save())


def test_damaged_column_chunks(tmp_path):
    """A chunk that lacks a required field is lost; how the others are encrypted is known."""
    file = EncryptedFile(write(True), FOOTER_KEY, {"a": COLUMN_KEY})
    file.footer.row_groups[0].columns[0].crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema = None
    content = file.save()
    assert check(tmp_path, content)
    assert numparq.ParquetFile(content).encryption.columns.keys() == {("a",), ("l", "list", "element")}


def test_command(tmp_path, capsys):
    def key_file(name, **keys):
        (tmp_path / name).write_text(json.dumps(keys))
        (tmp_path / name).chmod(0o600)
        return str(tmp_path / name)

    broken, saved = str(tmp_path / "broken"), str(tmp_path / "saved")
    (tmp_path / "broken").write_bytes(write())
    key, other, new = (base64.b64encode(each).decode() for each in (FOOTER_KEY, COLUMN_KEY, NEW_KEY))
    keys = ["--key-file", key_file("keys.json", footer_key=key, column_keys={"a": other})]
    assert main(["salvage", broken, saved, *keys]) == 2
    assert "pass --output-key-file, --output-key-provider or --plaintext-output" in capsys.readouterr().err
    assert main(["salvage", broken, saved, *keys, "--plaintext-output"]) == 0
    assert len(numparq.read_parquet(saved)) == 120
    output = ["--output-key-file", key_file("new.json", footer_key=new), "--force"]
    assert main(["salvage", broken, saved, *keys, *output]) == 0
    assert len(numparq.read_parquet(saved, decryption=numparq.Decryption(NEW_KEY))) == 120


def test_key_material_is_stored_next_to_the_new_file(tmp_path):
    kms = MemoryKms()
    encryption = numparq.KmsEncryption(kms, "kf", {"kc1": ["a"]}, internal_key_material=False)
    frame = pd.DataFrame({"a": np.arange(500), "b": 1.5})
    numparq.to_parquet(frame, tmp_path / "a.parquet", encryption=encryption)
    decryption = numparq.KmsDecryption(kms)
    saved = numparq.salvage(
        tmp_path / "a.parquet", tmp_path / "b.parquet", decryption=decryption, encryption=encryption
    )
    assert saved.num_rows == 500
    assert (tmp_path / "_KEY_MATERIAL_FOR_b.parquet.json").exists()
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path / "b.parquet", decryption=decryption), frame)
