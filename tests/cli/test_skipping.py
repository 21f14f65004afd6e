"""`numparq skipping`: build, describe, explain, refresh, compact and drop."""

from __future__ import annotations

import os

import pandas as pd
import pytest

import numparq
from numparq.cli import main
from support.random_stores import recent_files


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("data")
    for number in range(3):
        numparq.to_parquet(pd.DataFrame({"x": [number], "s": [f"s{number}"]}), f"data/{number}.parquet")
    with recent_files():
        yield


def run(capsys, *words: str) -> str:
    assert main(["skipping", *words]) == 0
    return capsys.readouterr().out


def test_a_store_from_build_to_drop(data, capsys):
    names = ("--minmax", "x", "--valuelist", "s", "--bloom", "s,x")
    assert run(capsys, "build", "data", "store", *names) == "added 3 files, removed 0 files\n"
    described = run(capsys, "describe", "store")
    assert "files      3 in 1 part" in described
    assert "index      bloomfilter on s (fpp=0.01, ndv=100000)" in described
    explained = run(capsys, "explain", "store", "x = 1 and s = 's1'")
    assert explained.startswith("1 file of 3 may match\n  skipped  2 by minmax on x\n")
    numparq.to_parquet(pd.DataFrame({"x": [5], "s": ["s"]}), "data/5.parquet")
    assert "unknown  1" in run(capsys, "explain", "store", "x = 1", "--dataset", "data")
    assert run(capsys, "refresh", "store") == "added 1 file, removed 0 files\n"
    assert run(capsys, "compact", "store") == "added 0 files, removed 0 files\n"
    os.rename("data", "moved")
    assert "the store knows none of these files" in run(capsys, "explain", "store", "x = 1", "--dataset", "moved")
    assert run(capsys, "drop", "store") == ""
    assert not os.path.exists("store")


def test_files_that_are_not_indexed_are_named(data, capsys):
    with open("data/9.parquet", "wb") as file:
        file.write(b"PAR1 damaged PAR1")
    printed = run(capsys, "build", "data", "store")
    assert printed.splitlines()[0] == "added 3 files, removed 0 files"
    assert printed.splitlines()[1].startswith("not indexed: ")
    assert "9.parquet" in printed


def test_errors(data, capsys):
    assert main(["skipping", "describe", "nothing"]) == 1
    assert main(["skipping", "build", "data", "data/store"]) == 1
    assert "inside of the dataset" in capsys.readouterr().err
