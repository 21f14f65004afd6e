"""Pruning by damaged, huge and shared Bloom filters."""

from __future__ import annotations

import copy
import struct

import numpy as np
import pytest

import numparq
from numparq import col
from numparq.format import bloom_filter
from numparq.format.bloom_filter import BloomFilter
from numparq.prune import bloom_blocks
from support.files.builder import from_bytes, to_bytes, with_footer
from support.planned_file import FRAME, ROWS, STEP, WRITERS, PlannedFile, pruning_steps


def with_bloom(change, data=None) -> bytes:
    data = bytearray(data or WRITERS["numparq, Bloom filters"](None))
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = from_bytes("FileMetaData", bytes(data[-8 - length : -8]))
    body = data[: -8 - length]
    for group in footer.row_groups:
        change(body, group.columns[3].meta_data)
    return with_footer(bytes(body), footer)


def set_length(length):
    return lambda body, chunk: setattr(chunk, "bloom_filter_length", length)


def set_header(**fields):
    def change(body, chunk):
        start = chunk.bloom_filter_offset
        header, size = from_bytes("BloomFilterHeader", bytes(body[start : start + 64]))
        for name, value in fields.items():
            setattr(header, name, value)
        written = to_bytes(header)
        bits = body[start + size : start + chunk.bloom_filter_length]
        chunk.bloom_filter_offset = len(body)
        body += written + bits
        chunk.bloom_filter_length = len(written) + len(bits)

    return change


@pytest.mark.parametrize("length", [None, 0, 7, 33, 100, 10_000, -4])
def test_missing_or_wrong_bloom_filter_length(length):
    planned = PlannedFile(with_bloom(set_length(length)))
    assert planned.pruned(col("s") == "v00400x").num_rows == 0
    assert planned.pruned(col("s") == "v00400").num_rows == 64


@pytest.mark.parametrize(
    "change",
    [
        set_header(numBytes=33),
        set_header(numBytes=0),
        set_header(numBytes=-32),
        set_header(numBytes=1 << 30),
        set_header(numBytes=(1 << 31) - 32),
        set_header(algorithm=None),
        set_length(2**31 - 1),
        lambda body, chunk: setattr(chunk, "bloom_filter_offset", 1 << 60),
        lambda body, chunk: setattr(chunk, "bloom_filter_offset", 2),
    ],
)
def test_invalid_bloom_filters_are_ignored(change):
    planned = PlannedFile(with_bloom(change))
    plan = planned.pruned(col("s") == "v00400x")
    assert "Bloom filter" not in pruning_steps(plan)
    assert set(np.flatnonzero(FRAME.s == "v00400").tolist()) <= planned.rows(planned.pruned(col("s") == "v00400"))


def with_row_groups_again(data: bytes, times: int, change=lambda group, number: None) -> bytes:
    """Return the file with its first row group listed many times in the footer."""
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
    footer.row_groups = [copy.deepcopy(footer.row_groups[0]) for _ in range(times)]
    for number, group in enumerate(footer.row_groups):
        group.ordinal = None
        change(group, number)
    footer.num_rows = sum(group.num_rows for group in footer.row_groups)
    return with_footer(data[: -8 - length], footer)


ABSENT = [f"v{number:05d}x" for number in range(0, 1333, 20)]


def one_filter() -> bytes:
    return numparq.to_parquet(
        FRAME[["s"]],
        bloom_filter_options={"s": True},
        write_statistics=False,
        write_page_index=False,
        use_dictionary=False,
    )


def test_shared_bloom_filter_is_read_once():
    planned = PlannedFile(with_row_groups_again(one_filter(), 50))
    source = planned.count_requests()
    assert planned.pruned(col("s").isin(ABSENT)).num_rows in (0, 50 * ROWS)
    assert sum(stop - start for start, stop in source.ranges) < planned.file.source.size


def test_overlapping_bloom_filters_are_not_read():
    def move(group, number):
        group.columns[0].meta_data.bloom_filter_offset -= number

    data = with_row_groups_again(one_filter(), 50, move)
    planned = PlannedFile(data)
    source = planned.count_requests()
    assert planned.pruned(col("s") == "v00400x").num_rows == 50 * ROWS
    assert not source.ranges

    def drop_length(group, number):  # the same by the lengths in their headers
        group.columns[0].meta_data.bloom_filter_length = None
        group.columns[0].meta_data.bloom_filter_offset = headers + 16 * number

    body = data[: -8 - struct.unpack("<I", data[-8:-4])[0]]
    footer, _ = from_bytes("FileMetaData", data[len(body) : -8])
    start = footer.row_groups[0].columns[0].meta_data.bloom_filter_offset
    header, size = from_bytes("BloomFilterHeader", body[start : start + 64])
    headers = len(body)
    body += (body[start : start + size].ljust(16, b"\0")) * 50 + bytes(header.numBytes)
    planned = PlannedFile(with_row_groups_again(with_footer(body, footer), 50, drop_length))
    assert planned.pruned(col("s") == "v00400x").num_rows == 50 * ROWS
    assert planned.pruned(col("s").isin(ABSENT)).num_rows == 50 * ROWS


@pytest.mark.parametrize("count", [1, 3, 4096])
def test_one_hash_matches_several_hashes(count):
    rng = np.random.default_rng(count)
    hashes = rng.integers(0, 1 << 64, 200, np.uint64)
    hashes[:2] = 0, (1 << 64) - 1
    bits = rng.integers(0, 256, count * bloom_filter.BLOCK_BYTES, np.uint8) | 0xB7
    blocks = bloom_blocks.BloomFilterBlocks(0, count)
    found = []
    for each in hashes:
        alone, twice = np.array([each]), np.array([each, each])
        assert alone.size == 1
        assert blocks.missing_blocks(alone) == blocks.missing_blocks(twice)
        for first, several in blocks.missing_blocks(alone):
            start = first * bloom_filter.BLOCK_BYTES
            blocks.add(first, several, bits[start : start + several * bloom_filter.BLOCK_BYTES])
        assert blocks.missing_blocks(alone) == [] == blocks.missing_blocks(twice)
        found += blocks.might_contain(alone).tolist()
        assert blocks.might_contain(twice).tolist() == [found[-1]] * 2
    assert found == BloomFilter(bits).might_contain(hashes).tolist()
    assert {*found} == {True, False}


@pytest.mark.parametrize("length", ["told", "not told"])
def test_bloom_filters_are_read_in_batches_and_cache_is_bounded(length, monkeypatch):
    wide = numparq.to_parquet(FRAME, row_group_size=STEP, bloom_filter_options={"s": True, "x": True})
    wide = wide if length == "told" else with_bloom(set_length(None), wide)
    expression = col("s").isin(ABSENT) & ~col("x").is_null()
    plan = PlannedFile(wide).pruned(expression)
    monkeypatch.setattr(bloom_blocks, "_AT_ONCE", 1)
    monkeypatch.setattr(bloom_blocks, "_MOST_KEPT", 1500)
    planned = PlannedFile(wide)
    source = planned.count_requests()
    assert planned.pruned(expression) == plan
    assert "Bloom filter" in pruning_steps(plan)
    assert source.trips >= 4
    (store,) = [kept for kept in planned.file.bloom_filters.values() if isinstance(kept, bloom_blocks.BloomFilterCache)]
    assert store.num_bytes <= 1500
    planned.pruned(col("s") == "v00007x")
    trips = source.trips
    planned.pruned(col("s") == "v00007x")
    assert source.trips == trips
    assert 0 < store.num_bytes <= 1500
