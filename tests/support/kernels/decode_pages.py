"""Decodes one chunk with kernels, in guarded buffers full of garbage.

Every chunk is decoded twice over different garbage: bytes that kernels load beyond the end must not matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from numparq.column.encodings import TRANSCODERS
from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from numparq.kernels.decode.page_sections import STATE_FIELDS
from numparq.kernels.decode.scratch_layout import T_DECOMPRESSED, T_DICTIONARY, T_ITEM, T_PAGE, T_VALUES, TOTAL_FIELDS
from numparq.kernels.status import BAD_DICTIONARY, NEED_ROOM
from numparq.kernels.tables import B_FIRST, BATCH_FIELDS
from support.oracles.pages import Chunk

from .chunk_tables import DecodeRequest, chunk_table, page_table
from .engines import Engine
from .guarded_buffers import GuardedBuffer, with_slack
from .transcode_pages import TranscodeFailed, transcoded_parts

# Decompressed bytes that close a batch of pages; a seed and the next one choose the same.
BATCH_BYTES = (1 << 20, 0, 100, 1000)


@dataclass(frozen=True)
class DecodeOutcome:
    """What a kernel said, and what it made.

    Parameters
    ----------
    status : int
        0, or the first negative status.
    page : int
        The page that a negative status is about.
    rows : list
        The bytes of each row (None is a null, for BYTE_ARRAY); empty after a failure.
    mask : bytes
        The validity, where it was asked for.
    null_count : int
        C_NULL_COUNT.
    """

    status: int
    page: int = -1
    rows: tuple[bytes | None, ...] = ()
    mask: bytes = b""
    null_count: int = 0


class ChunkDecode:
    """One chunk in memory, and buffers for its values."""

    def __init__(self, engine: Engine, chunk: Chunk, table: np.ndarray, request: DecodeRequest, seed: int) -> None:
        self.engine = engine
        self.rng = rng = np.random.default_rng(seed)
        stored = chunk.stored()
        self.raw = with_slack(rng, stored)
        self.chunks = chunk_table(chunk.column, chunk.codec, len(chunk.rows), len(stored), request)
        self.pages = table.copy()
        self.request = request
        self.buffers: list[GuardedBuffer] = []
        self.failure: DecodeOutcome | None = None
        self._place(BATCH_BYTES[seed // 2 % len(BATCH_BYTES)])

    def _place(self, batch_bytes: int) -> None:
        count = len(self.pages)
        batches = self.buffer((count + 1) * BATCH_FIELDS, "i8")
        totals = self.buffer(TOTAL_FIELDS, "i8")
        status = self.engine.lay_out_scratch(
            self.chunks, self.pages.reshape(-1), count, batch_bytes, TRANSCODERS.reshape(-1), batches, totals
        )
        if status < 0:
            self.failure = DecodeOutcome(status, int(totals[T_PAGE]))
            return
        edges = batches[B_FIRST::BATCH_FIELDS].tolist()[: status + 1]
        self.batches = list(itertools.pairwise(edges))
        self.values, self.dictionary_bytes = int(totals[T_VALUES]), int(totals[T_DICTIONARY])
        self.item = int(totals[T_ITEM])
        self.decompressed = self.buffer(int(totals[T_DECOMPRESSED]) + t.SLACK)

    def buffer(self, size: int, dtype: str = "u1") -> np.ndarray:
        self.buffers.append(GuardedBuffer(self.rng, size, dtype))
        return self.buffers[-1].array

    def decompress(self, first: int, last: int) -> bool:
        """Decompress the pages of a batch; return whether it succeeded."""
        state = np.zeros(1, np.int64)
        pages = self.pages.reshape(-1)
        status = self.engine.decompress_snappy_pages(pages, first, last, self.raw, self.decompressed, state)
        if status < 0:
            self.failure = DecodeOutcome(status, int(state[0]))
        return status == 0

    def parts(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield batches of pages with their decompressed bytes; stops at a failure."""
        for batch in self.batches:
            if not self.decompress(*batch):
                return
            try:
                yield from transcoded_parts(self, *batch)
            except TranscodeFailed as failure:
                self.failure = DecodeOutcome(failure.status, failure.page)
                return

    def finish(self) -> DecodeOutcome | None:
        """Check the guards; return the failure, if any."""
        for buffer in self.buffers:
            buffer.check()
        return self.failure


