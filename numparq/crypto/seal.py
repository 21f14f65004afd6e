"""Modules sealed (Encryption.md): nonces, ciphertexts and tags, and the count of what a key has sealed."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from numparq.errors import LimitError
from numparq.util.fork_safe_lock import fork_safe_lock

from .aad import ModuleId, ModuleType, module_aad
from .ciphers import (
    CTR_OVERHEAD,
    GCM_OVERHEAD,
    LENGTH_BYTES,
    NONCE_BYTES,
    PLAINTEXT_OFFSET,
    TAG_BYTES,
    apply_counter_mode,
    make_gcm,
)
from .key import Key

MAX_INVOCATIONS = 1 << 32  # of one key with random nonces (NIST SP 800-38D, section 8.3)
_SECRET = os.urandom(32)
_LOCK = fork_safe_lock()
_COUNTS: dict[bytes, int] = {}  # by a digest of the key that means nothing in another process


class Sealer:
    """Seals modules of one file under one key; threads may share it.

    Attributes
    ----------
    file_aad : bytes
        AAD prefix and `aad_file_unique`.
    """

    __slots__ = ("_digest", "_gcm", "_is_ctr", "_key", "file_aad")

    def __init__(self, key: Key, file_aad: bytes, is_ctr: bool) -> None:
        self._key, self._is_ctr, self.file_aad = key, is_ctr, file_aad
        self._gcm = make_gcm(key)
        self._digest = hmac.digest(_SECRET, key.value, hashlib.sha256)

    def __repr__(self) -> str:
        return f"<Sealer, {self._key!r}>"

    def seal_modules(self, plaintexts: Sequence[Any], aads: Sequence[bytes]) -> list[memoryview]:
        """Seal modules by GCM, with an AAD each; return them as views of one buffer."""
        views, nonces = self._begin(plaintexts, GCM_OVERHEAD)
        encrypt = self._gcm.encrypt_into
        for at, (plaintext, aad, view) in enumerate(zip(plaintexts, aads, views, strict=True)):
            nonce = nonces[NONCE_BYTES * at : NONCE_BYTES * (at + 1)]
            encrypt(nonce, plaintext, aad, view[PLAINTEXT_OFFSET:])
        return views

    def seal_bodies(self, plaintexts: Sequence[Any], aads: Sequence[bytes]) -> list[memoryview]:
        """Seal bodies of pages, by the algorithm of the file; CTR has no AAD."""
        if not self._is_ctr:
            return self.seal_modules(plaintexts, aads)
        views, nonces = self._begin(plaintexts, CTR_OVERHEAD)
        for at, (plaintext, view) in enumerate(zip(plaintexts, views, strict=True)):
            nonce = nonces[NONCE_BYTES * at : NONCE_BYTES * (at + 1)]
            apply_counter_mode(self._gcm, nonce, memoryview(plaintext), view[PLAINTEXT_OFFSET:])
        return views

    def seal_module(self, plaintext: bytes | memoryview, module: ModuleId) -> bytes:
        """Seal one module by GCM."""
        return bytes(self.seal_modules([plaintext], [module_aad(self.file_aad, module)])[0])

    def sign_footer(self, footer: bytes) -> bytes:
        """Return nonce and tag that sign a plaintext footer."""
        module = self.seal_module(footer, ModuleId(ModuleType.FOOTER))
        return module[LENGTH_BYTES:PLAINTEXT_OFFSET] + module[-TAG_BYTES:]

    def _begin(self, plaintexts: Sequence[Any], overhead: int) -> tuple[list[memoryview], bytes]:
        """Return views of one buffer with length and nonce in place, and the nonces."""
        self._count(len(plaintexts))
        nonces = os.urandom(NONCE_BYTES * len(plaintexts))
        sizes = [len(plaintext) + overhead for plaintext in plaintexts]
        buffer, start, views = memoryview(np.empty(sum(sizes), np.uint8)), 0, []  # type: ignore[arg-type]
        for at, size in enumerate(sizes):
            view = buffer[start : start + size]
            view[:LENGTH_BYTES] = (size - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "little")
            view[LENGTH_BYTES:PLAINTEXT_OFFSET] = nonces[NONCE_BYTES * at : NONCE_BYTES * (at + 1)]
            views.append(view)
            start += size
        return views, nonces

    def _count(self, number: int) -> None:
        """Count modules of this process; LimitError before a key seals more than its nonces allow."""
        with _LOCK:
            total = _COUNTS[self._digest] = _COUNTS.get(self._digest, 0) + number
        if total > MAX_INVOCATIONS:
            raise LimitError(f"a key may seal at most {MAX_INVOCATIONS:,} modules; write further files with a new key")
