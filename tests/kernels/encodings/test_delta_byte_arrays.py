"""Encoders of the delta encodings of strings: byte for byte as the oracle, and read back by it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.encodings.delta_byte_arrays import max_delta_byte_array_bytes, max_delta_length_bytes
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.kernels.strategies import COUNTS, SEEDS, STRINGS, random_strings
from support.oracles import delta


def lay_out(rng: np.random.Generator, strings: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return strings as data, starts and ends: adjacent, with gaps, or in any order; nothing after the last."""
    order = rng.permutation(len(strings)).tolist() if rng.random() < 0.4 else range(len(strings))
    gaps = rng.random() < 0.5
    data = b""
    starts, ends = np.zeros(len(strings), "i8"), np.zeros(len(strings), "i8")
    for i in order:
        data += rng.bytes(int(rng.integers(0, 3))) if gaps else b""
        starts[i] = len(data)
        data += strings[i]
        ends[i] = len(data)
    return np.frombuffer(data, "u1"), starts, ends


def check_strings(engine, strings: list[bytes], start: int, stop: int, rng: np.random.Generator) -> None:
    data, starts, ends = lay_out(rng, strings)
    count, part = stop - start, strings[start:stop]
    total = sum(map(len, part))
    lengths, prefixes, suffixes = (GuardedBuffer(rng, count, "i4") for _ in range(3))
    place = int(rng.integers(0, 9))
    room = GuardedBuffer(rng, place + max_delta_length_bytes(count, total))
    end = engine.encode_delta_length(data, starts, ends, start, stop, lengths.array, room.array, place)
    written = room.array[place:end].tobytes()
    assert written == delta.encode_length(part)
    assert delta.decode_length(written, count) == part
    other = GuardedBuffer(rng, place + max_delta_byte_array_bytes(count, total))
    end = engine.encode_delta_byte_array(
        data, starts, ends, start, stop, prefixes.array, suffixes.array, other.array, place
    )
    written = other.array[place:end].tobytes()
    assert written == delta.encode_byte_array(part)
    assert delta.decode_byte_array(written, count) == part
    for buffer in (lengths, prefixes, suffixes, room, other):
        buffer.check()


@engines
def test_strings(engine):
    rng = np.random.default_rng(3)
    for count in COUNTS[: 13 if engine.name == "compiled" else 9]:
        for _ in range(engine.size(12)):
            strings = random_strings(rng, count)
            check_strings(engine, strings, 0, count, rng)
            start, stop = sorted(rng.integers(0, count + 1, 2).tolist())
            check_strings(engine, strings, start, stop, rng)


@given(strings=STRINGS, seed=SEEDS, data=st.data())
def test_any_strings(strings, seed, data):
    start = data.draw(st.integers(0, len(strings)))
    for engine in ENGINES:
        check_strings(engine, strings, start, len(strings), np.random.default_rng(seed))
