"""Sources of a file: paths, bytes and file objects, and the errors for anything else."""

from __future__ import annotations

import io
import mmap
import os
import pathlib
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest

from numparq import Dataset, InvalidFileError, ParquetFile, UnsupportedError, read_parquet, to_parquet
from numparq.column.jobs.task import DecodeTask
from numparq.format.open_file import OpenFile
from support.compare import assert_frames_equal, write_by_pyarrow

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def data():
    table = pa.table({"a": range(5000), "b": [f"text {n}" for n in range(5000)]})
    return write_by_pyarrow(table, row_group_size=1000, compression="none")


@pytest.fixture(scope="module")
def whole(data):
    return read_parquet(data)


@pytest.fixture
def path(tmp_path, data):
    path = tmp_path / "file.parquet"
    path.write_bytes(data)
    return path


# --- paths -------------------------------------------------------------------------------------------------


class Named:
    """A path-like object with no other methods."""

    def __init__(self, name):
        self.name = name

    def __fspath__(self):
        return self.name


def test_path_sources(path, whole):
    for source in (str(path), path, Named(os.fsencode(path)), Named(str(path)), f"file://{path}"):
        assert_frames_equal(read_parquet(source), whole)


def test_relative_and_home_paths(path, whole, monkeypatch):
    monkeypatch.chdir(path.parent)
    assert_frames_equal(read_parquet(path.name), whole)
    monkeypatch.setenv("HOME", str(path.parent))
    assert_frames_equal(read_parquet(f"~/{path.name}"), whole)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux allows names of any bytes")
def test_path_that_is_not_utf8(path, whole):
    other = os.path.join(os.fsencode(path.parent), b"\xff.parquet")
    os.rename(path, other)
    name = os.fsdecode(other)
    assert_frames_equal(read_parquet(name), whole)
    assert read_parquet(name, include=["file"])["file"].tolist() == [name] * len(whole)


def test_missing_file(tmp_path):
    for source in (tmp_path / "none.parquet", str(tmp_path / "none.parquet"), "", f"file://{tmp_path}/none"):
        with pytest.raises(FileNotFoundError):
            read_parquet(source)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read anything")
def test_unreadable_file(path):
    path.chmod(0)
    with pytest.raises(PermissionError):
        read_parquet(path)


def test_sources_other_than_one_file_are_refused(tmp_path, path):
    for source in (tmp_path, str(tmp_path)):
        with pytest.raises(UnsupportedError, match="a directory"):
            ParquetFile(source)
    for source in ([path], (path, path), []):
        with pytest.raises(UnsupportedError, match="several files"):
            ParquetFile(source)
    with pytest.raises(ValueError, match="list of files"):
        read_parquet([])
    for source in (None, 5, {}, object(), 1.5):
        with pytest.raises(TypeError, match="path must be a"):
            read_parquet(source)


def test_device_and_pipe_are_refused(tmp_path):
    with pytest.raises(InvalidFileError):
        read_parquet(os.devnull)
    if hasattr(os, "mkfifo"):
        reading, writing = os.pipe()
        try:
            with open(reading, "rb", closefd=False) as file, pytest.raises((OSError, TypeError, UnsupportedError)):
                read_parquet(file)
        finally:
            os.close(reading)
            os.close(writing)


# --- bytes -------------------------------------------------------------------------------------------------


def test_bytes_like_sources(data, whole):
    padded = b"xx" + data + b"yy"
    for source in (data, bytearray(data), memoryview(data), memoryview(padded)[2:-2], memoryview(data).cast("b")):
        assert_frames_equal(read_parquet(source), whole)


def test_non_contiguous_memory(data, whole):
    doubled = bytes(byte for byte in data for _ in range(2))
    assert_frames_equal(read_parquet(memoryview(doubled)[::2]), whole)


def test_memory_of_wider_items():
    files = (write_by_pyarrow(pa.table({"a" * length: [1, 2, 3]})) for length in range(1, 100))
    words = memoryview(next(data for data in files if len(data) % 4 == 0)).cast("I")
    assert read_parquet(words).iloc[:, 0].tolist() == [1, 2, 3]


def test_frames_do_not_refer_to_the_source_bytes(data, whole):
    source = bytearray(data)
    got = read_parquet(source)
    source[:] = bytes(len(source))
    assert_frames_equal(got, whole)
    source.clear()  # fails while a buffer is exported


def test_mapped_memory(path, whole):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert_frames_equal(read_parquet(mapped), whole)


# --- open files ----------------------------------------------------------------------------------------------


class RecordingBytesIO(io.BytesIO):
    """A BytesIO that records its reads."""

    def __init__(self, data):
        super().__init__(data)
        self.reads = []

    def readinto(self, buffer):
        self.reads.append((self.tell(), len(buffer)))
        return super().readinto(buffer)


class Minimal:
    """A file like fsspec's, without ``readinto``, that returns at most `most` bytes a read."""

    def __init__(self, data, most=1 << 30):
        self._file = io.BytesIO(data)
        self._most = most

    def read(self, size=-1):
        return self._file.read(min(size, self._most) if size >= 0 else size)

    def seek(self, position, whence=0):
        return self._file.seek(position, whence)

    def tell(self):
        return self._file.tell()


