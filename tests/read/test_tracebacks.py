"""Tracebacks of damaged files and of Ctrl-C: the caller's frames, few of ours, and the message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.kernels.compile import build, parallel_build

DEEP = f'File "{os.path.dirname(numparq.__file__)}/'


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    numbers = np.random.default_rng(1).random(100_000)
    content = bytearray(numparq.to_parquet(pd.DataFrame({"a": numbers, "l": [[1]] * len(numbers)})))
    content[5000] ^= 255
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "x.parquet").write_bytes(content)
    numparq.to_parquet(pd.DataFrame({"a": [0.5], "l": [[1]]}), folder / "y.parquet")
    return folder


READS = {
    "file": lambda folder: numparq.read_parquet(folder / "x.parquet"),
    "filter": lambda folder: numparq.read_parquet(folder / "x.parquet", filters=[("a", ">", 0.5)], threads=2),
    "dataset": numparq.read_parquet,
    "batches": lambda folder: list(numparq.ParquetFile(folder / "x.parquet").iter_batches()),
    "count": lambda folder: numparq.ParquetFile(folder / "x.parquet").count_rows(numparq.col("a") > 0.5),
    "head": lambda folder: numparq.Dataset(folder).head(),
}


@pytest.mark.parametrize("read", READS)
def test_a_damaged_page_has_one_message_and_few_frames(damaged, read):
    with pytest.raises(
        numparq.CorruptPageError, match=r"page is damaged \(file '.*', row group 0, column 'a', page 0\)"
    ):
        READS[read](damaged)
    try:
        READS[read](damaged)
    except numparq.CorruptPageError:
        text = traceback.format_exc()
    assert text.count("Traceback") == 1
    assert 2 <= text.count(DEEP) <= 4
    assert 'kernels/status.py"' in text  # where it is raised


def test_all_frames_are_shown_on_request(damaged, monkeypatch):
    monkeypatch.setenv("NUMPARQ_TRACEBACK", "full")
    try:
        READS["dataset"](damaged)
    except numparq.CorruptPageError:
        assert traceback.format_exc().count(DEEP) > 8


def test_ctrl_c_while_kernels_are_compiled_shows_nothing_of_numba(monkeypatch):
    def interrupted(kernels):
        try:
            raise ValueError("deep inside Numba")
        except ValueError:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(build, "build_object", interrupted)
    with pytest.raises(KeyboardInterrupt, match="kernels were being compiled") as raised:
        parallel_build.build_parts([], processes=1)
    assert "Numba" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of a process group")
def test_ctrl_c_in_the_first_compile_of_a_process(tmp_path):
    program = "import numparq, pandas as pd; print(flush=True); numparq.to_parquet(pd.DataFrame({'a': ['x']}))"
    environment = {**os.environ, "NUMPARQ_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    lines = errors.splitlines()
    assert lines[-1].startswith("KeyboardInterrupt")
    assert len(lines) < 40
