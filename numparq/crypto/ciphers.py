"""Modules opened and sealed (Encryption.md): length, nonce, ciphertext and, in GCM, a tag."""

from __future__ import annotations

import struct
from functools import cache
from operator import xor
from typing import TYPE_CHECKING

from numparq.errors import DecryptionError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from .key import Key

LENGTH_BYTES, NONCE_BYTES, TAG_BYTES = 4, 12, 16
_BLOCK = 16  # bytes, of AES
PLAINTEXT_OFFSET = LENGTH_BYTES + NONCE_BYTES
GCM_OVERHEAD = PLAINTEXT_OFFSET + TAG_BYTES
CTR_OVERHEAD = PLAINTEXT_OFFSET
_read_length = struct.Struct("<I").unpack_from


@cache
def _check_cryptography() -> None:
    """Raise ImportError without a version that decrypts in place."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        has_it = hasattr(AESGCM, "decrypt_into")  # since 47; since 50 its calls release the GIL
    except ImportError:
        has_it = False
    if not has_it:
        raise ImportError("encrypted files need cryptography 50 or newer: pip install numparq[encryption]")


def make_gcm(key: Key) -> AESGCM:
    """Return the AESGCM object of a key, which all threads may share."""
    _check_cryptography()
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key.value)


def apply_counter_mode(gcm: AESGCM, nonce: bytes, data: memoryview, out: memoryview) -> None:
    """Encrypt or decrypt bytes in counter mode, whose first counter is 1; `out` is as long, and may be the same memory.

    GCM encrypts by the same counters but for the first block, which masks its tag: of no bytes, the tag is that block.
    Two calls of it take half the time of a new `Cipher` object.
    """
    mask = gcm.encrypt(nonce, b"", None)
    out[:_BLOCK] = bytes(map(xor, data[:_BLOCK], mask))
    if len(data) > _BLOCK:
        out[_BLOCK:] = memoryview(gcm.encrypt(nonce, data[_BLOCK:], None))[:-TAG_BYTES]


def module_length(raw: bytes | memoryview, start: int, end: int, overhead: int) -> int:
    """Return the stored length of the module at `start`, whose bytes end before `end`; DecryptionError if it lies."""
    length = _read_length(raw, start)[0] + LENGTH_BYTES if end - start >= LENGTH_BYTES else 0
    if not overhead <= length <= end - start:
        raise DecryptionError("the module has an impossible length: the file was cut off or changed")
    return length


def failure(label: str) -> DecryptionError:
    """Return the error of a module that does not authenticate."""
    return DecryptionError(f"the {label} did not authenticate: the key is wrong or the file was changed")


def open_module(key: Key, module: bytes, aad: bytes, label: str = "module") -> bytes:
    """Return the plaintext of a whole GCM module, which begins with its length."""
    length = module_length(module, 0, len(module), GCM_OVERHEAD)
    if length != len(module):
        raise DecryptionError(f"bytes follow the {label}: the file was changed")
    gcm = make_gcm(key)
    from cryptography.exceptions import InvalidTag

    try:
        return gcm.decrypt(module[LENGTH_BYTES:PLAINTEXT_OFFSET], module[PLAINTEXT_OFFSET:], aad)
    except InvalidTag:
        raise failure(label) from None


def sign_footer(key: Key, footer: bytes, nonce: bytes, aad: bytes) -> bytes:
    """Return the tag that signs a plaintext footer: that of GCM over its bytes, whose ciphertext is not stored."""
    sealed = make_gcm(key).encrypt(nonce, footer, aad)
    return sealed[-TAG_BYTES:]
