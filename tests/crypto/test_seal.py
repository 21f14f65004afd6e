"""Sealed modules by the specification: layouts, lengths, AAD, counters."""

from __future__ import annotations

import pytest

pytest.importorskip("cryptography")
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from numparq.crypto import seal
from numparq.crypto.aad import ModuleId, ModuleType
from numparq.crypto.key import Key
from numparq.crypto.seal import Sealer
from numparq.errors import LimitError

VALUE = bytes(range(16))
TEXTS = [b"", b"x", b"page" * 100]


@pytest.mark.parametrize("size", [16, 24, 32])
def test_gcm_modules(size):
    value = bytes(range(1, size + 1))
    sealed = Sealer(Key(value), b"file", False).seal_bodies(TEXTS, [b"one", b"two", b"three"])
    for module, text, aad in zip(map(bytes, sealed), TEXTS, [b"one", b"two", b"three"], strict=True):
        assert int.from_bytes(module[:4], "little") == len(module) - 4 == len(text) + 28
        assert AESGCM(value).decrypt(module[4:16], module[16:], aad) == text
    assert len({bytes(module[4:16]) for module in sealed}) == 3


def test_ctr_bodies():
    sealed = Sealer(Key(VALUE), b"file", True).seal_bodies(TEXTS, [b""] * 3)
    for module, text in zip(map(bytes, sealed), TEXTS, strict=True):
        assert int.from_bytes(module[:4], "little") == len(module) - 4 == len(text) + 12
        cipher = Cipher(algorithms.AES(VALUE), modes.CTR(module[4:16] + bytes([0, 0, 0, 1]))).decryptor()
        assert cipher.update(module[16:]) == text


def test_aad_of_a_module():
    module = Sealer(Key(VALUE), b"prefix-unique", True).seal_module(b"index", ModuleId(ModuleType.OFFSET_INDEX, 258, 3))
    assert AESGCM(VALUE).decrypt(module[4:16], module[16:], b"prefix-unique\x07\x02\x01\x03\x00") == b"index"


def test_signature_of_a_footer():
    signature = Sealer(Key(VALUE), b"file", False).sign_footer(b"footer")
    assert len(signature) == 28
    assert AESGCM(VALUE).encrypt(signature[:12], b"footer", b"file\x00")[-16:] == signature[12:]


def test_equal_keys_share_their_count(monkeypatch):
    value = b"counted-key-1234"
    first, second = (Sealer(Key(value), b"file", is_ctr) for is_ctr in (False, True))
    monkeypatch.setattr(seal, "MAX_INVOCATIONS", 5)
    first.seal_modules([b"a"] * 3, [b""] * 3)
    second.seal_bodies([b"a"] * 2, [b""] * 2)
    with pytest.raises(LimitError, match="at most 5 modules; write further files with a new key"):
        first.seal_module(b"a", ModuleId(ModuleType.FOOTER))
    Sealer(Key(b"another-key-1234"), b"file", False).seal_module(b"a", ModuleId(ModuleType.FOOTER))


def test_text_of_a_sealer_has_no_key():
    assert repr(Sealer(Key(VALUE), b"file", False)) == "<Sealer, <AES-128 key>>"
