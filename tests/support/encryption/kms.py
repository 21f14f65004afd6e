"""A KMS in memory: master keys of the shared encrypted files, and a record of its calls."""

from __future__ import annotations

import base64
import os

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MASTER_KEYS = {"kf": b"0123456789012345", "kc1": b"1234567890123450", "kc2": b"1234567890123451"}


class MemoryKms:
    """Wraps as parquet-java's tests do: AES-GCM under the master key, whose name is the AAD."""

    def __init__(self, keys=None, refused=()) -> None:
        self.keys = dict(MASTER_KEYS if keys is None else keys)
        self.refused = {*refused}
        self.calls: list[tuple[str, str]] = []

    def wrap_key(self, key: bytes, master_key_id: str) -> str:
        self._note("wrap", master_key_id)
        nonce = os.urandom(12)
        sealed = AESGCM(self.keys[master_key_id]).encrypt(nonce, key, master_key_id.encode())
        return base64.b64encode(nonce + sealed).decode()

    def unwrap_key(self, wrapped_key: str, master_key_id: str) -> bytes:
        self._note("unwrap", master_key_id)
        sealed = base64.b64decode(wrapped_key)
        return AESGCM(self.keys[master_key_id]).decrypt(sealed[:12], sealed[12:], master_key_id.encode())

    def _note(self, action: str, master_key_id: str) -> None:
        self.calls.append((action, master_key_id))
        if master_key_id in self.refused:
            raise PermissionError(f"no access to {master_key_id}")
