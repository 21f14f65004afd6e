"""Key material as JSON: both kinds of wrapping, references, texts of others, damage."""

from __future__ import annotations

import json

import pytest

from numparq.errors import DecryptionError
from numparq.keys.key_material import KeyMaterial, KeyReference, parse_key_material, parse_key_metadata

DOUBLE = KeyMaterial("kf", "wrapped", True, b"0123456789abcdef", "wrapped kek")
FIELDS = json.loads(DOUBLE.to_json(is_internal=True))


@pytest.mark.parametrize("material", [DOUBLE, KeyMaterial("k c", "w", False)])
def test_round_trips(material):
    assert parse_key_metadata(material.to_json(is_internal=True).encode()) == material
    assert parse_key_material(material.to_json(is_internal=False)) == material
    assert "internalStorage" not in json.loads(material.to_json(is_internal=False))


def test_references():
    data = KeyReference("columnKey0").to_json().encode()
    assert parse_key_metadata(data) == KeyReference("columnKey0")
    assert json.loads(data) == {"keyMaterialType": "PKMT1", "internalStorage": False, "keyReference": "columnKey0"}


@pytest.mark.parametrize(
    "data", [b"", b"kf", b"\xff\xfe", b"[]", b"{}", b'{"keyMaterialType": "PKMT2"}', b"[" * 60_000, b" " * 70_000]
)
def test_key_metadata_of_others(data):
    assert parse_key_metadata(data) is None
    with pytest.raises(DecryptionError, match="no JSON object of type PKMT1"):
        parse_key_material(data.decode(errors="replace"))


@pytest.mark.parametrize("name", sorted(FIELDS.keys() - {"keyMaterialType", "kmsInstanceID", "kmsInstanceURL"}))
def test_missing_fields_and_wrong_types(name):
    for value, fault in ((None, "missing"), (7, "a int, not a (str|bool)")):
        with pytest.raises(DecryptionError, match=f"damaged: {name} is {fault}"):
            parse_key_metadata(json.dumps(FIELDS | {name: value}).encode())


def test_base64_is_checked():
    with pytest.raises(DecryptionError, match="keyEncryptionKeyID is no base64 text"):
        parse_key_metadata(json.dumps(FIELDS | {"keyEncryptionKeyID": "%"}).encode())
