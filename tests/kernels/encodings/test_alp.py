"""ALP: the specification's examples, every width, exponent and factor, damaged pages, and the encoder."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import tables as t
from numparq.kernels.encodings.alp import max_alp_bytes
from numparq.kernels.encodings.alp_scaling import INVERSE_INDEX, SAMPLE_SIZE, SCALES4, SCALES8, VECTOR_SIZE, WORK_SIZE
from numparq.kernels.status import BAD_ALP, BAD_COUNT, TRUNCATED, UNSUPPORTED_ENCODING
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.decode_pages import DecodeOutcome, decode_fixed
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.oracles import Damaged, alp
from support.oracles.alp import ALP, LARGEST_EXPONENT, AlpVector
from support.oracles.pages import UNCOMPRESSED, Chunk, Page
from support.oracles.plain import DOUBLE, FLOAT, ColumnType

sizes = pytest.mark.parametrize("size", [4, 8])
PHYSICAL = {4: FLOAT, 8: DOUBLE}
LETTERS = {4: "f", 8: "d"}
NAN = struct.pack("<d", math.nan)


def octets(numbers, size: int = 8) -> list[bytes]:
    return [struct.pack("<" + LETTERS[size], number) for number in numbers]


def decode(engine, section: bytes, rows: int, size: int = 8) -> DecodeOutcome:
    """Decode a page of version 1 with this value section."""
    more = {"encoding": ALP, "definition_level_encoding": 3, "repetition_level_encoding": 3}
    page = Page(0, section, rows, len(section), [b""] * rows, more)
    chunk = Chunk(ColumnType(PHYSICAL[size]), UNCOMPRESSED, [page])
    return decode_fixed(engine, chunk, DecodeRequest(t.COPY, size, stop=rows))


def encode(engine, values: list[bytes], size: int, rng, start: int = 0, stop: int | None = None) -> bytes:
    """Encode values by the kernel, in exactly the room that it asks for."""
    stop = len(values) if stop is None else stop
    bits = np.frombuffer(b"".join(values), f"i{size}")
    place = int(rng.integers(0, 9))
    work, out = GuardedBuffer(rng, WORK_SIZE, "i8"), GuardedBuffer(rng, place + max_alp_bytes(stop - start, size))
    name = f"encode_alp{size}"
    end = getattr(engine, name)(bits.view(f"f{size}"), bits, start, stop, work.array, out.array, place)
    work.check()
    out.check()
    return out.array[place:end].tobytes()


def check(engine, values: list[bytes], size: int, rng) -> list[AlpVector]:
    """Encode values: byte for byte as the oracle with the chosen pairs, and read back."""
    written = encode(engine, values, size, rng)
    vectors = [vector for _, vector in alp.vectors_of(written, size, len(values))]
    pairs = [(vector.exponent, vector.factor) for vector in vectors]
    assert written == alp.encode(values, size, pairs)
    assert alp.decode(written, size, len(values)) == values
    if values:
        assert decode(engine, written, len(values), size) == DecodeOutcome(0, -1, tuple(values))
    return vectors


# --- the specification ----------------------------------------------------------------------------------------------


@engines
def test_specification_worked_example(engine):
    values = octets([1500.0, math.nan, 2500.0, 333.5])
    vector = alp.vector_of(values, 4, 3, 8)
    assert vector == AlpVector(4, 3, 3335, 15, [11665, 11665, 21665, 0], [(1, NAN)])
    stored = alp.encode_vector(vector, 8)
    assert len(stored) == 31
    parts = (
        bytes([4, 3, 1, 0]),
        bytes.fromhex("070D000000000000"),
        b"\x0f",
        (11665 | 11665 << 15 | 21665 << 30).to_bytes(8, "little"),
        b"\x01\x00",
        NAN,
    )
    assert stored == b"".join(parts)
    section = bytes([0, 0, 10, 4, 0, 0, 0, 4, 0, 0, 0]) + stored
    assert alp.encode_page([stored], 4) == section
    assert decode(engine, section, 4).rows == tuple(values)


@engines
@sizes
def test_specification_bit_packing_example(engine, size):
    """Integers 123, 456, 789 and 12: less the smallest one, ten bits each, in five bytes."""
    deltas = [111, 444, 777, 0]
    assert max(deltas).bit_length() == 10
    assert len(alp.pack(deltas, 10)) == 5
    stored = alp.encode_vector(AlpVector(0, 0, 12, 10, deltas, []), size)
    assert stored[5 + size :] == (111 | 444 << 10 | 777 << 20).to_bytes(5, "little")
    assert decode(engine, alp.encode_page([stored], 4), 4, size).rows == tuple(octets([123, 456, 789, 12], size))


def test_powers_of_ten_are_the_nearest_floats():
    for table, size in ((SCALES4, 4), (SCALES8, 8)):
        for k in range(LARGEST_EXPONENT[size] + 1):
            for place, exact in ((k, Fraction(10) ** k), (INVERSE_INDEX + k, Fraction(1, 10**k))):
                value = table[place]
                around = (np.nextafter(value, value.dtype.type(0)), np.nextafter(value, value.dtype.type(np.inf)))
                assert all(abs(Fraction(float(value)) - exact) < abs(Fraction(float(x)) - exact) for x in around)
                assert float(value) == alp.power(k if place < INVERSE_INDEX else -k, size)


# --- reading --------------------------------------------------------------------------------------------------------


def random_vector(rng, size: int, count: int, width: int, exponent: int, factor: int) -> AlpVector:
    deltas = [int.from_bytes(rng.bytes(8), "little") % (1 << width) for _ in range(count)]
    frame = int.from_bytes(rng.bytes(size), "little", signed=True) >> int(rng.integers(0, 8 * size))
    number = int(rng.integers(0, count + 1)) if rng.random() < 0.5 else 0
    places = rng.permutation(count)[:number].tolist()
    return AlpVector(exponent, factor, frame, width, deltas, [(place, rng.bytes(size)) for place in places])


@engines
@sizes
def test_every_width_and_frame(engine, size):
    """The sum of the frame of reference and a delta wraps around at the type's limits."""
    rng = np.random.default_rng(size)
    for width in range(8 * size + 1):
        exponent = int(rng.integers(0, LARGEST_EXPONENT[size] + 1))
        vector = random_vector(rng, size, 40, width, exponent, int(rng.integers(0, exponent + 1)))
        section = alp.encode_page([alp.encode_vector(vector, size)], 40, 6)
        expected = tuple(alp.decode(section, size, 40))
        assert decode(engine, section, 40, size) == DecodeOutcome(0, -1, expected)


