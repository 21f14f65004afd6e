"""Data keys wrapped and unwrapped: by a KMS client, by key encryption keys (KEKs), and by a key that is here."""

from __future__ import annotations

import base64
import hashlib
import json
import os

from numparq.crypto.ciphers import LENGTH_BYTES, NONCE_BYTES, make_gcm, open_module
from numparq.crypto.key import Key
from numparq.errors import DecryptionError

from .client import KmsClient, unwrap_key, wrap_key
from .kek_cache import KeyCache
from .key_material import KeyMaterial, decode_base64

KEK_BYTES = KEK_ID_BYTES = 16


def wrap_locally(wrapping_key: Key, value: bytes, aad: bytes) -> str:
    """Return a key wrapped by another: base64 of nonce, ciphertext and tag of AES-GCM."""
    nonce = os.urandom(NONCE_BYTES)
    return base64.b64encode(nonce + make_gcm(wrapping_key).encrypt(nonce, value, aad)).decode()


def unwrap_locally(wrapping_key: Key, wrapped: str | bytes, aad: bytes) -> bytes:
    """Return the key that `wrap_locally` wrapped; DecryptionError if it does not authenticate."""
    sealed = decode_base64(wrapped, "the wrapped key")
    return open_module(wrapping_key, len(sealed).to_bytes(LENGTH_BYTES, "little") + sealed, aad, "wrapped key")


class Unwrapper:
    """Data keys of key material; the client unwraps each wrapped key once within a lifetime in seconds."""

    def __init__(self, client: KmsClient, lifetime: float) -> None:
        self._client, self._keys = client, KeyCache(lifetime)

    def unwrap(self, material: KeyMaterial) -> Key:
        """Return the data key of key material."""
        if material.kek_id is None or material.wrapped_kek is None:
            return self._unwrap_by_master_key(material.wrapped_key, material.master_key_id)
        kek = self._unwrap_by_master_key(material.wrapped_kek, material.master_key_id)
        return _data_key(unwrap_locally(kek, material.wrapped_key, material.kek_id))

    def _unwrap_by_master_key(self, wrapped: str, master_key_id: str) -> Key:
        # By a digest: the texts come from files, and may be long.
        name = hashlib.sha256(json.dumps([master_key_id, wrapped]).encode()).digest()
        return self._keys.get_or_make(name, lambda: unwrap_key(self._client, wrapped, master_key_id))


class _Kek:
    """A KEK and its wrapped form."""

    __slots__ = ("id", "key", "wrapped")

    def __init__(self, client: KmsClient, master_key_id: str) -> None:
        value = os.urandom(KEK_BYTES)
        self.key, self.id = Key(value), os.urandom(KEK_ID_BYTES)
        self.wrapped = wrap_key(client, value, master_key_id)


class Wrapper:
    """Wraps data keys by the client, or those of a master key by one KEK, which the client wraps once a lifetime."""

    def __init__(self, client: KmsClient, lifetime: float, double_wrapping: bool) -> None:
        self._client, self._double = client, double_wrapping
        self._keks = KeyCache(lifetime)

    def wrap(self, key: Key, master_key_id: str, is_footer_key: bool) -> KeyMaterial:
        """Return the key material of a data key."""
        if not self._double:
            return KeyMaterial(master_key_id, wrap_key(self._client, key.value, master_key_id), is_footer_key)
        kek: _Kek = self._keks.get_or_make(master_key_id, lambda: _Kek(self._client, master_key_id))
        wrapped = wrap_locally(kek.key, key.value, kek.id)
        return KeyMaterial(master_key_id, wrapped, is_footer_key, kek.id, kek.wrapped)


def _data_key(value: bytes) -> Key:
    try:
        return Key(value)
    except ValueError as error:
        raise DecryptionError(f"the unwrapped key cannot be used: {error}") from None
