"""Commits to local datasets: atomicity, concurrent writers, recovery and commit records."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.commit import consistent_listing
from numparq.dataset.commit.record import COMMITTED, PENDING, CommitRecord, record_name
from numparq.dataset.commit.recover import recover
from numparq.dataset.discover import files as discover_files
from numparq.dataset.discover.files import list_files
from numparq.dataset.listing import local
from numparq.dataset.write.dataset_writer import DatasetWriter
from numparq.errors import InvalidFileError
from numparq.io.file_lock import boot_id
from support.io.killed_process import run_killed_at_step

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks are those of POSIX")

JOB = "20260102T030405000006-0a1b2c"


def write(folder: Path, keys: list[int], first: int, **options: object) -> None:
    frame = pd.DataFrame({"key": keys, "n": np.arange(first, first + len(keys))})
    numparq.to_parquet(frame, folder, partition_cols=["key"], threads=1, **options)


def rows(folder: Path) -> dict[str, list[int]]:
    """Return the values of `n` that a reader finds, by partition; empty without files."""
    try:
        listing = list_files(folder)
    except InvalidFileError as error:
        assert "no Parquet files" in str(error)
        return {}
    found: dict[str, list[int]] = {}
    for file in listing.files:
        found.setdefault(file.values[0], []).extend(numparq.read_parquet(file.path)["n"].tolist())
    return found


def list_all_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def is_clean(folder: Path) -> bool:
    return not any(part[0] in "._" for name in list_all_files(folder) for part in name.split("/"))


# --- killed processes -------------------------------------------------------------------------------------------------

STEPS = ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync")


WRITES = {
    "first": ({}, {}, {"1": [10, 12], "2": [11]}),
    "append": ({"append": True}, {"1": [0, 1], "3": [2]}, {"1": [0, 1, 10, 12], "2": [11], "3": [2]}),
    "replace": (
        {"existing_data_behavior": "delete_matching"},
        {"1": [0, 1], "3": [2]},
        {"1": [10, 12], "2": [11], "3": [2]},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "finish"), [(kind, "recover") for kind in WRITES] + [("replace", "write")])
def test_killed_write_is_atomic(tmp_path, kind, finish):
    options, before, after = WRITES[kind]
    step, states = 0, []
    (tmp_path / "before").mkdir()
    if before:
        write(tmp_path / "before", [1, 1, 3], 0)
    while True:
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "before", folder)
        killed = run_killed_at_step(step, lambda folder=folder: write(folder, [1, 2, 1], 10, **options), STEPS)
        found = rows(folder)
        assert found in (before, after)
        states.append(found == after)
        extra = {}
        if finish == "recover":
            recover(folder)
        else:
            write(folder, [9], 90, append=True)
            extra = {"9": [90]}
        assert rows(folder) == found | extra, "recovery keeps what readers saw"
        assert is_clean(folder)
        step += 1
        if not killed:
            break
    assert states == sorted(states)
    assert states[-1]
    assert not states[0]
    assert step > 10


@pytest.mark.slow
def test_killed_recovery_can_be_repeated(tmp_path):
    step, killed = 0, True
    while killed:
        folder = tmp_path / str(step) / "data"
        half_committed(folder)
        expected = {"1": [10], "2": [1], "3": [11]}
        killed = run_killed_at_step(step, lambda folder=folder: recover(folder), STEPS)
        assert rows(folder) == expected
        recover(folder)
        assert rows(folder) == expected
        assert is_clean(folder)
        step += 1
    assert step > 5


# --- failing writes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rename", "fsync", "mkdir", "write"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["full", "ctrl-c"])
def test_failed_write_leaves_no_files(tmp_path, monkeypatch, name, error):
    folder = tmp_path / "data"
    write(folder, [1, 2], 0)
    before = list_all_files(folder)
    real, failures = getattr(os, name), 0
    for step in range(40):
        remaining = step

        def failing(*arguments, **options):
            nonlocal remaining, failures
            remaining -= 1
            if remaining == -1:
                failures += 1
                raise error
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, failing)
        try:
            write(folder, [1, 2, 3, 4], 10, existing_data_behavior="delete_matching")
        except type(error):
            monkeypatch.undo()
            # The last directory syncs, and the rename of the removed directory, happen after the commit is in force.
            assert rows(folder) in ({"1": [0], "2": [1]}, {"1": [10], "2": [11], "3": [12], "4": [13]})
            assert is_clean(folder)
            if rows(folder) != {"1": [0], "2": [1]}:
                assert name in ("fsync", "rename")
                break
            assert list_all_files(folder) == before
        else:
            monkeypatch.undo()
            break
    assert failures


def test_exception_between_frames_leaves_no_files(tmp_path):
    with pytest.raises(RuntimeError), DatasetWriter(tmp_path / "new", partition_cols=["key"]) as writer:
        writer.write(pd.DataFrame({"key": [1], "n": [1]}))
        raise RuntimeError
    assert os.listdir(tmp_path) == []


# --- concurrent writers -----------------------------------------------------------------------------------------------


def test_concurrent_appends_all_succeed(tmp_path):
    write(tmp_path, [1], 0)
    threads = [
        threading.Thread(target=write, args=(tmp_path, [1, 2], 10 * n), kwargs={"append": True}) for n in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = rows(tmp_path)
    assert sorted(found["1"]) == [0, *range(10, 90, 10)]
    assert sorted(found["2"]) == list(range(11, 91, 10))
    assert is_clean(tmp_path)


def test_last_of_two_partition_replacements_wins(tmp_path):
    write(tmp_path, [1], 0)
    writers = [
        DatasetWriter(tmp_path, partition_cols=["key"], existing_data_behavior="delete_matching", max_rows_per_file=1)
        for _ in range(2)
    ]
    for number, writer in enumerate(writers):
        writer.write(pd.DataFrame({"key": [1, 1], "n": [10 * number, 10 * number + 1]}))
    writers[1].close()
    assert rows(tmp_path) == {"1": [10, 11]}
    writers[0].close()
    assert rows(tmp_path) == {"1": [0, 1]}
    assert is_clean(tmp_path)


def test_second_of_two_first_writes_fails(tmp_path):
    writers = [DatasetWriter(tmp_path, partition_cols=["key"]) for _ in range(2)]
    for writer in writers:
        writer.write(pd.DataFrame({"key": [1], "n": [1]}))
    writers[0].close()
    with pytest.raises(FileExistsError):
        writers[1].close()
    assert rows(tmp_path) == {"1": [1]}
    assert is_clean(tmp_path)


def test_staged_files_of_running_writer_survive_recovery(tmp_path):
    with DatasetWriter(tmp_path, partition_cols=["key"], existing_data_behavior="overwrite_or_ignore") as writer:
        writer.write(pd.DataFrame({"key": [1], "n": [1]}))
        write(tmp_path, [2], 20)
        assert recover(tmp_path).removed == []
        assert rows(tmp_path) == {"2": [20]}
    assert rows(tmp_path) == {"1": [1], "2": [20]}


@pytest.mark.parametrize("boot", ["another", None])
def test_staged_files_of_another_boot_stay_unless_abandoned(tmp_path, boot):
    write(tmp_path, [1], 0)
    staged = tmp_path / f".numparq-{boot or boot_id()}-{JOB}"
    staged.mkdir()
    (staged / "0").write_bytes(b"x")
    assert recover(tmp_path).removed == ([] if boot else [JOB])
    assert staged.exists() == bool(boot)
    recover(tmp_path, abandoned=True)
    assert is_clean(tmp_path)


def test_commits_are_atomic_for_readers(tmp_path):
    write(tmp_path, list(range(20)), 0)
    stop = threading.Event()

    def replace() -> None:
        first = 100
        while not stop.is_set():
            write(tmp_path, list(range(20)), first, existing_data_behavior="delete_matching")
            first += 100

    thread = threading.Thread(target=replace)
    thread.start()
    write_names: set[frozenset[str]] = set()
    try:
        while len(write_names) < 4:
            files = list_files(tmp_path).files
            assert len(files) == 20
            write_names.add(frozenset(file.name.rpartition("/")[2] for file in files))
            assert all(len(names) == 1 for names in write_names), "all files belong to one write"
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("locks", [True, False])
def test_listing_is_repeated_after_concurrent_commit(tmp_path, monkeypatch, locks):
    write(tmp_path, [1, 2], 0)
    real, steps = local.list_local, []

    def walk(base):
        found = real(base)
        if len(steps) < 3:
            steps.append(len(found.files))
            if locks:
                put_record(tmp_path, folder=f".numparq-x-{JOB}")
                monkeypatch.setattr(consistent_listing, "_exclude_commits", quiet)  # a lock now exists
        return found

    @contextmanager
    def busy(roots, wait):
        yield False if locks else None

    quiet = consistent_listing._exclude_commits
    monkeypatch.setattr(consistent_listing, "_exclude_commits", busy)
    monkeypatch.setattr(discover_files, "list_local", walk)
    assert rows(tmp_path) == {"1": [0], "2": [1]}
    assert steps == ([2, 2] if locks else [2])


# --- commit records ---------------------------------------------------------------------------------------------------


def put_record(folder_path: Path, **parts: object) -> None:
    (folder_path / record_name(JOB)).write_bytes(CommitRecord(JOB, parts.pop("state", COMMITTED), **parts).encode())


def half_committed(folder: Path) -> None:
    """Write a dataset and a commit to it that is recorded but not applied."""
    write(folder, [1, 2], 0)
    write(folder.parent / "other", [1, 3], 10)
    hidden = folder / f".numparq-{boot_id()}-{JOB}"
    hidden.mkdir()
    new = {}
    for number, file in enumerate(list_files(folder.parent / "other").files):
        os.rename(file.path, hidden / str(number))
        new[f"key={file.values[0]}/{os.path.basename(file.path)}"] = str(number)
    old = list_files(folder).files[0].path
    put_record(folder, folder=hidden.name, files=new, gone={os.path.relpath(old, folder): local.file_version(old)})


def test_partition_directory_applies_commits_of_dataset(tmp_path):
    half_committed(tmp_path / "data")
    assert rows(tmp_path / "data") == {"1": [10], "2": [1], "3": [11]}
    assert sorted(numparq.read_parquet(tmp_path / "data")["n"]) == [1, 10, 11]
    (file,) = list_files(tmp_path / "data" / "key=1").files
    assert numparq.read_parquet(file.path)["n"].tolist() == [10]


def test_listed_names_start_with_caller_path(tmp_path, monkeypatch):
    half_committed(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for path in ("data", "data/", "./data", tmp_path / "data"):
        names = [file.name for file in list_files(path).files]
        assert len(names) == 3
        assert all(name.startswith(str(path)) for name in names)
    monkeypatch.chdir(tmp_path / "data")
    assert len(list_files(".").files) == 3


def test_rewritten_file_is_not_deleted_by_commit(tmp_path):
    half_committed(tmp_path / "data")
    old = next(file.path for file in list_files(tmp_path / "data").files if file.values[0] == "2")
    record = json.loads((tmp_path / "data" / record_name(JOB)).read_bytes())
    put_record(
        tmp_path / "data",
        folder=record["folder"],
        files=record["files"],
        gone={os.path.relpath(old, tmp_path / "data"): "1-1"},
    )
    expected = {"1": [0, 10], "2": [1], "3": [11]}
    assert {key: sorted(found) for key, found in rows(tmp_path / "data").items()} == expected
    assert recover(tmp_path / "data").completed == [JOB]
    assert {key: sorted(found) for key, found in rows(tmp_path / "data").items()} == expected


def test_files_of_pending_write_are_not_listed(tmp_path):
    write(tmp_path, [1], 0)
    (tmp_path / "key=2").mkdir()
    (tmp_path / "key=2" / f"part-{JOB}-0000000.parquet").write_bytes(b"half")
    put_record(tmp_path, state=PENDING)
    assert rows(tmp_path) == {"1": [0]}


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"../x": "0"}},
        {"files": {"/x": "0"}},
        {"files": {"a//x": "0"}},
        {"files": {"x": "../0"}},
        {"files": {"x": 0}},
        {"files": []},
        {"gone": {"a/../../x": None}},
        {"gone": {"x": 1}},
        {"over": {"./x": "0"}},
        {"folder": ".."},
        {"folder": "/tmp"},
        {"folder": ""},
        {"folder": None},
        {"job": "20260102T030405000006-ffffff"},
        {"state": "done"},
        {"version": 2},
        {"format": "x"},
    ],
)
def test_invalid_commit_records_raise(tmp_path, change):
    write(tmp_path, [1], 0)
    sound = CommitRecord(JOB, COMMITTED, f".numparq-x-{JOB}", {"x": "0"})
    (tmp_path / record_name(JOB)).write_text(json.dumps(json.loads(sound.encode()) | change))
    before = list_all_files(tmp_path)
    for operation in (
        lambda: list_files(tmp_path),
        lambda: recover(tmp_path),
        lambda: write(tmp_path, [1], 1, append=True),
    ):
        with pytest.raises(InvalidFileError, match="commit record"):
            operation()
    assert list_all_files(tmp_path) == before


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_damaged_commit_records_raise(data):
    with pytest.raises(InvalidFileError, match="damaged"):
        CommitRecord.decode(data, record_name(JOB))


def test_commit_record_cannot_delete_through_symlink(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    folder = tmp_path / "data"
    write(folder, [1], 0)
    (folder / "key=2").symlink_to(outside)
    put_record(folder, folder=f".numparq-x-{JOB}", gone={"key=2/precious": None})
    with pytest.raises(InvalidFileError, match="outside the dataset"):
        recover(folder)
    assert (outside / "precious").exists()
