"""Writes of several processes to datasets that are not local: staged under hidden names, and moved by the commit."""

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
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    with remote_folder(request.param, tmp_path) as found:
        yield found


def begin(place: tuple[str, Any], **options: Any) -> SharedJob:
    path, filesystem = place
    return SharedJob.begin(path, filesystem=filesystem, partition_cols=["key"], **options)


def task(job: SharedJob, name: str, keys: list[int], first: int) -> TaskMessage:
    with job.task(name) as writer:
        writer.write(pd.DataFrame({"key": keys, "n": range(first, first + len(keys))}))
    return writer.message


def seen(place: tuple[str, Any]) -> list[str]:
    """Give what readers see who leave out names with a dot or underscore."""
    start = len(place[0].lstrip("/")) + 1
    names = [path.lstrip("/")[start:] for path in list_all_files(place)]
    return [name for name in names if not any(part[:1] in "._" for part in name.split("/"))]


def test_nothing_counts_before_the_commit(place):
    write(place, [1, 2], 0)
    before = list_all_files(place)
    job = begin(place)
    messages = [task(job, "0", [1, 3], 10), task(job, "1", [1], 20)]
    task(job, "1", [1], 20)
    assert read_rows(place) == {"1": [0], "2": [1]}
    assert len(seen(place)) == 2
    _, filesystem = place
    staged = job.staged(messages)
    assert [len(numparq.read_parquet(name, filesystem=filesystem)) for name in staged] == [1, 1, 1]
    job.commit(messages)
    assert read_rows(place) == {"1": [0, 10, 20], "2": [1], "3": [11]}
    assert len(list_all_files(place)) == 5
    assert set(before) < set(list_all_files(place))


@pytest.mark.parametrize(
    ("mode", "after"),
    [
        ("overwrite", {"1": [10], "3": [11]}),
        ("delete_matching", {"1": [10], "2": [1], "3": [11]}),
    ],
)
def test_modes(place, mode, after):
    write(place, [1, 2], 0)
    job = begin(place, mode=mode)
    job.commit([task(job, "0", [1, 3], 10)])
    assert read_rows(place) == after
    assert len(list_all_files(place)) == len(after)


def test_named_files_are_replaced(place):
    write(place, [1, 2], 0)
    first = list_all_files(place)[0]
    job, late = begin(place, mode="replace", gone=[first]), begin(place, mode="replace", gone=[first])
    messages = [task(late, "0", [1], 30)]
    job.commit([task(job, "0", [1], 10)])
    assert read_rows(place) == {"1": [10], "2": [1]}
    with pytest.raises(InvalidFileError, match="no longer exists"):
        late.commit(messages)
    late.abort()
    assert read_rows(place) == {"1": [10], "2": [1]}
    assert len(list_all_files(place)) == 2
    with pytest.raises(FileNotFoundError):
        begin(place, mode="replace", gone=[first])


def test_a_job_that_is_given_up_leaves_nothing(place):
    write(place, [1, 2], 0)
    before = list_all_files(place)
    job = begin(place, mode="overwrite")
    task(job, "0", [1, 3], 10)
    job.abort()
    assert list_all_files(place) == before


def test_a_task_that_fails_leaves_nothing(place):
    write(place, [1, 2], 0)
    before = list_all_files(place)
    job = begin(place)
    with pytest.raises(RuntimeError), job.task("0") as writer:
        writer.write(pd.DataFrame({"key": [1], "n": [1]}))
        writer.roll()
        raise RuntimeError
    assert list_all_files(place) == before


def test_two_that_replace_do_not_meet(place):
    write(place, [1, 2], 0)
    job = begin(place, mode="overwrite")
    message = task(job, "0", [1], 10)
    path, filesystem = place
    other = CommitRecord(JOB, PENDING, alone=True).encode()
    put_file(place, record_name(JOB), other)
    with pytest.raises(BlockingIOError, match=JOB):
        job.commit([message])
    assert read_rows(place) == {"1": [0], "2": [1]}
    job.abort()
    recover(path, filesystem=filesystem, abandoned=True)
    assert read_rows(place) == {"1": [0], "2": [1]}
    assert len(list_all_files(place)) == 2


def test_a_job_that_died_is_removed_where_it_is_said_to_be_dead(place):
    write(place, [1, 2], 0)
    before = list_all_files(place)
    job = begin(place)
    task(job, "0", [1], 10)
    path, filesystem = place
    assert recover(path, filesystem=filesystem).removed == []
    assert len(list_all_files(place)) == 3
    assert recover(path, filesystem=filesystem, abandoned=True).removed == [job.id]
    assert list_all_files(place) == before


def test_a_commit_that_ends_anywhere_is_there_or_not(monkeypatch):
    """Each request of a commit fails once, along with all that follow: what is there then is the old or the new."""
    states, step = [], 0
    while True:
        place = "/bucket/data", object_store()
        store = place[1]
        write(place, [1, 2], 0)
        job = begin(place, mode="overwrite")
        messages = [task(job, "0", [1, 3], 10), task(job, "1", [1], 20)]
        _failing(store, step)
        try:
            job.commit(messages)
            ended = False
        except OSError:
            ended = True
        store.left = None
        found = read_rows(place)
        old, new = {"1": [0], "2": [1]}, {"1": [10, 20], "3": [11]}
        assert found in (old, new)
        states.append(found == new)
        recover(place[0], filesystem=store, abandoned=True)
        assert read_rows(place) == found
        assert len(list_all_files(place)) == (2 if found == old else 3)
        if not ended:
            break
        step += 1
    assert states == sorted(states)
    assert states[-1]
    assert not states[0]
    assert step > 5


def _failing(store: Any, step: int) -> None:
    """Let all requests fail that change something, from the nth on: nothing is taken back then either."""
    store.left = step
    for name in ("pipe_file", "rm_file", "cp_file"):
        setattr(store, name, _counted(store, getattr(store, name)))


def _counted(store: Any, change: Any) -> Any:
    def do(*arguments: Any, **options: Any) -> Any:
        if store.left is not None:
            if not store.left:
                raise OSError("the process has ended")
            store.left -= 1
        return change(*arguments, **options)

    return do


def test_jobs_travel_with_their_file_system(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    place = "data", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    job = begin(place)
    message = pickle.loads(pickle.dumps(task(pickle.loads(pickle.dumps(job)), "0", [1, 2], 0)))
    pickle.loads(pickle.dumps(job)).commit([message])
    assert read_rows(place) == {"1": [0], "2": [1]}
    assert not any(name.startswith(".") for name in os.listdir(tmp_path / "data"))


def test_urls(tmp_path):
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
