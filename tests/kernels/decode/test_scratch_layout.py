"""Layout of decompressed pages and dictionaries: disjoint, with slack, within the totals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.column.encodings import TRANSCODERS
from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.scratch_layout import T_DECOMPRESSED, T_DICTIONARY, T_ITEM, T_PAGE, T_VALUES, TOTAL_FIELDS
from numparq.kernels.status import BAD_DICTIONARY, BAD_RATIO
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.kernels.strategies import SEEDS
from support.oracles.plain import BOOLEAN, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64, INT96

MOST = (1 << 31) - 1
LENGTHS = {INT32: 4, INT64: 8, INT96: 12, BYTE_ARRAY: 0, FIXED_LEN_BYTE_ARRAY: 7}
DECODABLE = [enums.PLAIN, enums.PLAIN_DICTIONARY, enums.RLE, enums.BIT_PACKED, enums.RLE_DICTIONARY, 1]
DELTA_ENCODINGS = {
    (enums.DELTA_BINARY_PACKED, INT32),
    (enums.DELTA_BINARY_PACKED, INT64),
    (enums.BYTE_STREAM_SPLIT, INT32),
    (enums.BYTE_STREAM_SPLIT, INT64),
    (enums.BYTE_STREAM_SPLIT, FIXED_LEN_BYTE_ARRAY),
    (enums.DELTA_BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY),
    (enums.DELTA_BYTE_ARRAY, BYTE_ARRAY),
    (enums.DELTA_LENGTH_BYTE_ARRAY, BYTE_ARRAY),
}


def transcoder_of(page_type, encoding, kind):
    """Return the transcoder that a page needs, by the specification's table of encodings."""
    is_delta = page_type != enums.DICTIONARY_PAGE and (encoding, kind) in DELTA_ENCODINGS
    return t.DELTA_TRANSCODER if is_delta else t.NO_TRANSCODER


def lay_out(engine, chunks, pages, batch_bytes=1000):
    """Lay pages out: (status, batches as (first, last, snappy, transcoder), totals)."""
    rng = np.random.default_rng(0)
    batches, totals = (
        GuardedBuffer(rng, (len(pages) + 1) * t.BATCH_FIELDS, "i8"),
        GuardedBuffer(rng, TOTAL_FIELDS, "i8"),
    )
    flat = pages.reshape(-1)
    status = engine.lay_out_scratch(
        chunks.reshape(-1), flat, len(pages), batch_bytes, TRANSCODERS.reshape(-1), batches.array, totals.array
    )
    batches.check()
    totals.check()
    if status < 0:
        return status, [], totals.array
    rows = batches.array.reshape(-1, t.BATCH_FIELDS)[: status + 1].tolist()
    assert rows[-1][t.B_FIRST] == len(pages)
    made = [
        (row[t.B_FIRST], after[t.B_FIRST], row[t.B_SNAPPY], row[t.B_TRANSCODER])
        for row, after in itertools.pairwise(rows)
    ]
    return status, made, totals.array


def random_tables(rng, num_chunks, num_pages, kinds=(INT32, INT64, INT96)):
    chunks = np.zeros((num_chunks, t.CHUNK_FIELDS), np.int64)
    chunks[:, t.C_CODEC] = rng.choice([0, 1, 1, 6], num_chunks)
    chunks[:, t.C_TYPE] = rng.choice(kinds, num_chunks)
    chunks[:, t.C_TYPE_LENGTH] = [LENGTHS[kind] for kind in chunks[:, t.C_TYPE].tolist()]
    chunks[:, t.C_ITEM_SIZE] = rng.choice([4, 8, 12], num_chunks)
    pages = np.zeros((num_pages, t.PAGE_FIELDS), np.int64)
    pages[:, t.P_CHUNK] = np.sort(rng.integers(0, num_chunks, num_pages))
    pages[:, t.P_TYPE] = rng.choice([enums.DATA_PAGE, enums.DATA_PAGE_V2, enums.DICTIONARY_PAGE], num_pages)
    chunks[:, t.C_QUIRKS] = rng.choice([0, t.PREFIX_CARRYOVER], num_chunks, p=[0.9, 0.1])
    pages[:, t.P_ENCODING] = rng.choice([*DECODABLE * 4, *range(10), -1, 11, 99], num_pages)
    pages[:, t.P_UNCOMPRESSED] = rng.choice([0, 1, 63, 64, 65, 500, 5000], num_pages)
    pages[:, t.P_NUM_VALUES] = pages[:, t.P_UNCOMPRESSED] // 12
    pages[:, t.P_IS_COMPRESSED] = (chunks[pages[:, t.P_CHUNK], t.C_CODEC] != 0) & (rng.random(num_pages) < 0.8)
    return chunks, pages


