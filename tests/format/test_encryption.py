"""Key metadata in messages: names of keys, never wrapped keys."""

from __future__ import annotations

import pytest

from numparq.format.encryption import describe_key


@pytest.mark.parametrize(
    ("key_metadata", "expected"),
    [
        (None, "no key metadata"),
        (b"kf", "key metadata b'kf'"),
        (b"\xff" * 200, "key metadata " + repr(b"\xff" * 80) + "..."),
        (b"[" * 100_000, "key metadata " + repr(b"[" * 80) + "..."),
        (b'{"keyMaterialType":"PKMT1","masterKeyID":"kf","wrappedDEK":"w"}', "key metadata: PKMT1, master key 'kf'"),
        (
            b'{"keyMaterialType":"PKMT1","internalStorage":false,"keyReference":"columnKey0"}',
            "key metadata: PKMT1, key material stored outside as 'columnKey0'",
        ),
    ],
)
def test_descriptions(key_metadata, expected):
    assert describe_key(key_metadata) == expected
