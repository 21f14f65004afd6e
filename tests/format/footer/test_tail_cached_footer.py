"""Footers longer than the tail: kept by the identity of the file, within the budget of the cache."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.format.footer import tail
from numparq.format.footer.file_metadata import Footer
from numparq.io import local_source
from numparq.util import byte_budget_cache
from numparq.util.byte_budget_cache import ByteBudgetCache

COLUMNS = ["c7", "c11", "c250"]


@pytest.fixture
def parsed(monkeypatch):
    """Record the lengths of the footers that are parsed; files are cached as if they were older."""
    found: list[int] = []
    original = tail.parse_footer
    monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    monkeypatch.setattr(tail, "parse_footer", lambda data, length: found.append(length) or original(data, length))
    return found


def write(path, num_columns=3000, first=0) -> None:
    frame = pd.DataFrame(np.arange(first, first + 2 * num_columns).reshape(2, -1))
    numparq.to_parquet(frame.add_prefix("c"), path, write_statistics=False)


def read(path) -> list[list[int]]:
    return numparq.read_parquet(path, COLUMNS, filters=[("c7", ">=", 0)]).to_numpy().tolist()


def bytes_of_warm_read(path) -> int:
    read(path)
    with numparq.ParquetFile(path) as file:
        file.read(COLUMNS)
        return file._file.source.num_bytes


def test_warm_read_costs_the_columns_that_it_reads(tmp_path, parsed):
    """A read of the same columns of a file ten times as wide parses no footer, and reads hardly more bytes."""
    write(tmp_path / "a", 300)
    write(tmp_path / "b", 3000)
    few, many = bytes_of_warm_read(tmp_path / "a"), bytes_of_warm_read(tmp_path / "b")
    assert many <= few + 100
    assert len(parsed) == 2
    assert min(parsed) > 64 << 10


@pytest.mark.parametrize("how", ["renamed", "times restored"])
def test_replaced_file_is_noticed(tmp_path, parsed, how):
    """Size and footer stay the same."""
    path = tmp_path / "a"
    for first in (10_000, 20_000, 30_000):
        write(tmp_path / "new" if how == "renamed" else path, first=first)
        if how == "renamed":
            os.utime(tmp_path / "new", ns=(0, 0))
            os.replace(tmp_path / "new", path)
        else:
            os.utime(path, ns=(10**18, 10**18))
        for _ in range(2):
            assert read(path) == [[first + 7, first + 11, first + 250], [first + 3007, first + 3011, first + 3250]]
    assert len(parsed) == 3


def test_new_file_is_not_cached(tmp_path, parsed, monkeypatch):
    monkeypatch.setattr(local_source, "SETTLED_NS", 2 * 10**9)
    write(tmp_path / "a")
    before = numparq.cache_info()
    assert read(tmp_path / "a") == read(tmp_path / "a")
    assert len(parsed) == 2
    assert numparq.cache_info() == before


def test_what_reads_derive_from_a_footer_is_charged(tmp_path, parsed, monkeypatch):
    """A footer that outgrows the budget with all its columns leaves the cache, alone, for another file's."""
    write(tmp_path / "a")
    with numparq.ParquetFile(tmp_path / "a") as file:
        footer: Footer = file._file.footer
        size = footer.num_bytes
        assert footer.length < size < 10 * footer.length
    cache = ByteBudgetCache(size + (1 << 20))
    monkeypatch.setattr(byte_budget_cache, "file_cache", lambda: cache)
    monkeypatch.setattr(tail, "file_cache", lambda: cache)
    cache.entry("other")
    read(tmp_path / "a")
    with numparq.ParquetFile(tmp_path / "a") as file:
        assert size < cache.info().num_bytes <= cache.max_bytes
        file.read()
    with numparq.ParquetFile(tmp_path / "a") as file:
        assert file._file.footer.num_bytes > cache.max_bytes
    assert cache.info().num_files == 2
    assert cache.info().num_bytes > cache.max_bytes
    cache.entry("other")
    cache.entry("next")
    assert cache.info().num_files == 2
    assert cache.info().num_bytes < 10_000
