"""Encoder of the RLE / bit-packed hybrid: read back by the oracle, and as small as expected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.encodings.hybrid_rle import max_hybrid_bytes
from support.kernels.engines import COMPILED, ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.oracles import hybrid_rle as oracle


def encode(engine, values, bit_width, item="i4", seed=0):
    """Encode values at a random position of an array into a buffer with exactly the required room."""
    rng = np.random.default_rng(seed)
    before, place = int(rng.integers(0, 9)), int(rng.integers(0, 9))
    array = np.array([0] * before + list(values), np.int64).astype(item)
    out = GuardedBuffer(rng, place + max_hybrid_bytes(len(values), bit_width))
    kept = out.array[:place].tobytes()
    kernel = engine.encode_hybrid_i4 if item == "i4" else engine.encode_hybrid_u1
    end = kernel(array, before, before + len(values), bit_width, out.array, place)
    out.check()
    assert out.array[:place].tobytes() == kept
    return out.array[place:end].tobytes()


def compare(engine, values, bit_width, item="i4", seed=0):
    data = encode(engine, values, bit_width, item, seed)
    assert oracle.decode(data, bit_width, len(values)) == list(values)
    return data


def mixture(rng, count, bit_width):
    """Return values with runs of all lengths between other values."""
    values: list[int] = []
    while len(values) < count:
        if rng.random() < 0.5:
            values += rng.integers(0, 1 << bit_width, int(rng.integers(1, 30))).tolist()
        else:
            values += [int(rng.integers(0, 1 << bit_width))] * int(rng.choice([2, 7, 8, 9, 15, 16, 40, 200]))
    return values[:count]


@engines
@pytest.mark.parametrize("bit_width", range(33))
def test_every_width(engine, bit_width):
    rng = np.random.default_rng(bit_width)
    for count in (1, 7, 8, 9, 63, 64, 65, engine.size(2000)):
        compare(engine, rng.integers(0, 1 << bit_width, count).tolist(), bit_width, seed=count)
        compare(engine, mixture(rng, count, bit_width), bit_width, seed=count)
        compare(engine, [(1 << bit_width) - 1] * count, bit_width)
        if bit_width <= 8:
            compare(engine, mixture(rng, count, bit_width), bit_width, "u1", seed=count)


@engines
def test_no_values(engine):
    assert encode(engine, [], 5) == b""
    assert encode(engine, [], 1, "u1") == b""


@engines
@pytest.mark.parametrize("bit_width", [0, 1, 2, 3, 8, 9, 17, 32])
def test_constant_values_are_one_run(engine, bit_width):
    for count in (1, 5, 8, 63, 64, engine.size(9000)):
        value = (1 << bit_width) - 1
        expected = oracle.encode([("rle", value, count)], bit_width)
        assert encode(engine, [value] * count, bit_width) == expected
        if bit_width <= 8:
            assert encode(engine, [value] * count, bit_width, "u1") == expected


@engines
def test_runs_between_packed_values(engine):
    """Eight equal values become a run, unless they take less room packed."""
    mixed = [1, 2, 3, 4, 5, 6, 7, 0]
    values = [*mixed, *[5] * 8, *mixed[:3], *[6] * 5, *[6] * 9, 1]
    expected = [("packed", mixed), ("rle", 5, 8), ("packed", [1, 2, 3, *[6] * 5]), ("rle", 6, 9), ("rle", 1, 1)]
    assert encode(engine, values, 3) == oracle.encode(expected, 3)
    bits = [0, 1] * 4
    assert encode(engine, [*bits, *[1] * 31, 0], 1) == oracle.encode([("packed", [*bits, *[1] * 31, 0])], 1)
    expected = [("packed", bits), ("rle", 1, 32), ("rle", 0, 1)]
    assert encode(engine, [*bits, *[1] * 32, 0], 1, "u1") == oracle.encode(expected, 1)


@engines
def test_last_group_is_padded_with_zeros(engine):
    assert encode(engine, [3, 1, 2], 2) == oracle.encode([("packed", [3, 1, 2, 0, 0, 0, 0, 0])], 2)


@engines
@pytest.mark.parametrize("bit_width", [1, 2, 3, 4, 8, 9, 16, 17, 24, 25, 32])
def test_worst_case_fits_the_reserved_room(engine, bit_width):
    """Runs as short as possible, between groups of eight."""
    other = [k % 2 for k in range(8)]
    for run in (8, 9, 16, 31, 32, 33):
        values = (other + [1] * run) * engine.size(40, 4)
        compare(engine, values, bit_width)
        compare(engine, [k // run % 2 for k in range(len(values))], bit_width)


@given(
    bit_width=st.integers(0, 32),
    parts=st.lists(st.tuples(st.integers(0, (1 << 32) - 1), st.integers(1, 40)), max_size=12),
    seed=st.integers(0, 1000),
)
def test_any_values(bit_width, parts, seed):
    values = [value & ((1 << bit_width) - 1) for value, count in parts for _ in range(count)]
    for engine in ENGINES:
        compare(engine, values, bit_width, seed=seed)
        if bit_width <= 8:
            compare(engine, values, bit_width, "u1", seed)


def test_read_back_by_the_decoder():
    """Dictionary indices, read by the decoding kernel."""
    from support.kernels.chunk_tables import DecodeRequest
    from support.kernels.decode_pages import DecodeOutcome, decode_fixed
    from support.oracles.pages import RLE_DICTIONARY, UNCOMPRESSED, Chunk, data_page, dictionary_page
    from support.oracles.plain import INT32, ColumnType

    rng = np.random.default_rng(0)
    column = ColumnType(INT32)
    entries = [int(k).to_bytes(4, "little") for k in range(700)]
    for seed in range(5):
        codes = [code % 700 for code in mixture(rng, 3000, 10)]
        page = data_page(column, [entries[c] for c in codes], RLE_DICTIONARY, UNCOMPRESSED, 1, rng, entries)
        body = bytes([10]) + encode(COMPILED, codes, 10)
        ours = replace(page, body=body, uncompressed=len(body))
        chunk = Chunk(column, UNCOMPRESSED, [dictionary_page(column, entries, UNCOMPRESSED, rng), ours])
        request = DecodeRequest(0, 4, stop=len(codes))
        assert decode_fixed(COMPILED, chunk, request, seed) == DecodeOutcome(0, -1, tuple(entries[c] for c in codes))
