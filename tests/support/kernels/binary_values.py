"""Binary values in the layout that the writer passes to kernels, compared with the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from support.oracles.pages import Chunk

from .chunk_tables import DecodeRequest
from .decode_pages import DecodeOutcome, decode_binary


def lay_out_strings(rng: np.random.Generator, values: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return data, starts and ends: in any order, sometimes adjacent or overlapping, without slack."""
    if rng.random() < 0.5:
        data = b"".join(values)
        ends = np.cumsum([len(value) for value in values], dtype=np.int64)
        starts = ends - [len(value) for value in values]
    else:
        places: dict[bytes, int] = {}
        data = rng.bytes(int(rng.integers(0, 9)))
        order = list(values)
        rng.shuffle(order)
        for value in order:
            if value not in places or rng.random() < 0.2:
                places[value] = len(data)
                data += value
        starts = np.array([places[value] for value in values], np.int64)
        ends = np.array([places[value] + len(value) for value in values], np.int64)
    return np.frombuffer(data, np.uint8), np.asarray(starts, np.int64), ends


def random_strings(rng: np.random.Generator, count: int, distinct: int, longest: int) -> list[bytes]:
    """Return strings of random lengths, many with common prefixes or suffixes."""
    base = rng.bytes(longest)
    pool = []
    for _ in range(distinct):
        kind = rng.integers(0, 4)
        length = int(rng.integers(0, longest + 1))
        if kind == 0:
            pool.append(rng.bytes(length))
        elif kind == 1:
            pool.append(bytes(length))
        else:
            changed = bytearray(base[:length])
            if length and kind == 2:
                changed[int(rng.integers(0, length))] ^= 1 << int(rng.integers(0, 8))
            pool.append(bytes(changed))
    return [pool[i] for i in rng.integers(0, distinct, count).tolist()]


def expected_strings(chunk: Chunk, start: int, stop: int) -> DecodeOutcome:
    rows = tuple(chunk.rows[start:stop])
    return DecodeOutcome(0, -1, rows, bytes(row is not None for row in rows), rows.count(None))


def compare_strings(engine, chunk: Chunk, start: int, stop: int, seed: int, room: int | None = None) -> None:
    assert decode_binary(engine, chunk, DecodeRequest(start=start, stop=stop), seed, room) == expected_strings(
        chunk, start, stop
    )
