"""The limit that a refused read names holds: the peak memory in a process of its own, for each output type."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq

# Reads a small file first, so that everything is loaded. Then reads with the limit that the error of a too small one
# names, and prints the rows, the limit, and by how much the peak memory grew.
SCRIPT = """
import gc, json, re, sys
import numparq
from numparq.scan.memory import release_free_memory

small, large, threads, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

def memory(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) << 10

def read(path, limit):
    return numparq.read_parquet(path, memory_limit=limit, threads=threads, **options)

read(small, 1 << 30)
try:
    read(large, 1)
except numparq.LimitError as error:
    number, unit = re.search("raise it to ([0-9.]+) ([KMG]iB)", str(error)).groups()
limit = int(float(number) * UNITS[unit])
gc.collect()
release_free_memory()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = memory("VmRSS")
print(len(read(large, limit)), limit, memory("VmHWM") - before)
"""


def texts(count: int, width: int) -> pa.Array:
    return pa.array([f"{number:0{width}}" for number in range(count)])


def repeated(values: pa.Array, count: int) -> pa.Array:
    return values.take(pa.array(np.random.default_rng(0).integers(0, len(values), count)))


def items(count: int, width: int = 16) -> pa.Array:
    return pa.array([number.to_bytes(width, "big") for number in range(count)], pa.binary(width))


def with_nulls(values: pa.Array) -> pa.Array:
    places = np.arange(len(values))
    return values.take(pa.array(places, mask=places % 10 == 3))


def lists(values: pa.Array, length: int) -> pa.Array:
    return pa.ListArray.from_arrays(np.arange(0, len(values) + 1, length, dtype=np.int32), values)


def decimals(count: int, precision: int = 20) -> pa.Array:
    return pa.array([Decimal(number) / 100 for number in range(count)], pa.decimal128(precision, 2))


def dictionary(values: pa.Array, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.random.default_rng(0).integers(0, len(values), count, np.int32), values)


def structs(count: int) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(np.arange(count)), texts(count, 10)], ["x", "y"])


def maps(count: int) -> pa.Array:
    offsets = np.arange(0, 3 * count + 1, 3, dtype=np.int32)
    return pa.MapArray.from_arrays(offsets, texts(3 * count, 6), pa.array(np.arange(3 * count)))


PLAIN: dict[str, Any] = {"use_dictionary": False}
ONE_DICTIONARY: dict[str, Any] = {"dictionary_pagesize_limit": 1 << 30, "compression": "zstd"}
CATEGORIES: dict[str, Any] = {"categories": ["a"]}
NULLABLE, ARROW = {"dtype_backend": "numpy_nullable"}, {"dtype_backend": "pyarrow"}

# Rows, the column by its number of rows, options of the writer, and of the read.
KINDS: dict[str, tuple[int, Callable[[int], Any], dict[str, Any], dict[str, Any]]] = {
    "int64": (1_500_000, np.arange, PLAIN, {}),
    "int8": (4_000_000, lambda count: pa.array(np.zeros(count, np.int8)), {}, {}),
    "integers with nulls": (1_000_000, lambda count: with_nulls(pa.array(np.arange(count))), {}, {}),
    "booleans with nulls": (1_000_000, lambda count: with_nulls(pa.array(np.arange(count) % 2 == 0)), {}, {}),
    "timestamps": (1_500_000, lambda count: pa.array(np.arange(count), pa.timestamp("us", "UTC")), PLAIN, {}),
    "dates": (500_000, lambda count: pa.array(np.arange(count, dtype=np.int32), pa.date32()), PLAIN, {}),
    "times": (300_000, lambda count: pa.array(np.arange(count), pa.time64("us")), PLAIN, {}),
    "strings": (500_000, lambda count: texts(count, 8), PLAIN, {}),
    "long strings": (40_000, lambda count: texts(count, 400), PLAIN | {"compression": "zstd"}, {}),
    "repeated strings": (500_000, lambda count: repeated(texts(50, 40), count), {}, {}),
    "binary": (200_000, lambda count: texts(count, 20).cast(pa.binary()), PLAIN, {}),
    "fixed-size binary": (200_000, items, PLAIN, {}),
    "fixed-size binary with nulls": (200_000, lambda count: with_nulls(items(count, 40)), PLAIN, {}),
    "uuids": (200_000, lambda count: pa.ExtensionArray.from_storage(pa.uuid(), items(count)), PLAIN, {}),
    "decimals": (200_000, decimals, PLAIN, {}),
    "decimals of integers": (200_000, lambda count: decimals(count, 9), {"store_decimal_as_integer": True}, {}),
    "few categories": (2_000_000, lambda count: dictionary(texts(50, 10), count), {}, {}),
    "many categories": (400_000, lambda count: dictionary(texts(count // 3, 10), count), ONE_DICTIONARY, {}),
    "long categories": (200_000, lambda count: dictionary(texts(count // 100, 2000), count), ONE_DICTIONARY, {}),
    "categories": (400_000, lambda count: repeated(texts(count // 3, 10), count), ONE_DICTIONARY, CATEGORIES),
    "categories of long strings": (
        200_000,
        lambda count: repeated(texts(count // 100, 2000), count),
        ONE_DICTIONARY,
        CATEGORIES,
    ),
    "categories, PLAIN": (200_000, lambda count: texts(count, 8), PLAIN, CATEGORIES),
    "categories of integers": (500_000, np.arange, {}, CATEGORIES),
    "categories of decimals": (100_000, decimals, {}, CATEGORIES),
    "lists": (200_000, lambda count: lists(pa.array(np.arange(4 * count)), 4), PLAIN, {}),
    "lists of strings": (100_000, lambda count: lists(texts(4 * count, 12), 4), PLAIN, {}),
    "lists of decimals": (60_000, lambda count: lists(decimals(2 * count), 2), PLAIN, {}),
    "lists of structs": (50_000, lambda count: lists(structs(4 * count), 4), PLAIN, {}),
    "structs": (200_000, structs, PLAIN, {}),
    "maps": (60_000, maps, PLAIN, {}),
    "virtual columns": (1_000_000, np.zeros, {}, {"include": ["file", "row_number", "row_group"]}),
    "nullable integers": (1_000_000, lambda count: with_nulls(pa.array(np.arange(count))), {}, NULLABLE),
    "nullable booleans": (2_000_000, lambda count: with_nulls(pa.array(np.arange(count) % 2 == 0)), {}, NULLABLE),
    "Arrow booleans": (4_000_000, lambda count: pa.array(np.arange(count) % 2 == 0), {}, ARROW),
    "Arrow strings": (500_000, lambda count: texts(count, 8), PLAIN, ARROW),
    "Arrow decimals": (500_000, lambda count: pa.array(np.arange(count)).cast(pa.decimal128(21, 2)), PLAIN, ARROW),
    "Arrow lists": (300_000, lambda count: lists(pa.array(np.arange(4 * count)), 4), PLAIN, ARROW),
}
# A reading of the resident memory errs by the allocator's arenas.
TOLERANCE = 1 << 20


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_smallest_limit_holds(tmp_path, name, threads):
    check_limit(tmp_path, name, threads)


@pytest.mark.parametrize("name", ["categories", "fixed-size binary"])
def test_limits_of_objects_and_categories_hold(tmp_path, name):
    check_limit(tmp_path, name, 1)


def check_limit(folder, name: str, threads: int) -> None:
    rows, column, written, options = KINDS[name]
    for file, count in (("small", 3000), ("large", rows)):
        pq.write_table(pa.table({"a": column(count)}), folder / f"{file}.parquet", row_group_size=count // 3, **written)
    files = [str(folder / "small.parquet"), str(folder / "large.parquet")]
    command = [sys.executable, "-c", SCRIPT, *files, str(threads), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "clear_refs" in done.stderr:
        pytest.skip("this system cannot reset the peak memory of a process")
    assert done.returncode == 0, done.stderr
    found, limit, peak = map(int, done.stdout.split())
    assert found == rows
    assert peak < limit * 1.02 + TOLERANCE, f"limit {limit >> 20} MiB, peak {peak >> 20} MiB"
    assert limit < 3 * peak + (4 << 20), f"limit {limit >> 20} MiB, peak {peak >> 20} MiB"


def test_refusal_names_a_limit_that_suffices(tmp_path):
    path = tmp_path / "a.parquet"
    for count in (1, 1000, 300_000):
        pq.write_table(pa.table({"a": np.arange(count), "s": texts(count, 10)}), path, row_group_size=100_000)
        with pytest.raises(numparq.LimitError, match="raise it to") as caught:
            numparq.read_parquet(path, memory_limit=1)
        number, unit = caught.value.message.split("raise it to ")[1].split(",")[0].split()
        enough = int(float(number) * {"KiB": 1 << 10, "MiB": 1 << 20}[unit])
        assert len(numparq.read_parquet(path, memory_limit=enough)) == count
