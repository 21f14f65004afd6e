"""Levels of nested columns: from pages, and to validity and offsets; against the definition."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.levels import STATE_FIELDS, STATE_LEVELS, STATE_ROWS, STATE_VALUES
from numparq.kernels.status import BAD_LEVELS
from support.kernels.engines import ENGINES
from support.kernels.guarded_buffers import with_slack
from support.oracles import hybrid_rle, nested

# The definition level from which each list around a leaf has an element (the outermost at 1), and the maximum level.
LEAVES = [
    ([0], 0),
    ([0], 1),
    ([0], 3),
    ([0, 1], 1),
    ([0, 2], 3),
    ([0, 1, 2], 2),
    ([0, 2, 4], 5),
    ([0, 3, 3 + 2, 9], 255),
]


@pytest.fixture(params=ENGINES, ids=repr, scope="module")
def way(request):
    """Wrap an engine in an object that Hypothesis can print."""
    return SimpleNamespace(engine=request.param)


@st.composite
def sound_levels(draw, element_levels, most):
    """Draw valid levels: each entry continues a list that has an element, or begins a row."""
    count = draw(st.integers(0, 40))
    levels: list[tuple[int, int]] = []
    for _ in range(count):
        before = levels[-1][0] if levels else -1
        depths = [d for d in range(len(element_levels)) if d == 0 or before >= element_levels[d]]
        depth = draw(st.sampled_from(depths))
        levels.append((draw(st.integers(element_levels[depth], most)), depth))
    return levels


@st.composite
def leaves(draw):
    element_levels, most = draw(st.sampled_from(LEAVES))
    return element_levels, most, draw(sound_levels(element_levels, most))


ENCODINGS = (enums.RLE, enums.BIT_PACKED, t.BIT_PACKED_LOW)  # the last as Impala packs BIT_PACKED levels


def section(numbers, most, encoding=enums.RLE):
    """Encode levels as one run if they are equal, else bit-packed."""
    width = most.bit_length()
    if encoding == enums.BIT_PACKED:
        return hybrid_rle.pack_high(numbers, width)
    if encoding == t.BIT_PACKED_LOW:
        return hybrid_rle.pack(numbers, width)
    if len(set(numbers)) == 1:
        return hybrid_rle.encode([("rle", numbers[0], len(numbers))], width)
    padded = [*numbers, *[0] * (-len(numbers) % 8)]
    return hybrid_rle.encode([("packed", padded)], width)


def page(levels, element_levels, most, version, encoding=enums.RLE, values=b"12345678"):
    """Return a page: its row of the page table, and its body."""
    definition, repetition = [d for d, _ in levels], [r for _, r in levels]
    sections = [
        section(repetition, len(element_levels) - 1, encoding) if len(element_levels) > 1 else b"",
        section(definition, most, encoding) if most else b"",
    ]
    row = np.zeros(t.PAGE_FIELDS, np.int64)
    row[t.P_TYPE] = enums.DATA_PAGE_V2 if version == 2 else enums.DATA_PAGE
    row[t.P_ENCODING] = enums.RLE_DICTIONARY
    row[t.P_NUM_VALUES] = len(levels)
    if version == 2:
        row[t.P_REPETITION_BYTES], row[t.P_DEFINITION_BYTES] = map(len, sections)
    else:
        row[t.P_DEFINITION_ENCODING] = row[t.P_REPETITION_ENCODING] = encoding
        if encoding == enums.RLE:
            sections = [len(part).to_bytes(4, "little") + part if part else b"" for part in sections]
    body = b"".join(sections) + values
    row[t.P_COMPRESSED] = row[t.P_UNCOMPRESSED] = len(body)
    return row, body


def decode_levels(engine, pages, element_levels, most, seed=0):
    """Run the kernel over pages; returns its status, the levels, its state, the page table and the raw bytes."""
    rng = np.random.default_rng(seed)
    table = np.array([row for row, _ in pages]).reshape(len(pages), t.PAGE_FIELDS)
    table[:, t.P_BODY] = np.cumsum([0, *(len(body) for _, body in pages[:-1])])
    raw = with_slack(rng, b"".join(body for _, body in pages))
    room = int(table[:, t.P_NUM_VALUES].sum())
    definition, repetition = np.full(room + 64, 99, np.uint8), np.full(room + 64, 99, np.uint8)
    state = np.zeros(STATE_FIELDS, np.int64)
    status = engine.decode_page_levels(
        table.reshape(-1),
        0,
        len(pages),
        raw,
        np.zeros(64, np.uint8),
        most,
        len(element_levels) - 1,
        np.array(element_levels, np.int64),
        definition,
        repetition,
        state,
    )
    return status, definition, repetition, state, table, raw


@given(data=st.data())
def test_decode_page_levels(way, data):
    element_levels, most, levels = data.draw(leaves())
    cuts = sorted(data.draw(st.sets(st.integers(0, len(levels)), max_size=3)))
    parts = [levels[a:b] for a, b in zip([0, *cuts], [*cuts, len(levels)], strict=True)]
    pages = []
    for part in parts:
        version = data.draw(st.sampled_from([1, 2]))
        encoding = data.draw(st.sampled_from(ENCODINGS)) if version == 1 else enums.RLE
        pages.append(page(part, element_levels, most, version, encoding) if part else page([], [0], 0, 1))
    status, definition, repetition, state, table, raw = decode_levels(way.engine, pages, element_levels, most)
    assert status == 0
    count = len(levels)
    if most:
        assert definition[:count].tolist() == [d for d, _ in levels]
    if len(element_levels) > 1:
        assert repetition[:count].tolist() == [r for _, r in levels]
    assert (definition[count:] == 99).sum() >= 56
    assert (repetition[count:] == 99).sum() >= 56
    num_values = [sum(d == most for d, _ in part) for part in parts]
    assert table[:, t.P_NUM_VALUES].tolist() == num_values
    assert table[:, t.P_ROW].tolist() == np.cumsum([0, *num_values[:-1]]).tolist()
    assert (table[:, t.P_TYPE] == enums.DATA_PAGE).all()
    for row in table:
        start, end = row[t.P_BODY], row[t.P_BODY] + row[t.P_COMPRESSED]
        assert raw[start:end].tobytes() == b"12345678"
        assert row[t.P_ENCODING] == (enums.RLE_DICTIONARY if row[t.P_NUM_VALUES] else enums.PLAIN)
    assert state[STATE_LEVELS] == count
    assert state[STATE_VALUES] == sum(num_values)
    assert state[STATE_ROWS] == sum(r == 0 for _, r in levels)


@given(data=st.data())
def test_invalid_levels(way, data):
    element_levels, most = data.draw(st.sampled_from(LEAVES[2:7]))
    pairs = st.tuples(
        st.integers(0, (1 << most.bit_length()) - 1), st.integers(0, (1 << (len(element_levels) - 1).bit_length()) - 1)
    )
    levels = data.draw(st.lists(pairs, min_size=1, max_size=12))
    status, *_ = decode_levels(way.engine, [page(levels, element_levels, most, 2)], element_levels, most)
    assert status == (0 if nested.are_valid_levels(levels, most, element_levels) else BAD_LEVELS)


@pytest.mark.parametrize(("version", "encoding"), [*((1, encoding) for encoding in ENCODINGS), (2, enums.RLE)])
def test_truncated_pages(way, version, encoding):
    """The kernel stays inside the truncated body (the checked engine verifies it) and fails."""
    levels = [(number % 6, 0) for number in range(24)]
    element_levels, most = [0, 2, 4], 5
    row, body = page(levels, element_levels, most, version, encoding, values=b"")
    for size in range(len(body)):
        cut = row.copy()
        cut[t.P_COMPRESSED] = cut[t.P_UNCOMPRESSED] = size
        if version == 2:
            cut[t.P_REPETITION_BYTES] = min(row[t.P_REPETITION_BYTES], size)
            cut[t.P_DEFINITION_BYTES] = size - cut[t.P_REPETITION_BYTES]
        status, *_ = decode_levels(way.engine, [(cut, body[:size])], element_levels, most)
        assert status < 0
    rng = np.random.default_rng(1)
    for _ in range(way.engine.size(300)):
        damaged = bytearray(body)
        damaged[rng.integers(0, len(body))] = rng.integers(0, 256)
        decode_levels(way.engine, [(row, bytes(damaged))], element_levels, most)


@given(data=st.data())
def test_validity_and_offsets(way, data):
    element_levels, most, levels = data.draw(leaves())
    assume(len(element_levels) > 1)
    definition = np.array([d for d, _ in levels], np.uint8)
    repetition = np.array([r for _, r in levels], np.uint8)
    depth = data.draw(st.integers(0, len(element_levels) - 2))
    level = data.draw(st.integers(element_levels[depth], most))
    validity, offsets = np.full(len(levels), 7, np.uint8), np.full(len(levels) + 1, -1, np.int64)
    about = (definition, repetition, len(levels), depth, element_levels[depth], level)
    expected = nested.validity(levels, depth, element_levels[depth], level)
    places = way.engine.assemble_validity(*about, validity)
    assert validity[:places].tolist() == expected
    validity[:] = 7
    assert way.engine.assemble_lists(*about, element_levels[depth + 1], validity, offsets) == places
    assert validity[:places].tolist() == expected
    assert offsets[: places + 1].tolist() == nested.offsets(
        levels, depth, element_levels[depth], element_levels[depth + 1]
    )
