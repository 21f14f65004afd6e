"""Lazy file lists of a dataset: `DataFile`s are built on access, and a read of one partition builds few."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.discover.files import list_files
from numparq.dataset.listing import files as listing_files
from numparq.dataset.listing.files import DataFile, DataFileList, FileEntry, PartitionIndex

PATHS = ["d/k=1/a", "d/k=1/b", "d/k=2/a", "d/k=1/c"]
EXPECTED = [
    DataFile("d/k=1/a", "at d/k=1/a", values=("1",)),
    DataFile("d/k=1/b", "at d/k=1/b", 7, "v", ("1",), 1.5),
    DataFile("d/k=2/a", "at d/k=2/a", values=("2",)),
    DataFile("d/hidden/c", "at d/k=1/c", values=("1",)),
]


@pytest.fixture
def data_files() -> DataFileList:
    about = {PATHS[1]: FileEntry(PATHS[1], 7, "v", 1.5), PATHS[3]: FileEntry(PATHS[3], staged_path="d/hidden/c")}
    return DataFileList(PATHS, about, PartitionIndex.from_values([("1",), ("1",), ("2",), ("1",)]), "at {}".format)


def test_file_list_is_a_sequence(data_files):
    assert list(data_files) == EXPECTED == [data_files[at] for at in range(4)]
    assert data_files == EXPECTED
    assert data_files == tuple(EXPECTED)
    assert data_files != EXPECTED[:3]
    assert len(data_files) == 4
    assert data_files[-1] == EXPECTED[-1]
    assert EXPECTED[2] in data_files
    assert data_files[1:3] == EXPECTED[1:3]
    assert data_files[::-2] == EXPECTED[::-2]
    assert isinstance(data_files[:2], DataFileList)
    assert data_files[3:3] == []
    assert not data_files[3:3]
    with pytest.raises(IndexError):
        data_files[4]


def test_file_list_take(data_files):
    selected = data_files.take(np.array([3, 2, 2]))
    assert selected == [EXPECTED[3], EXPECTED[2], EXPECTED[2]]
    assert selected.take(np.array([1])) == [EXPECTED[2]]
    assert data_files.take(np.array([], np.intp)) == []


def test_partition_index_of_files(data_files):
    for files in (data_files, list(data_files)):
        partitions, which = PartitionIndex.from_files(files)
        assert list(partitions) == [("1",), ("2",)]
        assert which.tolist() == [0, 0, 1, 0]
    assert PartitionIndex.from_files(data_files[2:]).first_file(0) == 1
    assert PartitionIndex.from_values([]).codes.dtype == np.intp


def test_nested_directories_are_listed_in_path_order(tmp_path):
    names = ["b", "a/z", "a/b/c", "a-b", "a/a", "a.b/x"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = [file.path.removeprefix(f"{tmp_path}/") for file in list_files(tmp_path).files]
    assert found == sorted(names)


def test_pruned_files_are_not_built(tmp_path, monkeypatch):
    frame = pd.DataFrame({"x": range(60), "k": np.arange(60) % 20, "j": np.arange(60) % 3})
    numparq.to_parquet(frame, tmp_path, partition_cols=["k", "j"])
    built: list[str] = []
    make = listing_files.DataFileList._build_file
    monkeypatch.setattr(
        listing_files.DataFileList,
        "_build_file",
        lambda self, path, partition: built.append(path) or make(self, path, partition),
    )
    found = numparq.read_parquet(tmp_path, filters=[("k", "=", 7), ("j", "=", 1)])
    assert found["x"].tolist() == [7]
    assert sorted(found["k"].cat.categories) == list(range(20))
    assert built
    assert {path.removeprefix(f"{tmp_path}/").rpartition("/")[0] for path in built} == {"k=7/j=1"}
