"""Keys given directly: names of columns, identities, retrievers, and what they show."""

from __future__ import annotations

import copy
import pickle

import pytest

from numparq import Decryption

FOOTER, ONE, TWO = b"f" * 16, b"1" * 24, b"2" * 32


def test_the_longest_path_counts():
    keys = Decryption(FOOTER, {"a": ONE, "a.b": TWO, ("c", "d"): ONE, "e.f": TWO})
    assert keys.column_key(("a", "x"), None).value == ONE
    assert keys.column_key(("a", "b", "list", "element"), None).value == TWO
    assert keys.column_key(("c", "d"), None).value == ONE
    assert keys.column_key(("e.f",), None).value == TWO
    assert keys.column_key(("c",), None) is None
    assert keys.footer_key(b"any").value == FOOTER


def test_a_retriever_is_called_once_for_each_key():
    calls = []
    keys = Decryption(None, {"a": ONE}, key_retriever=lambda metadata: calls.append(metadata) or TWO)
    assert keys.column_key(("a",), b"k1").value == ONE
    for _ in range(2):
        assert keys.column_key(("b",), b"k2").value == TWO
    assert keys.column_key(("b",), None) is None
    assert keys.footer_key(b"k3").value == TWO
    assert calls == [b"k2", b"k3"]


def test_identities_are_equal_for_equal_keys_alone():
    same = [Decryption(FOOTER, {"a": ONE, "b": TWO}), Decryption(FOOTER, {"b": TWO, "a": ONE})]
    others = [
        Decryption(FOOTER),
        Decryption(FOOTER, {"a": TWO, "b": TWO}),
        Decryption(FOOTER, {"a": ONE, "b": TWO}, aad_prefix=b"p"),
        Decryption(FOOTER, {"a": ONE, "b": TWO}, allow_plaintext_files=True),
        Decryption(FOOTER, {"a": ONE, "b": TWO}, key_retriever=bytes),
        Decryption(FOOTER, {"a": ONE, "b": TWO}, key_retriever=bytes),
    ]
    assert len({keys.identity for keys in same}) == 1
    assert len({keys.identity for keys in [same[0], *others]}) == len(others) + 1
    assert all(FOOTER not in keys.identity for keys in same)


def test_keys_do_not_leave_the_object():
    keys = Decryption(FOOTER, {"a": ONE, "b": TWO}, aad_prefix=b"lake/")
    assert repr(keys) == "Decryption(footer key, 2 column keys, aad_prefix=b'lake/')"
    assert repr(keys.footer_key(None)) == "<AES-128 key>"
    for thing in (keys, keys.footer_key(None)):
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                leave(thing)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"footer_key": b"short"}, ValueError, "footer_key: a key must have 16, 24 or 32 bytes, not 5"),
        ({"footer_key": bytes(16)}, ValueError, "footer_key: a key of zero bytes"),
        ({"footer_key": "0123456789012345"}, TypeError, "footer_key must be bytes, not str"),
        ({"column_keys": {"a": b""}}, ValueError, "the key of column 'a': a key must have"),
        ({"column_keys": {1: ONE}}, TypeError, "must be named by str or tuples of str, not 1"),
        ({"aad_prefix": "p"}, TypeError, "aad_prefix must be bytes"),
        ({"key_retriever": 1}, TypeError, "key_retriever must be a function"),
    ],
)
def test_arguments_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        Decryption(**arguments)
