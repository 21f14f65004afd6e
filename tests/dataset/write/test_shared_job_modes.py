"""Shared jobs: modes, replaced files, and datasets without rows."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pandas as pd
import pytest

import numparq
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.errors import InvalidFileError, SchemaError
from support.shared_jobs import frame, read_numbers, staged_leftovers, visible_files, write_by_task, write_numbers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses POSIX locks")


@pytest.mark.parametrize(
    ("mode", "after"),
    [
        ("append", [0, 1, 2, 3, 4, 5, 10, 13]),
        ("overwrite", [10, 13]),
        ("delete_matching", [2, 5, 10, 13]),
    ],
)
def test_append_overwrite_and_delete_matching(tmp_path, mode, after):
    numparq.to_parquet(frame(0, 6, keys=3), tmp_path, partition_cols=["key"], write_metadata_file=True)
    job = SharedJob.begin(tmp_path, mode=mode, partition_cols=["key"])
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"key": [1, 0], "n": [13, 10]}))
    job.commit([writer.message])
    assert read_numbers(tmp_path) == after, "a stale _metadata is removed"
    assert staged_leftovers(tmp_path) == []


def test_error_mode_raises_for_existing_dataset(tmp_path):
    job = SharedJob.begin(tmp_path / "data", mode="error")
    message = write_by_task(job, "0", 0)
    write_numbers(tmp_path / "data")
    with pytest.raises(FileExistsError, match="append adds to them"):
        job.commit([message])
    job.abort()
    with pytest.raises(FileExistsError, match="append adds to them"):
        SharedJob.begin(tmp_path / "data", mode="error")
    assert read_numbers(tmp_path / "data") == [0, 1, 2, 3]
    assert staged_leftovers(tmp_path / "data") == []


def test_invalid_job_arguments_raise(tmp_path):
    with pytest.raises(ValueError, match="append, error, overwrite, delete_matching, replace"):
        SharedJob.begin(tmp_path / "data", mode="ignore")
    with pytest.raises(TypeError, match="directory of a dataset"):
        SharedJob.begin(7)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        SharedJob.begin(tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]


def begin_replacement(folder: Path, names: list[str]) -> tuple[SharedJob, TaskMessage]:
    job = SharedJob.begin(folder, mode="replace", gone=[folder / name for name in names])
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"n": [100]}), folder="key=0")
    return job, writer.message


def test_replace_mode_replaces_named_files(tmp_path):
    write_numbers(tmp_path, max_rows_per_file=1)
    names = [name for name in visible_files(tmp_path) if name.startswith("key=0")]
    job, message = begin_replacement(tmp_path, names)
    write_numbers(tmp_path, append=True)
    job.commit([message])
    assert read_numbers(tmp_path) == [0, 1, 1, 2, 3, 3, 100], "concurrent appends stay"
    assert staged_leftovers(tmp_path) == []
    assert not set(names) & set(visible_files(tmp_path))


def test_replaced_files_match_any_spelling_of_their_paths(tmp_path, monkeypatch):
    write_numbers(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    name = visible_files(tmp_path / "data")[0]
    job = SharedJob.begin("data", mode="replace", gone=[f"data/../data/{name}", str(tmp_path / "data" / name)])
    monkeypatch.chdir("/")
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"n": [100]}), folder="key=0")
    job.commit([writer.message])
    assert read_numbers(tmp_path / "data") == [1, 3, 100]


@pytest.mark.parametrize("change", ["replaced", "removed", "touched"])
def test_changed_replaced_file_fails_the_commit(tmp_path, change):
    write_numbers(tmp_path)
    name = visible_files(tmp_path)[0]
    job, message = begin_replacement(tmp_path, visible_files(tmp_path))
    if change == "removed":
        os.unlink(tmp_path / name)
    elif change == "touched":
        os.utime(tmp_path / name, ns=(1, 1))
    else:
        numparq.to_parquet(pd.DataFrame({"n": [50]}), tmp_path / name)
    before = {path: (tmp_path / path).read_bytes() for path in visible_files(tmp_path)}
    word = "no longer exists" if change == "removed" else "changed by another write"
    with pytest.raises(InvalidFileError, match=word) as caught:
        job.commit([message])
    assert str(caught.value.where["file"]).endswith(name)
    assert str(pickle.loads(pickle.dumps(caught.value))).count(name)
    job.abort()
    assert {path: (tmp_path / path).read_bytes() for path in visible_files(tmp_path)} == before
    assert staged_leftovers(tmp_path) == []


def test_missing_replaced_file_raises(tmp_path):
    write_numbers(tmp_path)
    for path in (tmp_path / "key=0" / "x.parquet", "/elsewhere/x.parquet"):
        with pytest.raises(FileNotFoundError, match="not in the dataset"):
            SharedJob.begin(tmp_path, mode="replace", gone=[path])
    assert staged_leftovers(tmp_path) == []


def test_second_of_two_jobs_replacing_a_file_fails(tmp_path):
    write_numbers(tmp_path)
    jobs = [begin_replacement(tmp_path, visible_files(tmp_path)) for _ in range(2)]
    jobs[1][0].commit([jobs[1][1]])
    with pytest.raises(InvalidFileError, match="no longer exists"):
        jobs[0][0].commit([jobs[0][1]])
    jobs[0][0].abort()
    assert read_numbers(tmp_path) == [100]
    assert staged_leftovers(tmp_path) == []


def test_files_can_be_deleted_without_replacement(tmp_path):
    write_numbers(tmp_path)
    job = SharedJob.begin(tmp_path, mode="replace", gone=[tmp_path / visible_files(tmp_path)[0]])
    job.commit([])
    assert read_numbers(tmp_path) == [1, 3]
    assert staged_leftovers(tmp_path) == []


def arrow_schema():
    pa = pytest.importorskip("pyarrow")
    return pa.schema([("key", pa.int64()), ("n", pa.int32())])


@pytest.mark.parametrize("partition_cols", [[], ["key"]])
def test_dataset_without_rows_keeps_its_columns(tmp_path, partition_cols):
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
    assert len(visible_files(tmp_path)) == 1, "an empty file already exists"
    job = SharedJob.begin(tmp_path, schema=arrow_schema(), partition_cols=partition_cols)
    job.commit([write_by_task(job, "0", 0)])
    assert read_numbers(tmp_path) == [0, 1, 2, 3]


def test_overwrite_without_rows_requires_a_schema(tmp_path):
    write_numbers(tmp_path)
    job = SharedJob.begin(tmp_path, mode="overwrite", partition_cols=["key"])
    with pytest.raises(SchemaError, match="no rows were written, and the dataset would be empty"):
        job.commit([])
    job.abort()
    assert read_numbers(tmp_path) == [0, 1, 2, 3]
    job = SharedJob.begin(tmp_path, mode="overwrite", partition_cols=["key"], schema=arrow_schema())
    job.commit([])
    assert read_numbers(tmp_path) == []
    assert len(visible_files(tmp_path)) == 1
    assert staged_leftovers(tmp_path) == []


def test_mode_that_the_commit_changes(tmp_path):
    frame = pd.DataFrame({"k": [1, 2], "x": [1, 2]})
    numparq.to_parquet(frame, tmp_path, partition_cols=["k"])
    job = SharedJob.begin(tmp_path, mode="overwrite", partition_cols=["k"])
    with job.task("0") as writer:
        writer.write(frame.assign(x=7)[:1])
    for mode in ("append", "replace"):
        with pytest.raises(ValueError, match=f"between overwrite and delete_matching only, not to '{mode}'"):
            job.commit([writer.message], mode=mode)
    job.commit([writer.message], mode="delete_matching")
    assert numparq.read_parquet(tmp_path)["x"].tolist() == [7, 2]
    with pytest.raises(ValueError, match="commit can change the mode"):
        SharedJob.begin(tmp_path, mode="append").commit([], mode="overwrite")