@engines
@sizes
def test_every_exponent_and_factor(engine, size):
    rng = np.random.default_rng(size)
    for exponent in range(LARGEST_EXPONENT[size] + 1):
        for factor in range(exponent + 1):
            vector = random_vector(rng, size, 5, int(rng.integers(0, 8 * size + 1)), exponent, factor)
            section = alp.encode_page([alp.encode_vector(vector, size)], 5, 3)
            assert decode(engine, section, 5, size).rows == tuple(alp.decode(section, size, 5))


@pytest.mark.quick_cases(3)
@engines
@pytest.mark.parametrize("log", range(3, 16))
def test_every_vector_size(engine, log):
    rng = np.random.default_rng(log)
    each = 1 << log
    for count in {1, each - 1, each, each + 1, 2 * each + 3}:
        if count > engine.size(40_000, 70):
            continue
        parts = [min(each, count - start) for start in range(0, count, each)]
        vectors = [alp.encode_vector(random_vector(rng, 4, here, 7, 2, 1), 4) for here in parts]
        section = alp.encode_page(vectors, count, log)
        assert decode(engine, section, count, 4).rows == tuple(alp.decode(section, 4, count))


def example_page(size: int) -> tuple[bytes, int]:
    """Return a page of two vectors, both with exceptions, and its number of values."""
    rng = np.random.default_rng(0)
    numbers = [*(rng.integers(-500, 500, 9) / 100).tolist(), math.inf, 1 / 3, -0.0]
    return alp.encode(octets(numbers, size), size, [(2, 0), (3, 1)], 3), len(numbers)


