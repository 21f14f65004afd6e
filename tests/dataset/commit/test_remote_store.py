"""Datasets in object stores, and on other file systems that are not local: files count when a record lets them."""

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
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    with remote_folder(request.param, tmp_path) as found:
        yield found


def test_writing_appending_replacing(place):
    write(place, [1, 2, 1], 0)
    assert read_rows(place) == {"1": [0, 2], "2": [1]}
    assert len(list_all_files(place)) == 2
    with pytest.raises(FileExistsError):
        write(place, [1], 3)
    write(place, [1, 3], 3, append=True)
    assert read_rows(place) == {"1": [0, 2, 3], "2": [1], "3": [4]}
    write(place, [1, 4], 5, existing_data_behavior="delete_matching", write_metadata_file=True)
    assert read_rows(place) == {"1": [5], "2": [1], "3": [4], "4": [6]}
    assert len(list_all_files(place)) == 6
    write(place, [5], 7, append=True)
    assert len(list_all_files(place)) == 5, "_metadata would not be true any more"


def test_nothing_counts_before_the_end(place):
    write(place, [1, 2], 0)
    with DatasetWriter(
        place[0],
        partition_cols=["key"],
        filesystem=place[1],
        existing_data_behavior="overwrite_or_ignore",
        max_rows_per_file=1,
    ) as writer:
        writer.write(pd.DataFrame({"key": [1, 1, 3], "n": [10, 11, 12]}))
        assert read_rows(place) == {"1": [0], "2": [1]}
    assert read_rows(place) == {"1": [0, 10, 11], "2": [1], "3": [12]}


@pytest.mark.parametrize("held", [0, 1, 100])
def test_uploads_wait_for_the_end_as_far_as_there_is_room(monkeypatch, held):
    monkeypatch.setattr("numparq.dataset.commit.remote_stage._MOST_HELD_FILES", held)
    place = "/bucket/data", object_store()
    with DatasetWriter(place[0], partition_cols=["key"], filesystem=place[1], max_rows_per_file=1) as writer:
        writer.write(pd.DataFrame({"key": [1, 1, 1, 1], "n": range(4)}))
        assert len([name for name in list_all_files(place) if "part-" in name]) == max(4 - held, 0)
        assert read_rows(place) == {}
    assert read_rows(place) == {"1": [0, 1, 2, 3]}


def test_an_exception_leaves_nothing(place):
    write(place, [1, 2], 0)
    before = list_all_files(place)
    with (
        pytest.raises(RuntimeError),
        DatasetWriter(
            place[0], partition_cols=["key"], filesystem=place[1], existing_data_behavior="delete_matching"
        ) as writer,
    ):
        writer.write(pd.DataFrame({"key": [1], "n": [1]}))
        raise RuntimeError
    assert list_all_files(place) == before


@pytest.mark.parametrize("what", ["put", "complete", "delete"])
def test_requests_that_fail(what):
    for after in range(20):
        place = "/bucket/data", object_store()
        write(place, [1, 2], 0)
        before, place[1].failing = read_rows(place), (what, after)
        try:
            write(place, [1, 1, 3], 10, existing_data_behavior="delete_matching")
        except OSError as error:
            assert str(error).endswith(f"{what} failed")
            place[1].failing = None
            found = read_rows(place)
            assert found in (before, {"1": [10, 11], "2": [1], "3": [12]})
            recover(place[0], filesystem=place[1], abandoned=True)
            assert read_rows(place) == found
            assert not any("_numparq" in name for name in list_all_files(place))
            assert len(list_all_files(place)) == len(found)
        else:
            break
    assert after > 0


def test_the_record_comes_first_and_uploads_are_completed_last():
    place = "/bucket/data", object_store()
    write(place, [1, 2], 0)
    place[1].asked.clear()
    write(place, [1, 3], 10, existing_data_behavior="delete_matching")
    asked = [(what, path.rpartition("/")[2].partition("-")[0]) for what, path in place[1].asked]
    record, part = "_numparq_commit", "part"
    assert asked[0] == ("put", record)
    assert asked.count(("complete", part)) == 2
    assert asked[-3:] == [("put", record), ("delete", part), ("delete", record)]


def test_of_two_that_replace_files_at_least_one_is_refused(place):
    write(place, [1], 0)
    first, second = (
        DatasetWriter(place[0], partition_cols=["key"], filesystem=place[1], existing_data_behavior="delete_matching")
        for _ in range(2)
    )
    for number, writer in enumerate((first, second)):
        writer.write(pd.DataFrame({"key": [1, 1], "n": [10 * number, 10 * number + 1]}))
    with pytest.raises(BlockingIOError, match="is running"):
        first.close()
    write(place, [2], 5, append=True)  # which replaces nothing
    second.close()
    assert read_rows(place) == {"1": [10, 11], "2": [5]}
    assert len(list_all_files(place)) == 2


def test_writes_that_broke_off(place):
    write(place, [1, 2], 0)
    put_file(place, f"key=1/part-{JOB}-0000000.parquet", b"half")
    put_file(place, f"key=1/.part-{JOB}-0000001.parquet.0123456789ab.numparq", b"half")
    put_file(place, record_name(JOB), CommitRecord(JOB, PENDING).encode())
    assert read_rows(place) == {"1": [0], "2": [1]}
    assert recover(place[0], filesystem=place[1]).removed == []
    assert recover(place[0], filesystem=place[1], abandoned=True).removed == [JOB]
    assert len(list_all_files(place)) == 2
    gone = next(name for name in list_all_files(place) if "key=1/" in name)
    put_file(
        place,
        record_name(JOB),
        CommitRecord(JOB, COMMITTED, gone={gone.partition("/data/")[2] or gone[5:]: None}).encode(),
    )
    assert read_rows(place) == {"2": [1]}
    write(place, [2], 5, append=True)
    assert read_rows(place) == {"2": [1, 5]}
    assert len(list_all_files(place)) == 2


def test_urls():
    path = "memory://numparq-dataset-url/data"
    try:
        numparq.to_parquet(pd.DataFrame({"key": [1, 2], "n": [1, 2]}), path, partition_cols=["key"])
        assert [file.values for file in list_files(path).files] == [("1",), ("2",)]
    finally:
        fsspec.filesystem("memory").rm("/numparq-dataset-url", recursive=True)
