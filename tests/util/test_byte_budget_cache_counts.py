"""`numparq.cache_info` counts what the cache of files holds: compared with what its eviction frees."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Reads one file first, so that everything is loaded; then the others. Prints the bytes counted, and those that are
# freed when all of them are evicted.
SCRIPT = """
import gc, sys, tracemalloc
import numparq
from numparq import col
from numparq.io import local_source
from numparq.util.byte_budget_cache import file_cache

def evict():
    cache = file_cache()
    budget, cache.max_bytes = cache.max_bytes, 0
    cache.entry("another file")
    cache.max_bytes = budget
    assert not cache.info().num_bytes
    gc.collect()

def read(path):
    return eval(sys.argv[1])

local_source.SETTLED_NS = 0  # else nothing is cached of files that have just been written
read(sys.argv[2])
evict()
tracemalloc.start()
for path in sys.argv[3:]:
    read(path)
gc.collect()
counted, held = numparq.cache_info().num_bytes, tracemalloc.get_traced_memory()[0]
evict()
print(counted, held - tracemalloc.get_traced_memory()[0])
"""

FILTER = "numparq.read_parquet(path, ['a'], (col('a') > 30) & (col('a') < 39))"
STRINGS = "numparq.read_parquet(path, ['a'], (col('s') > '0' * 98 + '10') & (col('s') < '0' * 97 + '100'))"
KEYS = "numparq.read_parquet(path, ['a'], col('k') == '0000000000000000000x')"
ROWS = "numparq.read_parquet(path, ['k'], row_range=(100, 200))"
BATCHES = "list(numparq.ParquetFile(path).iter_batches(memory_limit=1 << 20))"
PAGES: dict[str, Any] = {"data_page_size": 2000, "write_batch_size": 20, "use_dictionary": False}
CASES: dict[str, tuple[int, str, dict[str, Any]]] = {
    "one page": (300, FILTER, {"row_group_size": 100}),
    "few pages": (2000, FILTER, {"row_group_size": 500}),
    "many pages": (20_000, FILTER, PAGES),
    "bounds of strings": (4000, STRINGS, PAGES),
    "dictionaries": (50_000, KEYS, {"row_group_size": 25_000}),
    "selected rows": (50_000, ROWS, {"row_group_size": 25_000}),
    "page headers": (300_000, FILTER, {"data_page_size": 20_000, "use_dictionary": False, "write_page_index": False}),
    "batches": (300_000, BATCHES, {"data_page_size": 20_000, "use_dictionary": False, "write_page_index": False}),
}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", CASES)
def test_counted_bytes_are_held(tmp_path, name):
    rows, read, options = CASES[name]
    paths = []
    for number in range(12):
        numbers = np.arange(rows)
        columns = {"a": numbers, f"b{number}": numbers * 0.5}
        if rows < 10_000:
            columns["s"] = pa.array([f"{value:0100}" for value in numbers.tolist()])
        if "'k'" in read:
            columns["k"] = pa.array([f"{value:020}" for value in (numbers % 5000).tolist()])
        paths.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(pa.table(columns), paths[-1], **{"write_page_index": True, "row_group_size": rows, **options})
    environment = {**os.environ, "NUMPARQ_CACHE_BYTES": str(1 << 28)}
    done = subprocess.run([sys.executable, "-c", SCRIPT, read, *paths], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    counted, held = map(int, done.stdout.split())
    assert held > 12 << 10
    assert 0.75 < counted / held < 1.25