def are_disjoint(places):
    """Whether ranges of (start, size), each with SLACK after it, are disjoint."""
    edges = sorted(places)
    return all(start + size + t.SLACK <= after for (start, size), (after, _) in itertools.pairwise(edges))


@engines
def test_random_pages_do_not_overlap(engine):
    rng = np.random.default_rng(0)
    for _ in range(engine.size(200)):
        chunks, pages = random_tables(rng, int(rng.integers(1, 6)), int(rng.integers(0, 30)), [*LENGTHS])
        status, batches, totals = lay_out(engine, chunks, pages, int(rng.choice([0, 1, 100, 1000, 1 << 20])))
        assert status == len(batches)
        assert [first for first, *_ in batches] == [0, *(last for _, last, *_ in batches)][: len(batches)]
        for first, last, snappy, transcoder in batches:
            run = pages[first:last]
            kinds = chunks[run[:, t.P_CHUNK], t.C_TYPE]
            assert [transcoder] * len(run) == [*map(transcoder_of, *run[:, [t.P_TYPE, t.P_ENCODING]].T, kinds)]
            run = run[run[:, t.P_IS_COMPRESSED] != 0]
            places = run[:, [t.P_SCRATCH, t.P_UNCOMPRESSED]].tolist()
            assert are_disjoint(places)
            assert all(start >= 0 and start + size <= totals[T_DECOMPRESSED] for start, size in places)
            assert snappy == (chunks[run[:, t.P_CHUNK], t.C_CODEC] == enums.SNAPPY).all()
        is_dictionary = pages[:, t.P_TYPE] == enums.DICTIONARY_PAGE
        assert totals[T_VALUES] == pages[~is_dictionary, t.P_NUM_VALUES].max(initial=0)
        used = chunks[pages[:, t.P_CHUNK]][:, [t.C_ITEM_SIZE, t.C_TYPE_LENGTH]]
        assert totals[T_ITEM] == used.max(initial=0)


@engines
def test_dictionaries_do_not_overlap(engine):
    rng = np.random.default_rng(1)
    for _ in range(engine.size(100)):
        chunks, _ = random_tables(rng, int(rng.integers(1, 9)), 0)
        pages = np.zeros((len(chunks), t.PAGE_FIELDS), np.int64)
        pages[:, t.P_CHUNK], pages[:, t.P_TYPE] = np.arange(len(chunks)), enums.DICTIONARY_PAGE
        pages[:, t.P_NUM_VALUES] = rng.integers(0, 40, len(chunks))
        pages[:, t.P_UNCOMPRESSED] = pages[:, t.P_NUM_VALUES] * chunks[:, t.C_TYPE_LENGTH]
        _, _, totals = lay_out(engine, chunks, pages)
        sizes = pages[:, t.P_NUM_VALUES] * chunks[:, t.C_ITEM_SIZE]
        places = list(zip(chunks[:, t.C_DICTIONARY].tolist(), sizes.tolist(), strict=True))
        assert are_disjoint(places)
        assert all(start + size <= totals[T_DICTIONARY] for start, size in places)


