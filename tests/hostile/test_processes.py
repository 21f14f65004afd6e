"""Forks, FIFOs, links, reads at exit and killed parents: nothing hangs, harms or lives on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
import numparq.tools.salvage
from numparq.io.local_source import BytesSource
from numparq.io.prefetch import PrefetchedSource
from numparq.util import disk_cache
from numparq.util.background_threads import BackgroundThreads
from numparq.util.fork_safe_lock import fork_safe_lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and FIFOs")


@pytest.fixture(autouse=True)
def _alarm():
    """Fail where the test would hang."""

    def fail(number, frame):
        raise TimeoutError("the test hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(300)  # on a slow machine that compiles kernels
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def run(program, *arguments, **environment):
    """Run a program in a process of its own and return what it prints."""
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=250, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def in_child(call):
    """Return the exit status of a forked child: 0 if the call returns True."""
    child = os.fork()
    if not child:
        signal.alarm(20)
        status = 1
        try:
            status = 0 if call() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.parquet"
    numparq.to_parquet(pd.DataFrame({"a": range(50_000), "b": ["x"] * 50_000}), path, row_group_size=5_000)
    return path


FORK = """
import os, signal, sys
import numparq
file = numparq.ParquetFile(sys.argv[1])
for threads in (1, 4):
    batches = file.iter_batches(batch_rows=1_000, threads=threads)
    assert len(next(batches)) == 1_000
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            rows = sum(map(len, batches)) + 1_000
        except RuntimeError as error:
            rows = 50_000 if "call iter_batches again" in str(error) else str(error)
        again = sum(map(len, file.iter_batches(batch_rows=1_000, threads=4)))
        batches.close()
        print(rows, again, len(file.read(threads=4)), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert sum(map(len, batches)) == 49_000
"""


@pytest.mark.slow
def test_fork_in_the_middle_of_batches(path):
    assert run(FORK, path) == "50000 50000 50000\n" * 2


def test_forked_child_has_no_background_threads():
    threads, lock = BackgroundThreads(1, "test"), fork_safe_lock()
    assert threads.submit(lambda: 7).result() == 7
    with lock:
        assert in_child(lambda: threads.submit(int) is None and lock.acquire(timeout=1)) == 0
    threads.shutdown()
    assert threads.submit(int) is None


def test_forked_child_reads_without_prefetching():
    data = bytes(range(256)) * 1000
    ranges = [np.array([[start, start + 1000]]) for start in range(0, 200_000, 1000)]
    with PrefetchedSource(BytesSource(data), ranges) as source:
        source.begin(0)

        def read():
            source.begin(1)
            parts = source.read_ranges([(0, 1000), (1500, 1600)])
            source.end(0)
            source.close()
            return bytes(parts[0][:1000]) == data[:1000] and bytes(parts[1][:100]) == data[1500:1600]

        assert in_child(read) == 0
        assert bytes(source.read_ranges([(0, 1000)])[0][:1000]) == data[:1000]


AT_EXIT = """
import atexit, sys
import numparq

path = sys.argv[1]
batches = numparq.ParquetFile(path).iter_batches(batch_rows=1_000, threads=4)
rows = len(next(batches))

@atexit.register
def read():
    print(len(numparq.read_parquet(path, threads=4)), rows + sum(map(len, batches)))
    print(sum(map(len, numparq.ParquetFile(path).iter_batches(batch_rows=1_000, threads=4))))
"""


@pytest.mark.slow
def test_reads_at_exit(path):
    assert run(AT_EXIT, path) == "50000 50000\n50000\n"


# --- files that are none ----------------------------------------------------------------------------------------------


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "fifo.parquet"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    "use",
    [
        lambda path: numparq.read_parquet([path, path]),
        lambda path: numparq.to_parquet(pd.DataFrame({"a": [1]}), path, append=True),
        numparq.tools.salvage.recover,
        lambda path: numparq.salvage(path, f"{path}.out"),
    ],
    ids=["dataset", "append", "recover", "salvage"],
)
def test_fifos_that_cannot_be_streamed_are_refused_at_once(fifo, use):
    with pytest.raises(OSError, match=r"path is a FIFO, not a regular file; .* pass the bytes.*fifo\.parquet"):
        use(fifo)


@pytest.mark.parametrize("use", [numparq.read_parquet, lambda path: numparq.ParquetFile(path).read()])
def test_fifos_with_a_writer_are_read(path, fifo, use):
    writer = threading.Thread(target=lambda: fifo.write_bytes(path.read_bytes()))
    writer.start()
    assert len(use(fifo)) == 50_000
    writer.join()


def test_fifos_wait_for_a_late_writer_that_is_slow(path, fifo):
    data = path.read_bytes()

    def write():
        time.sleep(0.1)
        with open(fifo, "wb", buffering=0) as file:
            time.sleep(0.1)
            for start in range(0, len(data), 10_000):
                file.write(data[start : start + 10_000])

    writer = threading.Thread(target=write)
    writer.start()
    assert len(numparq.read_parquet(fifo)) == 50_000
    writer.join()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (numparq.read_parquet, "nothing writes to the FIFO within 0.1 s; start its writer first"),
        (lambda path: numparq.ParquetFile(str(path)), "nothing writes to the FIFO"),
        (lambda path: numparq.verify(path), "nothing writes to the FIFO"),
        (lambda path: numparq.to_parquet(pd.DataFrame({"a": [1]}), path), "nothing reads from the FIFO within 0.1 s"),
    ],
    ids=["read", "open", "verify", "write"],
)
def test_fifos_without_another_end_do_not_hang(fifo, use, message, monkeypatch):
    monkeypatch.setattr("numparq.io.pipe.WAIT_SECONDS", 0.1)
    with pytest.raises(TimeoutError, match=message):
        use(fifo)


def test_datasets_ignore_fifos(path, fifo):
    assert len(numparq.read_parquet(path.parent)) == 50_000


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """Path of a cache entry."""
    monkeypatch.setenv("NUMPARQ_CACHE_DIR", str(tmp_path / "cache"))
    disk_cache.store("kernels", b"key", b"data")
    (found,) = (tmp_path / "cache").glob("*.bin")
    return found


def test_cache_entry_that_is_a_fifo(entry):
    entry.unlink()
    os.mkfifo(entry)
    assert disk_cache.load("kernels", b"key") is None
    assert disk_cache.store("kernels", b"key", b"newer")
    assert disk_cache.load("kernels", b"key") == b"newer"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink(f"{path}.victim", path)])
def test_cache_lock_that_is_no_file(entry, make):
    make(f"{entry}.lock")
    with disk_cache.build_lock("kernels", b"key"):
        assert disk_cache.load("kernels", b"key") == b"data"
    assert not os.path.exists(f"{entry}.lock.victim")


# --- killed parents ---------------------------------------------------------------------------------------------------

COMPILE = """
from numparq.kernels.compile.parallel_build import build_parts
build_parts(["reading"], processes=3)
"""


def children(process):
    found = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")
def test_compiling_workers_end_with_their_parent():
    with subprocess.Popen([sys.executable, "-c", COMPILE]) as parent:
        assert wait_until(lambda: len(children(parent.pid)) == 2)
        workers = children(parent.pid)
        time.sleep(1)
        assert all(map(is_running, workers))
        parent.kill()
    assert wait_until(lambda: not any(map(is_running, workers)))
