"""BYTE_STREAM_SPLIT encoder: byte for byte as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.encodings.byte_stream_split import max_byte_stream_split_bytes
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.kernels.strategies import COUNTS
from support.oracles import delta


@engines
@pytest.mark.parametrize("width", [1, 2, 4, 5, 8, 12, 16, 40])
def test_byte_streams(engine, width):
    rng = np.random.default_rng(width)
    for count in COUNTS[: 13 if engine.name == "compiled" else 9]:
        values = rng.integers(0, 256, count * width).astype("u1")
        each = [values[i * width : (i + 1) * width].tobytes() for i in range(count)]
        for start, stop in ((0, count), sorted(rng.integers(0, count + 1, 2).tolist())):
            room = GuardedBuffer(rng, 3 + max_byte_stream_split_bytes(stop - start, width))
            end = engine.encode_byte_stream_split(values, width, start, stop, room.array, 3)
            room.check()
            assert end == len(room.array)
            written = room.array[3:].tobytes()
            assert written == delta.split_byte_streams(each[start:stop], width)
            assert delta.join_byte_streams(written, width, stop - start) == each[start:stop]


@given(data=st.data(), width=st.integers(1, 17))
def test_any_values(data, width):
    values = data.draw(st.lists(st.binary(min_size=width, max_size=width), max_size=40))
    start = data.draw(st.integers(0, len(values)))
    for engine in ENGINES:
        out = GuardedBuffer(np.random.default_rng(0), max_byte_stream_split_bytes(len(values) - start, width))
        stored = np.frombuffer(b"".join(values), np.uint8)
        assert engine.encode_byte_stream_split(stored, width, start, len(values), out.array, 0) == len(out.array)
        out.check()
        assert out.array.tobytes() == delta.split_byte_streams(values[start:], width)
