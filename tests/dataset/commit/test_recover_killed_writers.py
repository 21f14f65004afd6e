"""Processes killed at random during dataset writes: readers see each write whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

import numparq
from numparq.dataset.commit.recover import recover
from numparq.dataset.discover.files import list_files

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and locks are those of POSIX")

PARTITIONS, ROWS = 6, 5

FRAME = """
import sys
import numpy as np
import pandas as pd
import numparq
from numparq.dataset.write.dataset_writer import DatasetWriter

def frame(number):
    return pd.DataFrame({"key": np.arange(30) % 6, "number": np.full(30, number)})

numparq.to_parquet(frame(0), None)  # loads all kernels
print("ready", flush=True)
"""
APPEND = """
    for number in range(int(sys.argv[2]), 100_000):
        numparq.to_parquet(frame(number), sys.argv[1], partition_cols=["key"], append=True, write_metadata_file=True)
"""
REPLACE = """
    for number in range(int(sys.argv[2]), 100_000):
        numparq.to_parquet(frame(number), sys.argv[1], partition_cols=["key"], existing_data_behavior="delete_matching")
"""


def start(code: str, *arguments: object) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", FRAME + textwrap.dedent(code), *map(str, arguments)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def kill(process: subprocess.Popen) -> None:
    process.kill()
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL


def numbers(folder: Path) -> set[int]:
    """Return the numbers of the writes that a reader finds; each has all of its rows."""
    found: Counter[int] = Counter()
    for file in list_files(folder).files:
        found.update(numparq.read_parquet(file.path)["number"].tolist())
    assert set(found.values()) <= {PARTITIONS * ROWS}, "each write is visible as a whole or not at all"
    return set(found)


def is_clean(folder: Path) -> bool:
    names = [part for path in folder.rglob("*") for part in path.relative_to(folder).parts]
    return not any(name[0] in "._" and name not in ("_metadata", "_common_metadata") for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("times", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_killed_appends_lose_no_committed_write(tmp_path, times):
    rng = random.Random(times)
    committed: set[int] = set()
    (tmp_path / "data").mkdir()
    for attempt in range(times):
        process = start(APPEND, tmp_path / "data", 1000 * attempt)
        time.sleep(rng.uniform(0.05, 0.3))
        kill(process)
        found = numbers(tmp_path / "data") if any((tmp_path / "data").iterdir()) and _has_files(tmp_path) else set()
        assert committed <= found, "committed writes are not lost"
        new = sorted(found - committed)
        assert new == list(range(1000 * attempt, 1000 * attempt + len(new)))
        if rng.random() < 0.5:
            recover(tmp_path / "data")
            assert is_clean(tmp_path / "data")
            assert (numbers(tmp_path / "data") if found else set()) == found
        committed = found


def _has_files(folder: Path) -> bool:
    return any(path.suffix == ".parquet" or path.name.startswith("_numparq") for path in folder.rglob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("times", [2, 40])
def test_killed_replacements_leave_one_whole_write(tmp_path, times):
    rng = random.Random(times)
    process = start(REPLACE, tmp_path, 0)
    while not _has_files(tmp_path):
        time.sleep(0.01)
    kill(process)
    last = max(numbers(tmp_path))
    for attempt in range(times):
        process = start(REPLACE, tmp_path, 1000 * (attempt + 1))
        time.sleep(rng.uniform(0.05, 0.3))
        kill(process)
        (number,) = numbers(tmp_path)
        assert number == last or number >= 1000 * (attempt + 1)
        last = number
    recover(tmp_path)
    assert numbers(tmp_path) == {last}
    assert is_clean(tmp_path)


@pytest.mark.slow
def test_readers_see_whole_writes_beside_killed_writer(tmp_path):
    process = start(REPLACE, tmp_path, 0)
    try:
        while not _has_files(tmp_path):
            time.sleep(0.01)
        for _ in range(20):
            files = list_files(tmp_path).files
            assert len(files) == PARTITIONS
            assert len({file.name.rpartition("/")[2] for file in files}) == 1
            assert numparq.read_parquet(tmp_path)["number"].value_counts().tolist() == [PARTITIONS * ROWS]
    finally:
        kill(process)
    assert len(numbers(tmp_path)) == 1
