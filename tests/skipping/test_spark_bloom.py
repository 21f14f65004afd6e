"""Spark's Bloom filter: hashes, cells and probes against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numparq.skipping import spark_bloom
from numparq.skipping.java_stream import parse_header
from numparq.skipping.spark_bloom import build_cell, hash_integers, hash_texts, probe_cells
from support.kernels.engines import ENGINES
from support.oracles import spark_bloom as oracle

INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6)
TEXTS = st.lists(st.binary(max_size=11), max_size=6)
SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


@pytest.fixture(autouse=True, params=ENGINES, ids=repr)
def engine(request):
    """Run each test with one engine, whatever Hypothesis draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_bloom, "spark_bloom_kernels", request.param)
        yield request.param


def unblocked(cell: bytes) -> bytes:
    """Return the payload of a cell."""
    place, found = parse_header(cell), b""
    while cell[place : place + 1] != b"x":
        long = cell[place : place + 1] == b"z"
        size = int.from_bytes(cell[place + 1 : place + 5], "big") if long else cell[place + 1]
        place += 5 if long else 2
        found += cell[place : place + size]
        place += size
    assert place == len(cell) - 1
    return found


def probed(cells: list[bytes], hashes: np.ndarray) -> list[bool]:
    ends = np.cumsum([0, *map(len, cells)])
    data = np.frombuffer(b"".join(cells), np.uint8)
    return probe_cells(data, ends[:-1], ends[1:], hashes).tolist()


def test_hashes_of_spark():
    """Spark's `hash(1L)` and `hash('ABC')`, whose seed is 42."""
    assert oracle.hash_item(1, 42) == -1712319331 & 0xFFFFFFFF
    assert oracle.hash_item(b"ABC", 42) == -757602832 & 0xFFFFFFFF


@SETTINGS
@given(INTEGERS, TEXTS)
def test_any_hashes(integers, texts):
    for items, hashes in ((integers, hash_integers(np.array(integers, np.int64))), (texts, hash_texts(texts))):
        wanted = []
        for item in items:
            first = oracle.hash_item(item, 0)
            wanted += [first, oracle.hash_item(item, first)]
        assert hashes.tolist() == wanted


@SETTINGS
@given(TEXTS, INTEGERS, st.sampled_from([1, 5, 29, 300, 853, 1000]), st.sampled_from([0.01, 0.2]))
def test_any_cells(texts, integers, expected, error_rate):
    cells = [
        build_cell(hash_texts(texts), expected, error_rate),
        build_cell(hash_integers(np.array(integers)), 7, 0.01),
    ]
    assert unblocked(cells[0]) == oracle.payload_of(texts, expected, error_rate)
    assert unblocked(cells[1]) == oracle.payload_of(integers, 7, 0.01)
    for text in [*texts, b"other"]:
        num_hashes, num_words = oracle.shape_of(expected, error_rate)
        bits = set().union(*(oracle.bits_of(each, num_hashes, 64 * num_words) for each in texts))
        wanted = oracle.bits_of(text, num_hashes, 64 * num_words) <= bits
        assert probed(cells[:1], hash_texts([text])) == [wanted]
        assert wanted or text not in texts
    for number in integers:
        assert probed(cells, hash_integers(np.array([number])))[1]


def test_cut_at_every_byte():
    """A cell that is not whole says nothing."""
    for expected in (20, 1000):  # one block, and several
        cell = build_cell(hash_texts([b"a"]), expected, 0.01)
        absent = hash_texts([b"absent"])
        assert probed([cell], absent) == [False]
        steps = (
            range(len(cell))
            if expected == 20
            else [*range(300, 330), *range(1020, 1045), *range(len(cell) - 9, len(cell))]
        )
        assert probed([cell[:end] for end in steps], absent) == [True] * len(steps)
        assert probed([cell + b"x", cell], absent) == [True, False]


def test_damaged_heads_say_nothing():
    cell, absent = bytearray(build_cell(hash_texts([b"a"]), 20, 0.01)), hash_texts([b"absent"])
    start = parse_header(bytes(cell)) + 2
    for place, value in ((3, 2), (7, 0), (7, 101), (4, 1), (11, 9), (8, 255)):
        damaged = bytearray(cell)
        damaged[start + place] = value
        assert probed([bytes(damaged), bytes(cell)], absent) == [True, False], (place, value)


def test_many_headers():
    """Cells of several writers in one column are probed; beyond a few of them they say nothing."""
    cell, absent = build_cell(hash_texts([b"a"]), 20, 0.01), hash_texts([b"absent"])
    place = cell.index(b"BloomFilterMetaData") + len(b"BloomFilterMetaData") + 7
    cells = [cell[:place] + bytes([serial]) + cell[place + 1 :] for serial in range(20)]
    assert probed(cells, absent) == [False] * 8 + [True] * 12
    assert probed([b"", cell, b"no stream"] * 3, absent) == [True, False, True] * 3


def test_empty():
    assert probed([], hash_texts([b"a"])) == []
    assert probed([build_cell(hash_texts([]), 1, 0.01)], hash_texts([b"a"])) == [False]