def decode_fixed(engine: Engine, chunk: Chunk, request: DecodeRequest, seed: int = 1) -> DecodeOutcome:
    """Decode the requested rows of a chunk of fixed-size values.

    PLAIN values as stored, with a mask, are found where they are, too.
    """
    table = page_table(chunk)
    outcomes = [_decode_fixed(ChunkDecode(engine, chunk, table, request, 2 * seed + again)) for again in range(2)]
    assert outcomes[0] == outcomes[1], "the outcome depends on bytes that nobody wrote"
    if chunk.column.physical != enums.BOOLEAN and _are_without_indices(table):
        as_stored = replace(request, conversion=t.COPY, item=chunk.column.size, nulls=t.NULLS_MASK)
        stored = _decode_fixed(ChunkDecode(engine, chunk, table, as_stored, 2 * seed))
        nulls = [valid == 0 for valid in stored.mask]
        rows = tuple(None if is_null else row for is_null, row in zip(nulls, stored.rows, strict=True))
        _compare_found(engine, chunk, as_stored, seed, replace(stored, rows=rows))
    return outcomes[0]


def _are_without_indices(table: np.ndarray) -> bool:
    """Whether no page is a dictionary or holds indices."""
    has_dictionary = (table[:, t.P_TYPE] == enums.DICTIONARY_PAGE).any()
    return (
        not has_dictionary and not np.isin(table[:, t.P_ENCODING], [enums.PLAIN_DICTIONARY, enums.RLE_DICTIONARY]).any()
    )


def _compare_found(engine: Engine, chunk: Chunk, request: DecodeRequest, seed: int, outcome: DecodeOutcome) -> None:
    """Find the values of a chunk where they are, and compare them with the values decoded."""
    for again in range(2):
        found = _find_values(ChunkDecode(engine, chunk, page_table(chunk), request, 2 * seed + again))
        assert (found.status < 0) == (outcome.status < 0)
        assert found.status < 0 or found == outcome


def _decode_fixed(run: ChunkDecode) -> DecodeOutcome:
    if run.failure is not None:
        return run.finish() or run.failure
    request, item = run.request, run.request.item
    count = request.stop - request.start
    place = int(run.rng.integers(0, 4))
    out, mask = run.buffer((place + count) * item), run.buffer(place + count)
    untouched = out[: place * item].copy()
    run.chunks[t.C_OUT], run.chunks[t.C_VALIDITY] = place * item, place
    dictionary = run.buffer(run.dictionary_bytes + t.SLACK)
    dense, levels = run.buffer(run.values * run.item + t.SLACK), run.buffer(run.values + t.SLACK)
    state = run.buffer(STATE_FIELDS, "i8")
    for first, last, decompressed in run.parts():
        status = run.engine.decode_fixed_pages(
            run.chunks,
            run.pages.reshape(-1),
            first,
            last,
            run.raw,
            decompressed,
            dictionary,
            dense,
            levels,
            mask,
            out,
            state,
        )
        if status < 0:
            run.failure = DecodeOutcome(status, int(state[0]))
            break
    failure = run.finish()
    if failure is not None:
        return failure
    assert (out[: place * item] == untouched).all()
    data = out[place * item :].tobytes()
    rows = tuple(data[i * item : (i + 1) * item] for i in range(count))
    kept = mask[place:].tobytes() if request.nulls == t.NULLS_MASK else b""
    return DecodeOutcome(0, -1, rows, kept, int(run.chunks[t.C_NULL_COUNT]))


def decode_binary(
    engine: Engine, chunk: Chunk, request: DecodeRequest, seed: int = 1, room: int | None = None
) -> DecodeOutcome:
    """Decode the requested rows of a BYTE_ARRAY chunk, with initial room for few or `room` bytes.

    Strings of a chunk without a dictionary are found where they are, too.
    """
    table = page_table(chunk)
    outcomes = [
        _decode_binary(ChunkDecode(engine, chunk, table, request, 2 * seed + again), room) for again in range(2)
    ]
    assert outcomes[0] == outcomes[1], "the outcome depends on bytes that nobody wrote"
    if _are_without_indices(table):
        _compare_found(engine, chunk, request, seed, outcomes[0])
    return outcomes[0]


def _find_values(run: ChunkDecode) -> DecodeOutcome:
    """Find the PLAIN values of a chunk, several pages a call."""
    if run.failure is not None:
        return run.finish() or run.failure
    count, is_binary = run.request.stop - run.request.start, run.chunks[t.C_TYPE] == enums.BYTE_ARRAY
    validity, state = run.buffer(count), run.buffer(STATE_FIELDS, "i8")
    levels = run.buffer(run.values + t.SLACK)
    values: list[bytes] = []
    for first, last, decompressed in run.parts():
        flags = run.pages[first:last, t.P_IS_COMPRESSED].tolist()
        cuts = [first + at for at in range(1, last - first) if flags[at] != flags[at - 1]]
        for start, stop in itertools.pairwise([first, *cuts, last]):
            found = run.buffer(count if is_binary else 2 * (stop - start), "i8")
            status = run.engine.find_plain_values(
                run.chunks, run.pages.reshape(-1), start, stop, run.raw, decompressed, levels, validity, found, 0, state
            )
            if status < 0:
                run.failure = DecodeOutcome(status, int(state[0]))
                return run.finish() or run.failure
            data = (decompressed if run.pages[start, t.P_IS_COMPRESSED] else run.raw).tobytes()
            here = _strings_at(data, found[:status].tolist())
            if not is_binary:
                here = _values_in_runs(data, found.reshape(-1, 2).tolist(), int(run.chunks[t.C_TYPE_LENGTH]))
            assert len(here) == status
            values += here
    if run.failure is not None:
        return run.finish() or run.failure
    place = iter(values)
    rows = [next(place) if valid else None for valid in validity.tolist()]
    assert next(place, None) is None
    return run.finish() or DecodeOutcome(0, -1, tuple(rows), validity.tobytes(), int(run.chunks[t.C_NULL_COUNT]))


