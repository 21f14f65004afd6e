"""Writers that are never closed: aborted with a warning, but only in the process that opened them."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pytest

import numparq
from numparq.dataset.write.shared_job import SharedJob
from numparq.util.transaction import TransactionalWriter

FRAME = pd.DataFrame({"a": range(100), "k": [1, 2] * 50})


def _task(path: Path) -> TransactionalWriter:
    job = SharedJob.begin(path.parent / "job", partition_cols=["k"])
    writer = job.task("0")
    writer.job = job  # type: ignore[attr-defined]  # or its files go with it
    return writer


WRITERS: dict[str, Callable[[Path], Any]] = {
    "file": numparq.ParquetWriter,
    "memory": lambda path: numparq.ParquetWriter(None),
    "stream": lambda path: numparq.ParquetWriter(io.BytesIO()),
    "remote": lambda path: numparq.ParquetWriter("memory://transaction/x.parquet"),
    "dataset": lambda path: numparq.DatasetWriter(path, partition_cols=["k"], existing_data_behavior="delete_matching"),
    "task": _task,
}


def _written(folder: Path) -> list[str]:
    """Return the paths of all files in a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("writes", [True, False])
def test_writer_that_is_never_closed_warns(tmp_path: Path, kind: str, writes: bool):
    writer = WRITERS[kind](tmp_path / "x")
    kept = getattr(writer, "job", None)
    if writes:
        writer.write(FRAME)
    with pytest.warns(ResourceWarning, match=r"Writer\(.*\) was never closed: its rows are lost; use it in a with"):
        del writer  # at once: no garbage collection
    assert _written(tmp_path) == []
    assert not fsspec.filesystem("memory").exists("/transaction/x.parquet")
    del kept


def test_warning_names_the_file(tmp_path: Path):
    with pytest.warns(ResourceWarning, match=rf"^ParquetWriter\('{tmp_path}/x'\) was never closed"):
        numparq.ParquetWriter(tmp_path / "x").write(FRAME)


def test_existing_file_stays(tmp_path: Path):
    path = tmp_path / "x.parquet"
    numparq.to_parquet(FRAME, path)
    for options in ({}, {"append": True}):
        with pytest.warns(ResourceWarning, match="never closed"):
            numparq.ParquetWriter(path, **options).write(FRAME[:3])
        assert _written(tmp_path) == ["x.parquet"]
        assert len(numparq.read_parquet(path)) == 100


def _fail_within(writer: TransactionalWriter) -> None:
    with pytest.raises(KeyError), writer:
        raise KeyError


ENDS: tuple[Callable[[Any], Any], ...] = (lambda writer: writer.abort(), _fail_within, lambda writer: writer.close())


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("kind", WRITERS)
def test_writer_that_ended_is_silent(tmp_path: Path, kind: str):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for end in ENDS:
            writer = WRITERS[kind](tmp_path / "x")
            writer.write(FRAME)
            end(writer)
            writer.abort()  # does nothing any more
            if kind == "task":
                writer.job.abort()
            del writer
        gc.collect()
    assert caught == []
    if kind == "remote":
        fsspec.filesystem("memory").rm("/transaction", recursive=True)


def test_writer_that_was_not_opened_is_silent(tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (numparq.ParquetWriter, numparq.DatasetWriter):
            with pytest.raises(TypeError):
                make(tmp_path / "x", threads="many")
        with pytest.raises(FileNotFoundError):
            numparq.ParquetWriter(tmp_path / "missing" / "x")
    assert _written(tmp_path) == []


@pytest.mark.parametrize("kind", WRITERS)
def test_writers_are_neither_copied_nor_pickled(tmp_path: Path, kind: str):
    writer = WRITERS[kind](tmp_path / "x")
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled or copied: open one in each process"):
            make(writer)
    writer.abort()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["file", "dataset", "task"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_leaves_the_writer_alone(tmp_path: Path, kind: str):
    writer = WRITERS[kind](tmp_path / "x")
    writer.write(FRAME)
    before = _written(tmp_path)
    for how in ("dropped", "aborted", "exit", "write", "close"):
        child = os.fork()
        if not child:
            inherited = [writer]
            del writer
            os._exit(_use_inherited(inherited, how))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, how
        assert _written(tmp_path) == before
    message = writer.close()
    if kind == "task":
        writer.job.commit([message])
    assert len(numparq.read_parquet(tmp_path / ("job" if kind == "task" else "x"))) == 100


def _use_inherited(writers: list[Any], how: str) -> int:
    """Use a writer in a forked child; return 0 if nothing is wrong."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if how in ("write", "close"):
                with pytest.raises(ValueError, match="belongs to process"):
                    writers[0].write(FRAME) if how == "write" else writers[0].close()
            elif how == "aborted":
                writers[0].abort()
            elif how == "exit":
                with pytest.raises(SystemExit), writers[0]:
                    raise SystemExit
            writers.clear()
            gc.collect()
        return len(caught)
    except BaseException:
        return 99


SCRIPT = """
import sys, numparq, pandas
writer = numparq.{writer}
writer.write(pandas.DataFrame({{"a": range(100), "k": [1, 2] * 50}}))
{end}
"""


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize("end", ["", "raise KeyError"])
@pytest.mark.parametrize("writer", ["ParquetWriter('x.parquet')", "DatasetWriter('x', partition_cols=['k'])"])
def test_writer_open_at_exit_warns_by_default(tmp_path: Path, writer: str, end: str):
    script = SCRIPT.format(writer=writer, end=end)
    for options in ([], ["-W", "ignore"]):
        command = [sys.executable, *options, "-c", script]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ("was never closed: its rows are lost" in done.stderr) is not bool(options)
        assert "Exception ignored" not in done.stderr
        assert _written(tmp_path) == []