@engines
@sizes
def test_cut_at_every_byte(engine, size):
    section, rows = example_page(size)
    assert decode(engine, section, rows, size).status == 0
    for cut in range(1, len(section)):
        got = decode(engine, section[:cut], rows, size)
        assert got in (DecodeOutcome(TRUNCATED, 0), DecodeOutcome(BAD_ALP, 0))
    assert decode(engine, section + b"\x00", rows, size) == decode(engine, section, rows, size)


@engines
@sizes
def test_every_byte_damaged(engine, size):
    """Pages that the oracle still reads are read equally; all others are refused."""
    section, rows = example_page(size)
    outcomes = set()
    for place in range(len(section)):
        for change in (1, 0x80, 0xFF):
            damaged = bytearray(section)
            damaged[place] ^= change
            got = decode(engine, bytes(damaged), rows, size)
            try:
                values = alp.decode(bytes(damaged), size, rows)
            except Damaged:
                assert got.status in (TRUNCATED, BAD_ALP, BAD_COUNT, UNSUPPORTED_ENCODING)
            else:
                assert len(values) != rows or got == DecodeOutcome(0, -1, tuple(values))
            outcomes.add(got.status)
    assert outcomes == {0, TRUNCATED, BAD_ALP, BAD_COUNT, UNSUPPORTED_ENCODING}


@engines
@pytest.mark.parametrize(
    ("place", "new", "status"),
    [
        (0, b"\x01", UNSUPPORTED_ENCODING),
        (1, b"\x01", UNSUPPORTED_ENCODING),
        (2, b"\x02", BAD_ALP),
        (2, b"\x10", BAD_ALP),
        (3, b"\x05\x00\x00\x00", BAD_COUNT),
        (3, b"\xff\xff\xff\x7f", BAD_COUNT),
        (3, b"\xff\xff\xff\xff", BAD_COUNT),
        (3, b"\x03\x00\x00\x00", TRUNCATED),
        (7, b"\x05\x00\x00\x00", BAD_ALP),
        (7, b"\xff\xff\xff\xff", BAD_ALP),
        (11, b"\x13", BAD_ALP),
        (12, b"\x05", BAD_ALP),
        (13, b"\x05\x00", BAD_ALP),
        (13, b"\x04\x00", TRUNCATED),
        (23, b"\x41", BAD_ALP),
        (23, b"\x40", TRUNCATED),
        (32, b"\x04\x00", BAD_ALP),
        (32, b"\xff\xff", BAD_ALP),
    ],
)
def test_invalid_fields(engine, place, new, status):
    section = bytearray(alp.encode(octets([1500.0, math.nan, 2500.0, 333.5]), 8, [(4, 3)]))
    section[place : place + len(new)] = new
    assert decode(engine, bytes(section), 4) == DecodeOutcome(status, 0)


@engines
def test_oversized_counts_are_refused(engine):
    """A vector takes at least thirteen bytes and an offset, so a header alone causes no allocation."""
    section = struct.pack("<BBBi", 0, 0, 3, 1 << 30) + bytes(100)
    assert decode(engine, section, 1 << 20) == DecodeOutcome(BAD_COUNT, 0)
    section = struct.pack("<BBBi", 0, 0, 3, 1 << 20) + bytes(100)
    assert decode(engine, section, 1 << 20) == DecodeOutcome(TRUNCATED, 0)


# --- writing --------------------------------------------------------------------------------------------------------