@engines
@pytest.mark.parametrize(
    ("kind", "length", "conversion", "size", "most"),
    [
        (INT32, 4, t.COPY, 40, 10),
        (INT32, 4, t.COPY, 43, 10),
        (INT64, 8, t.COPY, 0, 0),
        (INT96, 12, t.INT96_NS, 25, 2),
        (BOOLEAN, 0, t.COPY, 3, 24),
        (BYTE_ARRAY, 0, t.CODES, 43, 10),
        (FIXED_LEN_BYTE_ARRAY, 1, t.CODES, 43, 43),
        (FIXED_LEN_BYTE_ARRAY, 5, t.COPY, 43, 8),
        (FIXED_LEN_BYTE_ARRAY, MOST, t.COPY, MOST, 1),
        (FIXED_LEN_BYTE_ARRAY, MOST, t.COPY, MOST - 1, 0),
        (FIXED_LEN_BYTE_ARRAY, 1, t.COPY, MOST, MOST),
    ],
)
def test_dictionary_sizes_are_checked(engine, kind, length, conversion, size, most):
    chunks, pages = np.zeros((1, t.CHUNK_FIELDS), np.int64), np.zeros((2, t.PAGE_FIELDS), np.int64)
    chunks[0, t.C_TYPE], chunks[0, t.C_TYPE_LENGTH], chunks[0, t.C_CAST] = kind, length, conversion
    chunks[0, t.C_ITEM_SIZE] = 4 if conversion == t.CODES else 8 if conversion else max(length, 1)
    pages[1, t.P_TYPE], pages[1, t.P_UNCOMPRESSED] = enums.DICTIONARY_PAGE, size
    for count in {0, most, most + 1, MOST}:
        pages[1, t.P_NUM_VALUES] = count
        status, _, totals = lay_out(engine, chunks, pages)
        assert status == (1 if count <= most else BAD_DICTIONARY)
        assert totals[T_PAGE] == 1
        if status > 0:
            assert totals[T_DICTIONARY] >= count * chunks[0, t.C_ITEM_SIZE]


@engines
def test_impossible_compression_ratios_are_refused(engine):
    chunks, pages = np.zeros((1, t.CHUNK_FIELDS), np.int64), np.zeros((2, t.PAGE_FIELDS), np.int64)
    chunks[0, t.C_CODEC], chunks[0, t.C_MAX_RATIO] = enums.SNAPPY, 22
    pages[:, t.P_IS_COMPRESSED], pages[:, t.P_COMPRESSED] = 1, 100
    for size, fine in ((22 * 116, True), (22 * 117, False), (MOST, False)):
        pages[1, t.P_UNCOMPRESSED] = size
        status, _, totals = lay_out(engine, chunks, pages)
        assert (status > 0) == fine
        assert totals[T_PAGE] == 1
        if not fine:
            assert status == BAD_RATIO
    chunks[0, t.C_MAX_RATIO] = 0  # unknown ratio
    assert lay_out(engine, chunks, pages)[0] > 0
    chunks[0, t.C_MAX_RATIO] = 22
    pages[1, t.P_IS_COMPRESSED] = 0
    assert lay_out(engine, chunks, pages)[0] > 0


@given(
    seed=SEEDS, num_chunks=st.integers(1, 5), num_pages=st.integers(0, 20), batch=st.sampled_from([0, 1, 99, 1 << 20])
)
def test_any_pages_do_not_overlap(seed, num_chunks, num_pages, batch):
    """Decompressed pages are disjoint; the compiled kernel and its Python body agree."""
    outcomes = []
    for engine in ENGINES:
        chunks, pages = random_tables(np.random.default_rng(seed), num_chunks, num_pages)
        status, batches, totals = lay_out(engine, chunks, pages, batch)
        assert status == len(batches)
        packed_ones = pages[pages[:, t.P_IS_COMPRESSED] != 0]
        for first, last, *_ in batches:
            run = pages[first:last]
            assert are_disjoint(run[run[:, t.P_IS_COMPRESSED] != 0][:, [t.P_SCRATCH, t.P_UNCOMPRESSED]].tolist())
        outcomes.append((status, batches, totals.tolist(), packed_ones.tolist()))
    assert outcomes[0] == outcomes[1]
