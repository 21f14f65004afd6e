"""Peak memory of batches from files much larger than the memory limit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq

# Reads a small file first, so that everything is loaded, then the large one. Prints the rows of the large file, and by
# how many bytes the process's peak memory exceeded its memory before that read. Writing "5" to clear_refs resets the
# peak; only Linux has this file.
SCRIPT = """
import gc, sys
import numparq

def memory(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) << 10

def read(path):
    rows = 0
    with numparq.ParquetFile(path) as file:
        batches = file.iter_batches(memory_limit=limit, include=include)
        for batch in batches if how == "frames" else batches.reader():
            rows += len(batch)
    return rows

small, large, limit, how, include = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:]
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


def measure_growth(folder, large: str, limit: int, how: str, *include: str) -> tuple[int, int]:
    small = write_file(folder / "small.parquet", 30_000, 3)
    command = [sys.executable, "-c", SCRIPT, small, large, str(limit), how, *include]
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
    found, grown = measure_growth(tmp_path, large, 32 << 20, how, "row_number", "row_group", "file")
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


@pytest.mark.slow
@pytest.mark.parametrize("how", ["frames", "arrow"])
@pytest.mark.parametrize("groups", [1, 8, 80])
def test_peak_with_twenty_times_the_limit(tmp_path, groups, how):
    """The data takes 640 MiB and more, in row groups above or below the limit."""
    large = write_file(tmp_path / "large.parquet", 10_000_000 // groups, groups, write_page_index=groups != 1)
    rows, grown = measure_growth(tmp_path, large, 32 << 20, how)
    assert rows == 10_000_000
    assert grown < 32 << 20
