"""Dictionary encoding, values to indices: against a dict of Python."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.encodings.dictionary import ENTRY_FIELDS
from numparq.kernels.status import NO_DICTIONARY
from support.kernels.binary_values import lay_out_strings, random_strings
from support.kernels.engines import ENGINES, engines
from support.kernels.guard_pages import AVAILABLE, GuardPages
from support.kernels.guarded_buffers import GuardedBuffer
from support.oracles import encoders

WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 25, 33, 50)


def bits_for(room: int) -> int:
    return (2 * room).bit_length()


def index_fixed(engine, values, width, room, probe_count=0, probe_entries=0, table_bits=None):
    """Return the entries and the codes, or the status."""
    rng = np.random.default_rng(len(values))
    bits = bits_for(room) if table_bits is None else table_bits
    dictionary = GuardedBuffer(rng, room * width)
    codes = GuardedBuffer(rng, len(values), "i4")
    table = GuardedBuffer(rng, 1 << bits, "i4")
    table.array[:] = 0
    data = np.frombuffer(b"".join(values), np.uint8)
    found = engine.index_fixed(
        data, width, len(values), table.array, bits, room, probe_count, probe_entries, dictionary.array, codes.array
    )
    for guarded in (dictionary, codes, table):
        guarded.check()
    if found < 0:
        return found
    stored = dictionary.array.tobytes()
    return [stored[e * width : (e + 1) * width] for e in range(found)], codes.array.tolist()


def index_binary(engine, values, room, room_bytes=1 << 40, probe_count=0, probe_entries=0, table_bits=None, seed=0):
    rng = np.random.default_rng(seed)
    bits = bits_for(room) if table_bits is None else table_bits
    data, starts, ends = lay_out_strings(rng, values)
    table, firsts = GuardedBuffer(rng, 1 << bits, "i4"), GuardedBuffer(rng, room, "i4")
    known, codes = GuardedBuffer(rng, ENTRY_FIELDS * room, "i8"), GuardedBuffer(rng, len(values), "i4")
    table.array[:] = 0
    found = engine.index_binary(
        data,
        len(data),
        starts,
        ends,
        len(values),
        table.array,
        known.array,
        bits,
        room,
        room_bytes,
        probe_count,
        probe_entries,
        firsts.array,
        codes.array,
    )
    for guarded in (table, known, firsts, codes):
        guarded.check()
    return found if found < 0 else ([values[i] for i in firsts.array[:found].tolist()], codes.array.tolist())


@engines
@pytest.mark.parametrize("width", WIDTHS)
def test_fixed_values(engine, width):
    rng = np.random.default_rng(width)
    for distinct in (1, 2, 30, 1000):
        pool = [rng.bytes(width) for _ in range(distinct)]
        pool += [bytes(width), bytes([255] * width), pool[0][:-1] + bytes([pool[0][-1] ^ 1])]
        values = [pool[i] for i in rng.integers(0, len(pool), engine.size(3000)).tolist()]
        values += [pool[-1]] * engine.size(100)
        entries, codes = encoders.build_dictionary(values)
        assert index_fixed(engine, values, width, len(entries)) == (entries, codes)
        assert index_fixed(engine, values, width, len(entries) + 7) == (entries, codes)
        assert index_fixed(engine, values, width, len(entries) - 1) == NO_DICTIONARY


@engines
@pytest.mark.parametrize("longest", [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 100])
def test_binary_values(engine, longest):
    rng = np.random.default_rng(longest)
    for distinct in (1, 2, 30, 1000):
        values = random_strings(rng, engine.size(2000), distinct, longest)
        entries, codes = encoders.build_dictionary(values)
        size = sum(len(entry) + 4 for entry in entries)
        assert index_binary(engine, values, len(entries), size, seed=distinct) == (entries, codes)
        assert index_binary(engine, values, len(entries) + 7, seed=distinct) == (entries, codes)
        assert index_binary(engine, values, len(entries) - 1) == NO_DICTIONARY
        assert index_binary(engine, values, len(entries), size - 1) == NO_DICTIONARY


@engines
def test_no_values(engine):
    assert index_fixed(engine, [], 8, 0) == ([], [])
    assert index_fixed(engine, [], 3, 5) == ([], [])
    assert index_binary(engine, [], 0, 0) == ([], [])


@engines
def test_probe_of_the_first_values(engine):
    values = [struct.pack("<q", i) for i in (1, 2, 3, 1, 4, 5, 6, 7)]
    for probe_count in range(10):
        for probe_entries in range(9):
            refused = encoders.exceeds_dictionary_limit(values, 99, probe_count, probe_entries)
            expected = NO_DICTIONARY if refused else encoders.build_dictionary(values)
            assert index_fixed(engine, values, 8, 99, probe_count, probe_entries) == expected
            narrow = [value[:3] for value in values]
            found = index_fixed(engine, narrow, 3, 99, probe_count, probe_entries)
            assert found == (NO_DICTIONARY if refused else encoders.build_dictionary(narrow))
            assert index_binary(engine, values, 99, 999, probe_count, probe_entries) == expected


@engines
def test_floats_are_distinguished_by_their_bits(engine):
    numbers = [0x8000000000000000, 0, 0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000, 0]
    values = [struct.pack("<Q", number) for number in numbers]
    assert index_fixed(engine, values, 8, 9) == (values[:5], [0, 1, 2, 3, 4, 1])
    small = [struct.pack("<I", number >> 32 | number & 1) for number in numbers]
    assert index_fixed(engine, small, 4, 9) == (small[:5], [0, 1, 2, 3, 4, 1])


@engines
def test_zero_byte_strings_are_distinguished_by_length(engine):
    values = [bytes(i % 40) for i in range(80)]
    assert index_binary(engine, values, 40) == ([bytes(i) for i in range(40)], [*range(40), *range(40)])


@engines
def test_nearly_full_hash_table(engine):
    """15 entries in 16 slots: slower, but right."""
    values = [struct.pack("<q", i * i) for i in range(15)] * 3
    assert index_fixed(engine, values, 8, 15, table_bits=4) == encoders.build_dictionary(values)
    assert index_fixed(engine, values, 8, 14, table_bits=4) == NO_DICTIONARY
    assert index_binary(engine, values, 15, table_bits=4) == encoders.build_dictionary(values)


@engines
@pytest.mark.parametrize("shift", [0, 1, 8, 20, 31, 32, 33, 44, 52, 56])
def test_regular_values_do_not_collide(engine, shift):
    """Arithmetic sequences in any bits: the hash must not give up on them."""
    for step in (1, 3, 10, 1000):
        count = engine.size(min(4000, (1 << (64 - shift)) // step))
        values = [struct.pack("<Q", i * step << shift & (1 << 64) - 1) for i in range(count)]
        entries, codes = encoders.build_dictionary(values)
        assert index_fixed(engine, values, 8, len(entries)) == (entries, codes)
        assert index_binary(engine, values, len(entries)) == (entries, codes)


@engines
def test_adversarial_collisions_end_the_attempt(engine):
    """All values hash to one slot; the search for a free one must end early."""
    from numparq.kernels.encodings.dictionary import _FIRST_KEY

    key = int(_FIRST_KEY).to_bytes(8, "little")
    values = [key + struct.pack("<q", i) for i in range(engine.size(2500))]
    assert index_fixed(engine, values, 16, len(values)) == NO_DICTIONARY
    assert index_binary(engine, values, len(values)) == NO_DICTIONARY
    assert (
        index_fixed(engine, values[:10], 16, 10) == index_binary(engine, values[:10], 10) == (values[:10], [*range(10)])
    )


@given(
    st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([b"", b"a", b"a\0", b"ab" * 9, b"ab" * 9 + b"c"]))),
    st.integers(0, 20),
    st.integers(0, 200),
    st.integers(0, 10),
    st.integers(0, 10),
    st.integers(0, 1000),
)
def test_any_strings(values, room, room_bytes, probe_count, probe_entries, seed):
    refused = encoders.exceeds_dictionary_limit(values, room, probe_count, probe_entries, room_bytes)
    expected = NO_DICTIONARY if refused else encoders.build_dictionary(values)
    for engine in ENGINES:
        assert index_binary(engine, values, room, room_bytes, probe_count, probe_entries, None, seed) == expected


@pytest.mark.skipif(not AVAILABLE, reason="needs mprotect")
def test_no_reads_after_the_data():
    from support.kernels.engines import COMPILED

    pages = GuardPages()
    rng = np.random.default_rng(0)
    for longest in (1, 7, 16, 17, 30):
        for _ in range(10):
            values = random_strings(rng, 50, 20, longest)
            data, starts, ends = lay_out_strings(rng, values)
            inside = pages.copy_of(data.tobytes())
            table, known = np.zeros(256, np.int32), np.zeros(ENTRY_FIELDS * 50, np.int64)
            firsts, codes = np.zeros(50, np.int32), np.zeros(50, np.int32)
            found = COMPILED.index_binary(
                inside, len(data), starts, ends, 50, table, known, 8, 50, 1 << 30, 0, 0, firsts, codes
            )
            assert found == len(set(values))
    for width in (1, 3, 9, 12, 20):
        values = pages.copy_of(rng.bytes(width * 50))
        dictionary = pages.allocate(width * 50)
        table = np.zeros(256, np.int32)
        assert COMPILED.index_fixed(values, width, 50, table, 8, 50, 0, 0, dictionary, codes) > 0


@given(values=st.lists(st.binary(min_size=3, max_size=3), max_size=40), room=st.integers(0, 20))
def test_any_fixed_values(values, room):
    entries, codes = encoders.build_dictionary(values)
    expected = NO_DICTIONARY if len(entries) > room else (entries, codes)
    for engine in ENGINES:
        assert index_fixed(engine, values, 3, room) == expected
