"""Decoding some rows of one chunk by the kernels that decode no others, in the buffers of `driving.decoding`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from twins.pages import Chunk

from numparq.kernels import enums as t
from numparq.kernels import tables
from numparq.kernels.decode import page_sections
from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from numparq.kernels.selection.lazy_pages import STATE_FIELDS, STATE_TAKEN
from numparq.kernels.status import NEED_ROOM

from .decoding import Outcome, Run
from .engines import Engine
from .tables import Request, page_table


def take(engine: Engine, chunk: Chunk, request: Request, places: Sequence[int], stored: bool, seed: int = 1) -> Outcome:
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
    make = _take_strings if chunk.column.physical == t.BYTE_ARRAY else _take_fixed
    outcomes = [
        make(Run(engine, chunk, table, request, 2 * seed + again), np.array(places, np.int32), stored)
        for again in range(2)
    ]
    assert outcomes[0] == outcomes[1], "the outcome depends on bytes that nobody wrote"
    return outcomes[0]


def _parts(run: Run, stored: bool) -> Iterator[tuple[int, int, np.ndarray]]:
    """Give the data pages as `OptimizeRun.parts` does, or as they are."""
    if not stored:
        for first, last, decompressed in run.parts():
            first += int(first == 0 and run.pages[0, tables.P_TYPE] == t.DICTIONARY_PAGE)
            yield first, last, decompressed
        return
    for first, last in run.batches:
        first += int(first == 0 and run.pages[0, tables.P_TYPE] == t.DICTIONARY_PAGE)
        yield first, last, run.decompressed


def _dictionary(run: Run) -> np.ndarray:
    """Decode the dictionary page, if there is one."""
    dictionary, state = run.buffer(run.dictionary_bytes + tables.SLACK), run.buffer(page_sections.STATE_FIELDS, "i8")
    nothing = np.empty(0, np.uint8)
    if run.pages[0, tables.P_TYPE] == t.DICTIONARY_PAGE and run.decompress(0, 1):
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
            run.failure = Outcome(status, 0)
    return dictionary


def _take_fixed(run: Run, places: np.ndarray, stored: bool) -> Outcome:
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
            run.failure = Outcome(status, int(state[STATE_PAGE]))
            break
    failure = run.finish()
    if failure is not None:
        return failure
    assert (out[: before * item] == untouched).all()
    assert state[STATE_TAKEN] == count
    data = out[before * item :].tobytes()
    rows = tuple(data[i * item : (i + 1) * item] for i in range(count))
    kept = mask[before:].tobytes() if has_mask else b""
    return Outcome(0, -1, rows, kept, int(run.chunks[tables.C_NULL_COUNT]))


def _take_strings(run: Run, places: np.ndarray, stored: bool) -> Outcome:
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
            run.failure = Outcome(status, int(state[STATE_PAGE]))
            break
    failure = run.finish()
    if failure is not None:
        return failure
    ends, data = offsets.tolist(), out.tobytes()
    assert state[STATE_TAKEN] == count
    assert ends[-1] == state[STATE_BYTES]
    assert ends == sorted(ends)
    rows = tuple(data[a:b] if valid else None for a, b, valid in zip(ends, ends[1:], validity.tolist(), strict=False))
    return Outcome(0, -1, rows, validity.tobytes(), int(run.chunks[tables.C_NULL_COUNT]))
