"""Local wrapping: the bytes of other implementations, changed texts, keys that a KEK wraps."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from numparq.crypto.key import Key
from numparq.errors import DecryptionError
from numparq.keys.wrapping import Unwrapper, Wrapper, unwrap_locally, wrap_locally
from support.encryption.kms import MemoryKms

WRAPPING, VALUE = b"w" * 16, b"k" * 32


def test_the_layout_is_nonce_ciphertext_and_tag():
    sealed = base64.b64decode(wrap_locally(Key(WRAPPING), VALUE, b"id"))
    assert len(sealed) == 12 + 32 + 16
    assert AESGCM(WRAPPING).decrypt(sealed[:12], sealed[12:], b"id") == VALUE
    assert wrap_locally(Key(WRAPPING), VALUE, b"id") != wrap_locally(Key(WRAPPING), VALUE, b"id")


@pytest.mark.parametrize(
    "change", [lambda text: text[:-8], lambda text: "", lambda text: "%", lambda text: "A" + text[1:]]
)
def test_changed_texts(change):
    wrapped = wrap_locally(Key(WRAPPING), VALUE, b"id")
    assert unwrap_locally(Key(WRAPPING), wrapped, b"id") == VALUE
    with pytest.raises(DecryptionError):
        unwrap_locally(Key(WRAPPING), change(wrapped) + ("A" if change(wrapped) == wrapped else ""), b"id")


def test_key_encryption_keys_are_bound_to_their_names():
    material = Wrapper(MemoryKms(), 600, True).wrap(Key(VALUE), "kf", True)
    assert len(material.kek_id) == 16
    assert Unwrapper(MemoryKms(), 600).unwrap(material).value == VALUE
    with pytest.raises(DecryptionError, match="the wrapped key did not authenticate"):
        Unwrapper(MemoryKms(), 600).unwrap(material._replace(kek_id=b"0" * 16))


def test_a_data_key_of_another_length():
    wrapper = Wrapper(MemoryKms(), 600, True)
    material = wrapper.wrap(Key(VALUE), "kf", True)
    short = type("Short", (), {"value": b"five5"})()
    with pytest.raises(DecryptionError, match="the unwrapped key cannot be used: a key must have 16, 24 or 32 bytes"):
        Unwrapper(MemoryKms(), 600).unwrap(wrapper.wrap(short, "kf", True))
    assert material.wrapped_key
