"""The cache of files between reads: budget, eviction, forks, files that are replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.io import local_source
from numparq.prune import index_reader
from numparq.scan import file_reader
from numparq.util import byte_budget_cache
from numparq.util.byte_budget_cache import ByteBudgetCache, CachedFile

BUDGET = 100_000


def test_budget_is_kept_and_the_least_recently_opened_files_go_first():
    cache = ByteBudgetCache(BUDGET)
    for number in range(10_000):
        cache.entry(number).put({"pages": number}, 900)
        assert cache.info().num_bytes <= BUDGET
        assert cache.entry(number)["pages"] == number
        cache.entry(0).put({"pages": 0}, 0)
    info = cache.info()
    assert 40 < info.num_files < 60
    assert cache.entry(0)["pages"] == 0
    assert not cache.entry(5000)


def test_dictionary_that_is_there_is_charged_once():
    cache = ByteBudgetCache(BUDGET)
    entry = cache.entry("file")
    before = cache.info().num_bytes
    for _ in range(3):
        entry.put_dictionary("key", b"dictionary", 1_000)
    assert cache.info().num_bytes == before + 1_000
    assert entry.dictionary_bytes == 1_000


def test_without_a_budget_no_dictionary_is_kept(monkeypatch):
    cache = ByteBudgetCache(0)
    monkeypatch.setattr(byte_budget_cache, "file_cache", lambda: cache)
    for entry in (cache.entry("file"), CachedFile()):
        entry.put_dictionary("key", b"dictionary", 10)
        assert not entry


def test_large_file_is_not_cached_but_usable_and_evicts_no_other():
    cache = ByteBudgetCache(BUDGET)
    other = cache.entry("other").num_bytes
    entry = cache.entry("large")
    entry.put({"pages": 1}, BUDGET)
    entry.put({"more": 2}, 10)
    assert entry == {"pages": 1, "more": 2}
    assert cache.info()[:3] == (other, BUDGET, 1)
    assert ByteBudgetCache(0).entry("any") == {}


def test_footer_of_the_last_file_may_exceed_the_budget():
    cache = ByteBudgetCache(BUDGET)
    small, other = cache.entry("small"), cache.entry("other")
    small.put({"pages": 1}, 1000)
    for _ in range(3):
        cache.entry("wide").put_footer("footer", "columns", 4 * BUDGET)
    wide = cache.entry("wide")
    wide.put({"pages": 1}, BUDGET // 2)
    assert (cache.info().hits, cache.info().misses) == (3, 3)
    assert wide == {"footer": "columns", "pages": 1}
    assert cache.info().num_bytes == sum(entry.num_bytes for entry in (other, small, wide))
    assert 4.5 * BUDGET < wide.num_bytes < 5 * BUDGET
    small.put({"more": 2}, 1000)  # of a file that is still open
    other.put({"pages": 3}, BUDGET + 1)
    assert [entry.cache is None for entry in (other, small, wide)] == [True, False, False]
    cache.entry("next").put_footer("footer", "columns", 10)
    assert wide.cache is None
    assert cache.info()[:3] == (small.num_bytes + byte_budget_cache._ENTRY_BYTES + 10, BUDGET, 2)


def test_footers_of_more_than_four_budgets_and_pages_of_more_than_one_are_not_kept():
    cache = ByteBudgetCache(BUDGET)
    for footer_bytes, page_bytes in ((4 * BUDGET + 1, 0), (4 * BUDGET, BUDGET)):
        entry = cache.entry(footer_bytes)
        entry.put_footer("footer", "columns", footer_bytes)
        entry.put({"pages": 1}, page_bytes)
        assert entry.cache is None
        assert cache.info().num_files == 0


def test_entry_outside_of_the_cache_counts_nothing():
    entry = CachedFile()
    entry.put({"pages": 1}, BUDGET)
    assert entry["pages"] == 1
    assert entry.num_bytes == 0


def test_dictionaries_take_a_quarter_of_the_budget_in_a_file_and_half_in_all():
    cache = ByteBudgetCache(BUDGET)
    entry = cache.entry("first")
    entry.put_dictionary("small", 1, BUDGET // 5)
    entry.put_dictionary("too much", 2, BUDGET // 5)
    assert entry == {"small": 1}
    for number in range(10):
        cache.entry(number).put_dictionary("small", number, BUDGET // 5)
        assert cache.info().num_bytes <= BUDGET // 2
        assert cache.entry(number) == {"small": number}
    assert cache.info().num_files == 2
    assert entry.cache is None
    outside = CachedFile()
    for number in range(100):
        outside.put_dictionary(number, number, 1 << 20)
    assert len(outside) == 16


@pytest.mark.parametrize(("value", "result"), [("", "67108864"), ("1000", "1000"), ("0", "0")])
def test_budget_of_the_environment(value, result):
    command = "import numparq; print(numparq.cache_info().max_bytes)"
    environment = {**os.environ, "NUMPARQ_CACHE_BYTES": value}
    done = subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == result


def test_wrong_budget_is_named(monkeypatch):
    monkeypatch.setenv("NUMPARQ_CACHE_BYTES", "64MB")
    byte_budget_cache.file_cache.cache_clear()
    with pytest.raises(ValueError, match=r"NUMPARQ_CACHE_BYTES must be a number of bytes, not '64MB'"):
        numparq.cache_info()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_child_begins_with_an_empty_cache():
    byte_budget_cache.file_cache().entry("parent")
    process = os.fork()
    if not process:
        os._exit(numparq.cache_info().num_files)
    assert os.waitpid(process, 0)[1] == 0
    assert numparq.cache_info().num_files > 0


ROWS = 4000


def write(path, offset, **options) -> None:
    """Write rows of which row `n` has the key ``n + offset``; files of offsets with as many digits have one size."""
    frame = pd.DataFrame({"key": np.arange(ROWS) + offset, "value": np.arange(ROWS) * 2})
    with open(path, "wb") as file:  # in place: the inode stays
        chosen = {"use_dictionary": False, "compression": "none", "data_page_size": 4096, "write_batch_size": 100}
        pq.write_table(pa.Table.from_pandas(frame), file, **(chosen | options))


def values(path, key) -> list[int]:
    return numparq.read_parquet(path, ["value"], filters=col("key") == key)["value"].tolist()


@pytest.fixture
def walks(monkeypatch):
    """Record the walks over page headers, also of small chunks."""
    found: list[str] = []
    original = index_reader.walk_page_headers
    monkeypatch.setattr(index_reader, "MIN_CHUNK_BYTES", 0)
    monkeypatch.setattr(
        index_reader,
        "walk_page_headers",
        lambda reader, *chunk: found.append(reader.source.name) or original(reader, *chunk),
    )
    return found


def test_tables_of_an_unchanged_file_are_kept(tmp_path, monkeypatch, walks):
    monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    write(tmp_path / "a", 10_000)
    before = numparq.cache_info()
    assert values(tmp_path / "a", 10_007) == [14]
    count = len(walks)
    assert count > 0
    assert values(tmp_path / "a", 10_008) == [16]
    assert values(tmp_path / "a", 12_000) == [4000]
    assert len(walks) == count
    after = numparq.cache_info()
    assert after.num_files == before.num_files + 1
    assert after.hits >= before.hits + 2


def test_new_file_is_not_cached(tmp_path, walks):
    write(tmp_path / "a", 10_000)
    before = numparq.cache_info()
    for _ in range(2):
        assert values(tmp_path / "a", 10_007) == [14]
    assert len(walks) == 2 * len(set(walks)) * 2
    assert numparq.cache_info() == before


@pytest.mark.parametrize("how", ["in place", "renamed", "times restored"])
@pytest.mark.parametrize("options", [{}, {"write_statistics": False}, {"write_page_index": True}], ids=repr)
def test_replaced_file_is_noticed(tmp_path, monkeypatch, walks, how, options):
    """Files of equal size, and without statistics of equal footers, one after the other at the same path."""
    path = tmp_path / "a"
    if how != "in place":  # else a tick of the clock is all that tells them apart, which SETTLED_NS is for
        monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    sizes = set()
    for number in range(3):
        offset = 10_000 + 1000 * number
        if how == "renamed":
            write(tmp_path / "new", offset, **options)
            os.utime(tmp_path / "new", ns=(0, 0))
            os.replace(tmp_path / "new", path)
        else:
            write(path, offset, **options)
        if how == "times restored":
            os.utime(path, ns=(10**18, 10**18))
        sizes.add(os.path.getsize(path))
        for key in (offset, offset + 1500, offset + ROWS - 1):
            assert values(path, key) == [(key - offset) * 2]
        assert values(path, offset - 1) == values(path, offset + ROWS) == []
    assert len(sizes) == 1


def test_file_that_shrinks_is_an_error(tmp_path, monkeypatch, walks):
    monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    write(tmp_path / "a", 10_000)
    assert values(tmp_path / "a", 10_007) == [14]
    with numparq.ParquetFile(tmp_path / "a") as file:
        os.truncate(tmp_path / "a", 5000)
        with pytest.raises(numparq.InvalidFileError, match="has changed since it was opened"):
            file.read(["value"], filters=col("key") == 13_000)


def test_file_that_changes_while_it_is_filtered_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "a"
    write(path, 10_000)
    decode = file_reader.decode_columns

    def decode_and_change(*arguments):
        columns = decode(*arguments)
        os.utime(path, ns=(10**18, 10**18))
        return columns

    monkeypatch.setattr(file_reader, "decode_columns", decode_and_change)
    with pytest.raises(numparq.InvalidFileError, match="has changed since it was opened"):
        values(path, 10_007)


def test_write_with_restored_time_has_another_entry(tmp_path, monkeypatch):
    """Size, inode, modification time and footer stay the same: only the time of change tells."""
    monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    path = tmp_path / "a"
    write(path, 10_000, write_statistics=False)
    os.utime(path, ns=(10**18, 10**18))
    with numparq.ParquetFile(path) as file:
        file._file.entry.put({"pages": 1}, 100)
    with numparq.ParquetFile(path) as file:
        assert file._file.entry == {"pages": 1}
    time.sleep(0.05)  # more than a tick of the clock of the file system
    write(path, 20_000, write_statistics=False)
    os.utime(path, ns=(10**18, 10**18))
    with numparq.ParquetFile(path) as file:
        assert file._file.entry == {}
