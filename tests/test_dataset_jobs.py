"""Writes of several processes to one dataset: files count when the job is committed, and only those named then."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.commit.recover import recover
from numparq.dataset.discover.files import list_files
from numparq.dataset.write.dataset_writer import DatasetWriter
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.errors import InvalidFileError, SchemaError
from numparq.format.physical_type import INT64
from numparq.format.schema_node import SchemaNode

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks are those of POSIX")


def frame(first: int, count: int = 4, keys: int = 2) -> pd.DataFrame:
    numbers = np.arange(first, first + count)
    return pd.DataFrame({"key": numbers % keys, "n": numbers})


def write(job: SharedJob, task: str, first: int, count: int = 4) -> TaskMessage:
    """Write rows of a task, with a copy of the job as another process has it."""
    with pickle.loads(pickle.dumps(job)).task(task) as writer:
        writer.write(frame(first, count))
    return pickle.loads(pickle.dumps(writer.message))


def fill(folder: Path, count: int = 4, **options: object) -> None:
    numparq.to_parquet(frame(0, count), folder, partition_cols=["key"], progress=False, **options)


def numbers(folder: Path) -> list[int]:
    """Give what a reader of this library finds."""
    try:
        listing = list_files(folder)
    except (InvalidFileError, FileNotFoundError):
        return []
    return sorted(n for file in listing.files for n in numparq.read_parquet(file.path)["n"].tolist())


def seen(folder: Path) -> list[str]:
    """Give the files that readers see who only list folders, and leave out names with a dot or underscore."""
    names = [str(path.relative_to(folder)) for path in Path(folder).rglob("*.parquet")]
    return sorted(name for name in names if not any(part[0] in "._" for part in name.split("/")))


def left(folder: Path) -> list[str]:
    """Give what a job leaves that ends badly."""
    return sorted(path.name for path in Path(folder).iterdir() if path.name[0] in "._")


# --- a job ------------------------------------------------------------------------------------------------------------


def test_nothing_counts_before_the_commit(tmp_path):
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    messages = [write(job, f"{task:05}", 10 * task) for task in range(3)]
    assert numbers(tmp_path) == []
    assert seen(tmp_path) == []
    assert [name[0] for name in os.listdir(tmp_path)] == ["."], "what is there is hidden from all readers"
    job.commit(messages)
    assert numbers(tmp_path) == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    assert left(tmp_path) == []
    assert len(seen(tmp_path)) == 6
    assert all(f"part-{job.id}-0000" in name and name.startswith("key=") for name in seen(tmp_path))


def test_files_can_be_read_before_the_commit(tmp_path):
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    messages = [write(job, "0", 0), write(job, "1", 10), None]
    paths = job.staged(messages)
    assert [numparq.read_parquet(path)["n"].tolist() for path in paths] == [[0, 2], [1, 3], [10, 12], [11, 13]]
    files = [file for message in messages[:2] for file in message.files]
    assert [file.folder for file in files] == ["key=0", "key=1"] * 2
    assert [file.num_rows for file in files] == [2] * 4
    assert messages[0].num_rows == 4
    assert [file.num_bytes for file in files] == [os.path.getsize(path) for path in paths]
    job.commit(messages)
    assert seen(tmp_path) == sorted(file.name for file in files)


def test_messages_and_jobs_are_small(tmp_path):
    job = SharedJob.begin(tmp_path)
    message = write(job, "0", 0, 100_000)
    assert len(pickle.dumps(job)) < 3000
    assert len(pickle.dumps(message)) < 1000
    job.abort()


def test_a_job_that_is_given_up_leaves_nothing(tmp_path):
    job = SharedJob.begin(tmp_path / "new" / "data", partition_cols=["key"])
    write(job, "0", 0)
    open_one = job.task("1")
    open_one.write(frame(10))
    job.abort()
    assert os.listdir(tmp_path) == []
    fill(tmp_path / "there")
    job = SharedJob.begin(tmp_path / "there", mode="overwrite", partition_cols=["key"])
    write(job, "0", 10)
    job.abort()
    assert numbers(tmp_path / "there") == [0, 1, 2, 3]
    assert left(tmp_path / "there") == []


def busy_tasks(staging: str, stop: threading.Event) -> list[threading.Thread]:
    """Begin to create files in the folder of a job, as tasks do that run on."""

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
def test_nothing_is_left_where_tasks_go_on_creating_files(tmp_path, end, outlives):
    fill(tmp_path)
    for _ in range(5):
        job = SharedJob.begin(tmp_path, partition_cols=["key"], outlives=outlives)
        message = write(job, "0", 4)
        stop = threading.Event()
        threads = busy_tasks(os.path.dirname(job.staged([message])[0]), stop)
        try:
            job.abort() if end == "abort" else job.commit([message])
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert left(tmp_path) == []


def test_a_removal_that_breaks_off_is_completed_by_the_next_write(tmp_path, monkeypatch):
    fill(tmp_path)
    job = SharedJob.begin(tmp_path, partition_cols=["key"], outlives=True)
    write(job, "0", 4)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *args, **options: None)  # as if the process had died
        job.abort()
    (name,) = left(tmp_path)
    with pytest.raises(FileNotFoundError, match="the write is over"):
        write(job, "1", 4)
    assert numbers(tmp_path) == [0, 1, 2, 3]
    assert name.startswith(".numparq-over-")
    assert recover(tmp_path).removed == [job.id]
    assert left(tmp_path) == []


def test_an_attempt_that_fails_leaves_nothing(tmp_path):
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


def test_a_task_of_a_job_that_is_over_says_so(tmp_path):
    job = SharedJob.begin(tmp_path)
    late = job.task("0")
    job.commit([write(job, "1", 0)])
    with pytest.raises(FileNotFoundError, match="the write is over"):
        late.write(frame(0))
        late.close()
    with pytest.raises(FileNotFoundError, match="the write is over"):
        job.commit([])
    job.abort()  # has nothing to do
    assert numbers(tmp_path) == [0, 1, 2, 3]
    assert left(tmp_path) == []


def worker(job: SharedJob, task: int, queue: multiprocessing.Queue) -> None:
    with job.task(f"{task:05}") as writer:
        for first in range(100 * task, 100 * task + 20, 5):
            writer.write(frame(first, 5))
    queue.put(writer.message)


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
    assert numbers(tmp_path) == [*range(20), *range(100, 120)]
    assert len(seen(tmp_path)) == 4


# --- attempts ---------------------------------------------------------------------------------------------------------


def test_of_several_attempts_only_the_one_that_is_named_counts(tmp_path):
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    side_by_side = job.task("00000")
    side_by_side.write(frame(0))
    first, second = write(job, "00000", 0), write(job, "00000", 0)
    slow = side_by_side.close()
    assert len({file.staged for message in (first, second, slow) for file in message.files}) == 6
    job.commit([second, write(job, "00001", 10)])
    assert numbers(tmp_path) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert left(tmp_path) == []
    assert len(seen(tmp_path)) == 4


def test_two_attempts_are_not_both_taken(tmp_path):
    job = SharedJob.begin(tmp_path)
    messages = [write(job, "0", 0), write(job, "0", 0)]
    with pytest.raises(ValueError, match="two messages are of the task '0'"):
        job.commit(messages)
    assert numbers(tmp_path) == []
    job.commit(messages[:1])
    assert numbers(tmp_path) == [0, 1, 2, 3]


def test_messages_of_another_job_are_refused(tmp_path):
    job, other = SharedJob.begin(tmp_path), SharedJob.begin(tmp_path)
    with pytest.raises(ValueError, match=other.id):
        job.commit([write(other, "0", 0)])
    job.abort()
    other.abort()
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_not_there_any_more_ends_the_commit(tmp_path):
    fill(tmp_path)
    job = SharedJob.begin(tmp_path, mode="overwrite", partition_cols=["key"])
    messages = [write(job, "0", 10), write(job, "1", 20)]
    os.unlink(job.staged(messages)[-1])
    with pytest.raises(FileNotFoundError):
        job.commit(messages)
    assert numbers(tmp_path) == [0, 1, 2, 3]
    job.abort()
    assert left(tmp_path) == []


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".x", "a.b", "x" * 101, "Ö"])
def test_names_of_tasks(tmp_path, name):
    job = SharedJob.begin(tmp_path)
    with pytest.raises(ValueError, match="task's name"):
        job.task(name)
    job.abort()


# --- modes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "after"),
    [
        ("append", [0, 1, 2, 3, 4, 5, 10, 13]),
        ("overwrite", [10, 13]),
        ("delete_matching", [2, 5, 10, 13]),
    ],
)
def test_modes(tmp_path, mode, after):
    numparq.to_parquet(frame(0, 6, keys=3), tmp_path, partition_cols=["key"], write_metadata_file=True)
    job = SharedJob.begin(tmp_path, mode=mode, partition_cols=["key"])
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"key": [1, 0], "n": [13, 10]}))
    job.commit([writer.message])
    assert numbers(tmp_path) == after and left(tmp_path) == [], "_metadata would not be true any more"


def test_a_dataset_that_may_not_be_there(tmp_path):
    job = SharedJob.begin(tmp_path / "data", mode="error")
    message = write(job, "0", 0)
    fill(tmp_path / "data")
    with pytest.raises(FileExistsError, match="append adds to them"):
        job.commit([message])
    job.abort()
    with pytest.raises(FileExistsError, match="append adds to them"):
        SharedJob.begin(tmp_path / "data", mode="error")
    assert numbers(tmp_path / "data") == [0, 1, 2, 3]
    assert left(tmp_path / "data") == []


def test_what_is_no_mode(tmp_path):
    with pytest.raises(ValueError, match="append, error, overwrite, delete_matching, replace"):
        SharedJob.begin(tmp_path / "data", mode="ignore")
    with pytest.raises(TypeError, match="folder"):
        SharedJob.begin(7)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        SharedJob.begin(tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]


def replacing(folder: Path, names: list[str]) -> tuple[SharedJob, TaskMessage]:
    job = SharedJob.begin(folder, mode="replace", gone=[folder / name for name in names])
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"n": [100]}), folder="key=0")
    return job, writer.message


def test_named_files_are_replaced(tmp_path):
    fill(tmp_path, max_rows_per_file=1)
    names = [name for name in seen(tmp_path) if name.startswith("key=0")]
    job, message = replacing(tmp_path, names)
    fill(tmp_path, append=True)
    job.commit([message])
    assert numbers(tmp_path) == [0, 1, 1, 2, 3, 3, 100] and left(tmp_path) == [], "what came meanwhile stays"
    assert not set(names) & set(seen(tmp_path))


def test_named_files_are_known_by_any_spelling_of_their_paths(tmp_path, monkeypatch):
    fill(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    name = seen(tmp_path / "data")[0]
    job = SharedJob.begin("data", mode="replace", gone=[f"data/../data/{name}", str(tmp_path / "data" / name)])
    monkeypatch.chdir("/")
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"n": [100]}), folder="key=0")
    job.commit([writer.message])
    assert numbers(tmp_path / "data") == [1, 3, 100]


@pytest.mark.parametrize("change", ["replaced", "removed", "touched"])
def test_a_named_file_that_is_another_one_by_now_ends_the_commit(tmp_path, change):
    fill(tmp_path)
    name = seen(tmp_path)[0]
    job, message = replacing(tmp_path, seen(tmp_path))
    if change == "removed":
        os.unlink(tmp_path / name)
    elif change == "touched":
        os.utime(tmp_path / name, ns=(1, 1))
    else:
        numparq.to_parquet(pd.DataFrame({"n": [50]}), tmp_path / name)
    before = {path: (tmp_path / path).read_bytes() for path in seen(tmp_path)}
    word = "not there any more" if change == "removed" else "changed meanwhile"
    with pytest.raises(InvalidFileError, match=word) as caught:
        job.commit([message])
    assert str(caught.value.where["file"]).endswith(name)
    assert str(pickle.loads(pickle.dumps(caught.value))).count(name)
    job.abort()
    assert {path: (tmp_path / path).read_bytes() for path in seen(tmp_path)} == before
    assert left(tmp_path) == []


def test_a_named_file_that_is_not_there_to_begin_with(tmp_path):
    fill(tmp_path)
    for path in (tmp_path / "key=0" / "x.parquet", "/elsewhere/x.parquet"):
        with pytest.raises(FileNotFoundError, match="no such file"):
            SharedJob.begin(tmp_path, mode="replace", gone=[path])
    assert left(tmp_path) == []


def test_of_two_jobs_that_replace_a_file_one_fails(tmp_path):
    fill(tmp_path)
    jobs = [replacing(tmp_path, seen(tmp_path)) for _ in range(2)]
    jobs[1][0].commit([jobs[1][1]])
    with pytest.raises(InvalidFileError, match="not there any more"):
        jobs[0][0].commit([jobs[0][1]])
    jobs[0][0].abort()
    assert numbers(tmp_path) == [100]
    assert left(tmp_path) == []


def test_files_can_be_replaced_by_nothing(tmp_path):
    fill(tmp_path)
    job = SharedJob.begin(tmp_path, mode="replace", gone=[tmp_path / seen(tmp_path)[0]])
    job.commit([])
    assert numbers(tmp_path) == [1, 3]
    assert left(tmp_path) == []


# --- nothing written --------------------------------------------------------------------------------------------------


SCHEMA = {"key": "int64", "n": "int32"}


def arrow_schema():
    pa = pytest.importorskip("pyarrow")
    return pa.schema([("key", pa.int64()), ("n", pa.int32())])


@pytest.mark.parametrize("partition_cols", [[], ["key"]])
def test_a_dataset_without_rows_has_its_columns(tmp_path, partition_cols):
    job = SharedJob.begin(tmp_path, schema=arrow_schema(), partition_cols=partition_cols)
    with job.task("0") as writer:
        writer.write(arrow_schema().empty_table())
    assert writer.message.files == ()
    job.commit([writer.message])
    found = numparq.read_parquet(tmp_path)
    assert len(found) == 0
    assert sorted(found.columns) == ["key", "n"]
    assert str(found["n"].dtype) == "int32"
    job = SharedJob.begin(tmp_path, schema=arrow_schema(), partition_cols=partition_cols)
    job.commit([])
    assert len(seen(tmp_path)) == 1, "there is a file already"
    job = SharedJob.begin(tmp_path, schema=arrow_schema(), partition_cols=partition_cols)
    job.commit([write(job, "0", 0)])
    assert numbers(tmp_path) == [0, 1, 2, 3]


def test_overwritten_by_nothing(tmp_path):
    fill(tmp_path)
    job = SharedJob.begin(tmp_path, mode="overwrite", partition_cols=["key"])
    with pytest.raises(SchemaError, match="no rows were written, and no schema was given"):
        job.commit([])
    job.abort()
    assert numbers(tmp_path) == [0, 1, 2, 3]
    job = SharedJob.begin(tmp_path, mode="overwrite", partition_cols=["key"], schema=arrow_schema())
    job.commit([])
    assert numbers(tmp_path) == []
    assert len(seen(tmp_path)) == 1
    assert left(tmp_path) == []


# --- beside others ----------------------------------------------------------------------------------------------------


def test_what_does_not_go_with_the_files_there_is_refused(tmp_path):
    fill(tmp_path)
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"key": [1], "n": ["text"]}))
    with pytest.raises(SchemaError, match="does not go with the files that are there"):
        job.commit([writer.message])
    job.abort()
    job = SharedJob.begin(tmp_path)
    with pytest.raises(SchemaError, match="partitioned by 'key'"):
        job.commit([write(job, "0", 0)])
    job.abort()
    assert numbers(tmp_path) == [0, 1, 2, 3]
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("second", "ends"),
    [
        ({"n": ["x"]}, None),
        ({"n": [2], "m": [1.5]}, [1, 2]),
        ({"n": pd.array([3], "Int32")}, [1, 3]),
        ({"n": [0.5]}, None),
    ],
    ids=["string", "a column more", "narrower", "float"],
)
def test_columns_of_tasks_that_no_table_has_together_are_refused(tmp_path, second, ends) -> None:
    """Tasks do not know of each other; without a schema only the commit sees what all have written."""
    path = tmp_path / "a"
    job = SharedJob.begin(path)
    messages = []
    for name, content in (("0", {"n": [1]}), ("1", second), ("2", {"n": [1]})):
        with job.task(name) as task:
            task.write(pd.DataFrame(content))
        messages.append(task.message)
    assert messages[0].columns == messages[2].columns
    assert messages[0].columns != messages[1].columns
    if ends is None:
        with pytest.raises(SchemaError, match="files of the write do not go together"):
            job.commit(messages)
        job.abort()
        assert not list(path.glob("*.parquet"))
    else:
        job.commit(messages)
        assert sorted(numparq.read_parquet(path)["n"].tolist()) == sorted([*ends, 1])


def test_a_file_that_is_replaced_while_an_append_begins(tmp_path, monkeypatch):
    """It is listed, and gone before it can be looked at."""
    fill(tmp_path)
    monkeypatch.setattr("numparq.dataset.commit.local_stage.FileSource", lambda path: os.stat(f"{path}.gone"))
    SharedJob.begin(
        tmp_path, partition_cols=["key"], schema=[SchemaNode("key", 1, INT64), SchemaNode("n", 1, INT64)]
    ).abort()
    assert numbers(tmp_path) == [0, 1, 2, 3]
    assert left(tmp_path) == []


@pytest.mark.parametrize("same_name", [str, str.lower])
def test_columns_whose_names_differ_in_case(tmp_path, same_name):
    """They are two, but for readers to whom they are one."""
    fill(tmp_path)
    for name in ("n", "N"):
        job = pickle.loads(
            pickle.dumps(SharedJob.begin(tmp_path, partition_cols=["key"], same_name=same_name, outlives=True))
        )
        with job.task("0") as writer:
            writer.write(pd.DataFrame({"key": [1], name: [7]}))
        if name == "N" and same_name is str.lower:
            with pytest.raises(SchemaError, match=r"called 'n', and readers are to take both for one.*column 'N'"):
                job.commit([writer.message])
            job.abort()
        else:
            job.commit([writer.message])
    columns = ["n", "key"] if same_name is str.lower else ["n", "N", "key"]
    assert list(numparq.read_parquet(tmp_path).columns) == columns


def test_appends_side_by_side_all_succeed(tmp_path):
    jobs = [SharedJob.begin(tmp_path, partition_cols=["key"], outlives=bool(n % 2)) for n in range(6)]
    messages = [[write(job, "0", 100 * n), write(job, "1", 100 * n + 50)] for n, job in enumerate(jobs)]
    threads = [threading.Thread(target=job.commit, args=(of,)) for job, of in zip(jobs, messages, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(tmp_path) == sorted(100 * n + first + i for n in range(6) for first in (0, 50) for i in range(4))
    assert left(tmp_path) == []


@pytest.mark.parametrize("outlives", [False, True])
def test_other_writers_leave_a_job_alone_that_is_under_way(tmp_path, outlives):
    job = SharedJob.begin(tmp_path, partition_cols=["key"], outlives=outlives)
    message = write(job, "0", 100)
    fill(tmp_path)
    with DatasetWriter(tmp_path, partition_cols=["key"], existing_data_behavior="delete_matching") as writer:
        writer.write(frame(10))
    recover(tmp_path)
    assert len(left(tmp_path)) == 1
    assert numbers(tmp_path) == [10, 11, 12, 13]
    pickle.loads(pickle.dumps(job)).commit([message, write(job, "1", 200)])
    assert numbers(tmp_path) == [10, 11, 12, 13, 100, 101, 102, 103, 200, 201, 202, 203]
    assert left(tmp_path) == []


def test_a_copy_commits_when_the_first_one_is_no_more(tmp_path):
    job = SharedJob.begin(tmp_path)
    copy, message = pickle.loads(pickle.dumps(job)), write(job, "0", 0)
    del job
    copy.commit([message])
    assert numbers(tmp_path) == [0, 1, 2, 3]
    assert left(tmp_path) == []


def test_what_a_dead_job_has_left_is_removed(tmp_path):
    (tmp_path / "data").mkdir()
    dead = SharedJob.begin(tmp_path / "data")
    write(dead, "0", 0)
    dead._stage._close()  # as the system does when the process ends
    lasting = SharedJob.begin(tmp_path / "data", outlives=True)
    message = write(lasting, "0", 10)
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    found = recover(tmp_path / "data")
    assert found.removed == [dead.id]
    assert len(left(tmp_path / "data")) == 1
    with pytest.raises(FileNotFoundError, match="dead process"):
        dead.commit([])
    lasting.commit([message])
    assert numbers(tmp_path / "data") == [10, 11, 12, 13]
    assert left(tmp_path / "data") == []
    found = recover(tmp_path / "copy", abandoned=True)
    assert sorted(found.removed) == sorted([dead.id, lasting.id])
    assert os.listdir(tmp_path / "copy") == []


@pytest.mark.parametrize("change", [{"name": "../out.parquet"}, {"name": "/out.parquet"}, {"staged": "../1"}])
def test_messages_that_name_files_elsewhere_are_refused(tmp_path, change):
    job = SharedJob.begin(tmp_path / "a")
    message = write(job, "0", 0)
    forged = replace(message, files=tuple(replace(file, **change) for file in message.files))
    with pytest.raises(ValueError, match="none of the write"):
        job.commit([forged])
    job.abort()
    assert os.listdir(tmp_path) == []