def _strings_at(data: bytes, starts: list[int]) -> list[bytes]:
    return [data[start : start + int.from_bytes(data[start - 4 : start], "little")] for start in starts]


def _values_in_runs(data: bytes, runs: list[list[int]], width: int) -> list[bytes]:
    return [data[at : at + width] for start, count in runs for at in range(start, start + count * width, width)]


def _decode_binary(run: ChunkDecode, room: int | None) -> DecodeOutcome:
    entries = decode_entries(run) if run.failure is None else None
    if entries is None:
        return run.finish() or DecodeOutcome(-1)
    count = run.request.stop - run.request.start
    offsets, validity, state = run.buffer(count + 1, "i8"), run.buffer(count), run.buffer(STATE_FIELDS, "i8")
    offsets[0] = 0
    state[STATE_BYTES] = 0
    out = run.buffer((int(run.rng.integers(0, 50)) if room is None else room) + t.SLACK)
    for first, last, decompressed in run.parts():
        status, out = _decode_batch(run, first, last, decompressed, entries, validity, offsets, out, state)
        if status < 0:
            run.failure = DecodeOutcome(status, int(state[STATE_PAGE]))
            break
    failure = run.finish()
    if failure is not None:
        return failure
    ends = offsets.tolist()
    assert ends[-1] == state[STATE_BYTES]
    assert ends == sorted(ends)
    data = out.tobytes()
    assert all(valid in (0, 1) for valid in validity.tolist())
    rows = tuple(data[a:b] if valid else None for a, b, valid in zip(ends, ends[1:], validity.tolist(), strict=False))
    return DecodeOutcome(0, -1, rows, validity.tobytes(), int(run.chunks[t.C_NULL_COUNT]))


def _decode_batch(
    run: ChunkDecode,
    first: int,
    last: int,
    decompressed: np.ndarray,
    entries: tuple[np.ndarray, np.ndarray],
    validity: np.ndarray,
    offsets: np.ndarray,
    out: np.ndarray,
    state: np.ndarray,
) -> tuple[int, np.ndarray]:
    """Decode a batch of pages into growing buffers; return (status, last buffers)."""
    indices, levels = run.buffer(4 * run.values + t.SLACK), run.buffer(run.values + t.SLACK)
    while True:
        room = len(out) - t.SLACK
        status = run.engine.decode_binary_pages(
            run.chunks,
            run.pages.reshape(-1),
            first,
            last,
            run.raw,
            decompressed,
            *entries,
            indices,
            levels,
            validity,
            offsets,
            out,
            room,
            state,
        )
        if status != NEED_ROOM:
            return status, out
        first, used = int(state[STATE_PAGE]), int(state[STATE_BYTES])
        assert state[STATE_NEEDED] > room
        more = run.buffer(int(state[STATE_NEEDED]) + t.SLACK)
        more[:used] = out[:used]
        out = more


def decode_entries(run: ChunkDecode) -> tuple[np.ndarray, np.ndarray] | None:
    """Decode the dictionary page, which comes first if present; None if invalid."""
    page = run.pages[0]
    if page[t.P_TYPE] != enums.DICTIONARY_PAGE:
        return np.zeros(1, np.int64), np.zeros(t.SLACK, np.uint8)
    if not run.decompress(0, 1):
        return None
    compressed, count, size = bool(page[t.P_IS_COMPRESSED]), int(page[t.P_NUM_VALUES]), int(page[t.P_UNCOMPRESSED])
    if 4 * count > size:
        run.failure = DecodeOutcome(BAD_DICTIONARY, 0)
        return None
    offsets, entries = run.buffer(count + 1, "i8"), run.buffer(size + t.SLACK)
    offsets[0], state = 0, run.buffer(STATE_FIELDS, "i8")
    state[:] = 0
    decompressed = run.decompressed if compressed else run.raw
    status = run.engine.decode_binary_dictionaries(
        run.chunks, run.pages.reshape(-1), 0, 1, run.raw, decompressed, offsets, entries, state
    )
    if status < 0:
        run.failure = DecodeOutcome(status, 0)
        return None
    assert (run.chunks[t.C_DICTIONARY], run.chunks[t.C_DICTIONARY_SIZE]) == (0, count)
    return offsets, entries
