"""Ciphers of a chunk's pages, beside AES block by block."""

from __future__ import annotations

import os

import pytest

from numparq import DecryptionError
from numparq.crypto.chunk_cipher import ChunkCipher
from numparq.crypto.key import Key

pytest.importorskip("cryptography")
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE = bytes(range(12))


def module(content: bytes) -> bytearray:
    return bytearray((len(content) + 12).to_bytes(4, "little") + NONCE + content)


def counter_mode(key: bytes, plaintext: bytes) -> bytes:
    """Encrypt by the specification's counter mode: the counter's first block is 1."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = (encryptor.update(NONCE + number.to_bytes(4, "big")) for number in range(1, len(plaintext) // 16 + 2))
    return bytes(a ^ b for a, b in zip(plaintext, b"".join(blocks), strict=False))


@pytest.mark.parametrize("key_bytes", [16, 24, 32])
@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 32, 4_097])
def test_counter_mode(key_bytes, length):
    key, plaintext = os.urandom(key_bytes), os.urandom(length)
    stored = b"front" + module(counter_mode(key, plaintext)) + b"after"
    raw = memoryview(bytearray(stored))
    ChunkCipher(Key(key), b"file", 0, 0, True).open_body(raw, 5, 16 + length, 7)
    assert bytes(raw[21 : 21 + length]) == plaintext
    assert raw[:21] == stored[:21]
    assert raw[21 + length :] == b"after"


@pytest.mark.parametrize("page", [None, 0, 32_767])
def test_pages_authenticate_at_their_own_place_only(page):
    key, plaintext = os.urandom(16), os.urandom(100)
    ordinal = b"" if page is None else page.to_bytes(2, "little")
    kind = b"\3" if page is None else b"\2"
    stored = module(AESGCM(key).encrypt(NONCE, plaintext, b"file" + kind + b"\x01\0\x02\0" + ordinal))
    raw = memoryview(bytearray(stored))
    ChunkCipher(Key(key), b"file", 1, 2, False).open_body(raw, 0, len(raw), page)
    assert raw[16:-16] == plaintext
    for place, other in (((1, 3), page), ((2, 2), page), ((1, 2), 5)):
        raw = memoryview(bytearray(stored))
        with pytest.raises(DecryptionError, match="did not authenticate"):
            ChunkCipher(Key(key), b"file", *place, False).open_body(raw, 0, len(raw), other)
        assert not any(raw[16:])


def test_more_pages_than_ordinals():
    raw = memoryview(module(bytes(40)))
    with pytest.raises(DecryptionError, match="more than 32,768 data pages"):
        ChunkCipher(Key(b"k" * 16), b"file", 0, 0, False).open_body(raw, 0, len(raw), 32_768)
