"""DELTA_BINARY_PACKED encoder: byte for byte as the oracle, and read back by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.encodings.delta_binary_packed import max_delta_bytes
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.kernels.page_encoding import encode_delta
from support.kernels.strategies import COUNTS, random_numbers
from support.oracles import delta


def check_numbers(engine, values: np.ndarray, bits: int, start: int, stop: int, rng: np.random.Generator) -> None:
    size, count = bits // 8, stop - start
    place = int(rng.integers(0, 9))
    room = GuardedBuffer(rng, place + max_delta_bytes(count, size))
    end = place + encode_delta(engine, values, start, stop, room.array[place:])
    room.check()
    numbers = values[start:stop].tolist()
    written = room.array[place:end].tobytes()
    assert written == delta.encode(numbers, bits)
    assert delta.decode(written, bits, count) == (numbers, len(written))
    sizes = GuardedBuffer(rng, 2, "i8")
    getattr(engine, f"delta_sizes{size}")(values, np.array([start, stop, stop, stop]), 2, sizes.array)
    sizes.check()
    assert sizes.array.tolist() == [len(written), len(delta.encode([], bits))]


@engines
@pytest.mark.parametrize("bits", [32, 64])
def test_numbers(engine, bits):
    rng = np.random.default_rng(bits)
    for count in COUNTS:
        for _ in range(engine.size(12)):
            check_numbers(engine, random_numbers(rng, bits, count), bits, 0, count, rng)
    values = random_numbers(rng, bits, 300)
    for start, stop in ((5, 5), (5, 6), (299, 300), (7, 140), (100, 300)):
        check_numbers(engine, values, bits, start, stop, rng)


@given(data=st.data(), bits=st.sampled_from([32, 64]))
def test_any_numbers(data, bits):
    number = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    values = np.array(data.draw(st.lists(st.one_of(number, st.integers(-3, 3)), max_size=70)), f"i{bits // 8}")
    for engine in ENGINES:
        check_numbers(engine, values, bits, 0, len(values), np.random.default_rng(0))


@engines
@pytest.mark.parametrize("bits", [32, 64])
def test_every_bit_width(engine, bits):
    """A miniblock of each width, and the worst case of the reserved room."""
    rng = np.random.default_rng(0)
    for width in range(bits + 1):
        deltas = [0] * 32 + [2**width - 1] + [int(rng.integers(0, 2, 1)[0])] * 62 + [0]
        values = np.array([delta.wrap(sum(deltas[:i]), bits) for i in range(len(deltas))], f"i{bits // 8}")
        check_numbers(engine, values, bits, 0, len(values), rng)
    values = np.array([-(1 << bits - 1), (1 << bits - 1) - 1, 0, 5, -1] * 103, f"i{bits // 8}")
    check_numbers(engine, values, bits, 0, len(values), rng)
