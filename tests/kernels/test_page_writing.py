"""Kernels over many column chunks: dictionaries and pages, against one chunk or page at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import page_writing
from numparq.kernels.encodings.delta_binary_packed import max_delta_bytes
from numparq.kernels.encodings.dictionary import ENTRY_FIELDS
from numparq.kernels.encodings.hybrid_rle import max_hybrid_bytes
from numparq.kernels.enums import BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, PLAIN, RLE, RLE_DICTIONARY
from numparq.kernels.status import NO_DICTIONARY
from support.kernels.binary_values import lay_out_strings, random_strings
from support.kernels.engines import engines
from support.kernels.guarded_buffers import GuardedBuffer
from support.oracles import delta, encoders, hybrid_rle

PROBE = (20, 15)


def random_chunks(rng):
    """Return bounds of a few chunks, some empty."""
    return np.array([0, *np.cumsum(rng.integers(0, 40, int(rng.integers(1, 6)))).tolist()])


def expected_dictionary(values, page_size, most):
    """Return entries and codes of a chunk, or the status."""
    room = max(min(len(values), most), 1)
    if encoders.exceeds_dictionary_limit(values, room, *PROBE, page_size):
        return NO_DICTIONARY
    return encoders.build_dictionary(values)


@engines
@given(st.integers(0, 1 << 32))
def test_index_any_chunks(engine, seed):
    rng = np.random.default_rng(seed)
    bounds = random_chunks(rng)
    count, chunks = int(bounds[-1]), len(bounds) - 1
    page_size = int(rng.integers(20, 400))
    codes, counts = GuardedBuffer(rng, count, "i4"), GuardedBuffer(rng, chunks, "i8")
    table = GuardedBuffer(rng, 1 << page_writing.table_bits(max(count, 1)), "i4")
    strings = random_strings(rng, count, int(rng.integers(1, 60)), 24)
    width = int(rng.choice([1, 3, 4, 8, 12]))
    fixed = [(value + bytes(width))[:width] for value in strings]

    dictionary = GuardedBuffer(rng, (count + chunks) * width)
    data = np.frombuffer(b"".join(fixed), np.uint8)
    out = (dictionary.array, codes.array, counts.array)
    engine.index_fixed_chunks(data, width, bounds, chunks, page_size, table.array, *PROBE, *out)
    stored = dictionary.array.tobytes()
    entries = [stored[at : at + width] for at in range(0, len(stored), width)]
    expected = [expected_dictionary(fixed[a:b], 1 << 62, page_size // width) for a, b in pairwise(bounds)]
    check_dictionaries(expected, entries, codes.array, counts.array, bounds)

    data, starts, ends = lay_out_strings(rng, strings)
    firsts, known = GuardedBuffer(rng, count + chunks, "i4"), GuardedBuffer(rng, ENTRY_FIELDS * max(count, 1), "i8")
    out = (firsts.array, codes.array, counts.array)
    places = (data, len(data), starts, ends, bounds, chunks, page_size)
    engine.index_binary_chunks(*places, table.array, known.array, *PROBE, *out)
    expected = [expected_dictionary(strings[a:b], page_size, page_size // 4) for a, b in pairwise(bounds)]
    entries = [strings[at] if 0 <= at < count else b"" for at in firsts.array.tolist()]
    check_dictionaries(expected, entries, codes.array, counts.array, bounds)
    for guarded in (codes, counts, table, dictionary, firsts, known):
        guarded.check()


def check_dictionaries(expected, entries, codes, counts, bounds):
    done = 0
    for chunk, found in enumerate(expected):
        if found == NO_DICTIONARY:
            assert counts[chunk] == NO_DICTIONARY
            continue
        assert entries[done : done + counts[chunk]] == found[0]
        assert codes[bounds[chunk] : bounds[chunk + 1]].tolist() == found[1]
        done += len(found[0])


# --- pages ------------------------------------------------------------------------------------------------------------


def read_levels(data, maximum, count, prefixed):
    """Return the levels at the start of the bytes, and the bytes after them."""
    if not maximum:
        return [0] * count, data
    if prefixed:
        size = int.from_bytes(data[:4], "little")
        return hybrid_rle.decode(data[4 : 4 + size], maximum.bit_length(), count), data[4 + size :]
    return hybrid_rle.decode(data, maximum.bit_length(), count), b""


def read_values(data, encoding, bits, count):
    if encoding == RLE_DICTIONARY:
        assert data[0] == bits
        return hybrid_rle.decode(data[1:], bits, count)
    if encoding == RLE:
        assert int.from_bytes(data[:4], "little") == len(data) - 4
        return hybrid_rle.decode(data[4:], 1, count)
    assert encoding == DELTA_BINARY_PACKED
    return delta.decode(data, bits, count)[0]


def random_pages(rng, encodings):
    """Return the table of `encode_pages`, with more entries than values."""
    pages = np.full((int(rng.integers(1, 6)), page_writing.W_FIELDS), -7, np.int64)
    entries, values = (np.concatenate(([0], np.cumsum(rng.integers(0, most, len(pages))))) for most in (60, 40))
    pages[:, 0], pages[:, 1], pages[:, 2], pages[:, 3] = entries[:-1], entries[1:], values[:-1], values[1:]
    pages[:, page_writing.W_ENCODING] = rng.choice(encodings, len(pages))
    return pages


WIDTHS = {"i4": 4, "i8": 8, "binary": page_writing.BINARY_VALUES, "bits": page_writing.BIT_VALUES, "other": 3}
ENCODINGS = {
    "i4": (PLAIN, DELTA_BINARY_PACKED, RLE_DICTIONARY, BYTE_STREAM_SPLIT),
    "i8": (PLAIN, DELTA_BINARY_PACKED, RLE_DICTIONARY),
    "binary": (PLAIN, RLE_DICTIONARY),
    "bits": (PLAIN, RLE),
    "other": (PLAIN, RLE_DICTIONARY, BYTE_STREAM_SPLIT),
}


@engines
@pytest.mark.parametrize("kind", WIDTHS)
@given(st.integers(0, 1 << 32))
def test_encode_any_pages(engine, kind, seed):
    rng = np.random.default_rng(seed)
    width, pages, version = WIDTHS[kind], random_pages(rng, ENCODINGS[kind]), int(rng.integers(1, 3))
    num_entries, num_values = int(pages[-1, 1]), int(pages[-1, 3])
    bits = int(rng.integers(0, 20))
    pages[:, page_writing.W_BIT_WIDTH] = bits
    maxima = [int(rng.choice([0, 1, 3])) for _ in range(2)]
    levels = [
        rng.integers(0, maximum + 1, num_entries).astype("u1") if rng.random() < 0.7 else None for maximum in maxima
    ]
    words = [
        (np.empty(0, "u1"), -maximum) if each is None else (each, maximum)
        for each, maximum in zip(levels, maxima, strict=True)
    ]
    strings = random_strings(rng, num_values, 9, 20)
    data, starts, ends = lay_out_strings(rng, strings)
    numbers = rng.integers(-(1 << 31), 1 << 31, num_values)
    data4, data8 = numbers.astype("i4"), numbers.astype("i8")
    data = {"i4": data4.view("u1"), "i8": data8.view("u1"), "binary": data}.get(
        kind, (rng.random(3 * num_values) < 0.5).view("u1")
    )
    codes = rng.integers(0, 1 << bits, num_values).astype("i4")
    size = len(data) + 4 * num_values
    room = size + len(pages) * (8 + 2 * max_hybrid_bytes(60, 2) + max_hybrid_bytes(40, 20) + max_delta_bytes(40, 8))
    first, last = int(rng.integers(0, len(pages))), len(pages)
    out = GuardedBuffer(rng, room)
    before = pages.copy()
    end = engine.encode_pages(
        pages.reshape(-1), first, last, version, *words[0], *words[1], data, len(data), width, starts, ends,
        data4, data8, codes, out.array,
    )  # fmt: skip
    out.check()
    assert (pages[:, :6] == before[:, :6]).all()
    assert (pages[:first] == before[:first]).all()
    pos = 0
    for e0, e1, v0, v1, encoding, _, repetition_end, levels_end, page_end in pages[first:].tolist():
        for ending, each, maximum in zip((repetition_end, levels_end), levels, maxima, strict=True):
            expected = [maximum] * (e1 - e0) if each is None else each[e0:e1].tolist()
            found, rest = read_levels(out.array[pos:ending].tobytes(), maximum, e1 - e0, version == 1)
            assert found == expected or not maximum
            assert rest == b""
            pos = ending
        body, pos = out.array[levels_end:page_end].tobytes(), page_end
        if encoding == BYTE_STREAM_SPLIT:
            assert body == b""
        elif encoding == RLE_DICTIONARY:
            assert read_values(body, encoding, bits, v1 - v0) == codes[v0:v1].tolist()
        elif encoding == PLAIN and kind == "binary":
            assert body == encoders.encode_plain_binary(strings[v0:v1])
        elif encoding == PLAIN and kind == "bits":
            assert body == encoders.pack_booleans(data[v0:v1].tolist())
        elif encoding == PLAIN:
            assert body == data[v0 * width : v1 * width].tobytes()
        else:
            expected = data[v0:v1] if encoding == RLE else numbers[v0:v1]
            assert read_values(body, encoding, 8 * width, v1 - v0) == expected.tolist()
    assert end == pos


def test_table_bits():
    for room in [*range(1, 300), 1 << 15, (1 << 15) + 1, 1 << 16, 1 << 17, (1 << 17) + 1, 1 << 20, 1 << 27]:
        expected = max(min((8 * room - 1).bit_length(), 18), (2 * room - 1).bit_length(), 4)
        assert page_writing.table_bits(room) == expected
