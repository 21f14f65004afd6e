"""Versions of remote files, as infos and listings spell them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from numparq.io.remote_version import has_version, info_version

MOMENT = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
SECONDS = MOMENT.timestamp()


@pytest.mark.parametrize(
    ("info", "version"),
    [
        ({}, None),
        ({"size": 3, "ETag": None}, None),
        ({"ETag": '"a"', "LastModified": MOMENT}, '"a"'),
        ({"LastModified": MOMENT}, str(SECONDS)),
        ({"mtime": SECONDS, "created": 1.0}, str(SECONDS)),
        ({"Last-Modified": "Mon, 04 May 2026 03:02:01 GMT"}, "Mon, 04 May 2026 03:02:01 GMT"),
    ],
)
def test_version_of_an_info(info, version):
    assert info_version(info) == version


@pytest.mark.parametrize(
    ("version", "info"),
    [
        (None, {"ETag": "b"}),
        ("a", {}),
        ('"a"', {"ETag": "a"}),
        ('W/"a"', {"ETag": '"a"'}),
        (str(SECONDS), {"ETag": "a", "LastModified": MOMENT}),
        (str(SECONDS), {"mtime": SECONDS + 0.25}),
        (str(SECONDS + 0.25), {"Last-Modified": "Mon, 04 May 2026 03:02:01 GMT"}),
        ("2026-05-04T03:02:01Z", {"last_modified": MOMENT}),
        ("2026-05-04T03:02:01", {"mtime": int(SECONDS)}),
        (str(SECONDS), {"created": MOMENT}),
        (str(SECONDS), {"LastModified": MOMENT, "mtime": 5.0}),
        ('"a"', {"LastModified": MOMENT}),
        (str(SECONDS), {"ETag": "a"}),
        (str(SECONDS), {"ETag": "a", "created": MOMENT}),
    ],
)
def test_versions_that_are_the_same(version, info):
    assert has_version(info, version)


@pytest.mark.parametrize(
    ("version", "info"),
    [
        ('"a"', {"ETag": '"b"'}),
        ('"a"', {"ETag": '"b"', "LastModified": MOMENT}),
        (str(SECONDS), {"LastModified": datetime(2026, 5, 4, 3, 2, 2, tzinfo=UTC)}),
        (str(SECONDS + 0.25), {"mtime": SECONDS + 0.5}),
        (str(SECONDS), {"mtime": SECONDS + 1, "created": SECONDS}),
        (str(SECONDS), {"created": SECONDS + 1}),
        ("1e999", {"ETag": "2e999"}),
        ("nan", {"ETag": "a"}),
        ("1" * 40, {"ETag": "1" * 39 + "2"}),
        ("Mon, 04 May 2026 03:02:01 GMT", {"Last-Modified": "Mon, 04 May 2026 03:02:02 GMT"}),
    ],
)
def test_versions_that_differ(version, info):
    assert not has_version(info, version)
