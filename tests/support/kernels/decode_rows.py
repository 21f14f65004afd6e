"""Decodes selected rows of one chunk with the selection kernels, in the buffers of `decode_pages`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from numparq.kernels import enums, tables
from numparq.kernels import tables as t
from numparq.kernels.decode import page_sections
from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from numparq.kernels.selection.lazy_pages import STATE_FIELDS, STATE_TAKEN
from numparq.kernels.status import NEED_ROOM
from support.oracles import row_selection
from support.oracles.pages import Chunk
from support.oracles.plain import BOOLEAN, BYTE_ARRAY, ColumnType

from .chunk_tables import DecodeRequest, page_table
from .decode_pages import ChunkDecode, DecodeOutcome
from .engines import Engine
from .value_cases import CASES, ValueCase


def take_rows(
    engine: Engine, chunk: Chunk, request: DecodeRequest, places: Sequence[int], stored: bool, seed: int = 1
) -> DecodeOutcome:
    """Take some of the rows asked for of a chunk, which has no BOOLEAN values.

    Parameters
    ----------
    places : sequence of int
        The rows, counted from ``request.start``, in order.
    stored : bool
        Whether the kernels decompress pages of Snappy themselves; then all are in PLAIN or have dictionary indices.

    Returns
    -------
    Outcome
        With a status of None where there are too few rows.
    """
    table = page_table(chunk)
    make = _take_strings if chunk.column.physical == enums.BYTE_ARRAY else _take_fixed
    outcomes = [
        make(ChunkDecode(engine, chunk, table, request, 2 * seed + again), np.array(places, np.int32), stored)
        for again in range(2)
    ]
    assert outcomes[0] == outcomes[1], "the outcome depends on bytes that nobody wrote"
    return outcomes[0]


def _parts(run: ChunkDecode, stored: bool) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield the data pages as `decode_pages` does, or as stored."""
    if not stored:
        for first, last, decompressed in run.parts():
            first += int(first == 0 and run.pages[0, tables.P_TYPE] == enums.DICTIONARY_PAGE)
            yield first, last, decompressed
        return
    for first, last in run.batches:
        first += int(first == 0 and run.pages[0, tables.P_TYPE] == enums.DICTIONARY_PAGE)
        yield first, last, run.decompressed


def _dictionary(run: ChunkDecode) -> np.ndarray:
    """Decode the dictionary page, if present."""
    dictionary, state = run.buffer(run.dictionary_bytes + tables.SLACK), run.buffer(page_sections.STATE_FIELDS, "i8")
    nothing = np.empty(0, np.uint8)
    if run.pages[0, tables.P_TYPE] == enums.DICTIONARY_PAGE and run.decompress(0, 1):
        status = run.engine.decode_fixed_pages(
            run.chunks,
            run.pages.reshape(-1),
            0,
            1,
            run.raw,
            run.decompressed,
            dictionary,
            nothing,
            nothing,
            nothing,
            nothing,
            state,
        )
        if status < 0:
            run.failure = DecodeOutcome(status, 0)
    return dictionary