def test_open_files(path, data, whole):
    assert_frames_equal(read_parquet(io.BytesIO(data)), whole)
    for buffering in (-1, 0):
        with open(path, "rb", buffering=buffering) as file:
            assert_frames_equal(read_parquet(file), whole)
            assert_frames_equal(read_parquet(file, threads=4), whole)
            assert not file.closed
    with tempfile.TemporaryFile() as file:
        file.write(data)
        assert_frames_equal(read_parquet(file), whole)
    with tempfile.SpooledTemporaryFile() as file:
        file.write(data)
        assert_frames_equal(read_parquet(file), whole)


@pytest.mark.parametrize("most", [1, 7, 1000, 1 << 30])
def test_files_without_readinto(data, whole, most):
    source = Minimal(data if most > 1 else write_by_pyarrow(pa.table({"a": [1, 2]})), most)
    got = read_parquet(source, threads=3)
    if most > 1:
        assert_frames_equal(got, whole)
    else:
        assert got["a"].tolist() == [1, 2]


def test_fsspec(path, data, whole):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(str(path), "rb") as file:
        assert_frames_equal(read_parquet(file), whole)
    fsspec.filesystem("memory").pipe("/file.parquet", data)
    with fsspec.open("memory://file.parquet", "rb") as file:
        assert_frames_equal(read_parquet(file), whole)


def test_file_position_is_restored(path, data):
    for source in (io.BytesIO(data), Minimal(data), open(path, "rb")):  # noqa: SIM115
        for position in (0, 17, len(data), len(data) + 5):
            source.seek(position)
            read_parquet(source)
            assert source.tell() == position
    broken = io.BytesIO(data[:-1])
    broken.seek(9)
    with pytest.raises(InvalidFileError):
        read_parquet(broken)
    assert broken.tell() == 9


def test_text_mode_file(path):
    with open(path, encoding="latin-1") as file, pytest.raises(TypeError, match="binary mode"):
        read_parquet(file)
    with pytest.raises(TypeError, match="binary mode"):
        read_parquet(io.StringIO("PAR1"))


def test_closed_file(data):
    file = io.BytesIO(data)
    file.close()
    with pytest.raises(ValueError, match="closed"):
        read_parquet(file)


def test_errors_name_the_file(path, data):
    path.write_bytes(data[:-1])
    sources = {
        str(path): path,
        "<bytes>": data[:-1],
        "<BytesIO>": io.BytesIO(data[:-1]),
        "<Minimal>": Minimal(data[:-1]),
    }
    for name, source in sources.items():
        with pytest.raises(InvalidFileError) as caught:
            read_parquet(source)
        assert caught.value.where == {"file": name}
        assert repr(name) in str(caught.value)
    with open(path, "rb") as file, pytest.raises(InvalidFileError) as caught:
        read_parquet(file)
    assert caught.value.where == {"file": str(path)}


def test_file_truncated_during_a_read(path, data, monkeypatch):
    monkeypatch.setattr(OpenFile, "check_unchanged", lambda file: None)  # the file shrinks after this check
    with ParquetFile(path) as file:
        path.write_bytes(data[:2000])
        with pytest.raises(InvalidFileError, match="is truncated"):
            file.read()


def test_only_projected_chunks_are_read(data):
    file = RecordingBytesIO(data)
    with ParquetFile(file) as parquet:
        file.reads.clear()
        chunk = parquet.metadata.row_groups[2].columns[0].meta_data
        parquet.read(["a"], row_groups=[2], threads=1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    assert min(position for position, _ in file.reads) == start
    assert sum(length for _, length in file.reads) == chunk.total_compressed_size


def test_files_are_closed(path, whole):
    descriptors = pathlib.Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("this system does not list open files")
    before = len(list(descriptors.iterdir()))
    for _ in range(3):
        read_parquet(path)
        with pytest.raises(ValueError, match="'none'"):
            read_parquet(path, columns=["none"])
    assert len(list(descriptors.iterdir())) == before
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InvalidFileError):
        read_parquet(path)
    assert len(list(descriptors.iterdir())) == before


@pytest.mark.parametrize("many", [False, True], ids=["file", "dataset"])
def test_file_overwritten_while_open(tmp_path, many):
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"a": np.random.default_rng(0).integers(0, 1 << 60, 50_000)})
    path.write_bytes(to_parquet(frame))
    with Dataset([path]) if many else ParquetFile(path) as file:
        file.read(row_range=(0, 10))
        written = path.stat().st_mtime_ns
        path.write_bytes(to_parquet(frame[::-1].reset_index(drop=True)))  # in place: the same inode
        os.utime(path, ns=(written + 10**9, written + 10**9))
        with pytest.raises(InvalidFileError, match=r"has changed since it was opened.*a\.parquet"):
            file.read()


@pytest.mark.parametrize("damage", [False, True])
@pytest.mark.parametrize("filters", [None, [("x", ">=", 0)]])
def test_file_that_changes_while_it_is_decoded(tmp_path, monkeypatch, filters, damage):
    path = tmp_path / "a.parquet"
    table = pa.table({"x": range(50_000)})
    path.write_bytes(write_by_pyarrow(table, use_dictionary=False, compression="none", row_group_size=25_000))
    call = DecodeTask.__call__

    def decode(task):
        with path.open("r+b") as file:
            file.write(bytes(200_000) if damage else b"PAR1")
        os.utime(path, ns=(1, 1))
        call(task)

    monkeypatch.setattr(DecodeTask, "__call__", decode)
    with pytest.raises(InvalidFileError, match=r"has changed since it was opened.*a\.parquet"):
        read_parquet(path, filters=filters)
