"""Killed writers: the earlier file is unchanged, and rows before a checkpoint can be salvaged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pandas as pd
import pytest

import numparq
from numparq.errors import InvalidFileError
from numparq.format.footer.checkpoints import find_last_footer
from numparq.tools.salvage import leftovers, recover

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and locks")


def frame(number: int) -> pd.DataFrame:
    """Return the rows of a row group; the scripts below define the same function."""
    return pd.DataFrame({"number": [number] * 50, "text": [f"{number}-{row}" for row in range(50)]})


FRAME = """
import os, signal, sys
import pandas as pd
import numparq

def frame(number):
    return pd.DataFrame({"number": [number] * 50, "text": [f"{number}-{row}" for row in range(50)]})
"""


def run(code: str, *arguments: object) -> int:
    done = subprocess.run([sys.executable, "-c", FRAME + textwrap.dedent(code), *map(str, arguments)], check=False)
    return done.returncode


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("written", "saved"), [(1, 0), (2, 2), (5, 4), (6, 6)])
def test_rows_before_a_checkpoint_are_recovered(tmp_path, written, saved):
    path = tmp_path / "a.parquet"
    code = """
        writer = numparq.ParquetWriter(sys.argv[1], checkpoint_row_groups=2)
        for number in range(int(sys.argv[2])):
            writer.write(frame(number))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert run(code, path, written) == -signal.SIGKILL
    assert not path.exists()
    (left,) = leftovers(path)
    if not saved:
        with pytest.raises(InvalidFileError):
            find_last_footer(left)
        return
    recovered = recover(left, path)
    assert (recovered.num_row_groups, recovered.num_rows) == (saved, 50 * saved)
    expected = pd.concat([frame(number) for number in range(saved)], ignore_index=True)
    pd.testing.assert_frame_equal(numparq.read_parquet(path), expected)
    pd.testing.assert_frame_equal(pd.read_parquet(path, engine="pyarrow"), expected)


def test_finished_file_with_checkpoints_is_valid(tmp_path):
    path = tmp_path / "a.parquet"
    with numparq.ParquetWriter(path, checkpoint_row_groups=2) as writer:
        for number in range(4):
            writer.write(frame(number))
    expected = pd.concat([frame(number) for number in range(4)], ignore_index=True)
    pd.testing.assert_frame_equal(pd.read_parquet(path, engine="pyarrow"), expected)
    assert find_last_footer(path).end == path.stat().st_size


def kill_at_random(code: str, path: Path, rng: random.Random) -> None:
    process = subprocess.Popen([sys.executable, "-c", FRAME + textwrap.dedent(code), str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(rng.uniform(0, 0.03))
    process.kill()
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL


APPEND = """
    numparq.to_parquet(frame(0), None)  # so that all kernels are there
    print("ready", flush=True)
    for number in range(1, 100_000):
        numparq.to_parquet(frame(number), sys.argv[1], append=True)
"""
WRITE = """
    numparq.to_parquet(frame(0), None)
    print("ready", flush=True)
    for number in range(1, 100_000):
        numparq.to_parquet(frame(number), sys.argv[1])
"""


@pytest.mark.slow
def test_killed_append(tmp_path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(frame(0), path)
    rng = random.Random(2)
    for _ in range(4):
        before = numparq.read_parquet(path)
        kill_at_random(APPEND, path, rng)
        got = numparq.read_parquet(path)
        assert len(got) % 50 == 0
        assert len(got) >= len(before)
        pd.testing.assert_frame_equal(got.iloc[: len(before)], before)
        appended = got["number"].to_numpy()[len(before) :: 50].tolist()
        assert appended == list(range(1, len(appended) + 1)), "each append is complete or absent"
        left = leftovers(path)
        assert len(left) <= 1
        assert len(os.listdir(tmp_path)) == 1 + len(left)
        for name in left:
            os.remove(name)


@pytest.mark.slow
def test_killed_write(tmp_path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(frame(0), path)
    rng = random.Random(3)
    for _ in range(4):
        kill_at_random(WRITE, path, rng)
        got = numparq.read_parquet(path)
        pd.testing.assert_frame_equal(got, frame(int(got["number"].iloc[0])))
        for name in leftovers(path):
            os.remove(name)
        assert os.listdir(tmp_path) == ["a.parquet"]
