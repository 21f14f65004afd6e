"""Footers of many files: few requests, requests in parallel, a limit of open files, and the file's name in errors."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import Coalescing, col, to_parquet
from numparq.dataset.discover import open_files as discover_open_files
from numparq.dataset.discover.files import list_files
from numparq.dataset.discover.open_files import open_files, open_files_unless_empty, tail_lengths
from numparq.errors import InvalidFileError
from numparq.io import file_pool
from numparq.io.file_pool import FilePool, PooledFileSource
from numparq.io.tail_source import TailSource

FRAME = pd.DataFrame({"x": np.arange(1000), "y": np.random.default_rng(1).random(1000)})
DATA = to_parquet(FRAME, row_group_size=100)
NEAR = Coalescing(gap=1, max_bytes=100)


def large(num_bytes: int) -> bytes:
    return to_parquet(pd.DataFrame({"x": np.random.default_rng(2).random(num_bytes // 8)}), use_dictionary=False)


# --- remote files -----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["many at once", "one by one"])
def store(request):
    pytest.importorskip("fsspec")
    from support.io.object_store import ObjectStore, SequentialObjectStore

    return (ObjectStore if request.param == "many at once" else SequentialObjectStore)()


def fill(store, count: int, data: bytes = DATA) -> list[str]:
    names = [f"/d/k={number % 4}/{number:04}.parquet" for number in range(count)]
    for name in names:
        store.pipe(name, data)
    store.reset()
    return names


def open_listed(store, path="/d"):
    listing = list_files(path, filesystem=store)
    return open_files(listing, listing.files)


def test_small_file_is_read_in_one_request(store):
    names = fill(store, 40)
    listing = list_files("/d", filesystem=store)
    files = open_files_unless_empty(listing, listing.files, coalescing=NEAR)
    assert [file.source.name for file in files] == sorted(names)
    assert store.requests == [(0, len(DATA))] * 40
    assert store.infos <= 1, "a request for /d, none for a file of it"
    assert [file.num_rows for file in files] == [1000] * 40
    assert all(file.source.is_remote and file.coalescing == NEAR for file in files)
    assert [file.source.num_requests for file in files] == [1] * 40
    files[7].source.read_ranges([(4, 100), (200, 300)])
    assert len(store.requests) == 40, "the whole file is in memory"
    for file in files:
        file.close()


def test_footer_requests_run_in_parallel(store):
    fill(store, 48)
    store.latency = 0.05
    open_listed(store)
    # 16 threads need 3 round trips, and one more for each late request; sequential requests would need 48.
    assert store.round_trips == 1 if store.most_at_once == 48 else 3 <= store.round_trips < 16
    assert store.most_at_once in (16, 48)


def test_large_file_is_read_from_its_tail(store):
    data = large(3 << 20)
    fill(store, 2, data)
    (file, _) = open_listed(store)
    assert store.requests == [(len(data) - (64 << 10), len(data))] * 2
    assert file.tail.tobytes() == data[-(64 << 10) :]
    assert file.num_rows == (3 << 20) // 8
    assert file.source.read_ranges([(4, 8)])[0][:4].tobytes() == data[4:8]
    assert len(store.requests) == 3


def test_long_footers_need_two_round_trips(store, monkeypatch):
    monkeypatch.setattr(discover_open_files, "TAIL_BYTES", 300)
    monkeypatch.setattr(discover_open_files, "WHOLE_FILE_BYTES", 0)
    fill(store, 8)
    store.latency = 0.03  # so that requests sent together overlap
    files = open_listed(store)
    start = files[0].footer_start
    assert sorted(store.requests) == sorted([(len(DATA) - 300, len(DATA)), (start, len(DATA) - 300)] * 8)
    assert 2 <= store.round_trips < 8, "two, and more for late requests; sequential requests would need 16"
    assert [file.num_rows for file in files] == [1000] * 8
    assert len(store.requests) == 16
    monkeypatch.setattr(discover_open_files, "_MANY_BYTES", 1)
    assert [file.num_rows for file in open_listed(store)] == [1000] * 8, "one by one above the byte limit"


def test_many_files_are_requested_in_batches(store, monkeypatch):
    fill(store, 20)
    monkeypatch.setattr(discover_open_files, "_MANY", 6)
    assert len(open_listed(store)) == 20
    assert store.most_at_once <= 6
    monkeypatch.setattr(discover_open_files, "_MANY_BYTES", 2 * len(DATA))
    store.reset()
    assert len(open_listed(store)) == 20
    assert store.most_at_once <= 2
    assert list(discover_open_files._batches([])) == []
    assert list(discover_open_files._batches([10**9, 10**9])) == [
        (0, 1),
        (1, 2),
    ]


def test_tail_lengths_fit_memory_limits():
    assert tail_lengths([10, 1 << 20, 2 << 20], 1 << 20, 1 << 30) == [10, 1 << 20, 64 << 10]
    assert tail_lengths([1 << 20] * 3, 1 << 20, 2 << 20) == [1 << 20, 64 << 10, 64 << 10]
    assert tail_lengths([1 << 20] * 64, 1 << 20, 1 << 20) == [16 << 10] * 64
    assert tail_lengths([1 << 20] * 1000, 1 << 20, 1 << 20) == [8 << 10] * 1000
    assert tail_lengths([], 1, 1) == []


def test_damaged_remote_files_are_named_in_errors(store):
    names = fill(store, 5)
    store.pipe(names[3], DATA[:-1])
    with pytest.raises(InvalidFileError, match=f"was truncated or never finished .file '{names[3]}'"):
        open_listed(store)
    store.pipe(names[3], b"")
    with pytest.raises(InvalidFileError, match=f"the file has 0 bytes.*{names[3]}"):
        open_listed(store)
    listing = list_files("/d", filesystem=store)
    store.rm(names[2])
    with pytest.raises(FileNotFoundError, match="0002"):
        open_files(listing, listing.files)
    store.pipe(names[2], DATA[5:])
    with pytest.raises(InvalidFileError, match=f"replaced during the read.*{names[2]}"):
        open_files(listing, [listing.files[sorted(names).index(names[2])]])


def test_remote_files_of_unknown_size(store):
    names = fill(store, 20)
    listing = list_files("/d", filesystem=store)
    store.reset()
    store.latency = 0.02
    files = open_files(listing, [file._replace(size=None) for file in listing.files])
    assert store.infos == 20
    assert [file.source.size for file in files] == [len(DATA)] * 20
    store.rm(names[0])
    with pytest.raises(FileNotFoundError):
        open_files(listing, [file._replace(size=None) for file in listing.files])


def test_single_connection_file_system_is_read_sequentially():
    pytest.importorskip("fsspec")
    from support.io.object_store import SequentialObjectStore

    class OneConnection(SequentialObjectStore):
        protocol = ("ftp",)

    store = OneConnection(latency=0.002)
    fill(store, 10)
    assert len(open_listed(store)) == 10
    assert store.most_at_once == 1


def test_patterns_and_lists_of_remote_files(store):
    names = fill(store, 12)
    listing = list_files("/d/k=1/*.parquet", filesystem=store)
    assert [file.path for file in listing.files] == names[1::4]
    assert listing.keys == ("k",)
    assert all(file.size == len(DATA) and file.version for file in listing.files)
    assert store.infos <= 3 + 4  # and a look-up of each system's metadata folder
    store.reset()
    listing = list_files([names[5], "/d/k=0"], filesystem=store)
    assert [file.path for file in listing.files] == [names[5], *names[0::4]]
    assert store.infos == 2 + 4
    assert [file.values for file in listing.files] == [("1",)] + [("0",)] * 3
    one = list_files(names[3], filesystem=store)
    assert one.is_single_file
    assert one.files[0].size == len(DATA)
    with pytest.raises(FileNotFoundError):
        list_files("/nowhere/", filesystem=store)
    with pytest.raises(FileNotFoundError):
        list_files("/nowhere/*", filesystem=store)


def test_hidden_remote_files_are_not_listed(store):
    fill(store, 1)
    names = [
        "/d/_SUCCESS",
        "/d/.a/k=1/x",
        "/d/_temporary/x",
        "/d/k=0/.x.crc",
        "/d/k=0/_metadata",
        "/d/_metadata",
        "/d/k=1_$folder$",
    ]
    for name in names:
        store.pipe(name, b"")
    listing = list_files("/d", filesystem=store)
    assert [file.path for file in listing.files] == ["/d/k=0/0000.parquet"]
    assert listing.metadata_file.path == "/d/_metadata"
    assert listing.common_metadata_file is None
    assert [file.path for file in list_files("/d/**", filesystem=store).files] == ["/d/k=0/0000.parquet"]
    assert [file.path for file in list_files("/d/_m*", filesystem=store).files] == ["/d/_metadata"]
    store.pipe("/e/_k=1/x", DATA)
    assert list_files("/e", filesystem=store).keys == ("_k",)
    store.pipe("/f/_SUCCESS", b"")
    with pytest.raises(InvalidFileError, match="no Parquet files"):
        list_files("/f", filesystem=store)


def test_files_at_memory_url():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/urls/k=1/a.parquet", DATA)
    listing = list_files("memory://urls")
    assert listing.files[0].name == "memory:///urls/k=1/a.parquet"
    assert listing.files[0].values == ("1",)
    (file,) = open_files(listing, listing.files)
    assert file.num_rows == 1000
    assert file.source.name == "memory:///urls/k=1/a.parquet"
    assert list_files("memory://urls/k=1/a.parquet").files[0].name == "memory://urls/k=1/a.parquet"
    memory.rm("/urls", recursive=True)


def test_pyarrow_file_systems(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    local = fs.LocalFileSystem()
    (tmp_path / "d" / "k=1").mkdir(parents=True)
    (tmp_path / "d" / "k=1" / "a").write_bytes(DATA)
    (tmp_path / "d" / "_SUCCESS").write_bytes(b"")
    for filesystem, path in [(local, str(tmp_path / "d")), (fs.SubTreeFileSystem(str(tmp_path), local), "d")]:
        listing = list_files(path, filesystem=filesystem)
        (file,) = open_files(listing, listing.files)
        assert file.num_rows == 1000
        assert listing.keys == ("k",)
        assert [file.path for file in listing.files] == [file.source.name]
        file.close()
    with pytest.raises(FileNotFoundError):
        list_files("nowhere", filesystem=fs.SubTreeFileSystem(str(tmp_path), local))


# --- local files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    for number in range(12):
        (tmp_path / f"{number:02}.parquet").write_bytes(DATA)
    return tmp_path


def test_number_of_open_local_files_is_bounded(folder, monkeypatch):
    pool = FilePool(max_open=4)
    monkeypatch.setattr(discover_open_files, "open_small_files", lambda paths, names, most: [None] * len(paths))
    monkeypatch.setattr(discover_open_files, "PooledFileSource", lambda *names: PooledFileSource(*names, pool=pool))
    listing = list_files(folder)
    files = open_files(listing, listing.files)
    assert len(pool) == 4
    assert [file.num_rows for file in files] == [1000] * 12
    for file in [*files, *files[::-1]]:
        assert file.source.read_ranges([(4, 50)])[0][:46].tobytes() == DATA[4:50]
        assert len(pool) <= 4
    with ThreadPoolExecutor(8) as threads:
        assert (
            len(
                set(threads.map(lambda file: file.source._source.read_ranges([(0, 900)])[0].tobytes()[:900], files * 9))
            )
            == 1
        )
    assert len(pool) <= 4
    with ExitStack() as all_at_once:
        for file in files[:7]:
            all_at_once.enter_context(file.source._source._opened())
        assert len(pool) == 7
    assert len(pool) == 4
    for file in files:
        file.close()
    assert len(pool) == 0
    with pytest.raises(ValueError, match="closed"):
        files[0].source._source.read_ranges([(0, 4)])


def test_file_in_use_stays_open(folder, monkeypatch):
    pool = FilePool(max_open=1)
    first, second = (PooledFileSource(str(folder / name), pool=pool) for name in ("00.parquet", "01.parquet"))
    assert len(pool) == 1
    with first._opened(), second._opened():
        assert len(pool) == 2
        assert first.is_in_use
        first.close()
        assert len(pool) == 2
    assert len(pool) <= 1
    assert not first.is_in_use
    assert second.stamp() == (len(DATA), os.stat(folder / "01.parquet").st_mtime_ns)
    second.close()


def test_garbage_collected_file_leaves_pool(folder):
    pool = FilePool(max_open=2)
    for name in ("00.parquet", "01.parquet", "02.parquet", "03.parquet"):
        source = PooledFileSource(str(folder / name), pool=pool)
        source._file.close()
        del source
    assert len(pool) <= 2


@pytest.mark.parametrize("how", ["replaced", "longer", "changed", "gone"])
def test_file_changed_before_reopening_raises(folder, how):
    path = folder / "00.parquet"
    pool = FilePool()
    source = PooledFileSource(str(path), pool=pool)
    source.release()
    if how == "replaced":
        (folder / "new").write_bytes(DATA)
        os.utime(folder / "new", ns=(0, os.stat(path).st_mtime_ns))
        os.replace(folder / "new", path)
    elif how == "longer":
        path.write_bytes(DATA + b"x")
    elif how == "changed":
        os.utime(path, ns=(1, 1))
    else:
        os.remove(path)
    with pytest.raises((InvalidFileError, FileNotFoundError), match=r"replaced or changed.*00\.parquet|No such file"):
        source.read_into(0, np.empty(4, np.uint8))
    assert len(pool) == 0


def test_staged_file_is_found_after_rename(folder):
    waiting, final = str(folder / "00.parquet"), str(folder / "x.parquet")
    source = PooledFileSource(waiting, final, FilePool())
    assert source.name == final
    source.release()
    os.rename(waiting, final)
    assert source.read_ranges([(4, 50)])[0][:46].tobytes() == DATA[4:50]
    assert PooledFileSource(waiting, final, FilePool()).size == len(DATA)
    os.remove(final)
    with pytest.raises(FileNotFoundError, match=r"x\.parquet"):
        PooledFileSource(waiting, final, FilePool())
    source.close()


def test_damaged_local_file_is_named_and_others_closed(folder, monkeypatch):
    pool = FilePool()
    monkeypatch.setattr(discover_open_files, "PooledFileSource", lambda *names: PooledFileSource(*names, pool=pool))
    for damaged in (b"", DATA[:-1], DATA[:-8] + b"\xff\xff\xff\x7fPAR1", b"PAR1"):
        (folder / "07.parquet").write_bytes(damaged)
        listing = list_files(folder)
        with pytest.raises(InvalidFileError) as caught:
            open_files(listing, listing.files)
        assert caught.value.where["file"] == str(folder / "07.parquet")
        assert len(pool) == 0
    os.remove(folder / "07.parquet")
    with pytest.raises(FileNotFoundError, match=r"07\.parquet"):
        open_files(listing, listing.files)
    assert len(pool) == 0


def test_tails_of_very_many_files_are_shorter(folder, monkeypatch):
    monkeypatch.setattr(discover_open_files, "MAX_SMALL_FILE_BYTES", 0)
    monkeypatch.setattr(discover_open_files, "MIN_TAIL_BYTES", 20)
    listing = list_files(folder)
    files = open_files(listing, listing.files[3:5])
    assert [len(file.tail) for file in files] == [20, 20]
    assert files[0].num_rows == 1000
    assert files[0].source.name == str(folder / "03.parquet")
    for file in files:
        file.close()


def test_few_tails_are_held(folder, monkeypatch):
    monkeypatch.setattr(discover_open_files, "open_small_files", lambda paths, names, most: [None] * len(paths))
    sizes = [os.path.getsize(folder / f"{number:02}.parquet") for number in range(3)]
    monkeypatch.setattr(discover_open_files, "MAX_LOCAL_TAIL_BYTES", sum(sizes[:2]))
    listing = list_files(folder)
    files = open_files(listing, listing.files)
    assert [isinstance(file.source, TailSource) for file in files] == [True] * 2 + [False] * (len(files) - 2)
    assert [file.num_rows for file in files] == [1000] * len(files)
    for file in files:
        file.close()


def test_open_file_limit_is_shared():
    assert file_pool.MAX_OPEN_FILES < 256
    assert file_pool._POOL._most == file_pool.MAX_OPEN_FILES


def test_small_files_that_change_after_opening(tmp_path):
    """Like an open file: one that is written to is an error, one that was replaced or removed is read as it was."""
    for number in range(3):
        numparq.to_parquet(pd.DataFrame({"a": [number]}), tmp_path / f"{number}.parquet")
    path, data = tmp_path / "1.parquet", numparq.to_parquet(pd.DataFrame({"a": [7]}))
    with numparq.Dataset(tmp_path) as dataset:
        assert dataset.read()["a"].tolist() == [0, 1, 2]
        numparq.to_parquet(pd.DataFrame({"a": [7]}), path)  # replaces it
        assert dataset.read()["a"].tolist() == [0, 1, 2]
        batches = dataset.iter_batches()
        path.unlink()
        assert next(batches)["a"].tolist() == [0, 1, 2]
        assert dataset.read(filters=col("a") > 0)["a"].tolist() == [1, 2]
        dataset.refresh()
        assert dataset.read()["a"].tolist() == [0, 2]
        with open(tmp_path / "0.parquet", "r+b") as file:
            file.write(data)
        os.utime(tmp_path / "0.parquet", (1, 1))
        for options in ({}, {"filters": col("a") < 9}):
            with pytest.raises(numparq.InvalidFileError, match="has changed since it was opened") as caught:
                dataset.read(**options)
            assert caught.value.where["file"].endswith("0.parquet")
        with pytest.raises(numparq.InvalidFileError, match="has changed since it was opened"):
            next(dataset.iter_batches())
