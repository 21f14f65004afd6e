"""Master keys, data keys and tokens reach no file, text of an object, exception or pickle."""

from __future__ import annotations

import base64
import json
import os

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.crypto.key import Key
from numparq.errors import ParquetError
from numparq.keys import kms_encryption
from numparq.keys.clients import AwsKms, FileKms, VaultKms
from support.encryption import secrets
from support.encryption.kms import MemoryKms
from support.encryption.secrets import COLUMN_KEY, FOOTER_KEY, TEXT, secrets_in

FRAME = pd.DataFrame({"s": [f"{TEXT} {number % 3}" for number in range(50)], "p": np.arange(50)})


@pytest.fixture
def kms(tmp_path, monkeypatch):
    """Return a KMS with marker keys; all data keys are markers too."""
    monkeypatch.chdir(tmp_path)
    keys = {name: base64.b64encode(key).decode() for name, key in (("kf", FOOTER_KEY), ("kc", COLUMN_KEY))}
    with open("keys.json", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        json.dump(keys, file)
    monkeypatch.setattr(kms_encryption, "Key", lambda value: Key(FOOTER_KEY))
    return FileKms("keys.json")


def traces(folder, texts) -> list[str]:
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "keys.json"]
    return [name for content in (*texts, *contents) for name in secrets_in(content)]


def objects(kms, **options):
    encryption = numparq.KmsEncryption(kms, "kf", {"kc": ["s"]}, **options)
    return encryption, numparq.KmsDecryption(kms)


@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("double_wrapping", [True, False])
def test_files_and_objects(tmp_path, kms, internal, double_wrapping):
    encryption, decryption = objects(
        kms, internal_key_material=internal, double_wrapping=double_wrapping, plaintext_footer=True
    )
    options = {"encryption": encryption, "compression": None}
    numparq.to_parquet(FRAME, "a.parquet", **options)
    numparq.to_parquet(FRAME, "parts", partition_cols=["p"], **options)
    file, dataset = (
        numparq.ParquetFile("a.parquet", decryption=decryption),
        numparq.Dataset("parts", decryption=decryption),
    )
    assert len(file.read()) == len(dataset.read()) == 50
    if not internal:
        assert numparq.rotate_master_keys("parts", kms) == 50
    texts = []
    for thing in (kms, encryption, decryption, file, dataset, decryption.for_file("a", None)):
        texts += [*secrets.texts_of(thing), secrets.pickle_of(thing)]
    assert traces(tmp_path, texts) == []


class QuotingKms(MemoryKms):
    """Fails with errors that quote what it was given, or has found."""

    def wrap_key(self, key, master_key_id):
        raise ValueError(f"cannot wrap {key!r}", {"plaintext": base64.b64encode(key).decode()}) from KeyError(key.hex())

    def unwrap_key(self, wrapped_key, master_key_id):
        return f"no key: {FOOTER_KEY!r}"


def test_errors(tmp_path, kms):
    numparq.to_parquet(FRAME, "a.parquet", encryption=objects(kms)[0])
    calls = [
        lambda: numparq.to_parquet(FRAME, "b.parquet", encryption=objects(QuotingKms(), double_wrapping=False)[0]),
        lambda: numparq.read_parquet("a.parquet", decryption=objects(QuotingKms())[1]),
        lambda: kms.unwrap_key("%" + FOOTER_KEY.decode(), "kf"),
        lambda: kms.unwrap_key(base64.b64encode(b"short").decode(), "kf"),
    ]
    texts = []
    for call in calls:
        with pytest.raises(ParquetError) as caught:
            call()
        texts += secrets.texts_of_error(caught.value)
    assert traces(tmp_path, texts) == []


def test_clients_with_tokens():
    class Client:
        def encrypt(self, **request):
            raise ValueError(f"bad request {request}")

    texts, token = [], FOOTER_KEY.decode()
    for client in (VaultKms("http://127.0.0.1:9", token=token, timeout=1), AwsKms(Client())):
        texts += [*secrets.texts_of(client), secrets.pickle_of(client)]
        with pytest.raises(ParquetError) as caught:
            client.wrap_key(COLUMN_KEY, "kf")
        texts += secrets.texts_of_error(caught.value)
    assert [name for text in texts for name in secrets_in(text)] == []
