"""Writers refresh a data-skipping store after their commit."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.write.dataset_writer import DatasetWriter
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.store_refresh import refresh_store
from numparq.errors import InvalidFileError
from numparq.skipping import MinMax, Store


def frame(low: int) -> pd.DataFrame:
    return pd.DataFrame({"n": np.arange(low, low + 10), "year": 2024})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr("numparq.skipping.index_files._QUIET_SECONDS", -1.0)  # no file is written twice within a second
    numparq.to_parquet(frame(0), tmp_path / "data", partition_cols=["year"])
    return Store.build(tmp_path / "data", base=tmp_path / "index", indexes=[MinMax("n")])


def check_knows_all(store: Store, folder: Path, num_files: int) -> None:
    found = Store(store.folder).select("n >= 1000")
    assert (len(found.kept), len(found.skipped), len(found.unknown)) == (0, num_files, 0)
    assert len(numparq.read_parquet(folder, filters="n = 105", skipping=store)) == 1


def test_to_parquet_refreshes_a_store(tmp_path: Path, store: Store) -> None:
    for at, skipping in enumerate((store, store.folder)):
        numparq.to_parquet(
            frame(100 * at + 100), tmp_path / "data", partition_cols=["year"], append=True, skipping=skipping
        )
        check_knows_all(store, tmp_path / "data", 2 + at)


def test_dataset_writers_refresh_a_store(tmp_path: Path, store: Store) -> None:
    with DatasetWriter(
        tmp_path / "data", partition_cols=["year"], existing_data_behavior="overwrite_or_ignore", skipping=store
    ) as writer:
        writer.write(frame(100))
        assert len(store.select("n >= 1000").skipped) == 1
    check_knows_all(store, tmp_path / "data", 2)


@pytest.mark.parametrize("travels", [False, True])
def test_shared_jobs_refresh_a_store(tmp_path: Path, store: Store, travels: bool) -> None:
    store.select("n >= 1000")  # has read its parts
    job = SharedJob.begin(tmp_path / "data", partition_cols=["year"], skipping=store)
    if travels:
        job = pickle.loads(pickle.dumps(job))
    with job.task("0") as task:
        task.write(frame(100))
    assert job.commit([task.message])
    check_knows_all(store, tmp_path / "data", 2)


def test_aborted_writes_leave_the_store(tmp_path: Path, store: Store) -> None:
    writer = DatasetWriter(
        tmp_path / "data", partition_cols=["year"], existing_data_behavior="overwrite_or_ignore", skipping=store
    )
    writer.write(frame(100))
    writer.abort()
    check = Store(store.folder).select("n >= 1000")
    assert len(check.skipped) == 1


class Broken:
    def refresh(self, dataset: object) -> None:
        raise InvalidFileError("the store is damaged")


def test_failures_after_the_commit_are_warnings(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="the write is committed, but its data-skipping store is not refreshed"):
        numparq.to_parquet(frame(0), tmp_path / "data", partition_cols=["year"], skipping=Broken())
    assert len(numparq.read_parquet(tmp_path / "data")) == 10
    refresh_store(None, tmp_path)


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"skipping must be a numparq\.skipping\.Store, not int"):
        DatasetWriter(tmp_path / "data", skipping=3)
    with pytest.raises(TypeError, match=r"skipping must be a numparq\.skipping\.Store, not int"):
        SharedJob.begin(tmp_path / "data", skipping=3)
    with pytest.raises(ValueError, match="skipping needs a dataset"):
        numparq.to_parquet(frame(0), tmp_path / "one.parquet", skipping=tmp_path)
