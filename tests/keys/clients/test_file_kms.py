"""Master keys in a file: versions, modes, damaged files, no secrets."""

from __future__ import annotations

import base64
import json
import os
import pickle

import pytest

from numparq.errors import DecryptionError
from numparq.keys.clients import FileKms

OLD, NEW = b"o" * 16, b"n" * 32


def text(key: bytes) -> str:
    return base64.b64encode(key).decode()


def key_file(folder, content, mode=0o600):
    path = folder / "keys.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    path.chmod(mode)
    return path


def test_keys_are_wrapped_by_the_newest_version(tmp_path):
    old = FileKms(key_file(tmp_path, {"a": text(OLD)})).wrap_key(b"k" * 16, "a")
    both = FileKms(key_file(tmp_path, {"a": [text(NEW), text(OLD)], "b": text(OLD)}))
    assert both.unwrap_key(old, "a") == b"k" * 16
    new = both.wrap_key(b"j" * 24, "a")
    assert both.unwrap_key(new, "a") == b"j" * 24
    last = FileKms(key_file(tmp_path, {"a": text(NEW)}))
    assert last.unwrap_key(new, "a") == b"j" * 24
    with pytest.raises(DecryptionError, match="the wrapped key did not authenticate"):
        last.unwrap_key(old, "a")
    with pytest.raises(DecryptionError, match="the wrapped key did not authenticate"):
        both.unwrap_key(old, "b")
    with pytest.raises(DecryptionError, match=r"keys.json' has no master key 'c'"):
        both.wrap_key(b"k" * 16, "c")


@pytest.mark.skipif(os.name != "posix", reason="has no modes of files")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_files_that_others_may_use_are_refused(tmp_path, mode):
    with pytest.raises(PermissionError, match=r"others may use the file of keys '.*keys.json'; run: chmod 600 "):
        FileKms(key_file(tmp_path, {"a": text(OLD)}, mode))
    FileKms(key_file(tmp_path, {"a": text(OLD)}, 0o400))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hidden", "is no JSON object"),
        (b"[" * 100_000, "is no JSON object"),
        ([text(OLD)], "is no JSON object"),
        ({"a": 7}, "key 'a' .* must be a base64 text"),
        ({"a": []}, "key 'a' .* must be a base64 text"),
        ({"a": "secret!"}, "key 'a' .* is no base64 text"),
        ({"a": text(b"secret")}, "key 'a' .* a key must have 16, 24 or 32 bytes, not 6"),
        ({"a": text(bytes(16))}, "key 'a' .* zero bytes"),
        (b" " * ((1 << 20) + 1), "more than 1,048,576 bytes"),
    ],
)
def test_other_files(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        FileKms(key_file(tmp_path, content))
    assert not {"hidden", "secret!"} & {*str(caught.value).split()}


def test_nothing_shows_keys(tmp_path):
    kms = FileKms(key_file(tmp_path, {"a": text(OLD)}))
    assert repr(kms) == f"FileKms({str(tmp_path / 'keys.json')!r})"
    assert text(OLD) not in repr(vars(kms))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(kms)
