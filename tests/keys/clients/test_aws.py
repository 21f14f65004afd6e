"""AWS KMS, played by an object with the two calls of boto3's client."""

from __future__ import annotations

import pickle
import sys
import traceback
from types import SimpleNamespace

import pandas as pd
import pytest

import numparq
from numparq.errors import DecryptionError
from numparq.keys.clients import AwsKms

KEY = b"a secret key: 16"


class ClientError(Exception):
    """As botocore's: it has the answer, and in this test quotes the request."""

    def __init__(self, code, request) -> None:
        super().__init__(f"{code} {request}")
        self.response = {"Error": {"Code": code}}


class Client:
    """Wraps by putting the name of the key in front."""

    meta = SimpleNamespace(region_name="eu-central-1")

    def __init__(self) -> None:
        self.requests = []

    def encrypt(self, **request):
        self.requests.append(request)
        if request["KeyId"] == "none":
            raise ClientError("NotFoundException", request)
        return {"CiphertextBlob": request["KeyId"].encode() + b":" + request["Plaintext"]}

    def decrypt(self, **request):
        self.requests.append(request)
        name, _, key = request["CiphertextBlob"].partition(b":")
        if name.decode() != request["KeyId"]:
            raise ClientError("IncorrectKeyException", request)
        return {"Plaintext": key}


def test_requests():
    client = Client()
    kms = AwsKms(client, encryption_context={"team": "payroll"})
    assert kms.unwrap_key(kms.wrap_key(KEY, "alias/a"), "alias/a") == KEY
    context = {"EncryptionContext": {"team": "payroll"}}
    assert client.requests == [
        {"KeyId": "alias/a", "Plaintext": KEY, **context},
        {"KeyId": "alias/a", "CiphertextBlob": b"alias/a:" + KEY, **context},
    ]


def test_files():
    kms = AwsKms(Client())
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    data = numparq.to_parquet(frame, encryption=numparq.KmsEncryption(kms, "alias/f", {"alias/c": ["b"]}))
    pd.testing.assert_frame_equal(numparq.read_parquet(data, decryption=numparq.KmsDecryption(kms)), frame)


def test_errors_have_the_code_and_no_request():
    kms = AwsKms(Client())
    with pytest.raises(DecryptionError, match="could not encrypt a key by 'none': NotFoundException") as caught:
        kms.wrap_key(KEY, "none")
    assert KEY.decode() not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(DecryptionError, match="could not decrypt a key by 'b': IncorrectKeyException"):
        kms.unwrap_key(kms.wrap_key(KEY, "a"), "b")
    with pytest.raises(DecryptionError, match="no base64 text"):
        kms.unwrap_key("%", "a")


def test_boto3_is_imported_when_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ImportError, match=r"AWS KMS needs boto3: pip install numparq\[aws\]"):
        AwsKms()
    made = []
    boto3 = SimpleNamespace(client=lambda name, region_name: made.append((name, region_name)) or Client())
    monkeypatch.setitem(sys.modules, "boto3", boto3)
    assert repr(AwsKms(region="eu-central-1")) == "AwsKms(region='eu-central-1')"
    assert made == [("kms", "eu-central-1")]
    with pytest.raises(ValueError, match="a client has its own"):
        AwsKms(Client(), region="eu-central-1")


def test_it_is_not_pickled():
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(AwsKms(Client()))
