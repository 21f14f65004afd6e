"""Decoders of the RLE / bit-packed hybrid and BIT_PACKED: against the oracle, run by run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.decode.levels import decode_validity
from numparq.kernels.encodings.hybrid_rle import decode_hybrid_bits, decode_hybrid_indices
from numparq.kernels.enums import BIT_PACKED
from numparq.kernels.registry import Kernel
from numparq.kernels.status import BAD_RUN, BAD_VARINT, INDEX_OUT_OF_RANGE, TRUNCATED
from support.kernels.engines import CHECKED, COMPILED, bounds_checked
from support.kernels.guarded_buffers import GuardedBuffer, with_slack
from support.oracles import Damaged, hybrid_rle

LARGEST = (1 << 32) + 1


def bits(data, pos, end, count, out, out_pos):
    stop, ones = decode_hybrid_bits(data, pos, end, count, out, out_pos)
    return min(stop, 0) if stop < 0 else ones


def indices(data, pos, end, count, width, limit, out, out_pos):
    return min(decode_hybrid_indices(data, pos, end, count, width, limit, out, out_pos), 0)


def validity(data, pos, end, count, encoding, out, out_pos):
    stop, present = decode_validity(data, pos, end, count, encoding, out, out_pos)
    return min(stop, 0) if stop < 0 else present


PROBES = {
    "bits": Kernel(bits, ("u1", "x", "x", "x", "u1", "x")),
    "indices": Kernel(indices, ("u1", "x", "x", "x", "x", "x", "u1", "x")),
    "validity": Kernel(validity, ("u1", "x", "x", "x", "x", "u1", "x")),
}


@pytest.fixture(scope="module", params=[COMPILED, CHECKED], ids=repr)
def probe(request):
    """Return the helpers as kernels, compiled or with checked bounds."""
    if request.param is CHECKED:
        return {name: bounds_checked(kernel) for name, kernel in PROBES.items()} | {"engine": CHECKED}
    from numparq.kernels.compile.build import build_object
    from numparq.kernels.compile.load import load_object

    return load_object(build_object(PROBES)) | {"engine": COMPILED}


def run_bits(probe, data, count, seed=0):
    """Decode bits at a random position of a buffer: the values, or the status."""
    rng = np.random.default_rng(seed)
    before, place = int(rng.integers(0, 9)), int(rng.integers(0, 9))
    out = GuardedBuffer(rng, place + count)
    raw = with_slack(rng, rng.bytes(before) + data)
    status = probe["bits"](raw, before, len(data) + before, count, out.array, place)
    out.check()
    if status < 0:
        return status
    values = out.array[place:].tolist()
    assert status == sum(values)
    return values


def run_indices(probe, data, count, width, limit=LARGEST, seed=0):
    rng = np.random.default_rng(seed)
    before, place = int(rng.integers(0, 9)), int(rng.integers(0, 9))
    out = GuardedBuffer(rng, place + 4 * count)
    raw = with_slack(rng, rng.bytes(before) + data)
    status = probe["indices"](raw, before, len(data) + before, count, width, limit, out.array, place)
    out.check()
    return status if status < 0 else out.array[place:].copy().view("u4").tolist()


def test_oracle_packs_as_the_specification():
    numbers = list(range(8))
    assert hybrid_rle.pack(numbers, 3) == bytes([0b10001000, 0b11000110, 0b11111010])
    assert hybrid_rle.pack_high(numbers, 3) == bytes([0b00000101, 0b00111001, 0b01110111])
    assert (
        hybrid_rle.unpack(hybrid_rle.pack(numbers, 3), 3, 8)
        == numbers
        == hybrid_rle.unpack_high(hybrid_rle.pack_high(numbers, 3), 3, 8)
    )


@pytest.mark.parametrize("width", range(33))
def test_indices_of_every_width(probe, width):
    rng = np.random.default_rng(width)
    for number in range(4):
        count = int(rng.integers(1, probe["engine"].size(1500, 20)))
        values = np.repeat(rng.integers(0, 1 << width, count), int(rng.choice([1, 3, 60])))[:count].tolist()
        data = hybrid_rle.random_encoding(rng, values, width)
        assert hybrid_rle.decode(data, width, count) == values
        assert run_indices(probe, data, count, width, seed=number) == values


@given(data=st.data())
def test_runs_of_any_structure(probe, data):
    width = data.draw(st.integers(0, 32), "width")
    value = st.integers(0, (1 << width) - 1)
    run = st.one_of(
        st.tuples(st.just("rle"), value, st.integers(1, 40)),
        st.tuples(st.just("packed"), st.lists(value, min_size=8, max_size=24).map(lambda v: v[: len(v) // 8 * 8])),
    )
    drawn = data.draw(st.lists(run, max_size=8), "runs")
    encoded = hybrid_rle.encode(drawn, width)
    whole = [value for kind, *about in drawn for value in ([about[0]] * about[1] if kind == "rle" else about[0])]
    count = data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))), "count")
    compare(probe, encoded, count, width, LARGEST)


def test_single_bits(probe):
    rng = np.random.default_rng(8)
    for number in range(probe["engine"].size(200, 25)):
        count = int(rng.integers(0, probe["engine"].size(2000, 70)))
        share = rng.choice([0.0, 0.01, 0.5, 1.0])
        values = (rng.random(count) < share).astype(int).tolist()
        assert run_bits(probe, hybrid_rle.random_encoding(rng, values, 1), count, number) == values


def test_bit_packed_levels(probe):
    rng = np.random.default_rng(9)
    for count in [*range(20), 64, 1001]:
        values = rng.integers(0, 2, count).tolist()
        data = hybrid_rle.pack_high(values)
        out = GuardedBuffer(rng, count)
        ones = probe["validity"](with_slack(rng, data), 0, len(data), count, BIT_PACKED, out.array, 0)
        out.check()
        assert (ones, out.array.tolist()) == (sum(values), values)


def test_cut_at_every_byte(probe):
    rng = np.random.default_rng(10)
    for width in (1, 2, 7, 12, 20, 32):
        values = np.repeat(rng.integers(0, 1 << width, 12), 10).tolist()
        data = hybrid_rle.encode(hybrid_rle.random_runs(rng, values, width), width)
        for cut in range(len(data)):
            compare(probe, data[:cut], len(values), width, LARGEST)


def test_damaged_bytes(probe):
    rng = np.random.default_rng(11)
    for number in range(probe["engine"].size(3000)):
        width = int(rng.integers(0, 33))
        values = np.repeat(rng.integers(0, 1 << width, 12), 5).tolist()
        data = bytearray(hybrid_rle.random_encoding(rng, values, width))
        for _ in range(int(rng.integers(1, 4))):
            data[rng.integers(0, len(data))] = rng.integers(0, 256)
        compare(probe, bytes(data), len(values), width, int(rng.choice([LARGEST, 1 << width, 1 << 31, 3, 0])), number)


def compare(probe, data, count, width, limit, seed=0):
    """Compare kernel and oracle on bytes that may be damaged."""
    try:
        expected = hybrid_rle.decode(data, width, count)
    except Damaged:
        expected = None
    got = run_indices(probe, data, count, width, limit, seed)
    if expected is None:
        assert got in (TRUNCATED, BAD_RUN, BAD_VARINT, INDEX_OUT_OF_RANGE)
    elif max(expected, default=-1) >= limit:
        assert got == INDEX_OUT_OF_RANGE
    else:
        assert got == expected
    if width == 1:
        got = run_bits(probe, data, count, seed)
        if expected is None or max(expected, default=0) > 1:
            assert got in (TRUNCATED, BAD_RUN, BAD_VARINT)
        else:
            assert got == expected


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", TRUNCATED),
        (b"\x80", TRUNCATED),
        (b"\x80\x80\x80\x80\x80\x01", BAD_VARINT),
        (b"\x00\x01", BAD_RUN),
        (b"\x01\x01", BAD_RUN),
        (b"\x02", TRUNCATED),
        (b"\x03", TRUNCATED),
        (b"\xff\xff\xff\xff\x7f\xaa", TRUNCATED),  # the largest possible packed run, in one byte
        (b"\x03\xaa\x03", TRUNCATED),
        (b"\x02\x02", BAD_RUN),
        (b"\x22\x01", 0),  # a run that is longer than the count
        (b"\xfe\xff\xff\xff\x7f\x01", 0),  # the longest possible one
        (b"\x20\x01\x00", 0),  # an empty run behind the last value (DuckDB 1.3)
        (b"\x05\xff\xff\xff", 0),
    ],
)
def test_statuses_of_bits(probe, data, status):
    assert run_bits(probe, data, 16) == (status or [1] * 16)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", TRUNCATED),
        (b"\x80", TRUNCATED),
        (b"\x80\x80\x80\x80\x80\x01", BAD_VARINT),
        (b"\x00\x07\x20\x05", BAD_RUN),  # an empty run before a valid one
        (b"\x01\x20\x05", BAD_RUN),
        (b"\x20", TRUNCATED),
        (b"\x05\xaa\xaa\xaa\xaa\xaa", TRUNCATED),
        (b"\x20\x06", INDEX_OUT_OF_RANGE),
        (b"\x05" + hybrid_rle.pack([5] * 15 + [6], 3), INDEX_OUT_OF_RANGE),
        (b"\x22\x05", 0),  # a run that is longer than the count
        (b"\x20\x05\x00", 0),  # an empty run behind the last value (DuckDB 1.3)
        (b"\x20\x05", 0),
    ],
)
def test_statuses_of_indices(probe, data, status):
    got = run_indices(probe, data, 16, 3, limit=6)
    assert got == (status or [5] * 16)


@pytest.mark.parametrize("name", ["bits", "indices"])
def test_bytes_after_the_end_are_ignored(probe, name):
    """Neither an empty run nor a valid run after the end changes the status."""
    for behind in (b"\0\0", b"\x20\0"):
        raw = np.frombuffer(behind + bytes(16), np.uint8)
        more = (0, 1) if name == "indices" else ()
        assert probe[name](raw, 0, 0, 16, *more, np.zeros(64, np.uint8), 0) == TRUNCATED


def test_longest_runs_of_a_header(probe):
    assert run_bits(probe, b"\xfe\xff\xff\xff\x7f\x01", 300) == [1] * 300
    assert run_indices(probe, b"\xfe\xff\xff\xff\x7f\x07\x00\x00\x80", 300, 32) == [0x80000007] * 300
    assert run_bits(probe, b"\xff\xff\xff\xff\x7f\xaa\xaa", 16) == [0, 1] * 8
    assert run_indices(probe, b"\xff\xff\xff\xff\x7f", 300, 0) == [0] * 300
