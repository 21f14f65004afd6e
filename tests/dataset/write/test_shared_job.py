"""Writes of several processes to one dataset: only files named in the commit become visible, and only then."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import shutil
import threading

import pytest

import numparq
from numparq.dataset.commit.recover import recover
from numparq.dataset.write.shared_job import SharedJob
from support.shared_jobs import frame, read_numbers, staged_leftovers, visible_files, write_by_task, write_numbers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses POSIX locks")


def test_files_are_invisible_before_commit(tmp_path):
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    messages = [write_by_task(job, f"{task:05}", 10 * task) for task in range(3)]
    assert read_numbers(tmp_path) == []
    assert visible_files(tmp_path) == []
    assert [name[0] for name in os.listdir(tmp_path)] == ["."], "staged files are hidden from all readers"
    job.commit(messages)
    assert read_numbers(tmp_path) == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    assert staged_leftovers(tmp_path) == []
    assert len(visible_files(tmp_path)) == 6
    assert all(f"part-{job.id}-0000" in name and name.startswith("key=") for name in visible_files(tmp_path))


def test_staged_files_can_be_read_before_commit(tmp_path):
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    messages = [write_by_task(job, "0", 0), write_by_task(job, "1", 10), None]
    paths = job.staged(messages)
    assert [numparq.read_parquet(path)["n"].tolist() for path in paths] == [[0, 2], [1, 3], [10, 12], [11, 13]]
    files = [file for message in messages[:2] for file in message.files]
    assert [file.folder for file in files] == ["key=0", "key=1"] * 2
    assert [file.num_rows for file in files] == [2] * 4
    assert messages[0].num_rows == 4
    assert [file.num_bytes for file in files] == [os.path.getsize(path) for path in paths]
    job.commit(messages)
    assert visible_files(tmp_path) == sorted(file.name for file in files)


def test_pickled_jobs_and_messages_are_small(tmp_path):
    job = SharedJob.begin(tmp_path)
    message = write_by_task(job, "0", 0, 100_000)
    assert len(pickle.dumps(job)) < 3000
    assert len(pickle.dumps(message)) < 1000
    job.abort()


def test_aborted_job_leaves_no_files(tmp_path):
    job = SharedJob.begin(tmp_path / "new" / "data", partition_cols=["key"])
    write_by_task(job, "0", 0)
    open_one = job.task("1")
    open_one.write(frame(10))
    job.abort()
    assert os.listdir(tmp_path) == []
    write_numbers(tmp_path / "there")
    job = SharedJob.begin(tmp_path / "there", mode="overwrite", partition_cols=["key"])
    write_by_task(job, "0", 10)
    job.abort()
    assert read_numbers(tmp_path / "there") == [0, 1, 2, 3]
    assert staged_leftovers(tmp_path / "there") == []


def busy_tasks(staging: str, stop: threading.Event) -> list[threading.Thread]:
    """Start threads that create files in a job's staging directory, as tasks that outlive their job do."""

    def create(number: int) -> None:
        for count in itertools.count():
            if stop.is_set():
                return
            with contextlib.suppress(OSError):
                open(f"{staging}/{number}{count:09}", "x").close()

    threads = [threading.Thread(target=create, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.parametrize("end", ["abort", "commit"])
@pytest.mark.parametrize("outlives", [False, True])
def test_job_removes_files_created_by_late_tasks(tmp_path, end, outlives):
    write_numbers(tmp_path)
    for _ in range(5):
        job = SharedJob.begin(tmp_path, partition_cols=["key"], outlives=outlives)
        message = write_by_task(job, "0", 4)
        stop = threading.Event()
        threads = busy_tasks(os.path.dirname(job.staged([message])[0]), stop)
        try:
            job.abort() if end == "abort" else job.commit([message])
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert staged_leftovers(tmp_path) == []


def test_interrupted_removal_is_completed_by_recovery(tmp_path, monkeypatch):
    write_numbers(tmp_path)
    job = SharedJob.begin(tmp_path, partition_cols=["key"], outlives=True)
    write_by_task(job, "0", 4)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *args, **options: None)  # as if the process had been killed
        job.abort()
    (name,) = staged_leftovers(tmp_path)
    with pytest.raises(FileNotFoundError, match="the write has ended"):
        write_by_task(job, "1", 4)
    assert read_numbers(tmp_path) == [0, 1, 2, 3]
    assert name.startswith(".numparq-over-")
    assert recover(tmp_path).removed == [job.id]
    assert staged_leftovers(tmp_path) == []


def test_failed_attempt_leaves_no_files(tmp_path):
    job = SharedJob.begin(tmp_path)
    with pytest.raises(RuntimeError), job.task("0") as writer:
        writer.write(frame(0))
        writer.roll()
        writer.write(frame(10))
        writer.flush()
        raise RuntimeError
    (folder,) = tmp_path.iterdir()
    assert list(folder.iterdir()) == []
    with pytest.raises(ValueError, match="closed"):
        writer.write(frame(0))
    job.abort()


def test_task_of_finished_job_raises(tmp_path):
    job = SharedJob.begin(tmp_path)
    late = job.task("0")
    job.commit([write_by_task(job, "1", 0)])
    with pytest.raises(FileNotFoundError, match="the write has ended"):
        late.write(frame(0))
        late.close()
    with pytest.raises(FileNotFoundError, match="the write has ended"):
        job.commit([])
    job.abort()  # a no-op
    assert read_numbers(tmp_path) == [0, 1, 2, 3]
    assert staged_leftovers(tmp_path) == []


def worker(job: SharedJob, task: int, queue: multiprocessing.Queue) -> None:
    with job.task(f"{task:05}") as writer:
        for first in range(100 * task, 100 * task + 20, 5):
            writer.write(frame(first, 5))
    queue.put(writer.message)


@pytest.mark.slow
def test_tasks_in_other_processes(tmp_path):
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [context.Process(target=worker, args=(job, task, queue)) for task in range(2)]
    for process in processes:
        process.start()
    messages = [queue.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(timeout=120)
    job.commit(messages)
    assert read_numbers(tmp_path) == [*range(20), *range(100, 120)]
    assert len(visible_files(tmp_path)) == 4


def test_only_the_committed_attempt_is_visible(tmp_path):
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    concurrent = job.task("00000")
    concurrent.write(frame(0))
    first, second = write_by_task(job, "00000", 0), write_by_task(job, "00000", 0)
    slow = concurrent.close()
    assert len({file.staged_name for message in (first, second, slow) for file in message.files}) == 6
    job.commit([second, write_by_task(job, "00001", 10)])
    assert read_numbers(tmp_path) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert staged_leftovers(tmp_path) == []
    assert len(visible_files(tmp_path)) == 4


def test_two_attempts_of_one_task_raise(tmp_path):
    job = SharedJob.begin(tmp_path)
    messages = [write_by_task(job, "0", 0), write_by_task(job, "0", 0)]
    with pytest.raises(ValueError, match="two messages are from task '0'"):
        job.commit(messages)
    assert read_numbers(tmp_path) == []
    job.commit(messages[:1])
    assert read_numbers(tmp_path) == [0, 1, 2, 3]


def test_messages_of_another_job_raise(tmp_path):
    job, other = SharedJob.begin(tmp_path), SharedJob.begin(tmp_path)
    with pytest.raises(ValueError, match=other.id):
        job.commit([write_by_task(other, "0", 0)])
    job.abort()
    other.abort()
    assert os.listdir(tmp_path) == []


def test_missing_staged_file_fails_the_commit(tmp_path):
    write_numbers(tmp_path)
    job = SharedJob.begin(tmp_path, mode="overwrite", partition_cols=["key"])
    messages = [write_by_task(job, "0", 10), write_by_task(job, "1", 20)]
    os.unlink(job.staged(messages)[-1])
    with pytest.raises(FileNotFoundError):
        job.commit(messages)
    assert read_numbers(tmp_path) == [0, 1, 2, 3]
    job.abort()
    assert staged_leftovers(tmp_path) == []


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".x", "a.b", "x" * 101, "Ö"])
def test_invalid_task_names_raise(tmp_path, name):
    job = SharedJob.begin(tmp_path)
    with pytest.raises(ValueError, match="name of a task"):
        job.task(name)
    job.abort()


SCHEMA = {"key": "int64", "n": "int32"}
