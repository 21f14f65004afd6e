"""Files of a dataset that are made as they are asked for, and how few of them a read of one partition asks for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.discover.files import list_files
from numparq.dataset.listing import files as listing_files
from numparq.dataset.listing.files import DataFile, DataFileList, FileEntry, PartitionIndex

PATHS = ["d/k=1/a", "d/k=1/b", "d/k=2/a", "d/k=1/c"]
MADE = [
    DataFile("d/k=1/a", "at d/k=1/a", values=("1",)),
    DataFile("d/k=1/b", "at d/k=1/b", 7, "v", ("1",), 1.5),
    DataFile("d/k=2/a", "at d/k=2/a", values=("2",)),
    DataFile("d/hidden/c", "at d/k=1/c", values=("1",)),
]


@pytest.fixture
def some() -> DataFileList:
    about = {PATHS[1]: FileEntry(PATHS[1], 7, "v", 1.5), PATHS[3]: FileEntry(PATHS[3], staged_path="d/hidden/c")}
    return DataFileList(PATHS, about, PartitionIndex.from_values([("1",), ("1",), ("2",), ("1",)]), "at {}".format)


def test_as_a_sequence(some):
    assert list(some) == MADE == [some[at] for at in range(4)]
    assert some == MADE
    assert some == tuple(MADE)
    assert some != MADE[:3]
    assert len(some) == 4
    assert some[-1] == MADE[-1]
    assert MADE[2] in some
    assert some[1:3] == MADE[1:3]
    assert some[::-2] == MADE[::-2]
    assert isinstance(some[:2], DataFileList)
    assert some[3:3] == []
    assert not some[3:3]
    with pytest.raises(IndexError):
        some[4]


def test_some_of_them(some):
    taken = some.take(np.array([3, 2, 2]))
    assert taken == [MADE[3], MADE[2], MADE[2]]
    assert taken.take(np.array([1])) == [MADE[2]]
    assert some.take(np.array([], np.intp)) == []


def test_partitions(some):
    for files in (some, list(some)):
        partitions, which = PartitionIndex.from_files(files)
        assert list(partitions) == [("1",), ("2",)]
        assert which.tolist() == [0, 0, 1, 0]
    assert PartitionIndex.from_files(some[2:]).first_file(0) == 1
    assert PartitionIndex.from_values([]).codes.dtype == np.intp


def test_files_in_directories_that_are_within_one_another(tmp_path):
    names = ["b", "a/z", "a/b/c", "a-b", "a/a", "a.b/x"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = [file.path.removeprefix(f"{tmp_path}/") for file in list_files(tmp_path).files]
    assert found == sorted(names)


def test_what_is_left_out_is_not_made(tmp_path, monkeypatch):
    frame = pd.DataFrame({"x": range(60), "k": np.arange(60) % 20, "j": np.arange(60) % 3})
    numparq.to_parquet(frame, tmp_path, partition_cols=["k", "j"])
    asked: list[str] = []
    make = listing_files.data_file_from_entry
    monkeypatch.setattr(
        listing_files, "data_file_from_entry", lambda entry, *rest: asked.append(entry.path) or make(entry, *rest)
    )
    found = numparq.read_parquet(tmp_path, filters=[("k", "=", 7), ("j", "=", 1)])
    assert found["x"].tolist() == [7]
    assert sorted(found["k"].cat.categories) == list(range(20))
    assert asked
    assert {path.removeprefix(f"{tmp_path}/").rpartition("/")[0] for path in asked} == {"k=7/j=1"}
