"""Threads and windows: results do not depend on how the work is divided."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from numparq import CorruptPageError, ParquetFile, read_parquet
from numparq.column.jobs import schedule, task
from numparq.column.read import decompress, page_sources, pages
from numparq.format.footer import column_chunks
from numparq.format.footer.file_metadata import Footer
from numparq.kernels.kernel_groups import kernels
from support.compare import assert_frames_equal, read_by_pandas, write_by_pyarrow

pa = pytest.importorskip("pyarrow")

ROWS = 4_000
TEXTS = ["", "x", "some words", "grün", "a longer text, of some forty bytes or more", "中文"]


def table(rows=ROWS, nulls=True, seed=0):
    """Return columns for every way of decoding: fixed, narrowed, widened, masked, strings, codes, objects."""
    rng = np.random.default_rng(seed)
    missing = rng.random(rows) < 0.2 if nulls else np.zeros(rows, bool)
    if nulls:
        missing[rows // 3 : rows // 2] = True  # pages with nulls only
    numbers = rng.integers(-1000, 1000, rows)
    words = np.array(TEXTS, object)[rng.integers(0, len(TEXTS), rows)]
    distinct = np.array([f"{'v' * (n % 50)}{n}" for n in range(rows)], object)

    def column(arrow_type, values):
        return pa.array(values, arrow_type, mask=missing)

    return pa.table(
        {
            "int64": column(pa.int64(), numbers),
            "digits": column(pa.int64(), numbers + 2**60),  # not exact as float64
            "int8": column(pa.int8(), (numbers % 100).astype("i1")),
            "float": column(pa.float32(), numbers.astype("f4")),
            "bool": column(pa.bool_(), numbers > 0),
            "moment": column(pa.timestamp("us"), numbers),
            "text": column(pa.string(), words),
            "distinct": column(pa.string(), distinct),
            "bytes": column(pa.binary(), [text.encode() for text in distinct]),
            "fixed": column(pa.binary(4), [number.tobytes() for number in numbers.astype("<i4")]),
            "category": column(pa.string(), words).dictionary_encode(),
            "decimal": column(pa.int32(), numbers.astype("i4")).cast(pa.decimal128(12, 2)),
        }
    )


FILES = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "snappy": {"compression": "snappy", "write_page_checksum": True},
    "V2": {"compression": "zstd", "data_page_version": "2.0"},
    "given up": {"compression": "snappy", "dictionary_pagesize_limit": 2000},
    "row groups": {"compression": "snappy", "row_group_size": 1100},
}


@pytest.fixture(
    scope="module", params=[*((name, True) for name in FILES), ("plain", False), ("given up", False)], ids=str
)
def data(request):
    name, nulls = request.param
    return write_by_pyarrow(table(nulls=nulls), data_page_size=1000, write_batch_size=50, **FILES[name])


@pytest.fixture(scope="module")
def expected(data):
    """Return pyarrow's frame, but with exact integers where nulls would make them float64."""
    frame = read_by_pandas(data)
    if frame["digits"].dtype == "float64":
        frame["digits"] = read_by_pandas(data, dtype_backend="numpy_nullable")["digits"]
    return frame


SIZES = [(1, 1, 1), (100, 50, 10), (3000, 700, 2000), (1 << 20, 1, 1 << 20)]


@pytest.fixture(params=SIZES, ids=str)
def small_sizes(request, monkeypatch):
    """Shrink windows, batches and jobs below the size of column chunks, and even of pages."""
    window, batch, part = request.param
    monkeypatch.setattr(page_sources, "WINDOW_BYTES", window)
    monkeypatch.setattr(decompress, "BATCH_BYTES", batch)
    monkeypatch.setattr(pages, "MIN_RUN_BYTES", part)
    monkeypatch.setattr(schedule, "MIN_SHARE_BYTES", part)
    monkeypatch.setattr(schedule, "SINGLE_THREAD_BYTES", part)
    monkeypatch.setattr(schedule, "MIN_SHARED_TASK_BYTES", min(part, schedule.MIN_SHARED_TASK_BYTES))
    monkeypatch.setattr(schedule, "MAX_COALESCED_BYTES", window)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(data, expected, threads):
    assert_frames_equal(read_parquet(data, threads=threads), expected)


