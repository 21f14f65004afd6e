"""The delta encodings and BYTE_STREAM_SPLIT, written: byte for byte what the twins write, and read back by them."""

from __future__ import annotations

import numpy as np
import pytest
from driving.buffers import Guarded
from driving.engines import ENGINES
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import delta

from numparq.kernels.encodings.byte_stream_split import max_byte_stream_split_bytes
from numparq.kernels.encodings.delta_binary_packed import max_delta_bytes
from numparq.kernels.encodings.delta_byte_arrays import max_delta_byte_array_bytes, max_delta_length_bytes

engines = pytest.mark.parametrize("engine", ENGINES, ids=repr)
COUNTS = (0, 1, 2, 32, 33, 34, 128, 129, 130, 160, 161, 257, 1000)


def random_numbers(rng: np.random.Generator, bits: int, count: int) -> np.ndarray:
    """Numbers that take few bits as differences, or many, or change between the two."""
    kind = int(rng.integers(0, 5))
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    if kind == 0:
        numbers = rng.integers(least, most, count, endpoint=True)
    elif kind == 1:
        numbers = rng.choice([least, most, 0, -1], count)
    elif kind == 2:
        numbers = np.arange(count) * int(rng.integers(-9, 10)) + int(rng.integers(-1000, 1000))
    elif kind == 3:
        numbers = rng.integers(-50, 50, count).cumsum()
    else:
        shifts = np.repeat(rng.integers(0, bits, count // 20 + 1), 20)[:count]
        numbers = rng.integers(least, most, count, endpoint=True) >> shifts
    return numbers.astype(f"i{bits // 8}")


def check_numbers(engine, values: np.ndarray, bits: int, start: int, stop: int, rng: np.random.Generator) -> None:
    size, count = bits // 8, stop - start
    place = int(rng.integers(0, 9))
    room = Guarded(rng, place + max_delta_bytes(count, size))
    name = f"encode_delta{size}"
    end = getattr(engine, name)(values, start, stop, room.array, place)
    room.check()
    numbers = values[start:stop].tolist()
    written = room.array[place:end].tobytes()
    assert written == delta.encode(numbers, bits)
    assert delta.decode(written, bits, count) == (numbers, len(written))
    assert getattr(engine, f"delta_size{size}")(values, start, stop) == len(written)


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


@settings(deadline=None, max_examples=60)
@given(data=st.data(), bits=st.sampled_from([32, 64]))
def test_any_numbers(data, bits):
    number = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    values = np.array(data.draw(st.lists(st.one_of(number, st.integers(-3, 3)), max_size=70)), f"i{bits // 8}")
    for engine in ENGINES:
        check_numbers(engine, values, bits, 0, len(values), np.random.default_rng(0))


@engines
@pytest.mark.parametrize("bits", [32, 64])
def test_every_bit_width(engine, bits):
    """A miniblock of each width, and the worst case of the room set aside."""
    rng = np.random.default_rng(0)
    for width in range(bits + 1):
        deltas = [0] * 32 + [2**width - 1] + [int(rng.integers(0, 2, 1)[0])] * 62 + [0]
        values = np.array([delta.wrapped(sum(deltas[:i]), bits) for i in range(len(deltas))], f"i{bits // 8}")
        check_numbers(engine, values, bits, 0, len(values), rng)
    values = np.array([-(1 << bits - 1), (1 << bits - 1) - 1, 0, 5, -1] * 103, f"i{bits // 8}")
    check_numbers(engine, values, bits, 0, len(values), rng)


def random_strings(rng: np.random.Generator, count: int) -> list[bytes]:
    """Strings that share much with their neighbours, or little."""
    kind = int(rng.integers(0, 4))
    if kind == 0:
        return [rng.bytes(int(rng.choice([0, 1, 7, 8, 9, 100]))) for _ in range(count)]
    if kind == 1:
        return [b""] * count
    stem = rng.bytes(int(rng.choice([1, 8, 15, 40])))
    strings = [stem[: int(rng.integers(0, len(stem) + 1))] + rng.bytes(int(rng.integers(0, 3))) for _ in range(count)]
    return sorted(strings) if kind == 2 else strings


def laid_out(rng: np.random.Generator, strings: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strings as data, starts and ends: one behind the other, or apart, or in any order; nothing behind the last."""
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
    data, starts, ends = laid_out(rng, strings)
    count, part = stop - start, strings[start:stop]
    total = sum(map(len, part))
    lengths, prefixes, suffixes = (Guarded(rng, count, "i4") for _ in range(3))
    place = int(rng.integers(0, 9))
    room = Guarded(rng, place + max_delta_length_bytes(count, total))
    end = engine.encode_delta_length(data, starts, ends, start, stop, lengths.array, room.array, place)
    written = room.array[place:end].tobytes()
    assert written == delta.encode_length(part)
    assert delta.decode_length(written, count) == part
    other = Guarded(rng, place + max_delta_byte_array_bytes(count, total))
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


@engines
@pytest.mark.parametrize("width", [1, 2, 4, 5, 8, 12, 16, 40])
def test_byte_streams(engine, width):
    rng = np.random.default_rng(width)
    for count in COUNTS[: 13 if engine.name == "compiled" else 9]:
        values = rng.integers(0, 256, count * width).astype("u1")
        each = [values[i * width : (i + 1) * width].tobytes() for i in range(count)]
        for start, stop in ((0, count), sorted(rng.integers(0, count + 1, 2).tolist())):
            room = Guarded(rng, 3 + max_byte_stream_split_bytes(stop - start, width))
            end = engine.encode_byte_stream_split(values, width, start, stop, room.array, 3)
            room.check()
            assert end == len(room.array)
            written = room.array[3:].tobytes()
            assert written == delta.split(each[start:stop], width)
            assert delta.join(written, width, stop - start) == each[start:stop]
