"""Names of files, datasets and partitions are taken as they are, on every file system."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq.dataset.write.shared_job import SharedJob
from support.io.remote_datasets import object_store

fsspec = pytest.importorskip("fsspec")
fs = pytest.importorskip("pyarrow.fs")

NASTY_NAMES = [
    "a*b",
    "a?b",
    "[a]b",
    "[!a]",
    "**",
    "{a,b}",
    "%41",
    "x#y",
    " a b ",
    "a+b",
    "é漢😀",
    "a;b",
    "a&b=c",
    "~a",
    "a'b\"c",
    "a:b",
    "a::b",
    "$x",
    "..a",
    "_a",
]
ALPHABET = "*?[]!{},%41#+ =&;:~'\"$-._aé漢😀"
FRAME = pd.DataFrame({"v": [1, 2]})


def _in_memory(wrap: Callable[[Any], Any], base: str) -> tuple[Any, str]:
    from fsspec.implementations.memory import MemoryFileSystem

    class Memory(MemoryFileSystem):
        cachable = False

    memory = Memory()
    memory.store, memory.pseudo_dirs = {}, [""]  # its own: others are shared by all tests
    return wrap(memory), base


def _inside(folder: str, inner: Any) -> Any:
    from fsspec.implementations.dirfs import DirFileSystem

    return DirFileSystem(folder, inner)


def _as_arrow(inner: Any) -> Any:
    return fs.PyFileSystem(fs.FSSpecHandler(inner))


def _as_fsspec(inner: Any) -> Any:
    from fsspec.implementations.arrow import ArrowFSWrapper

    return ArrowFSWrapper(inner)


FILE_SYSTEMS: dict[str, Callable[[str], tuple[Any, str]]] = {
    "local": lambda folder: (None, f"{folder}/d"),
    "local by fsspec": lambda folder: (fsspec.filesystem("file"), f"{folder}/d"),
    "memory": lambda folder: _in_memory(lambda inner: inner, "/d"),
    "directory in memory": lambda folder: _in_memory(lambda inner: _inside("/c", inner), "d"),
    "local directory": lambda folder: (_inside(folder, fsspec.filesystem("file")), "d"),
    "pyarrow": lambda folder: (fs.SubTreeFileSystem(folder, fs.LocalFileSystem()), "d"),
    "memory by pyarrow": lambda folder: _in_memory(_as_arrow, "/d"),
    "directory in memory by pyarrow": lambda folder: _in_memory(
        lambda inner: fs.SubTreeFileSystem("/c", _as_arrow(inner)), "d"
    ),
    "pyarrow by fsspec": lambda folder: (_as_fsspec(fs.SubTreeFileSystem(folder, fs.LocalFileSystem())), "d"),
    "uploads": lambda folder: (object_store(), "/d"),
}


@contextmanager
def opened(kind: str) -> Iterator[tuple[Any, str]]:
    """Yield a file system and a folder on it."""
    with tempfile.TemporaryDirectory() as folder:
        filesystem, base = FILE_SYSTEMS[kind](folder)
        if filesystem is None:
            Path(base).mkdir()
        elif hasattr(filesystem, "makedirs"):
            filesystem.makedirs(base, exist_ok=True)
        else:
            filesystem.create_dir(base, recursive=True)
        yield filesystem, base


def files_below(filesystem: Any, folder: str) -> list[str]:
    if filesystem is None:
        found = [str(path) for path in Path(folder).rglob("*") if path.is_file()]
    elif hasattr(filesystem, "find"):
        found = filesystem.find(folder)
    else:
        found = [one.path for one in filesystem.get_file_info(fs.FileSelector(folder, recursive=True)) if one.is_file]
    return sorted(path.split(f"{folder.strip('/')}/", 1)[1] for path in found)


def check_files(kind: str, name: str) -> None:
    """Write, replace and read a file of a name beside one that the name would match as a pattern."""
    with opened(kind) as (filesystem, base):
        options: dict[str, Any] = {"filesystem": filesystem}
        path, other = f"{base}/{name}.parquet", f"{base}/axb.parquet"
        numparq.to_parquet(FRAME.assign(v=9), other, **options)
        numparq.to_parquet(FRAME, path, **options)
        numparq.to_parquet(FRAME.assign(v=[3, 4]), path, **options)
        assert files_below(filesystem, base) == sorted([f"{name}.parquet", "axb.parquet"])
        assert numparq.read_parquet(path, **options)["v"].tolist() == [3, 4]
        assert numparq.read_parquet([other, path], **options)["v"].tolist() == [9, 9, 3, 4]
        with numparq.ParquetFile(path, **options) as file:
            assert file.read()["v"].tolist() == [3, 4]
        with numparq.ParquetWriter(path, **options) as writer:
            writer.write(FRAME)
            writer.write(FRAME)
        assert numparq.read_parquet(path, **options)["v"].tolist() == [1, 2, 1, 2]
        writer = numparq.ParquetWriter(path, **options)
        writer.write(FRAME)
        writer.abort()
        assert numparq.read_parquet(path, **options)["v"].tolist() == [1, 2, 1, 2]
        assert numparq.read_parquet(other, **options)["v"].tolist() == [9, 9]
        assert files_below(filesystem, base) == sorted([f"{name}.parquet", "axb.parquet"])


def check_dataset(kind: str, name: str) -> None:
    """Write, replace and read a dataset whose folder, partition key and partition value have a name."""
    with opened(kind) as (filesystem, base):
        options: dict[str, Any] = {"filesystem": filesystem}
        key, folder = f"k{name}", f"{base}/{name}"
        other = f"{base}/axb/file.parquet"
        frame = pd.DataFrame({"v": [1, 2, 4], key: [name, "other", name]})

        def write(**how: Any) -> None:
            numparq.to_parquet(frame, folder, partition_cols=[key], **how, **options)

        def rows(**how: Any) -> list[int]:
            return sorted(numparq.read_parquet(folder, **how, **options)["v"].tolist())

        if filesystem is None:
            Path(f"{base}/axb").mkdir()
        elif hasattr(filesystem, "create_dir"):
            filesystem.create_dir(f"{base}/axb")
        elif not hasattr(filesystem, "asked"):
            filesystem.makedirs(f"{base}/axb")
        numparq.to_parquet(FRAME, other, **options)
        write()
        write(append=True)
        assert rows() == [1, 1, 2, 2, 4, 4]
        assert rows(filters=[(key, "==", name)]) == [1, 1, 4, 4]
        write(existing_data_behavior="delete_matching", write_metadata_file=True)
        assert rows() == [1, 2, 4]
        found = numparq.read_parquet(folder, **options)
        assert sorted(zip(found["v"], found[key], strict=True)) == [(1, name), (2, "other"), (4, name)]
        files = numparq.Dataset(folder, **options).files
        assert sum(len(numparq.read_parquet(file, **options)) for file in files) == 3
        for mode, gone in (("append", []), ("replace", files)):
            job = SharedJob.begin(folder, mode=mode, gone=gone, partition_cols=[key], **options)
            with job.task("0") as task:
                task.write(frame)
            job.commit([task.message])
        assert rows() == [1, 1, 2, 2, 4, 4]
        numparq.dataset.recover(folder, **options)
        assert numparq.read_parquet(other, **options)["v"].tolist() == [1, 2]
        left = [file for file in files_below(filesystem, base) if not file.endswith(".parquet")]
        assert not left


@pytest.mark.parametrize("kind", FILE_SYSTEMS)
@pytest.mark.parametrize("part", range(3))
def test_file_of_any_name(kind, part):
    for name in NASTY_NAMES[part::3]:
        check_files(kind, name)


@pytest.mark.parametrize("name", ["a*b", "a?[b]", "%41#{c,d}", " +é漢 "])
@pytest.mark.parametrize("kind", FILE_SYSTEMS)
def test_dataset_of_any_name(kind, name):
    check_dataset(kind, name)


@pytest.mark.hypothesis
@given(st.sampled_from(list(FILE_SYSTEMS)), st.text(ALPHABET, min_size=1, max_size=12))
def test_any_name(kind, name):
    if name not in (".", "..", "axb"):
        check_files(kind, name)
        if name[0] not in "._":
            check_dataset(kind, name)


def test_name_is_no_pattern_in_urls():
    memory = fsspec.filesystem("memory")
    try:
        for name in NASTY_NAMES:
            if "::" not in name:  # fsspec's chain of URLs
                path = f"memory://numparq-names/{name}/{name}.parquet"
                numparq.to_parquet(FRAME, path)
                assert numparq.read_parquet(path)["v"].tolist() == [1, 2]
                assert memory.find(f"/numparq-names/{name}") == [f"/numparq-names/{name}/{name}.parquet"]
    finally:
        memory.rm("/numparq-names", recursive=True)
