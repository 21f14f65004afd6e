"""Shared jobs with killed processes: no row is duplicated, and commits are atomic."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

import numparq
from numparq.dataset.commit import consistent_listing
from numparq.dataset.commit.recover import recover
from numparq.dataset.discover.files import list_files
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.errors import InvalidFileError
from support.io.killed_process import run_killed_at_step

pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses POSIX signals and locks")


def frame(first: int) -> pd.DataFrame:
    return pd.DataFrame({"key": [0, 1, 0], "n": range(first, first + 3)})


def fill(folder: Path) -> None:
    numparq.to_parquet(frame(0), folder, partition_cols=["key"])


def numbers(folder: Path) -> list[int]:
    try:
        listing = list_files(folder)
    except (InvalidFileError, FileNotFoundError):
        return []
    return sorted(n for file in listing.files for n in numparq.read_parquet(file.path)["n"].tolist())


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def is_clean(folder: Path) -> bool:
    parts = [part for path in folder.rglob("*") for part in path.relative_to(folder).parts]
    return not any(part[0] in "._" for part in parts)


def begin(folder: Path, mode: str, outlives: bool = False) -> SharedJob:
    if mode == "replace":
        gone = [folder / name for name in names(folder) if name.startswith("key=0")]
        return SharedJob.begin(folder, mode=mode, gone=gone, outlives=outlives)
    return SharedJob.begin(folder, mode=mode, partition_cols=["key"], outlives=outlives)


def write(job: SharedJob, task: str, first: int) -> TaskMessage:
    with job.task(task) as writer:
        if "replace" in type(job._gone_of).__name__.lower():
            writer.write(frame(first)[["n"]], folder="key=0")
        else:
            writer.write(frame(first))
            writer.roll()
            writer.write(frame(first + 3))
    return writer.message


def whole_job(folder: Path, mode: str, outlives: bool) -> None:
    job = begin(folder, mode, outlives)
    job.commit([write(job, "0", 10), write(job, "1", 20)])


NEW = [*range(10, 16), *range(20, 26)]
AFTER = {"append": [0, 1, 2, *NEW], "overwrite": NEW, "delete_matching": NEW, "replace": [1, 10, 11, 12, 20, 21, 22]}


CASES = [("append", True), ("overwrite", False), ("delete_matching", True), ("replace", False)]
ALL_STEPS = [pytest.param(mode, outlives, 1, marks=pytest.mark.slow) for mode, outlives in CASES]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "outlives", "stride"), [(*CASES[1], 5), (*CASES[3], 7), *ALL_STEPS])
def test_killed_driver_leaves_old_or_new_dataset(tmp_path, mode, outlives, stride):
    fill(tmp_path / "before")
    step, states, killed = 0, [], True
    while killed:
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "before", folder)
        killed = run_killed_at_step(step, lambda folder=folder: whole_job(folder, mode, outlives))
        found = numbers(folder)
        assert found in ([0, 1, 2], AFTER[mode])
        states.append(found != [0, 1, 2])
        recover(folder, abandoned=outlives)
        assert numbers(folder) == found, "recovery keeps what readers saw"
        assert sorted(n for name in names(folder) for n in numparq.read_parquet(folder / name)["n"]) == found
        assert is_clean(folder)
        shutil.rmtree(folder)
        step += stride
    assert states == sorted(states)
    assert states[-1]
    assert not states[0]
    assert step > 20


def test_next_write_removes_files_of_killed_driver(tmp_path):
    fill(tmp_path)
    for step in (3, 10, 20):
        assert run_killed_at_step(step, lambda: whole_job(tmp_path, "overwrite", False))
    assert not is_clean(tmp_path)
    numparq.to_parquet(frame(100), tmp_path, partition_cols=["key"], append=True)
    assert numbers(tmp_path) == [0, 1, 2, 100, 101, 102]
    assert is_clean(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outlives", "stride"),
    [
        (True, 3),
        pytest.param(True, 1, marks=pytest.mark.slow),
        pytest.param(False, 1, marks=pytest.mark.slow),
    ],
)
def test_killed_commit_is_finished_by_another_process(tmp_path, outlives, stride):
    fill(tmp_path / "before")
    step, killed = 0, True
    while killed:
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "before", folder)
        job = begin(folder, "overwrite", outlives)
        messages = [write(job, "0", 10), write(job, "1", 20)]
        killed = run_killed_at_step(
            step, lambda job=job, messages=messages: pickle.loads(pickle.dumps(job)).commit(messages)
        )
        found = numbers(folder)
        if found == [0, 1, 2]:
            job.commit(messages)
        elif job._stage.is_committed:
            with pytest.raises(RuntimeError, match="cannot be aborted"):
                job.abort()
            recover(folder)
        else:  # the commit has moved part of the files
            job.abort()
        assert numbers(folder) == NEW
        assert is_clean(folder)
        shutil.rmtree(folder)
        step += stride
    assert step > 10


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_killed_tasks_are_retried(tmp_path, ends):
    fill(tmp_path)
    before = names(tmp_path)
    job = begin(tmp_path, "append", outlives=True)
    step = 0
    while run_killed_at_step(step, lambda: write(pickle.loads(pickle.dumps(job)), "0", 10)):
        assert numbers(tmp_path) == [0, 1, 2]
        step += 2
    assert step > 5
    messages = [write(job, "0", 10), write(job, "1", 20)]
    assert names(tmp_path) == before
    if ends == "commit":
        job.commit(messages)
        assert numbers(tmp_path) == [0, 1, 2, *NEW]
    else:
        job.abort()
        assert names(tmp_path) == before
    assert is_clean(tmp_path)


def test_commits_are_atomic_for_readers_at_every_step(tmp_path):
    fill(tmp_path)
    job = begin(tmp_path, "overwrite")
    messages = [write(job, "0", 10), write(job, "1", 20)]
    committed: list[bool] = []

    def check_before(change: Callable) -> Callable:
        def do(*arguments: object, **options: object) -> object:
            found = numbers(tmp_path)
            assert found in ([0, 1, 2], NEW)
            committed.append(found == NEW)
            return change(*arguments, **options)

        return do

    @contextmanager
    def no_locks(roots: list[str], wait: bool) -> Iterator[None]:
        yield None  # readers use the commit records alone

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consistent_listing, "_exclude_commits", no_locks)
        for name in ("rename", "replace", "unlink"):
            patch.setattr(os, name, check_before(getattr(os, name)))
        job.commit(messages)
    assert committed == sorted(committed)
    assert 2 < sum(committed) < len(committed)
