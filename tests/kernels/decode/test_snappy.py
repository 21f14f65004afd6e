"""Snappy blocks of all kinds of elements, many in one call, and damaged ones."""

from __future__ import annotations

import cramjam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import tables as t
from numparq.kernels.status import BAD_COMPRESSED_DATA
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer, with_slack
from support.oracles import Damaged, snappy
from support.oracles.hybrid_rle import uleb


def decompress(engine, blocks, seed=0, sizes=None, levels=0):
    """Decompress blocks in one call, as pages with level sections of `levels` bytes: the bytes, or (status, page)."""
    rng = np.random.default_rng(seed)
    pages = np.zeros((len(blocks), t.PAGE_FIELDS), np.int64)
    raw, pos, room = b"", 0, 0
    for page, block, size in zip(pages, blocks, sizes, strict=True):
        page[t.P_BODY], page[t.P_COMPRESSED] = len(raw), levels + len(block)
        page[t.P_UNCOMPRESSED], page[t.P_SCRATCH], page[t.P_DEFINITION_BYTES] = levels + size, pos, levels
        page[t.P_IS_COMPRESSED] = 1
        raw += rng.bytes(levels) + block + rng.bytes(int(rng.integers(0, 3)))
        room = pos + size + t.SLACK
        pos += size + t.SLACK + int(rng.integers(0, 9))
    out, state = GuardedBuffer(rng, room), GuardedBuffer(rng, 1, "i8")
    status = engine.decompress_snappy_pages(
        pages.reshape(-1), 0, len(pages), with_slack(rng, raw), out.array, state.array
    )
    out.check()
    state.check()
    if status < 0:
        return status, int(state.array[0])
    return [out.array[page[t.P_SCRATCH] :][:size].tobytes() for page, size in zip(pages, sizes, strict=True)]


@engines
def test_oracle_agrees_with_cramjam(engine):
    rng = np.random.default_rng(0)
    for _ in range(20):
        stream, data = snappy.random_block(rng, int(rng.integers(0, 60)), 700)
        assert bytes(cramjam.snappy.decompress_raw(stream)) == data == snappy.decompress(stream, len(data))
        assert bytes(cramjam.snappy.decompress_raw(snappy.compress(rng, data))) == data
        assert snappy.decompress(bytes(cramjam.snappy.compress_raw(data)), len(data)) == data


@engines
def test_blocks_of_random_elements(engine):
    rng = np.random.default_rng(1)
    made = [
        snappy.random_block(rng, int(rng.integers(0, 200)), int(rng.choice([5, 60, 300])))
        for _ in range(engine.size(150))
    ]
    streams, plain = [stream for stream, _ in made], [data for _, data in made]
    assert decompress(engine, streams, 3, [len(data) for data in plain]) == plain
    assert decompress(engine, streams, 4, [len(data) for data in plain], levels=7) == plain


