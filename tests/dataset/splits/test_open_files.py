"""Files that change or disappear between planning and reading; damage found in another process."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import numparq
from numparq import InvalidFileError, col
from numparq.dataset.splits.open_files import check_unchanged
from numparq.dataset.splits.table import split_table
from support.data.split_tables import first_split_of, numbered_frame, read_splits, thousands


@pytest.fixture
def folder(tmp_path):
    return thousands(tmp_path / "table")


@pytest.mark.parametrize("plan_files", [100, 0])
def test_replaced_file_raises(folder, plan_files):
    table = split_table(folder, min_splits=20, plan_files=plan_files)
    path = folder / "p=0" / "1.parquet"
    numparq.to_parquet(numbered_frame(1000, 9), path, row_group_size=100)
    with pytest.raises(InvalidFileError, match="has changed since") as caught:
        table.frame(first_split_of(table, "1.parquet"))
    assert caught.value.where["file"] == str(path)
    assert len(table.frame(first_split_of(table, "0.parquet")))
    check_unchanged(first_split_of(table, "0.parquet").parts, None)
    with pytest.raises(InvalidFileError, match="has changed since"):
        check_unchanged(first_split_of(table, "1.parquet").parts, None)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="removed since"):
        check_unchanged(first_split_of(table, "1.parquet").parts, None)


@pytest.mark.parametrize("plan_files", [100, 0])
def test_changed_modification_time_raises(folder, plan_files):
    table = split_table(folder, min_splits=20, plan_files=plan_files)
    path = folder / "p=0" / "1.parquet"
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1000))
    with pytest.raises(InvalidFileError, match="has changed since"):
        table.frame(first_split_of(table, "1.parquet"))


def test_changed_footer_with_equal_size_and_time_raises(folder):
    table = split_table(folder)
    path = folder / "p=0" / "1.parquet"
    status = path.stat()
    content = path.read_bytes()
    position = content.rindex(b"numparq version")
    path.write_bytes(content[:position] + b"numpark" + content[position + 7 :])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InvalidFileError, match="has changed since"):
        table.frame(table.splits[0])


def test_deleted_file_raises(folder):
    table = split_table(folder, min_splits=20)
    (folder / "p=1" / "2.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="removed since") as caught:
        table.frame(first_split_of(table, "2.parquet"))
    assert caught.value.filename == f"{folder}/p=1/2.parquet"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)


@pytest.mark.slow
def test_errors_keep_their_location_across_processes(tmp_path):
    numparq.to_parquet(numbered_frame(1000), tmp_path / "a.parquet", row_group_size=500, compression=None)
    table = split_table(tmp_path / "a.parquet", split_bytes=1)
    with numparq.ParquetFile(tmp_path / "a.parquet") as file:
        chunk = file.metadata.row_groups[1].columns[1].meta_data
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    status = (tmp_path / "a.parquet").stat()
    content[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    (tmp_path / "a.parquet").write_bytes(content)
    os.utime(tmp_path / "a.parquet", ns=(status.st_atime_ns, status.st_mtime_ns))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert len(pool.submit(table.reader.frame, table.splits[0]).result()) == 500
        error = pool.submit(table.reader.frame, table.splits[-1]).exception()
    assert isinstance(error, numparq.ParquetError)
    assert error.where["file"].endswith("a.parquet")
    assert error.where["row_group"] == 1
    assert error.where["column"] == "x"
    assert error.where["page"] == 0
    for word in ("a.parquet", "row group 1", "column 'x'", "page 0"):
        assert word in str(error)


def test_changed_and_deleted_remote_files_raise(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    base = f"/splits-{os.getpid()}-{tmp_path.name}"
    for number in range(3):
        memory.pipe_file(
            f"{base}/p={number}/a.parquet", numparq.to_parquet(numbered_frame(100, number), row_group_size=10)
        )
    try:
        table = split_table(f"memory:/{base}", filters=col("id") < 50, min_splits=5)
        reader = pickle.loads(pickle.dumps(table.reader))
        assert len(table) >= 3
        assert read_splits(table, reader)["id"].tolist() == [*range(50)] * 3
        whole = split_table(f"memory:/{base}", plan_files=0, min_splits=3)
        assert read_splits(whole)["p"].tolist() == [0] * 100 + [1] * 100 + [2] * 100
        memory.pipe_file(f"{base}/p=1/a.parquet", numparq.to_parquet(numbered_frame(100, 1), row_group_size=10))
        for each in (table, whole):
            with pytest.raises(InvalidFileError, match="has changed since"):
                each.frame(first_split_of(each, "p=1/a.parquet"))
            with pytest.raises(InvalidFileError, match="has changed since"):
                check_unchanged(first_split_of(each, "p=1/a.parquet").parts, each.reader.filesystem)
        memory.rm(f"{base}/p=2/a.parquet")
        for each in (table, whole):
            with pytest.raises(FileNotFoundError, match="removed since"):
                each.frame(first_split_of(each, "p=2/a.parquet"))
    finally:
        memory.rm(base, recursive=True)


def test_file_system_cache_is_bypassed():
    pytest.importorskip("fsspec")
    from support.io.object_store import ObjectStore

    class CachingStore(ObjectStore):
        """A store that caches `info` until its cache is invalidated; it reports sizes but no times."""

        def __init__(self):
            super().__init__()
            self.cached = {}

        def info(self, path, **options):
            found = super().info(path, **options)
            return self.cached.setdefault(path, {key: found[key] for key in ("name", "size", "type")})

        def invalidate_cache(self, path=None):
            self.cached.clear()

    store = CachingStore()
    for number in range(2):
        store.pipe_file(f"/data/{number}.parquet", numparq.to_parquet(numbered_frame(100, number)))
    table = split_table("/data", filesystem=store, plan_files=0)
    assert len(read_splits(table, table.reader)) == 200
    store.info("/data/1.parquet")
    store.pipe_file("/data/1.parquet", numparq.to_parquet(numbered_frame(90, 1)))
    with pytest.raises(InvalidFileError, match="has changed since"):
        read_splits(table, table.reader)
