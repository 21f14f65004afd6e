"""LZO1X blocks of all kinds of instructions, and damaged ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.status import BAD_COMPRESSED_DATA
from support.kernels.engines import engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.oracles import Damaged, lzo

pytestmark = engines


def decompress(engine, block, room, seed=0):
    """Decompress a block inside larger buffers: the bytes, or a status."""
    rng = np.random.default_rng(seed)
    before, behind = rng.bytes(int(rng.integers(0, 5))), rng.bytes(int(rng.integers(0, 5)))
    data = np.frombuffer(before + block + behind, np.uint8)
    out = GuardedBuffer(rng, room)
    written = engine.decompress_lzo(data, len(before), len(before) + len(block), out.array, 0, room)
    out.check()
    return written if written < 0 else out.array[:written].tobytes()


def expected(block, room):
    try:
        return lzo.decompress(block, room)
    except Damaged:
        return BAD_COMPRESSED_DATA


def test_oracle_agrees_with_lzallright(engine):
    library = pytest.importorskip("lzallright").LZOCompressor
    rng = np.random.default_rng(0)
    for number in range(engine.size(60, 10)):
        stream, data = lzo.random_block(rng, int(rng.integers(1, 60)), 700)
        assert library.decompress(stream, len(data)) == data == lzo.decompress(stream, len(data))
        packed = library().compress(data)
        assert lzo.decompress(packed, len(data)) == data == decompress(engine, packed, len(data), number)


@pytest.mark.quick_cases(1)
def test_blocks_of_random_instructions(engine):
    rng = np.random.default_rng(1)
    for number in range(engine.size(300)):
        longest = int(rng.choice([5, 60, 600]))
        stream, data = lzo.random_block(rng, int(rng.integers(0, 200)), longest)
        assert decompress(engine, stream, len(data), number) == data
        assert decompress(engine, stream, len(data) + 7, number) == data
        if data:
            assert decompress(engine, stream, len(data) - 1, number) == BAD_COMPRESSED_DATA


@pytest.mark.parametrize("form", ["two", "three", "near", "middle", "far"])
def test_every_copy_form_at_its_distance_limits(engine, form):
    data = np.random.default_rng(2).bytes(50000)
    for distance in (1, 2, 7, 8, 1023, 1024, 2048, 2049, 3072, 16383, 16384, 16385, 32767, 32768, 32769, 49151):
        for length in (2, 3, 4, 5, 8, 9, 10, 33, 34, 288, 289, 543, 544):
            # Before the copy: three literals after an earlier copy, or a run.
            before = 3 if form == "two" else 4
            start = lzo.run(data) + (lzo.copy("near", 3, 1, b"xyz") if form == "two" else b"")
            if form not in lzo.forms(length, distance, before):
                continue
            plain = data + (data[-1:] * 3 + b"xyz" if form == "two" else b"")
            block = start + lzo.copy(form, length, distance, b"ab") + lzo.END
            copied = (plain[-distance:] * (length // distance + 1))[:length]
            assert decompress(engine, block, len(plain) + length + 2) == plain + copied + b"ab"


def test_literals_of_every_length(engine):
    rng = np.random.default_rng(3)
    for length in (*range(4, 20), 272, 273, 274, 528, 529, 70000):
        data = rng.bytes(length)
        assert decompress(engine, lzo.run(data) + lzo.END, length) == data
    for length in range(1, 239):
        data = rng.bytes(length)
        assert decompress(engine, lzo.first_run(data) + lzo.END, length) == data


def test_empty_block(engine):
    assert decompress(engine, lzo.END, 0) == b""
    assert decompress(engine, lzo.END, 9) == b""
    assert decompress(engine, b"", 0) == BAD_COMPRESSED_DATA


def test_cut_at_every_byte(engine):
    rng = np.random.default_rng(4)
    for number in range(engine.size(20, 3)):
        stream, data = lzo.random_block(rng, 12, 40)
        for cut in range(len(stream)):
            assert decompress(engine, stream[:cut], len(data), number) == BAD_COMPRESSED_DATA
        for more in (b"\x00", b"\x11", lzo.END, stream):
            assert decompress(engine, stream + more, 2 * len(data), number) == BAD_COMPRESSED_DATA


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(1)
def test_damaged_bytes(engine):
    rng = np.random.default_rng(5)
    for number in range(engine.size(3000)):
        stream, data = lzo.random_block(rng, int(rng.integers(1, 20)), 40)
        damaged = bytearray(stream)
        for _ in range(int(rng.integers(1, 4))):
            damaged[rng.integers(0, len(damaged))] = rng.integers(0, 256)
        room = len(data) + int(rng.choice([0, 0, 50]))
        assert decompress(engine, bytes(damaged), room, number) == expected(bytes(damaged), room)


@given(block=st.binary(max_size=40), room=st.integers(0, 300))
def test_any_bytes(engine, block, room):
    for stream in (block, block + lzo.END, lzo.run(b"abcdefgh") + block + lzo.END):
        assert decompress(engine, stream, room) == expected(stream, room)


@pytest.mark.parametrize(
    "block",
    [
        lzo.copy("near", 3, 1, b"") + lzo.END,  # a copy before any output
        lzo.run(b"abcd") + lzo.copy("near", 3, 5, b"") + lzo.END,
        lzo.run(b"abcd") + lzo.copy("near", 3, 4, b"abc")[:-1],
        lzo.run(b"abcd") + b"\x12\x00\x00",  # from 16384 bytes back, but no end
        lzo.run(b"abcd") + b"\x10" + bytes(1000),  # a length that does not end
        lzo.run(b"abcd") + b"\x20" + bytes(100) + b"\x01\x00\x00" + lzo.END,  # a copy of 25,000 bytes
        b"\x00" * 1000,
    ],
)
def test_invalid_blocks(engine, block):
    assert decompress(engine, block, 4096) == BAD_COMPRESSED_DATA == expected(block, 4096)
