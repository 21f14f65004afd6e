"""Datasets in object stores and other remote file systems: a commit record makes files visible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import numparq
from numparq.dataset.commit.record import COMMITTED, PENDING, CommitRecord, record_name
from numparq.dataset.commit.recover import recover
from numparq.dataset.discover.files import list_files
from numparq.dataset.write.dataset_writer import DatasetWriter
from support.io.remote_datasets import KINDS, list_all_files, object_store, put_file, read_rows, remote_folder, write

fsspec = pytest.importorskip("fsspec")

JOB = "20260102T030405000006-0a1b2c"


@pytest.fixture(params=KINDS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    with remote_folder(request.param, tmp_path) as found:
        yield found


def test_first_write_append_and_replacement(location):
    write(location, [1, 2, 1], 0)
    assert read_rows(location) == {"1": [0, 2], "2": [1]}
    assert len(list_all_files(location)) == 2
    with pytest.raises(FileExistsError):
        write(location, [1], 3)
    write(location, [1, 3], 3, append=True)
    assert read_rows(location) == {"1": [0, 2, 3], "2": [1], "3": [4]}
    write(location, [1, 4], 5, existing_data_behavior="delete_matching", write_metadata_file=True)
    assert read_rows(location) == {"1": [5], "2": [1], "3": [4], "4": [6]}
    assert len(list_all_files(location)) == 6
    write(location, [5], 7, append=True)
    assert len(list_all_files(location)) == 5, "an append makes _metadata stale"


def test_rows_are_invisible_before_close(location):
    write(location, [1, 2], 0)
    with DatasetWriter(
        location[0],
        partition_cols=["key"],
        filesystem=location[1],
        existing_data_behavior="overwrite_or_ignore",
        max_rows_per_file=1,
    ) as writer:
        writer.write(pd.DataFrame({"key": [1, 1, 3], "n": [10, 11, 12]}))
        assert read_rows(location) == {"1": [0], "2": [1]}
    assert read_rows(location) == {"1": [0, 10, 11], "2": [1], "3": [12]}


@pytest.mark.parametrize("max_held", [0, 1, 100])
def test_uploads_are_held_until_close_up_to_limit(monkeypatch, max_held):
    monkeypatch.setattr("numparq.dataset.commit.remote_stage._MOST_HELD_FILES", max_held)
    location = "/bucket/data", object_store()
    with DatasetWriter(location[0], partition_cols=["key"], filesystem=location[1], max_rows_per_file=1) as writer:
        writer.write(pd.DataFrame({"key": [1, 1, 1, 1], "n": range(4)}))
        assert len([name for name in list_all_files(location) if "part-" in name]) == max(4 - max_held, 0)
        assert read_rows(location) == {}
    assert read_rows(location) == {"1": [0, 1, 2, 3]}


def test_exception_leaves_no_objects(location):
    write(location, [1, 2], 0)
    before = list_all_files(location)
    with (
        pytest.raises(RuntimeError),
        DatasetWriter(
            location[0], partition_cols=["key"], filesystem=location[1], existing_data_behavior="delete_matching"
        ) as writer,
    ):
        writer.write(pd.DataFrame({"key": [1], "n": [1]}))
        raise RuntimeError
    assert list_all_files(location) == before


@pytest.mark.parametrize("what", ["put", "complete", "delete"])
def test_failed_requests_keep_writes_atomic(what):
    for after in range(20):
        location = "/bucket/data", object_store()
        write(location, [1, 2], 0)
        before, location[1].failing = read_rows(location), (what, after)
        try:
            write(location, [1, 1, 3], 10, existing_data_behavior="delete_matching")
        except OSError as error:
            assert str(error).endswith(f"{what} failed")
            location[1].failing = None
            found = read_rows(location)
            assert found in (before, {"1": [10, 11], "2": [1], "3": [12]})
            recover(location[0], filesystem=location[1], abandoned=True)
            assert read_rows(location) == found
            assert not any("_numparq" in name for name in list_all_files(location))
            assert len(list_all_files(location)) == len(found)
        else:
            break
    assert after > 0


def test_order_of_commit_requests():
    location = "/bucket/data", object_store()
    write(location, [1, 2], 0)
    location[1].asked.clear()
    write(location, [1, 3], 10, existing_data_behavior="delete_matching")
    requests = [(what, path.rpartition("/")[2].partition("-")[0]) for what, path in location[1].asked]
    record, part = "_numparq_commit", "part"
    assert requests[0] == ("put", record)
    assert requests.count(("complete", part)) == 2
    assert requests[-3:] == [("put", record), ("delete", part), ("delete", record)]


def test_concurrent_replacements_raise(location):
    write(location, [1], 0)
    first, second = (
        DatasetWriter(
            location[0], partition_cols=["key"], filesystem=location[1], existing_data_behavior="delete_matching"
        )
        for _ in range(2)
    )
    for number, writer in enumerate((first, second)):
        writer.write(pd.DataFrame({"key": [1, 1], "n": [10 * number, 10 * number + 1]}))
    with pytest.raises(BlockingIOError, match="is running"):
        first.close()
    write(location, [2], 5, append=True)  # replaces nothing
    second.close()
    assert read_rows(location) == {"1": [10, 11], "2": [5]}
    assert len(list_all_files(location)) == 2


def test_recovery_of_aborted_writes(location):
    write(location, [1, 2], 0)
    put_file(location, f"key=1/part-{JOB}-0000000.parquet", b"half")
    put_file(location, f"key=1/.part-{JOB}-0000001.parquet.0123456789ab.numparq", b"half")
    put_file(location, record_name(JOB), CommitRecord(JOB, PENDING).encode())
    assert read_rows(location) == {"1": [0], "2": [1]}
    assert recover(location[0], filesystem=location[1]).removed == []
    assert recover(location[0], filesystem=location[1], abandoned=True).removed == [JOB]
    assert len(list_all_files(location)) == 2
    gone = next(name for name in list_all_files(location) if "key=1/" in name)
    put_file(
        location,
        record_name(JOB),
        CommitRecord(JOB, COMMITTED, gone={gone.partition("/data/")[2] or gone[5:]: None}).encode(),
    )
    assert read_rows(location) == {"2": [1]}
    write(location, [2], 5, append=True)
    assert read_rows(location) == {"2": [1, 5]}
    assert len(list_all_files(location)) == 2


def test_dataset_at_memory_url():
    path = "memory://numparq-dataset-url/data"
    try:
        numparq.to_parquet(pd.DataFrame({"key": [1, 2], "n": [1, 2]}), path, partition_cols=["key"])
        assert [file.values for file in list_files(path).files] == [("1",), ("2",)]
    finally:
        fsspec.filesystem("memory").rm("/numparq-dataset-url", recursive=True)
