"""What all tests share: the folder of conformance files, and assertions of helpers that explain themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.register_assert_rewrite("support")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def without_point_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have look-ups of keys read as all else is: for tests of that, and as what they are held against."""
    from numparq.scan import point_lookup

    monkeypatch.setattr(point_lookup, "point_lookup", lambda *arguments: None)


@pytest.fixture(scope="session")
def parquet_testing() -> Path:
    """The folder of the conformance suite (``PARQUET_TEST_DATA``); tests that need it skip where it is absent."""
    folder = Path(os.environ.get("PARQUET_TEST_DATA") or ROOT.parent / "shared" / "parquet-testing")
    if not (folder / "data").is_dir():
        pytest.skip(f"no conformance files: set PARQUET_TEST_DATA to a checkout of them (looked in {folder})")
    return folder
