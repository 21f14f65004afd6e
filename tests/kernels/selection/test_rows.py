"""Selected rows of values and strings, by ranges and by indices: against the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kernels.engines import ENGINES
from support.kernels.guarded_buffers import GuardedBuffer, random_bytes, with_slack
from support.kernels.strategies import SEEDS
from support.oracles import row_selection


def disjoint_ranges(steps, start=0):
    """Return disjoint ranges of alternating gaps and lengths."""
    ranges = []
    for gap, length in steps:
        ranges.append((start + gap, start + gap + length))
        start += gap + length
    return ranges


def take_items(engine, items, size, spans, place, seed=0):
    """Take items into the middle of an output whose other bytes must stay."""
    rng = np.random.default_rng(seed)
    count = sum(length for _, length in spans)
    # No byte after the last item may be touched, neither in the source nor in the output.
    out = GuardedBuffer(rng, place + count * size + 5)
    before = out.array.copy()
    source = np.frombuffer(b"".join(items), np.uint8)
    flat = np.array(spans, np.int64).reshape(-1)
    end = engine.take_fixed_ranges(source, size, flat, len(spans), out.array, place)
    out.check()
    assert end == place + count * size
    assert out.array[:place].tobytes() == before[:place].tobytes()
    assert out.array[end:].tobytes() == before[end:].tobytes()
    return out.array[place:end].tobytes()


@st.composite
def draw_runs(draw, count):
    """Draw runs of `count` values in any order; they may overlap, be empty, or be all values."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, count))
        found.append((start, draw(st.integers(0, min(count - start, draw(st.sampled_from([1, 2, 5, 9, 300])))))))
    return found


@given(data=st.data(), size=st.sampled_from([1, 2, 3, 4, 8, 12, 16]), place=st.integers(0, 40), seed=SEEDS)
def test_take_fixed_ranges(data, size, place, seed):
    count = data.draw(st.integers(0, 300))
    items = [one.tobytes() for one in random_bytes(np.random.default_rng(seed), count * size).reshape(count, size)]
    spans = data.draw(draw_runs(count))
    for engine in ENGINES:
        assert take_items(engine, items, size, spans, place) == b"".join(row_selection.take_ranges(items, spans))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 12, 16])
@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_take_fixed_ranges_of_each_item_size(engine, size):
    """Runs of every short length: from the first item, to the last one, and consecutive ones."""
    items = [bytes([number, size] * size)[:size] for number in range(40)]
    for length in range(12):
        many = [(number, length) for number in range(0, 41 - length, 3)]
        for spans in ([(0, length)], [(40 - length, length)], many):
            assert take_items(engine, items, size, spans, size) == b"".join(row_selection.take_ranges(items, spans))


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_take_long_ranges(engine):
    count = engine.size(200_000, 3000)
    values = np.random.default_rng(1).integers(0, 1 << 62, count)
    spans = [(1, count - 2), (count - 1, 1), (0, count)]
    expected = np.concatenate([values[start : start + length] for start, length in spans])
    out = GuardedBuffer(np.random.default_rng(2), 8 * len(expected))
    flat = np.array(spans, np.int64).reshape(-1)
    assert engine.take_fixed_ranges(values.view(np.uint8), 8, flat, 3, out.array, 0) == len(out.array)
    out.check()
    assert (out.array.view(np.int64) == expected).all()


def take_strings(engine, values, spans, start=0, seed=0):
    """Count the bytes of strings that begin at `start` in a buffer, and take them."""
    rng = np.random.default_rng(seed)
    data = np.frombuffer(random_bytes(rng, start).tobytes() + b"".join(values), np.uint8)
    offsets = np.cumsum([start, *map(len, values)]).astype(np.int64)
    flat, count = np.array(spans, np.int64).reshape(-1), sum(length for _, length in spans)
    size = engine.count_bytes_of_ranges(offsets, flat, len(spans))
    out_offsets, out = GuardedBuffer(rng, count + 1, "i8"), GuardedBuffer(rng, size)
    assert engine.take_binary_ranges(offsets, data, flat, len(spans), out_offsets.array, out.array) == size
    out_offsets.check()
    out.check()
    ends, taken = out_offsets.array.tolist(), out.array.tobytes()
    assert ends[0] == 0
    assert ends[-1] == size
    return [taken[first:last] for first, last in itertools.pairwise(ends)]


