"""Remote sources: few parallel requests, and checks of their answers."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import ParquetFile, read_parquet, to_parquet
from numparq.errors import InvalidFileError, UnsupportedError
from numparq.format.footer import tail as footer_module
from numparq.io.coalesce import LOCAL_COALESCING, OBJECT_STORE_COALESCING
from numparq.io.local_source import FileSource
from numparq.io.open import open_source
from numparq.io.prefetch import PrefetchedSource
from numparq.kernels.tables import SLACK

fsspec = pytest.importorskip("fsspec")
from support.io.object_store import ObjectStore, SequentialObjectStore  # noqa: E402

STORES = [ObjectStore, SequentialObjectStore]
FRAME = pd.DataFrame({"number": np.random.default_rng(1).random(50_000), "text": [f"row {i}" for i in range(50_000)]})
DATA = to_parquet(FRAME, row_group_size=10_000)
TAIL = 64 << 10


@pytest.fixture(params=STORES)
def store(request):
    filesystem = request.param()
    filesystem.pipe("/folder/file.parquet", DATA)
    filesystem.reset()
    return filesystem


def open_stored(store, data: bytes, **options):
    store.pipe("/it", data)
    store.reset()
    return open_source("/it", filesystem=store, **options)


# --- requests ---------------------------------------------------------------------------------------------------------


def test_opening_a_file_needs_one_request(store):
    with ParquetFile("/folder/file.parquet", filesystem=store) as file:
        assert store.requests == [(len(DATA) - TAIL, len(DATA))]
        assert store.infos == 1
        assert file._file.source.is_remote
        assert file._file.coalescing is OBJECT_STORE_COALESCING
        assert (file.num_rows, file.num_row_groups, file.schema.columns) == (50_000, 5, ["number", "text"])
        assert file.metadata.created_by.startswith("numparq")
        assert file._file.source.num_requests == 1
        assert file._file.source.num_bytes == TAIL == store.num_bytes
        for group in file.metadata.row_groups:
            for chunk in group.columns:
                start = chunk.offset_index_offset
                file._file.source.read_ranges([(start, start + chunk.offset_index_length)])
        assert len(store.requests) == 1, "the page indexes are near the footer"
        pd.testing.assert_frame_equal(file.read(), FRAME)
        assert (file._file.source.num_requests, file._file.source.num_bytes) == (len(store.requests), store.num_bytes)
    assert store.infos == 2, "one more at the end of the read: was the file replaced?"


def test_small_file_needs_one_request(store):
    df = FRAME[:100]
    store.pipe("/small", to_parquet(df))
    store.reset()
    pd.testing.assert_frame_equal(read_parquet("/small", filesystem=store), df)
    assert len(store.requests) == 1


def test_long_footer_needs_two_requests(store, monkeypatch):
    monkeypatch.setattr(footer_module, "TAIL_BYTES", 300)
    with ParquetFile("/folder/file.parquet", filesystem=store) as file:
        assert store.requests == [(len(DATA) - 300, len(DATA)), (file._file.footer_start, len(DATA) - 300)]


def test_head_is_checked_only_without_extra_request(store):
    store.pipe("/small", b"XXXX" + to_parquet(FRAME[:100])[4:])
    store.pipe("/large", b"XXXX" + DATA[4:])
    store.pipe("/cut", DATA[:-1])
    store.reset()
    with pytest.raises(InvalidFileError, match="does not begin with"):
        ParquetFile("/small", filesystem=store)
    assert len(store.requests) == 1
    with ParquetFile("/large", filesystem=store) as file:
        assert file.num_rows == 50_000
    assert len(store.requests) == 2
    with pytest.raises(InvalidFileError, match="begins like one, so it was truncated"):
        ParquetFile("/cut", filesystem=store)


@pytest.mark.parametrize("kind", STORES)
def test_ranges_are_requested_in_parallel(kind):
    store = kind(latency=0.2)
    source = open_stored(store, DATA)
    ranges = [(number * 1000, number * 1000 + 10 + number) for number in range(12)]
    pieces = source.read_ranges(ranges)
    for piece, (start, stop) in zip(pieces, ranges, strict=True):
        assert len(piece) == stop - start + SLACK
        assert piece[: stop - start].tobytes() == DATA[start:stop]
    assert sorted(store.requests) == ranges
    assert store.most_at_once == 12
    assert store.round_trips == 1
    assert source.num_requests == 12
    assert source.num_bytes == store.num_bytes == sum(b - a for a, b in ranges)
    source.read_ranges([(0, 5)])
    assert store.round_trips == 2
    source.close()


def test_single_connection_file_system_is_read_sequentially():
    class OneConnection(SequentialObjectStore):
        protocol = ("ftp",)

    store = OneConnection(latency=0.01)
    source = open_stored(store, DATA)
    assert [piece[:5].tobytes() for piece in source.read_ranges([(0, 5), (10, 15), (20, 25)])] == [
        DATA[:5],
        DATA[10:15],
        DATA[20:25],
    ]
    assert store.most_at_once == 1
    assert store.round_trips == 3


def test_asynchronous_file_system():
    import asyncio

    from fsspec.asyn import AsyncFileSystem

    class Coroutines(AsyncFileSystem):
        cachable = False
        under_way = most_at_once = 0

        async def _info(self, path, **options):
            return {"name": path, "size": len(DATA), "type": "file"}

        async def _cat_file(self, path, start=None, end=None, **options):
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
            await asyncio.sleep(0.01)
            self.under_way -= 1
            if start == 77:
                raise PermissionError(path)
            return DATA[start:end]

    store = Coroutines()
    pd.testing.assert_frame_equal(read_parquet("it", filesystem=store), FRAME)
    source = open_source("it", filesystem=store)
    pieces = source.read_ranges([(number * 10, number * 10 + 5) for number in range(9)])
    assert b"".join(piece[:5].tobytes() for piece in pieces) == b"".join(DATA[i * 10 :][:5] for i in range(9))
    assert store.most_at_once == 9
    with pytest.raises(PermissionError):
        source.read_ranges([(70, 80), (77, 80)])


def test_empty_ranges_need_no_request(store):
    source = open_stored(store, DATA)
    assert source.read_ranges([]) == []
    assert [len(piece) for piece in source.read_ranges([(5, 5)])] == [SLACK]
    source.read_into(9, np.empty(0, np.uint8))
    assert not store.requests
    source.read_ranges([(5, 5), (1, 2), (7, 7), (3, 5)])
    assert sorted(store.requests) == [(1, 2), (3, 5)]


def test_many_threads_read_one_file(store):
    source = open_stored(store, DATA)

    def read(seed: int) -> None:
        for start in np.random.default_rng(seed).integers(0, len(DATA) - 300, 20).tolist():
            first, second = source.read_ranges([(start, start + 100), (start + 200, start + 300)])
            assert (
                first[:100].tobytes() + second[:100].tobytes() == DATA[start : start + 100] + DATA[start + 200 :][:100]
            )

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(read, range(6)))
    assert source.num_requests == 240
    assert source.num_bytes == 24_000
    source.close()


def test_prefetched_row_groups_share_a_round_trip():
    store = ObjectStore(latency=0.2)
    store.pipe("/it", DATA)
    with ParquetFile("/it", filesystem=store) as file:
        columns = [group.columns for group in file.metadata.row_groups]
        starts = [
            [chunk.meta_data.dictionary_page_offset or chunk.meta_data.data_page_offset for chunk in chunks]
            for chunks in columns
        ]
        batches = [
            np.array(
                [
                    [start, start + chunk.meta_data.total_compressed_size]
                    for start, chunk in zip(firsts, chunks, strict=True)
                ]
            )
            for firsts, chunks in zip(starts, columns, strict=True)
        ]
        store.reset()
        with PrefetchedSource(file._file.source, batches, file._file.coalescing) as ahead:
            for number, batch in enumerate(batches):
                ahead.begin(number)
                for start, stop in batch.tolist():
                    assert ahead.view(start, stop - start, SLACK)[: stop - start].tobytes() == DATA[start:stop]
                ahead.end(number)
        assert len(store.requests) == 5
        assert store.round_trips == 1, "the next batches are requested along with the first"


# --- paths, URLs and file systems -------------------------------------------------------------------------------------


def test_memory_urls():
    to_parquet(FRAME, "memory://remote/file.parquet")
    pd.testing.assert_frame_equal(read_parquet("memory://remote/file.parquet"), FRAME)
    with ParquetFile("memory://remote/file.parquet", storage_options={}) as file:
        assert file._file.source.name == "memory://remote/file.parquet"
        assert file._file.source.is_remote
    with pytest.raises(FileNotFoundError):
        read_parquet("memory://remote/none.parquet")
    pd.testing.assert_frame_equal(read_parquet("memory://remote"), FRAME)
    with pytest.raises(UnsupportedError, match=r"a directory.*memory://remote"):
        ParquetFile("memory://remote")
    with pytest.raises(ValueError, match="Protocol not known: nowhere"):
        read_parquet("nowhere://remote/file.parquet")
    fsspec.filesystem("memory").rm("/remote", recursive=True)


def test_storage_options_reach_the_file_system():
    received = {}

    class Options(ObjectStore):
        protocol = "options"

        def __init__(self, token=None, **options):
            super().__init__(**options)
            received["token"] = token
            self.pipe("/a.parquet", DATA)

    fsspec.register_implementation("options", Options, clobber=True)
    assert len(read_parquet("options://a.parquet", ["number"], storage_options={"token": 7})) == 50_000
    assert received == {"token": 7}


def test_remote_file_round_trip(store):
    to_parquet(FRAME, "/there.parquet", filesystem=store)
    pd.testing.assert_frame_equal(read_parquet("/there.parquet", filesystem=store), FRAME)


def test_local_file_systems_are_read_as_local_files(tmp_path):
    path = tmp_path / "file.parquet"
    path.write_bytes(DATA)
    local = fsspec.filesystem("file")
    for source in (
        open_source(str(path), filesystem=local),
        open_source(path.as_uri(), filesystem=local),
        open_source(path.as_uri()),
        open_source(f"local://{path}"),
        open_source(path),
    ):
        assert isinstance(source, FileSource)
        assert not source.is_remote
        assert source.size == len(DATA)
        source.close()
    with ParquetFile(path, filesystem=local) as file:
        assert file._file.coalescing is LOCAL_COALESCING
    with pytest.raises(UnsupportedError, match="a directory"):
        open_source(str(tmp_path), filesystem=local)


def test_pyarrow_file_systems(tmp_path, store):
    fs = pytest.importorskip("pyarrow.fs")
    (tmp_path / "file.parquet").write_bytes(DATA)
    wrapped = fs.PyFileSystem(fs.FSSpecHandler(store))
    pd.testing.assert_frame_equal(read_parquet("/folder/file.parquet", filesystem=wrapped), FRAME)
    assert store.requests[0] == (len(DATA) - TAIL, len(DATA)), "the wrapped file system is used directly"
    local = fs.LocalFileSystem()
    assert isinstance(open_source(str(tmp_path / "file.parquet"), filesystem=local), FileSource)
    source = open_source("file.parquet", filesystem=fs.SubTreeFileSystem(str(tmp_path), local))
    assert source.is_remote
    assert source.size == len(DATA)
    pieces = source.read_ranges([(number * 100, number * 100 + 50) for number in range(40)])
    assert b"".join(piece[:50].tobytes() for piece in pieces) == b"".join(DATA[i * 100 :][:50] for i in range(40))
    assert source.num_requests == 40
    assert source.num_bytes == 2000
    source.close()
    with pytest.raises(ValueError, match="closed"):
        source.read_ranges([(0, 1)])
    with pytest.raises(FileNotFoundError):
        read_parquet("none.parquet", filesystem=fs.SubTreeFileSystem(str(tmp_path), local))


def test_incompatible_options_raise(tmp_path, store):
    path = tmp_path / "file.parquet"
    path.write_bytes(DATA)
    with pytest.raises(ValueError, match="filesystem, which has its own"):
        read_parquet("/folder/file.parquet", filesystem=store, storage_options={"a": 1})
    with pytest.raises(ValueError, match="is a local path"):
        read_parquet(path, storage_options={"a": 1})
    for other in (DATA, open(path, "rb")):  # noqa: SIM115
        with pytest.raises(ValueError, match="need a path or URL"):
            read_parquet(other, filesystem=store)
    with pytest.raises(TypeError, match="must be of fsspec or pyarrow, not int"):
        read_parquet(path, filesystem=5)
    with pytest.raises(UnsupportedError, match="needs a local file"):
        read_parquet("/folder/file.parquet", filesystem=store, external_files=True)
    pd.testing.assert_frame_equal(read_parquet(["/folder/file.parquet"], filesystem=store), FRAME)


def test_urls_without_fsspec_raise(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"pip install 'numparq\[fsspec\]'"):
        read_parquet("s3://bucket/key")
    (tmp_path / "file.parquet").write_bytes(DATA)
    assert len(numparq.read_parquet((tmp_path / "file.parquet").as_uri(), ["number"])) == 50_000


# --- errors -----------------------------------------------------------------------------------------------------------


class Faulty(ObjectStore):
    """A store whose answers pass through `change`."""

    def change(self, data: bytes) -> bytes:
        return data

    def _answer(self, path, start, end):
        return self.change(super()._answer(path, start, end))


class FaultyPlain(Faulty, SequentialObjectStore):
    """A faulty store that serves one range after the other."""


@pytest.mark.parametrize("kind", [Faulty, FaultyPlain])
@pytest.mark.parametrize("ranges", [[(10, 20)], [(10, 20), (30, 50)]])
def test_answers_of_wrong_length_raise(kind, ranges):
    store = kind()
    source = open_stored(store, DATA)
    store.change = lambda data: data[:-1]
    with pytest.raises(InvalidFileError, match=r"10 bytes from byte 10 were requested, but 9 were returned.*/it"):
        source.read_ranges(ranges)
    with pytest.raises(InvalidFileError, match="but 7 were returned"):
        source.read_into(10, np.empty(8, np.uint8))
    store.change = lambda data: DATA
    with pytest.raises(UnsupportedError, match="does not support byte ranges"):
        source.read_ranges(ranges)
    store.change = lambda data: data
    assert len(source.read_ranges(ranges)) == len(ranges)


@pytest.mark.parametrize("ranges", [[(10, 20)], [(10, 20), (30, 50)]])
def test_deleted_file_raises(store, ranges):
    source = open_stored(store, DATA)
    store.rm("/it")
    with pytest.raises(FileNotFoundError):
        source.read_ranges(ranges)
    with pytest.raises(FileNotFoundError):
        source.read_into(0, np.empty(5, np.uint8))
    with pytest.raises(FileNotFoundError):
        open_source("/it", filesystem=store)


def test_ranges_outside_the_file_raise(store):
    source = open_stored(store, DATA)
    size = len(DATA)
    for start, stop in ((0, size + 1), (-1, 5), (7, 6), (0, 2**60), (2**61, 2**61 + 1)):
        with pytest.raises(InvalidFileError, match="are beyond the file's"):
            source.read_ranges([(0, 10), (start, stop)])
    with pytest.raises(InvalidFileError, match="are beyond the file's"):
        source.read_into(size - 1, np.empty(2, np.uint8))
    assert not store.requests


def test_closed_file_raises(store):
    with ParquetFile("/folder/file.parquet", filesystem=store) as file:
        file._file.source.read_ranges([(0, 5), (10, 15)])
    for read in (
        lambda: file._file.source.read_ranges([(0, 5)]),
        lambda: file._file.source.read_into(0, np.empty(5, np.uint8)),
    ):
        with pytest.raises(ValueError, match="closed"):
            read()
    file.close()


def test_unknown_file_size_raises(store, monkeypatch):
    info = store.info
    monkeypatch.setattr(store, "info", lambda path: {**info(path), "size": None})
    with pytest.raises(UnsupportedError, match="does not report the file's size"):
        read_parquet("/folder/file.parquet", filesystem=store)
