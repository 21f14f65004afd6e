"""Shared jobs on remote file systems: staged under hidden names and moved by the commit."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import numparq
from numparq.dataset.commit.record import PENDING, CommitRecord, record_name
from numparq.dataset.commit.recover import recover
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.errors import InvalidFileError
from support.io.remote_datasets import KINDS, list_all_files, object_store, put_file, read_rows, remote_folder, write

fsspec = pytest.importorskip("fsspec")

JOB = "20260102T030405000006-0a1b2c"


@pytest.fixture(params=KINDS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    with remote_folder(request.param, tmp_path) as found:
        yield found


def begin(location: tuple[str, Any], **options: Any) -> SharedJob:
    path, filesystem = location
    return SharedJob.begin(path, filesystem=filesystem, partition_cols=["key"], **options)


def task(job: SharedJob, name: str, keys: list[int], first: int) -> TaskMessage:
    with job.task(name) as writer:
        writer.write(pd.DataFrame({"key": keys, "n": range(first, first + len(keys))}))
    return writer.message


def visible_names(location: tuple[str, Any]) -> list[str]:
    """Return the paths that readers see: names without a leading dot or underscore."""
    start = len(location[0].lstrip("/")) + 1
    names = [path.lstrip("/")[start:] for path in list_all_files(location)]
    return [name for name in names if not any(part[:1] in "._" for part in name.split("/"))]


def test_files_are_invisible_before_commit(location):
    write(location, [1, 2], 0)
    before = list_all_files(location)
    job = begin(location)
    messages = [task(job, "0", [1, 3], 10), task(job, "1", [1], 20)]
    task(job, "1", [1], 20)
    assert read_rows(location) == {"1": [0], "2": [1]}
    assert len(visible_names(location)) == 2
    _, filesystem = location
    staged = job.staged(messages)
    assert [len(numparq.read_parquet(name, filesystem=filesystem)) for name in staged] == [1, 1, 1]
    job.commit(messages)
    assert read_rows(location) == {"1": [0, 10, 20], "2": [1], "3": [11]}
    assert len(list_all_files(location)) == 5
    assert set(before) < set(list_all_files(location))


@pytest.mark.parametrize(
    ("mode", "after"),
    [
        ("overwrite", {"1": [10], "3": [11]}),
        ("delete_matching", {"1": [10], "2": [1], "3": [11]}),
    ],
)
def test_overwrite_and_delete_matching(location, mode, after):
    write(location, [1, 2], 0)
    job = begin(location, mode=mode)
    job.commit([task(job, "0", [1, 3], 10)])
    assert read_rows(location) == after
    assert len(list_all_files(location)) == len(after)


def test_replace_mode_replaces_named_files(location):
    write(location, [1, 2], 0)
    first = list_all_files(location)[0]
    job, late = begin(location, mode="replace", gone=[first]), begin(location, mode="replace", gone=[first])
    messages = [task(late, "0", [1], 30)]
    job.commit([task(job, "0", [1], 10)])
    assert read_rows(location) == {"1": [10], "2": [1]}
    with pytest.raises(InvalidFileError, match="no longer exists"):
        late.commit(messages)
    late.abort()
    assert read_rows(location) == {"1": [10], "2": [1]}
    assert len(list_all_files(location)) == 2
    with pytest.raises(FileNotFoundError):
        begin(location, mode="replace", gone=[first])


def test_aborted_job_leaves_no_files(location):
    write(location, [1, 2], 0)
    before = list_all_files(location)
    job = begin(location, mode="overwrite")
    task(job, "0", [1, 3], 10)
    job.abort()
    assert list_all_files(location) == before


def test_failed_task_leaves_no_files(location):
    write(location, [1, 2], 0)
    before = list_all_files(location)
    job = begin(location)
    with pytest.raises(RuntimeError), job.task("0") as writer:
        writer.write(pd.DataFrame({"key": [1], "n": [1]}))
        writer.roll()
        raise RuntimeError
    assert list_all_files(location) == before


def test_concurrent_overwrites_raise(location):
    write(location, [1, 2], 0)
    job = begin(location, mode="overwrite")
    message = task(job, "0", [1], 10)
    path, filesystem = location
    other = CommitRecord(JOB, PENDING, alone=True).encode()
    put_file(location, record_name(JOB), other)
    with pytest.raises(BlockingIOError, match=JOB):
        job.commit([message])
    assert read_rows(location) == {"1": [0], "2": [1]}
    job.abort()
    recover(path, filesystem=filesystem, abandoned=True)
    assert read_rows(location) == {"1": [0], "2": [1]}
    assert len(list_all_files(location)) == 2


def test_dead_job_is_removed_if_abandoned(location):
    write(location, [1, 2], 0)
    before = list_all_files(location)
    job = begin(location)
    task(job, "0", [1], 10)
    path, filesystem = location
    assert recover(path, filesystem=filesystem).removed == []
    assert len(list_all_files(location)) == 3
    assert recover(path, filesystem=filesystem, abandoned=True).removed == [job.id]
    assert list_all_files(location) == before


def test_failed_commit_leaves_old_or_new_dataset(monkeypatch):
    """Request n of a commit and all later ones fail; readers see the old or the new dataset."""
    states, step = [], 0
    while True:
        location = "/bucket/data", object_store()
        store = location[1]
        write(location, [1, 2], 0)
        job = begin(location, mode="overwrite")
        messages = [task(job, "0", [1, 3], 10), task(job, "1", [1], 20)]
        _fail_requests_from(store, step)
        try:
            job.commit(messages)
            failed = False
        except OSError:
            failed = True
        store.remaining = None
        found = read_rows(location)
        old, new = {"1": [0], "2": [1]}, {"1": [10, 20], "3": [11]}
        assert found in (old, new)
        states.append(found == new)
        recover(location[0], filesystem=store, abandoned=True)
        assert read_rows(location) == found
        assert len(list_all_files(location)) == (2 if found == old else 3)
        if not failed:
            break
        step += 1
    assert states == sorted(states)
    assert states[-1]
    assert not states[0]
    assert step > 5


def _fail_requests_from(store: Any, step: int) -> None:
    """Make all changing requests fail from the nth on, so that nothing is rolled back either."""
    store.remaining = step
    for name in ("pipe_file", "rm_file", "cp_file"):
        setattr(store, name, _count_and_fail(store, getattr(store, name)))


def _count_and_fail(store: Any, change: Any) -> Any:
    def do(*arguments: Any, **options: Any) -> Any:
        if store.remaining is not None:
            if not store.remaining:
                raise OSError("the process has ended")
            store.remaining -= 1
        return change(*arguments, **options)

    return do


def test_jobs_are_pickled_with_their_file_system(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    location = "data", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    job = begin(location)
    message = pickle.loads(pickle.dumps(task(pickle.loads(pickle.dumps(job)), "0", [1, 2], 0)))
    pickle.loads(pickle.dumps(job)).commit([message])
    assert read_rows(location) == {"1": [0], "2": [1]}
    assert not any(name.startswith(".") for name in os.listdir(tmp_path / "data"))


def test_shared_job_at_memory_url(tmp_path):
    memory = fsspec.filesystem("memory")
    job = SharedJob.begin("memory://numparq-jobs/url", mode="error")
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"n": [1]}))
    assert job.staged([writer.message])[0].startswith("memory://")
    job.commit([writer.message])
    assert numparq.read_parquet("memory://numparq-jobs/url")["n"].tolist() == [1]
    with pytest.raises(FileExistsError):
        SharedJob.begin("memory://numparq-jobs/url", mode="error")
    memory.rm("/numparq-jobs", recursive=True)