@given(
    data=st.data(),
    start=st.integers(0, 30),
    values=st.lists(st.one_of(st.binary(max_size=5), st.binary(max_size=60)), max_size=60),
)
def test_take_binary_ranges(data, start, values):
    spans = data.draw(draw_runs(len(values)))
    for engine in ENGINES:
        assert take_strings(engine, values, spans, start) == row_selection.take_ranges(values, spans)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_take_empty_and_long_strings(engine):
    values = [b"", b"x" * engine.size(100_000), b"", b"short", b"y" * 17]
    several = [(0, 1), (2, 1)], [(1, 2), (1, 2), (4, 1)], [(4, 1), (3, 1), (0, 3)]
    for spans in ([], [(0, 0)], [(5, 0)], [(0, 5)], *several):
        assert take_strings(engine, values, spans, 3) == row_selection.take_ranges(values, spans)
    assert take_strings(engine, [], []) == []


@given(mask=st.lists(st.booleans(), max_size=200))
def test_mask_to_indices(mask):
    for engine in ENGINES:
        # The kernel needs room for one index more.
        out = GuardedBuffer(np.random.default_rng(0), len(mask) + 1, "i4")
        count = engine.mask_to_indices(np.array(mask, np.uint8), len(mask), out.array)
        out.check()
        assert out.array[:count].tolist() == [place for place, selected in enumerate(mask) if selected]


@given(data=st.data(), size=st.sampled_from([1, 2, 3, 4, 8, 12, 16]), place=st.integers(0, 40), seed=SEEDS)
def test_take_fixed_indices(data, size, place, seed):
    """Items in any order, some repeated, after existing output; no other byte changes."""
    rng = np.random.default_rng(seed)
    count = data.draw(st.integers(1, 100))
    items = [one.tobytes() for one in random_bytes(rng, count * size).reshape(count, size)]
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=60))
    source, flat = np.frombuffer(b"".join(items), np.uint8), np.array(places, np.int32)
    for engine in ENGINES:
        out = GuardedBuffer(rng, place + len(places) * size + 5)
        before = out.array.tobytes()
        end = engine.take_fixed_indices(source, size, flat, len(places), out.array, place)
        out.check()
        assert end == place + len(places) * size
        assert out.array[place:end].tobytes() == b"".join(row_selection.take_indices(items, places))
        assert out.array[:place].tobytes() == before[:place]
        assert out.array[end:].tobytes() == before[end:]


@given(data=st.data(), values=st.lists(st.one_of(st.binary(max_size=5), st.binary(max_size=60)), max_size=40))
def test_take_binary_indices(data, values):
    """Strings in any order; negative indices give empty ones."""
    places = data.draw(st.lists(st.integers(-2, len(values) - 1), max_size=60))
    check_strings_at(values, places, data.draw(st.integers(0, 9)))


@given(data=st.data(), values=st.lists(st.one_of(st.binary(max_size=5), st.binary(max_size=60)), max_size=40))
def test_take_strings_behind_their_lengths(data, values):
    """Strings of PLAIN pages in any order."""
    rng = np.random.default_rng(len(values))
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=60)) if values else []
    plain = with_slack(rng, b"".join(len(value).to_bytes(4, "little") + value for value in values), 16)
    edges = np.cumsum([4, *(len(value) + 4 for value in values)])
    starts = edges[np.array(places, np.intp)].astype(np.int64)
    expected = [values[place] for place in places]
    for engine in ENGINES:
        offsets = GuardedBuffer(rng, len(places) + 1, "i8")
        size = engine.measure_prefixed_strings(plain, starts, len(places), offsets.array)
        out = GuardedBuffer(rng, size + 16)
        assert engine.copy_prefixed_strings(plain, starts, len(places), offsets.array, out.array) == size
        offsets.check()
        out.check()
        taken = out.array.tobytes()
        assert [taken[first:last] for first, last in itertools.pairwise(offsets.array.tolist())] == expected


def test_take_strings_of_every_length():
    values = [bytes(range(1, length + 1)) for length in range(40)]
    check_strings_at(values, list(range(40)))
    check_strings_at(values, list(range(39, -2, -1)), 3)


def check_strings_at(values, places, start=0):
    """Check strings taken by index; up to 16 bytes after them may be touched."""
    rng = np.random.default_rng(len(values))
    stored = with_slack(rng, bytes(start) + b"".join(values), 16)
    offsets, flat = np.cumsum([start, *map(len, values)]).astype(np.int64), np.array(places, np.int32)
    expected = row_selection.take_indices(values, places, b"")
    for engine in ENGINES:
        size = engine.count_bytes_of_indices(offsets, flat, len(places))
        assert size == sum(map(len, expected))
        out_offsets, out = GuardedBuffer(rng, len(places) + 1, "i8"), GuardedBuffer(rng, size + 16)
        assert engine.take_binary_indices(offsets, stored, flat, len(places), out_offsets.array, out.array) == size
        out_offsets.check()
        out.check()
        taken = out.array.tobytes()
        found = [taken[first:last] for first, last in itertools.pairwise(out_offsets.array.tolist())]
        assert found == expected
