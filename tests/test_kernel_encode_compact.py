"""Values without their nulls, counts of what is there, page bounds, and looking values up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from driving.buffers import Guarded
from driving.engines import ENGINES
from hypothesis import given, settings
from hypothesis import strategies as st
from support.page_values import max_binary_pages
from twins import writing as twin

engines = pytest.mark.parametrize("engine", ENGINES, ids=repr)


def validities(rng, count):
    for share in (0.0, 0.03, 0.5, 1.0):
        yield (rng.random(count) < share).astype(np.uint8)


@engines
@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 12, 16, 21])
def test_fixed_values(engine, width):
    rng = np.random.default_rng(width)
    for count in (0, 1, 9, engine.size(1000)):
        values = rng.integers(0, 256, (count, width), np.uint8)
        for validity in validities(rng, count):
            out = Guarded(rng, count * width)
            kept = engine.drop_nulls_fixed(values.reshape(-1), width, validity, count, out.array)
            out.check()
            wanted = [values[i].tobytes() for i in range(count) if validity[i]]
            assert (kept, out.array[: kept * width].tobytes()) == (len(wanted), b"".join(wanted))


@engines
@pytest.mark.parametrize("item", ["i4", "i8"])
def test_items(engine, item):
    rng = np.random.default_rng(0)
    kernel = engine.drop_nulls_i4 if item == "i4" else engine.drop_nulls_i8
    for count in (0, 1, 9, engine.size(1000)):
        values = rng.integers(-(1 << 31), 1 << 31, count).astype(item)
        for validity in validities(rng, count):
            out = Guarded(rng, count, item)
            kept = kernel(values, validity, count, out.array)
            out.check()
            assert out.array[:kept].tolist() == [values[i] for i in range(count) if validity[i]]


@engines
def test_what_is_present_in_each_page(engine):
    rng = np.random.default_rng(0)
    for count in (0, 1, 40, engine.size(1000)):
        for validity in validities(rng, count):
            bounds = np.sort(np.append(rng.integers(0, count + 1, 12), [0, count])).astype(np.int64)
            out = Guarded(rng, len(bounds) - 1, "i8")
            total = engine.count_valid_by_page(validity, bounds, len(bounds) - 1, out.array)
            out.check()
            wanted = [int(validity[a:b].sum()) for a, b in pairwise(bounds.tolist())]
            assert (total, out.array.tolist()) == (int(validity.sum()), wanted)


@settings(deadline=None, max_examples=80)
@given(
    lengths=st.lists(st.one_of(st.integers(0, 9), st.integers(0, 200)), max_size=60),
    extra=st.integers(0, 4),
    max_bytes=st.integers(0, 120),
    max_rows=st.integers(1, 12),
)
def test_pages(lengths, extra, max_bytes, max_rows):
    starts = np.cumsum([0, *lengths], dtype=np.int64)[:-1]
    ends = starts + np.array(lengths, np.int64)
    wanted = twin.pages(lengths, extra, max_bytes, max_rows)
    room = max_binary_pages(len(lengths), sum(lengths) + extra * len(lengths), max_bytes, max_rows)
    for engine in ENGINES:
        out = Guarded(np.random.default_rng(0), room + 1, "i8")
        found = engine.cut_binary_pages(starts, ends, len(lengths), extra, max_bytes, max_rows, out.array)
        out.check()
        assert out.array[: found + 1].tolist() == wanted


@engines
@pytest.mark.parametrize("width", [1, 2, 4, 5, 8, 16])
def test_looking_values_up(engine, width):
    rng = np.random.default_rng(width)
    values = rng.integers(0, 256, (30, width), np.uint8)
    for count in (0, 1, engine.size(500)):
        codes = rng.integers(0, 30, count).astype(np.int32)
        out = Guarded(rng, count * width)
        assert engine.gather_fixed(values.reshape(-1), width, codes, count, out.array) == count
        out.check()
        assert out.array.tobytes() == b"".join(values[code].tobytes() for code in codes)


@engines
def test_looking_int64s_up(engine):
    rng = np.random.default_rng(0)
    values = rng.integers(-9, 1 << 60, 30)
    codes = rng.integers(0, 30, 50).astype(np.int32)
    out = Guarded(rng, 50, "i8")
    assert engine.gather_i8(values, codes, 50, out.array) == 50
    out.check()
    assert out.array.tolist() == [values[code] for code in codes]
