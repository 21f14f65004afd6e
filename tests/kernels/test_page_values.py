"""Dropping nulls, counting valid values by page, cutting binary pages, and gathering dictionary values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.oracles import encoders as oracle


def validities(rng, count):
    for share in (0.0, 0.03, 0.5, 1.0):
        yield (rng.random(count) < share).astype(np.uint8)


@engines
@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 12, 16, 21])
def test_drop_nulls_fixed(engine, width):
    rng = np.random.default_rng(width)
    for count in (0, 1, 9, engine.size(1000)):
        values = rng.integers(0, 256, (count, width), np.uint8)
        for validity in validities(rng, count):
            out = GuardedBuffer(rng, count * width)
            kept = engine.drop_nulls_fixed(values.reshape(-1), width, validity, count, out.array)
            out.check()
            expected = [values[i].tobytes() for i in range(count) if validity[i]]
            assert (kept, out.array[: kept * width].tobytes()) == (len(expected), b"".join(expected))


@engines
@pytest.mark.parametrize("item", ["i4", "i8"])
def test_drop_nulls_numbers(engine, item):
    rng = np.random.default_rng(0)
    kernel = engine.drop_nulls_i4 if item == "i4" else engine.drop_nulls_i8
    for count in (0, 1, 9, engine.size(1000)):
        values = rng.integers(-(1 << 31), 1 << 31, count).astype(item)
        for validity in validities(rng, count):
            out = GuardedBuffer(rng, count, item)
            kept = kernel(values, validity, count, out.array)
            out.check()
            assert out.array[:kept].tolist() == [values[i] for i in range(count) if validity[i]]


@engines
def test_count_valid_by_page(engine):
    rng = np.random.default_rng(0)
    for count in (0, 1, 40, engine.size(1000)):
        for validity in validities(rng, count):
            bounds = np.sort(np.append(rng.integers(0, count + 1, 12), [0, count])).astype(np.int64)
            out = GuardedBuffer(rng, len(bounds) - 1, "i8")
            total = engine.count_valid_by_page(validity, bounds, len(bounds) - 1, out.array)
            out.check()
            expected = [int(validity[a:b].sum()) for a, b in pairwise(bounds.tolist())]
            assert (total, out.array.tolist()) == (int(validity.sum()), expected)


@given(
    lengths=st.lists(st.one_of(st.integers(0, 9), st.integers(0, 200)), max_size=60),
    extra=st.integers(0, 4),
    max_bytes=st.integers(0, 120),
    max_rows=st.integers(1, 12),
)
def test_cut_binary_pages(lengths, extra, max_bytes, max_rows):
    starts = np.cumsum([0, *lengths], dtype=np.int64)[:-1]
    ends = starts + np.array(lengths, np.int64)
    expected = oracle.split_pages(lengths, extra, max_bytes, max_rows)
    room = max_binary_pages(len(lengths), sum(lengths) + extra * len(lengths), max_bytes, max_rows)
    for engine in ENGINES:
        out = GuardedBuffer(np.random.default_rng(0), room + 1, "i8")
        found = engine.cut_binary_pages(starts, ends, len(lengths), extra, max_bytes, max_rows, out.array)
        out.check()
        assert out.array[: found + 1].tolist() == expected


@engines
@pytest.mark.parametrize("width", [1, 2, 4, 5, 8, 16])
def test_gather_fixed(engine, width):
    rng = np.random.default_rng(width)
    values = rng.integers(0, 256, (30, width), np.uint8)
    for count in (0, 1, engine.size(500)):
        codes = rng.integers(0, 30, count).astype(np.int32)
        out = GuardedBuffer(rng, count * width)
        assert engine.gather_fixed(values.reshape(-1), width, codes, count, out.array) == count
        out.check()
        assert out.array.tobytes() == b"".join(values[code].tobytes() for code in codes)


@engines
def test_gather_int64(engine):
    rng = np.random.default_rng(0)
    values = rng.integers(-9, 1 << 60, 30)
    codes = rng.integers(0, 30, 50).astype(np.int32)
    out = GuardedBuffer(rng, 50, "i8")
    assert engine.gather_i8(values, codes, 50, out.array) == 50
    out.check()
    assert out.array.tolist() == [values[code] for code in codes]


def max_binary_pages(count: int, total_bytes: int, max_bytes: int, max_rows: int) -> int:
    """Return the most pages that `cut_binary_pages` makes of `count` values.

    `total_bytes` includes what each value takes besides its own bytes. A page ends when it has `max_rows` rows, or
    when the next value would exceed `max_bytes`.
    """
    return min(count, count // max(max_rows, 1) + 2 * total_bytes // max(max_bytes, 1) + 1)


@given(values=st.lists(st.none() | st.integers(-(1 << 31), (1 << 31) - 1), max_size=60))
def test_drop_nulls_any_values(values):
    validity = np.array([value is not None for value in values], np.uint8)
    expected = [value for value in values if value is not None]
    for engine in ENGINES:
        for name, item in (("drop_nulls_i4", "i4"), ("drop_nulls_i8", "i8")):
            stored, out = (
                np.array([value or 0 for value in values], item),
                GuardedBuffer(np.random.default_rng(0), len(values), item),
            )
            assert getattr(engine, name)(stored, validity, len(values), out.array) == len(expected)
            out.check()
            assert out.array[: len(expected)].tolist() == expected
        out = GuardedBuffer(np.random.default_rng(0), 8 * len(values))
        assert engine.drop_nulls_fixed(stored.view(np.uint8), 8, validity, len(values), out.array) == len(expected)
        out.check()
        assert out.array[: 8 * len(expected)].view("i8").tolist() == expected


@given(validity=st.lists(st.integers(0, 1), max_size=60), cuts=st.lists(st.integers(0, 60), max_size=5))
def test_count_valid_any_pages(validity, cuts):
    bounds = np.array([0, *sorted(min(place, len(validity)) for place in cuts), len(validity)], np.int64)
    for engine in ENGINES:
        out = GuardedBuffer(np.random.default_rng(0), len(bounds) - 1, "i8")
        assert engine.count_valid_by_page(np.array(validity, np.uint8), bounds, len(bounds) - 1, out.array) == sum(
            validity
        )
        out.check()
        assert out.array.tolist() == [sum(validity[start:stop]) for start, stop in pairwise(bounds.tolist())]


@given(values=st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=9), data=st.data())
def test_gather_any_codes(values, data):
    codes = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=40)), np.int32)
    expected = b"".join(values[code] for code in codes)
    stored = np.frombuffer(b"".join(values), np.uint8)
    for engine in ENGINES:
        out, wide = (
            GuardedBuffer(np.random.default_rng(0), len(expected)),
            GuardedBuffer(np.random.default_rng(0), len(codes), "i8"),
        )
        assert engine.gather_fixed(stored, 8, codes, len(codes), out.array) == len(codes)
        assert engine.gather_i8(stored.view("i8"), codes, len(codes), wide.array) == len(codes)
        out.check()
        wide.check()
        assert out.array.tobytes() == wide.array.tobytes() == expected