def random_floats(rng, size: int, count: int) -> list[bytes]:
    """Return decimals of few or many digits, integers, random bits, or values that no integer represents."""
    kind = int(rng.integers(0, 6))
    if kind == 0:
        numbers = rng.integers(-(10**6), 10**6, count) / 10.0 ** int(rng.integers(0, 5))
    elif kind == 1:
        numbers = rng.random(count)
    elif kind == 2:
        numbers = rng.integers(-(2**62), 2**62, count) >> rng.integers(0, 62, count)
    elif kind == 3:
        return [rng.bytes(size) for _ in range(count)]
    elif kind == 4:
        numbers = np.full(count, float(rng.integers(0, 100)) / 8)
    else:
        numbers = rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e-45, 0.1, 2.0**63, -(2.0**31)], count)
    values = octets(np.asarray(numbers, f"f{size}").tolist(), size)
    for place in rng.integers(0, max(count, 1), count // 20).tolist():
        values[place] = rng.bytes(size)
    return values


@engines
@sizes
def test_encoded_pages(engine, size):
    rng = np.random.default_rng(size)
    for count in (0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 2500):
        for _ in range(engine.size(4)):
            check(engine, random_floats(rng, size, min(count, engine.size(2500))), size, rng)


@given(data=st.data(), size=st.sampled_from([4, 8]))
def test_any_floats(data, size):
    bits = st.binary(min_size=size, max_size=size)
    decimal = st.builds(
        lambda number, digits: octets([number / 10**digits], size)[0], st.integers(-(10**9), 10**9), st.integers(0, 12)
    )
    values = data.draw(
        st.lists(st.one_of(bits, decimal, st.sampled_from(octets([0.0, -0.0, math.inf], size))), max_size=40)
    )
    for engine in ENGINES:
        check(engine, values, size, np.random.default_rng(0))


@engines
@sizes
def test_every_kind_of_exception(engine, size):
    """NaN payloads (also signalling ones), signs of zeros, subnormals and infinities are preserved."""
    rng = np.random.default_rng(0)
    infinity = int.from_bytes(octets([math.inf], size)[0], "little")
    sign = 1 << (8 * size - 1)
    odd = [infinity, infinity | sign, infinity | 1, infinity | sign | 5, 2 * infinity - 1, sign - 1, sign, 1, sign | 1]
    values = octets([1.25, 2.5, 3.75] * 10, size) + [number.to_bytes(size, "little") for number in odd]
    (vector,) = check(engine, values, size, rng)
    assert [place for place, _ in vector.exceptions] == list(range(30, 39))


@engines
@sizes
def test_chosen_pair_is_the_best_for_the_sample(engine, size):
    """In a page no longer than a sample, no other pair takes fewer bits."""
    rng = np.random.default_rng(3)
    for _ in range(engine.size(10, 2)):
        values = random_floats(rng, size, int(rng.integers(1, SAMPLE_SIZE + 1)))
        (vector,) = check(engine, values, size, rng)

        def price(exponent: int, factor: int, values: list[bytes] = values) -> int:
            integers = [alp.encode_value(value, exponent, factor, size) for value in values]
            kept = [integer for integer in integers if integer is not None]
            width = (max(kept) - min(kept)).bit_length() if kept else 0
            return len(values) * width + (len(values) - len(kept)) * 8 * (2 + size)

        lowest = min(price(e, f) for e in range(LARGEST_EXPONENT[size] + 1) for f in range(e + 1))
        assert price(vector.exponent, vector.factor) == lowest


@engines
def test_each_vector_has_its_own_pair(engine):
    rng = np.random.default_rng(0)
    parts = [np.round(rng.random(VECTOR_SIZE) * 100, digits) for digits in (0, 1, 2, 5)]
    kinds = 4 if engine.name == "compiled" else 2
    vectors = check(engine, octets(np.concatenate(parts[-kinds:]).tolist()), 8, rng)
    assert [vector.exponent - vector.factor for vector in vectors] == [0, 1, 2, 5][-kinds:]
    assert all(len(vector.exceptions) < VECTOR_SIZE // 20 for vector in vectors)


@engines
@sizes
def test_encode_a_range_of_values(engine, size):
    rng = np.random.default_rng(1)
    values = random_floats(rng, size, 100)
    for start, stop in ((0, 0), (3, 3), (5, 9), (50, 100), (99, 100)):
        written = encode(engine, values, size, rng, start, stop)
        assert alp.decode(written, size, stop - start) == values[start:stop]


@engines
@sizes
def test_vector_is_never_larger_than_its_exceptions(engine, size):
    """A few integers, all of them sampled, would need bits for every value; they become exceptions instead."""
    values = octets([math.nan], size) * VECTOR_SIZE
    values[:: (VECTOR_SIZE - 1) // (SAMPLE_SIZE - 1)] = octets(range(SAMPLE_SIZE), size)
    (vector,) = check(engine, values, size, np.random.default_rng(0))
    assert (vector.width, len(vector.exceptions)) == (0, VECTOR_SIZE)
