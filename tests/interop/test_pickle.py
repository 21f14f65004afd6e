"""Public objects are pickled and copied: small, without caches, and opened again at first use."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow.fs
import pytest

import numparq
from numparq import col
from numparq.expr.expression import Expression
from numparq.format.bloom_filter import BloomFilter
from numparq.format.schema_node import SchemaNode

FRAME = pd.DataFrame({"a": range(100), "b": [f"text {number % 7}" for number in range(100)], "k": [1, 2] * 50})
ROUNDS: dict[str, Callable[[Any], Any]] = {
    f"protocol {number}": lambda thing, number=number: pickle.loads(pickle.dumps(thing, number))
    for number in range(pickle.HIGHEST_PROTOCOL + 1)
} | {"copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pickle")
    numparq.to_parquet(FRAME, folder / "x.parquet", row_group_size=20, max_rows_per_page=10)
    numparq.to_parquet(FRAME, folder / "dataset", partition_cols=["k"])
    return folder


def _plan(folder: Path) -> Any:
    return numparq.ParquetFile(folder / "x.parquet").plan(filters=col("a") == 33)


# Objects with equality, or whose repr says everything.
VALUES: dict[str, Callable[[Path], Any]] = {
    "comparison": lambda folder: col("a") > 1,
    "column": lambda folder: col(("a", "b")),
    "expression": lambda folder: ((col("a") > 1) & ~col("b").isin(["x", "y"])) | col("b").like("x%"),
    "runtime filter": lambda folder: numparq.RuntimeFilter("a", [1, 2]),
    "runtime filter to arrive": lambda folder: numparq.RuntimeFilter("a"),
    "Bloom filter": lambda folder: numparq.RuntimeFilter(
        "a", bloom_filter=BloomFilter.build(np.arange(9, dtype=np.uint64))
    ),
    "coalescing": lambda folder: numparq.Coalescing(1, 2),
    "schema node": lambda folder: SchemaNode("g", children=(SchemaNode("a", physical=1),)),
    "schema": lambda folder: numparq.ParquetFile(folder / "x.parquet").schema,
    "metadata": lambda folder: numparq.ParquetFile(folder / "x.parquet").metadata,
    "row groups": lambda folder: numparq.ParquetFile(folder / "x.parquet").metadata.row_groups,
    "plan": _plan,
    "cuts": lambda folder: _plan(folder).cuts,
    "dataset plan": lambda folder: numparq.Dataset(folder / "dataset").plan(filters=col("a") == 33),
    "deviation": lambda folder: numparq.Deviation("error", "check", "message", page=3),
    "salvaged": lambda folder: numparq.Salvaged(1, 2, ["kept"], ["lost"]),
    "dataset": lambda folder: numparq.Dataset(folder / "dataset"),
    "file": lambda folder: numparq.ParquetFile(folder / "x.parquet", coalescing=numparq.Coalescing(1, 2)),
    "bytes": lambda folder: numparq.ParquetFile((folder / "x.parquet").read_bytes()),
}


@pytest.mark.parametrize("name", VALUES)
def test_copies_are_equal(folder: Path, name: str):
    thing = VALUES[name](folder)
    for how, make in ROUNDS.items():
        made = make(thing)
        assert type(made) is type(thing) or isinstance(made, list), how
        assert repr(made) == repr(thing) or type(made) is not type(thing), how
        if name != "column" and type(thing).__eq__ is not object.__eq__:
            assert made == thing, how


@pytest.mark.parametrize("name", ["plan", "dataset plan"])
def test_copies_of_plans_explain_the_same(folder: Path, name: str):
    plan = VALUES[name](folder)
    assert pickle.loads(pickle.dumps(plan)).explain() == plan.explain()


@pytest.mark.parametrize("kind", [numparq.ParquetError, *numparq.ParquetError.__subclasses__()])
def test_errors_keep_their_location_and_notes(kind: type[numparq.ParquetError]):
    error = kind("message", file="x.parquet", row_group=1, column="a", page=3)
    error.add_note("note")
    for make in ROUNDS.values():
        made = make(error)
        assert (type(made), str(made), made.where, made.__notes__) == (kind, str(error), error.where, ["note"])
        assert made.where is not error.where
        assert made.args == error.args


def test_pickles_are_small(folder: Path):
    for name in ("file", "dataset"):
        thing = VALUES[name](folder)
        thing.read()  # fills caches
        assert len(pickle.dumps(thing)) < 700
    assert len(pickle.dumps(VALUES["bytes"](folder))) < (folder / "x.parquet").stat().st_size + 500


def test_copy_of_a_file_is_opened_at_first_use(folder: Path, tmp_path: Path):
    path = tmp_path / "x.parquet"
    path.write_bytes((folder / "x.parquet").read_bytes())
    data = pickle.dumps(numparq.ParquetFile(path))
    moved = path.rename(tmp_path / "y.parquet")
    made = pickle.loads(data)
    assert pickle.loads(pickle.dumps(made)) is not made  # not opened by being pickled again
    with pytest.raises(FileNotFoundError):
        _ = made.num_rows
    moved.rename(path)
    pd.testing.assert_frame_equal(made.read(), FRAME)
    with pytest.raises(AttributeError, match="no attribute 'num_lines'"):
        _ = made.num_lines


def test_changed_files_are_noticed(folder: Path, tmp_path: Path):
    path, dataset = tmp_path / "x.parquet", tmp_path / "dataset"
    numparq.to_parquet(FRAME, path)
    numparq.to_parquet(FRAME, dataset, partition_cols=["k"])
    made = [pickle.loads(pickle.dumps(thing)) for thing in (numparq.ParquetFile(path), numparq.Dataset(dataset))]
    numparq.to_parquet(FRAME[::-1], path)
    numparq.to_parquet(FRAME, dataset, partition_cols=["k"], append=True)
    for thing in made:
        for _ in range(2):  # not only the first time
            with pytest.raises(numparq.InvalidFileError, match="changed since it was pickled: open it again"):
                thing.read()


def test_remote_file_of_the_same_size_is_noticed():
    memory = fsspec.filesystem("memory")
    memory.pipe("/pickle/x.parquet", numparq.to_parquet(FRAME))
    file = numparq.ParquetFile("memory://pickle/x.parquet")
    pd.testing.assert_frame_equal(copy.copy(file).read(), FRAME)
    made = copy.copy(file)
    memory.pipe("/pickle/x.parquet", numparq.to_parquet(FRAME.assign(a=FRAME["a"][::-1].to_numpy() + 1)))
    with pytest.raises(numparq.InvalidFileError, match="changed since it was pickled"):
        made.read()


def test_closed_file_stays_closed(folder: Path):
    file = numparq.ParquetFile(folder / "x.parquet")
    file.close()
    made = copy.copy(file)
    assert made.num_rows == 100
    for closed in (file, made):
        with pytest.raises(ValueError, match="closed"):
            closed.read()


@pytest.mark.parametrize("opened", [io.BytesIO, lambda data: io.BufferedReader(io.BytesIO(data))])
def test_open_file_objects_cannot_be_pickled(folder: Path, opened: Callable[[bytes], Any]):
    file = numparq.ParquetFile(opened((folder / "x.parquet").read_bytes()))
    for make in ROUNDS.values():
        with pytest.raises(TypeError, match="cannot be pickled or copied; open it by its path, or pass its bytes"):
            make(file)


def test_relative_paths_in_another_working_directory(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    things = [numparq.ParquetFile("x.parquet"), numparq.Dataset("dataset"), numparq.Dataset(["x.parquet", "x.parquet"])]
    frames, names = [thing.read(include=["file"]) for thing in things], things[1].files
    here = [copy.copy(thing).read(include=["file"]) for thing in things]
    data = pickle.dumps(things)
    monkeypatch.chdir(tmp_path)
    there = pickle.loads(data)
    for before, same, after in zip(frames, here, there, strict=True):
        pd.testing.assert_frame_equal(same, before)
        pd.testing.assert_frame_equal(after.read(), before.drop(columns="file"))
    assert there[1].files == [str(folder / name) for name in names]


def _read_in_child(thing: Any, filters: Expression) -> pd.DataFrame:
    return thing.read(["a", "b"], filters)


@pytest.mark.slow  # starts a process
def test_spawned_processes_read_the_same(folder: Path):
    filters = (col("a") > 10) & col("b").isin(["text 1", "text 2"])
    wrapped = fsspec.filesystem("dir", path=str(folder), target_protocol="file")
    local = pyarrow.fs.SubTreeFileSystem(str(folder), pyarrow.fs.LocalFileSystem())
    things = [
        numparq.ParquetFile(folder / "x.parquet"),
        numparq.ParquetFile((folder / "x.parquet").read_bytes()),
        numparq.ParquetFile("x.parquet", filesystem=wrapped),
        numparq.ParquetFile("x.parquet", filesystem=local),
        numparq.Dataset(folder / "dataset"),
        numparq.Dataset("dataset", filesystem=wrapped),
    ]
    expected = [thing.read(["a", "b"], filters) for thing in things]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.starmap(_read_in_child, [(thing, filters) for thing in things])
    assert len(expected[0])
    for frame, other in zip(expected, found, strict=True):
        pd.testing.assert_frame_equal(other, frame)