@pytest.mark.parametrize("threads", [1, 5])
def test_windows_smaller_than_chunks(data, expected, threads, small_sizes):
    assert_frames_equal(read_parquet(data, threads=threads), expected)
    first, stop = ROWS // 3 - 77, ROWS // 3 + 1234
    for source in (data, io.BytesIO(data)):
        got = read_parquet(source, threads=threads, row_range=(first, stop), columns=["distinct", "int64", "category"])
        part = expected.loc[first : stop - 1, ["distinct", "int64", "category"]].reset_index(drop=True)
        pd.testing.assert_frame_equal(
            got.astype({"category": "str"}), part.astype({"category": "str"}), check_dtype=False
        )


def test_small_windows_with_other_backends(data, small_sizes):
    for dtype_backend in ("numpy_nullable", "pyarrow"):
        assert_frames_equal(
            read_parquet(data, threads=2, dtype_backend=dtype_backend),
            read_by_pandas(data, dtype_backend=dtype_backend),
        )


def test_single_columns(data, expected, small_sizes):
    for column in ("int64", "digits", "bool", "distinct", "category"):
        assert_frames_equal(read_parquet(data, columns=[column], threads=3), expected[[column]])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("column", ["int64", "text", "distinct", "category"])
@pytest.mark.parametrize("nulls", [False, True])
def test_huge_chunk_is_split_between_threads(monkeypatch, column, nulls):
    """Several threads decode its pages, whose rows stay in order."""
    big = write_by_pyarrow(table(200_000, nulls).select([column]), data_page_size=20_000, write_batch_size=500)
    counts = []
    monkeypatch.setattr(pages, "MIN_RUN_BYTES", 10_000)
    monkeypatch.setattr(schedule, "MIN_SHARE_BYTES", 1)
    split = pages.split_data_pages

    def split_counted(*arguments):
        runs = split(*arguments)
        counts.append(len(runs))
        return runs

    monkeypatch.setattr(task, "split_data_pages", split_counted)
    got = read_parquet(big, threads=4)
    assert max(counts) > 4
    assert_frames_equal(got, read_by_pandas(big))
    assert_frames_equal(read_parquet(big, threads=1), got)
    part = read_parquet(big, threads=4, row_range=(70_123, 130_321))
    pd.testing.assert_frame_equal(
        part, got.iloc[70_123:130_321].reset_index(drop=True), check_dtype=False, check_categorical=False
    )


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_chunks_larger_than_a_window(tmp_path, compression):
    """Windows have their real size, as in reads of large files."""
    rng = np.random.default_rng(3)
    rows = page_sources.WINDOW_BYTES // 4
    big = pa.table(
        {
            "int": pa.array(rng.integers(0, 2**62, rows)),
            "gaps": pa.array(rng.random(rows), mask=rng.random(rows) < 0.3),
            "text": [f"{number:020d}" for number in rng.integers(0, 2**62, rows // 2).tolist()] * 2,
        }
    )
    data = write_by_pyarrow(big, use_dictionary=False, compression=compression)
    path = tmp_path / "file.parquet"
    path.write_bytes(data)
    expected = read_by_pandas(path)
    for source in (data, path):
        for threads in (1, 2):
            pd.testing.assert_frame_equal(read_parquet(source, threads=threads), expected)
    for first in (0, rows // 2, rows - 5):
        got = read_parquet(path, row_range=(first, first + 5))
        pd.testing.assert_frame_equal(got, expected.iloc[first : first + 5].reset_index(drop=True), check_dtype=False)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_first_error_does_not_depend_on_threads(threads):
    sound = write_by_pyarrow(
        table(), row_group_size=1000, compression="none", use_dictionary=False, write_page_checksum=True
    )
    damaged = bytearray(sound)
    metadata = ParquetFile(sound).metadata
    for group, column in ((1, 7), (2, 0), (3, 3)):
        chunk = metadata.row_groups[group].columns[column].meta_data
        damaged[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    for _ in range(5):
        with pytest.raises(CorruptPageError, match="checksum") as caught:
            read_parquet(bytes(damaged), threads=threads)
        assert caught.value.where["row_group"] == 2  # row group 1 is damaged in strings, which are decoded last
        assert caught.value.where["column"] == "int64"


def test_reads_leave_no_thread(data):
    read_parquet(data, threads=5)
    with pytest.raises(CorruptPageError):
        read_parquet(_broken(data), threads=5)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("numparq")]


def _broken(data):
    chunk = ParquetFile(data).metadata.row_groups[0].columns[0].meta_data
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return data[:start] + bytes(10) + data[start + 10 :]


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(1)
def test_one_file_read_by_many_threads(tmp_path, data, expected):
    path = tmp_path / "file.parquet"
    path.write_bytes(data)
    names = list(expected.columns)
    tasks = [(names[n % len(names) :][:3], 1 + n % 3) for n in range(24)]
    with open(path, "rb") as opened:
        for source in (path, data, opened):
            with ParquetFile(source) as file, ThreadPoolExecutor(6) as pool:
                frames = list(pool.map(lambda task: file.read(task[0], threads=task[1]), tasks))
            for (columns, _), got in zip(tasks, frames, strict=True):
                pd.testing.assert_frame_equal(got, expected[columns])


def test_chunk_metadata_is_parsed_once(data, monkeypatch):
    """A thread that parses a chunk again would clear its metadata for the other threads."""
    reads = []

    def slowly(bytes_, starts, ends, places, *rest):
        reads.extend(places.tolist())
        time.sleep(0.002)  # releases the GIL
        return kernels.read_thrift_structs(bytes_, starts, ends, places, *rest)

    shared = ParquetFile(data)._file.footer
    footer = Footer(shared.data, shared.length)  # nothing parsed yet
    groups, columns = range(len(footer.row_group_num_rows)), range(footer.num_leaves)
    expected = shared.chunks.read_table(groups, columns)
    monkeypatch.setattr(column_chunks, "kernels", SimpleNamespace(read_thrift_structs=slowly))
    start = threading.Barrier(6)

    def use(number):
        start.wait()
        for column in columns[number % 3 :]:
            footer.chunks.read_table(groups, [column])
        return footer.chunks.read_table(groups, columns)

    with ThreadPoolExecutor(6) as pool:
        for table in pool.map(use, range(6)):
            for name, values in expected.items():
                np.testing.assert_array_equal(table[name], values)
    assert len(reads) == len(set(reads)) == len(groups) * len(columns)


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(2)
def test_many_files_opened_by_many_threads(data, expected):
    """Schemas, metadata and selections are read concurrently."""

    def use(number):
        with ParquetFile(data) as file:
            columns = file.schema.columns[number % 5 :: 2]
            assert file.metadata.num_rows == ROWS
            return columns, file.read(columns, nrows=number * 50, include=["row_number"])

    with ThreadPoolExecutor(8) as pool:
        for number, (columns, got) in enumerate(pool.map(use, range(40))):
            assert got["row_number"].tolist() == list(range(number * 50))
            pd.testing.assert_frame_equal(
                got[columns], expected[columns].iloc[: number * 50], check_dtype=False, check_categorical=False
            )


FORK = """
import os, sys, threading
import pandas as pd
from numparq import read_parquet
path = sys.argv[1]
before = read_parquet(path, threads=3)
stop = threading.Event()
def keep_reading():
    while not stop.is_set():
        read_parquet(path, threads=2)
reader = threading.Thread(target=keep_reading)
reader.start()
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for threads in (1, 3):
                pd.testing.assert_frame_equal(read_parquet(path, threads=threads), before)
            status = 0
        finally:
            os._exit(status)
    children.append(child)
statuses = [os.waitpid(child, 0)[1] for child in children]
stop.set()
reader.join()
pd.testing.assert_frame_equal(read_parquet(path, threads=3), before)
sys.exit(any(statuses))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_forked_children_read(tmp_path):
    path = tmp_path / "file.parquet"
    path.write_bytes(write_by_pyarrow(table(2000), row_group_size=500))
    # Without warnings: Python warns about forks while threads run.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, str(path)],
        timeout=300,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
