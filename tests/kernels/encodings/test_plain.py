"""PLAIN encoder: booleans, and binary values after their lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kernels.binary_values import lay_out_strings, random_strings
from support.kernels.engines import COMPILED, ENGINES, engines
from support.kernels.guard_pages import AVAILABLE, GuardPages
from support.kernels.guarded_buffers import GuardedBuffer
from support.oracles import encoders


def compare(engine, values, start, stop, seed):
    rng = np.random.default_rng(seed)
    data, starts, ends = lay_out_strings(rng, values)
    place = int(rng.integers(0, 9))
    expected = encoders.encode_plain_binary(values[start:stop])
    out = GuardedBuffer(rng, place + len(expected))
    before = out.array[:place].tobytes()
    end = engine.encode_plain_binary(data, len(data), starts, ends, start, stop, out.array, place)
    out.check()
    assert end == place + len(expected)
    assert out.array.tobytes() == before + expected


@engines
@pytest.mark.parametrize("longest", [0, 1, 7, 8, 16, 17, 40, 64, 65, 300])
def test_binary_values(engine, longest):
    rng = np.random.default_rng(longest)
    for count in (0, 1, 3, 4, 5, 6, engine.size(400)):
        values = random_strings(rng, count, 50, longest)
        compare(engine, values, 0, count, count)
        start, stop = sorted(rng.integers(0, count + 1, 2).tolist())
        compare(engine, values, start, stop, count)


@given(st.lists(st.binary(max_size=70)), st.data(), st.integers(0, 1000))
def test_any_binary_values(values, data, seed):
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    for engine in ENGINES:
        compare(engine, values, start, stop, seed)


@engines
def test_many_empty_values(engine):
    """Bytes copied beyond a value never exceed the lengths that follow."""
    for count in range(12):
        compare(engine, [b"x" * 64] + [b""] * count, 0, count + 1, count)
        compare(engine, [b""] * count + [b"x" * 17], 0, count + 1, count)


@pytest.mark.skipif(not AVAILABLE, reason="needs mprotect")
def test_no_access_outside_the_buffers():
    pages = GuardPages()
    rng = np.random.default_rng(0)
    for longest in (1, 7, 16, 17, 100):
        for _ in range(20):
            values = random_strings(rng, 50, 20, longest)
            data, starts, ends = lay_out_strings(rng, values)
            expected = encoders.encode_plain_binary(values)
            out, inside = pages.allocate(len(expected)), pages.copy_of(data.tobytes())
            assert COMPILED.encode_plain_binary(inside, len(data), starts, ends, 0, 50, out, 0) == len(expected)
            assert out.tobytes() == expected


@engines
def test_booleans(engine):
    rng = np.random.default_rng(0)
    for count in (0, 1, 7, 8, 9, 64, engine.size(1000)):
        values = rng.integers(0, 2, count + 9, np.uint8)
        for start in (0, 1, 8, 9):
            out = GuardedBuffer(rng, 3 + (count + 7) // 8)
            before = out.array[:3].tobytes()
            end = engine.encode_plain_booleans(values, start, start + count, out.array, 3)
            out.check()
            assert out.array[:end].tobytes() == before + encoders.pack_booleans(values[start : start + count].tolist())
            assert end == len(out.array)


@given(values=st.lists(st.integers(0, 1), max_size=70), start=st.integers(0, 9))
def test_any_booleans(values, start):
    start = min(start, len(values))
    for engine in ENGINES:
        out = GuardedBuffer(np.random.default_rng(0), (len(values) - start + 7) // 8)
        engine.encode_plain_booleans(np.array(values, np.uint8), start, len(values), out.array, 0)
        out.check()
        assert out.array.tobytes() == encoders.pack_booleans(values[start:])