@engines
def test_copies_of_every_offset_and_length(engine):
    rng = np.random.default_rng(2)
    blocks, plain = [], []
    for offset in range(1, 71):
        for length in range(1, 65, 1 if engine.name == "compiled" else 9):
            data = rng.bytes(offset)
            blocks.append(uleb(offset + length) + snappy.literal(data, 1) + snappy.copy(offset, length, 2))
            plain.append((data * (length // offset + 2))[: offset + length])
    assert decompress(engine, blocks, 5, [len(data) for data in plain]) == plain


@engines
def test_literals_of_every_form(engine):
    rng = np.random.default_rng(3)
    for size in (1, 15, 16, 17, 59, 60, 61, 64, 65, 256, 257, 70000):
        data = rng.bytes(size)
        forms = [form for form in range(5) if size <= (60, 256, 65536, 1 << 24, 1 << 32)[form]]
        blocks = [uleb(size) + snappy.literal(data, form) for form in forms]
        assert decompress(engine, blocks, 6, [size] * len(blocks)) == [data] * len(blocks)


@engines
def test_cut_at_every_byte(engine):
    rng = np.random.default_rng(4)
    for number in range(engine.size(10)):
        stream, data = snappy.random_block(rng, 12, 20)
        for cut in range(len(stream)):
            compare(engine, stream[:cut], len(data), number)


@engines
def test_damaged_bytes(engine):
    rng = np.random.default_rng(5)
    for number in range(engine.size(1500)):
        stream, data = snappy.random_block(rng, int(rng.integers(1, 20)), 20)
        damaged = bytearray(stream)
        for _ in range(int(rng.integers(1, 4))):
            damaged[rng.integers(0, len(damaged))] = rng.integers(0, 256)
        compare(engine, bytes(damaged), len(data) + int(rng.choice([0, 0, 0, 1, -1])), number)


@engines
def test_damage_in_one_of_several_blocks(engine):
    """Blocks are decompressed by twos: the first damaged one is named, wherever the damage is."""
    rng = np.random.default_rng(6)
    for number in range(engine.size(300)):
        made = [snappy.random_block(rng, int(rng.integers(1, 60)), 20) for _ in range(int(rng.integers(2, 6)))]
        blocks = [bytearray(stream) for stream, _ in made]
        for _ in range(int(rng.integers(1, 3))):
            damaged = blocks[rng.integers(0, len(blocks))]
            damaged[rng.integers(0, len(damaged))] = rng.integers(0, 256)
        expected = []
        for place, (block, (_, data)) in enumerate(zip(blocks, made, strict=True)):
            try:
                expected.append(snappy.decompress(bytes(block), len(data)))
            except Damaged:
                expected = (BAD_COMPRESSED_DATA, place)
                break
        assert decompress(engine, blocks, number, [len(data) for _, data in made]) == expected


def compare(engine, block, size, seed):
    try:
        expected = [snappy.decompress(block, size)]
    except Damaged:
        expected = (BAD_COMPRESSED_DATA, 0)
    assert decompress(engine, [block], seed, [size]) == expected


@engines
@pytest.mark.parametrize(
    "block",
    [
        b"",
        uleb(5),
        uleb(4) + snappy.literal(b"abcde"),
        uleb(6) + snappy.literal(b"abcde"),
        uleb(5) + snappy.copy(1, 5, 2),  # a copy before any output
        uleb(10) + snappy.literal(b"abcde") + snappy.copy(6, 5, 2),
        uleb(10) + snappy.literal(b"abcde") + bytes([2 | 4 << 2, 0, 0]),  # an offset of zero
        uleb(10) + snappy.literal(b"abcde") + snappy.copy((1 << 32) - 1, 5, 4),
        uleb(5) + bytes([63 << 2]) + b"\xff\xff\xff\xff",  # a literal of 4 GiB
        uleb(5 + (1 << 32)) + snappy.literal(b"abcde"),
        b"\x85\x80\x80\x80\x80\x00" + snappy.literal(b"abcde"),  # a length of six bytes
    ],
)
def test_invalid_blocks(engine, block):
    assert decompress(engine, [snappy.copy(9, 9, 2), block], 1, [0, 5])[0] == BAD_COMPRESSED_DATA
    good = uleb(5) + snappy.literal(b"abcde")
    assert decompress(engine, [good, block], 1, [5, 5]) == (BAD_COMPRESSED_DATA, 1)


@engines
def test_copies_beyond_the_end(engine):
    start = snappy.literal(b"abcde")
    for offset in (1, 3, 5):
        for count in (1, 2, 40):
            block = uleb(6) + start + snappy.copy(offset, 64, 2) * count
            assert decompress(engine, [block], 1, [6]) == (BAD_COMPRESSED_DATA, 0)


@engines
def test_truncated_copy_offset(engine):
    """Any byte after the block would complete the offset."""
    data = bytes(range(256)) * 260
    for kind, length in ((1, 8), (2, 8), (4, 8)):
        block = uleb(len(data) + length) + snappy.literal(data, 3) + snappy.copy(255, length, kind)
        for cut in range(1, {1: 1, 2: 2, 4: 4}[kind] + 1):
            for seed in range(4):
                outcome = decompress(engine, [block[:-cut]], seed, [len(data) + length])
                assert outcome == (BAD_COMPRESSED_DATA, 0)


@given(data=st.data())
def test_any_blocks(data):
    """Literals and copies in any order, and arbitrary bytes."""
    made, block = b"", b""
    for _ in range(data.draw(st.integers(0, 6))):
        if made and data.draw(st.booleans()):
            offset, length = data.draw(st.integers(1, len(made))), data.draw(st.integers(1, 64))
            block += snappy.copy(offset, length, 2)
            made = (made + made[-offset:] * (length // offset + 1))[: len(made) + length]
        else:
            literal = data.draw(st.binary(min_size=1, max_size=70))
            block, made = block + snappy.literal(literal), made + literal
    garbage = data.draw(st.binary(max_size=20))
    for engine in ENGINES:
        assert decompress(engine, [uleb(len(made)) + block], 0, [len(made)]) == [made]
        compare(engine, garbage, data.draw(st.sampled_from([0, 5, len(garbage)])), 0)
        compare(engine, uleb(len(made)) + garbage + block, len(made), 1)