def _take_fixed(run: ChunkDecode, places: np.ndarray, stored: bool) -> DecodeOutcome:
    if run.failure is not None:
        return run.finish() or run.failure
    dictionary, item, count = _dictionary(run), run.request.item, len(places)
    if run.failure is not None:
        return run.finish() or run.failure
    before = int(run.rng.integers(0, 4))
    has_mask = run.request.nulls == tables.NULLS_MASK  # else there is none that could be written to
    out, mask = run.buffer((before + count) * item), run.buffer((before + count) * has_mask)
    untouched = out[: before * item].copy()
    levels, values, state = (
        run.buffer(run.values + tables.SLACK),
        run.buffer(count, "i8"),
        run.buffer(STATE_FIELDS, "i8"),
    )
    state[STATE_TAKEN] = 0
    for first, last, decompressed in _parts(run, stored):
        status = run.engine.take_fixed_pages(
            run.chunks,
            run.pages.reshape(-1),
            first,
            last,
            run.raw,
            decompressed,
            int(stored),
            dictionary,
            levels,
            places,
            count,
            values,
            mask,
            before,
            out,
            before * item,
            state,
        )
        if status < 0:
            run.failure = DecodeOutcome(status, int(state[STATE_PAGE]))
            break
    failure = run.finish()
    if failure is not None:
        return failure
    assert (out[: before * item] == untouched).all()
    assert state[STATE_TAKEN] == count
    data = out[before * item :].tobytes()
    rows = tuple(data[i * item : (i + 1) * item] for i in range(count))
    kept = mask[before:].tobytes() if has_mask else b""
    return DecodeOutcome(0, -1, rows, kept, int(run.chunks[tables.C_NULL_COUNT]))


def _take_strings(run: ChunkDecode, places: np.ndarray, stored: bool) -> DecodeOutcome:
    if run.failure is not None:
        return run.finish() or run.failure
    count = len(places)
    levels, values, state = (
        run.buffer(run.values + tables.SLACK),
        run.buffer(count, "i8"),
        run.buffer(STATE_FIELDS, "i8"),
    )
    offsets, validity = run.buffer(count + 1, "i8"), run.buffer(count)
    offsets[0] = state[STATE_BYTES] = state[STATE_TAKEN] = 0
    out = run.buffer(int(run.rng.integers(0, 50)) + tables.SLACK)
    for first, last, decompressed in _parts(run, stored):
        while True:
            status = run.engine.take_binary_pages(
                run.chunks,
                run.pages.reshape(-1),
                first,
                last,
                run.raw,
                decompressed,
                int(stored),
                levels,
                places,
                count,
                values,
                validity,
                offsets,
                out,
                len(out) - tables.SLACK,
                state,
            )
            if status != NEED_ROOM:
                break
            first, used = int(state[STATE_PAGE]), int(state[STATE_BYTES])
            assert state[STATE_NEEDED] > len(out) - tables.SLACK
            grown = run.buffer(int(state[STATE_NEEDED]) + int(run.rng.integers(0, 50)) + tables.SLACK)
            grown[:used] = out[:used]
            out = grown
        if status < 0:
            run.failure = DecodeOutcome(status, int(state[STATE_PAGE]))
            break
    failure = run.finish()
    if failure is not None:
        return failure
    ends, data = offsets.tolist(), out.tobytes()
    assert state[STATE_TAKEN] == count
    assert ends[-1] == state[STATE_BYTES]
    assert ends == sorted(ends)
    rows = tuple(data[a:b] if valid else None for a, b, valid in zip(ends, ends[1:], validity.tolist(), strict=False))
    return DecodeOutcome(0, -1, rows, validity.tobytes(), int(run.chunks[tables.C_NULL_COUNT]))


STRINGS = ValueCase(ColumnType(BYTE_ARRAY), t.COPY, 0)
TAKEN = [case for case in CASES if case.column.physical != BOOLEAN] + [STRINGS]


def expected_rows(case: ValueCase, chunk: Chunk, request: DecodeRequest, places) -> DecodeOutcome:
    """Return the oracle's rows at some row indices."""
    rows = row_selection.take_indices(chunk.rows[request.start : request.stop], places)
    there = bytes(row is not None for row in rows)
    if case is STRINGS:
        return DecodeOutcome(0, -1, tuple(rows), there, rows.count(None))
    null = bytes(case.item)
    if case.item in (1, 2, 4, 8):
        null = (request.fill & ((1 << 64) - 1)).to_bytes(8, "little")[: case.item]
    made = tuple(null if row is None else case.convert(row) for row in rows)
    return DecodeOutcome(0, -1, made, there if request.nulls == t.NULLS_MASK else b"", rows.count(None))
