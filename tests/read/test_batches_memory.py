"""Peak memory of batches from files much larger than the memory limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq

# Reads a small file first, so that everything is loaded, then the large one. Prints the rows of the large file, and by
# how many bytes the process's peak memory exceeded its memory before that read. Writing "5" to clear_refs resets the
# peak; only Linux has this file.
SCRIPT = """
import gc, json, os, sys
import numparq
from numparq.dataset import split_table

def memory(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) << 10

def batches(path):
    if how == "splits":
        table = split_table(path, **options)
        for split in table.splits:
            yield from table.frames(split, memory_limit=limit)
        return
    file = numparq.Dataset(path) if os.path.isdir(path) else numparq.ParquetFile(path)
    found = file.iter_batches(memory_limit=limit, **options)
    yield from found if how == "frames" else found.reader()

def read(path):
    if how == "read":
        try:
            return len(numparq.read_parquet(path, memory_limit=limit, **options))
        except numparq.LimitError:
            return 0
    return sum(map(len, batches(path)))

small, large, limit, how, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], json.loads(sys.argv[5])
read(small)
gc.collect()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = memory("VmRSS")
print(read(large), memory("VmHWM") - before)
"""


def table(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": np.arange(rows),
            "b": rng.random(rows),
            "c": pa.array(rng.integers(0, 1000, rows), mask=rng.random(rows) < 0.1),
            "s": pa.array(
                np.array([f"text number {number:05}" for number in range(1000)])[rng.integers(0, 1000, rows)]
            ),
            "t": np.char.add("x", np.arange(rows).astype(str)),
        }
    )


def write_file(path, rows: int, groups: int, **options) -> str:
    part = table(rows)
    with pq.ParquetWriter(path, part.schema, **options) as writer:
        for _ in range(groups):
            writer.write_table(part, row_group_size=rows)
    return str(path)


def measure_growth(folder, large: str, limit: int, how: str, small: str = "", **options) -> tuple[int, int]:
    small = small or write_file(folder / "small.parquet", 30_000, 3)
    command = [sys.executable, "-c", SCRIPT, small, large, str(limit), how, json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "clear_refs" in done.stderr:
        pytest.skip("this system cannot reset the peak memory of a process")
    assert done.returncode == 0, done.stderr
    rows, grown = map(int, done.stdout.split())
    return rows, grown


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("how", ["frames", "arrow"])
def test_peak_stays_below_the_limit(tmp_path, how):
    """The data takes three times the limit."""
    large = write_file(tmp_path / "large.parquet", 100_000, 8)
    rows, grown = measure_growth(tmp_path, large, 16 << 20, how)
    assert rows == 800_000
    assert grown < 16 << 20


@pytest.mark.slow
@pytest.mark.parametrize("how", ["frames", "arrow"])
def test_virtual_columns_count(tmp_path, how):
    """A row stores a byte, and has 70 bytes of virtual columns."""
    large = str(tmp_path / "large.parquet")
    rows = 4_000_000
    pq.write_table(pa.table({"a": np.zeros(rows, np.int8)}), large, row_group_size=rows)
    found, grown = measure_growth(tmp_path, large, 32 << 20, how, include=["row_number", "row_group", "file"])
    assert found == rows
    assert grown < 32 << 20


LARGE_PAGES = {
    "data page": ({"a": np.zeros(4_000_000)}, {"use_dictionary": False, "max_rows_per_page": 4_000_000}),
    "dictionary page": (
        {"a": [f"{number % 400:0100000}" for number in range(1600)]},
        {"dictionary_pagesize_limit": 1 << 30},
    ),
}


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("name", LARGE_PAGES)
def test_larger_page_is_refused(tmp_path, name, on_error):
    """Nothing of 32 MiB is decompressed with a limit of 16 MiB; no rows are lost with the page."""
    data, options = LARGE_PAGES[name]
    path = tmp_path / "large.parquet"
    pq.write_table(pa.table(data), path, compression="zstd", data_page_size=1 << 30, **options)
    with numparq.ParquetFile(path) as file:
        batches = file.iter_batches(memory_limit=16 << 20, batch_rows=10)
        with pytest.raises(numparq.LimitError, match=r"a page takes .* bytes while it is decoded.*column 'a'"):
            list(batches)
    with pytest.raises(numparq.LimitError, match=r"raise memory_limit|read fewer columns"):
        numparq.read_parquet(path, on_error=on_error, memory_limit=16 << 20)


@pytest.mark.parametrize("write_page_index", [False, True])
@pytest.mark.parametrize("limit", [1 << 20, 4 << 20])
def test_small_limits_for_a_chunk_of_small_pages(tmp_path, limit, write_page_index):
    """Windows of pages shrink with the limit: with those of 4 MiB nothing would be left to rows."""
    path, rows = tmp_path / "pages.parquet", 1_500_000
    options = {"use_dictionary": False, "compression": "none", "data_page_size": 800, "write_batch_size": 100}
    pq.write_table(pa.table({"a": range(rows)}), path, rows, write_page_index=write_page_index, **options)
    with numparq.ParquetFile(path) as file:
        batches = [batch["a"].to_numpy() for batch in file.iter_batches(memory_limit=limit, threads=1)]
    assert max(map(len, batches)) * 8 < limit // 4
    np.testing.assert_array_equal(np.concatenate(batches), np.arange(rows))


def test_too_small_limits_say_what_is_needed(tmp_path):
    path = tmp_path / "large.parquet"
    data = pa.table({"a": [f"{number:0100000}" for number in range(100)]})
    pq.write_table(data, path, use_dictionary=False, write_batch_size=1, data_page_size=1, compression="none")
    with numparq.ParquetFile(path) as file:
        with pytest.raises(numparq.LimitError, match="raise it to at least 320 KiB"):
            next(file.iter_batches(memory_limit=100 << 10))
        with pytest.raises(numparq.LimitError, match=r"a row takes about .*; raise memory_limit to .* MiB") as caught:
            next(file.iter_batches(memory_limit=640 << 10))
        enough = float(caught.value.message.split(" MiB, or")[0].split()[-1])
        assert sum(map(len, file.iter_batches(memory_limit=int(enough * (1 << 20))))) == 100


@pytest.mark.slow
@pytest.mark.parametrize("how", ["frames", "arrow"])
@pytest.mark.parametrize("groups", [1, 8, 80])
def test_peak_with_twenty_times_the_limit(tmp_path, groups, how):
    """The data takes 640 MiB and more, in row groups above or below the limit."""
    large = write_file(tmp_path / "large.parquet", 10_000_000 // groups, groups, write_page_index=groups != 1)
    rows, grown = measure_growth(tmp_path, large, 32 << 20, how)
    assert rows == 10_000_000
    assert grown < 32 << 20


# --- many shapes ------------------------------------------------------------------------------------------------------

# What memory_limit does not count (docs/batches.md): footers and page locations, a damaged column chunk, and what
# pyarrow's memory pool retains.
UNCOUNTED = 10 << 20


def long_name(folder, scale: int) -> str:
    return write_table(folder, "n" * 200, pa.table({"a": np.zeros(60_000 * scale, np.int8)}))


def repeated_strings(folder, scale: int) -> str:
    texts = pa.array([f"{number:05}" * 200 for number in range(50)])
    rows = 6000 * scale
    codes = np.random.default_rng(0).integers(0, 50, rows)
    return write_table(folder, "repeated", pa.table({"a": np.arange(rows), "s": texts.take(pa.array(codes))}))


def wide(folder, scale: int) -> str:
    values = np.random.default_rng(0).random(50 * scale)
    return write_table(folder, "wide", pa.table({f"c{number}": values + number for number in range(600)}), 25 * scale)


def nested(folder, scale: int) -> str:
    rows = 10_000 * scale
    offsets = np.arange(0, 4 * rows + 1, 4, dtype=np.int32)
    columns = [pa.ListArray.from_arrays(offsets, values) for values in (numbers(4 * rows), numbers(4 * rows, str))]
    return write_table(folder, "nested", pa.table(columns, names=["l", "s"]), rows // 4)


def numbers(count: int, dtype=np.int64) -> pa.Array:
    values = pa.chunked_array([pa.array(np.arange(count).astype(dtype))])
    return values.combine_chunks() if values.num_chunks == 1 else pa.concat_arrays(values.chunks)


def decimals(folder, scale: int) -> str:
    values = [Decimal(number) / 100 for number in range(20_000 * scale)]
    return write_table(folder, "decimals", pa.table({"d": pa.array(values, pa.decimal128(20, 2))}))


def mixed(folder, scale: int) -> str:
    return write_table(folder, "mixed", table(30_000 * scale), 10_000 * scale)


def damaged(folder, scale: int) -> str:
    path = write_table(folder, "damaged", table(30_000 * scale), 10_000 * scale, write_page_checksum=True)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(1)
    with open(path, "r+b") as file:
        file.seek(chunk.data_page_offset + chunk.total_compressed_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 255]))
    return path


def many_files(folder, scale: int) -> str:
    for number in range(3 * scale):
        write_table(folder / "many", f"{number:04}", table(10_000, number))
    return str(folder / "many")


def casts(folder, scale: int) -> str:
    """Write files whose columns become wider in the dataset, or are missing."""
    rows = 10_000 * scale
    wide = {"a": [1], "b": [1.5], "s": ["text"], "t": ["text"], "u": [1]}
    write_table(folder / "casts", "0", pa.table(wide))
    for number in range(4):
        narrow = pa.table({"a": pa.array(np.arange(rows), pa.int8(), safe=False), "b": np.zeros(rows, np.float32)})
        write_table(folder / "casts", f"{number + 1}", narrow, rows // 2)
    return str(folder / "casts")


def write_table(folder, name: str, data: pa.Table, row_group_size: int | None = None, **options) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / f"{name}.parquet")
    pq.write_table(data, path, row_group_size=row_group_size or len(data), **options)
    return path


MEMORY_CASES = {
    "long file names": (long_name, "frames", {"include": ["file"]}),
    "long file names, arrow": (long_name, "arrow", {"include": ["file", "row_number"]}),
    "repeated strings": (repeated_strings, "frames", {}),
    "repeated strings, arrow": (repeated_strings, "arrow", {}),
    "repeated strings, filtered": (repeated_strings, "frames", {"filters": "a > 100"}),
    "wide": (wide, "frames", {}),
    "wide, filtered": (wide, "arrow", {"filters": "c5 > 5.1"}),
    "nested": (nested, "frames", {}),
    "nested, arrow": (nested, "arrow", {}),
    "nested, skip": (nested, "frames", {"on_error": "skip"}),
    "explode": (nested, "frames", {"columns": ["l"], "explode": "l"}),
    "explode, arrow": (nested, "arrow", {"columns": ["s"], "explode": "s"}),
    "decimals": (decimals, "frames", {}),
    "decimals, read": (decimals, "read", {}),
    "mixed": (mixed, "frames", {}),
    "mixed, 1000 rows": (mixed, "frames", {"batch_rows": 1000}),
    "mixed, nullable": (mixed, "frames", {"dtype_backend": "numpy_nullable"}),
    "mixed, read": (mixed, "read", {"filters": "c < 500"}),
    "mixed, skip": (mixed, "frames", {"on_error": "skip", "filters": "c < 500"}),
    "damaged": (damaged, "frames", {"on_error": "skip"}),
    "many files": (many_files, "frames", {}),
    "many files, arrow": (many_files, "arrow", {"include": ["file"]}),
    "many files, skip": (many_files, "frames", {"on_error": "skip", "filters": "c < 500"}),
    "casts": (casts, "frames", {}),
    "casts, arrow": (casts, "arrow", {}),
    "casts, read": (casts, "read", {}),
    "casts, skip": (casts, "read", {"on_error": "skip", "columns": ["a", "u"]}),
    "splits": (mixed, "splits", {}),
    "splits of many files": (many_files, "splits", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMORY_CASES)
def test_peak_by_shape(tmp_path, name):
    """Decoded, the data is several times larger than the limits; a read that is refused takes nothing."""
    write, how, options = MEMORY_CASES[name]
    small, large = write(tmp_path / "small", 1), write(tmp_path / "large", 60)
    for limit in (16 << 20, 64 << 20, 256 << 20):
        rows, grown = measure_growth(tmp_path, large, limit, how, small, **options)
        assert rows > 0 or how == "read"
        assert grown < limit + UNCOUNTED, f"limit {limit >> 20} MiB, grown {grown >> 20} MiB"


def test_each_unit_holds_the_dictionaries_of_its_row_group(tmp_path):
    """Few rows of many categories take as much as all of them: units do not become smaller and smaller for it."""
    names = np.array([f"category {number:08}" for number in range(100_000)])
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(100_000), 2))
    large = str(tmp_path / "large.parquet")
    pq.write_table(pa.table({"a": names[rows]}), large, row_group_size=len(rows), dictionary_pagesize_limit=1 << 24)
    small = str(tmp_path / "small.parquet")
    pq.write_table(pa.table({"a": ["x", "y"]}), small)
    with pytest.raises(
        numparq.LimitError, match=r"8 bytes beside dictionaries of .* raise memory_limit to (\d+) MiB"
    ) as low:
        next(numparq.ParquetFile(large).iter_batches(categories=["a"], memory_limit=20 << 20))
    limit = int(str(low.value).split("raise memory_limit to ")[1].split(" MiB")[0]) << 20
    assert limit < 100 << 20
    found, grown = measure_growth(tmp_path, large, limit, "frames", small, categories=["a"])
    assert found == len(rows)
    assert grown < limit
