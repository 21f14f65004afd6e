"""Names of `Encryption` to leaf columns: exact paths, prefixes, the longest match, dots, the footer key."""

from __future__ import annotations

import pytest

from numparq.errors import SchemaError
from numparq.keys.encryption import Encryption

FOOTER = b"f" * 16
PATHS = [("a",), ("s", "x"), ("s", "y", "z"), ("s.x",), ("t",)]


def keys_of(column_keys, **options) -> list[bytes | None]:
    keys = Encryption(FOOTER, column_keys, **options).file_keys(PATHS)
    return [None if leaf is None else leaf.key.value for leaf in keys.leaves]


def test_all_columns_have_the_footer_key():
    assert keys_of(None) == [FOOTER] * 5


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"a": 1}, [1, None, None, None, None]),
        ({"s": 1}, [None, 1, 1, None, None]),
        ({"s": 1, "s.y": 2}, [None, 1, 2, None, None]),
        ({("s", "x"): 1}, [None, 1, None, None, None]),
        ({("s.x",): 1}, [None, None, None, 1, None]),
        ({"s.x": 1}, [None, 1, None, 1, None]),
        ({"s": 1, ("s", "y", "z"): 2}, [None, 1, 2, None, None]),
    ],
)
def test_names_and_prefixes(names, expected):
    keys = {name: bytes([number]) * 16 for name, number in names.items()}
    assert keys_of(keys) == [None if number is None else bytes([number]) * 16 for number in expected]


def test_other_columns_may_have_the_footer_key():
    assert keys_of({"a": b"1" * 16}, encrypt_other_columns=True) == [b"1" * 16, *[FOOTER] * 4]
    assert keys_of({"a": None}) == [FOOTER, *[None] * 4]


def test_key_metadata():
    encryption = Encryption(FOOTER, {"a": b"1" * 16, "t": None}, key_metadata={None: b"kf", "a": b"ka"})
    keys = encryption.file_keys(PATHS)
    assert keys.footer.key_metadata == b"kf"
    assert [leaf and (leaf.key_metadata, leaf.is_footer_key) for leaf in keys.leaves] == [
        (b"ka", False), None, None, None, (b"kf", True),
    ]  # fmt: skip


def test_a_name_that_matches_nothing():
    with pytest.raises(SchemaError, match=r"column_keys names 's.w', which is no column; did you mean 's.y' or 's.x'"):
        keys_of({"s.w": b"1" * 16})


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [("a", "a", True), ("s.y", "s", True), ("s", "s.y.z", True), ("s", "t", False), ("a", "ab", False)],
)
def test_columns_that_may_be_encrypted(name, column, expected):
    assert Encryption(FOOTER, {name: b"1" * 16}).may_encrypt(column) is expected
