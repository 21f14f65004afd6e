"""Replaced files that are kept for a time: who reads them, when they go, and interrupted commits."""

from __future__ import annotations

import json
import os
import time

import pandas as pd
import pyarrow.parquet
import pytest

import numparq
from numparq.dataset import SharedJob, recover, split_table
from numparq.dataset.commit import local_store
from numparq.dataset.commit.record import CommitRecord
from numparq.errors import UnsupportedError

FRAME = pd.DataFrame({"k": [1, 2, 2], "x": [1, 2, 3]})


def overwrite(folder, value, **options) -> None:
    numparq.to_parquet(
        FRAME.assign(x=value), folder, partition_cols=["k"], existing_data_behavior="delete_matching", **options
    )


def kept(folder) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith(".numparq-replaced-"))


@pytest.fixture
def folder(tmp_path):
    overwrite(tmp_path / "data", 0)
    return tmp_path / "data"


def test_splits_outlive_overwrites_in_a_row(folder):
    table = split_table(folder)
    with numparq.Dataset(folder) as dataset:
        for value in range(1, 5):
            overwrite(folder, value, keep_replaced=3600)
        assert [table.frame(split)["x"].tolist() for split in table.splits] == [[0, 0, 0]]
        assert dataset.read()["x"].tolist() == [0, 0, 0]
    assert len(kept(folder)) == 4
    for read in (numparq.read_parquet, pyarrow.parquet.read_table):
        assert read(folder)["x"].tolist() == [4, 4, 4] if read is numparq.read_parquet else read(folder).num_rows == 3


def test_without_the_option_replaced_files_go_at_once(folder):
    table = split_table(folder)
    overwrite(folder, 1)
    assert kept(folder) == []
    with pytest.raises(FileNotFoundError, match="removed since the table was divided"):
        table.frame(table.splits[0])


def test_one_file_and_shared_jobs(tmp_path):
    numparq.to_parquet(FRAME, tmp_path, partition_cols=[])
    table = split_table(tmp_path)
    dataset = numparq.Dataset(tmp_path)
    job = SharedJob.begin(tmp_path, mode="overwrite", keep_replaced=60)
    with job.task("0") as task:
        task.write(FRAME[:1])
    job.commit([task.message])
    assert len(table.frame(table.splits[0])) == 3
    assert dataset._single_source().size > 0
    assert len(numparq.read_parquet(tmp_path)) == 1


def test_next_write_and_recover_remove_what_has_expired(folder, monkeypatch):
    overwrite(folder, 1, keep_replaced=100)
    overwrite(folder, 2, keep_replaced=1000)
    first, second = kept(folder)
    assert recover(folder).removed == []
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 200)
    overwrite(folder, 3)
    assert kept(folder) == [second]
    monkeypatch.setattr(time, "time", lambda: now + 2000)
    recover(folder)
    assert kept(folder) == []
    assert first < second


def test_interrupted_commit_keeps_files_when_it_is_completed(folder, monkeypatch):
    table = split_table(folder)
    with monkeypatch.context() as patch:

        def fail(*arguments):
            raise KeyboardInterrupt

        patch.setattr(local_store, "keep_file", fail)
        with pytest.raises(KeyboardInterrupt):
            overwrite(folder, 1, keep_replaced=3600)
    assert numparq.read_parquet(folder)["x"].tolist() == [1, 1, 1]
    assert len(recover(folder).completed) == 1
    assert table.frame(table.splits[0])["x"].tolist() == [0, 0, 0]
    assert numparq.read_parquet(folder)["x"].tolist() == [1, 1, 1]


def test_records_of_before_and_forged_ones():
    name = "_numparq_commit-20240101T000000000000-abcdef.json"
    record = CommitRecord("20240101T000000000000-abcdef", "committed", gone={"a": None})
    parts = json.loads(record.encode())
    del parts["kept"]
    assert CommitRecord.decode(json.dumps(parts).encode(), name) == record
    for folder in ("../out", "/tmp", ".numparq-replaced-1-../..", 3):
        with pytest.raises(numparq.InvalidFileError, match="not in the dataset"):
            CommitRecord.decode(json.dumps({**parts, "kept": folder}).encode(), name)


def test_wrong_values_and_remote_folders(tmp_path):
    for value in (-1, "1h", True, float("nan")):
        with pytest.raises(ValueError, match="keep_replaced must be a number of seconds"):
            overwrite(tmp_path / "new", 1, keep_replaced=value)
    with pytest.raises(UnsupportedError, match="keep_replaced=5 needs a local directory"):
        numparq.to_parquet(FRAME, "memory://kept", partition_cols=[], keep_replaced=5)
    with pytest.raises(UnsupportedError, match="keep_replaced=5 needs a local directory"):
        SharedJob.begin("memory://kept", keep_replaced=5)
