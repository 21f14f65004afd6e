"""Key files of the command line: what they may hold, and messages that quote none of it."""

from __future__ import annotations

import base64
import json
import os

import pandas as pd
import pytest

import numparq
from numparq.keys.key_file import KeyFile

KEY, OTHER = b"0123456789abcdef", b"fedcba9876543210"


def text(key):
    return base64.b64encode(key).decode()


def write(path, content, mode=0o600):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


def test_keys_write_and_read(tmp_path):
    path = write(
        tmp_path / "keys.json",
        {
            "footer_key": text(KEY),
            "column_keys": {"a": text(OTHER), "b": None},
            "aad_prefix": "lake/é",
            "algorithm": "AES_GCM_CTR_V1",
            "plaintext_footer": True,
            "store_aad_prefix": False,
            "footer_key_metadata": "kf",
            "column_key_metadata": {"a": "ka"},
            "check_footer_integrity": True,
        },
    )
    keys = KeyFile(path)
    assert repr(keys) == f"KeyFile({str(path)!r})"
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]})
    content = numparq.to_parquet(frame, encryption=keys.encryption())
    pd.testing.assert_frame_equal(numparq.read_parquet(content, decryption=keys.decryption()), frame)
    direct = numparq.Decryption(KEY, {"a": OTHER}, aad_prefix="lake/é".encode())
    pd.testing.assert_frame_equal(numparq.read_parquet(content, decryption=direct), frame)
    encryption = numparq.ParquetFile(content).encryption
    assert (encryption.algorithm, encryption.footer_key_metadata) == ("AES_GCM_CTR_V1", b"kf")
    assert encryption.columns == {("a",): (False, b"ka"), ("b",): (True, None)}


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o602, 0o644])
def test_files_that_others_may_use_are_refused(tmp_path, mode):
    path = write(tmp_path / "my keys.json", {"footer_key": text(KEY)}, mode)
    with pytest.raises(PermissionError) as caught:
        KeyFile(path)
    assert str(caught.value).endswith(f"; run: chmod 600 '{path}'")
    path.chmod(0o600)
    KeyFile(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"footer_key": SECRET', "is no JSON object"),
        ('["SECRET"]', "is no JSON object"),
        ({"SECRET": 1}, "has an unknown field; it may have footer_key, column_keys, aad_prefix"),
        ({"footer_key": ["SECRET"]}, "has footer_key of a wrong type"),
        ({"footer_key": "SECRET!"}, "has footer_key that is no base64"),
        (
            {"footer_key": text(b"short SECRET")},
            "has footer_key that is no key: a key must have 16, 24 or 32 bytes, not 12",
        ),
        ({"column_keys": {"a": "SECRET!"}}, "has the key of column 'a' that is no base64"),
        ({"column_keys": {"a": 17}}, "has the key of column 'a' that is no text"),
        ({"plaintext_footer": "SECRET"}, "has plaintext_footer of a wrong type"),
        ("[" * 100_000, "is no JSON object"),
    ],
)
def test_messages_quote_no_value(tmp_path, content, message):
    path = write(tmp_path / "keys.json", content)
    with pytest.raises(ValueError, match=message) as caught:
        KeyFile(path).decryption()
    errors = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert not any("SECRET" in f"{error!s} {vars(error)}" for error in errors if error is not None)


def test_a_file_to_write_needs_a_footer_key(tmp_path):
    path = write(tmp_path / "keys.json", {"column_keys": {"a": text(KEY)}})
    assert repr(KeyFile(path).decryption()) == "Decryption(1 column key)"
    with pytest.raises(ValueError, match="has no footer_key, which a file to write needs"):
        KeyFile(path).encryption()


def test_large_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="more than 1,048,576 bytes"):
        KeyFile(write(tmp_path / "keys.json", " " * (1 << 21)))
