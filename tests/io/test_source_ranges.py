"""Several byte ranges in one read, from every kind of source; the cached tail of a file."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from numparq import Coalescing, ParquetFile, to_parquet
from numparq.errors import InvalidFileError, LimitError
from numparq.format.footer import tail as footer_module
from numparq.io import source as ranges_module
from numparq.io.coalesce import LOCAL_COALESCING
from numparq.io.local_source import BytesSource, FileObjectSource, FileSource
from numparq.io.multi_file_source import FILE_STRIDE, MultiFileSource
from numparq.io.sibling_files import SiblingFiles
from numparq.io.tail_source import TailSource
from numparq.kernels.tables import SLACK

DATA = np.random.default_rng(3).integers(0, 256, 3000, np.uint8).tobytes()
KINDS = ["bytes", "file", "file object", "tail", "whole tail", "joint"]


@pytest.fixture(params=KINDS)
def source(request, tmp_path):
    (tmp_path / "file").write_bytes(DATA)
    opened = {
        "bytes": lambda: BytesSource(DATA),
        "file": lambda: FileSource(tmp_path / "file"),
        "file object": lambda: FileObjectSource(io.BytesIO(DATA)),
        "tail": lambda: TailSource(FileSource(tmp_path / "file"), 100),
        "whole tail": lambda: TailSource(FileSource(tmp_path / "file"), 3000),
        "joint": lambda: MultiFileSource(FileSource(tmp_path / "file"), SiblingFiles(tmp_path / "file")),
    }[request.param]()
    yield opened
    opened.close()


def test_ranges_have_their_bytes_and_slack(source):
    expected = [(0, 3000), (5, 5), (2999, 3000), (2900, 2950), (0, 1), (2890, 2910), (3000, 3000)]
    for ranges in (expected, np.array(expected, np.int64), iter(expected)):
        pieces = source.read_ranges(ranges)
        assert [len(piece) for piece in pieces] == [stop - start + SLACK for start, stop in expected]
        for piece, (start, stop) in zip(pieces, expected, strict=True):
            assert piece.dtype == np.uint8
            assert piece[: stop - start].tobytes() == DATA[start:stop]
    assert source.read_ranges([]) == []
    assert source.is_remote is False


def test_ranges_outside_the_file_raise_before_allocation(source):
    before = source.num_requests
    for start, stop in ((0, 3001), (-1, 5), (7, 6), (0, 2**60), (2**61, 2**61 + 1), (-(2**63), 2**63 - 1)):
        assert not source.contains(start, stop)
        with pytest.raises(InvalidFileError, match="beyond the file's 3000 bytes"):
            source.read_ranges([(0, 10), (start, stop)])
    assert source.num_requests == before
    assert source.contains(0, 3000)


def test_memory_error_becomes_limit_error(monkeypatch):
    def none(*_):
        raise MemoryError

    monkeypatch.setattr(ranges_module.np, "empty", none)
    with pytest.raises(LimitError, match="3,000 bytes of the file"):
        FileObjectSource(io.BytesIO(DATA)).read_ranges([(0, 3000)])


def test_request_counts_of_many_threads(source):
    before = source.num_requests, source.num_bytes
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: [source.read_into(7, np.empty(11, np.uint8)) for _ in range(300)], range(8)):
            pass
    requests, num_bytes = source.num_requests - before[0], source.num_bytes - before[1]
    # Or the whole file, in the tail, by each thread that came before the first had it.
    assert (requests, num_bytes) == (2400, 2400 * 11) or (1 <= requests <= 8 and num_bytes == requests * 3000)


def test_ranges_of_several_files(tmp_path):
    (tmp_path / "first").write_bytes(DATA)
    (tmp_path / "a").write_bytes(b"a" * 50)
    (tmp_path / "b").write_bytes(b"b" * 60)
    source = MultiFileSource(FileSource(tmp_path / "first"), SiblingFiles(tmp_path / "first"))
    a, b = source.add_file("a")[0], source.add_file("b")[0]
    pieces = source.read_ranges([(b + 10, b + 60), (0, 5), (a, a + 50), (b, b + 1)])
    assert [piece[: len(piece) - SLACK].tobytes() for piece in pieces] == [b"b" * 50, DATA[:5], b"a" * 50, b"b"]
    assert source.num_requests == 4
    assert source.num_bytes == 106
    for start, stop in (
        (a, a + 51),
        (a, b + 1),
        (0, a + 1),
        (3 * FILE_STRIDE, 3 * FILE_STRIDE + 1),
        (-FILE_STRIDE, 1 - FILE_STRIDE),
    ):
        assert not source.contains(start, stop)
        with pytest.raises(InvalidFileError):
            source.read_ranges([(start, stop)])
    source.close()


# --- the tail of a file -----------------------------------------------------------------------------------------------


def test_tail_is_read_once():
    inner = FileObjectSource(io.BytesIO(DATA))
    source = TailSource(inner, 1000)
    assert source.num_requests == 0
    assert source.tail.tobytes() == DATA[2000:]
    assert not source.tail.flags.writeable
    for start, stop in ((2000, 3000), (2000, 2001), (2999, 3000), (2500, 2500)):
        assert source.view(start, stop - start, SLACK)[: stop - start].tobytes() == DATA[start:stop]
        out = np.empty(stop - start, np.uint8)
        source.read_into(start, out)
        assert out.tobytes() == DATA[start:stop]
        source.read_ranges([(start, stop)])
    assert source.num_requests == 1
    assert source.num_bytes == 1000
    assert source.view(1999, 2, 0) is None
    assert source.view(2999, 2, 0) is None
    assert source.view(2990, 10, SLACK + 1) is None
    source.read_ranges([(2100, 2200), (1990, 2010), (0, 5), (2300, 2400)])
    assert source.num_requests == 3
    assert source.num_bytes == 1000 + 25
    with pytest.raises(InvalidFileError):
        source.read_into(2999, np.empty(2, np.uint8))


def test_opened_file_keeps_its_tail(tmp_path, frame, monkeypatch):
    data = to_parquet(frame)
    (tmp_path / "file.parquet").write_bytes(data)
    for path in (tmp_path / "file.parquet", io.BytesIO(data), data):
        with ParquetFile(path) as file:
            assert file._file.source.num_requests == 2, "the tail and the first four bytes"
            assert file._file.tail.tobytes() == data[-(64 << 10) :]
            assert file._file.coalescing is LOCAL_COALESCING
            before = file._file.source.num_requests
            chunk = file.metadata.row_groups[0].columns[0]
            start, length = chunk.column_index_offset, chunk.column_index_length
            (piece,) = file._file.source.read_ranges([(start, start + length)])
            assert piece[:length].tobytes() == data[start : start + length]
            assert file._file.source.num_requests - before == (path is data), "views of bytes count as requests"
    monkeypatch.setattr(footer_module, "TAIL_BYTES", 100)
    with ParquetFile(tmp_path / "file.parquet") as file:
        assert file._file.source.num_requests == 3
        assert file._file.source.num_bytes == len(data) - file._file.footer_start - 8 + 8 + 4
        assert len(file._file.tail) == 100


def test_coalescing_argument(frame):
    coalescing = Coalescing(gap=5, max_bytes=1000)
    with ParquetFile(to_parquet(frame), coalescing=coalescing) as file:
        assert file._file.coalescing is coalescing
    with pytest.raises(TypeError, match=r"coalescing must be a numparq\.Coalescing or None, not int"):
        ParquetFile(to_parquet(frame), coalescing=5)


@pytest.fixture
def frame():
    import pandas as pd

    return pd.DataFrame({"number": np.random.default_rng(1).random(20_000)})
