"""Named pipes wait for their other end for a bounded time; pipes of the shell are read however slow they are."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from numparq.io import pipe

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    return str(tmp_path / "fifo")


def read(path: str) -> bytes:
    with open(path, "rb", buffering=0, opener=pipe.open_for_reading) as file:
        return pipe.await_writer(file.fileno(), path) + file.read()


@pytest.mark.parametrize("content", [b"", b"content"])
def test_a_writer_that_comes_late(fifo, content, monkeypatch):
    """The wait is for a writer to come, not for its first byte."""
    monkeypatch.setattr(pipe, "WAIT_SECONDS", 0.2)

    def write():
        time.sleep(0.1)
        with open(fifo, "wb") as file:
            time.sleep(0.3)
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    assert read(fifo) == content
    writer.join()


def test_no_writer(fifo, monkeypatch):
    monkeypatch.setattr(pipe, "WAIT_SECONDS", 0.1)
    with pytest.raises(TimeoutError, match=r"nothing writes to the FIFO within 0.1 s; start its writer .*fifo"):
        read(fifo)


def test_a_reader_that_comes_late(fifo):
    found = []

    def read_late():
        time.sleep(0.1)
        with open(fifo, "rb") as file:
            found.append(file.read())

    reader = threading.Thread(target=read_late)
    reader.start()
    with open(pipe.open_for_writing(fifo), "wb") as file:
        file.write(b"x" * 100_000)
    reader.join()
    assert found == [b"x" * 100_000]


def test_no_reader(fifo, tmp_path, monkeypatch):
    monkeypatch.setattr(pipe, "WAIT_SECONDS", 0.1)
    with pytest.raises(TimeoutError, match=r"nothing reads from the FIFO within 0.1 s; start its reader .*fifo"):
        pipe.open_for_writing(fifo)
    with pytest.raises(FileNotFoundError):
        pipe.open_for_writing(str(tmp_path / "none"))


@pytest.mark.slow
def test_pipes_of_the_shell(tmp_path):
    import pandas as pd

    import numparq

    numparq.to_parquet(pd.DataFrame({"a": [7, 8]}), tmp_path / "few.parquet")
    head = f"'{sys.executable}' -m numparq head"
    slowly = "{ sleep 1; cat few.parquet; }"
    script = f"{slowly} | {head} -; {head} <({slowly}); {slowly} | {head} /dev/fd/0"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.split().count("8") == 3
