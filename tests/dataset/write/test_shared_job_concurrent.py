"""Shared jobs beside other writers, and after one of them has died."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
from dataclasses import replace

import pandas as pd
import pytest

import numparq
from numparq.dataset.commit.recover import recover
from numparq.dataset.write.dataset_writer import DatasetWriter
from numparq.dataset.write.shared_job import SharedJob
from numparq.errors import SchemaError
from numparq.format.physical_type import INT64
from numparq.format.schema_node import SchemaNode
from support.shared_jobs import frame, read_numbers, staged_leftovers, write_by_task, write_numbers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses POSIX locks")


def test_incompatible_columns_and_partitions_raise(tmp_path):
    write_numbers(tmp_path)
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"key": [1], "n": ["text"]}))
    with pytest.raises(SchemaError, match="do not form one table with the existing ones"):
        job.commit([writer.message])
    job.abort()
    job = SharedJob.begin(tmp_path)
    with pytest.raises(SchemaError, match="partitioned by 'key'"):
        job.commit([write_by_task(job, "0", 0)])
    job.abort()
    assert read_numbers(tmp_path) == [0, 1, 2, 3]
    assert staged_leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("second", "ends"),
    [
        ({"n": ["x"]}, None),
        ({"n": [2], "m": [1.5]}, [1, 2]),
        ({"n": pd.array([3], "Int32")}, [1, 3]),
        ({"n": [0.5]}, [1, 0.5]),
    ],
    ids=["string", "a column more", "narrower", "float"],
)
def test_incompatible_columns_of_tasks_raise(tmp_path, second, ends) -> None:
    """Without a schema, only the commit sees the columns of all tasks."""
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
        with pytest.raises(SchemaError, match="the written files do not form one table"):
            job.commit(messages)
        job.abort()
        assert not list(path.glob("*.parquet"))
    else:
        job.commit(messages)
        assert sorted(numparq.read_parquet(path)["n"].tolist()) == sorted([*ends, 1])


def test_file_replaced_during_begin_of_append(tmp_path, monkeypatch):
    """A file that is listed but gone when it is opened."""
    write_numbers(tmp_path)
    monkeypatch.setattr("numparq.dataset.commit.local_stage.FileSource", lambda path: os.stat(f"{path}.gone"))
    SharedJob.begin(
        tmp_path, partition_cols=["key"], schema=[SchemaNode("key", 1, INT64), SchemaNode("n", 1, INT64)]
    ).abort()
    assert read_numbers(tmp_path) == [0, 1, 2, 3]
    assert staged_leftovers(tmp_path) == []


@pytest.mark.parametrize("same_name", [str, str.lower])
def test_column_names_that_differ_in_case(tmp_path, same_name):
    """They are two columns, unless readers are case-insensitive."""
    write_numbers(tmp_path)
    for name in ("n", "N"):
        job = pickle.loads(
            pickle.dumps(SharedJob.begin(tmp_path, partition_cols=["key"], same_name=same_name, outlives=True))
        )
        with job.task("0") as writer:
            writer.write(pd.DataFrame({"key": [1], name: [7]}))
        if name == "N" and same_name is str.lower:
            with pytest.raises(
                SchemaError, match=r"the existing column 'n' has a name that readers treat as equal.*column 'N'"
            ):
                job.commit([writer.message])
            job.abort()
        else:
            job.commit([writer.message])
    columns = ["n", "key"] if same_name is str.lower else ["n", "N", "key"]
    assert list(numparq.read_parquet(tmp_path).columns) == columns


def test_concurrent_appends_all_succeed(tmp_path):
    jobs = [SharedJob.begin(tmp_path, partition_cols=["key"], outlives=bool(n % 2)) for n in range(6)]
    messages = [[write_by_task(job, "0", 100 * n), write_by_task(job, "1", 100 * n + 50)] for n, job in enumerate(jobs)]
    threads = [
        threading.Thread(target=job.commit, args=(job_messages,))
        for job, job_messages in zip(jobs, messages, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_numbers(tmp_path) == sorted(
        100 * n + first + i for n in range(6) for first in (0, 50) for i in range(4)
    )
    assert staged_leftovers(tmp_path) == []


@pytest.mark.parametrize("outlives", [False, True])
def test_other_writers_keep_staged_files_of_running_job(tmp_path, outlives):
    job = SharedJob.begin(tmp_path, partition_cols=["key"], outlives=outlives)
    message = write_by_task(job, "0", 100)
    write_numbers(tmp_path)
    with DatasetWriter(tmp_path, partition_cols=["key"], existing_data_behavior="delete_matching") as writer:
        writer.write(frame(10))
    recover(tmp_path)
    assert len(staged_leftovers(tmp_path)) == 1
    assert read_numbers(tmp_path) == [10, 11, 12, 13]
    pickle.loads(pickle.dumps(job)).commit([message, write_by_task(job, "1", 200)])
    assert read_numbers(tmp_path) == [10, 11, 12, 13, 100, 101, 102, 103, 200, 201, 202, 203]
    assert staged_leftovers(tmp_path) == []


def test_unpickled_job_commits_after_original_is_deleted(tmp_path):
    job = SharedJob.begin(tmp_path)
    copy, message = pickle.loads(pickle.dumps(job)), write_by_task(job, "0", 0)
    del job
    copy.commit([message])
    assert read_numbers(tmp_path) == [0, 1, 2, 3]
    assert staged_leftovers(tmp_path) == []


def test_recovery_removes_files_of_dead_job(tmp_path):
    (tmp_path / "data").mkdir()
    dead = SharedJob.begin(tmp_path / "data")
    write_by_task(dead, "0", 0)
    dead._stage._close()  # as the system does when the process ends
    lasting = SharedJob.begin(tmp_path / "data", outlives=True)
    message = write_by_task(lasting, "0", 10)
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    found = recover(tmp_path / "data")
    assert found.removed == [dead.id]
    assert len(staged_leftovers(tmp_path / "data")) == 1
    with pytest.raises(FileNotFoundError, match="dead process"):
        dead.commit([])
    lasting.commit([message])
    assert read_numbers(tmp_path / "data") == [10, 11, 12, 13]
    assert staged_leftovers(tmp_path / "data") == []
    found = recover(tmp_path / "copy", abandoned=True)
    assert sorted(found.removed) == sorted([dead.id, lasting.id])
    assert os.listdir(tmp_path / "copy") == []


@pytest.mark.parametrize("change", [{"name": "../out.parquet"}, {"name": "/out.parquet"}, {"staged_name": "../1"}])
def test_messages_with_foreign_paths_raise(tmp_path, change):
    job = SharedJob.begin(tmp_path / "a")
    message = write_by_task(job, "0", 0)
    forged = replace(message, files=tuple(replace(file, **change) for file in message.files))
    with pytest.raises(ValueError, match="which the write did not stage"):
        job.commit([forged])
    job.abort()
    assert os.listdir(tmp_path) == []
