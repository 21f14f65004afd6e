"""Decodes selected rows of one chunk with the selection kernels, in the buffers of `decode_pages`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from numparq.kernels.selection.lazy_pages import STATE_FIELDS, STATE_RANGE, STATE_TAKEN
from numparq.kernels.status import NEED_ROOM
from support.oracles import row_selection
from support.oracles.pages import Chunk
from support.oracles.plain import BYTE_ARRAY, ColumnType

from .chunk_tables import DecodeRequest, page_table
from .decode_pages import ChunkDecode, DecodeOutcome, decode_entries
from .engines import Engine
from .value_cases import CASES, ValueCase


def take_rows(
    engine: Engine, chunk: Chunk, request: DecodeRequest, places: Sequence[int], stored: bool, seed: int = 1
) -> DecodeOutcome:
    """Read some of the rows asked for of a chunk.

    Parameters
    ----------
    places : sequence of int
        The rows, counted from ``request.start``, in order.
    stored : bool
        Whether the kernels decompress pages of Snappy themselves; then all are in PLAIN or have dictionary indices.
    """
    table = page_table(chunk)
    make = _read_strings if chunk.column.physical == enums.BYTE_ARRAY and request.conversion != t.CODES else _read_fixed
    outcomes = [
        make(ChunkDecode(engine, chunk, table, request, 2 * seed + again), _Rows(request, places, seed), stored)
        for again in range(2)
    ]
    assert outcomes[0] == outcomes[1], "the outcome depends on bytes that nobody wrote"
    return outcomes[0]


class _Rows:
    """Rows as ranges, those that touch together or not, or as a mask."""

    def __init__(self, request: DecodeRequest, places: Sequence[int], seed: int) -> None:
        rows = np.array(places, np.int64) + request.start
        self.count = len(rows)
        self.mask, self.mask_row = np.empty(0, np.uint8), -1
        if seed % 3 == 0 and len(rows):
            before = seed % 2  # the range may begin and end with rows that are not selected
            first, last = max(int(rows[0]) - before, 0), int(rows[-1]) + 1 + before
            self.mask, self.mask_row = np.zeros(last - first, np.uint8), first
            self.mask[rows - first] = 1
            self.bounds = np.array([first, last], np.int64)
            return
        edges = np.flatnonzero(np.diff(rows) != 1) + 1
        firsts = rows[np.append(0, edges)] if len(rows) else rows
        lasts = rows[np.append(edges - 1, len(rows) - 1)] + 1 if len(rows) else rows
        self.bounds = np.stack([firsts, lasts], 1).reshape(-1)

    @property
    def arguments(self) -> tuple[np.ndarray, int, np.ndarray, int]:
        """The selection, as the kernels take it."""
        return self.bounds, len(self.bounds) // 2, self.mask, self.mask_row


def _parts(run: ChunkDecode, stored: bool) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield the pages as `decode_pages` does, or as stored."""
    if stored:
        yield from ((first, last, run.decompressed) for first, last in run.batches)
    else:
        yield from run.parts()


def _read_fixed(run: ChunkDecode, selected: _Rows, stored: bool) -> DecodeOutcome:
    if run.failure is not None:
        return run.finish() or run.failure
    item, count = run.request.item, selected.count
    before = int(run.rng.integers(0, 4))
    has_mask = run.request.nulls == t.NULLS_MASK  # else there is none that could be written to
    out, mask = run.buffer((before + count) * item), run.buffer((before + count) * has_mask)
    untouched = out[: before * item].copy()
    run.chunks[t.C_OUT], run.chunks[t.C_VALIDITY] = before * item, before
    placed = run.chunks.copy()
    dictionary, size = run.buffer(run.dictionary_bytes + t.SLACK), run.values * run.item
    dense, levels = run.buffer(size + t.SLACK), run.buffer(run.values + t.SLACK)
    rows = run.buffer(size + 2 * t.SLACK + run.values)
    places, values, state = run.buffer(run.values, "i4"), run.buffer(run.values, "i8"), run.buffer(STATE_FIELDS, "i8")
    state[[STATE_TAKEN, STATE_RANGE]] = 0
    for first, last, decompressed in _parts(run, stored):
        status = run.engine.read_fixed_rows(
            run.chunks,
            run.pages.reshape(-1),
            first,
            last,
            run.raw,
            decompressed,
            int(stored),
            dictionary,
            dense,
            levels,
            *selected.arguments,
            places,
            values,
            rows,
            size + t.SLACK,
            mask,
            out,
            count,
            state,
        )
        if status < 0:
            run.failure = DecodeOutcome(status, int(state[STATE_PAGE]))
            break
    failure = run.finish()
    if failure is not None:
        return failure
    for name in (t.C_OUT, t.C_VALIDITY, t.C_ROW_START, t.C_ROW_STOP, t.C_NULLS):
        assert run.chunks[name] == placed[name]
    assert (out[: before * item] == untouched).all()
    assert state[STATE_TAKEN] == count
    data = out[before * item :].tobytes()
    taken = tuple(data[i * item : (i + 1) * item] for i in range(count))
    kept = mask[before:].tobytes() if has_mask else b""
    return DecodeOutcome(0, -1, taken, kept, int(run.chunks[t.C_NULL_COUNT]))


def _read_strings(run: ChunkDecode, selected: _Rows, stored: bool) -> DecodeOutcome:
    entries = decode_entries(run) if run.failure is None else None
    if entries is None:
        return run.finish() or DecodeOutcome(-1)
    count = selected.count
    indices, levels = run.buffer(4 * run.values + t.SLACK), run.buffer(run.values + t.SLACK)
    places, values, state = run.buffer(run.values, "i4"), run.buffer(run.values, "i8"), run.buffer(STATE_FIELDS, "i8")
    offsets, validity = run.buffer(count + 1, "i8"), run.buffer(count)
    state[[STATE_TAKEN, STATE_RANGE, STATE_BYTES]] = offsets[0] = 0
    out = run.buffer(int(run.rng.integers(0, 50)) + t.SLACK)
    for first, last, decompressed in _parts(run, stored):
        while True:
            status = run.engine.read_binary_rows(
                run.chunks,
                run.pages.reshape(-1),
                first,
                last,
                run.raw,
                decompressed,
                int(stored),
                *entries,
                indices,
                levels,
                *selected.arguments,
                places,
                values,
                validity,
                offsets,
                out,
                len(out) - t.SLACK,
                count,
                state,
            )
            if status != NEED_ROOM:
                break
            first, used = int(state[STATE_PAGE]), int(state[STATE_BYTES])
            assert state[STATE_NEEDED] > len(out) - t.SLACK
            grown = run.buffer(int(state[STATE_NEEDED]) + int(run.rng.integers(0, 50)) + t.SLACK)
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
    return DecodeOutcome(0, -1, rows, validity.tobytes(), int(run.chunks[t.C_NULL_COUNT]))


STRINGS = ValueCase(ColumnType(BYTE_ARRAY), t.COPY, 0)
TAKEN = [*CASES, STRINGS]


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
