"""Decoding one chunk by kernels, in buffers that notice stray writes and are full of garbage.

Every chunk is decoded twice, over different garbage: what kernels load behind the end of things must not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numparq.errors import NEED_ROOM, TRUNCATED
from numparq.kernels import tables as t
from twins.pages import Chunk
from twins.values import BOOLEAN

from .buffers import Guarded, with_slack
from .engines import Engine
from .tables import Request, chunk_table, page_table


@dataclass(frozen=True)
class Outcome:
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


class _Run:
    """One chunk in memory, decompressed."""

    def __init__(self, engine: Engine, chunk: Chunk, request: Request, seed: int) -> None:
        self.engine = engine
        self.rng = rng = np.random.default_rng(seed)
        stored = chunk.stored()
        self.raw = with_slack(rng, stored)
        self.chunks = chunk_table(chunk.column, chunk.codec, len(chunk.rows), len(stored), request)
        self.pages = page_table(chunk)
        self.request = request
        self.buffers: list[Guarded] = []
        self.most = int(self.pages[self.pages[:, t.P_TYPE] != t.DICTIONARY_PAGE, t.P_NUM_VALUES].max(initial=0))

    def buffer(self, size: int, dtype: str = "u1") -> np.ndarray:
        self.buffers.append(Guarded(self.rng, size, dtype))
        return self.buffers[-1].array

    def decompress(self) -> Outcome | None:
        """Decompress all pages; the failure, if there is one."""
        pos = 0
        for page in self.pages:
            if page[t.P_IS_COMPRESSED]:
                page[t.P_SCRATCH] = pos
                pos += page[t.P_UNCOMPRESSED] + t.SLACK
        if not pos:
            self.scratch = self.raw
            return None
        self.scratch = self.buffer(pos)
        state = np.zeros(1, np.int64)
        status = self.engine.decompress_snappy_pages(self.pages.reshape(-1), 0, len(self.pages), self.raw, self.scratch,
                                                     state)  # fmt: skip
        return Outcome(status, int(state[0])) if status < 0 else None

    def check(self) -> None:
        for buffer in self.buffers:
            buffer.check()


def decode_fixed(engine: Engine, chunk: Chunk, request: Request, seed: int = 1) -> Outcome:
    """Decode the rows asked for of a chunk of values of a fixed size."""
    outcomes = [_decode_fixed(_Run(engine, chunk, request, seed + again)) for again in range(2)]
    assert outcomes[0] == outcomes[1], "the outcome depends on bytes that nobody wrote"
    return outcomes[0]


def _decode_fixed(run: _Run) -> Outcome:
    failure = run.decompress()
    if failure is not None:
        run.check()
        return failure
    request, rng = run.request, run.rng
    item, count = request.item, request.stop - request.start
    wide = max(item, int(run.chunks[t.C_TYPE_LENGTH]))
    place = int(rng.integers(0, 4)) * item
    out, mask = run.buffer(place + count * item), run.buffer(place + count)
    untouched = out[:place].copy()
    run.chunks[t.C_OUT], run.chunks[t.C_MASK] = place, place
    dictionary = run.buffer(_dictionary_room(run) + t.SLACK)
    state = run.buffer(5, "i8")
    status = run.engine.decode_fixed_pages(
        run.chunks, run.pages.reshape(-1), 0, len(run.pages), run.raw, run.scratch, dictionary,
        run.buffer(run.most * wide + t.SLACK), run.buffer(run.most + t.SLACK), mask, out, state,
    )  # fmt: skip
    run.check()
    assert (out[:place] == untouched).all()
    if status < 0:
        return Outcome(status, int(state[0]))
    data = out[place:].tobytes()
    rows = tuple(data[i * item : (i + 1) * item] for i in range(count))
    kept = mask[place:].tobytes() if request.nulls == t.NULLS_MASK else b""
    return Outcome(status, -1, rows, kept, int(run.chunks[t.C_NULL_COUNT]))


def _dictionary_room(run: _Run) -> int:
    """Give the room for the dictionary; as the reader does, only for one that its page has the bytes for."""
    room = 0
    for page in run.pages[run.pages[:, t.P_TYPE] == t.DICTIONARY_PAGE]:
        count, size = int(page[t.P_NUM_VALUES]), int(page[t.P_UNCOMPRESSED])
        if run.chunks[t.C_TYPE] == BOOLEAN:
            fits = count <= 8 * size
        else:
            fits = count * max(int(run.chunks[t.C_TYPE_LENGTH]), 4 if run.request.conversion == t.CODES else 0) <= size
        room += count * run.request.item if fits else 0
        assert fits, "this dictionary page has to be refused before a kernel sees it"
    return room


def decode_binary(engine: Engine, chunk: Chunk, request: Request, seed: int = 1, room: int | None = None) -> Outcome:
    """Decode the rows asked for of a chunk of BYTE_ARRAY values, with room at first for few bytes or for `room`."""
    outcomes = [_decode_binary(_Run(engine, chunk, request, seed + again), room) for again in range(2)]
    assert outcomes[0] == outcomes[1], "the outcome depends on bytes that nobody wrote"
    return outcomes[0]


def _decode_binary(run: _Run, room: int | None) -> Outcome:
    failure = run.decompress()
    if failure is None:
        failure, entry_offsets, entries = _decode_entries(run)
    if failure is not None:
        run.check()
        return failure
    count = run.request.stop - run.request.start
    offsets, validity = run.buffer(count + 1, "i8"), run.buffer(count)
    indices, levels, state = run.buffer(4 * run.most + t.SLACK), run.buffer(run.most + t.SLACK), run.buffer(8, "i8")
    offsets[0] = 0
    state[1] = 0
    room = int(run.rng.integers(0, 50)) if room is None else room
    out = run.buffer(room + t.SLACK)
    first = 0
    while True:
        status = run.engine.decode_binary_pages(
            run.chunks, run.pages.reshape(-1), first, len(run.pages), run.raw, run.scratch, entry_offsets, entries, indices,
            levels, validity, offsets, out, room, state,
        )  # fmt: skip
        run.check()
        if status != NEED_ROOM:
            break
        first, used = int(state[0]), int(state[1])
        assert state[2] > room
        room = int(state[2])
        more = run.buffer(room + t.SLACK)
        more[:used] = out[:used]
        out = more
    if status < 0:
        return Outcome(status, int(state[0]))
    ends = offsets.tolist()
    assert ends[-1] == state[1] and ends == sorted(ends)
    data = out.tobytes()
    rows = tuple(data[a:b] if valid else None for a, b, valid in zip(ends, ends[1:], validity.tolist(), strict=False))
    assert all(valid in (0, 1) for valid in validity.tolist())
    return Outcome(status, -1, rows, validity.tobytes(), int(run.chunks[t.C_NULL_COUNT]))


def _decode_entries(run: _Run) -> tuple[Outcome | None, np.ndarray, np.ndarray]:
    """Decode the dictionary page, if there is one."""
    offsets, entries = np.zeros(1, np.int64), np.zeros(t.SLACK, np.uint8)
    for number, page in enumerate(run.pages):
        if page[t.P_TYPE] != t.DICTIONARY_PAGE:
            continue
        compressed = bool(page[t.P_IS_COMPRESSED])
        start, size = int(page[t.P_SCRATCH if compressed else t.P_BODY]), int(page[t.P_UNCOMPRESSED])
        count = int(page[t.P_NUM_VALUES])
        if 4 * count > size:
            return Outcome(TRUNCATED, number), offsets, entries
        offsets, entries = run.buffer(count + 1, "i8"), run.buffer(size + t.SLACK)
        data = run.scratch if compressed else run.raw
        status = run.engine.decode_binary_dictionary(data, start, start + size, count, offsets, entries)
        if status < 0:
            return Outcome(status, number), offsets, entries
        assert offsets[count] == status
        run.chunks[t.C_DICTIONARY_SIZE] = count
    return None, offsets, entries
