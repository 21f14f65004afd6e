"""Modules of encrypted files (Encryption.md), opened by the specification; every nonce is kept."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from numparq.crypto.aad import ModuleId, ModuleType
from numparq.crypto.ciphers import make_gcm
from numparq.io.source import Source, read_bytes
from numparq.util.pluralize import agree_verb, pluralize

from .deviations import Findings
from .thrift import ThriftDecodeError

if TYPE_CHECKING:
    from numparq.crypto.key import Key, KeySource

_LENGTH_BYTES, _NONCE_BYTES, _TAG_BYTES = 4, 12, 16
_POSITION_BYTES = 8
_FIRST_COUNTER = b"\x00\x00\x00\x01"
GCM_OVERHEAD = _LENGTH_BYTES + _NONCE_BYTES + _TAG_BYTES
CTR_OVERHEAD = _LENGTH_BYTES + _NONCE_BYTES
SIGNATURE_BYTES = _NONCE_BYTES + _TAG_BYTES


class ModuleError(ThriftDecodeError):
    """Module that cannot be opened: the check it fails, and the reason."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check
        self.message = message


class FileModules:
    """Opens the modules of one file.

    Attributes
    ----------
    keys : KeySource
        The caller's keys.
    is_ctr : bool
        Whether bodies of pages are encrypted by CTR.
    count : int
        Number of modules opened so far.
    """

    def __init__(self, keys: KeySource, file_aad: bytes, is_ctr: bool) -> None:
        self.keys, self.is_ctr, self.count = keys, is_ctr, 0
        self._file_aad = file_aad
        self._unread = [0, 0]  # modules with bytes behind their structs, and these bytes
        self._nonces: dict[bytes, bytearray] = {}  # by key: nonces, each with its position

    def open_gcm(self, key: Key, stored: bytes, module: ModuleId, position: int) -> bytes:
        """Return the plaintext of a GCM module; `position` differs between the modules of the file."""
        from cryptography.exceptions import InvalidTag

        aad = self._aad(module)
        nonce = self._take_nonce(key, stored, position)
        try:
            plaintext: bytes = make_gcm(key).decrypt(nonce, stored[_LENGTH_BYTES + _NONCE_BYTES :], aad)
        except InvalidTag:
            raise ModuleError(
                "module-tag",
                f"the {module.module_type.label} did not authenticate: the key is wrong or the file was changed",
            ) from None
        self.count += 1
        return plaintext

    def open_ctr(self, key: Key, stored: bytes, position: int) -> bytes:
        """Return the plaintext of a CTR module, which nothing authenticates."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        nonce = self._take_nonce(key, stored, position)
        decryptor = Cipher(algorithms.AES(key.value), modes.CTR(nonce + _FIRST_COUNTER)).decryptor()
        self.count += 1
        return decryptor.update(stored[CTR_OVERHEAD:])

    def check_signature(self, key: Key, footer: bytes, signature: bytes, position: int) -> None:
        """Raise ModuleError unless a signature, nonce and tag, is that of a plaintext footer."""
        nonce, tag = signature[:_NONCE_BYTES], signature[_NONCE_BYTES:]
        self._add_nonce(key, nonce, position)
        if make_gcm(key).encrypt(nonce, footer, self._aad(ModuleId(ModuleType.FOOTER)))[-_TAG_BYTES:] != tag:
            raise ModuleError(
                "footer-signature",
                "the footer's signature does not match: the key is wrong or the file was changed",
            )

    def count_unread(self, num_bytes: int) -> None:
        """Count bytes behind the struct of a module."""
        self._unread[0] += bool(num_bytes)
        self._unread[1] += num_bytes

    def report(self, findings: Findings) -> None:
        """Add a deviation for nonces that occur in several modules of one key, and one for bytes behind structs."""
        count, num_bytes = self._unread
        if count:
            findings.add(
                "module-bytes",
                f"{pluralize(num_bytes, 'byte')} {agree_verb(num_bytes, 'follow')} the structs of "
                f"{pluralize(count, 'module')}, as parquet-java writes them; readers ignore them",
            )
        for nonces in self._nonces.values():
            located = np.unique(np.frombuffer(nonces, f"V{_NONCE_BYTES + _POSITION_BYTES}"))  # some were read again
            distinct = np.unique(located.view("u1").reshape(len(located), -1)[:, :_NONCE_BYTES].copy().view("V12"))
            repeated = len(located) - len(distinct)
            if repeated:
                findings.add(
                    "nonce-reuse",
                    f"{pluralize(repeated, 'module')} {agree_verb(repeated, 'have')} the nonce of another one under "
                    "the same key: their contents are no longer secret",
                )

    def _aad(self, module: ModuleId) -> bytes:
        ordinals = [ordinal for ordinal in (module.row_group, module.leaf, module.page) if ordinal >= 0]
        try:
            return self._file_aad + bytes([module.module_type]) + struct.pack(f"<{len(ordinals)}h", *ordinals)
        except struct.error:
            raise ModuleError("module-tag", f"the ordinal {max(ordinals):,} has more than 16 bits") from None

    def _take_nonce(self, key: Key, stored: bytes, position: int) -> bytes:
        nonce = stored[_LENGTH_BYTES : _LENGTH_BYTES + _NONCE_BYTES]
        self._add_nonce(key, nonce, position)
        return nonce

    def _add_nonce(self, key: Key, nonce: bytes, position: int) -> None:
        self._nonces.setdefault(key.value, bytearray()).extend(nonce + struct.pack("<q", position))


def module_length(stored: bytes, limit: int, overhead: int) -> int:
    """Return the length of the module that begins in `stored`, which has at most `limit` bytes."""
    if len(stored) < _LENGTH_BYTES:
        raise ModuleError("module-length", "the bytes end within the length of a module")
    length = int.from_bytes(stored[:_LENGTH_BYTES], "little") + _LENGTH_BYTES
    if not overhead <= length <= limit:
        raise ModuleError(
            "module-length",
            f"the module has {pluralize(length, 'byte')} by its length, but at least {overhead} and at most {limit:,} "
            f"{agree_verb(limit, 'be')} possible",
        )
    return length


def read_module(source: Source, position: int, limit: int, overhead: int = GCM_OVERHEAD) -> bytes:
    """Read the module at a position, of `limit` bytes at most."""
    length = module_length(read_bytes(source, position, min(_LENGTH_BYTES, max(limit, 0))), limit, overhead)
    return read_bytes(source, position, length)
