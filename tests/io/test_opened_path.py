"""Where something was opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from numparq.io.opened_path import OpenedPath


def test_relative_paths_become_absolute_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = os.getcwd()
    given = ["a/b.parquet", "/c.parquet", "s3://bucket/d", "~/e"]
    places = [OpenedPath(path) for path in (given, "a/b.parquet", b"bytes")]
    elsewhere = OpenedPath("bucket/key", None, "file system")
    assert [place.from_here() for place in places] == places
    monkeypatch.chdir(tmp_path)
    several, one, data = (place.from_here().path for place in places)
    assert several == [f"{here}/a/b.parquet", *given[1:]]
    assert one == f"{here}/a/b.parquet"
    assert data == b"bytes"
    assert elsewhere.from_here().path == "bucket/key"


def test_removed_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert OpenedPath("/a").from_here().path == "/a"
