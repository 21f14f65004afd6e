"""Key material (PKMT1): JSON with a wrapped data key and its master key, or with the name of such an entry."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from numparq.errors import DecryptionError

TYPE = "PKMT1"
_MAX_BYTES = 64 << 10
_Value = TypeVar("_Value", str, bool)
_DEFAULT_INSTANCE = {"kmsInstanceID": "DEFAULT", "kmsInstanceURL": "DEFAULT"}  # which KMS: the reader's client knows


class KeyMaterial(NamedTuple):
    """A wrapped data key.

    Attributes
    ----------
    master_key_id : str
        Name of the master key.
    wrapped_key : str
        The data key, wrapped by the master key, or by a key encryption key (KEK).
    is_footer_key : bool
        Whether it is the footer's.
    kek_id : bytes or None
        Name of the KEK, with double wrapping.
    wrapped_kek : str or None
        The KEK, wrapped by the master key.
    """

    master_key_id: str
    wrapped_key: str
    is_footer_key: bool
    kek_id: bytes | None = None
    wrapped_kek: str | None = None

    def to_json(self, *, is_internal: bool) -> str:
        """Return the JSON text, for key metadata (internal) or for a file of key material."""
        fields: dict[str, object] = {"keyMaterialType": TYPE}
        if is_internal:
            fields["internalStorage"] = True
        fields["isFooterKey"] = self.is_footer_key
        if self.is_footer_key:
            fields |= _DEFAULT_INSTANCE
        fields |= {"masterKeyID": self.master_key_id, "wrappedDEK": self.wrapped_key}
        fields["doubleWrapping"] = self.kek_id is not None
        if self.kek_id is not None:
            fields |= {"keyEncryptionKeyID": base64.b64encode(self.kek_id).decode(), "wrappedKEK": self.wrapped_kek}
        return json.dumps(fields, separators=(",", ":"))


class KeyReference(NamedTuple):
    """Name of an entry in a file of key material."""

    name: str

    def to_json(self) -> str:
        """Return the JSON text of key metadata."""
        fields = {"keyMaterialType": TYPE, "internalStorage": False, "keyReference": self.name}
        return json.dumps(fields, separators=(",", ":"))


def parse_key_metadata(key_metadata: bytes) -> KeyMaterial | KeyReference | None:
    """Return the key material of key metadata, or where it is; None if they are of another kind."""
    fields = _parse(key_metadata)
    if fields is None or fields.get("keyMaterialType") != TYPE:
        return None
    if _field(fields, "internalStorage", bool):
        return _material(fields)
    return KeyReference(_field(fields, "keyReference", str))


def parse_key_material(text: str) -> KeyMaterial:
    """Return the key material of an entry in a file of key material; DecryptionError if it is damaged."""
    fields = _parse(text.encode(errors="surrogatepass"))
    if fields is None or fields.get("keyMaterialType") != TYPE:
        raise DecryptionError(f"the key material is damaged: it is no JSON object of type {TYPE}")
    return _material(fields)


def _material(fields: Mapping[str, Any]) -> KeyMaterial:
    kek_id = wrapped_kek = None
    if _field(fields, "doubleWrapping", bool):
        wrapped_kek = _field(fields, "wrappedKEK", str)
        kek_id = decode_base64(_field(fields, "keyEncryptionKeyID", str), "keyEncryptionKeyID")
    return KeyMaterial(
        _field(fields, "masterKeyID", str),
        _field(fields, "wrappedDEK", str),
        _field(fields, "isFooterKey", bool),
        kek_id,
        wrapped_kek,
    )


def decode_base64(text: str | bytes, name: str) -> bytes:
    """Return the bytes of base64 text; DecryptionError without the text."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DecryptionError(f"{name} is no base64 text") from None


def _parse(data: bytes) -> dict[str, Any] | None:
    """Return a JSON object; None for anything else."""
    if len(data) > _MAX_BYTES:
        return None
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _field(fields: Mapping[str, Any], name: str, kind: type[_Value]) -> _Value:
    value = fields.get(name)
    if not isinstance(value, kind):
        fault = "missing" if value is None else f"a {type(value).__name__}, not a {kind.__name__}"
        raise DecryptionError(f"the key material is damaged: {name} is {fault}")
    return value
